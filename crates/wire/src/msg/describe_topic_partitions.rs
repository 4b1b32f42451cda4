//! DescribeTopicPartitions: partitions of topics, page by page.

use crate::prim::{Message, Uuid};

/// Topics, and where to go on (KIP-966).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 75, versions(0..=0), flexible(0..))]
pub struct DescribeTopicPartitionsRequest {
    pub topics: Vec<TopicRequest>,
    #[kafka(default = 2000)]
    pub response_partition_limit: i32,
    #[kafka(nullable, default = null)]
    pub cursor: Option<Cursor>,
}

/// Element of [`DescribeTopicPartitionsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicRequest {
    pub name: String,
}

/// Value of [`DescribeTopicPartitionsRequest::cursor`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct Cursor {
    pub topic_name: String,
    pub partition_index: i32,
}

/// Partitions with their replicas, and the cursor for the next page.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 75, versions(0..=0), flexible(0..))]
pub struct DescribeTopicPartitionsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    #[kafka(nullable, default = null)]
    pub next_cursor: Option<Cursor>,
}

/// Element of [`DescribeTopicPartitionsResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeTopicPartitionsResponseTopic {
    pub error_code: i16,
    #[kafka(nullable)]
    pub name: Option<String>,
    pub topic_id: Uuid,
    pub is_internal: bool,
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    #[kafka(default = i32::MIN)]
    pub topic_authorized_operations: i32,
}

/// Element of [`DescribeTopicPartitionsResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeTopicPartitionsResponsePartition {
    pub error_code: i16,
    pub partition_index: i32,
    pub leader_id: i32,
    #[kafka(default = -1)]
    pub leader_epoch: i32,
    pub replica_nodes: Vec<i32>,
    pub isr_nodes: Vec<i32>,
    #[kafka(nullable, default = null)]
    pub eligible_leader_replicas: Option<Vec<i32>>,
    #[kafka(nullable, default = null)]
    pub last_known_elr: Option<Vec<i32>>,
    pub offline_replicas: Vec<i32>,
}
