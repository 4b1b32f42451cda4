//! ListPartitionReassignments: listing partitions that move.

use crate::prim::Message;

/// The partitions to look at; null means all (KIP-455).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 46, versions(0..=0), flexible(0..))]
pub struct ListPartitionReassignmentsRequest {
    #[kafka(default = 60000)]
    pub timeout_ms: i32,
    #[kafka(nullable, default = null)]
    pub topics: Option<Vec<ListPartitionReassignmentsTopics>>,
}

/// Element of [`ListPartitionReassignmentsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ListPartitionReassignmentsTopics {
    pub name: String,
    pub partition_indexes: Vec<i32>,
}

/// Those that move.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 46, versions(0..=0), flexible(0..))]
pub struct ListPartitionReassignmentsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub topics: Vec<OngoingTopicReassignment>,
}

/// Element of [`ListPartitionReassignmentsResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OngoingTopicReassignment {
    pub name: String,
    pub partitions: Vec<OngoingPartitionReassignment>,
}

/// Element of [`OngoingTopicReassignment::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct OngoingPartitionReassignment {
    pub partition_index: i32,
    pub replicas: Vec<i32>,
    pub adding_replicas: Vec<i32>,
    pub removing_replicas: Vec<i32>,
}
