//! The broker at one look.

use serde::{Deserialize, Serialize};

/// The broker with its topics and groups, from one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overview {
    /// When, milliseconds since 1970.
    pub time_ms: i64,
    /// Version of the broker.
    pub version: String,
    /// Id of the cluster, as clients see it.
    pub cluster_id: String,
    /// Id of the node.
    pub node_id: i32,
    /// What all topics and groups have together, those left out included.
    pub totals: Totals,
    /// The topics that match, in the order of their names.
    pub topics: Vec<TopicRow>,
    /// How many topics match and are not in `topics`.
    pub topics_left_out: u64,
    /// The groups that match, in the order of their ids.
    pub groups: Vec<GroupRow>,
    /// How many groups match and are not in `groups`.
    pub groups_left_out: u64,
}

/// Sums over the broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    /// Topics.
    pub topics: u64,
    /// Partitions.
    pub partitions: u64,
    /// Groups.
    pub groups: u64,
    /// Members of all groups.
    pub members: u64,
    /// Bytes of batches on the disk, of the topics that are shown.
    pub bytes: u64,
    /// Records that groups have not yet done.
    pub unread: u64,
    /// Records per second that come in; `None` before that can be told.
    pub in_rate: Option<f64>,
    /// Records per second that groups get done; `None` before that can be told.
    pub out_rate: Option<f64>,
}

/// A topic in the overview.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopicRow {
    /// Name of the topic.
    pub topic: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// The value of `elastic.mode` in force: `off`, `slices` or `queues`.
    pub mode: String,
    /// Offsets that are still there, over all partitions: the records, where none were compacted away.
    pub records: u64,
    /// Bytes of batches on the disk.
    pub bytes: u64,
    /// Records per second that come in; `None` before that can be told.
    pub in_rate: Option<f64>,
}

/// A group in the overview.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupRow {
    /// Id of the group.
    pub group: String,
    /// State under Kafka's names: `Stable`, `Empty`, ...
    pub state: String,
    /// `Consumer` or `Classic`.
    pub kind: String,
    /// Whether the broker assigns its partitions, so that `GET /api/v1/groups/{group}` knows it.
    pub assigned_here: bool,
    /// Members.
    pub members: u32,
    /// Members that hold nothing; `None` where a client assigns and the broker does not know.
    pub idle: Option<u32>,
    /// Names of the topics that it has committed offsets in, the first ten of them.
    pub topics: Vec<String>,
    /// Partitions that it has committed offsets in.
    pub partitions: u32,
    /// Of them, those that members share by slices.
    pub divided: u32,
    /// Slots on their way from one member to another.
    pub moving_slots: u32,
    /// Records behind the committed offsets.
    pub lag: u64,
    /// Records that are not yet done: less than `lag` where members of a divided partition are ahead of the slowest.
    pub unread: u64,
    /// Records per second that it gets done; `None` before that can be told.
    pub out_rate: Option<f64>,
    /// An operator has told the planner to leave the group alone.
    pub paused: bool,
}
