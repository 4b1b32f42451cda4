//! ListTransactions: listing transactions.

use crate::prim::Message;

/// Filters by state, producer, age (version 1, KIP-994) and id pattern (2, KIP-1152).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 66, versions(0..=2), flexible(0..))]
pub struct ListTransactionsRequest {
    pub state_filters: Vec<String>,
    pub producer_id_filters: Vec<i64>,
    #[kafka(versions(1..), default = -1)]
    pub duration_filter: i64,
    #[kafka(versions(2..), nullable, default = null)]
    pub transactional_id_pattern: Option<String>,
}

/// Transactions that match.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 66, versions(0..=2), flexible(0..))]
pub struct ListTransactionsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub unknown_state_filters: Vec<String>,
    pub transaction_states: Vec<TransactionState>,
}

/// Element of [`ListTransactionsResponse::transaction_states`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TransactionState {
    pub transactional_id: String,
    pub producer_id: i64,
    pub transaction_state: String,
}
