//! LeaveGroup: leaving a classic group.
//!
//! Version 3 takes several members (KIP-345), 5 a reason (KIP-800).

use crate::prim::Message;

/// The members that leave.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 13, versions(0..=5), flexible(4..))]
pub struct LeaveGroupRequest {
    pub group_id: String,
    #[kafka(versions(..=2))]
    pub member_id: String,
    #[kafka(versions(3..))]
    pub members: Vec<MemberIdentity>,
}

/// Element of [`LeaveGroupRequest::members`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct MemberIdentity {
    pub member_id: String,
    #[kafka(nullable, default = null)]
    pub group_instance_id: Option<String>,
    #[kafka(versions(5..), nullable, default = null, ignorable)]
    pub reason: Option<String>,
}

/// Success or failure of each member.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 13, versions(0..=5), flexible(4..))]
pub struct LeaveGroupResponse {
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(versions(3..))]
    pub members: Vec<MemberResponse>,
}

/// Element of [`LeaveGroupResponse::members`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct MemberResponse {
    pub member_id: String,
    #[kafka(nullable)]
    pub group_instance_id: Option<String>,
    pub error_code: i16,
}
