//! ConsumerGroupHeartbeat: membership in a group of the KIP-848 protocol.
//!
//! Epoch 0 joins, -1 leaves, -2 leaves for a while as a static member. Version 1 has regular expressions on
//! the broker, and member ids made by the client (KIP-1082).

use crate::prim::{Message, Uuid};

/// What a member is, wants and has; -1 and null mean unchanged.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 68, versions(0..=1), flexible(0..))]
pub struct ConsumerGroupHeartbeatRequest {
    pub group_id: String,
    pub member_id: String,
    pub member_epoch: i32,
    #[kafka(nullable, default = null)]
    pub instance_id: Option<String>,
    #[kafka(nullable, default = null)]
    pub rack_id: Option<String>,
    #[kafka(default = -1)]
    pub rebalance_timeout_ms: i32,
    #[kafka(nullable, default = null)]
    pub subscribed_topic_names: Option<Vec<String>>,
    #[kafka(versions(1..), nullable, default = null)]
    pub subscribed_topic_regex: Option<String>,
    #[kafka(nullable, default = null)]
    pub server_assignor: Option<String>,
    #[kafka(nullable, default = null)]
    pub topic_partitions: Option<Vec<TopicPartitions>>,
}

/// Element of [`ConsumerGroupHeartbeatRequest::topic_partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct TopicPartitions {
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

/// The member's epoch, and its assignment if that has changed.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 68, versions(0..=1), flexible(0..))]
pub struct ConsumerGroupHeartbeatResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    #[kafka(nullable, default = null)]
    pub member_id: Option<String>,
    pub member_epoch: i32,
    pub heartbeat_interval_ms: i32,
    #[kafka(nullable, default = null)]
    pub assignment: Option<Assignment>,
}

/// Value of [`ConsumerGroupHeartbeatResponse::assignment`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct Assignment {
    pub topic_partitions: Vec<TopicPartitions>,
}
