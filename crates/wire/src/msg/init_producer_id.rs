//! InitProducerId: ids for idempotent producers.
//!
//! Version 3 bumps the epoch of a known id (KIP-360); 6 is for two-phase commit (KIP-939).

use crate::prim::Message;

/// A producer that wants an id, or a new epoch for its own.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 22, versions(0..=6), flexible(2..))]
pub struct InitProducerIdRequest {
    #[kafka(nullable)]
    pub transactional_id: Option<String>,
    pub transaction_timeout_ms: i32,
    #[kafka(versions(3..), default = -1)]
    pub producer_id: i64,
    #[kafka(versions(3..), default = -1)]
    pub producer_epoch: i16,
    #[kafka(versions(6..))]
    pub enable2_pc: bool,
    #[kafka(versions(6..))]
    pub keep_prepared_txn: bool,
}

/// Id and epoch.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 22, versions(0..=6), flexible(2..))]
pub struct InitProducerIdResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(default = -1)]
    pub producer_id: i64,
    pub producer_epoch: i16,
    #[kafka(versions(6..), default = -1)]
    pub ongoing_txn_producer_id: i64,
    #[kafka(versions(6..), default = -1)]
    pub ongoing_txn_producer_epoch: i16,
}
