//! Metadata: topics, partitions and brokers.
//!
//! Version 10 brings topic ids, and 12 looks up by id (KIP-516); 13 a general error (KIP-1102).

use crate::prim::{Message, Uuid};

/// The topics to describe; null (in version 0: none) asks for all.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 3, versions(0..=13), flexible(9..))]
pub struct MetadataRequest {
    #[kafka(nullable(1..))]
    pub topics: Option<Vec<MetadataRequestTopic>>,
    #[kafka(versions(4..), default = true)]
    pub allow_auto_topic_creation: bool,
    #[kafka(versions(8..=10))]
    pub include_cluster_authorized_operations: bool,
    #[kafka(versions(8..))]
    pub include_topic_authorized_operations: bool,
}

/// Element of [`MetadataRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct MetadataRequestTopic {
    #[kafka(versions(10..), ignorable)]
    pub topic_id: Uuid,
    #[kafka(nullable(10..))]
    pub name: Option<String>,
}

/// Brokers, and topics with their partitions.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 3, versions(0..=13), flexible(9..))]
pub struct MetadataResponse {
    #[kafka(versions(3..), ignorable)]
    pub throttle_time_ms: i32,
    pub brokers: Vec<MetadataResponseBroker>,
    #[kafka(versions(2..), nullable, default = null, ignorable)]
    pub cluster_id: Option<String>,
    #[kafka(versions(1..), default = -1, ignorable)]
    pub controller_id: i32,
    pub topics: Vec<MetadataResponseTopic>,
    #[kafka(versions(8..=10), default = i32::MIN)]
    pub cluster_authorized_operations: i32,
    #[kafka(versions(13..), ignorable)]
    pub error_code: i16,
}

/// Element of [`MetadataResponse::brokers`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct MetadataResponseBroker {
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    #[kafka(versions(1..), nullable, default = null, ignorable)]
    pub rack: Option<String>,
}

/// Element of [`MetadataResponse::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct MetadataResponseTopic {
    pub error_code: i16,
    #[kafka(nullable(12..))]
    pub name: Option<String>,
    #[kafka(versions(10..), ignorable)]
    pub topic_id: Uuid,
    #[kafka(versions(1..), ignorable)]
    pub is_internal: bool,
    pub partitions: Vec<MetadataResponsePartition>,
    #[kafka(versions(8..), default = i32::MIN)]
    pub topic_authorized_operations: i32,
}

/// Element of [`MetadataResponseTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct MetadataResponsePartition {
    pub error_code: i16,
    pub partition_index: i32,
    pub leader_id: i32,
    #[kafka(versions(7..), default = -1, ignorable)]
    pub leader_epoch: i32,
    pub replica_nodes: Vec<i32>,
    pub isr_nodes: Vec<i32>,
    #[kafka(versions(5..), ignorable)]
    pub offline_replicas: Vec<i32>,
}
