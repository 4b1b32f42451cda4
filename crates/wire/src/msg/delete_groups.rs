//! DeleteGroups: deleting groups.

use crate::prim::Message;

/// The groups to delete.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 42, versions(0..=2), flexible(2..))]
pub struct DeleteGroupsRequest {
    pub groups_names: Vec<String>,
}

/// Success or failure of each group.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 42, versions(0..=2), flexible(2..))]
pub struct DeleteGroupsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DeletableGroupResult>,
}

/// Element of [`DeleteGroupsResponse::results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeletableGroupResult {
    pub group_id: String,
    pub error_code: i16,
}
