//! What came of it: the verdict in sentences, and everything as one JSON document.

use anabranch_server::admin::model::Decision;
use serde::Serialize;

use super::oracle::Verdict;
use super::play::{Played, rate};
use super::timeline::Change;
use crate::output::grouped;

/// A phase as it was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    /// Members in this phase.
    pub(crate) members: u32,
    /// `join` or `leave`.
    pub(crate) change: &'static str,
    /// From the change to the first record of the new member, or the end of the leaver; `None` if it did not come.
    pub(crate) settled_ms: Option<f64>,
    pub(crate) measured_seconds: f64,
    /// Records per second of all members.
    pub(crate) rate: f64,
    /// Members that did something.
    pub(crate) working: usize,
    /// The rate beside that of the first phase.
    pub(crate) speed_up: Option<f64>,
}

/// Something that happened.
#[derive(Debug, Serialize)]
struct Happened {
    seconds: f64,
    text: String,
}

/// The whole of it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) broker: String,
    pub(crate) topic: String,
    pub(crate) group: String,
    pub(crate) client: String,
    pub(crate) protocol: &'static str,
    pub(crate) partitions: u32,
    pub(crate) records: u32,
    pub(crate) keys: u32,
    pub(crate) cost_us: u64,
    pub(crate) seconds: f64,
    pub(crate) interrupted: bool,
    /// Whether several members worked on the partition in the same phase.
    pub(crate) divided: bool,
    pub(crate) phases: Vec<Measured>,
    pub(crate) verdict: Verdict,
    pub(crate) decisions: Vec<Decision>,
    events: Vec<Happened>,
}

/// The facts that do not come from the play.
pub(crate) struct Facts {
    pub(crate) broker: String,
    pub(crate) topic: String,
    pub(crate) group: String,
    pub(crate) protocol: &'static str,
    pub(crate) records: u32,
    pub(crate) keys: u32,
    pub(crate) cost_us: u64,
    pub(crate) interrupted: bool,
}

impl Report {
    pub(crate) fn new(facts: Facts, played: &Played, verdict: Verdict) -> Report {
        let phases = phases(played);
        Report {
            broker: facts.broker,
            topic: facts.topic,
            group: facts.group,
            client: format!("librdkafka {}", rdkafka::util::get_rdkafka_version().1),
            protocol: facts.protocol,
            partitions: 1,
            records: facts.records,
            keys: facts.keys,
            cost_us: facts.cost_us,
            seconds: played.seconds,
            interrupted: facts.interrupted,
            divided: phases.iter().any(|phase| phase.working > 1),
            phases,
            verdict,
            decisions: played.decisions.clone(),
            events: played
                .events
                .iter()
                .map(|event| Happened {
                    seconds: event.seconds,
                    text: event.text.clone(),
                })
                .collect(),
        }
    }

    /// The verdict for people.
    pub(crate) fn text(&self) -> String {
        let verdict = &self.verdict;
        let missing = match verdict.remaining {
            0 => format!("{} lost", grouped(verdict.lost)),
            remaining => format!("{} not yet when it was interrupted", grouped(remaining)),
        };
        let mut text = format!(
            "\ndelivered   {} of {} records, {missing}, {} delivered again\n",
            grouped(verdict.delivered),
            grouped(verdict.written),
            grouped(verdict.duplicated),
        );
        text.push_str(&format!(
            "key order   {} keys, {} out of order, {} with two members at the same time\n",
            grouped(verdict.keys),
            grouped(verdict.keys_out_of_order),
            grouped(verdict.keys_overlapping),
        ));
        for phase in self.phases.iter().filter(|phase| phase.measured_seconds > 0.0) {
            text.push_str(&line(phase));
        }
        text.push_str(&self.division());
        if verdict.unknown > 0 {
            text.push_str(&format!(
                "{} records came that nobody wrote\n",
                grouped(verdict.unknown)
            ));
        }
        for example in verdict.missing.iter().chain(&verdict.examples) {
            text.push_str(&format!("fault       {example}\n"));
        }
        text
    }

    /// Whether the partition was divided, honestly.
    fn division(&self) -> String {
        let most = self.phases.iter().max_by_key(|phase| phase.members);
        match (self.divided, most.and_then(|phase| phase.speed_up)) {
            (true, Some(speed_up)) => {
                let members = most.map_or(0, |phase| phase.members);
                format!(
                    "division    one partition, {members} members: {speed_up:.2} times as fast as one member\n"
                )
            }
            (true, None) => "division    several members worked on the one partition\n".to_owned(),
            (false, _) => {
                "division    no division seen: one member at a time worked, the others were idle\n".to_owned()
            }
        }
    }
}

fn line(phase: &Measured) -> String {
    let change = match (phase.change, phase.settled_ms) {
        ("join", Some(ms)) => format!("the new one worked after {ms:.0} ms"),
        ("join", None) => "the new one got nothing".to_owned(),
        (_, Some(ms)) => format!("one had left after {ms:.0} ms"),
        (_, None) => "one was told to leave and did not in time".to_owned(),
    };
    let speed_up = phase
        .speed_up
        .map_or(String::new(), |factor| format!(", {factor:.2} x"));
    let rate = grouped(phase.rate.round() as u64);
    let members = crate::output::plural(u64::from(phase.members), "member");
    format!("{members:<11} {rate} records/s{speed_up}; {change}\n")
}

fn phases(played: &Played) -> Vec<Measured> {
    let single = played
        .phases
        .first()
        .and_then(|phase| rate(&played.members, phase));
    let single = single.filter(|rate| *rate > 0.0);
    let measured = played.phases.iter().map(|phase| {
        let rate = rate(&played.members, phase);
        let (from, to) = (phase.settled_us.unwrap_or(0), phase.end_us.unwrap_or(0));
        let measured_us = if rate.is_some() { to - from } else { 0 };
        let worked =
            |member: &&super::member::Member| measured_us > 0 && member.journal.done_between(from, to) > 0;
        Measured {
            members: phase.step.members,
            change: match phase.step.change {
                Change::Join => "join",
                Change::Leave => "leave",
            },
            settled_ms: phase
                .settled_us
                .filter(|_| phase.in_time)
                .map(|at| (at - phase.begun_us) as f64 / 1e3),
            measured_seconds: measured_us as f64 / 1e6,
            rate: rate.unwrap_or(0.0),
            working: played.members.iter().filter(worked).count(),
            speed_up: rate.zip(single).map(|(rate, single)| rate / single),
        }
    });
    measured.collect()
}
