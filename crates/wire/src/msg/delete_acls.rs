//! DeleteAcls: deleting access rules.

use crate::prim::Message;

/// Filters; what matches one of them goes.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 31, versions(1..=3), flexible(2..))]
pub struct DeleteAclsRequest {
    pub filters: Vec<DeleteAclsFilter>,
}

/// Element of [`DeleteAclsRequest::filters`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteAclsFilter {
    pub resource_type_filter: i8,
    #[kafka(nullable)]
    pub resource_name_filter: Option<String>,
    #[kafka(default = 3)]
    pub pattern_type_filter: i8,
    #[kafka(nullable)]
    pub principal_filter: Option<String>,
    #[kafka(nullable)]
    pub host_filter: Option<String>,
    pub operation: i8,
    pub permission_type: i8,
}

/// The rules that each filter matched.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 31, versions(1..=3), flexible(2..))]
pub struct DeleteAclsResponse {
    pub throttle_time_ms: i32,
    pub filter_results: Vec<DeleteAclsFilterResult>,
}

/// Element of [`DeleteAclsResponse::filter_results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteAclsFilterResult {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub matching_acls: Vec<DeleteAclsMatchingAcl>,
}

/// Element of [`DeleteAclsFilterResult::matching_acls`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DeleteAclsMatchingAcl {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
    #[kafka(default = 3)]
    pub pattern_type: i8,
    pub principal: String,
    pub host: String,
    pub operation: i8,
    pub permission_type: i8,
}
