//! From rounds of numbers to the rows of the table, and a table into its place in RESULTS.md.

use crate::broker::Contender;
use crate::case::Numbers;
use crate::elastic;
use crate::table::{Against, ROWS, Row};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A median this far behind the schedule means that records wait for those before them, whatever the processor shows.
const BACKLOG_P50_US: f64 = 100_000.0;

/// Everything measured in one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// Numbers by contender.
    pub(crate) numbers: BTreeMap<String, Numbers>,
    /// Sync probe before each contender: median and 99th percentile in microseconds.
    pub(crate) sync_probe_us: BTreeMap<String, (f64, f64)>,
}

impl Round {
    /// A number of a contender, if it was measured.
    pub(crate) fn number(&self, who: Contender, metric: &str) -> Option<f64> {
        self.numbers
            .get(who.name())?
            .get(metric)
            .copied()
            .filter(|number| number.is_finite())
    }

    /// The names of all numbers of all contenders.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &String> {
        self.numbers.values().flat_map(BTreeMap::keys)
    }

    /// Whether a contender could not keep the rate of an open loop: its latency is then the length of its backlog.
    fn is_saturated(&self, who: Contender, metric: &str) -> bool {
        let case = metric.split('.').next().unwrap_or_default();
        self.number(who, &format!("{case}.saturated"))
            .is_some_and(|flag| {
                flag > 0.0
                    || self
                        .number(who, &format!("{case}.p50_us"))
                        .is_some_and(|p50_us| p50_us > BACKLOG_P50_US)
            })
    }

    /// What a row says of this round; nothing if a side of it was saturated.
    fn value(&self, row: &Row) -> Option<f64> {
        let sides = match row.against {
            Against::AtLeast(other, _) | Against::AtMost(other, _) => vec![row.who, other],
            _ => vec![row.who],
        };
        if sides.iter().any(|who| self.is_saturated(*who, row.metric)) {
            return None;
        }
        let own = self.number(row.who, row.metric)?;
        match row.against {
            Against::AtLeast(other, _) | Against::AtMost(other, _) => {
                Some(own / self.number(other, row.metric)?)
            }
            Against::Absolute(_) | Against::AbsoluteAtLeast(_) => Some(own),
        }
    }
}

/// A row with its values over the rounds.
#[derive(Debug)]
pub(crate) struct Line {
    id: &'static str,
    what: &'static str,
    who: &'static str,
    against: String,
    target: f64,
    promised: bool,
    median: f64,
    min: f64,
    max: f64,
    met: bool,
    /// Whether both sides were measured by one command.
    is_of_one_run: bool,
}

/// Computes every row that the rounds have numbers for. `of_one_run` says whether a number of two contenders is of one command.
pub(crate) fn lines(rounds: &[Round], of_one_run: impl Fn(&str, Contender, Contender) -> bool) -> Vec<Line> {
    let rows = ROWS.iter().chain(elastic::rows::ROWS);
    rows.filter_map(|row| {
        let is_of_one_run = match row.against {
            Against::AtLeast(other, _) | Against::AtMost(other, _) => of_one_run(row.metric, row.who, other),
            Against::Absolute(_) | Against::AbsoluteAtLeast(_) => true,
        };
        let line = line(row, rounds)?;
        Some(Line {
            is_of_one_run,
            ..line
        })
    })
    .collect()
}

fn line(row: &Row, rounds: &[Round]) -> Option<Line> {
    let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.value(row)).collect();
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    // The best and the worst round decide nothing when there are enough of them.
    let middle = if values.len() >= 5 {
        &values[1..values.len() - 1]
    } else {
        &values[..]
    };
    let (against, target, at_least) = match row.against {
        Against::AtLeast(other, target) => (format!("x {}", other.name()), target, true),
        Against::AtMost(other, target) => (format!("x {}", other.name()), target, false),
        Against::Absolute(target) => (String::new(), target, false),
        Against::AbsoluteAtLeast(target) => (String::new(), target, true),
    };
    let met = middle.iter().all(|value| {
        if at_least {
            *value >= target
        } else {
            *value <= target
        }
    });
    Some(Line {
        id: row.id,
        what: row.what,
        who: row.who.name(),
        against: format!("{}{against}", if at_least { ">= " } else { "<= " }),
        target,
        promised: row.promised,
        median: values[values.len() / 2],
        min: first,
        max: last,
        met,
        is_of_one_run: true,
    })
}

