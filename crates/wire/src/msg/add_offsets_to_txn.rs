//! AddOffsetsToTxn: naming the group of a transaction.

use crate::prim::Message;

/// The group whose offsets a transaction will commit.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 25, versions(0..=4), flexible(3..))]
pub struct AddOffsetsToTxnRequest {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub group_id: String,
}

/// Success or failure.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 25, versions(0..=4), flexible(3..))]
pub struct AddOffsetsToTxnResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
}
