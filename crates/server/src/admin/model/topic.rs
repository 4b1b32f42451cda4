//! One topic.

use serde::{Deserialize, Serialize};

/// A topic, from one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Topic {
    /// Name of the topic.
    pub topic: String,
    /// Id of the topic, 32 hexadecimal digits.
    pub id: String,
    /// When it was created, milliseconds since 1970.
    pub created_ms: i64,
    /// The value of `elastic.mode` in force: `off`, `slices` or `queues`.
    pub mode: String,
    /// How many partitions it has.
    pub partition_count: u32,
    /// The partitions from the first one that was asked for on.
    pub partitions: Vec<TopicPartition>,
    /// How many partitions follow those in `partitions`.
    pub partitions_left_out: u64,
    /// All configurations, in the order of their names.
    pub configs: Vec<Config>,
    /// The groups that have committed offsets in it, in the order of their ids.
    pub readers: Vec<Reader>,
    /// How many groups are not in `readers`.
    pub readers_left_out: u64,
}

/// A partition of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopicPartition {
    /// Number of the partition.
    pub partition: i32,
    /// First offset that is still there.
    pub log_start: i64,
    /// Offset that the next record gets.
    pub log_end: i64,
    /// Bytes of batches on the disk.
    pub bytes: u64,
    /// The largest timestamp in it, milliseconds since 1970; `None` if it is empty.
    pub newest_ms: Option<i64>,
}

/// A configuration of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Config {
    /// Name of the configuration.
    pub name: String,
    /// The value in force; `None` if there is none.
    pub value: Option<String>,
    /// Where it was set: `topic`, `broker`, `cluster`, `file` or `default`.
    pub source: String,
    /// What it means.
    pub doc: String,
}

/// A group that reads a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reader {
    /// Id of the group.
    pub group: String,
    /// Records of the topic behind the committed offsets.
    pub lag: u64,
    /// Partitions of the topic that it has committed offsets in.
    pub partitions: u32,
}
