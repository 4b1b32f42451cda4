//! From rounds of numbers to ratios, a printed table and files.

use crate::broker::Contender;
use crate::case::Numbers;
use crate::elastic;
use crate::machine::Machine;
use crate::table::{Against, ROWS, Row};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A median this far behind the schedule means that records wait for those before them, whatever the processor shows.
const BACKLOG_P50_US: f64 = 100_000.0;

/// The heading under which the broker's results stand in RESULTS.md.
const HEADING: &str = "# Benchmark results";

/// Everything measured in one round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Numbers by contender.
    pub(crate) numbers: BTreeMap<String, Numbers>,
    /// Sync probe before each contender: median and 99th percentile in microseconds.
    pub(crate) sync_probe_us: BTreeMap<String, (f64, f64)>,
    /// Share of the machine that others took while each contender was measured.
    pub(crate) foreign_share: BTreeMap<String, f64>,
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
#[derive(Debug, Serialize)]
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
}

/// All of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) command: String,
    pub(crate) kafka: String,
    #[serde(skip_deserializing)]
    pub(crate) lines: Vec<Line>,
    pub(crate) rounds: Vec<Round>,
}

/// Computes every row that the rounds have numbers for.
pub(crate) fn lines(rounds: &[Round]) -> Vec<Line> {
    let rows = ROWS.iter().chain(elastic::rows::ROWS);
    rows.filter_map(|row| line(row, rounds)).collect()
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
    })
}

/// Rows as a table in Markdown.
pub(crate) fn table(lines: &[Line], text: &mut String) {
    text.push_str("| id | what | who | against | target | median | min | max | met |\n|---|---|---|---|---|---|---|---|---|\n");
    for line in lines {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {}{} | {} | {} | {} | {} |",
            line.id,
            line.what,
            line.who,
            line.against,
            short(line.target),
            if line.promised { " (promised)" } else { "" },
            short(line.median),
            short(line.min),
            short(line.max),
            if line.met { "yes" } else { "no" }
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

impl Report {
    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{HEADING}\n\n");
        let machine = &self.machine;
        let _ = writeln!(
            text,
            "`{}` on {} cores ({}), {} GB, Linux {}; Apache Kafka {}; {} rounds.\n\
             Contenders: *durable* (acknowledges after fdatasync: the default), *relaxed*, *K0* (stock Kafka, never syncs),\n\
             *K1* (Kafka with a sync for each append). How it is measured: [README](README.md).\n",
            self.command,
            machine.cores,
            machine.cpu,
            machine.memory_gb,
            machine.kernel,
            self.kafka,
            self.rounds.len()
        );
        table(&self.lines, &mut text);
        text.push_str(
            "\nA rate that one side could not keep is not compared (`saturated`, or a median over 100 ms).\n",
        );
        if self.rounds.len() < 5 {
            text.push_str("\n**Fewer than five rounds: rough numbers, not a verdict. A quick run stores 1 GB before\nthe restart of R1; the promise is for 10 GB.**\n");
        }
        text.push_str("\n## Medians\n\n| number | durable | relaxed | K0 | K1 |\n|---|---|---|---|---|\n");
        for metric in self.metrics() {
            let cells: Vec<String> = [
                Contender::Durable,
                Contender::Relaxed,
                Contender::KafkaStock,
                Contender::KafkaSync,
            ]
            .iter()
            .map(|who| self.median(*who, &metric).map_or_else(|| "-".into(), short))
            .collect();
            let _ = writeln!(text, "| {metric} | {} |", cells.join(" | "));
        }
        text.push_str("\n## Probes\n\nSync probe (16 KiB write + fdatasync on written blocks, p50 / p99 in us) and foreign CPU share, by round:\n\n");
        for (number, round) in self.rounds.iter().enumerate() {
            let probes: Vec<String> = round
                .sync_probe_us
                .iter()
                .map(|(who, (p50, p99))| {
                    let foreign = round.foreign_share.get(who).copied().unwrap_or(0.0) * 100.0;
                    format!("{who} {p50:.0}/{p99:.0}, {foreign:.0} %")
                })
                .collect();
            let _ = writeln!(text, "- round {}: {}", number + 1, probes.join("; "));
        }
        text
    }

    fn metrics(&self) -> Vec<String> {
        let all = self.rounds.iter().flat_map(Round::metrics);
        all.cloned()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    fn median(&self, who: Contender, metric: &str) -> Option<f64> {
        let mut values: Vec<f64> = self
            .rounds
            .iter()
            .filter_map(|round| round.number(who, metric))
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Reads `results.json` and computes the lines anew, as the rules are now.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let text = fs::read_to_string(folder.join("results.json")).context("cannot read results.json")?;
        let mut report: Self = serde_json::from_str(&text).context("results.json is not of this program")?;
        report.lines = lines(&report.rounds);
        Ok(report)
    }

    /// Writes `results.json`, and the text into its place in `RESULTS.md`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        splice(folder, HEADING, &self.markdown())?;
        fs::write(
            folder.join("results.json"),
            serde_json::to_string_pretty(self)? + "\n",
        )
        .context("cannot write results.json")
    }

    /// Promised rows that were not met.
    pub(crate) fn broken(&self) -> Vec<String> {
        let broken = self.lines.iter().filter(|line| line.promised && !line.met);
        broken
            .map(|line| format!("{} {} ({}): {}", line.id, line.what, line.who, short(line.median)))
            .collect()
    }
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
        let compared = |round: Round| lines(&[round]).iter().any(|line| line.id == "L1");
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
            lines(rounds)
                .into_iter()
                .find(|line| line.promised)
                .map(|line| line.met)
        };
        assert_eq!(of(&[good(), good(), bad(), good(), good()]), Some(true));
        assert_eq!(of(&[good(), bad(), bad(), good(), good()]), Some(false));
    }
}
