//! OffsetForLeaderEpoch: where a leader epoch ends.
//!
//! Only -1 as replica id comes from consumers (KIP-320).

use crate::prim::Message;

/// Epochs to look up, by partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 23, versions(2..=4), flexible(4..))]
pub struct OffsetForLeaderEpochRequest {
    #[kafka(versions(3..), default = -2, ignorable)]
    pub replica_id: i32,
    pub topics: Vec<OffsetForLeaderTopic>,
}

/// Element of [`OffsetForLeaderEpochRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetForLeaderTopic {
    pub topic: String,
    pub partitions: Vec<OffsetForLeaderPartition>,
}

/// Element of [`OffsetForLeaderTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetForLeaderPartition {
    pub partition: i32,
    #[kafka(default = -1)]
    pub current_leader_epoch: i32,
    pub leader_epoch: i32,
}

/// The end offset of each epoch.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 23, versions(2..=4), flexible(4..))]
pub struct OffsetForLeaderEpochResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetForLeaderTopicResult>,
}

/// Element of [`OffsetForLeaderEpochResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetForLeaderTopicResult {
    pub topic: String,
    pub partitions: Vec<EpochEndOffset>,
}

/// Element of [`OffsetForLeaderTopicResult::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EpochEndOffset {
    pub error_code: i16,
    pub partition: i32,
    #[kafka(default = -1)]
    pub leader_epoch: i32,
    #[kafka(default = -1)]
    pub end_offset: i64,
}
