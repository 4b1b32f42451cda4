//! What is known, kept by id and contender, so that ids can be measured when the machine is quiet, a few at a time.
//!
//! ```text
//! rounds of a run -> take: each id of each contender that was measured replaces what was known of it
//! rounds()        -> the rounds as one run would have had them -> rows (report.rs) -> a part of RESULTS.md
//! ```
//!
//! A ratio is fair within one run, where contenders take turns. Rows whose two sides were measured by different commands say so.

use crate::broker::Contender;
use crate::case::Numbers;
use crate::machine::Machine;
use crate::report::{Line, Round, lines, short, splice, table};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// From so many rounds on, the best and the worst decide nothing.
const ROUNDS_OF_A_VERDICT: usize = 5;

/// Endings of names of numbers that tell of the machine, not of a contender.
const FOREIGN: &str = "foreign_share";
const SYNC: &str = "sync_p50_us";

/// A part of RESULTS.md, with a file of its own for the numbers.
#[derive(Debug)]
pub(crate) struct Section {
    heading: &'static str,
    file: &'static str,
    /// Who is measured, and how; stands above the table.
    intro: &'static str,
    /// Ids, in the order of the table.
    ids: &'static [&'static str],
    contenders: &'static [Contender],
}

/// Everything that is measured, in the order of RESULTS.md.
pub(crate) const SECTIONS: [Section; 2] = [
    Section {
        heading: "# Benchmark results",
        file: "results.json",
        intro: "Contenders: *durable* (acknowledges after fdatasync: the default), *relaxed*, *K0* (stock Kafka, never syncs),\n\
                *K1* (Kafka with a sync for each append). How it is measured: [README](README.md). A rate that one side could not keep\n\
                is not compared (`saturated`, or a median over 100 ms).",
        ids: &[
            "P1", "P2", "P3", "P4", "P5", "P6", "P8", "C1", "C2", "L1", "L2", "L3", "S1", "M1", "M2", "M3",
            "U1", "R1", "R2",
        ],
        contenders: &[
            Contender::Durable,
            Contender::Relaxed,
            Contender::KafkaStock,
            Contender::KafkaSync,
        ],
    },
    Section {
        heading: "# Elastic groups",
        file: "results-elastic.json",
        intro: "Contenders: *durable* (Anabranch), *K0* (stock Kafka). Members are librdkafka consumers that work a millisecond on each\n\
                record and commit every second, unless a row says otherwise. What each id measures: [README](README.md).",
        ids: &crate::elastic::IDS,
        contenders: &[Contender::Durable, Contender::KafkaStock],
    },
];

impl Section {
    /// The id that a number belongs to, if it is one of these.
    pub(crate) fn id_of(&self, metric: &str) -> Option<&'static str> {
        let name = metric.split(['.', '_']).next().unwrap_or_default();
        self.ids.iter().copied().find(|id| id.eq_ignore_ascii_case(name))
    }
}

/// Everything that is known of a section, from the last run of each id and contender.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
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

impl Part {
    /// Least and largest of the numbers with this ending.
    fn range(&self, ending: &str) -> Option<(f64, f64)> {
        let numbers = self.rounds.iter().flatten();
        let found = numbers.filter(|(metric, _)| metric.ends_with(ending));
        found.fold(None, |range, (_, value)| {
            let (least, most) = range.unwrap_or((*value, *value));
            Some((least.min(*value), most.max(*value)))
        })
    }
}

