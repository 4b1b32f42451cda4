//! CreateAcls: creating access rules.

use crate::prim::Message;

/// The rules to create.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 30, versions(1..=3), flexible(2..))]
pub struct CreateAclsRequest {
    pub creations: Vec<AclCreation>,
}

/// Element of [`CreateAclsRequest::creations`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AclCreation {
    pub resource_type: i8,
    pub resource_name: String,
    #[kafka(default = 3)]
    pub resource_pattern_type: i8,
    pub principal: String,
    pub host: String,
    pub operation: i8,
    pub permission_type: i8,
}

/// Success or failure of each rule, in the order of the request.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 30, versions(1..=3), flexible(2..))]
pub struct CreateAclsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<AclCreationResult>,
}

/// Element of [`CreateAclsResponse::results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AclCreationResult {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
}
