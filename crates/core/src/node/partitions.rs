//! What the coordinator of groups sees of topics and logs.

use std::collections::BTreeMap;

use crate::group::{TopicView, Topics};
use crate::ids::{LogId, Offset, TopicId};
use crate::log::Log;
use crate::meta::{State, Topic};

/// The topics with the bounds of their logs.
#[derive(Clone, Copy, Debug)]
pub struct Partitions<'a> {
    pub(super) state: &'a State,
    pub(super) logs: &'a BTreeMap<LogId, Log>,
}

impl Partitions<'_> {
    fn log(&self, topic: TopicId, partition: i32) -> Option<&Log> {
        self.logs.get(&self.state.topic_by_id(topic)?.log(partition)?)
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
}

fn view(topic: &Topic) -> TopicView<'_> {
    TopicView {
        id: topic.id,
        name: &topic.name,
        partitions: topic.partitions(),
    }
}
