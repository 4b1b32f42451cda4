//! CreatePartitions: adding partitions to topics.

use crate::prim::Message;

/// New partition counts.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 37, versions(0..=3), flexible(2..))]
pub struct CreatePartitionsRequest {
    pub topics: Vec<CreatePartitionsTopic>,
    pub timeout_ms: i32,
    pub validate_only: bool,
}

/// Element of [`CreatePartitionsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatePartitionsTopic {
    pub name: String,
    pub count: i32,
    #[kafka(nullable)]
    pub assignments: Option<Vec<CreatePartitionsAssignment>>,
}

/// Element of [`CreatePartitionsTopic::assignments`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatePartitionsAssignment {
    pub broker_ids: Vec<i32>,
}

/// Success or failure of each topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 37, versions(0..=3), flexible(2..))]
pub struct CreatePartitionsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<CreatePartitionsTopicResult>,
}

/// Element of [`CreatePartitionsResponse::results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatePartitionsTopicResult {
    pub name: String,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
}
