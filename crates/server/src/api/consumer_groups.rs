//! The group protocol of KIP-848: ConsumerGroupHeartbeat, ConsumerGroupDescribe.

use anabranch_core::Refused;
use anabranch_core::group::{ConsumerDescribed, ConsumerHeartbeat, ConsumerHeartbeatAnswer, ConsumerMember};
use anabranch_core::ids::{Lsn, TopicId};
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::consumer_group_heartbeat::{Assignment, TopicPartitions};
use anabranch_wire::msg::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse, consumer_group_describe,
};

use super::groups::caller;
use super::{GROUP_OPERATIONS, check_names, each_once, operations};
use crate::clock::fresh_id;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

pub(crate) fn heartbeat(call: Call<'_>, request: ConsumerGroupHeartbeatRequest) -> Result<Pending, Close> {
    let caller = caller(&call);
    let request = ConsumerHeartbeat {
        version: call.version(),
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        instance_id: request.instance_id,
        rack_id: request.rack_id,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        topic_names: request.subscribed_topic_names,
        topic_regex: request.subscribed_topic_regex,
        assignor: request.server_assignor,
        owned: request.topic_partitions.map(|owned| {
            owned
                .into_iter()
                .map(|topic| (TopicId(topic.topic_id), topic.partitions))
                .collect()
        }),
    };
    let (answer, after) = if call.is_draining() {
        (
            Err(Refused::new(
                ErrorCode::NotCoordinator,
                "the broker is shutting down",
            )),
            Lsn(0),
        )
    } else {
        call.broker.group(|coordinator, topics, now| {
            coordinator.consumer_heartbeat(now, topics, fresh_id(), &caller, &request)
        })
    };
    let response = match answer {
        Ok(answer) => response(answer),
        Err(refused) => ConsumerGroupHeartbeatResponse {
            error_code: call.code(refused.code()),
            error_message: Some(refused.message().to_owned()),
            ..Default::default()
        },
    };
    call.after(&response, after)
}

fn response(answer: ConsumerHeartbeatAnswer) -> ConsumerGroupHeartbeatResponse {
    let assignment = answer.assignment.map(|topics| Assignment {
        topic_partitions: topics
            .into_iter()
            .map(|(topic, partitions)| TopicPartitions {
                topic_id: topic.0,
                partitions,
            })
            .collect(),
    });
    ConsumerGroupHeartbeatResponse {
        member_id: Some(answer.member_id),
        member_epoch: answer.member_epoch,
        heartbeat_interval_ms: answer.heartbeat_interval_ms,
        assignment,
        ..Default::default()
    }
}

/// Member types of ConsumerGroupDescribe.
const CLASSIC: i8 = 0;
const CONSUMER: i8 = 1;

pub(crate) fn describe(call: Call<'_>, request: ConsumerGroupDescribeRequest) -> Result<Pending, Close> {
    let authorized_operations = operations(request.include_authorized_operations, GROUP_OPERATIONS);
    let mut latest = Lsn(0);
    check_names(request.group_ids.len())?;
    let mut groups = Vec::with_capacity(request.group_ids.len());
    for group_id in each_once(request.group_ids) {
        let (found, after) = call
            .broker
            .group_read(|coordinator, topics| coordinator.describe_consumer(topics, &group_id));
        latest = latest.max(after);
        let mut group = match found {
            Ok(found) => described(found),
            Err(refused) => consumer_group_describe::DescribedGroup {
                error_code: call.code(refused.code()),
                error_message: Some(refused.message().to_owned()),
                ..Default::default()
            },
        };
        group.group_id = group_id;
        group.authorized_operations = authorized_operations;
        groups.push(group);
    }
    call.after(
        &ConsumerGroupDescribeResponse {
            groups,
            ..Default::default()
        },
        latest,
    )
}

fn described(found: ConsumerDescribed) -> consumer_group_describe::DescribedGroup {
    consumer_group_describe::DescribedGroup {
        group_state: found.state.to_owned(),
        group_epoch: found.epoch,
        assignment_epoch: found.epoch,
        assignor_name: found.assignor.to_owned(),
        members: found.members.into_iter().map(member).collect(),
        ..Default::default()
    }
}

fn member(member: ConsumerMember) -> consumer_group_describe::Member {
    let assignment = |topics: Vec<(TopicId, String, Vec<i32>)>| consumer_group_describe::Assignment {
        topic_partitions: topics
            .into_iter()
            .map(
                |(id, topic_name, partitions)| consumer_group_describe::TopicPartitions {
                    topic_id: id.0,
                    topic_name,
                    partitions,
                },
            )
            .collect(),
    };
    consumer_group_describe::Member {
        member_id: member.member_id,
        instance_id: member.instance_id,
        rack_id: member.rack_id,
        member_epoch: member.epoch,
        client_id: member.client_id,
        client_host: member.client_host,
        subscribed_topic_names: member.topics,
        subscribed_topic_regex: member.regex,
        assignment: assignment(member.assignment),
        target_assignment: assignment(member.target),
        member_type: if member.is_classic { CLASSIC } else { CONSUMER },
    }
}