/// Rows as a table in Markdown.
pub(crate) fn table(lines: &[Line], text: &mut String) {
    text.push_str("| id | what | who | against | target | median | min | max | met |\n|---|---|---|---|---|---|---|---|---|\n");
    for line in lines {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {}{} | {} | {} | {} | {}{} |",
            line.id,
            line.what,
            line.who,
            line.against,
            short(line.target),
            if line.promised { " (promised)" } else { "" },
            short(line.median),
            short(line.min),
            short(line.max),
            if line.met { "yes" } else { "no" },
            if line.is_of_one_run { "" } else { ", two runs" }
        );
    }
}

/// Puts a part of RESULTS.md, which begins with its heading, in the place of the one that was there, and leaves the others.
pub(crate) fn splice(folder: &Path, heading: &str, part: &str) -> Result<()> {
    let file = folder.join("RESULTS.md");
    let text = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, spliced(&text, heading, part)).context("cannot write RESULTS.md")
}

fn spliced(text: &str, heading: &str, part: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("# ") || parts.is_empty() {
            parts.push(String::new());
        }
        let _ = parts.last_mut().map(|part| writeln!(part, "{line}"));
    }
    let part = format!("{}\n", part.trim_end());
    match parts.iter_mut().find(|one| one.lines().next() == Some(heading)) {
        Some(old) => *old = part,
        None => parts.push(part),
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

/// Promised rows of these that were not met.
pub(crate) fn broken(lines: &[Line]) -> Vec<String> {
    let broken = lines.iter().filter(|line| line.promised && !line.met);
    broken
        .map(|line| format!("{} {} ({}): {}", line.id, line.what, line.who, short(line.median)))
        .collect()
}

/// A number with about three digits.
pub(crate) fn short(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(durable: f64, kafka: f64) -> Round {
        let numbers = |value| Numbers::from([("p1.mb_s".to_owned(), value)]);
        let numbers = BTreeMap::from([
            ("durable".to_owned(), numbers(durable)),
            ("K0".to_owned(), numbers(kafka)),
        ]);
        Round {
            numbers,
            ..Round::default()
        }
    }

    #[test]
    fn a_rate_that_one_side_could_not_keep_is_not_compared() {
        let round = |saturated: f64, p50_us: f64| {
            let of = |saturated, p50_us| {
                Numbers::from([
                    ("l1.saturated".to_owned(), saturated),
                    ("l1.p50_us".to_owned(), p50_us),
                ])
            };
            let numbers = [
                ("durable".to_owned(), of(0.0, 250.0)),
                ("K0".to_owned(), of(saturated, p50_us)),
            ];
            Round {
                numbers: BTreeMap::from(numbers),
                ..Round::default()
            }
        };
        let compared = |round: Round| lines(&[round], |_, _, _| true).iter().any(|line| line.id == "L1");
        assert!(compared(round(0.0, 500.0)));
        assert!(!compared(round(1.0, 500.0)), "the broker's core was full");
        assert!(!compared(round(0.0, 15e6)), "the backlog only grew");
    }

    #[test]
    fn a_part_replaces_the_one_under_its_heading_only() {
        let text = "# A\n\nremark\n\n# B\n\nold\n## sub\n";
        assert_eq!(
            spliced(text, "# B", "# B\n\nnew\n"),
            "# A\n\nremark\n\n# B\n\nnew\n"
        );
        assert_eq!(
            spliced(text, "# C", "# C\n\nmore"),
            format!("{text}\n# C\n\nmore\n")
        );
        assert_eq!(spliced("", "# A", "# A\n"), "# A\n");
    }

    #[test]
    fn one_bad_round_of_five_does_not_break_a_promise_two_do() {
        let good = || round(200.0, 100.0);
        let bad = || round(100.0, 100.0);
        let of = |rounds: &[Round]| {
            lines(rounds, |_, _, _| true)
                .into_iter()
                .find(|line| line.promised)
                .map(|line| line.met)
        };
        assert_eq!(of(&[good(), good(), bad(), good(), good()]), Some(true));
        assert_eq!(of(&[good(), bad(), bad(), good(), good()]), Some(false));
    }
}
