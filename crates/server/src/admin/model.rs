//! The documents of the administration API: what the server writes is what its clients read, by construction.
//!
//! A group is shown as [`Group`] `->` [`Partition`] `->` [`Share`], one share for each slice that a member holds.
//! Slots on their way from one member to another are a [`Transit`]; slots that wait for somebody to hold them are
//! [`Loose`]. Every change of that picture has a [`Decision`], and so has every change that was considered and refused.
//!
//! Fields that are unknown to a reader are ignored, so that a newer server can say more.

mod messages;
mod offsets;
mod overview;
mod topic;

use serde::{Deserialize, Serialize};

pub use messages::{Header, Message, Messages, Text};
pub use offsets::{Offsets, Place, Reset, ResetOrder, ResetStep, ResetTo};
pub use overview::{GroupRow, Overview, TopicRow, Totals};
pub use topic::{Config, Reader, Topic, TopicPartition};

/// A group, from one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// Id of the group.
    pub group: String,
    /// State under Kafka's names: `Stable`, `Empty`, ...
    pub state: String,
    /// `classic` or `consumer`.
    pub protocol: String,
    /// Whether partitions of this group may be divided.
    pub elastic: Elastic,
    /// All members, those without a share included.
    pub members: Vec<Member>,
    /// All partitions that the group has a position in or has assigned.
    pub partitions: Vec<Partition>,
}

/// Whether partitions of a group may be divided, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Elastic {
    /// The value of `elastic.mode` that holds for the group.
    pub mode: String,
    /// Whether the group may be divided.
    pub eligible: bool,
    /// Why it stays plain, as a sentence; `None` if it may be divided.
    pub reason: Option<String>,
    /// An operator has told the planner to leave the group alone.
    pub paused: bool,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Member {
    /// Id of the member, as in Kafka's tools.
    pub member: String,
    /// What the client calls itself.
    pub client_id: String,
    /// Address of the client.
    pub host: String,
    /// Client library and version, as it told the broker; empty if it did not.
    pub software: String,
    /// What it is doing.
    pub state: MemberState,
    /// For how long it has been in this state, milliseconds.
    pub since_ms: u64,
    /// Records per second that it works off, by its commits; `None` before that can be told.
    pub rate: Option<f64>,
    /// Why this member is given no slice, as a sentence; `None` if it may be.
    pub ineligible: Option<String>,
}

/// What a member is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It holds nothing.
    Idle,
    /// It holds something and has nothing left to do in it.
    Drained,
    /// It has unread records.
    Busy,
    /// It is there and does not read.
    Paused,
    /// It is giving up what it holds.
    Leaving,
    /// It has not been heard of for a while and is not given up yet.
    Away,
    /// Something that a newer server says.
    #[serde(other)]
    Other,
}

impl MemberState {
    /// The state as it stands in the documents; `other` for one that this version does not know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Drained => "drained",
            Self::Busy => "busy",
            Self::Paused => "paused",
            Self::Leaving => "leaving",
            Self::Away => "away",
            Self::Other => "other",
        }
    }
}

/// A group's position in a partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Partition {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// One offset or several slices.
    pub form: Form,
    /// First offset that is still there.
    pub log_start: i64,
    /// Offset that the next record gets.
    pub log_end: i64,
    /// The committed offset that others see: the lowest resume point; -1 if there is none.
    pub committed: i64,
    /// Records that are not yet done; never negative.
    pub lag: u64,
    /// What members hold, in the order of their slices.
    pub shares: Vec<Share>,
    /// Slots on their way.
    pub transits: Vec<Transit>,
    /// Slots that nobody holds.
    pub loose: Vec<Loose>,
    /// Records that are not yet done, by bands of equally many neighbouring slots; only if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands: Option<Bands>,
}

/// Records that are not yet done, by bands of slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bands {
    /// Records of each band, from slot 0 on.
    pub unread: Vec<u64>,
    /// Whether all records were counted; else it is an estimate from a sample.
    pub exact: bool,
}

