//! CreateTopics: creating topics.
//!
//! Version 5 returns partitions and configuration (KIP-525), 7 the topic id.

use crate::prim::{Message, Uuid};

/// The topics to create.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 19, versions(2..=7), flexible(5..))]
pub struct CreateTopicsRequest {
    pub topics: Vec<CreatableTopic>,
    #[kafka(default = 60000)]
    pub timeout_ms: i32,
    pub validate_only: bool,
}

/// Element of [`CreateTopicsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatableTopic {
    pub name: String,
    pub num_partitions: i32,
    pub replication_factor: i16,
    pub assignments: Vec<CreatableReplicaAssignment>,
    pub configs: Vec<CreatableTopicConfig>,
}

/// Element of [`CreatableTopic::assignments`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatableReplicaAssignment {
    pub partition_index: i32,
    pub broker_ids: Vec<i32>,
}

/// Element of [`CreatableTopic::configs`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatableTopicConfig {
    pub name: String,
    #[kafka(nullable)]
    pub value: Option<String>,
}

/// Success or failure of each topic, with its configuration.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 19, versions(2..=7), flexible(5..))]
pub struct CreateTopicsResponse {
    pub throttle_time_ms: i32,
    pub topics: Vec<CreatableTopicResult>,
}

/// Element of [`CreateTopicsResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatableTopicResult {
    pub name: String,
    #[kafka(versions(7..), ignorable)]
    pub topic_id: Uuid,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    #[kafka(versions(5..), tag = 0, ignorable)]
    pub topic_config_error_code: i16,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub num_partitions: i32,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub replication_factor: i16,
    #[kafka(versions(5..), nullable, ignorable)]
    pub configs: Option<Vec<CreatableTopicConfigs>>,
}

/// Element of [`CreatableTopicResult::configs`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct CreatableTopicConfigs {
    pub name: String,
    #[kafka(nullable)]
    pub value: Option<String>,
    pub read_only: bool,
    #[kafka(default = -1)]
    pub config_source: i8,
    pub is_sensitive: bool,
}
