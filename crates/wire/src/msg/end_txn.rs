//! EndTxn: ending a transaction.

use crate::prim::Message;

/// Commit or abort.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 26, versions(0..=5), flexible(3..))]
pub struct EndTxnRequest {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub committed: bool,
}

/// Success or failure; from version 5 on with the next epoch (KIP-890).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 26, versions(0..=5), flexible(3..))]
pub struct EndTxnResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub producer_id: i64,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub producer_epoch: i16,
}
