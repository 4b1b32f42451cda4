//! AlterPartitionReassignments: moving partitions between brokers.

use crate::prim::Message;

/// Replicas wanted; null cancels (KIP-455).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 45, versions(0..=1), flexible(0..))]
pub struct AlterPartitionReassignmentsRequest {
    #[kafka(default = 60000)]
    pub timeout_ms: i32,
    #[kafka(versions(1..), default = true)]
    pub allow_replication_factor_change: bool,
    pub topics: Vec<ReassignableTopic>,
}

/// Element of [`AlterPartitionReassignmentsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ReassignableTopic {
    pub name: String,
    pub partitions: Vec<ReassignablePartition>,
}

/// Element of [`ReassignableTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ReassignablePartition {
    pub partition_index: i32,
    #[kafka(nullable, default = null)]
    pub replicas: Option<Vec<i32>>,
}

/// Success or failure of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 45, versions(0..=1), flexible(0..))]
pub struct AlterPartitionReassignmentsResponse {
    pub throttle_time_ms: i32,
    #[kafka(versions(1..), default = true, ignorable)]
    pub allow_replication_factor_change: bool,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub responses: Vec<ReassignableTopicResponse>,
}

/// Element of [`AlterPartitionReassignmentsResponse::responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ReassignableTopicResponse {
    pub name: String,
    pub partitions: Vec<ReassignablePartitionResponse>,
}

/// Element of [`ReassignableTopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ReassignablePartitionResponse {
    pub partition_index: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
}
