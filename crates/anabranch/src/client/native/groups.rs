//! Consumer groups, their members, and their committed offsets.

use std::ffi::{CString, c_char};

use rdkafka::bindings as sys;

use super::memory::{self, Guard, copy_text, lent};
use super::offsets::{copy_list, make_list};
use super::topics::PerName;
use super::{Admin, ApiError, PartitionOffset, TopicPartition, c_text};
use crate::failure::Outcome;

/// A group in the list of groups.
#[derive(Debug, Clone)]
pub(crate) struct GroupListing {
    pub(crate) group: String,
    pub(crate) state: String,
    /// The protocol of its members: `Classic` or `Consumer`.
    pub(crate) kind: String,
}

/// What the coordinator says about a group.
#[derive(Debug, Clone)]
pub(crate) struct GroupDescription {
    pub(crate) group: String,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) assignor: String,
    /// The node that coordinates it.
    pub(crate) coordinator: Option<String>,
    pub(crate) members: Vec<GroupMember>,
}

/// A member of a group.
#[derive(Debug, Clone)]
pub(crate) struct GroupMember {
    pub(crate) consumer_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) host: String,
    pub(crate) assignment: Vec<TopicPartition>,
}

impl Admin {
    /// All groups, and the errors of coordinators that did not answer.
    pub(crate) fn list_groups(&self) -> Outcome<(Vec<GroupListing>, Vec<ApiError>)> {
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS,
            // SAFETY: client, options and queue are live for the call.
            |rk, options, queue| unsafe { sys::rd_kafka_ListConsumerGroups(rk, options, queue) },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_ListConsumerGroups_result(event), 0);
                let groups = lent(
                    sys::rd_kafka_ListConsumerGroups_result_valid(result, &mut count),
                    count,
                );
                let groups = groups.iter().map(|group| listing(*group)).collect();
                let errors = lent(
                    sys::rd_kafka_ListConsumerGroups_result_errors(result, &mut count),
                    count,
                );
                (
                    groups,
                    errors
                        .iter()
                        .filter_map(|error| memory::api_error(*error))
                        .collect(),
                )
            },
        )
    }

    /// Describes groups. One that does not exist is reported as a dead group without members.
    pub(crate) fn describe_groups(&self, groups: &[String]) -> Outcome<PerName<GroupDescription>> {
        let names: Vec<CString> = groups.iter().map(|group| c_text(group)).collect::<Outcome<_>>()?;
        let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS,
            // SAFETY: the names live during the call, which copies them.
            |rk, options, queue| unsafe {
                sys::rd_kafka_DescribeConsumerGroups(
                    rk,
                    pointers.as_mut_ptr(),
                    pointers.len(),
                    options,
                    queue,
                );
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_DescribeConsumerGroups_result(event), 0);
                let groups = lent(
                    sys::rd_kafka_DescribeConsumerGroups_result_groups(result, &mut count),
                    count,
                );
                groups.iter().map(|group| description(*group)).collect()
            },
        )
    }

    /// Deletes groups; each succeeds or fails by itself.
    pub(crate) fn delete_groups(&self, groups: &[String]) -> Outcome<PerName> {
        let mut guards = Vec::new();
        for group in groups {
            let name = c_text(group)?;
            // SAFETY: the name lives during the call; the guard owns the new object.
            guards.push(unsafe {
                Guard::new(
                    sys::rd_kafka_DeleteGroup_new(name.as_ptr()),
                    sys::rd_kafka_DeleteGroup_destroy,
                )?
            });
        }
        let mut objects: Vec<*mut _> = guards.iter().map(Guard::get).collect();
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETEGROUPS,
            // SAFETY: the array holds live objects, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_DeleteGroups(rk, objects.as_mut_ptr(), objects.len(), options, queue);
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_DeleteGroups_result(event), 0);
                let groups = lent(
                    sys::rd_kafka_DeleteGroups_result_groups(result, &mut count),
                    count,
                );
                groups
                    .iter()
                    .map(|group| (group_name(*group), group_error(*group).map_or(Ok(()), Err)))
                    .collect()
            },
        )
    }

    /// All offsets that a group has committed.
    pub(crate) fn committed(&self, group: &str) -> Outcome<Result<Vec<PartitionOffset>, ApiError>> {
        let name = c_text(group)?;
        // SAFETY: the name lives during the call; null asks for all partitions; the guard owns the new object.
        let object = unsafe {
            let new = sys::rd_kafka_ListConsumerGroupOffsets_new(name.as_ptr(), std::ptr::null());
            Guard::new(new, sys::rd_kafka_ListConsumerGroupOffsets_destroy)?
        };
        let mut objects = [object.get()];
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS,
            // SAFETY: the array holds a live object, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_ListConsumerGroupOffsets(
                    rk,
                    objects.as_mut_ptr(),
                    objects.len(),
                    options,
                    queue,
                );
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_ListConsumerGroupOffsets_result(event), 0);
                let groups = sys::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &mut count);
                group_partitions(lent(groups, count))
            },
        )
    }

    /// Sets committed offsets of a group; each partition succeeds or fails by itself.
    pub(crate) fn commit(
        &self,
        group: &str,
        offsets: &[(TopicPartition, i64)],
    ) -> Outcome<Result<Vec<PartitionOffset>, ApiError>> {
        let name = c_text(group)?;
        let list = make_list(offsets)?;
        // SAFETY: name and list live during the call, which copies them; the guard owns the new object.
        let object = unsafe {
            let new = sys::rd_kafka_AlterConsumerGroupOffsets_new(name.as_ptr(), list.get());
            Guard::new(new, sys::rd_kafka_AlterConsumerGroupOffsets_destroy)?
        };
        let mut objects = [object.get()];
        self.request(
            sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS,
            // SAFETY: the array holds a live object, which librdkafka copies before it returns.
            |rk, options, queue| unsafe {
                sys::rd_kafka_AlterConsumerGroupOffsets(
                    rk,
                    objects.as_mut_ptr(),
                    objects.len(),
                    options,
                    queue,
                );
            },
            // SAFETY: the event is live; its result is of the kind that was asked for, and is copied.
            |event| unsafe {
                let (result, mut count) = (sys::rd_kafka_event_AlterConsumerGroupOffsets_result(event), 0);
                let groups = sys::rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &mut count);
                group_partitions(lent(groups, count))
            },
        )
    }
}

