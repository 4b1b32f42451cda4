//! DescribeConfigs: reading configurations.
//!
//! Version 3 adds type and documentation (KIP-569).

use crate::prim::Message;

/// The resources and keys; a null list asks for all keys.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 32, versions(1..=4), flexible(4..))]
pub struct DescribeConfigsRequest {
    pub resources: Vec<DescribeConfigsResource>,
    pub include_synonyms: bool,
    #[kafka(versions(3..))]
    pub include_documentation: bool,
}

/// Element of [`DescribeConfigsRequest::resources`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeConfigsResource {
    pub resource_type: i8,
    pub resource_name: String,
    #[kafka(nullable)]
    pub configuration_keys: Option<Vec<String>>,
}

/// The configuration of each resource.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 32, versions(1..=4), flexible(4..))]
pub struct DescribeConfigsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<DescribeConfigsResult>,
}

/// Element of [`DescribeConfigsResponse::results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeConfigsResult {
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    pub resource_type: i8,
    pub resource_name: String,
    pub configs: Vec<DescribeConfigsResourceResult>,
}

/// Element of [`DescribeConfigsResult::configs`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeConfigsResourceResult {
    pub name: String,
    #[kafka(nullable)]
    pub value: Option<String>,
    pub read_only: bool,
    #[kafka(default = -1)]
    pub config_source: i8,
    pub is_sensitive: bool,
    pub synonyms: Vec<DescribeConfigsSynonym>,
    #[kafka(versions(3..), ignorable)]
    pub config_type: i8,
    #[kafka(versions(3..), nullable, ignorable)]
    pub documentation: Option<String>,
}

/// Element of [`DescribeConfigsResourceResult::synonyms`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeConfigsSynonym {
    pub name: String,
    #[kafka(nullable)]
    pub value: Option<String>,
    pub source: i8,
}
