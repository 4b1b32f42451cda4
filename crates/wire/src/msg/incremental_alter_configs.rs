//! IncrementalAlterConfigs: changing single configuration keys.
//!
//! Operations: 0 set, 1 delete, 2 append, 3 subtract.

use crate::prim::Message;

/// Resources with operations on keys (KIP-339).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 44, versions(0..=1), flexible(1..))]
pub struct IncrementalAlterConfigsRequest {
    pub resources: Vec<AlterConfigsResource>,
    pub validate_only: bool,
}

/// Element of [`IncrementalAlterConfigsRequest::resources`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AlterConfigsResource {
    pub resource_type: i8,
    pub resource_name: String,
    pub configs: Vec<AlterableConfig>,
}

/// Element of [`AlterConfigsResource::configs`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AlterableConfig {
    pub name: String,
    pub config_operation: i8,
    #[kafka(nullable)]
    pub value: Option<String>,
}

/// Success or failure of each resource.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 44, versions(0..=1), flexible(1..))]
pub struct IncrementalAlterConfigsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<AlterConfigsResourceResponse>,
}

/// Element of [`IncrementalAlterConfigsResponse::responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AlterConfigsResourceResponse {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
}
