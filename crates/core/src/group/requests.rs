//! Test help: requests in one line.

use super::harness::subscription;
use super::*;
use crate::ids::TopicId;

/// A JoinGroup to group "g" of version 3, which needs no second try.
pub(crate) fn classic(member: &str, protocol: &str, topics: &[&str]) -> JoinGroup {
    JoinGroup {
        version: 3,
        group_id: "g".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        member_id: member.to_owned(),
        instance_id: None,
        protocol_type: "consumer".to_owned(),
        protocols: vec![(protocol.to_owned(), subscription(topics, &[], None))],
    }
}

/// A joining ConsumerGroupHeartbeat to group "g".
pub(crate) fn modern(member: &str, topics: &[&str]) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        version: 1,
        group_id: "g".to_owned(),
        member_id: member.to_owned(),
        member_epoch: 0,
        rebalance_timeout_ms: 20_000,
        topic_names: Some(topics.iter().map(|name| (*name).to_owned()).collect()),
        owned: Some(Vec::new()),
        ..ConsumerHeartbeat::default()
    }
}

/// A keep-alive at an epoch, with what the member owns if it says so.
pub(crate) fn alive(
    member: &str,
    member_epoch: i32,
    owned: Option<Vec<(TopicId, Vec<i32>)>>,
) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        version: 1,
        group_id: "g".to_owned(),
        member_id: member.to_owned(),
        member_epoch,
        rebalance_timeout_ms: -1,
        owned,
        ..ConsumerHeartbeat::default()
    }
}

/// A commit by nobody in particular to group "g".
pub(crate) fn simple(topic: TopicRef, partition: CommitPartition) -> OffsetCommit {
    OffsetCommit {
        version: 9,
        group_id: "g".into(),
        generation_or_epoch: -1,
        retention_ms: -1,
        topics: vec![(topic, vec![partition])],
        ..OffsetCommit::default()
    }
}

/// A partition and its offset in a commit.
pub(crate) fn at(partition: i32, offset: i64) -> CommitPartition {
    CommitPartition {
        partition,
        offset,
        leader_epoch: 3,
        metadata: None,
    }
}

/// Topic "t" by name.
pub(crate) fn t() -> TopicRef {
    TopicRef::Name("t".into())
}

/// An OffsetFetch of group "g".
pub(crate) fn fetch(
    member: Option<&str>,
    member_epoch: i32,
    topics: Option<Vec<(TopicRef, Vec<i32>)>>,
) -> OffsetFetch {
    OffsetFetch {
        group_id: "g".into(),
        member_id: member.map(str::to_owned),
        member_epoch,
        topics,
    }
}
