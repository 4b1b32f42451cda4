//! TxnOffsetCommit: committing offsets within a transaction.
//!
//! Version 3 identifies the member (KIP-447).

use crate::prim::Message;

/// Offsets to store when the transaction commits.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 28, versions(0..=5), flexible(3..))]
pub struct TxnOffsetCommitRequest {
    pub transactional_id: String,
    pub group_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    #[kafka(versions(3..), default = -1)]
    pub generation_id: i32,
    #[kafka(versions(3..))]
    pub member_id: String,
    #[kafka(versions(3..), nullable, default = null)]
    pub group_instance_id: Option<String>,
    pub topics: Vec<TxnOffsetCommitRequestTopic>,
}

/// Element of [`TxnOffsetCommitRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TxnOffsetCommitRequestTopic {
    pub name: String,
    pub partitions: Vec<TxnOffsetCommitRequestPartition>,
}

/// Element of [`TxnOffsetCommitRequestTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TxnOffsetCommitRequestPartition {
    pub partition_index: i32,
    pub committed_offset: i64,
    #[kafka(versions(2..), default = -1, ignorable)]
    pub committed_leader_epoch: i32,
    #[kafka(nullable)]
    pub committed_metadata: Option<String>,
}

/// Success or failure of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 28, versions(0..=5), flexible(3..))]
pub struct TxnOffsetCommitResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<TxnOffsetCommitResponseTopic>,
}

/// Element of [`TxnOffsetCommitResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TxnOffsetCommitResponseTopic {
    pub name: String,
    pub partitions: Vec<TxnOffsetCommitResponsePartition>,
}

/// Element of [`TxnOffsetCommitResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TxnOffsetCommitResponsePartition {
    pub partition_index: i32,
    pub error_code: i16,
}
