//! Recovery is a function of the journal: what comes back after a restart is exactly what the entries that survived
//! lead to, and every acknowledged entry is among them.
//!
//! A second state, the *shadow*, takes every entry as it becomes durable, through the replay path, and never sees a
//! snapshot or a disk. After a restart the broker's state must be equal to it, byte for byte.

use std::collections::VecDeque;

use anabranch_core::group::{Coordinator, GroupChange, Notice};
use anabranch_core::ids::LogId;
use anabranch_core::log::BatchFacts;
use anabranch_core::meta::Command;
use anabranch_core::node::Node;
use bytes::Bytes;

use super::epochs::Epochs;
use super::ownership::Ownership;
use super::truth::Truth;
use super::watch::Watch;
use super::{BYTES, Verdict, Violation};
use crate::message::Tp;

/// The sentence.
pub const SENTENCE: &str = "the state after a restart is what the surviving entries of the journal lead to";
/// The sentence about entries.
pub const SURVIVES: &str = "an entry that was reported as committed survives every crash";

/// What the broker says when it ends a division elsewhere than where it is exact.
const RESETS: [&str; 2] = ["undivided: ", "its offset was set to"];

/// An entry of the journal.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A change of the state, as bytes.
    State(Vec<u8>),
    /// A batch: its log, the offset of its first record, what its header says, and the whole of it.
    Batch(LogId, i64, BatchFacts, Bytes),
}

/// The shadow.
#[derive(Debug)]
pub struct Replay {
    node: Node,
    upto: u64,
    /// Entries that are not durable so far, as far as anybody knows.
    waiting: VecDeque<(u64, Entry)>,
    truth: Truth,
    /// Named resets of divided cursors: the group, and the entry by which each is made.
    resets: VecDeque<(u64, String)>,
}

impl Replay {
    /// The shadow of an empty folder.
    pub fn new(node: Node) -> Self {
        Self {
            node,
            upto: 0,
            waiting: VecDeque::new(),
            truth: Truth::default(),
            resets: VecDeque::new(),
        }
    }

    /// The broker has told its operator something that is so by entry `lsn`.
    pub fn noticed(&mut self, lsn: u64, notice: &Notice) {
        if RESETS.iter().any(|words| notice.text.contains(words)) {
            self.resets.push_back((lsn, notice.group.clone()));
        }
    }

    /// What the logs hold.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// An entry is queued.
    pub fn appended(&mut self, lsn: u64, entry: Entry) {
        self.waiting.push_back((lsn, entry));
    }

    /// Everything up to here is durable.
    pub fn committed(&mut self, upto: u64, watch: &mut Watch<'_>) -> Verdict {
        while self.waiting.front().is_some_and(|(lsn, _)| *lsn <= upto) {
            if let Some((lsn, entry)) = self.waiting.pop_front() {
                self.apply(lsn, &entry, watch)?;
            }
        }
        self.upto = self.upto.max(upto);
        Ok(())
    }

    /// The last durable entry.
    pub fn upto(&self) -> u64 {
        self.upto
    }

    /// How many entries are queued.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A restart found entries up to here.
    pub fn recovered(&mut self, last: u64, watch: &mut Watch<'_>) -> Verdict {
        if last < self.upto {
            let detail = format!(
                "entry {} was committed, after the restart the log ends at {last}",
                self.upto
            );
            return Err(Violation::new(SURVIVES, detail));
        }
        self.committed(last, watch)?;
        self.waiting.clear();
        self.resets.clear();
        Ok(())
    }

