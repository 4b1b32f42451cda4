//! Topics in queue mode: where batches are stored, when queues go, and where their number comes to rest.
//!
//! Looked at in the journal, entry by entry: the counts of the moment decide about a batch, and what groups have read
//! decides about a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_core::cursor::Cursor;
use anabranch_core::group::state::Group;
use anabranch_core::ids::TopicId;
use anabranch_core::node::Node;
use anabranch_core::queues::{Decision, Kind, Queues as Counts};

use super::delivery::Delivery;
use super::ledger::Ledger;
use super::{Verdict, Violation, idempotence};
use crate::message::Tp;
use crate::record::RecordId;
use crate::sights::Sight;

/// The sentence about counts.
pub const COUNTS: &str =
    "the write queue count is at least 1, and at most the read queue count, and that at most the partitions";
/// The sentence about batches.
pub const STORED: &str = "a batch is stored in the partition that it was sent to, or, in queue mode, where the write queue count says";
/// The sentence about queues that go.
pub const READ: &str =
    "a queue goes only when every group that counts has been given what is in it, unless it is forced";
/// The sentence about rest.
pub const SETTLED: &str = "once its groups are calm, a topic in queue mode has a queue for each instance of the largest one, and each instance one";

/// What is remembered of topics in queue mode.
#[derive(Debug, Default)]
pub struct Queues {
    /// Topics that are or were in it.
    ever: BTreeSet<TopicId>,
    /// Where each of their records is: in several places, if it was sent several times.
    places: BTreeMap<RecordId, Vec<(Tp, i64)>>,
    /// Of each session, by the partition that it addressed: the ordinal of its next record.
    next: BTreeMap<(u64, i32), u64>,
}

impl Queues {
    /// Whether a topic is or was in queue mode.
    pub fn was_queued(&self, topic: TopicId) -> bool {
        self.ever.contains(&topic)
    }

    /// Where a record of such a topic is, as far as it is durable.
    pub fn places(&self, id: RecordId) -> &[(Tp, i64)] {
        self.places.get(&id).map_or(&[], Vec::as_slice)
    }

    /// A batch is durable, from this offset on; `node` is the state by which it was stored. Of topics that were never in
    /// queue mode others look after the records.
    pub fn stored(
        &mut self,
        node: &Node,
        ledger: &Ledger,
        (tp, base_offset): (Tp, i64),
        ids: &[RecordId],
    ) -> Verdict {
        if !self.was_queued(tp.0) {
            return Ok(());
        }
        let counts = node.state().queues().get(&tp.0);
        for (offset, id) in (base_offset..).zip(ids) {
            self.places.entry(*id).or_default().push((tp, offset));
            let Some(sent) = ledger.get(*id) else { continue };
            let to = u32::try_from(sent.partition).unwrap_or(u32::MAX);
            let home = counts.map_or(to, |counts| counts.home(to));
            if i32::try_from(home) != Ok(tp.1) {
                let detail =
                    format!("record {id} was sent to {to} and is in {tp:?}; the counts are {counts:?}");
                return Err(Violation::new(STORED, detail));
            }
            if !sent.idempotent {
                continue;
            }
            // A topic that is made anew is another one, and its producers have other sessions.
            let next = self.next.entry((sent.session, sent.partition)).or_default();
            if sent.ordinal != *next {
                let detail = format!(
                    "record {id} in {tp:?} is the {}th of session {} to partition {}; the {next}th should come",
                    sent.ordinal, sent.session, sent.partition
                );
                return Err(Violation::new(idempotence::SENTENCE, detail));
            }
            *next += 1;
        }
        Ok(())
    }

    /// A decision about the queues of a topic is durable and made; `before` are the counts before it.
    pub fn decided(
        &mut self,
        node: &Node,
        topic: TopicId,
        before: Option<&Counts>,
        decision: &Decision,
        delivery: &Delivery,
        sights: &mut Vec<Sight>,
    ) -> Verdict {
        self.ever.insert(topic);
        sights.extend(seen(decision));
        let (Some(found), Some(after)) = (node.topic_by_id(topic), node.state().queues().get(&topic)) else {
            return Ok(());
        };
        let facade = u32::try_from(found.partitions()).unwrap_or(0);
        if after.write < 1 || after.write > after.read || after.read > facade {
            return Err(Violation::new(
                COUNTS,
                format!("{topic:?} of {facade} partitions: {after:?}"),
            ));
        }
        let is_forced = matches!(decision.why, anabranch_core::queues::Why::Forced(_));
        match before {
            Some(before) if after.read < before.read && !is_forced => {
                all_read(node, topic, after.read..before.read, delivery)
            }
            _ => Ok(()),
        }
    }
}

