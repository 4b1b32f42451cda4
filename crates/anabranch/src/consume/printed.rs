//! How far the records of each partition have been printed, for commits, and which partitions are at their end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use super::unreadable::Refused;
use crate::client::{FetchRefusal, Watch};

/// The consumer's context: shared with librdkafka, which reports rebalances and errors to it.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    topic: String,
    progress: Mutex<Progress>,
    watch: Watch,
}

#[derive(Debug, Default)]
struct Progress {
    /// The offset behind the last record that was written to the output's buffer.
    printed: BTreeMap<i32, i64>,
    /// The same for what has left the buffer: only that may be committed.
    flushed: BTreeMap<i32, i64>,
    committed: BTreeMap<i32, i64>,
    /// The partitions of a member of a group; `None` before the first assignment.
    assigned: Option<BTreeSet<i32>>,
    at_end: BTreeSet<i32>,
    /// Partitions whose last Fetch was refused.
    refused: BTreeMap<i32, Refused>,
}

impl Printed {
    pub(crate) fn new(topic: &str) -> Printed {
        Printed {
            topic: topic.to_owned(),
            ..Printed::default()
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A record before `next` was printed.
    pub(crate) fn printed(&self, partition: i32, next: i64) {
        let mut progress = self.progress();
        progress.printed.insert(partition, next);
        progress.at_end.remove(&partition);
        progress.refused.remove(&partition);
    }

    /// Everything printed has left the buffer.
    pub(crate) fn flushed(&self) {
        let mut progress = self.progress();
        progress.flushed = progress.printed.clone();
    }

    /// The partition has no more records for now.
    pub(crate) fn at_end(&self, partition: i32) {
        let mut progress = self.progress();
        progress.at_end.insert(partition);
        progress.refused.remove(&partition);
    }

    /// Partitions that the broker refuses to read for a while already.
    pub(super) fn refused(&self) -> Vec<(i32, Refused)> {
        let progress = self.progress();
        let lasting = progress.refused.iter().filter(|(_, one)| one.is_lasting());
        lasting
            .map(|(partition, one)| (*partition, one.clone()))
            .collect()
    }

    /// How many partitions a member of a group has.
    pub(super) fn assigned_count(&self) -> usize {
        self.progress().assigned.as_ref().map_or(0, BTreeSet::len)
    }

    /// Whether all partitions of a member of a group are at their end.
    pub(crate) fn all_at_end(&self) -> bool {
        let progress = self.progress();
        progress
            .assigned
            .as_ref()
            .is_some_and(|assigned| assigned.is_subset(&progress.at_end))
    }

    /// The offsets that have been printed and not yet committed; from now on they count as committed.
    pub(crate) fn to_commit(&self, topic: &str) -> TopicPartitionList {
        let mut progress = self.progress();
        let mut list = TopicPartitionList::new();
        for (partition, next) in &progress.flushed {
            if progress.committed.get(partition) != Some(next) {
                // Only an offset that is no offset is refused, and these come from records.
                let _ = list.add_partition_offset(topic, *partition, Offset::Offset(*next));
            }
        }
        progress.committed = progress.flushed.clone();
        list
    }

    /// What went wrong with the connection last.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.watch.last_error()
    }
}

impl ClientContext for Printed {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        if let Some(refusal) = FetchRefusal::parse(facility, message) {
            let mut progress = self.progress();
            let partition = refusal.partition;
            let refused = Refused::after(progress.refused.get(&partition), refusal);
            progress.refused.insert(partition, refused);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
    }
}

impl ConsumerContext for Printed {
    /// Commits before partitions go to another member, so that it does not print the same records again.
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(partitions) = rebalance {
            let offsets = self.to_commit(&self.topic);
            if offsets.count() > 0 {
                // A member that was expelled cannot commit; the records then come again, which is the promise.
                let _ = consumer.commit(&offsets, CommitMode::Sync);
            }
            let mut progress = self.progress();
            for one in partitions.elements() {
                progress.forget(one.partition());
            }
        }
    }

    fn post_rebalance(&self, _consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance {
            let mut progress = self.progress();
            let assigned = progress.assigned.get_or_insert_with(BTreeSet::new);
            assigned.extend(
                partitions
                    .elements()
                    .iter()
                    .map(rdkafka::topic_partition_list::TopicPartitionListElem::partition),
            );
        }
    }
}

impl Progress {
    fn forget(&mut self, partition: i32) {
        self.printed.remove(&partition);
        self.flushed.remove(&partition);
        self.committed.remove(&partition);
        self.at_end.remove(&partition);
        self.refused.remove(&partition);
        if let Some(assigned) = &mut self.assigned {
            assigned.remove(&partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(list: &TopicPartitionList) -> Vec<(i32, Option<i64>)> {
        list.elements()
            .iter()
            .map(|one| (one.partition(), one.offset().to_raw()))
            .collect()
    }

    #[test]
    fn only_what_has_left_the_buffer_is_committed_and_only_once() {
        let printed = Printed::new("t");
        printed.printed(0, 5);
        assert_eq!(offsets(&printed.to_commit("t")), []);
        printed.flushed();
        printed.printed(0, 6);
        assert_eq!(offsets(&printed.to_commit("t")), [(0, Some(5))]);
        assert_eq!(offsets(&printed.to_commit("t")), []);
        printed.printed(1, 1);
        printed.flushed();
        assert_eq!(offsets(&printed.to_commit("t")), [(0, Some(6)), (1, Some(1))]);
    }

    #[test]
    fn a_member_is_at_the_end_when_all_its_partitions_are() {
        let printed = Printed::new("t");
        printed.at_end(0);
        assert!(!printed.all_at_end(), "nothing is assigned yet");
        printed.progress().assigned = Some(BTreeSet::from([0, 1]));
        assert!(!printed.all_at_end());
        printed.at_end(1);
        assert!(printed.all_at_end());
        printed.printed(1, 9);
        assert!(!printed.all_at_end(), "a record has come since");
        printed.progress().forget(1);
        assert!(printed.all_at_end());
    }
}
