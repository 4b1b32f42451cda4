//! ListConfigResources: listing configurable resources.
//!
//! Version 0 knows client metrics only (KIP-714).

use crate::prim::Message;

/// The types of resources; empty means all (KIP-1142).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 74, versions(0..=1), flexible(0..))]
pub struct ListConfigResourcesRequest {
    #[kafka(versions(1..))]
    pub resource_types: Vec<i8>,
}

/// Names and types.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 74, versions(0..=1), flexible(0..))]
pub struct ListConfigResourcesResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub config_resources: Vec<ConfigResource>,
}

/// Element of [`ListConfigResourcesResponse::config_resources`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ConfigResource {
    pub resource_name: String,
    #[kafka(versions(1..), default = 16, ignorable)]
    pub resource_type: i8,
}
