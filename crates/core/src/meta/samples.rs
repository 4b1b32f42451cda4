//! Commands for tests: one of every kind for the format page, and any at all for properties.

use super::{Command, Resource};
use crate::config::Values;
use crate::cursor::{Cursor, Plain};
use crate::group::GroupChange;
use crate::ids::{LogId, TopicId};
use crate::queues::codec_samples::{any_counts, any_decision};
use crate::queues::{Decision, Kind, Phase, Queues, Why};
use proptest::prelude::*;

fn values(pairs: &[(&str, &str)]) -> Values {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// One command of every kind, with the words that the format page has for it.
pub(crate) fn every_kind() -> Vec<(Command, &'static str)> {
    let id = TopicId(*b"0123456789abcdef");
    let set = |resource, configs: &[(&str, &str)]| Command::SetConfigs {
        resource,
        configs: values(configs),
    };
    vec![
        (
            Command::CreateTopic {
                name: "orders".into(),
                id,
                logs: vec![LogId(7), LogId(300)],
                configs: values(&[("retention.ms", "60000")]),
                created_ms: 1_700_000_000_000,
            },
            "CreateTopic",
        ),
        (
            Command::DeleteTopic {
                id,
                deleted_ms: 1_700_000_000_001,
            },
            "DeleteTopic",
        ),
        (
            Command::CreatePartitions {
                id,
                logs: vec![LogId(301)],
            },
            "CreatePartitions",
        ),
        (
            set(Resource::Topic("orders".into()), &[("cleanup.policy", "compact")]),
            "SetConfigs of a topic",
        ),
        (set(Resource::ClusterDefault, &[]), "SetConfigs of all brokers"),
        (
            set(Resource::Broker, &[("log.retention.ms", "-1")]),
            "SetConfigs of the broker",
        ),
        (
            set(Resource::Group("billing".into()), &[]),
            "SetConfigs of a group",
        ),
        (
            Command::AdvanceLogStart {
                log: LogId(7),
                offset: 1_000,
            },
            "AdvanceLogStart",
        ),
        (
            Command::AllocateProducerIds { upto: 2_000 },
            "AllocateProducerIds",
        ),
        (
            Command::Group(GroupChange::Gone {
                group: "billing".into(),
            }),
            "Group",
        ),
        (
            Command::SetRetentionClock {
                clock_ms: 1_700_000_000_002,
            },
            "SetRetentionClock",
        ),
        (
            Command::SetQueues {
                id,
                queues: Some(Queues {
                    phase: Phase::Draining,
                    read: 6,
                    ..Queues::at_rest(3, 1_700_000_000_003)
                }),
                decision: Box::new(Decision {
                    at_ms: 1_700_000_000_003,
                    kind: Kind::WriteDown,
                    why: Why::LargestGroup {
                        group: "billing".into(),
                        instances: 3,
                    },
                    before: (6, 6),
                    after: (3, 6),
                    goal: 3,
                    wait_ms: 300_000,
                }),
            },
            "SetQueues",
        ),
        (
            Command::Addressed {
                log: LogId(7),
                partition: 40,
            },
            "Addressed",
        ),
    ]
}

fn any_values() -> impl Strategy<Value = Values> {
    prop::collection::btree_map("[a-z.]{1,12}", ".{0,12}", 0..4)
}

fn any_resource() -> impl Strategy<Value = Resource> {
    prop_oneof![
        "[a-z]{0,8}".prop_map(Resource::Topic),
        Just(Resource::ClusterDefault),
        Just(Resource::Broker),
        ".{0,8}".prop_map(Resource::Group),
    ]
}

fn any_group_change() -> impl Strategy<Value = GroupChange> {
    let partition = || (any::<[u8; 16]>().prop_map(TopicId), any::<i32>());
    let cursor = (partition(), any::<i64>(), ".{0,8}").prop_map(|((topic, partition), offset, metadata)| {
        (
            topic,
            partition,
            Cursor::Plain(Plain {
                offset,
                metadata,
                ..Plain::default()
            }),
        )
    });
    prop_oneof![
        ("[a-c]", prop::collection::vec(cursor, 0..3))
            .prop_map(|(group, cursors)| GroupChange::Cursors { group, cursors }),
        ("[a-c]", prop::collection::vec(partition(), 0..3))
            .prop_map(|(group, partitions)| GroupChange::CursorsGone { group, partitions }),
        "[a-c]".prop_map(|group| GroupChange::Gone { group }),
    ]
}

/// Any command, sensible or not.
pub(crate) fn any_command() -> impl Strategy<Value = Command> {
    let id = || any::<[u8; 16]>().prop_map(TopicId);
    let logs = || prop::collection::vec(any::<u32>().prop_map(LogId), 0..6);
    prop_oneof![
        (".{0,20}", id(), logs(), any_values(), any::<i64>()).prop_map(
            |(name, id, logs, configs, created_ms)| {
                Command::CreateTopic {
                    name,
                    id,
                    logs,
                    configs,
                    created_ms,
                }
            }
        ),
        (id(), any::<i64>()).prop_map(|(id, deleted_ms)| Command::DeleteTopic { id, deleted_ms }),
        (id(), logs()).prop_map(|(id, logs)| Command::CreatePartitions { id, logs }),
        (any_resource(), any_values())
            .prop_map(|(resource, configs)| Command::SetConfigs { resource, configs }),
        (id(), proptest::option::of(any_counts()), any_decision()).prop_map(|(id, queues, decision)| {
            Command::SetQueues {
                id,
                queues,
                decision: Box::new(decision),
            }
        }),
        (any::<u32>(), any::<i32>()).prop_map(|(log, partition)| Command::Addressed {
            log: LogId(log),
            partition
        }),
        (any::<u32>(), any::<i64>()).prop_map(|(log, offset)| Command::AdvanceLogStart {
            log: LogId(log),
            offset
        }),
        any::<i64>().prop_map(|upto| Command::AllocateProducerIds { upto }),
        any_group_change().prop_map(Command::Group),
        any::<i64>().prop_map(|clock_ms| Command::SetRetentionClock { clock_ms }),
    ]
}