impl Results {
    /// What was measured before; nothing if nothing was.
    pub(crate) fn read(section: &Section, folder: &Path) -> Result<Self> {
        let file = section.file;
        match fs::read_to_string(folder.join(file)) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("{file} is not of this program")),
            Err(_) => Ok(Self::default()),
        }
    }

    /// Takes in what a run has measured of the section, in the place of what was known of the same ids and contenders.
    /// Says whether there was anything.
    pub(crate) fn take(
        &mut self,
        section: &Section,
        rounds: &[Round],
        command: &str,
        kafka: &str,
        note: Option<&str>,
    ) -> bool {
        let mut fresh: BTreeMap<(&str, &String), Part> = BTreeMap::new();
        for round in rounds {
            for (who, numbers) in &round.numbers {
                let mut by_id: BTreeMap<&str, Numbers> = BTreeMap::new();
                for (metric, value) in numbers {
                    if let Some(id) = section.id_of(metric) {
                        by_id.entry(id).or_default().insert(metric.clone(), *value);
                    }
                }
                for (id, mut numbers) in by_id {
                    if let Some((p50_us, _)) = round.sync_probe_us.get(who) {
                        numbers.insert(format!("{}.{SYNC}", id.to_lowercase()), *p50_us);
                    }
                    let part = fresh.entry((id, who)).or_default();
                    part.command = command.into();
                    part.rounds.push(numbers);
                }
            }
        }
        if fresh.is_empty() {
            return false;
        }
        self.machine = Some(Machine::read());
        self.kafka = kafka.into();
        self.note = note.map_or_else(|| std::mem::take(&mut self.note), Into::into);
        for ((id, who), part) in fresh {
            self.parts.entry(id.into()).or_default().insert(who.clone(), part);
        }
        true
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

    /// The rows.
    pub(crate) fn lines(&self, section: &Section) -> Vec<Line> {
        lines(&self.rounds(), |metric, one, other| {
            self.command(section, metric, one) == self.command(section, metric, other)
        })
    }

    fn command(&self, section: &Section, metric: &str, who: Contender) -> Option<&str> {
        let part = self.parts.get(section.id_of(metric)?)?.get(who.name())?;
        Some(&part.command)
    }

    /// The text under the heading.
    pub(crate) fn markdown(&self, section: &Section) -> String {
        let mut text = format!("{}\n\n", section.heading);
        if !self.note.is_empty() {
            let _ = writeln!(text, "{}\n", self.note);
        }
        if let Some(machine) = &self.machine {
            let _ = writeln!(
                text,
                "On {} cores ({}), {} GB, Linux {}; Apache Kafka {}. {}\n",
                machine.cores, machine.cpu, machine.memory_gb, machine.kernel, self.kafka, section.intro
            );
        }
        table(&self.lines(section), &mut text);
        let rough = self.rough(section);
        if !rough.is_empty() {
            let _ = writeln!(
                text,
                "\nFewer than {ROUNDS_OF_A_VERDICT} rounds, so rough numbers, no verdict: {}.",
                rough.join(", ")
            );
        }
        text.push_str(
            "\nWhat was run: rounds, the share of the machine that other processes took meanwhile, and what a sync of 16 KiB cost\n\
             before each round:\n\n",
        );
        for (command, parts) in self.commands(section) {
            let _ = writeln!(text, "- `{command}`: {}", parts.join("; "));
        }
        self.numbers(section, &mut text);
        text
    }

    /// Ids with less than a verdict's rounds.
    fn rough(&self, section: &Section) -> Vec<&'static str> {
        let ids = section.ids.iter().copied();
        ids.filter(|id| {
            let mut parts = self.parts.get(*id).into_iter().flat_map(BTreeMap::values);
            parts.any(|part| part.rounds.len() < ROUNDS_OF_A_VERDICT)
        })
        .collect()
    }

    /// Which ids of whom each command measured.
    fn commands(&self, section: &Section) -> BTreeMap<&str, Vec<String>> {
        let mut commands: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for id in section.ids {
            for (who, part) in self.parts.get(*id).into_iter().flatten() {
                let mut told = format!("{id} {who} ({} x", part.rounds.len());
                if let Some((_, most)) = part.range(FOREIGN) {
                    let _ = write!(told, ", {:.0} %", most * 100.0);
                }
                match part.range(SYNC) {
                    Some((least, most)) if least < most => {
                        let _ = write!(told, ", {least:.0} to {most:.0} us");
                    }
                    Some((one, _)) => {
                        let _ = write!(told, ", {one:.0} us");
                    }
                    None => {}
                }
                commands.entry(&part.command).or_default().push(told + ")");
            }
        }
        commands
    }

    /// The median of every number.
    fn numbers(&self, section: &Section, text: &mut String) {
        let names: Vec<&str> = section.contenders.iter().map(|who| who.name()).collect();
        let _ = write!(
            text,
            "\n## Medians\n\n| number | {} |\n|---|{}\n",
            names.join(" | "),
            "---|".repeat(names.len())
        );
        let rounds = self.rounds();
        for metric in rounds.iter().flat_map(Round::metrics).collect::<BTreeSet<_>>() {
            if metric.ends_with(FOREIGN) || metric.ends_with(SYNC) {
                continue;
            }
            let cell = |who: &Contender| median(&rounds, *who, metric).map_or_else(|| "-".into(), short);
            let cells: Vec<String> = section.contenders.iter().map(cell).collect();
            let _ = writeln!(text, "| {metric} | {} |", cells.join(" | "));
        }
    }

    /// Writes the numbers, and the text into its place in RESULTS.md.
    pub(crate) fn write(&self, section: &Section, folder: &Path) -> Result<()> {
        let file = section.file;
        fs::write(folder.join(file), serde_json::to_string_pretty(self)? + "\n")
            .with_context(|| format!("cannot write {file}"))?;
        splice(folder, section.heading, &self.markdown(section))
    }
}

