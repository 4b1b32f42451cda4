//! DescribeProducers: the producers of partitions.

use crate::prim::Message;

/// The partitions (KIP-664).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 61, versions(0..=0), flexible(0..))]
pub struct DescribeProducersRequest {
    pub topics: Vec<TopicRequest>,
}

/// Element of [`DescribeProducersRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicRequest {
    pub name: String,
    pub partition_indexes: Vec<i32>,
}

/// Active producers of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 61, versions(0..=0), flexible(0..))]
pub struct DescribeProducersResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<TopicResponse>,
}

/// Element of [`DescribeProducersResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicResponse {
    pub name: String,
    pub partitions: Vec<PartitionResponse>,
}

/// Element of [`TopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct PartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub active_producers: Vec<ProducerState>,
}

/// Element of [`PartitionResponse::active_producers`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ProducerState {
    pub producer_id: i64,
    pub producer_epoch: i32,
    #[kafka(default = -1)]
    pub last_sequence: i32,
    #[kafka(default = -1)]
    pub last_timestamp: i64,
    pub coordinator_epoch: i32,
    #[kafka(default = -1)]
    pub current_txn_start_offset: i64,
}
