//! DeleteRecords: deleting the beginning of partitions.

use crate::prim::Message;

/// For each partition the first offset to keep; -1 deletes all.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 21, versions(0..=2), flexible(2..))]
pub struct DeleteRecordsRequest {
    pub topics: Vec<DeleteRecordsTopic>,
    pub timeout_ms: i32,
}

/// Element of [`DeleteRecordsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteRecordsTopic {
    pub name: String,
    pub partitions: Vec<DeleteRecordsPartition>,
}

/// Element of [`DeleteRecordsTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteRecordsPartition {
    pub partition_index: i32,
    pub offset: i64,
}

/// The new start of each log.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 21, versions(0..=2), flexible(2..))]
pub struct DeleteRecordsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<DeleteRecordsTopicResult>,
}

/// Element of [`DeleteRecordsResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteRecordsTopicResult {
    pub name: String,
    pub partitions: Vec<DeleteRecordsPartitionResult>,
}

/// Element of [`DeleteRecordsTopicResult::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteRecordsPartitionResult {
    pub partition_index: i32,
    pub low_watermark: i64,
    pub error_code: i16,
}
