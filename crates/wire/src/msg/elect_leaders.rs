//! ElectLeaders: electing partition leaders.
//!
//! Version 1 has the type of the election (KIP-460).

use crate::prim::Message;

/// The partitions; null means all.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 43, versions(0..=2), flexible(2..))]
pub struct ElectLeadersRequest {
    #[kafka(versions(1..))]
    pub election_type: i8,
    #[kafka(nullable)]
    pub topic_partitions: Option<Vec<TopicPartitions>>,
    #[kafka(default = 60000)]
    pub timeout_ms: i32,
}

/// Element of [`ElectLeadersRequest::topic_partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicPartitions {
    pub topic: String,
    pub partitions: Vec<i32>,
}

/// Success or failure of each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 43, versions(0..=2), flexible(2..))]
pub struct ElectLeadersResponse {
    pub throttle_time_ms: i32,
    #[kafka(versions(1..))]
    pub error_code: i16,
    pub replica_election_results: Vec<ReplicaElectionResult>,
}

/// Element of [`ElectLeadersResponse::replica_election_results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ReplicaElectionResult {
    pub topic: String,
    pub partition_result: Vec<PartitionResult>,
}

/// Element of [`ReplicaElectionResult::partition_result`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct PartitionResult {
    pub partition_id: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
}
