//! OffsetFetch: reading what a group has committed.
//!
//! Version 7 waits for pending transactions (`require_stable`, KIP-447), 8 takes several groups (KIP-709),
//! 9 member epochs (KIP-848), 10 topic ids.

use crate::prim::{Message, Uuid};

/// The groups and partitions to look up; a null list asks for all partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 9, versions(1..=10), flexible(6..))]
pub struct OffsetFetchRequest {
    #[kafka(versions(..=7))]
    pub group_id: String,
    #[kafka(versions(..=7), nullable(2..))]
    pub topics: Option<Vec<OffsetFetchRequestTopic>>,
    #[kafka(versions(8..))]
    pub groups: Vec<OffsetFetchRequestGroup>,
    #[kafka(versions(7..))]
    pub require_stable: bool,
}

/// Element of [`OffsetFetchRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchRequestTopic {
    pub name: String,
    pub partition_indexes: Vec<i32>,
}

/// Element of [`OffsetFetchRequest::groups`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchRequestGroup {
    pub group_id: String,
    #[kafka(versions(9..), nullable, default = null, ignorable)]
    pub member_id: Option<String>,
    #[kafka(versions(9..), default = -1, ignorable)]
    pub member_epoch: i32,
    #[kafka(nullable)]
    pub topics: Option<Vec<OffsetFetchRequestTopics>>,
}

/// Element of [`OffsetFetchRequestGroup::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchRequestTopics {
    #[kafka(versions(..=9), ignorable)]
    pub name: String,
    #[kafka(versions(10..), ignorable)]
    pub topic_id: Uuid,
    pub partition_indexes: Vec<i32>,
}

/// Committed offsets; -1 where there is none.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 9, versions(1..=10), flexible(6..))]
pub struct OffsetFetchResponse {
    #[kafka(versions(3..), ignorable)]
    pub throttle_time_ms: i32,
    #[kafka(versions(..=7))]
    pub topics: Vec<OffsetFetchResponseTopic>,
    #[kafka(versions(2..=7), ignorable)]
    pub error_code: i16,
    #[kafka(versions(8..))]
    pub groups: Vec<OffsetFetchResponseGroup>,
}

/// Element of [`OffsetFetchResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchResponseTopic {
    pub name: String,
    pub partitions: Vec<OffsetFetchResponsePartition>,
}

/// Element of [`OffsetFetchResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchResponsePartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub committed_leader_epoch: i32,
    #[kafka(nullable)]
    pub metadata: Option<String>,
    pub error_code: i16,
}

/// Element of [`OffsetFetchResponse::groups`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchResponseGroup {
    pub group_id: String,
    pub topics: Vec<OffsetFetchResponseTopics>,
    pub error_code: i16,
}

/// Element of [`OffsetFetchResponseGroup::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchResponseTopics {
    #[kafka(versions(..=9), ignorable)]
    pub name: String,
    #[kafka(versions(10..), ignorable)]
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetFetchResponsePartitions>,
}

/// Element of [`OffsetFetchResponseTopics::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetFetchResponsePartitions {
    pub partition_index: i32,
    pub committed_offset: i64,
    #[kafka(default = -1)]
    pub committed_leader_epoch: i32,
    #[kafka(nullable)]
    pub metadata: Option<String>,
    pub error_code: i16,
}
