//! The groups' side of queue mode ([`crate::queues`]): who reads a topic, what is unread of it, which ids a group gets.
//!
//! A group gets the ids below the read queue count, and of those above it the ones in which it has something to read: what
//! is retained there, if it came later than the queue went.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::coordinator::{Coordinator, Effects, Step};
use super::protocol::Subscription;
use super::state::{Generation, Group, Kind};
use super::topics::Topics;
use crate::cursor::Cursor;
use crate::elastic::Mode;
use crate::ids::{Now, TopicId};
use crate::queues::Blocked;

/// A group with members that read a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReader {
    /// How many of its members do.
    pub instances: u32,
    /// Whether the queues follow the group, if it is the largest; not if `elastic.mode` of the group is off.
    pub counts: bool,
}

/// The groups with members that read some topics, by topic and group id.
pub type QueueReaders = BTreeMap<TopicId, BTreeMap<String, QueueReader>>;

impl Coordinator {
    /// Who reads these topics. Every member counts, wherever it is.
    pub fn queue_readers<'a>(
        &mut self,
        topics: &dyn Topics,
        of: impl Iterator<Item = &'a TopicId>,
    ) -> QueueReaders {
        let mut readers: QueueReaders = of.map(|id| (*id, BTreeMap::new())).collect();
        for (id, group) in &self.groups {
            let mut counted: BTreeMap<TopicId, u32> = BTreeMap::new();
            match &group.kind {
                Kind::Simple => continue,
                Kind::Consumer(consumer) => {
                    for state in consumer.members.values() {
                        for topic in self.regexes.resolve(&state.member, topics, &self.settings) {
                            *counted.entry(topic).or_default() += 1;
                        }
                    }
                }
                Kind::Classic(generation) => count_led(topics, generation, &mut counted),
            }
            for (topic, instances) in counted {
                if let Some(readers) = readers.get_mut(&topic) {
                    let counts = topics.elastic_mode(id, topic) == Mode::Queues;
                    readers.insert(id.clone(), QueueReader { instances, counts });
                }
            }
        }
        readers
    }

    /// The first of some queues in which a group has something to read: one with members, or one that has committed
    /// something of the topic since `oldest_ms`, wall clock.
    pub fn unread_queue(
        &self,
        topics: &dyn Topics,
        topic: TopicId,
        ids: Range<u32>,
        readers: &BTreeMap<String, QueueReader>,
        oldest_ms: i64,
    ) -> Option<Blocked> {
        let is_young = |(id, group): &(&String, &Group)| {
            readers.contains_key(*id) || newest_commit_ms(group, topic).is_some_and(|at_ms| at_ms > oldest_ms)
        };
        let groups: Vec<&String> = self.groups.iter().filter(is_young).map(|(id, _)| id).collect();
        ids.into_iter().find_map(|queue| {
            let key = (topic, i32::try_from(queue).ok()?);
            let unread = |group: &&String| (self.unread(topics, group, key), (*group).clone());
            let (unread, group) = groups.iter().map(unread).find(|(unread, _)| *unread > 0)?;
            Some(Blocked { group, queue, unread })
        })
    }

    /// Records of a partition that a group has not read: those from its lowest position on, durable or not. All of them if
    /// it has committed nothing.
    pub fn unread(&self, topics: &dyn Topics, group: &str, key: (TopicId, i32)) -> u64 {
        let start = topics.log_start(key.0, key.1);
        let from = self.committed(group, key).unwrap_or(start).max(start);
        u64::try_from(topics.next_offset(key.0, key.1).saturating_sub(from)).unwrap_or(0)
    }

    /// The partitions of a topic that nobody of a group is to be given.
    pub(super) fn closed_queues(&self, topics: &dyn Topics, group: &str, topic: TopicId) -> BTreeSet<i32> {
        let (Some(read), Some(found)) = (topics.read_queues(topic), topics.by_id(topic)) else {
            return BTreeSet::new();
        };
        let is_read = |partition: &i32| self.unread(topics, group, (topic, *partition)) == 0;
        (read..found.partitions).filter(is_read).collect()
    }

    /// Groups that were given something above the read queue count give it back when it is read, and what was shared while a
    /// topic was not in queue mode is a queue like the others when it is not shared any more. To be called now and then.
    pub fn recheck_queues(&mut self, now: Now, topics: &dyn Topics) -> Effects {
        let mut step = Step::new(now, topics);
        let has_queues = |group: &Group| {
            let members = group
                .consumer()
                .into_iter()
                .flat_map(|group| group.members.values());
            let mut targets = members.flat_map(|state| state.target.keys());
            targets.any(|topic| topics.read_queues(*topic).is_some())
        };
        let groups = self.groups.iter().filter(|(_, group)| has_queues(group));
        let groups: Vec<String> = groups.map(|(id, _)| id.clone()).collect();
        for group in groups {
            self.replan_if_topics_differ(&mut step, &group);
        }
        step.effects
    }
}

/// Members of a group that a client leads, as far as they are consumers.
fn count_led(topics: &dyn Topics, generation: &Generation, counted: &mut BTreeMap<TopicId, u32>) {
    if generation.protocol_type != super::doors::CONSUMER {
        return;
    }
    for seat in generation.members.values() {
        let Some((_, metadata)) = seat.protocols.first() else {
            continue;
        };
        let Ok(subscription) = Subscription::parse(metadata) else {
            continue;
        };
        let names: BTreeSet<String> = subscription.topics.into_iter().collect();
        for topic in names.iter().filter_map(|name| topics.by_name(name)) {
            *counted.entry(topic.id).or_default() += 1;
        }
    }
}

/// When a group last committed something of a topic, wall clock, milliseconds.
fn newest_commit_ms(group: &Group, topic: TopicId) -> Option<i64> {
    let of_topic = group.cursors.range((topic, i32::MIN)..=(topic, i32::MAX));
    of_topic.map(|(_, cursor)| commit_ms(cursor)).max()
}

fn commit_ms(cursor: &Cursor) -> i64 {
    cursor.outside_view(None).commit_ms
}
