//! SyncGroup: the assignment of a classic group.
//!
//! Version 5 checks protocol type and name (KIP-559).

use bytes::Bytes;

use crate::prim::Message;

/// From the leader: assignments; from others: the wish for theirs.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 14, versions(0..=5), flexible(4..))]
pub struct SyncGroupRequest {
    pub group_id: String,
    pub generation_id: i32,
    pub member_id: String,
    #[kafka(versions(3..), nullable, default = null)]
    pub group_instance_id: Option<String>,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub protocol_type: Option<String>,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub protocol_name: Option<String>,
    pub assignments: Vec<SyncGroupRequestAssignment>,
}

/// Element of [`SyncGroupRequest::assignments`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct SyncGroupRequestAssignment {
    pub member_id: String,
    pub assignment: Bytes,
}

/// What is assigned to the member.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 14, versions(0..=5), flexible(4..))]
pub struct SyncGroupResponse {
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub protocol_type: Option<String>,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub protocol_name: Option<String>,
    pub assignment: Bytes,
}
