//! Where the picture goes: redrawn in place on a terminal, else what happened line by line, or nowhere.

use console::Term;

use super::view::{Event, Picture};
use crate::failure::Outcome;
use crate::output::grouped;
use crate::output::{self, Format};

/// How often a line about the progress is printed where there is no terminal, seconds.
const LINE_SECONDS: f64 = 2.0;

/// Lines below the picture that stay free, for the cursor.
const MARGIN: usize = 1;

/// Where the picture is shown.
pub(crate) enum Screen {
    /// A terminal, with the number of lines that are drawn.
    Terminal { term: Term, drawn: usize },
    /// Plain lines, with the events printed so far and when the progress was printed last.
    Lines { events: usize, at_seconds: f64 },
    /// Only the result is wanted.
    Nowhere,
}

impl Screen {
    pub(crate) fn new(format: Format) -> Outcome<Screen> {
        let term = Term::stdout();
        if format == Format::Json {
            return Ok(Screen::Nowhere);
        }
        if !term.is_term() {
            return Ok(Screen::Lines {
                events: 0,
                at_seconds: 0.0,
            });
        }
        Ok(Screen::Terminal { term, drawn: 0 })
    }

    /// Shows a picture, or what is new in it.
    pub(crate) fn show(&mut self, picture: &Picture) -> Outcome {
        match self {
            Screen::Nowhere => Ok(()),
            Screen::Terminal { term, drawn } => {
                let (height, width) = term.size();
                let lines = picture.lines(usize::from(width), usize::from(height).saturating_sub(MARGIN));
                let mut text = String::new();
                // Up to the first line of the last picture; each line is cleared behind its new text.
                if *drawn > 0 {
                    text.push_str(&format!("\x1b[{drawn}A"));
                }
                for line in &lines {
                    text.push_str(&format!("{line}\x1b[K\r\n"));
                }
                text.push_str("\x1b[J");
                *drawn = lines.len();
                output::print(&text)
            }
            Screen::Lines { events, at_seconds } => {
                let new = picture.events.get(*events..).unwrap_or_default();
                let mut text: String = new.iter().map(|event| format!("{}\n", event.line())).collect();
                *events = picture.events.len();
                if picture.seconds - *at_seconds >= LINE_SECONDS {
                    *at_seconds = picture.seconds;
                    text.push_str(&format!("{}\n", status(picture).line()));
                }
                if text.is_empty() {
                    Ok(())
                } else {
                    output::print(&text)
                }
            }
        }
    }
}

/// The progress as an event.
fn status(picture: &Picture) -> Event {
    let members: Vec<String> = picture
        .members
        .iter()
        .map(|row| format!("{} {}", row.name, grouped(row.rate.round() as u64)))
        .collect();
    Event {
        seconds: picture.seconds,
        text: format!(
            "{} to do, {} records/s ({})",
            grouped(picture.remaining),
            grouped(picture.rate.round() as u64),
            members.join(", ")
        ),
    }
}