/// # Safety
/// `group` is live.
unsafe fn listing(group: *const sys::rd_kafka_ConsumerGroupListing_t) -> GroupListing {
    // SAFETY: the caller vouches for the group; the names of states and kinds are constants of librdkafka, which has
    // mapped whatever the broker sent onto values of its own.
    unsafe {
        let state = sys::rd_kafka_ConsumerGroupListing_state(group);
        let kind = sys::rd_kafka_ConsumerGroupListing_type(group);
        GroupListing {
            group: copy_text(sys::rd_kafka_ConsumerGroupListing_group_id(group)),
            state: copy_text(sys::rd_kafka_consumer_group_state_name(state)),
            kind: copy_text(sys::rd_kafka_consumer_group_type_name(kind)),
        }
    }
}

/// # Safety
/// `group` is live.
unsafe fn description(
    group: *const sys::rd_kafka_ConsumerGroupDescription_t,
) -> (String, Result<GroupDescription, ApiError>) {
    // SAFETY: the caller vouches for the group, and with it for all that it lends; everything is copied.
    unsafe {
        let name = copy_text(sys::rd_kafka_ConsumerGroupDescription_group_id(group));
        if let Some(error) = memory::api_error(sys::rd_kafka_ConsumerGroupDescription_error(group)) {
            return (name, Err(error));
        }
        let coordinator = sys::rd_kafka_ConsumerGroupDescription_coordinator(group);
        let coordinator = (!coordinator.is_null()).then(|| {
            let host = copy_text(sys::rd_kafka_Node_host(coordinator));
            let (id, port) = (
                sys::rd_kafka_Node_id(coordinator),
                sys::rd_kafka_Node_port(coordinator),
            );
            format!("{host}:{port} ({id})")
        });
        let members = 0..sys::rd_kafka_ConsumerGroupDescription_member_count(group);
        let state = sys::rd_kafka_ConsumerGroupDescription_state(group);
        let kind = sys::rd_kafka_ConsumerGroupDescription_type(group);
        let description = GroupDescription {
            group: name.clone(),
            state: copy_text(sys::rd_kafka_consumer_group_state_name(state)),
            kind: copy_text(sys::rd_kafka_consumer_group_type_name(kind)),
            assignor: copy_text(sys::rd_kafka_ConsumerGroupDescription_partition_assignor(group)),
            coordinator,
            members: members
                .map(|i| member(sys::rd_kafka_ConsumerGroupDescription_member(group, i)))
                .collect(),
        };
        (name, Ok(description))
    }
}

/// # Safety
/// `object` is live.
unsafe fn member(object: *const sys::rd_kafka_MemberDescription_t) -> GroupMember {
    // SAFETY: the caller vouches for the member, and with it for the strings and the list that it lends.
    unsafe {
        let instance = sys::rd_kafka_MemberDescription_group_instance_id(object);
        let assignment = sys::rd_kafka_MemberDescription_assignment(object);
        let assignment = if assignment.is_null() {
            Vec::new()
        } else {
            copy_list(sys::rd_kafka_MemberAssignment_partitions(assignment))
        };
        GroupMember {
            consumer_id: copy_text(sys::rd_kafka_MemberDescription_consumer_id(object)),
            instance_id: Some(copy_text(instance)).filter(|id| !id.is_empty()),
            client_id: copy_text(sys::rd_kafka_MemberDescription_client_id(object)),
            host: copy_text(sys::rd_kafka_MemberDescription_host(object)),
            assignment: assignment.into_iter().map(|one| one.at).collect(),
        }
    }
}

/// # Safety
/// `result` is live.
unsafe fn group_name(result: *const sys::rd_kafka_group_result_t) -> String {
    // SAFETY: the caller vouches for the result; the string is copied.
    unsafe { copy_text(sys::rd_kafka_group_result_name(result)) }
}

/// # Safety
/// `result` is live.
unsafe fn group_error(result: *const sys::rd_kafka_group_result_t) -> Option<ApiError> {
    // SAFETY: the caller vouches for the result, and with it for its error.
    unsafe { memory::api_error(sys::rd_kafka_group_result_error(result)) }
}

/// The partitions of the one group that a request was about.
///
/// # Safety
/// All of `groups` are live.
unsafe fn group_partitions(
    groups: &[*const sys::rd_kafka_group_result_t],
) -> Result<Vec<PartitionOffset>, ApiError> {
    let mut partitions = Vec::new();
    for group in groups {
        // SAFETY: the caller vouches for the group, and with it for its list, which is copied.
        unsafe {
            if let Some(error) = group_error(*group) {
                return Err(error);
            }
            partitions.extend(copy_list(sys::rd_kafka_group_result_partitions(*group)));
        }
    }
    Ok(partitions)
}
