//! ApiVersions: which APIs and versions there are.
//!
//! The header of the response has version 0 always. Version 4 may list features whose minimum is 0
//! (KIP-584).

use crate::prim::Message;

/// Who asks (from version 3 on, KIP-511).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 18, versions(0..=4), flexible(3..))]
pub struct ApiVersionsRequest {
    #[kafka(versions(3..), ignorable)]
    pub client_software_name: String,
    #[kafka(versions(3..), ignorable)]
    pub client_software_version: String,
}

/// The versions of each API, and features.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 18, versions(0..=4), flexible(3..))]
pub struct ApiVersionsResponse {
    pub error_code: i16,
    pub api_keys: Vec<ApiVersion>,
    #[kafka(versions(1..), ignorable)]
    pub throttle_time_ms: i32,
    #[kafka(versions(3..), tag = 0, ignorable)]
    pub supported_features: Vec<SupportedFeatureKey>,
    #[kafka(versions(3..), tag = 1, default = -1, ignorable)]
    pub finalized_features_epoch: i64,
    #[kafka(versions(3..), tag = 2, ignorable)]
    pub finalized_features: Vec<FinalizedFeatureKey>,
    #[kafka(versions(3..), tag = 3, ignorable)]
    pub zk_migration_ready: bool,
}

/// Element of [`ApiVersionsResponse::api_keys`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ApiVersion {
    pub api_key: i16,
    pub min_version: i16,
    pub max_version: i16,
}

/// Element of [`ApiVersionsResponse::supported_features`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct SupportedFeatureKey {
    pub name: String,
    pub min_version: i16,
    pub max_version: i16,
}

/// Element of [`ApiVersionsResponse::finalized_features`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct FinalizedFeatureKey {
    pub name: String,
    pub max_version_level: i16,
    pub min_version_level: i16,
}
