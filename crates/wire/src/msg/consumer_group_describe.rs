//! ConsumerGroupDescribe: describing groups of the KIP-848 protocol.
//!
//! Version 1 adds the type of member.

use crate::prim::{Message, Uuid};

/// The groups to describe.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 69, versions(0..=1), flexible(0..))]
pub struct ConsumerGroupDescribeRequest {
    pub group_ids: Vec<String>,
    pub include_authorized_operations: bool,
}

/// State, members and assignments of each group.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 69, versions(0..=1), flexible(0..))]
pub struct ConsumerGroupDescribeResponse {
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribedGroup>,
}

/// Element of [`ConsumerGroupDescribeResponse::groups`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribedGroup {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub group_id: String,
    pub group_state: String,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub assignor_name: String,
    pub members: Vec<Member>,
    #[kafka(default = i32::MIN)]
    pub authorized_operations: i32,
}

/// Element of [`DescribedGroup::members`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct Member {
    pub member_id: String,
    #[kafka(nullable, default = null)]
    pub instance_id: Option<String>,
    #[kafka(nullable, default = null)]
    pub rack_id: Option<String>,
    pub member_epoch: i32,
    pub client_id: String,
    pub client_host: String,
    pub subscribed_topic_names: Vec<String>,
    #[kafka(nullable, default = null)]
    pub subscribed_topic_regex: Option<String>,
    pub assignment: Assignment,
    pub target_assignment: Assignment,
    #[kafka(versions(1..), default = -1, ignorable)]
    pub member_type: i8,
}

/// Value of [`Member::assignment`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct Assignment {
    pub topic_partitions: Vec<TopicPartitions>,
}

/// Element of [`Assignment::topic_partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicPartitions {
    pub topic_id: Uuid,
    pub topic_name: String,
    pub partitions: Vec<i32>,
}
