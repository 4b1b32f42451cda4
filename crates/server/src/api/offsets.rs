//! Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.
//!
//! Topics are named by id from version 10 of the first two on, by name before; the core takes both.

use anabranch_core::group::{
    CommitPartition, FetchAnswer, FetchedOffset, OffsetCommit, OffsetFetch, TopicRef,
};
use anabranch_core::ids::{Lsn, TopicId};
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use anabranch_wire::msg::offset_delete::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use anabranch_wire::msg::offset_fetch::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use anabranch_wire::msg::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse,
};
use anabranch_wire::prim::Uuid;

use super::groups::caller;
use super::{check_names, check_partitions};
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// First version of OffsetCommit and OffsetFetch that names topics by id.
const BY_ID: i16 = 10;

/// First version of OffsetFetch that asks for several groups.
const MANY_GROUPS: i16 = 8;

fn topic_ref(version: i16, name: String, id: Uuid) -> TopicRef {
    if version >= BY_ID {
        TopicRef::Id(TopicId(id))
    } else {
        TopicRef::Name(name)
    }
}

/// Name and id for an answer; the one that the version does not carry stays empty.
fn name_and_id(topic: TopicRef) -> (String, Uuid) {
    match topic {
        TopicRef::Name(name) => (name, Uuid::default()),
        TopicRef::Id(id) => (String::new(), id.0),
    }
}

pub(crate) fn commit(call: Call<'_>, request: OffsetCommitRequest) -> Result<Pending, Close> {
    check_partitions(request.topics.iter().map(|topic| topic.partitions.len()))?;
    let version = call.version();
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|one| CommitPartition {
            partition: one.partition_index,
            offset: one.committed_offset,
            leader_epoch: one.committed_leader_epoch,
            metadata: one.committed_metadata,
        });
        (
            topic_ref(version, topic.name, topic.topic_id),
            partitions.collect(),
        )
    });
    let caller = caller(&call);
    let request = OffsetCommit {
        version,
        group_id: request.group_id,
        generation_or_epoch: request.generation_id_or_member_epoch,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        retention_ms: request.retention_time_ms,
        topics: topics.collect(),
    };
    let (answer, after) = if call.is_draining() {
        let refuse = |one: &CommitPartition| (one.partition, ErrorCode::NotCoordinator);
        let topics = request.topics.into_iter();
        (
            topics
                .map(|(topic, all)| (topic, all.iter().map(refuse).collect()))
                .collect(),
            Lsn(0),
        )
    } else {
        call.broker
            .group(|coordinator, topics, now| coordinator.commit(now, topics, &caller, &request))
    };
    let topics = answer
        .into_iter()
        .map(|(topic, partitions): (TopicRef, Vec<(i32, ErrorCode)>)| {
            let (name, topic_id) = name_and_id(topic);
            let partition = |(partition_index, error)| OffsetCommitResponsePartition {
                partition_index,
                error_code: call.code(error),
            };
            OffsetCommitResponseTopic {
                name,
                topic_id,
                partitions: partitions.into_iter().map(partition).collect(),
            }
        });
    let response = OffsetCommitResponse {
        topics: topics.collect(),
        ..Default::default()
    };
    call.after(&response, after)
}

pub(crate) fn fetch(call: Call<'_>, request: OffsetFetchRequest) -> Result<Pending, Close> {
    let version = call.version();
    let one = request
        .topics
        .iter()
        .flatten()
        .map(|topic| topic.partition_indexes.len());
    let many = request
        .groups
        .iter()
        .flat_map(|group| group.topics.iter().flatten());
    check_partitions(one.chain(many.map(|topic| topic.partition_indexes.len())))?;
    check_names(request.groups.len())?;
    if version >= MANY_GROUPS {
        return fetch_many(&call, version, request);
    }
    let topics = request.topics.map(|topics| {
        topics
            .into_iter()
            .map(|topic| (TopicRef::Name(topic.name), topic.partition_indexes))
            .collect()
    });
    let asked = OffsetFetch {
        group_id: request.group_id,
        member_id: None,
        member_epoch: -1,
        topics,
    };
    let (answer, after) = fetch_one(&call, &asked);
    let response = match answer {
        Ok(topics) => OffsetFetchResponse {
            topics: old_topics(&call, topics),
            ..Default::default()
        },
        // Version 1 has no place for the error but the partitions.
        Err(error) => OffsetFetchResponse {
            error_code: call.code(error),
            topics: old_topics(&call, all_refused(&asked, error)),
            ..Default::default()
        },
    };
    call.after(&response, after)
}

