//! DescribeTransactions: describing transactions.

use crate::prim::Message;

/// Transactional ids (KIP-664).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 65, versions(0..=0), flexible(0..))]
pub struct DescribeTransactionsRequest {
    pub transactional_ids: Vec<String>,
}

/// State and partitions of each transaction.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 65, versions(0..=0), flexible(0..))]
pub struct DescribeTransactionsResponse {
    pub throttle_time_ms: i32,
    pub transaction_states: Vec<TransactionState>,
}

/// Element of [`DescribeTransactionsResponse::transaction_states`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TransactionState {
    pub error_code: i16,
    pub transactional_id: String,
    pub transaction_state: String,
    pub transaction_timeout_ms: i32,
    pub transaction_start_time_ms: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub topics: Vec<TopicData>,
}

/// Element of [`TransactionState::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicData {
    pub topic: String,
    pub partitions: Vec<i32>,
}
