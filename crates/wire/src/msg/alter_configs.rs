//! AlterConfigs: replacing configurations.
//!
//! Superseded by IncrementalAlterConfigs (KIP-339).

use crate::prim::Message;

/// Resources with their whole new configuration.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 33, versions(0..=2), flexible(2..))]
pub struct AlterConfigsRequest {
    pub resources: Vec<AlterConfigsResource>,
    pub validate_only: bool,
}

/// Element of [`AlterConfigsRequest::resources`].
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
    #[kafka(nullable)]
    pub value: Option<String>,
}

/// Success or failure of each resource.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 33, versions(0..=2), flexible(2..))]
pub struct AlterConfigsResponse {
    pub throttle_time_ms: i32,
    pub responses: Vec<AlterConfigsResourceResponse>,
}

/// Element of [`AlterConfigsResponse::responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AlterConfigsResourceResponse {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
}
