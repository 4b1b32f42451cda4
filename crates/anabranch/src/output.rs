//! What commands print: tables for people, JSON for scripts, and messages on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and sentences.
    #[default]
    Text,
    /// One JSON document on standard output; errors as a JSON object on standard error.
    Json,
}

/// Rows under headings, in columns as wide as they need to be.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(headings: &[&str]) -> Table {
        Table {
            rows: vec![headings.iter().map(ToString::to_string).collect()],
        }
    }

    /// Appends a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text: two spaces between columns, none at the end of a line.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width_of).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:<width$}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Prints a text to standard output as it is.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// That whoever reads the output is still there (`| head`): a command that waits with nothing to write would never know.
pub(crate) fn check_reader() -> Outcome {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let out = io::stdout();
    let mut watched = [PollFd::new(&out, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let polled = poll(&mut watched, Some(&at_once));
    if polled.is_ok_and(|count| count > 0) && watched[0].revents().contains(PollFlags::ERR) {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
    }
    Ok(())
}

/// Prints a value as indented JSON.
pub(crate) fn print_json<T: Serialize>(value: &T) -> Outcome {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::failed(format!("cannot write the result as JSON: {error}")))?;
    text.push('\n');
    print(&text)
}

/// Says something to the person at the terminal, apart from the output. Nobody listening is no failure.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Reports a failure the way the format asks for.
pub(crate) fn report(failure: &Failure, format: Format) {
    if failure.quiet {
        return;
    }
    match format {
        Format::Text => {
            say(&format!("error: {}", failure.message));
            if let Some(hint) = &failure.hint {
                say(&format!("hint: {hint}"));
            }
        }
        Format::Json => {
            let object = serde_json::json!({
                "error": failure.message,
                "hint": failure.hint,
                "exit_code": failure.exit as i32,
            });
            say(&object.to_string());
        }
    }
}

/// "1 record", "2 records".
pub(crate) fn plural(count: u64, one: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {one}s")
    }
}

/// A number with commas between thousands.
pub(crate) fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && text != "-" {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes with one digit behind the point: `1.5 MiB`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_needed() {
        let mut table = Table::new(&["NAME", "PARTITIONS"]);
        table.row(vec!["a-long-name".to_owned(), "1".to_owned()]);
        table.row(vec!["ü".to_owned(), String::new()]);
        assert_eq!(table.render(), "NAME         PARTITIONS\na-long-name  1\nü\n");
    }

    #[test]
    fn bytes_are_readable() {
        let texts = [0, 1023, 1024, 1_572_864, u64::MAX].map(human_bytes);
        assert_eq!(texts, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "16777216.0 TiB"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
