//! What a group has committed, and setting it anew.

use serde::{Deserialize, Serialize};

/// What a group has committed, as everybody but its members sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Offsets {
    /// Id of the group.
    pub group: String,
    /// State under Kafka's names: `Stable`, `Empty`, ...
    pub state: String,
    /// Members; only of a group without any can offsets be reset.
    pub members: u32,
    /// Topics and partitions with a committed offset.
    pub places: Vec<Place>,
    /// How many are not in `places`.
    pub places_left_out: u64,
}

/// A committed offset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// First offset that is still there.
    pub log_start: i64,
    /// Offset that the next record gets.
    pub log_end: i64,
    /// The committed offset.
    pub committed: i64,
    /// Records from there to the end; never negative.
    pub lag: u64,
}

/// An operator's order to set the committed offsets of a group without members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResetOrder {
    /// Name of the topic.
    pub topic: String,
    /// Numbers of the partitions; `None`: all of the topic.
    #[serde(default)]
    pub partitions: Option<Vec<i32>>,
    /// Where the offsets go.
    pub to: ResetTo,
    /// Whether to do it; else only what would be done is answered.
    #[serde(default)]
    pub execute: bool,
}

/// Where offsets go. What lies outside of a partition is moved to its nearest end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ResetTo {
    /// To the first record that is still there.
    Earliest,
    /// Behind the last record.
    Latest,
    /// To this offset.
    Offset(i64),
    /// To the first record that is not older than this, milliseconds since 1970; behind the last if all are older.
    TimeMs(i64),
    /// Forward by so many offsets from the committed one, or back if negative.
    ShiftBy(i64),
}

/// What a reset does, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reset {
    /// Whether it was done.
    pub executed: bool,
    /// The partitions in the order of their numbers.
    pub steps: Vec<ResetStep>,
}

/// What a reset does to a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResetStep {
    /// Number of the partition.
    pub partition: i32,
    /// The committed offset before; `None` if there was none.
    pub current: Option<i64>,
    /// The committed offset behind it.
    pub new_offset: i64,
    /// Offset that the next record gets: from `new_offset` to here is what will be read.
    pub log_end: i64,
}