fn median(rounds: &[Round], who: Contender, metric: &str) -> Option<f64> {
    let mut values: Vec<f64> = rounds
        .iter()
        .filter_map(|round| round.number(who, metric))
        .collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKER: &Section = &SECTIONS[0];
    const ELASTIC: &Section = &SECTIONS[1];

    fn round(who: &str, metric: &str, value: f64) -> Round {
        let numbers = Numbers::from([(metric.to_owned(), value)]);
        Round {
            numbers: BTreeMap::from([(who.to_owned(), numbers)]),
            ..Round::default()
        }
    }

    #[test]
    fn numbers_are_known_by_their_id() {
        assert_eq!(ELASTIC.id_of("e1.broker_p99_ms"), Some("E1"));
        assert_eq!(ELASTIC.id_of("e10_lone.rise_ms"), Some("E10"));
        assert_eq!(ELASTIC.id_of("p1.mb_s"), None);
        assert_eq!(BROKER.id_of("p1.mb_s"), Some("P1"));
        assert_eq!(BROKER.id_of("p3_256.to_one"), Some("P3"));
        assert_eq!(BROKER.id_of("e1.broker_p99_ms"), None);
    }

    #[test]
    fn every_row_has_an_id_that_one_section_knows() {
        let rows = crate::table::ROWS.iter().chain(crate::elastic::rows::ROWS);
        for row in rows {
            let known = SECTIONS
                .iter()
                .filter(|section| section.id_of(row.metric).is_some());
            assert_eq!(known.count(), 1, "{}", row.metric);
        }
    }

    #[test]
    fn a_run_of_some_ids_leaves_the_others_as_they_were() {
        let mut all = Results::default();
        let first = [round("durable", "e4.even_share", 1.0)];
        assert!(all.take(ELASTIC, &first, "first", "4", Some("noisy")));
        let second = [
            round("durable", "e6_2.read", 1.1),
            round("durable", "e6_2.read", 1.2),
        ];
        all.take(ELASTIC, &second, "second", "4", None);
        all.take(ELASTIC, &[round("K0", "e4.even_share", 0.5)], "third", "4", None);
        let text = all.markdown(ELASTIC);
        assert!(text.contains("| e4.even_share | 1.00 | 0.50 |"), "{text}");
        assert!(text.contains("- `second`: E6 durable (2 x)"), "{text}");
        assert!(text.contains("noisy"), "{text}");
        let fourth = [round("durable", "e4.even_share", 0.9)];
        all.take(ELASTIC, &fourth, "fourth", "4", None);
        let text = all.markdown(ELASTIC);
        assert!(
            text.contains("| e4.even_share | 0.90 | 0.50 |") && !text.contains("`first`"),
            "{text}"
        );
        assert!(
            !all.take(BROKER, &fourth, "fourth", "4", None),
            "it is of the other"
        );
    }

    #[test]
    fn a_ratio_of_two_runs_says_so() {
        let both = |durable, kafka| {
            let mut round = round("durable", "p1.mb_s", durable);
            let other = Numbers::from([("p1.mb_s".to_owned(), kafka)]);
            round.numbers.insert("K0".into(), other);
            round
        };
        let mut all = Results::default();
        all.take(BROKER, &[both(200.0, 100.0)], "first", "4", None);
        assert!(!all.markdown(BROKER).contains("two runs"));
        all.take(BROKER, &[round("durable", "p1.mb_s", 300.0)], "second", "4", None);
        assert!(all.markdown(BROKER).contains("yes, two runs |"));
    }
}
