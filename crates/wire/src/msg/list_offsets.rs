//! ListOffsets: finding offsets by time.
//!
//! Special times: -1 the end, -2 the start, -3 the largest timestamp (version 7, KIP-734), -4 the start of
//! the local log (8, KIP-405), -5 the end of the tiered log (9, KIP-1005).

use crate::prim::Message;

/// The times to look up; negative numbers mean the ends of the log.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 2, versions(1..=10), flexible(6..))]
pub struct ListOffsetsRequest {
    pub replica_id: i32,
    #[kafka(versions(2..))]
    pub isolation_level: i8,
    pub topics: Vec<ListOffsetsTopic>,
    #[kafka(versions(10..), ignorable)]
    pub timeout_ms: i32,
}

/// Element of [`ListOffsetsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ListOffsetsTopic {
    pub name: String,
    pub partitions: Vec<ListOffsetsPartition>,
}

/// Element of [`ListOffsetsTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ListOffsetsPartition {
    pub partition_index: i32,
    #[kafka(versions(4..), default = -1, ignorable)]
    pub current_leader_epoch: i32,
    pub timestamp: i64,
}

/// The first offset at or after each time.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 2, versions(1..=10), flexible(6..))]
pub struct ListOffsetsResponse {
    #[kafka(versions(2..), ignorable)]
    pub throttle_time_ms: i32,
    pub topics: Vec<ListOffsetsTopicResponse>,
}

/// Element of [`ListOffsetsResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ListOffsetsTopicResponse {
    pub name: String,
    pub partitions: Vec<ListOffsetsPartitionResponse>,
}

/// Element of [`ListOffsetsTopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ListOffsetsPartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    #[kafka(default = -1)]
    pub timestamp: i64,
    #[kafka(default = -1)]
    pub offset: i64,
    #[kafka(versions(4..), default = -1)]
    pub leader_epoch: i32,
}
