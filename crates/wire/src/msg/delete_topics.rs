//! DeleteTopics: deleting topics.

use crate::prim::{Message, Uuid};

/// The topics to delete, by name or (version 6) by id.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 20, versions(1..=6), flexible(4..))]
pub struct DeleteTopicsRequest {
    #[kafka(versions(6..))]
    pub topics: Vec<DeleteTopicState>,
    #[kafka(versions(..=5), ignorable)]
    pub topic_names: Vec<String>,
    pub timeout_ms: i32,
}

/// Element of [`DeleteTopicsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteTopicState {
    #[kafka(nullable, default = null)]
    pub name: Option<String>,
    pub topic_id: Uuid,
}

/// Success or failure of each topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 20, versions(1..=6), flexible(4..))]
pub struct DeleteTopicsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<DeletableTopicResult>,
}

/// Element of [`DeleteTopicsResponse::responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeletableTopicResult {
    #[kafka(nullable(6..))]
    pub name: Option<String>,
    #[kafka(versions(6..), ignorable)]
    pub topic_id: Uuid,
    pub error_code: i16,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub error_message: Option<String>,
}
