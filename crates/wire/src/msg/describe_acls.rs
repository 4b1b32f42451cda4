//! DescribeAcls: listing access rules.
//!
//! Version 1 has pattern types (KIP-290), 3 user resources (KIP-373).

use crate::prim::Message;

/// A filter.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 29, versions(1..=3), flexible(2..))]
pub struct DescribeAclsRequest {
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

/// The rules that match.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 29, versions(1..=3), flexible(2..))]
pub struct DescribeAclsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub resources: Vec<DescribeAclsResource>,
}

/// Element of [`DescribeAclsResponse::resources`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeAclsResource {
    pub resource_type: i8,
    pub resource_name: String,
    #[kafka(default = 3)]
    pub pattern_type: i8,
    pub acls: Vec<AclDescription>,
}

/// Element of [`DescribeAclsResource::acls`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AclDescription {
    pub principal: String,
    pub host: String,
    pub operation: i8,
    pub permission_type: i8,
}
