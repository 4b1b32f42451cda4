//! The classic group protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), and groups as tools see them
//! (ListGroups, DescribeGroups, DeleteGroups).

use std::sync::Arc;

use anabranch_core::group::{
    Answer, Caller, Described, DescribedMember, Heartbeat, JoinAnswer, JoinGroup, LeaveGroup, Leaver,
    SyncAnswer, SyncGroup, Token,
};
use anabranch_core::ids::Lsn;
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::delete_groups::DeletableGroupResult;
use anabranch_wire::msg::describe_groups::{DescribedGroup, DescribedGroupMember};
use anabranch_wire::msg::join_group::JoinGroupResponseMember;
use anabranch_wire::msg::leave_group::MemberResponse;
use anabranch_wire::msg::list_groups::ListedGroup;
use anabranch_wire::msg::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, ListGroupsRequest, ListGroupsResponse, SyncGroupRequest, SyncGroupResponse,
};

use anabranch_wire::prim::Message;

use super::{GROUP_OPERATIONS, OPERATIONS_NOT_ASKED, check_names, each_once, operations};
use crate::broker::Broker;
use crate::clock::fresh_id;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;
use crate::group_replies::{Due, Waiting};

/// First version of LeaveGroup that names several members.
const LEAVE_SEVERAL: i16 = 3;

/// Who asks.
pub(crate) fn caller(call: &Call<'_>) -> Caller {
    Caller {
        client_id: call.header.client_id.clone().unwrap_or_default(),
        // As Kafka's tools show it: the address after a slash.
        host: format!("/{}", call.peer.addr.ip().to_canonical()),
        connection: call.peer.connection,
        software: call.peer.software.clone(),
    }
}

pub(crate) fn join(call: Call<'_>, request: JoinGroupRequest) -> Result<Pending, Close> {
    let version = call.version();
    if call.is_draining() {
        return call.now(&refused_join(
            call.code(ErrorCode::NotCoordinator),
            request.member_id,
        ));
    }
    let caller = caller(&call);
    let request = JoinGroup {
        version,
        group_id: request.group_id,
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        protocol_type: request.protocol_type,
        protocols: request
            .protocols
            .into_iter()
            .map(|one| (one.name, one.metadata))
            .collect(),
    };
    let due = call.broker.group_reply(|coordinator, topics, now, token| {
        coordinator.join(now, topics, fresh_id(), token, &caller, &request)
    });
    let member_id = request.member_id;
    let make = move |due: Option<Due>, code: i16| match due {
        Some(Due {
            answer: Answer::Join(answer),
            after,
        }) => (join_response(answer, code, version), after),
        _ => (refused_join(code, member_id), Lsn(0)),
    };
    reply(&call, due, make)
}

pub(crate) fn sync(call: Call<'_>, request: SyncGroupRequest) -> Result<Pending, Close> {
    if call.is_draining() {
        let error_code = call.code(ErrorCode::NotCoordinator);
        return call.now(&SyncGroupResponse {
            error_code,
            ..Default::default()
        });
    }
    let caller = caller(&call);
    let request = SyncGroup {
        group_id: request.group_id,
        generation_id: request.generation_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        protocol_type: request.protocol_type,
        protocol_name: request.protocol_name,
        assignments: request
            .assignments
            .into_iter()
            .map(|one| (one.member_id, one.assignment))
            .collect(),
    };
    let due = call.broker.group_reply(|coordinator, topics, now, token| {
        coordinator.sync(now, topics, token, &caller, &request)
    });
    let make = |due: Option<Due>, code: i16| match due {
        Some(Due {
            answer: Answer::Sync(answer),
            after,
        }) => (sync_response(answer, code), after),
        _ => (
            SyncGroupResponse {
                error_code: code,
                ..Default::default()
            },
            Lsn(0),
        ),
    };
    reply(&call, due, make)
}

/// Answers at once if the reply is there, else when it comes. `make` gets the reply with the number of its error, or
/// nothing and the number to refuse with, if the server ends before there is a reply.
fn reply<R: Message>(
    call: &Call<'_>,
    due: Waiting,
    make: impl FnOnce(Option<Due>, i16) -> (R, Lsn) + Send + 'static,
) -> Result<Pending, Close> {
    let broker = Arc::clone(call.broker);
    let finish = move |due: Option<Due>| {
        let error = due.as_ref().map_or(ErrorCode::NotCoordinator, Due::error);
        make(due, broker.code(error))
    };
    match due.ready() {
        Ok(due) => {
            let (response, after) = finish(Some(due));
            call.after(&response, after)
        }
        Err(waiting) => {
            let guard = Unwanted {
                broker: Arc::clone(call.broker),
                token: waiting.token,
            };
            call.later(async move {
                let due = waiting.due().await;
                drop(guard);
                let (response, after) = finish(due);
                (response, after, None)
            })
        }
    }
}

/// Tells the coordinator when a client no longer waits, since its connection has gone. After an answer there is
/// nothing left to tell.
struct Unwanted {
    broker: Arc<Broker>,
    token: Token,
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.broker.group_reply_unwanted(self.token);
    }
}

fn join_response(answer: JoinAnswer, error_code: i16, version: i16) -> JoinGroupResponse {
    let members = answer.members.into_iter().map(|member| JoinGroupResponseMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        metadata: member.metadata,
    });
    JoinGroupResponse {
        error_code,
        generation_id: answer.generation_id,
        protocol_type: answer.protocol_type,
        protocol_name: protocol_name(answer.protocol_name, version),
        leader: answer.leader,
        skip_assignment: answer.skip_assignment && version >= 9,
        member_id: answer.member_id,
        members: members.collect(),
        ..Default::default()
    }
}

