//! Decisions as documents of the administration API.

use anabranch_core::elastic::{self, Change, Entry};
use anabranch_core::queues;

use super::model::{Decision, Decisions, Move, Verdict};
use super::view::runs;
use crate::broker::{Broker, Core};

/// A decision where the core keeps it.
enum Kept<'a> {
    /// Of a group: its id, the number in its log, and how often it was said again since.
    Group(&'a str, u64, &'a Entry, u64),
    /// Of the queues of a topic, with its name.
    Queues(&'a str, u64, &'a queues::Decision),
}

impl Kept<'_> {
    fn seq(&self) -> u64 {
        match self {
            Self::Group(_, number, Entry::Decided(decision), _) => seq(decision.at_ms, *number),
            Self::Group(_, number, Entry::Refused { refusal, .. }, _) => seq(refusal.at_ms, *number),
            Self::Queues(_, number, decision) => seq(decision.at_ms, *number),
        }
    }

    fn to_document(&self, core: &Core) -> Decision {
        match self {
            Self::Group(id, number, Entry::Decided(decision), _) => {
                let settled = core.node().groups().settled(id, *number);
                Decision {
                    result: settled.map(|settled| settled.ended.code().to_owned()),
                    handover_ms: settled.map(|settled| settled.handover_ms),
                    ..decided(id, *number, decision)
                }
            }
            Self::Group(id, number, Entry::Refused { refusal, times, .. }, again) => {
                refused(id, *number, refusal, times.saturating_add(*again))
            }
            Self::Queues(topic, number, decision) => queue_decision(topic, *number, decision),
        }
    }
}

/// What was decided about the queues of a topic.
pub(super) fn of_queues(core: &Core, topic: &str) -> Vec<Decision> {
    let all = kept_of_queues(core).filter(|kept| matches!(kept, Kept::Queues(name, ..) if *name == topic));
    all.map(|kept| kept.to_document(core)).collect()
}

fn kept_of_queues(core: &Core) -> impl Iterator<Item = Kept<'_>> {
    let state = core.node().state();
    let named = state.queue_logs().iter().filter_map(move |(id, log)| {
        let name = state.topic_by_id(*id)?.name.as_str();
        Some((name, log))
    });
    named.flat_map(|(name, log)| {
        let entries = log.entries();
        entries.map(move |(number, decision)| Kept::Queues(name, number, decision))
    })
}

/// The decisions behind `after`, of one group or of all, in the order of time. Only those that are answered are made into
/// documents: the logs of many groups have a hundred thousand.
pub(super) fn list(broker: &Broker, group: Option<&str>, after: Option<u64>, limit: usize) -> Decisions {
    let decisions: Vec<Decision> = broker.with(|core| {
        let core = &*core;
        let groups = core.node().groups();
        let wanted = groups
            .groups_with_decisions()
            .filter(|id| group.is_none_or(|group| group == *id));
        let of_groups = wanted.flat_map(|id| {
            let entries = groups.decisions_of(id);
            entries.map(move |(number, entry, again)| Kept::Group(id, number, entry, again))
        });
        let of_queues = kept_of_queues(core).filter(|kept| match kept {
            Kept::Queues(_, _, decision) => {
                group.is_none_or(|group| group == decision.why.group().unwrap_or_default())
            }
            Kept::Group(..) => true,
        });
        let numbered = of_groups.chain(of_queues).map(|kept| (kept.seq(), kept));
        let mut found: Vec<(u64, Kept<'_>)> = numbered
            .filter(|(seq, _)| after.is_none_or(|after| *seq > after))
            .collect();
        found.sort_by_key(|(seq, _)| *seq);
        // Without a place to go on from, the newest are wanted; else those that follow it.
        let extra = found.len().saturating_sub(limit);
        match after {
            None => drop(found.drain(..extra)),
            Some(_) => found.truncate(limit),
        }
        found.iter().map(|(_, kept)| kept.to_document(core)).collect()
    });
    let next = decisions.last().map(|decision| decision.seq).or(after);
    Decisions {
        decisions,
        next: Some(next.unwrap_or(0)),
    }
}

/// A decision about the queues of a topic as a document.
fn queue_decision(topic: &str, number: u64, decision: &queues::Decision) -> Decision {
    let counts = |(write, read): (u32, u32)| {
        vec![
            ("write".to_owned(), u64::from(write)),
            ("read".to_owned(), u64::from(read)),
        ]
    };
    Decision {
        seq: seq(decision.at_ms, number),
        time_ms: decision.at_ms,
        group: decision.why.group().unwrap_or_default().to_owned(),
        topic: topic.to_owned(),
        partition: -1,
        kind: decision.kind.code().to_owned(),
        outcome: Verdict::Decided,
        reason: decision.why.code().to_owned(),
        text: decision.sentence(),
        from: None,
        to: Vec::new(),
        slots: 0,
        moves: Vec::new(),
        before: counts(decision.before),
        after: counts(decision.after),
        result: None,
        handover_ms: None,
        count: 1,
    }
}

/// Rises with time over all groups: the time, and the number within the group's log.
fn seq(at_ms: i64, number: u64) -> u64 {
    u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000) + number % 1_000
}

/// A decision as a document.
pub(super) fn decided(group: &str, number: u64, decision: &elastic::Decision) -> Decision {
    let change: &Change = &decision.change;
    let place = change.moves.first().map(|one| &one.of);
    let mut to: Vec<String> = change.moves.iter().map(|one| one.to.clone()).collect();
    to.sort_unstable();
    to.dedup();
    let moved = change
        .moves
        .iter()
        .filter(|one| one.from.as_ref() != Some(&one.to));
    let before = change
        .shares
        .iter()
        .map(|share| (share.member.clone(), share.before));
    let after = change
        .shares
        .iter()
        .map(|share| (share.member.clone(), share.after));
    Decision {
        seq: seq(decision.at_ms, number),
        time_ms: decision.at_ms,
        group: group.to_owned(),
        topic: place.map_or_else(String::new, |place| place.name.clone()),
        partition: place.map_or(-1, |place| place.partition),
        kind: change.kind.code().to_owned(),
        outcome: Verdict::Decided,
        reason: change.why.code().to_owned(),
        text: decision.sentence(),
        from: change.moves.iter().find_map(|one| one.from.clone()),
        to,
        slots: moved.map(|one| one.slots.len() as u32).sum(),
        moves: change.moves.iter().map(one_move).collect(),
        before: before.collect(),
        after: after.collect(),
        result: None,
        handover_ms: None,
        count: 1,
    }
}

fn one_move(one: &elastic::Move) -> Move {
    Move {
        topic: one.of.name.clone(),
        partition: one.of.partition,
        from: one.from.clone(),
        to: one.to.clone(),
        slot_runs: runs(&one.slots),
    }
}

/// A refusal as a document.
pub(super) fn refused(group: &str, number: u64, refusal: &elastic::Refusal, times: u64) -> Decision {
    let place = refusal.about.as_ref();
    Decision {
        seq: seq(refusal.at_ms, number),
        time_ms: refusal.at_ms,
        group: group.to_owned(),
        topic: place.map_or_else(String::new, |(place, _)| place.name.clone()),
        partition: place.map_or(-1, |(place, _)| place.partition),
        kind: "none".to_owned(),
        outcome: Verdict::Refused,
        reason: refusal.why_not.code().to_owned(),
        text: refusal.sentence(),
        from: place.map(|(_, owner)| owner.clone()),
        to: Vec::new(),
        slots: 0,
        moves: Vec::new(),
        before: Vec::new(),
        after: Vec::new(),
        result: None,
        handover_ms: None,
        count: times,
    }
}
