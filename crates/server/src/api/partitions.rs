//! Partitions of a cluster of one: DescribeTopicPartitions, reassignments, elections.

use anabranch_core::meta::Topic;
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::alter_partition_reassignments::{
    ReassignablePartition, ReassignablePartitionResponse, ReassignableTopic, ReassignableTopicResponse,
};
use anabranch_wire::msg::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use anabranch_wire::msg::elect_leaders::{PartitionResult, ReplicaElectionResult, TopicPartitions};
use anabranch_wire::msg::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse, ElectLeadersRequest, ElectLeadersResponse,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use super::{TOPIC_OPERATIONS, check_partitions};
use crate::broker::Core;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// Partitions in one answer of DescribeTopicPartitions, whatever the client asks for
/// (Kafka: `max.request.partition.size.limit`).
const PARTITIONS_MAX: usize = 2_000;

pub(crate) fn describe(call: Call<'_>, request: DescribeTopicPartitionsRequest) -> Result<Pending, Close> {
    check_partitions(std::iter::once(request.topics.len()))?;
    let limit = usize::try_from(request.response_partition_limit)
        .unwrap_or(0)
        .clamp(1, PARTITIONS_MAX);
    let cursor = request.cursor.unwrap_or_default();
    let mut names: Vec<String> = request.topics.into_iter().map(|topic| topic.name).collect();
    names.sort_unstable();
    names.dedup();
    let ((topics, next_cursor), after) = call.broker.update(|update| {
        let node = update.node();
        let mut pages = Pages {
            node_id: node.node_id(),
            left: limit,
            topics: Vec::new(),
            next: None,
        };
        if names.is_empty() {
            let rest = node.topics().skip_while(|topic| topic.name < cursor.topic_name);
            rest.take_while(|topic| pages.add(topic, &cursor)).count();
        } else {
            for name in names.into_iter().filter(|name| *name >= cursor.topic_name) {
                let goes_on = match node.topic_by_name(&name) {
                    Some(topic) => pages.add(topic, &cursor),
                    None => pages.add_unknown(&call, name),
                };
                if !goes_on {
                    break;
                }
            }
        }
        (pages.topics, pages.next)
    });
    call.after(
        &DescribeTopicPartitionsResponse {
            topics,
            next_cursor,
            ..Default::default()
        },
        after,
    )
}

/// An answer that is being filled.
struct Pages {
    node_id: i32,
    left: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Pages {
    /// Adds a topic as far as there is room; false when the answer is full.
    fn add(&mut self, topic: &Topic, cursor: &Cursor) -> bool {
        let first = if topic.name == cursor.topic_name {
            cursor.partition_index.max(0)
        } else {
            0
        };
        if self.left == 0 {
            self.next = Some(Cursor {
                topic_name: topic.name.clone(),
                partition_index: first,
            });
            return false;
        }
        let room = i32::try_from(self.left).unwrap_or(i32::MAX);
        let end = topic.partitions().min(first.saturating_add(room));
        let partitions: Vec<_> = (first..end).map(|index| self.partition(index)).collect();
        self.left = self.left.saturating_sub(partitions.len());
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            name: Some(topic.name.clone()),
            topic_id: topic.id.0,
            partitions,
            topic_authorized_operations: TOPIC_OPERATIONS,
            ..Default::default()
        });
        if end < topic.partitions() {
            self.next = Some(Cursor {
                topic_name: topic.name.clone(),
                partition_index: end,
            });
            return false;
        }
        true
    }

    fn add_unknown(&mut self, call: &Call<'_>, name: String) -> bool {
        let error = anabranch_core::node::check_name(&name)
            .map_or_else(|refused| refused.code(), |()| ErrorCode::UnknownTopicOrPartition);
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            error_code: call.code(error),
            name: Some(name),
            ..Default::default()
        });
        true
    }

    fn partition(&self, partition_index: i32) -> DescribeTopicPartitionsResponsePartition {
        DescribeTopicPartitionsResponsePartition {
            partition_index,
            leader_id: self.node_id,
            leader_epoch: 0,
            replica_nodes: vec![self.node_id],
            isr_nodes: vec![self.node_id],
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            ..Default::default()
        }
    }
}

fn exists(core: &Core, topic: &str, partition: i32) -> bool {
    core.node()
        .topic_by_name(topic)
        .and_then(|topic| topic.log(partition))
        .is_some()
}

/// Every partition is where it can be; moving it there is done, cancelling a move has nothing to cancel.
pub(crate) fn alter_reassignments(
    call: Call<'_>,
    request: AlterPartitionReassignmentsRequest,
) -> Result<Pending, Close> {
    check_partitions(request.topics.iter().map(|topic| topic.partitions.len()))?;
    let here = vec![call.broker.node_id];
    let responses = call.broker.with(|core| {
        let partition = |topic: &str, one: &ReassignablePartition| {
            let (error, message) = match &one.replicas {
                _ if !exists(core, topic, one.partition_index) => (
                    ErrorCode::UnknownTopicOrPartition,
                    Some("the partition does not exist"),
                ),
                None => (
                    ErrorCode::NoReassignmentInProgress,
                    Some("the partition is not moving"),
                ),
                Some(replicas) if *replicas == here => (ErrorCode::None, None),
                Some(_) => (
                    ErrorCode::InvalidReplicaAssignment,
                    Some("there is one broker only; a partition can be nowhere else"),
                ),
            };
            ReassignablePartitionResponse {
                partition_index: one.partition_index,
                error_code: call.code(error),
                error_message: message.map(str::to_owned),
            }
        };
        let topic = |topic: ReassignableTopic| ReassignableTopicResponse {
            partitions: topic
                .partitions
                .iter()
                .map(|one| partition(&topic.name, one))
                .collect(),
            name: topic.name,
        };
        request.topics.into_iter().map(topic).collect()
    });
    call.now(&AlterPartitionReassignmentsResponse {
        responses,
        ..Default::default()
    })
}

pub(crate) fn list_reassignments(
    call: Call<'_>,
    _request: ListPartitionReassignmentsRequest,
) -> Result<Pending, Close> {
    call.now(&ListPartitionReassignmentsResponse::default())
}

/// Every partition has its leader already.
pub(crate) fn elect_leaders(call: Call<'_>, request: ElectLeadersRequest) -> Result<Pending, Close> {
    check_partitions(
        request
            .topic_partitions
            .iter()
            .flatten()
            .map(|topic| topic.partitions.len()),
    )?;
    let results = call.broker.with(|core| {
        let partition = |topic: &str, partition_id: i32| {
            let (error, message) = match exists(core, topic, partition_id) {
                true => (ErrorCode::ElectionNotNeeded, "the partition has its leader"),
                false => (ErrorCode::UnknownTopicOrPartition, "the partition does not exist"),
            };
            PartitionResult {
                partition_id,
                error_code: call.code(error),
                error_message: Some(message.to_owned()),
            }
        };
        let topic = |topic: TopicPartitions| ReplicaElectionResult {
            partition_result: topic
                .partitions
                .iter()
                .map(|one| partition(&topic.topic, *one))
                .collect(),
            topic: topic.topic,
        };
        request
            .topic_partitions
            .into_iter()
            .flatten()
            .map(topic)
            .collect()
    });
    call.now(&ElectLeadersResponse {
        replica_election_results: results,
        ..Default::default()
    })
}
