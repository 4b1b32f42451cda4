//! DescribeGroups: describing classic groups.
//!
//! Version 6 reports an unknown group as an error (KIP-1043).

use bytes::Bytes;

use crate::prim::Message;

/// The groups to describe.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 15, versions(0..=6), flexible(5..))]
pub struct DescribeGroupsRequest {
    pub groups: Vec<String>,
    #[kafka(versions(3..))]
    pub include_authorized_operations: bool,
}

/// State and members of each group.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 15, versions(0..=6), flexible(5..))]
pub struct DescribeGroupsResponse {
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    pub groups: Vec<DescribedGroup>,
}

/// Element of [`DescribeGroupsResponse::groups`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribedGroup {
    pub error_code: i16,
    #[kafka(versions(6..), nullable, default = null)]
    pub error_message: Option<String>,
    pub group_id: String,
    pub group_state: String,
    pub protocol_type: String,
    pub protocol_data: String,
    pub members: Vec<DescribedGroupMember>,
    #[kafka(versions(3..), default = i32::MIN)]
    pub authorized_operations: i32,
}

/// Element of [`DescribedGroup::members`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribedGroupMember {
    pub member_id: String,
    #[kafka(versions(4..), nullable, default = null, ignorable)]
    pub group_instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub member_metadata: Bytes,
    pub member_assignment: Bytes,
}