fn fetch_many(call: &Call<'_>, version: i16, request: OffsetFetchRequest) -> Result<Pending, Close> {
    let mut response = OffsetFetchResponse::default();
    let mut latest = Lsn(0);
    for group in request.groups {
        let topics = group.topics.map(|topics| {
            let topics = topics.into_iter();
            topics
                .map(|one| (topic_ref(version, one.name, one.topic_id), one.partition_indexes))
                .collect()
        });
        let asked = OffsetFetch {
            group_id: group.group_id,
            member_id: group.member_id,
            member_epoch: group.member_epoch,
            topics,
        };
        let (answer, after) = fetch_one(call, &asked);
        latest = latest.max(after);
        let (topics, error) = match answer {
            Ok(topics) => (topics, ErrorCode::None),
            Err(error) => (Vec::new(), error),
        };
        response.groups.push(OffsetFetchResponseGroup {
            group_id: asked.group_id,
            topics: new_topics(call, topics),
            error_code: call.code(error),
        });
    }
    call.after(&response, latest)
}

fn fetch_one(call: &Call<'_>, asked: &OffsetFetch) -> (Result<FetchAnswer, ErrorCode>, Lsn) {
    if call.is_draining() {
        return (Err(ErrorCode::NotCoordinator), Lsn(0));
    }
    let caller = caller(call);
    call.broker
        .group(|coordinator, topics, now| coordinator.fetch(now, topics, &caller, asked))
}

fn all_refused(asked: &OffsetFetch, error: ErrorCode) -> FetchAnswer {
    let refuse = |partition: &i32| FetchedOffset {
        partition: *partition,
        offset: -1,
        leader_epoch: -1,
        metadata: String::new(),
        error,
    };
    let topics = asked.topics.iter().flatten();
    topics
        .map(|(topic, partitions)| (topic.clone(), partitions.iter().map(refuse).collect()))
        .collect()
}

fn old_topics(call: &Call<'_>, topics: FetchAnswer) -> Vec<OffsetFetchResponseTopic> {
    let partition = |one: FetchedOffset| OffsetFetchResponsePartition {
        partition_index: one.partition,
        committed_offset: one.offset,
        committed_leader_epoch: one.leader_epoch,
        metadata: Some(one.metadata),
        error_code: call.code(one.error),
    };
    let topic = |(topic, partitions): (TopicRef, Vec<FetchedOffset>)| OffsetFetchResponseTopic {
        name: name_and_id(topic).0,
        partitions: partitions.into_iter().map(partition).collect(),
    };
    topics.into_iter().map(topic).collect()
}

fn new_topics(call: &Call<'_>, topics: FetchAnswer) -> Vec<OffsetFetchResponseTopics> {
    let partition = |one: FetchedOffset| OffsetFetchResponsePartitions {
        partition_index: one.partition,
        committed_offset: one.offset,
        committed_leader_epoch: one.leader_epoch,
        metadata: Some(one.metadata),
        error_code: call.code(one.error),
    };
    let topic = |(topic, partitions): (TopicRef, Vec<FetchedOffset>)| {
        let (name, topic_id) = name_and_id(topic);
        OffsetFetchResponseTopics {
            name,
            topic_id,
            partitions: partitions.into_iter().map(partition).collect(),
        }
    };
    topics.into_iter().map(topic).collect()
}

pub(crate) fn delete(call: Call<'_>, request: OffsetDeleteRequest) -> Result<Pending, Close> {
    let topics: Vec<(String, Vec<i32>)> = request
        .topics
        .into_iter()
        .map(|topic| {
            (
                topic.name,
                topic.partitions.iter().map(|one| one.partition_index).collect(),
            )
        })
        .collect();
    let (answer, after) = call
        .broker
        .group(|coordinator, view, now| coordinator.delete_offsets(now, view, &request.group_id, &topics));
    let mut response = OffsetDeleteResponse::default();
    match answer {
        Err(error) => response.error_code = call.code(error),
        Ok(topics) => {
            let partition = |(partition_index, error): (i32, ErrorCode)| OffsetDeleteResponsePartition {
                partition_index,
                error_code: call.code(error),
            };
            response.topics = topics
                .into_iter()
                .map(
                    |(name, partitions): (String, Vec<(i32, ErrorCode)>)| OffsetDeleteResponseTopic {
                        name,
                        partitions: partitions.into_iter().map(partition).collect(),
                    },
                )
                .collect();
        }
    }
    call.after(&response, after)
}
