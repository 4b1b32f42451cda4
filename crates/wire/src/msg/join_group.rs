//! JoinGroup: joining a classic group.
//!
//! Version 4 makes members come back with their id (KIP-394), 5 has static members (KIP-345), 8 a reason
//! (KIP-800), 9 lets the broker tell a static leader to skip the assignment (KIP-814).

use bytes::Bytes;

use crate::prim::Message;

/// A member that wants to be in the next generation.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 11, versions(0..=9), flexible(6..))]
pub struct JoinGroupRequest {
    pub group_id: String,
    pub session_timeout_ms: i32,
    #[kafka(versions(1..), default = -1, ignorable)]
    pub rebalance_timeout_ms: i32,
    pub member_id: String,
    #[kafka(versions(5..), nullable, default = null)]
    pub group_instance_id: Option<String>,
    pub protocol_type: String,
    pub protocols: Vec<JoinGroupRequestProtocol>,
    #[kafka(versions(8..), nullable, default = null, ignorable)]
    pub reason: Option<String>,
}

/// Element of [`JoinGroupRequest::protocols`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct JoinGroupRequestProtocol {
    pub name: String,
    pub metadata: Bytes,
}

/// The new generation; the leader also learns the members.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 11, versions(0..=9), flexible(6..))]
pub struct JoinGroupResponse {
    #[kafka(versions(2..), ignorable)]
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(default = -1)]
    pub generation_id: i32,
    #[kafka(versions(7..), nullable, default = null, ignorable)]
    pub protocol_type: Option<String>,
    #[kafka(nullable(7..))]
    pub protocol_name: Option<String>,
    pub leader: String,
    #[kafka(versions(9..))]
    pub skip_assignment: bool,
    pub member_id: String,
    pub members: Vec<JoinGroupResponseMember>,
}

/// Element of [`JoinGroupResponse::members`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct JoinGroupResponseMember {
    pub member_id: String,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub group_instance_id: Option<String>,
    pub metadata: Bytes,
}
