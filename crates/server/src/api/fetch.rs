//! Fetch: from a request to what is to be read, and from what was read to an answer. The work between is
//! [`crate::fetching`].

use std::sync::Arc;

use anabranch_core::ids::TopicId;
use anabranch_core::limits::{FETCH_BYTES_MAX, FETCH_PARTITIONS_MAX};
use anabranch_engine::fetch::{Fetch, Place, Want, WantTopic};
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::fetch::{FetchPartition, FetchTopic, FetchableTopicResponse, PartitionData};
use anabranch_wire::msg::{FetchRequest, FetchResponse};
use anabranch_wire::prim::Records;
use std::time::Duration;

use crate::broker::Broker;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;
use crate::fetching::Found;

/// First version with topic ids in the place of names.
const BY_ID: i16 = 13;

/// First version with an error for the whole answer.
const WHOLE_ERROR: i16 = 7;

/// Isolation level of consumers that want committed records only.
const READ_COMMITTED: i8 = 1;

/// What must be known to make the answer.
struct Shape {
    topics: Vec<(String, [u8; 16], usize)>,
    read_committed: bool,
}

pub(crate) fn handle(call: Call<'_>, request: FetchRequest) -> Result<Pending, Close> {
    let version = call.version();
    if let Some(error) = refuse(&request, version) {
        return call.now(&refused(&call, request, error));
    }
    let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let deadline = tokio::time::Instant::now() + wait.min(call.broker.shared.limits.fetch_wait_max);
    let fetch = Fetch {
        bytes_min: usize::try_from(request.min_bytes).unwrap_or(0),
        bytes_max: usize::try_from(request.max_bytes)
            .unwrap_or(0)
            .min(FETCH_BYTES_MAX),
        topics: request
            .topics
            .iter()
            .map(|topic| wanted(topic, version))
            .collect(),
    };
    let shape = Shape {
        read_committed: request.isolation_level == READ_COMMITTED,
        topics: request
            .topics
            .into_iter()
            .map(|topic| (topic.topic, topic.topic_id, topic.partitions.len()))
            .collect(),
    };
    let broker = Arc::clone(call.broker);
    let connection = call.peer.connection;
    call.later(async move {
        let done = crate::fetching::run(&broker, connection, fetch, deadline).await;
        (
            response(&broker, shape, &mut done.found.into_iter()),
            done.after,
            done.permit,
        )
    })
}

/// The error for the whole request, if there is one.
fn refuse(request: &FetchRequest, version: i16) -> Option<ErrorCode> {
    let replica = if version >= 15 {
        request.replica_state.replica_id
    } else {
        request.replica_id
    };
    if replica >= 0 {
        return Some(ErrorCode::ClusterAuthorizationFailed);
    }
    // Sessions are never opened, so only what needs none is understood: 0 would open one, -1 does without.
    if !matches!(request.session_epoch, 0 | -1) {
        return Some(ErrorCode::FetchSessionIdNotFound);
    }
    let partitions: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    (partitions > FETCH_PARTITIONS_MAX).then_some(ErrorCode::InvalidRequest)
}

/// An answer with `error`, at the top where the version has a place for it, else in each partition.
fn refused(call: &Call<'_>, request: FetchRequest, error: ErrorCode) -> FetchResponse {
    let error_code = call.code(error);
    if call.version() >= WHOLE_ERROR {
        return FetchResponse {
            error_code,
            ..Default::default()
        };
    }
    let topic = |topic: FetchTopic| FetchableTopicResponse {
        topic: topic.topic,
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|one| failed(one.partition, error_code))
            .collect(),
    };
    FetchResponse {
        responses: request.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn wanted(topic: &FetchTopic, version: i16) -> WantTopic {
    let place = match version >= BY_ID {
        true => Place::Id(TopicId(topic.topic_id)),
        false => Place::Name(topic.topic.clone()),
    };
    WantTopic {
        place,
        partitions: topic.partitions.iter().map(want).collect(),
    }
}

fn want(one: &FetchPartition) -> Want {
    Want {
        partition: one.partition,
        leader_epoch: one.current_leader_epoch,
        offset: one.fetch_offset,
        bytes_max: usize::try_from(one.partition_max_bytes).unwrap_or(0),
    }
}

fn response(broker: &Broker, shape: Shape, found: &mut impl Iterator<Item = Found>) -> FetchResponse {
    let read_committed = shape.read_committed;
    let topic = |(topic, topic_id, count): (String, [u8; 16], usize)| FetchableTopicResponse {
        topic,
        topic_id,
        partitions: found
            .by_ref()
            .take(count)
            .map(|one| partition(broker, one, read_committed))
            .collect(),
    };
    FetchResponse {
        responses: shape.topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}

fn partition(broker: &Broker, found: Found, read_committed: bool) -> PartitionData {
    let bounds = match found.bounds {
        Ok(bounds) => bounds,
        Err(error) => return failed(found.partition, broker.code(error)),
    };
    PartitionData {
        partition_index: found.partition,
        high_watermark: bounds.high_watermark,
        // There are no transactions, so nothing is unstable.
        last_stable_offset: bounds.high_watermark,
        log_start_offset: bounds.start,
        aborted_transactions: read_committed.then(Vec::new),
        records: Some(Records::new(found.batches)),
        ..Default::default()
    }
}

fn failed(partition_index: i32, error_code: i16) -> PartitionData {
    PartitionData {
        partition_index,
        error_code,
        high_watermark: -1,
        aborted_transactions: None,
        records: Some(Records::default()),
        ..Default::default()
    }
}