    /// The broker's state, with everything up to the last durable entry and nothing else, must be the shadow's.
    pub fn compare(&self, node: &Node) -> Verdict {
        let (found, expected) = (node.groups().groups(), self.node.groups().groups());
        // What a snapshot leaves out would be missing from both: state and groups are compared as they are, too.
        if node.snapshot() == self.node.snapshot() && node.state() == self.node.state() && found == expected {
            return Ok(());
        }
        let what = if node.state() != self.node.state() {
            format!(
                "the state is {:?} instead of {:?}",
                node.state(),
                self.node.state()
            )
        } else if found != expected {
            let differs = found.iter().find(|(id, group)| expected.get(*id) != Some(*group));
            format!(
                "the groups are {:?} instead of {:?}; first {differs:?}",
                found.keys(),
                expected.keys()
            )
        } else {
            let differs = |(a, b): &(_, _)| format!("{a:?}") != format!("{b:?}");
            format!("a log is {:?}", node.logs().zip(self.node.logs()).find(differs))
        };
        Err(Violation::new(
            SENTENCE,
            format!("at entry {}: {what}", self.upto),
        ))
    }

    /// The durable groups.
    pub fn groups(&self) -> &Coordinator {
        self.node.groups()
    }

    /// Whether a group shares a partition, durably.
    pub fn is_shared(&self, group: &str, tp: Tp) -> bool {
        let found = self
            .groups()
            .groups()
            .get(group)
            .and_then(|group| group.consumer());
        found.is_some_and(|consumer| consumer.shared.contains_key(&tp))
    }

    /// Whether somebody is a member of a group, durably.
    pub fn is_member(&self, group: &str, member: &str) -> bool {
        let found = self
            .groups()
            .groups()
            .get(group)
            .and_then(|group| group.consumer());
        found.is_some_and(|consumer| consumer.members.contains_key(member))
    }

    /// The durable state.
    pub fn node(&self) -> &Node {
        &self.node
    }

    fn apply(&mut self, lsn: u64, entry: &Entry, watch: &mut Watch<'_>) -> Verdict {
        let command = match entry {
            Entry::State(bytes) => Command::decode(bytes).ok(),
            Entry::Batch(..) => None,
        };
        let counts = match &command {
            Some(Command::SetQueues { id, .. }) => self.node.state().queues().get(id).cloned(),
            _ => None,
        };
        let done = match entry {
            Entry::Batch(log, base_offset, facts, batch) => {
                let found = self.node.log(*log);
                if let Some(tp) = found.map(|log| (log.topic(), log.partition())) {
                    let ids = watch.batches.records_of(batch);
                    let ids = ids.map_err(|error| Violation::new(BYTES, format!("{tp:?}: {error}")))?;
                    watch
                        .queues
                        .stored(&self.node, watch.ledger, (tp, *base_offset), &ids)?;
                    self.truth.add(tp, *base_offset, &ids);
                }
                self.node.replay_batch(*log, *base_offset, facts)
            }
            Entry::State(bytes) => self.node.replay_state(bytes).map(drop),
        };
        if let Err(error) = done {
            return Err(Violation::new(
                SENTENCE,
                format!("entry {lsn} cannot be replayed: {error}"),
            ));
        }
        if let Some(Command::SetQueues { id, decision, .. }) = &command {
            let (delivery, before) = (watch.delivery, counts.as_ref());
            watch
                .queues
                .decided(&self.node, *id, before, decision, delivery, watch.sights)?;
        }
        if let Some(Command::Group(change)) = command {
            let before = self.resets.partition_point(|(reset, _)| *reset < lsn);
            self.resets.drain(..before);
            let is_reset = self.resets.iter().any(|(_, group)| group == change.group());
            watch.changed(&self.node, &self.truth, &change, is_reset)?;
            return self.check_group(&change, watch.epochs);
        }
        Ok(())
    }

    /// Checks after each single change, since a crash may come after any.
    fn check_group(&self, change: &GroupChange, epochs: &mut Epochs) -> Verdict {
        let group = change.group();
        let Some(found) = self.groups().groups().get(group) else {
            epochs.group_gone(group);
            return Ok(());
        };
        let Some(consumer) = found.consumer() else {
            return Ok(());
        };
        epochs.group(group, consumer.epoch)?;
        match change {
            GroupChange::Current { .. } => {
                Ownership::durable(group, consumer, |topic| self.node.topic_by_id(topic).is_some())
            }
            _ => Ok(()),
        }
    }
}
