//! DescribeLogDirs: sizes on disk.
//!
//! Version 4 adds the size of the volume (KIP-827).

use crate::prim::Message;

/// The partitions to report; null asks for all.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 35, versions(1..=4), flexible(2..))]
pub struct DescribeLogDirsRequest {
    #[kafka(nullable)]
    pub topics: Option<Vec<DescribableLogDirTopic>>,
}

/// Element of [`DescribeLogDirsRequest::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribableLogDirTopic {
    pub topic: String,
    pub partitions: Vec<i32>,
}

/// Sizes by directory, topic and partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[kafka(key = 35, versions(1..=4), flexible(2..))]
pub struct DescribeLogDirsResponse {
    pub throttle_time_ms: i32,
    #[kafka(versions(3..), ignorable)]
    pub error_code: i16,
    pub results: Vec<DescribeLogDirsResult>,
}

/// Element of [`DescribeLogDirsResponse::results`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeLogDirsResult {
    pub error_code: i16,
    pub log_dir: String,
    pub topics: Vec<DescribeLogDirsTopic>,
    #[kafka(versions(4..), default = -1, ignorable)]
    pub total_bytes: i64,
    #[kafka(versions(4..), default = -1, ignorable)]
    pub usable_bytes: i64,
}

/// Element of [`DescribeLogDirsResult::topics`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeLogDirsTopic {
    pub name: String,
    pub partitions: Vec<DescribeLogDirsPartition>,
}

/// Element of [`DescribeLogDirsTopic::partitions`].
#[derive(Clone, Debug, PartialEq, Message)]
pub struct DescribeLogDirsPartition {
    pub partition_index: i32,
    pub partition_size: i64,
    pub offset_lag: i64,
    pub is_future_key: bool,
}
