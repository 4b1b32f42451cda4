//! What clients ask and brokers answer, as values. The bytes of the protocol have their own tests; here the meaning
//! counts. Record batches alone are bytes, as they are stored.

use anabranch_core::group::{
    CommitAnswer, CommitPartition, ConsumerHeartbeat, ConsumerHeartbeatAnswer, FetchAnswer, Heartbeat,
    JoinAnswer, JoinGroup, LeaveAnswer, LeaveGroup, OffsetCommit, OffsetFetch, SyncAnswer, SyncGroup,
};
use anabranch_core::ids::{Offset, TopicId};
use anabranch_core::node::{CreateTopic, QueueOrder};
/// How a producer names a topic: by name up to version 12 of Produce, by id later.
pub use anabranch_engine::fetch::Place;
use anabranch_wire::ErrorCode;
use bytes::Bytes;

/// A partition of a topic's one incarnation.
pub type Tp = (TopicId, i32);

/// A topic as Metadata shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSeen {
    /// Name.
    pub name: String,
    /// Identity.
    pub id: TopicId,
    /// Partition count.
    pub partitions: i32,
}

/// One partition of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The partition.
    pub tp: Tp,
    /// From where.
    pub offset: Offset,
}

/// What a fetch got of one partition.
#[derive(Clone, Debug)]
pub struct Got {
    /// The partition.
    pub tp: Tp,
    /// From where it was asked for.
    pub asked: Offset,
    /// What went wrong, if so.
    pub error: ErrorCode,
    /// First offset that exists; -1 with an error.
    pub start: Offset,
    /// First offset that is not visible; -1 with an error.
    pub high_watermark: Offset,
    /// Whole batches.
    pub batches: Vec<Bytes>,
}

/// Which offset ListOffsets asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The first that exists.
    Earliest,
    /// The first that is not visible yet.
    Latest,
}

/// A request.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the fields are those of Kafka's requests of the same name"
)]
pub enum Request {
    Metadata,
    InitProducerId,
    Produce {
        place: Place,
        partition: i32,
        batch: Bytes,
    },
    Fetch {
        wants: Vec<Want>,
        wait_ms: u64,
        bytes_max: usize,
    },
    ListOffsets {
        tp: Tp,
        edge: Edge,
    },
    Join(JoinGroup),
    Sync(SyncGroup),
    Heartbeat(Heartbeat),
    Leave(LeaveGroup),
    ConsumerHeartbeat(ConsumerHeartbeat),
    OffsetCommit(OffsetCommit),
    OffsetFetch(OffsetFetch),
    OffsetDelete {
        group: String,
        topic: String,
        partitions: Vec<i32>,
    },
    CreateTopic(CreateTopic),
    DeleteTopic {
        name: String,
    },
    CreatePartitions {
        name: String,
        count: i32,
    },
    DeleteRecords {
        tp: Tp,
        offset: Offset,
    },
    OrderQueues {
        topic: String,
        order: QueueOrder,
    },
    AlterConfig {
        topic: String,
        key: &'static str,
        value: Option<String>,
    },
}

impl Request {
    /// The gist of it, for the trace.
    pub fn brief(&self) -> String {
        let what = match self {
            Self::Fetch { wants, .. } => {
                let one = |want: &Want| format!("{}@{}", want.tp.1, want.offset);
                wants.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Self::OffsetCommit(commit) => {
                let all = commit.topics.iter().flat_map(|(_, partitions)| partitions);
                let one = |of: &CommitPartition| format!("{}@{}", of.partition, of.offset);
                let offsets = all.map(one).collect::<Vec<_>>().join(", ");
                format!(
                    "{} epoch {}: {offsets}",
                    commit.member_id, commit.generation_or_epoch
                )
            }
            Self::Produce { partition, .. } => partition.to_string(),
            _ => return self.name().to_owned(),
        };
        format!("{} {what}", self.name())
    }

    /// Kafka's name of it.
    fn name(&self) -> &'static str {
        match self {
            Self::Metadata => "Metadata",
            Self::InitProducerId => "InitProducerId",
            Self::Produce { .. } => "Produce",
            Self::Fetch { .. } => "Fetch",
            Self::ListOffsets { .. } => "ListOffsets",
            Self::Join(_) => "JoinGroup",
            Self::Sync(_) => "SyncGroup",
            Self::Heartbeat(_) => "Heartbeat",
            Self::Leave(_) => "LeaveGroup",
            Self::ConsumerHeartbeat(_) => "ConsumerGroupHeartbeat",
            Self::OffsetCommit(_) => "OffsetCommit",
            Self::OffsetFetch(_) => "OffsetFetch",
            Self::OffsetDelete { .. } => "OffsetDelete",
            Self::CreateTopic(_) => "CreateTopics",
            Self::DeleteTopic { .. } => "DeleteTopics",
            Self::CreatePartitions { .. } => "CreatePartitions",
            Self::DeleteRecords { .. } => "DeleteRecords",
            // An order of the administration API.
            Self::OrderQueues { .. } => "OrderQueues",
            Self::AlterConfig { .. } => "IncrementalAlterConfigs",
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the fields are those of Kafka's answers of the same name"
)]
pub enum Answer {
    Metadata(Vec<TopicSeen>),
    InitProducerId {
        id: i64,
        epoch: i16,
    },
    /// The topic's id is told in any case, for the oracles.
    Produced {
        topic: TopicId,
        base_offset: Offset,
        log_start: Offset,
    },
    Fetched(Vec<Got>),
    Offset {
        offset: Offset,
    },
    Joined(JoinAnswer),
    /// With the ids of the topics that the assignment may name.
    Synced(SyncAnswer, Vec<(String, TopicId)>),
    Heartbeat(ErrorCode),
    Left(LeaveAnswer),
    ConsumerHeartbeat(ConsumerHeartbeatAnswer),
    Committed(CommitAnswer),
    Offsets(FetchAnswer),
    /// A change is made; of a deletion of records, the low watermark.
    Done {
        low_watermark: Option<Offset>,
    },
    /// The request as a whole was refused.
    Refused(ErrorCode),
}

impl Answer {
    /// The gist of it, for the trace.
    pub fn brief(&self) -> String {
        match self {
            Self::Metadata(topics) => format!("{} topics", topics.len()),
            Self::Fetched(all) => {
                let one = |got: &Got| {
                    format!(
                        "{}@{}:{}b {:?}",
                        got.tp.1,
                        got.asked,
                        got.batches.len(),
                        got.error
                    )
                };
                all.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Self::Joined(answer) => {
                format!(
                    "joined {:?} as {} at {}",
                    answer.error, answer.member_id, answer.generation_id
                )
            }
            Self::Synced(answer, _) => format!("synced {:?}", answer.error),
            other => format!("{other:?}"),
        }
    }
}