/// The form of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One offset, as in Kafka.
    Plain,
    /// Slices that partition the slots.
    Divided,
}

/// What a member holds of a partition. A plain partition has one, of all slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// Id of the member.
    pub member: String,
    /// Id of the slice; 0 for a plain partition.
    pub slice: u32,
    /// Offset below which all records of the slice are done.
    pub position: i64,
    /// Where the slice ends; `None` for the last of a member, which is open.
    pub end: Option<i64>,
    /// How many slots it has.
    pub slots: u32,
    /// The slots, as runs from the first to the last of each, both included.
    pub slot_runs: Vec<[u16; 2]>,
    /// Records that are not yet done.
    pub remaining: u64,
    /// Whether `remaining` was counted; else it is an estimate.
    pub remaining_exact: bool,
    /// Of the remaining records, those that the member has been sent already.
    pub handed_out: u64,
}

/// Slots on their way from one member to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Transit {
    /// Who works off what it was sent of these slots.
    pub from: String,
    /// Who gets them; `None` if that is not decided.
    pub to: Option<String>,
    /// How many slots.
    pub slots: u32,
    /// Records of these slots that are not yet done.
    pub remaining: u64,
    /// For how long, milliseconds.
    pub since_ms: u64,
    /// The slots, as runs from the first to the last of each, both included.
    #[serde(default)]
    pub slot_runs: Vec<[u16; 2]>,
}

/// Slots that nobody holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Loose {
    /// How many slots.
    pub slots: u32,
    /// Records of these slots that are not yet done.
    pub remaining: u64,
    /// Who will get them; `None` if that is not decided.
    pub to: Option<String>,
    /// The slots, as runs from the first to the last of each, both included.
    #[serde(default)]
    pub slot_runs: Vec<[u16; 2]>,
}

/// Decisions in the order in which they were taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Decisions {
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// The `after` that continues behind these; absent where there is no continuation, as in a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// What the planner decided, or decided not to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Decision {
    /// Number in the log of decisions, from 1; rises by each. 0 in a plan, which is not kept.
    pub seq: u64,
    /// When, milliseconds since 1970.
    pub time_ms: i64,
    /// Id of the group; for a decision about the queues of a topic the one that it follows or waits for, empty if it is none.
    pub group: String,
    /// Name of the topic; empty for a decision about the whole group.
    pub topic: String,
    /// Number of the partition; -1 for a decision about the whole group, or about the queues of a topic.
    pub partition: i32,
    /// `split`, `merge`, `steal`, ...; of queues `read-up`, `write-up`, `write-down`, `read-down`, `postpone`, ...
    pub kind: String,
    /// Whether something was done.
    pub outcome: Verdict,
    /// Name of the reason, for programs.
    pub reason: String,
    /// The decision as a sentence, for people.
    pub text: String,
    /// The member that gives.
    pub from: Option<String>,
    /// The members that get.
    pub to: Vec<String>,
    /// How many slots move.
    pub slots: u32,
    /// Which slots go from whom to whom; empty for refusals and for decisions about queues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<Move>,
    /// Members with their remaining records before the decision; for queues `write` and `read` with their counts.
    pub before: Vec<(String, u64)>,
    /// The same behind it, as planned.
    pub after: Vec<(String, u64)>,
    /// What became of it; `None` while it is on its way, and for refusals.
    pub result: Option<String>,
    /// How long the hand-over took, milliseconds; `None` until it has ended.
    pub handover_ms: Option<u64>,
    /// How often in a row this was decided; the log keeps one entry for equal refusals.
    pub count: u64,
}

/// Slots of a partition that go from one member to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Move {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// From whom; `None`: nobody had them.
    pub from: Option<String>,
    /// To whom; the same as `from` for what a member keeps.
    pub to: String,
    /// The slots, as runs from the first to the last of each, both included.
    pub slot_runs: Vec<[u16; 2]>,
}

/// Whether a decision was to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Something was done.
    Decided,
    /// Nothing was done, for the reason given.
    Refused,
}

