//! DescribeCluster: the cluster and its brokers.
//!
//! Version 1 can ask for controllers (KIP-919), 2 for fenced brokers (KIP-1073).

use crate::prim::Message;

/// What to include (KIP-700).
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 60, versions(0..=2), flexible(0..))]
pub struct DescribeClusterRequest {
    pub include_cluster_authorized_operations: bool,
    #[kafka(versions(1..), default = 1)]
    pub endpoint_type: i8,
    #[kafka(versions(2..))]
    pub include_fenced_brokers: bool,
}

/// Cluster id, controller and brokers.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 60, versions(0..=2), flexible(0..))]
pub struct DescribeClusterResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    #[kafka(nullable, default = null)]
    pub error_message: Option<String>,
    #[kafka(versions(1..), default = 1)]
    pub endpoint_type: i8,
    pub cluster_id: String,
    #[kafka(default = -1)]
    pub controller_id: i32,
    pub brokers: Vec<DescribeClusterBroker>,
    #[kafka(default = i32::MIN)]
    pub cluster_authorized_operations: i32,
}

/// Element of [`DescribeClusterResponse::brokers`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeClusterBroker {
    pub broker_id: i32,
    pub host: String,
    pub port: i32,
    #[kafka(nullable, default = null)]
    pub rack: Option<String>,
    #[kafka(versions(2..))]
    pub is_fenced: bool,
}
