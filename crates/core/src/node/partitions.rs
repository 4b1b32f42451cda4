//! What the coordinator of groups sees of topics and logs.

use std::collections::BTreeMap;

use crate::config::{Layers, Values};
use crate::elastic::{CommitEvidence, ElasticKeys, ElasticSettings, GroupElasticSettings, Mode};
use crate::group::{TopicView, Topics};
use crate::ids::{LogId, Offset, TopicId};
use crate::log::Log;
use crate::meta::{State, Topic};

/// What is set of a topic or a group of which nothing is set.
static NONE: Values = Values::new();

/// The topics with the bounds of their logs.
#[derive(Clone, Copy, Debug)]
pub struct Partitions<'a> {
    pub(super) state: &'a State,
    pub(super) logs: &'a BTreeMap<LogId, Log>,
    pub(super) layers: Layers<'a>,
}

impl Partitions<'_> {
    fn log(&self, topic: TopicId, partition: i32) -> Option<&Log> {
        self.logs.get(&self.state.topic_by_id(topic)?.log(partition)?)
    }

    fn elastic_keys(&self, group: &str, topic: TopicId) -> ElasticKeys<'_> {
        let topic = self.state.topic_by_id(topic);
        let of_topic = topic.map_or(&NONE, |topic| &topic.configs);
        let of_group = self.state.group_configs(group).unwrap_or(&NONE);
        ElasticKeys::new(of_topic, of_group, self.layers)
    }
}

impl Topics for Partitions<'_> {
    fn by_name(&self, name: &str) -> Option<TopicView<'_>> {
        self.state.topic_by_name(name).map(view)
    }

    fn by_id(&self, id: TopicId) -> Option<TopicView<'_>> {
        self.state.topic_by_id(id).map(view)
    }

    fn each(&self, visit: &mut dyn FnMut(TopicView<'_>)) {
        self.state.topics().map(view).for_each(visit);
    }

    fn log_end(&self, topic: TopicId, partition: i32) -> Offset {
        self.log(topic, partition).map_or(0, Log::high_watermark)
    }

    fn log_start(&self, topic: TopicId, partition: i32) -> Offset {
        self.log(topic, partition).map_or(0, Log::start)
    }

    fn next_offset(&self, topic: TopicId, partition: i32) -> Offset {
        self.log(topic, partition).map_or(0, Log::next_offset)
    }

    fn read_queues(&self, topic: TopicId) -> Option<i32> {
        Self::read_count(self.state, topic)
    }

    fn elastic_mode(&self, group: &str, topic: TopicId) -> Mode {
        self.elastic_keys(group, topic).mode()
    }

    fn commit_evidence(&self, group: &str, topic: TopicId) -> CommitEvidence {
        self.elastic_keys(group, topic).evidence()
    }

    fn elastic(&self, group: &str, topic: TopicId) -> ElasticSettings {
        self.elastic_keys(group, topic).all()
    }

    fn elastic_group(&self, group: &str) -> GroupElasticSettings {
        GroupElasticSettings::new(self.state.group_configs(group).unwrap_or(&NONE), self.layers)
    }

    fn excluded_from_division(&self, topic: TopicId) -> Option<String> {
        let topic = self.state.topic_by_id(topic)?;
        if topic.name.starts_with("__") {
            return Some("it is an internal topic".to_owned());
        }
        let is_compacted = topic.settings(self.layers).compact;
        is_compacted.then(|| "it is compacted: its readers want the latest value of each key".to_owned())
    }
}

fn view(topic: &Topic) -> TopicView<'_> {
    TopicView {
        id: topic.id,
        name: &topic.name,
        partitions: topic.partitions(),
    }
}
