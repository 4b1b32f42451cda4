//! The coordinator's view of the topics, so that it depends on nobody who keeps them.

use crate::elastic::{CommitEvidence, ElasticSettings, GroupElasticSettings, Mode};
use crate::ids::{Offset, TopicId};

/// One topic, as the coordinator needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicView<'a> {
    /// Identity; a topic that is deleted and made again has another one.
    pub id: TopicId,
    /// Name.
    pub name: &'a str,
    /// Partition count, at least 1; partitions are numbered from 0.
    pub partitions: i32,
}

/// Whoever keeps the topics implements this for the coordinator.
pub trait Topics {
    /// The topic of that name, if it exists.
    fn by_name(&self, name: &str) -> Option<TopicView<'_>>;
    /// The topic of that id, if it exists.
    fn by_id(&self, id: TopicId) -> Option<TopicView<'_>>;
    /// Visits every topic, in the order of names.
    fn each(&self, visit: &mut dyn FnMut(TopicView<'_>));
    /// The first offset of a partition's log that readers may not see yet (its high watermark); 0 if there is no
    /// such partition.
    fn log_end(&self, topic: TopicId, partition: i32) -> Offset;
    /// The first offset of a partition's log that exists; 0 if there is no such partition.
    fn log_start(&self, topic: TopicId, partition: i32) -> Offset;
    /// The offset that the next record of a partition gets, whether the records before it are durable or not; 0 if there is
    /// no such partition.
    fn next_offset(&self, topic: TopicId, partition: i32) -> Offset;
    /// The read queue count of a topic in queue mode: partitions from it on are given to nobody who has read them.
    fn read_queues(&self, topic: TopicId) -> Option<i32>;
    /// Whether and how a group divides a topic: [`ElasticSettings::mode`] of it, at the cost of one key.
    fn elastic_mode(&self, group: &str, topic: TopicId) -> Mode;
    /// What a commit proves: [`ElasticSettings::evidence`] of it, at the cost of one key.
    fn commit_evidence(&self, group: &str, topic: TopicId) -> CommitEvidence;
    /// All that a topic goes by when a group divides it.
    fn elastic(&self, group: &str, topic: TopicId) -> ElasticSettings;
    /// What a group as a whole goes by.
    fn elastic_group(&self, group: &str) -> GroupElasticSettings;
    /// Why a topic must not be divided whatever the settings, as text for people.
    fn excluded_from_division(&self, topic: TopicId) -> Option<String>;
}
