//! Requests and answers of the coordinator, as plain values: Kafka's messages without their versions and encodings.

use bytes::Bytes;

use anabranch_wire::ErrorCode;

use super::elastic::ClientSoftware;
use crate::ids::{Offset, TopicId};

/// Names a parked request for the server; chosen by the server, one per request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Names a client's connection; chosen by the server, never used twice in one run of the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub u64);

/// Who sent a request: what is known of its connection, and the client id of its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Client id from the request header; empty if it had none.
    pub client_id: String,
    /// Address of the peer, as tools shall see it.
    pub host: String,
    /// The connection that the request came over.
    pub connection: Connection,
    /// What the client said on this connection about its software.
    pub software: Option<ClientSoftware>,
}

/// JoinGroup, version 0 to 9.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinGroup {
    /// Version of the request: from 4 on a new dynamic member is asked to come again with the id it is given.
    pub version: i16,
    /// Group id.
    pub group_id: String,
    /// Session timeout, milliseconds.
    pub session_timeout_ms: i32,
    /// Rebalance timeout, milliseconds; -1 in version 0, which has none: then the session timeout counts.
    pub rebalance_timeout_ms: i32,
    /// Member id; empty for a new member.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Protocol type: "consumer", "connect", ...
    pub protocol_type: String,
    /// Protocols with the member's metadata, best first.
    pub protocols: Vec<(String, Bytes)>,
}

/// Answer to JoinGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinAnswer {
    /// Error, or none.
    pub error: ErrorCode,
    /// Generation of this member; -1 with an error.
    pub generation_id: i32,
    /// Protocol type.
    pub protocol_type: Option<String>,
    /// The chosen protocol.
    pub protocol_name: Option<String>,
    /// Member id of the leader; empty where the broker assigns.
    pub leader: String,
    /// Whether a leader may skip its plan (version 9).
    pub skip_assignment: bool,
    /// Member id.
    pub member_id: String,
    /// All members, for the leader only.
    pub members: Vec<JoinedMember>,
}

/// A member as its leader sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedMember {
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Its metadata for the chosen protocol.
    pub metadata: Bytes,
}

/// SyncGroup, version 0 to 5.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncGroup {
    /// Group id.
    pub group_id: String,
    /// Generation from JoinGroup.
    pub generation_id: i32,
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Protocol type (version 5), checked if given.
    pub protocol_type: Option<String>,
    /// Protocol (version 5), checked if given.
    pub protocol_name: Option<String>,
    /// The leader's plan: assignment by member id.
    pub assignments: Vec<(String, Bytes)>,
}

/// Answer to SyncGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncAnswer {
    /// Error, or none.
    pub error: ErrorCode,
    /// Protocol type.
    pub protocol_type: Option<String>,
    /// Protocol.
    pub protocol_name: Option<String>,
    /// The member's assignment; empty with an error.
    pub assignment: Bytes,
}

/// An answer that goes out under its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request it answers.
    pub token: Token,
    /// The answer.
    pub answer: Answer,
}

/// An answer to a request that may have been parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To JoinGroup.
    Join(JoinAnswer),
    /// To SyncGroup.
    Sync(SyncAnswer),
}

/// Heartbeat, version 0 to 4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Group id.
    pub group_id: String,
    /// Generation.
    pub generation_id: i32,
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
}

/// LeaveGroup, version 0 to 5; the older versions name one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveGroup {
    /// Group id.
    pub group_id: String,
    /// Who leaves.
    pub members: Vec<Leaver>,
}

/// One member that leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaver {
    /// Member id; may be empty if the instance id is given (removal by an operator).
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
}

/// Answer to LeaveGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaveAnswer {
    /// Error for the whole request.
    pub error: ErrorCode,
    /// Per member: as asked, with its error. Versions before 3 answer with the error of the only one.
    pub members: Vec<(Leaver, ErrorCode)>,
}

/// ConsumerGroupHeartbeat, version 0 and 1 (KIP-848).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerHeartbeat {
    /// Version of the request: from 1 on the client makes its member id.
    pub version: i16,
    /// Group id.
    pub group_id: String,
    /// Member id; empty in version 0 when joining.
    pub member_id: String,
    /// Member epoch: 0 joins, -1 leaves, -2 leaves for a while (static member).
    pub member_epoch: i32,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Rack of the client.
    pub rack_id: Option<String>,
    /// Rebalance timeout, milliseconds; -1: unchanged.
    pub rebalance_timeout_ms: i32,
    /// Subscribed names; `None`: unchanged.
    pub topic_names: Option<Vec<String>>,
    /// Subscribed regular expression; `None`: unchanged, empty: none.
    pub topic_regex: Option<String>,
    /// Server assignor; `None`: unchanged.
    pub assignor: Option<String>,
    /// What the member still owns; `None`: unchanged since its last heartbeat.
    pub owned: Option<Vec<(TopicId, Vec<i32>)>>,
}

/// Answer to ConsumerGroupHeartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerHeartbeatAnswer {
    /// Member id.
    pub member_id: String,
    /// Member epoch.
    pub member_epoch: i32,
    /// When to heartbeat next, milliseconds.
    pub heartbeat_interval_ms: i32,
    /// The assignment; `None`: unchanged.
    pub assignment: Option<Vec<(TopicId, Vec<i32>)>>,
}

/// A topic in a request about offsets: by name, or by id in the newest versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicRef {
    /// By name.
    Name(String),
    /// By id.
    Id(TopicId),
}

/// OffsetCommit, version 1 to 10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCommit {
    /// Version of the request: members of the consumer protocol need 9.
    pub version: i16,
    /// Group id.
    pub group_id: String,
    /// Generation or member epoch; -1 from whoever assigns its partitions itself.
    pub generation_or_epoch: i32,
    /// Member id; empty without membership.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Retention that the client asks for (version 2 to 4), milliseconds; -1: the broker's.
    pub retention_ms: i64,
    /// What to commit, by topic.
    pub topics: Vec<(TopicRef, Vec<CommitPartition>)>,
}

/// One partition of an OffsetCommit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPartition {
    /// Partition.
    pub partition: i32,
    /// Offset of the next record wanted.
    pub offset: Offset,
    /// Leader epoch, or -1.
    pub leader_epoch: i32,
    /// The client's note.
    pub metadata: Option<String>,
}

/// Answer to OffsetCommit: per topic as asked, per partition its error.
pub type CommitAnswer = Vec<(TopicRef, Vec<(i32, ErrorCode)>)>;

/// One group of an OffsetFetch, version 1 to 10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetFetch {
    /// Group id.
    pub group_id: String,
    /// Member id (version 9), `None` or empty from outsiders.
    pub member_id: Option<String>,
    /// Member epoch (version 9); -1 without.
    pub member_epoch: i32,
    /// Which partitions; `None`: all that have a cursor.
    pub topics: Option<Vec<(TopicRef, Vec<i32>)>>,
}

/// Answer for one group of an OffsetFetch.
pub type FetchAnswer = Vec<(TopicRef, Vec<FetchedOffset>)>;

/// One partition of an OffsetFetch answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedOffset {
    /// Partition.
    pub partition: i32,
    /// Committed offset, -1 if there is none.
    pub offset: Offset,
    /// Leader epoch of the commit, -1 if unknown.
    pub leader_epoch: i32,
    /// The client's note.
    pub metadata: String,
    /// Error of the partition.
    pub error: ErrorCode,
}

/// Answer to OffsetDelete: per topic name, per partition its error.
pub type OffsetDeleteAnswer = Vec<(String, Vec<(i32, ErrorCode)>)>;
