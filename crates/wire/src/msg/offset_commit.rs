//! OffsetCommit: committing what a group has read.
//!
//! Version 7 brings static members (KIP-345), 9 the member epoch of KIP-848 in
//! `generation_id_or_member_epoch`, 10 topic ids.

use crate::prim::{Message, Uuid};

/// Offsets to store for a group.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 8, versions(2..=10), flexible(8..))]
pub struct OffsetCommitRequest {
    pub group_id: String,
    #[kafka(default = -1)]
    pub generation_id_or_member_epoch: i32,
    pub member_id: String,
    #[kafka(versions(7..), nullable, default = null)]
    pub group_instance_id: Option<String>,
    #[kafka(versions(..=4), default = -1, ignorable)]
    pub retention_time_ms: i64,
    pub topics: Vec<OffsetCommitRequestTopic>,
}

/// Element of [`OffsetCommitRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetCommitRequestTopic {
    #[kafka(versions(..=9), ignorable)]
    pub name: String,
    #[kafka(versions(10..), ignorable)]
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetCommitRequestPartition>,
}

/// Element of [`OffsetCommitRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetCommitRequestPartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    #[kafka(versions(6..), default = -1, ignorable)]
    pub committed_leader_epoch: i32,
    #[kafka(nullable)]
    pub committed_metadata: Option<String>,
}

/// Success or failure of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 8, versions(2..=10), flexible(8..))]
pub struct OffsetCommitResponse {
    #[kafka(versions(3..), ignorable)]
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetCommitResponseTopic>,
}

/// Element of [`OffsetCommitResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetCommitResponseTopic {
    #[kafka(versions(..=9), ignorable)]
    pub name: String,
    #[kafka(versions(10..), ignorable)]
    pub topic_id: Uuid,
    pub partitions: Vec<OffsetCommitResponsePartition>,
}

/// Element of [`OffsetCommitResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetCommitResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}
