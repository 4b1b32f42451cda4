//! OffsetDelete: deleting committed offsets.

use crate::prim::Message;

/// Partitions whose offsets a group gives up (KIP-496).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 47, versions(0..=0))]
pub struct OffsetDeleteRequest {
    pub group_id: String,
    pub topics: Vec<OffsetDeleteRequestTopic>,
}

/// Element of [`OffsetDeleteRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetDeleteRequestTopic {
    pub name: String,
    pub partitions: Vec<OffsetDeleteRequestPartition>,
}

/// Element of [`OffsetDeleteRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetDeleteRequestPartition {
    pub partition_index: i32,
}

/// Success or failure of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 47, versions(0..=0))]
pub struct OffsetDeleteResponse {
    pub error_code: i16,
    pub throttle_time_ms: i32,
    pub topics: Vec<OffsetDeleteResponseTopic>,
}

/// Element of [`OffsetDeleteResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetDeleteResponseTopic {
    pub name: String,
    pub partitions: Vec<OffsetDeleteResponsePartition>,
}

/// Element of [`OffsetDeleteResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OffsetDeleteResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}
