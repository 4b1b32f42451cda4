//! Heartbeat: staying in a classic group.

use crate::prim::Message;

/// A sign of life from a member.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 12, versions(0..=4), flexible(4..))]
pub struct HeartbeatRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    #[kafka(versions(3..), nullable, default = null)]
    pub group_instance_id: Option<String>,
}

/// Whether the member is still part of the generation.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 12, versions(0..=4), flexible(4..))]
pub struct HeartbeatResponse {
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    pub error_code: i16,
}
