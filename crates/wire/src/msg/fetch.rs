//! Fetch: reading record batches.
//!
//! Version 7 brings sessions (KIP-227), 9 fencing by leader epoch (KIP-320), 10 zstd (KIP-110), 11 reading
//! from a near replica (KIP-392), 12 divergence detection (KIP-595), 13 topic ids in the place of names
//! (KIP-516), 16 the current leader (KIP-951).

use crate::prim::{Message, Records, Uuid};

/// Where to read, by topic and partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 1, versions(4..=18), flexible(12..))]
pub struct FetchRequest {
    #[kafka(versions(12..), nullable, tag = 0, default = null, ignorable)]
    pub cluster_id: Option<String>,
    #[kafka(versions(..=14), default = -1)]
    pub replica_id: i32,
    #[kafka(versions(15..), tag = 1)]
    pub replica_state: ReplicaState,
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    #[kafka(default = i32::MAX)]
    pub max_bytes: i32,
    pub isolation_level: i8,
    #[kafka(versions(7..), ignorable)]
    pub session_id: i32,
    #[kafka(versions(7..), default = -1, ignorable)]
    pub session_epoch: i32,
    pub topics: Vec<FetchTopic>,
    #[kafka(versions(7..))]
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    #[kafka(versions(11..), ignorable)]
    pub rack_id: String,
}

/// Value of [`FetchRequest::replica_state`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ReplicaState {
    #[kafka(default = -1)]
    pub replica_id: i32,
    #[kafka(default = -1)]
    pub replica_epoch: i64,
}

/// Element of [`FetchRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct FetchTopic {
    #[kafka(versions(..=12), ignorable)]
    pub topic: String,
    #[kafka(versions(13..), ignorable)]
    pub topic_id: Uuid,
    pub partitions: Vec<FetchPartition>,
}

/// Element of [`FetchTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct FetchPartition {
    pub partition: i32,
    #[kafka(versions(9..), default = -1, ignorable)]
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    #[kafka(versions(12..), default = -1)]
    pub last_fetched_epoch: i32,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub log_start_offset: i64,
    pub partition_max_bytes: i32,
    #[kafka(versions(17..), tag = 0, ignorable)]
    pub replica_directory_id: Uuid,
    #[kafka(versions(18..), tag = 1, default = i64::MAX, ignorable)]
    pub high_watermark: i64,
}

/// Element of [`FetchRequest::forgotten_topics_data`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct ForgottenTopic {
    #[kafka(versions(..=12), ignorable)]
    pub topic: String,
    #[kafka(versions(13..), ignorable)]
    pub topic_id: Uuid,
    pub partitions: Vec<i32>,
}

/// Record batches from each partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 1, versions(4..=18), flexible(12..))]
pub struct FetchResponse {
    pub throttle_time_ms: i32,
    #[kafka(versions(7..), ignorable)]
    pub error_code: i16,
    #[kafka(versions(7..))]
    pub session_id: i32,
    pub responses: Vec<FetchableTopicResponse>,
    #[kafka(versions(16..), tag = 0)]
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Element of [`FetchResponse::responses`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct FetchableTopicResponse {
    #[kafka(versions(..=12), ignorable)]
    pub topic: String,
    #[kafka(versions(13..), ignorable)]
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionData>,
}

/// Element of [`FetchableTopicResponse::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct PartitionData {
    pub partition_index: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    #[kafka(default = -1)]
    pub last_stable_offset: i64,
    #[kafka(versions(5..), default = -1, ignorable)]
    pub log_start_offset: i64,
    #[kafka(versions(12..), tag = 0)]
    pub diverging_epoch: EpochEndOffset,
    #[kafka(versions(12..), tag = 1)]
    pub current_leader: LeaderIdAndEpoch,
    #[kafka(versions(12..), tag = 2)]
    pub snapshot_id: SnapshotId,
    #[kafka(nullable)]
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    #[kafka(versions(11..), default = -1)]
    pub preferred_read_replica: i32,
    #[kafka(nullable, default = null)]
    pub records: Option<Records>,
}

/// Value of [`PartitionData::diverging_epoch`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct EpochEndOffset {
    #[kafka(default = -1)]
    pub epoch: i32,
    #[kafka(default = -1)]
    pub end_offset: i64,
}

/// Value of [`PartitionData::current_leader`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct LeaderIdAndEpoch {
    #[kafka(default = -1)]
    pub leader_id: i32,
    #[kafka(default = -1)]
    pub leader_epoch: i32,
}

/// Value of [`PartitionData::snapshot_id`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct SnapshotId {
    #[kafka(default = -1)]
    pub end_offset: i64,
    #[kafka(default = -1)]
    pub epoch: i32,
}

/// Element of [`PartitionData::aborted_transactions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

/// Element of [`FetchResponse::node_endpoints`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct NodeEndpoint {
    pub node_id: i32,
    pub host: String,
    pub port: i32,
    #[kafka(nullable, default = null)]
    pub rack: Option<String>,
}
