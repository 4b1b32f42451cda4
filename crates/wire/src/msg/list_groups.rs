//! ListGroups: listing groups.
//!
//! Version 4 filters by state (KIP-518), 5 by type (KIP-848).

use crate::prim::Message;

/// Which groups to list, by state and type; empty means all.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 16, versions(0..=5), flexible(3..))]
pub struct ListGroupsRequest {
    #[kafka(versions(4..))]
    pub states_filter: Vec<String>,
    #[kafka(versions(5..))]
    pub types_filter: Vec<String>,
}

/// Groups that exist.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 16, versions(0..=5), flexible(3..))]
pub struct ListGroupsResponse {
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub groups: Vec<ListedGroup>,
}

/// Element of [`ListGroupsResponse::groups`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ListedGroup {
    pub group_id: String,
    pub protocol_type: String,
    #[kafka(versions(4..), ignorable)]
    pub group_state: String,
    #[kafka(versions(5..), ignorable)]
    pub group_type: String,
}
