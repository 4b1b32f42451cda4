//! AddPartitionsToTxn: naming the partitions of a transaction.
//!
//! Version 4 is for brokers, in batches (KIP-890).

use crate::prim::Message;

/// Partitions that a transaction will write.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 24, versions(0..=5), flexible(3..))]
pub struct AddPartitionsToTxnRequest {
    #[kafka(versions(4..))]
    pub transactions: Vec<AddPartitionsToTxnTransaction>,
    #[kafka(versions(..=3))]
    pub v3_and_below_transactional_id: String,
    #[kafka(versions(..=3))]
    pub v3_and_below_producer_id: i64,
    #[kafka(versions(..=3))]
    pub v3_and_below_producer_epoch: i16,
    #[kafka(versions(..=3))]
    pub v3_and_below_topics: Vec<AddPartitionsToTxnTopic>,
}

/// Element of [`AddPartitionsToTxnRequest::transactions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AddPartitionsToTxnTransaction {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub verify_only: bool,
    pub topics: Vec<AddPartitionsToTxnTopic>,
}

/// Element of [`AddPartitionsToTxnTransaction::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AddPartitionsToTxnTopic {
    pub name: String,
    pub partitions: Vec<i32>,
}

/// Success or failure of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 24, versions(0..=5), flexible(3..))]
pub struct AddPartitionsToTxnResponse {
    pub throttle_time_ms: i32,
    #[kafka(versions(4..), ignorable)]
    pub error_code: i16,
    #[kafka(versions(4..))]
    pub results_by_transaction: Vec<AddPartitionsToTxnResult>,
    #[kafka(versions(..=3))]
    pub results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>,
}

/// Element of [`AddPartitionsToTxnResponse::results_by_transaction`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AddPartitionsToTxnResult {
    pub transactional_id: String,
    pub topic_results: Vec<AddPartitionsToTxnTopicResult>,
}

/// Element of [`AddPartitionsToTxnResult::topic_results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AddPartitionsToTxnTopicResult {
    pub name: String,
    pub results_by_partition: Vec<AddPartitionsToTxnPartitionResult>,
}

/// Element of [`AddPartitionsToTxnTopicResult::results_by_partition`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AddPartitionsToTxnPartitionResult {
    pub partition_index: i32,
    pub partition_error_code: i16,
}