/// Every group with members that read the topic has been given everything in these queues, and has committed that.
fn all_read(node: &Node, topic: TopicId, ids: Range<u32>, delivery: &Delivery) -> Verdict {
    let name = node.topic_by_id(topic).map_or("", |topic| topic.name.as_str());
    let readers = node.groups().groups().iter();
    let readers = readers.filter(|(_, group)| instances(group, name) > 0);
    for (id, group) in readers {
        for partition in ids.clone().filter_map(|id| i32::try_from(id).ok()) {
            let log = node.topic_by_id(topic).and_then(|topic| topic.log(partition));
            let Some(log) = log.and_then(|log| node.log(log)) else {
                continue;
            };
            let (start, end) = (log.decided_start(), log.next_offset());
            let key = (id.clone(), (topic, partition));
            // Of a cursor that is still divided, what is durable says less than what the broker knows.
            let committed = match group.cursors.get(&key.1) {
                Some(Cursor::Plain(plain)) => plain.offset,
                Some(Cursor::Divided(_)) => end,
                None => start,
            };
            let given = delivery.gap(&key, start, end);
            if committed.max(start) < end || given.is_some() {
                let detail = format!(
                    "queue {partition} of {name} goes: it has {start} to {end}, group {id} has committed {committed:?}, and was not given {given:?}"
                );
                return Err(Violation::new(READ, detail));
            }
        }
    }
    Ok(())
}

/// How many members of a group read a topic.
fn instances(group: &Group, topic: &str) -> usize {
    let members = group
        .consumer()
        .into_iter()
        .flat_map(|group| group.members.values());
    members
        .filter(|state| state.member.topics.contains(topic))
        .count()
}

/// Whether the queues of a topic, and who holds them, are as they should be now that nothing happens any more; if not, why.
/// `bounds` are the least and the most queues.
pub fn unsettled(node: &Node, topic: TopicId, bounds: (u32, u32)) -> Option<String> {
    let found = node.topic_by_id(topic)?;
    let counts = node.state().queues().get(&topic)?;
    let facade = u32::try_from(found.partitions()).unwrap_or(0);
    let sizes = node
        .groups()
        .groups()
        .iter()
        .map(|(id, group)| (instances(group, &found.name), id));
    let (size, largest) = sizes.max()?;
    let wanted = counts
        .wish
        .unwrap_or_else(|| u32::try_from(size).unwrap_or(u32::MAX));
    let target = wanted.max(bounds.0).min(bounds.1).min(facade).max(1);
    if size > 0 && (counts.write, counts.read) != (target, target) {
        return Some(format!(
            "{} has {counts:?}, and {target} queues are wanted",
            found.name
        ));
    }
    let group = node.groups().groups().get(largest)?.consumer()?;
    if usize::try_from(target) != Ok(size) || counts.wish.is_some() {
        return None;
    }
    let read = i32::try_from(target).unwrap_or(i32::MAX);
    let uneven = group.members.iter().find(|(_, state)| {
        let held = state.current.assigned.get(&topic);
        held.map_or(0, |held| {
            held.keys().filter(|partition| **partition < read).count()
        }) != 1
    });
    let (member, state) = uneven?;
    let held = state.current.assigned.get(&topic);
    Some(format!(
        "{member} of {largest} holds {held:?} of {}, which has {target} queues",
        found.name
    ))
}

fn seen(decision: &Decision) -> Option<Sight> {
    match decision.kind {
        Kind::ReadUp => Some(Sight::QueuesReadAhead),
        Kind::WriteUp => Some(Sight::QueuesWritten),
        Kind::WriteDown => Some(Sight::QueuesDraining),
        Kind::ReadDown => Some(Sight::QueuesGone),
        Kind::Postpone => Some(Sight::QueuesPostponed),
        Kind::Turn => Some(Sight::QueuesTurned),
        Kind::Start | Kind::Wish | Kind::End => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::ids::Now;
    use anabranch_core::node::Options;

    #[test]
    fn a_batch_that_is_stored_elsewhere_or_comes_twice_is_noticed() {
        let options = Options {
            node_id: 1,
            cluster_id: "c".to_owned(),
            configs: BTreeMap::new(),
            started: Now::default(),
        };
        let node = Node::new(options).unwrap();
        let (mut ledger, mut oracle) = (Ledger::default(), Queues::default());
        let ids: Vec<RecordId> = (0..2).map(|n| ledger.sample(7, n)).collect();
        let here = (TopicId([1; 16]), 0);
        oracle.ever.insert(here.0);
        let mut stored = |tp, offset, ids| oracle.stored(&node, &ledger, (tp, offset), ids);
        stored(here, 0, &ids[..1]).unwrap();
        assert!(stored((here.0, 1), 0, &ids[1..]).is_err(), "elsewhere");
        assert!(stored(here, 1, &ids[..1]).is_err(), "twice");
        stored(here, 1, &ids[1..]).unwrap();
        assert_eq!(oracle.places(ids[0]), [(here, 0), (here, 1)]);
    }
}
