//! The results of E1–E11, Q1 and Q2: kept by id and contender, so that ids can be measured one at a time.

use super::IDS;
use crate::broker::Contender;
use crate::case::Numbers;
use crate::machine::Machine;
use crate::report::{Round, lines, short, splice, table};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const FILE: &str = "results-elastic.json";

/// The heading under which the results stand in RESULTS.md.
pub(crate) const HEADING: &str = "# Elastic groups";

/// Everything that is known, from the last run of each id and contender.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Elastic {
    machine: Option<Machine>,
    kafka: String,
    /// What whoever ran it says of the circumstances.
    note: String,
    /// By id, then by contender.
    parts: BTreeMap<String, BTreeMap<String, Part>>,
}

/// An id of one contender.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Part {
    command: String,
    /// Numbers of each round.
    rounds: Vec<Numbers>,
}

/// The id that a number belongs to, if it is one of these.
pub(crate) fn id_of(metric: &str) -> Option<&'static str> {
    let name = metric.split(['.', '_']).next().unwrap_or_default();
    IDS.into_iter().find(|id| id.eq_ignore_ascii_case(name))
}

impl Elastic {
    /// What was measured before; nothing if nothing was.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        match fs::read_to_string(folder.join(FILE)) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("{FILE} is not of this program")),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Takes in what a run has measured, in the place of what was known of the same ids and contenders.
    pub(crate) fn take(&mut self, rounds: &[Round], command: &str, kafka: &str, note: Option<&str>) {
        self.machine = Some(Machine::read());
        self.kafka = kafka.into();
        self.note = note.map_or_else(|| std::mem::take(&mut self.note), Into::into);
        let mut fresh: BTreeMap<(&str, &String), Part> = BTreeMap::new();
        for round in rounds {
            for (who, numbers) in &round.numbers {
                let mut by_id: BTreeMap<&str, Numbers> = BTreeMap::new();
                for (metric, value) in numbers {
                    if let Some(id) = id_of(metric) {
                        by_id.entry(id).or_default().insert(metric.clone(), *value);
                    }
                }
                for (id, numbers) in by_id {
                    let part = fresh.entry((id, who)).or_default();
                    part.command = command.into();
                    part.rounds.push(numbers);
                }
            }
        }
        for ((id, who), part) in fresh {
            self.parts.entry(id.into()).or_default().insert(who.clone(), part);
        }
    }

    /// The rounds as one run would have had them.
    fn rounds(&self) -> Vec<Round> {
        let mut rounds: Vec<Round> = Vec::new();
        for (who, part) in self.parts.values().flatten() {
            for (number, numbers) in part.rounds.iter().enumerate() {
                if rounds.len() <= number {
                    rounds.resize_with(number + 1, Round::default);
                }
                let of_round = rounds[number].numbers.entry(who.clone()).or_default();
                of_round.extend(numbers.iter().map(|(metric, value)| (metric.clone(), *value)));
            }
        }
        rounds
    }

    /// The text under the heading.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{HEADING}\n\n");
        if !self.note.is_empty() {
            let _ = writeln!(text, "{}\n", self.note);
        }
        if let Some(machine) = &self.machine {
            let _ = writeln!(
                text,
                "On {} cores ({}), {} GB, Linux {}; Apache Kafka {}. Contenders: *durable* (Anabranch), *K0* (stock Kafka).\n\
                 Members are librdkafka consumers that work a millisecond on each record and commit every second, unless a row says\n\
                 otherwise. What each id measures: [README](README.md).\n",
                machine.cores, machine.cpu, machine.memory_gb, machine.kernel, self.kafka
            );
        }
        let rounds = self.rounds();
        table(&lines(&rounds), &mut text);
        text.push_str(
            "\nWhat was run, rounds, and the share of the machine that other processes took meanwhile:\n\n",
        );
        for (command, parts) in self.commands() {
            let _ = writeln!(text, "- `{command}`: {}", parts.join(", "));
        }
        text.push_str("\n## Numbers\n\n| number | durable | K0 |\n|---|---|---|\n");
        for metric in rounds.iter().flat_map(Round::metrics).collect::<BTreeSet<_>>() {
            let cell = |who: Contender| {
                let mut values: Vec<f64> = rounds
                    .iter()
                    .filter_map(|round| round.number(who, metric))
                    .collect();
                values.sort_by(f64::total_cmp);
                values
                    .get(values.len() / 2)
                    .map_or_else(|| "-".into(), |value| short(*value))
            };
            let _ = writeln!(
                text,
                "| {metric} | {} | {} |",
                cell(Contender::Durable),
                cell(Contender::KafkaStock)
            );
        }
        text
    }

    /// Which ids of whom each command measured.
    fn commands(&self) -> BTreeMap<&str, Vec<String>> {
        let mut commands: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for id in IDS {
            for (who, part) in self.parts.get(id).into_iter().flatten() {
                let metric = format!("{}.foreign_share", id.to_lowercase());
                let foreign = part.rounds.iter().filter_map(|round| round.get(&metric));
                let foreign = foreign.copied().fold(0.0, f64::max) * 100.0;
                commands
                    .entry(&part.command)
                    .or_default()
                    .push(format!("{id} {who} ({} x, {foreign:.0} %)", part.rounds.len()));
            }
        }
        commands
    }

    /// Writes the numbers, and the text into its place in RESULTS.md.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        fs::write(folder.join(FILE), serde_json::to_string_pretty(self)? + "\n")
            .with_context(|| format!("cannot write {FILE}"))?;
        splice(folder, HEADING, &self.markdown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(who: &str, metric: &str, value: f64) -> Round {
        let numbers = Numbers::from([(metric.to_owned(), value)]);
        Round {
            numbers: BTreeMap::from([(who.to_owned(), numbers)]),
            ..Round::default()
        }
    }

    #[test]
    fn numbers_are_known_by_their_id() {
        assert_eq!(id_of("e1.broker_p99_ms"), Some("E1"));
        assert_eq!(id_of("e10_lone.rise_ms"), Some("E10"));
        assert_eq!(id_of("p1.mb_s"), None);
    }

    #[test]
    fn a_run_of_some_ids_leaves_the_others_as_they_were() {
        let mut all = Elastic::default();
        all.take(
            &[round("durable", "e4.even_share", 1.0)],
            "first",
            "4",
            Some("noisy"),
        );
        all.take(
            &[
                round("durable", "e6_2.read", 1.1),
                round("durable", "e6_2.read", 1.2),
            ],
            "second",
            "4",
            None,
        );
        all.take(&[round("K0", "e4.even_share", 0.5)], "third", "4", None);
        let text = all.markdown();
        assert!(text.contains("| e4.even_share | 1.00 | 0.50 |"), "{text}");
        assert!(text.contains("- `second`: E6 durable (2 x, 0 %)"), "{text}");
        assert!(text.contains("noisy"), "{text}");
        all.take(&[round("durable", "e4.even_share", 0.9)], "fourth", "4", None);
        let text = all.markdown();
        assert!(
            text.contains("| e4.even_share | 0.90 | 0.50 |") && !text.contains("`first`"),
            "{text}"
        );
    }
}