/// What was counted since the process began. Numbers only grow, and say nothing about each other at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counters {
    /// Bytes of changes of the broker's own state that were appended: topics, groups, cursors, decisions.
    pub state_bytes_total: u64,
    /// Bytes of batches that the store gave for reading slices, and for counting what is left of them.
    pub slice_read_bytes_total: u64,
    /// Bytes of records that were walked for the first time for that, decompressed.
    pub slice_opened_bytes_total: u64,
    /// Bytes of batches found for members that read slices.
    pub slice_delivered_bytes_total: u64,
}

/// An operator's order to split or merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Order {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// Who is to get slots (split) or give up its own (merge); for now the planner chooses, and anything but `None` is
    /// refused.
    #[serde(default)]
    pub member: Option<String>,
    /// Only answer what would be decided.
    #[serde(default)]
    pub dry_run: bool,
}

/// Why a request did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Refusal {
    /// The error.
    pub error: RefusalDetail,
}

/// Code and message of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefusalDetail {
    /// Name of the error, for programs.
    pub code: String,
    /// What is wrong, for people: in lower case and without a full stop.
    pub message: String,
}

/// A topic in queue mode, from one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Queues {
    /// Name of the topic.
    pub topic: String,
    /// Partitions that clients see.
    pub facade: u32,
    /// Write queue count: partitions below it are written.
    pub write: u32,
    /// Read queue count: partitions below it are assigned to the members of groups.
    pub read: u32,
    /// What both are to become.
    pub goal: u32,
    /// What an operator wants in the place of the number of instances.
    pub wish: Option<u32>,
    /// `idle`, `reading-ahead`, `draining` or `postponed`.
    pub phase: String,
    /// When the phase began, milliseconds since 1970.
    pub since_ms: i64,
    /// In how many milliseconds the next change is due at the latest, if nothing happens; `None`: none is.
    pub next_in_ms: Option<u64>,
    /// For how many milliseconds there have been fewer instances than queues are wanted.
    pub fewer_for_ms: Option<u64>,
    /// Who has not read the queues that are to go, if somebody has not.
    pub blocked: Option<Unread>,
    /// The groups with members that read the topic.
    pub groups: Vec<QueueGroup>,
    /// What the topic goes by.
    pub settings: QueueSettings,
    /// The latest decisions, oldest first.
    pub decisions: Vec<Decision>,
}

/// Records of a queue that a group has not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unread {
    /// The group.
    pub group: String,
    /// The queue.
    pub queue: u32,
    /// How many records.
    pub records: u64,
}

/// A group that reads a topic in queue mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueGroup {
    /// The group.
    pub group: String,
    /// Its members that read the topic.
    pub instances: u32,
    /// Whether the counts follow it, if it is the largest.
    pub counts: bool,
    /// Records of the topic that it has not read, those in queues that are not written any more included.
    pub unread: u64,
    /// The same by queue, rising, where there are any; at most 1,000 of all groups together.
    #[serde(default)]
    pub unread_in: Vec<QueueUnread>,
    /// How many further queues it has not read to the end.
    #[serde(default)]
    pub unread_left_out: u64,
}

/// Records of a queue that are unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueUnread {
    /// The queue.
    pub queue: u32,
    /// How many records.
    pub records: u64,
}

/// The settings `elastic.queues.*` of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueSettings {
    /// Fewest queues.
    pub min: u32,
    /// Most queues.
    pub max: u32,
    /// How long after the read queue count the write queue count goes up, milliseconds.
    pub write_delay_ms: u64,
    /// How long after the write queue count the read queue count may go down, milliseconds.
    pub drain_delay_ms: u64,
    /// How long there must be fewer instances before the write queue count goes down, milliseconds.
    pub shrink_grace_ms: u64,
    /// How long after its last commit a group without members still counts, milliseconds.
    pub group_ttl_ms: u64,
}

/// An operator's wish for a number of queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueWish {
    /// How many; `None`: as many as the largest group has instances.
    pub count: Option<u32>,
}
