//! Metadata: brokers, topics, partitions; topics are created on the way if that is allowed.
//!
//! A topic that is created here is answered with its leader at once, so that a first write needs no second try.
//! Asking for *all* topics never creates one.

use std::collections::HashSet;

use anabranch_core::ids::TopicId;
use anabranch_core::limits::METADATA_TOPICS_MAX;
use anabranch_core::meta::Topic;
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use anabranch_wire::msg::{MetadataRequest, MetadataResponse};
use anabranch_wire::prim::Uuid;

use super::{CLUSTER_OPERATIONS, TOPIC_OPERATIONS, operations};
use crate::broker::{Broker, Update};
use crate::clock::fresh_id;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

pub(crate) fn handle(call: Call<'_>, request: MetadataRequest) -> Result<Pending, Close> {
    let version = call.version();
    let asked = request.topics.filter(|topics| version > 0 || !topics.is_empty());
    if asked
        .as_ref()
        .is_some_and(|topics| topics.len() > METADATA_TOPICS_MAX)
    {
        return Err(Close::Hostile(format!(
            "Metadata for more than {METADATA_TOPICS_MAX} topics"
        )));
    }
    let operations_of_topic = operations(request.include_topic_authorized_operations, TOPIC_OPERATIONS);
    let shape = Shape {
        node_id: call.broker.node_id,
        operations: operations_of_topic,
    };
    let may_create = request.allow_auto_topic_creation && !call.is_draining();
    let (topics, after) = call.broker.update(|update| match asked {
        None => update.node().topics().map(|topic| shape.topic(topic)).collect(),
        Some(asked) => some(&call, update, asked, may_create, shape),
    });
    let response = MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: call.broker.node_id,
            host: call.peer.advertised.host.clone(),
            port: i32::from(call.peer.advertised.port),
            rack: None,
        }],
        cluster_id: Some(call.broker.cluster_id.clone()),
        controller_id: call.broker.node_id,
        topics,
        cluster_authorized_operations: operations(
            request.include_cluster_authorized_operations,
            CLUSTER_OPERATIONS,
        ),
        ..Default::default()
    };
    call.after(&response, after)
}

/// What is the same for all topics of an answer.
#[derive(Clone, Copy)]
struct Shape {
    node_id: i32,
    operations: i32,
}

impl Shape {
    fn topic(self, topic: &Topic) -> MetadataResponseTopic {
        MetadataResponseTopic {
            name: Some(topic.name.clone()),
            topic_id: topic.id.0,
            partitions: (0..topic.partitions())
                .map(|index| self.partition(index))
                .collect(),
            topic_authorized_operations: self.operations,
            ..Default::default()
        }
    }

    fn partition(self, partition_index: i32) -> MetadataResponsePartition {
        MetadataResponsePartition {
            partition_index,
            leader_id: self.node_id,
            leader_epoch: 0,
            replica_nodes: vec![self.node_id],
            isr_nodes: vec![self.node_id],
            ..Default::default()
        }
    }
}

/// Answers for the topics that were asked for, each once.
fn some(
    call: &Call<'_>,
    update: &mut Update<'_>,
    asked: Vec<MetadataRequestTopic>,
    may_create: bool,
    shape: Shape,
) -> Vec<MetadataResponseTopic> {
    let mut seen = HashSet::with_capacity(asked.len());
    let mut topics = Vec::with_capacity(asked.len());
    for one in asked {
        // An id alone counts from version 10 on; before, it is all zero.
        let by_id = one.topic_id != Uuid::default() && one.name.is_none();
        if !seen.insert((one.topic_id, one.name.clone())) {
            continue;
        }
        let found = match one.name {
            Some(name) => {
                named(call.broker, update, &name, may_create, shape).map_err(|error| (error, Some(name)))
            }
            None if by_id => {
                let topic = update.node().topic_by_id(TopicId(one.topic_id));
                topic
                    .map(|topic| shape.topic(topic))
                    .ok_or((ErrorCode::UnknownTopicId, None))
            }
            None => Err((ErrorCode::InvalidRequest, None)),
        };
        topics.push(found.unwrap_or_else(|(error, name)| MetadataResponseTopic {
            error_code: call.code(error),
            // Null only from version 12 on, which is the first to ask by id.
            name: name.or_else(|| (call.version() < 12).then(String::new)),
            topic_id: if by_id { one.topic_id } else { Uuid::default() },
            ..Default::default()
        }));
    }
    topics
}

fn named(
    broker: &Broker,
    update: &mut Update<'_>,
    name: &str,
    may_create: bool,
    shape: Shape,
) -> Result<MetadataResponseTopic, ErrorCode> {
    if update.node().topic_by_name(name).is_none() {
        let now = update.now;
        if may_create {
            let commands = update.node_mut().auto_create_topic(now, name, fresh_id());
            update.run(commands.map_err(|refused| refused.code())?);
            broker.auto_created(name);
        } else {
            anabranch_core::node::check_name(name).map_err(|refused| refused.code())?;
        }
    }
    let topic = update
        .node()
        .topic_by_name(name)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    Ok(shape.topic(topic))
}