/// Null only from version 7 on.
fn protocol_name(name: Option<String>, version: i16) -> Option<String> {
    if version >= 7 {
        name
    } else {
        Some(name.unwrap_or_default())
    }
}

fn refused_join(error_code: i16, member_id: String) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code,
        member_id,
        protocol_name: Some(String::new()),
        ..Default::default()
    }
}

fn sync_response(answer: SyncAnswer, error_code: i16) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code,
        protocol_type: answer.protocol_type,
        protocol_name: answer.protocol_name,
        assignment: answer.assignment,
        ..Default::default()
    }
}

pub(crate) fn heartbeat(call: Call<'_>, request: HeartbeatRequest) -> Result<Pending, Close> {
    let caller = caller(&call);
    let request = Heartbeat {
        group_id: request.group_id,
        generation_id: request.generation_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
    };
    let (error, after) = match call.is_draining() {
        true => (ErrorCode::NotCoordinator, Lsn(0)),
        false => call
            .broker
            .group(|coordinator, topics, now| coordinator.heartbeat(now, topics, &caller, &request)),
    };
    call.after(
        &HeartbeatResponse {
            error_code: call.code(error),
            ..Default::default()
        },
        after,
    )
}

pub(crate) fn leave(call: Call<'_>, request: LeaveGroupRequest) -> Result<Pending, Close> {
    let several = call.version() >= LEAVE_SEVERAL;
    let members = if several {
        let leaver = |one: anabranch_wire::msg::leave_group::MemberIdentity| Leaver {
            member_id: one.member_id,
            instance_id: one.group_instance_id,
        };
        request.members.into_iter().map(leaver).collect()
    } else {
        vec![Leaver {
            member_id: request.member_id,
            instance_id: None,
        }]
    };
    let request = LeaveGroup {
        group_id: request.group_id,
        members,
    };
    let (answer, after) = call
        .broker
        .group(|coordinator, topics, now| coordinator.leave(now, topics, &request));
    let mut response = LeaveGroupResponse {
        error_code: call.code(answer.error),
        ..Default::default()
    };
    if several {
        let member = |(leaver, error): (Leaver, ErrorCode)| MemberResponse {
            member_id: leaver.member_id,
            group_instance_id: leaver.instance_id,
            error_code: call.code(error),
        };
        response.members = answer.members.into_iter().map(member).collect();
    } else if let (ErrorCode::None, Some((_, error))) = (answer.error, answer.members.first()) {
        response.error_code = call.code(*error);
    }
    call.after(&response, after)
}

pub(crate) fn list(call: Call<'_>, request: ListGroupsRequest) -> Result<Pending, Close> {
    let (listed, after) = call
        .broker
        .group_read(|coordinator, _| coordinator.list(&request.states_filter, &request.types_filter));
    let group = |one: anabranch_core::group::Listed| ListedGroup {
        group_id: one.group_id,
        protocol_type: one.protocol_type,
        group_state: one.state.to_owned(),
        group_type: one.group_type.to_owned(),
    };
    let groups = listed.into_iter().map(group).collect();
    call.after(
        &ListGroupsResponse {
            groups,
            ..Default::default()
        },
        after,
    )
}

pub(crate) fn describe(call: Call<'_>, request: DescribeGroupsRequest) -> Result<Pending, Close> {
    let authorized_operations = operations(request.include_authorized_operations, GROUP_OPERATIONS);
    let mut latest = Lsn(0);
    check_names(request.groups.len())?;
    let mut groups = Vec::with_capacity(request.groups.len());
    for group_id in each_once(request.groups) {
        let (found, after) = call
            .broker
            .group_read(|coordinator, topics| coordinator.describe(topics, &group_id));
        latest = latest.max(after);
        groups.push(described(&call, group_id, found, authorized_operations));
    }
    call.after(
        &DescribeGroupsResponse {
            groups,
            ..Default::default()
        },
        latest,
    )
}

fn described(call: &Call<'_>, group_id: String, found: Described, operations: i32) -> DescribedGroup {
    let member = |one: DescribedMember| DescribedGroupMember {
        member_id: one.member_id,
        group_instance_id: one.instance_id,
        client_id: one.client_id,
        client_host: one.client_host,
        member_metadata: one.metadata,
        member_assignment: one.assignment,
    };
    let mut group = DescribedGroup {
        group_state: found.state.to_owned(),
        protocol_type: found.protocol_type,
        protocol_data: found.protocol,
        members: found.members.into_iter().map(member).collect(),
        authorized_operations: if call.version() >= 3 {
            operations
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..Default::default()
    };
    // Before version 6 an unknown group is a dead one, not an error (KIP-1043).
    if !found.exists && call.version() >= 6 {
        group.error_code = call.code(ErrorCode::GroupIdNotFound);
        group.error_message = Some(format!("group {group_id:?} does not exist"));
    }
    group.group_id = group_id;
    group
}

pub(crate) fn delete(call: Call<'_>, request: DeleteGroupsRequest) -> Result<Pending, Close> {
    let mut latest = Lsn(0);
    check_names(request.groups_names.len())?;
    let mut results = Vec::with_capacity(request.groups_names.len());
    for group_id in each_once(request.groups_names) {
        let (error, after) = call
            .broker
            .group(|coordinator, topics, now| coordinator.delete_group(now, topics, &group_id));
        latest = latest.max(after);
        results.push(DeletableGroupResult {
            group_id,
            error_code: call.code(error),
        });
    }
    call.after(
        &DeleteGroupsResponse {
            results,
            ..Default::default()
        },
        latest,
    )
}
