//! Produce: appending record batches.
//!
//! Version 7 allows zstd (KIP-110), 8 brings errors per record (KIP-467), 10 the current leader (KIP-951),
//! 12 transactions without AddPartitionsToTxn (KIP-890), 13 topic ids in the place of names (KIP-516).

use crate::prim::{Message, Records, Uuid};

/// Batches to append, by topic and partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 0, versions(3..=13), flexible(9..))]
pub struct ProduceRequest {
    #[kafka(nullable, default = null)]
    pub transactional_id: Option<String>,
    pub acks: i16,
    pub timeout_ms: i32,
    pub topic_data: Vec<TopicProduceData>,
}

/// Element of [`ProduceRequest::topic_data`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicProduceData {
    #[kafka(versions(..=12), ignorable)]
    pub name: String,
    #[kafka(versions(13..), ignorable)]
    pub topic_id: Uuid,
    pub partition_data: Vec<PartitionProduceData>,
}

/// Element of [`TopicProduceData::partition_data`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct PartitionProduceData {
    pub index: i32,
    #[kafka(nullable, default = null)]
    pub records: Option<Records>,
}

/// Where each batch went, or why not.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 0, versions(3..=13), flexible(9..))]
pub struct ProduceResponse {
    pub responses: Vec<TopicProduceResponse>,
    pub throttle_time_ms: i32,
    #[kafka(versions(10..), tag = 0)]
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Element of [`ProduceResponse::responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicProduceResponse {
    #[kafka(versions(..=12), ignorable)]
    pub name: String,
    #[kafka(versions(13..), ignorable)]
    pub topic_id: Uuid,
    pub partition_responses: Vec<PartitionProduceResponse>,
}

/// Element of [`TopicProduceResponse::partition_responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct PartitionProduceResponse {
    pub index: i32,
    pub error_code: i16,
    pub base_offset: i64,
    #[kafka(default = -1)]
    pub log_append_time_ms: i64,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub log_start_offset: i64,
    #[kafka(versions(8..), ignorable)]
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    #[kafka(versions(8..), nullable, default = null, ignorable)]
    pub error_message: Option<String>,
    #[kafka(versions(10..), tag = 0)]
    pub current_leader: LeaderIdAndEpoch,
}

/// Element of [`PartitionProduceResponse::record_errors`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct BatchIndexAndErrorMessage {
    pub batch_index: i32,
    #[kafka(nullable, default = null)]
    pub batch_index_error_message: Option<String>,
}

/// Value of [`PartitionProduceResponse::current_leader`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct LeaderIdAndEpoch {
    #[kafka(default = -1)]
    pub leader_id: i32,
    #[kafka(default = -1)]
    pub leader_epoch: i32,
}

/// Element of [`ProduceResponse::node_endpoints`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct NodeEndpoint {
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    #[kafka(nullable, default = null)]
    pub rack: Option<String>,
}
