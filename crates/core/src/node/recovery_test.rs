//! Snapshot and replay lead back to the state they were taken from, from every point on.

use super::super::tests::{apply_all, at, batch, fresh, options, wish};
use super::super::{AlterConfig, AlterOp, TopicRef};
use super::*;
use crate::group::{self, Caller, CommitPartition, ConsumerHeartbeat, Effects, OffsetCommit};
use crate::ids::Lsn;
use crate::log::Append;
use crate::meta::{Resource, Topic, samples};
use proptest::prelude::*;

/// What the store keeps.
#[derive(Clone, Debug)]
enum Entry {
    State(Vec<u8>),
    Batch(LogId, Offset, BatchFacts),
}

/// What a client or an operator does. Numbers pick among what exists.
#[derive(Clone, Debug)]
enum Action {
    Create {
        name: u8,
        partitions: i32,
    },
    Delete {
        name: u8,
    },
    Grow {
        name: u8,
        by: i32,
    },
    Configure {
        name: u8,
        bytes: u16,
    },
    ConfigureBroker {
        on: bool,
        bytes: u16,
    },
    ConfigureGroup {
        group: u8,
        ms: u16,
    },
    Produce {
        name: u8,
        producer: i64,
        epoch: i16,
        count: i32,
    },
    DeleteRecords {
        name: u8,
        back: i64,
    },
    InitProducer,
    Join {
        group: u8,
        member: u8,
        leaves: bool,
    },
    Commit {
        group: u8,
        name: u8,
        offset: i64,
    },
    Retain {
        ms: u64,
    },
}

fn any_action() -> impl Strategy<Value = Action> {
    let name = || 0..4u8;
    prop_oneof![
        3 => (name(), 1..4i32).prop_map(|(name, partitions)| Action::Create { name, partitions }),
        1 => name().prop_map(|name| Action::Delete { name }),
        1 => (name(), 1..3i32).prop_map(|(name, by)| Action::Grow { name, by }),
        1 => (name(), any::<u16>()).prop_map(|(name, bytes)| Action::Configure { name, bytes }),
        1 => (any::<bool>(), any::<u16>()).prop_map(|(on, bytes)| Action::ConfigureBroker { on, bytes }),
        1 => (0..3u8, 5_000..u16::MAX).prop_map(|(group, ms)| Action::ConfigureGroup { group, ms }),
        12 => (name(), -1..4i64, 0..2i16, 1..4i32)
            .prop_map(|(name, producer, epoch, count)| Action::Produce { name, producer, epoch, count }),
        1 => (name(), 0..6i64).prop_map(|(name, back)| Action::DeleteRecords { name, back }),
        1 => Just(Action::InitProducer),
        2 => (0..2u8, 0..3u8, any::<bool>())
            .prop_map(|(group, member, leaves)| Action::Join { group, member, leaves }),
        3 => (0..3u8, name(), 0..9i64)
            .prop_map(|(group, name, offset)| Action::Commit { group, name, offset }),
        1 => (0..10_000_000u64).prop_map(|ms| Action::Retain { ms }),
    ]
}

/// A node with its journal.
struct Run {
    node: Node,
    journal: Vec<Entry>,
    seed: u8,
}

impl Run {
    fn new() -> Self {
        Self {
            node: Node::new(options(&[])).unwrap(),
            journal: Vec::new(),
            seed: 0,
        }
    }

    fn journal(&mut self, commands: Result<Vec<Command>, Refused>) {
        for command in commands.unwrap_or_default() {
            let effects = self.node.apply(&command);
            self.journal.push(Entry::State(command.encode()));
            let lsn = Lsn(self.journal.len() as u64);
            self.node.journaled(lsn, effects);
            let _ = self.node.committed(lsn, &[]);
        }
    }

    fn act(&mut self, action: &Action) {
        let topic = |name: &u8| format!("topic-{name}");
        let alter = |name: &str, value: String| {
            vec![AlterConfig {
                name: name.to_owned(),
                op: AlterOp::Set,
                value: Some(value),
            }]
        };
        let commands = match action {
            Action::Create { name, partitions } => {
                self.seed += 1;
                self.node
                    .create_topic(at(0), &wish(&topic(name), *partitions, &[]), fresh(self.seed))
            }
            Action::Delete { name } => self.node.delete_topic(at(5), TopicRef::Name(&topic(name))),
            Action::Grow { name, by } => {
                let count = self.node.topic_by_name(&topic(name)).map_or(1, Topic::partitions);
                self.node.create_partitions(&topic(name), count + by, None)
            }
            Action::Configure { name, bytes } => {
                let resource = Resource::Topic(topic(name));
                self.node
                    .incremental_alter_configs(&resource, &alter("max.message.bytes", bytes.to_string()))
            }
            Action::ConfigureBroker { on, bytes } => {
                let resource = if *on {
                    Resource::Broker
                } else {
                    Resource::ClusterDefault
                };
                self.node
                    .incremental_alter_configs(&resource, &alter("message.max.bytes", bytes.to_string()))
            }
            Action::ConfigureGroup { group, ms } => {
                let resource = Resource::Group(format!("group-{group}"));
                let changes = alter("consumer.session.timeout.ms", ms.to_string());
                self.node.incremental_alter_configs(&resource, &changes)
            }
            Action::Produce {
                name,
                producer,
                epoch,
                count,
            } => return self.produce(&topic(name), *producer, *epoch, *count),
            Action::DeleteRecords { name, back } => {
                let log = self
                    .node
                    .topic_by_name(&topic(name))
                    .and_then(|topic| topic.log(0));
                let Some(log) = log else { return };
                let end = self.node.log(log).map_or(0, Log::high_watermark);
                self.node
                    .delete_records(log, end - back)
                    .map(|(commands, _)| commands)
            }
            Action::Join {
                group,
                member,
                leaves,
            } => return self.join(*group, *member, *leaves),
            Action::Commit { group, name, offset } => return self.commit(*group, &topic(name), *offset),
            Action::InitProducer => self.node.init_producer_id(None).map(|(_, commands)| commands),
            Action::Retain { ms } => Ok(self.node.retention(at(*ms), &[])),
        };
        self.journal(commands);
        let effects = self.node.topics_changed(at(1));
        self.journal_group(effects);
    }

    /// The changes are made already; making them again does no harm.
    fn journal_group(&mut self, effects: Effects) {
        for change in effects.changes {
            let command = Command::Group(change);
            if self.journal.len().is_multiple_of(2) {
                self.node.apply(&command);
            }
            self.journal.push(Entry::State(command.encode()));
        }
    }

    fn join(&mut self, group: u8, member: u8, leaves: bool) {
        let request = ConsumerHeartbeat {
            version: 1,
            group_id: format!("group-{group}"),
            member_id: format!("member-{member}"),
            member_epoch: if leaves { -1 } else { 0 },
            rebalance_timeout_ms: 60_000,
            topic_names: Some(vec!["topic-0".to_owned(), "topic-1".to_owned()]),
            owned: Some(Vec::new()),
            ..ConsumerHeartbeat::default()
        };
        let (groups, topics) = self.node.groups_mut();
        let (_, effects) =
            groups.consumer_heartbeat(at(1), &topics, fresh(member), &Caller::default(), &request);
        self.journal_group(effects);
    }

    /// A commit from outside the group, as tools do it.
    fn commit(&mut self, group: u8, topic: &str, offset: i64) {
        let partition = CommitPartition {
            partition: 0,
            offset,
            leader_epoch: -1,
            metadata: None,
        };
        let request = OffsetCommit {
            version: 8,
            group_id: format!("group-{group}"),
            generation_or_epoch: -1,
            retention_ms: -1,
            topics: vec![(group::TopicRef::Name(topic.to_owned()), vec![partition])],
            ..OffsetCommit::default()
        };
        let (groups, topics) = self.node.groups_mut();
        let (_, effects) = groups.commit(at(1), &topics, &Caller::default(), &request);
        self.journal_group(effects);
    }

    fn produce(&mut self, topic: &str, producer_id: i64, producer_epoch: i16, count: i32) {
        let Some(log) = self.node.topic_by_name(topic).and_then(|topic| topic.log(0)) else {
            return;
        };
        let known = self.node.log(log).unwrap().producers();
        let last = known
            .iter()
            .find(|known| known.producer_id == producer_id && known.epoch == producer_epoch);
        let base_sequence = last.map_or(0, |last| last.last_sequence + 1);
        let facts = BatchFacts {
            producer_id,
            producer_epoch,
            base_sequence,
            ..batch(count)
        };
        if let Ok(Append::New { base_offset, .. }) = self.node.append(at(1), log, &facts) {
            self.journal.push(Entry::Batch(log, base_offset, facts));
            let lsn = Lsn(self.journal.len() as u64);
            self.node.appended(log, lsn);
            let _ = self.node.committed(lsn, &[(log, base_offset + i64::from(count))]);
        }
    }
}

fn replay(node: &mut Node, entries: &[Entry]) {
    for entry in entries {
        match entry {
            Entry::State(bytes) => {
                node.replay_state(bytes).unwrap();
            }
            Entry::Batch(log, base_offset, facts) => node.replay_batch(*log, *base_offset, facts).unwrap(),
        }
    }
}

/// What a node holds beyond its snapshot and would have to hold after any recovery.
fn derived(node: &Node) -> (usize, Vec<String>, Vec<[Offset; 2]>) {
    let settings = node.logs().map(|log| format!("{:?}", log.settings())).collect();
    (
        node.producers_total,
        settings,
        node.logs()
            .map(|log| [log.start(), log.high_watermark()])
            .collect(),
    )
}

proptest! {
    // Every case restores and replays from each of its snapshots.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_snapshot_and_the_journal_behind_it_give_the_same_node(actions in prop::collection::vec(any_action(), 1..60)) {
        let mut run = Run::new();
        let mut snapshots = vec![(0, run.node.snapshot())];
        for action in &actions {
            run.act(action);
            snapshots.push((run.journal.len(), run.node.snapshot()));
        }
        for (behind, snapshot) in &snapshots {
            let mut node = Node::restore(options(&[]), snapshot).unwrap();
            prop_assert_eq!(&node.snapshot(), snapshot, "a snapshot restores to itself");
            replay(&mut node, &run.journal[*behind..]);
            prop_assert_eq!(node.snapshot(), run.node.snapshot());
            prop_assert_eq!(derived(&node), derived(&run.node));
        }
    }

    #[test]
    fn applying_is_total_and_deterministic(commands in prop::collection::vec(samples::any_command(), 0..40)) {
        let (mut a, mut b) = (Run::new().node, Run::new().node);
        let effects = apply_all(&mut a, &commands);
        let decoded: Vec<Command> = commands.iter().map(|c| Command::decode(&c.encode()).unwrap()).collect();
        prop_assert_eq!(effects, apply_all(&mut b, &decoded));
        prop_assert_eq!(a.snapshot(), b.snapshot());
    }

    #[test]
    fn damaged_snapshots_are_errors_and_never_panics(actions in prop::collection::vec(any_action(), 1..20), at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut run = Run::new();
        actions.iter().for_each(|action| run.act(action));
        let mut bytes = run.node.snapshot();
        let at = at.index(bytes.len());
        prop_assert!(Node::restore(options(&[]), &bytes[..at]).is_err());
        bytes[at] = value;
        let _ = Node::restore(options(&[]), &bytes);
    }
}

/// A node with one of everything, and a topic in which these producers have written two records each, one after the other.
fn sample(producers: &[i64]) -> Node {
    let mut node = Node::new(options(&[])).unwrap();
    for (command, _) in samples::every_kind() {
        node.apply(&command);
    }
    let create = Command::CreateTopic {
        name: "a".to_owned(),
        id: crate::ids::TopicId(*b"ABCDEFGHIJKLMNOP"),
        logs: vec![LogId(302)],
        configs: Values::new(),
        created_ms: 1,
    };
    node.apply(&create);
    for (base, producer_id) in (0..).step_by(2).zip(producers) {
        node.replay_batch(LogId(302), base, &two_records(*producer_id))
            .unwrap();
    }
    node
}

fn two_records(producer_id: i64) -> BatchFacts {
    BatchFacts {
        producer_id,
        producer_epoch: 1,
        base_sequence: 0,
        max_timestamp: 9,
        ..batch(2)
    }
}

#[test]
fn a_snapshot_has_the_bytes_of_the_format_page() {
    let hex: Vec<String> = sample(&[4])
        .snapshot()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let lines: Vec<String> = hex.chunks(24).map(|line| line.join(" ")).collect();
    let page = include_str!("../../../../docs/format/state.md");
    assert!(
        page.contains(&lines.join("\n")),
        "docs/format/state.md lacks these bytes:\n{}",
        lines.join("\n")
    );
}

/// The bytes that the first version wrote of a node in which producer 5 has written before producer 4: without queues, without
/// a mark on batches, and with the producers in the order of their ids.
#[rustfmt::skip]
const VERSION_1: &[u8] = &[
    0x01,
    0x48, 0xaf, 0x02, 0xa0, 0x1f, 0x01, 0x84, 0xa0, 0xab, 0xfe, 0xf9, 0x62, 0x01, 0x01, 0x61,
    b'A', b'B', b'C', b'D', b'E', b'F', b'G', b'H', b'I', b'J', b'K', b'L', b'M', b'N', b'O', b'P',
    0x01, 0xae, 0x02, 0x00, 0x02, 0x00, 0x01, 0x10,
    b'l', b'o', b'g', b'.', b'r', b'e', b't', b'e', b'n', b't', b'i', b'o', b'n', b'.', b'm', b's',
    0x02, b'-', b'1', 0x00, 0x01, 0x06, b'o', b'r', b'd', b'e', b'r', b's', 0x82, 0xa0, 0xab, 0xfe, 0xf9, 0x62,
    0x28, 0x01, 0xae, 0x02,
    b'A', b'B', b'C', b'D', b'E', b'F', b'G', b'H', b'I', b'J', b'K', b'L', b'M', b'N', b'O', b'P',
    0x00, 0x00, 0x08, 0x00, 0x02,
    0x08, 0x02, 0x01, 0x00, 0x02, 0x04, 0x02, 0x12,
    0x0a, 0x02, 0x01, 0x00, 0x02, 0x00, 0x02, 0x12,
    0x04, 0x01, 0x00, 0x00, 0x00,
];

#[test]
fn a_snapshot_of_the_first_version_is_read() {
    let mut node = Node::restore(options(&[]), VERSION_1).unwrap();
    assert_eq!(node.snapshot(), sample(&[5, 4]).snapshot());
    assert_ne!(
        node.snapshot(),
        sample(&[4, 5]).snapshot(),
        "who wrote last is known"
    );
    let again = node.append(at(1), LogId(302), &two_records(4)).unwrap();
    assert!(
        matches!(again, Append::Duplicate { base_offset: 2, .. }),
        "{again:?}"
    );
    for cut in 0..VERSION_1.len() {
        assert!(Node::restore(options(&[]), &VERSION_1[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_newer_snapshot_says_so() {
    let error = Node::restore(options(&[]), &[3]).unwrap_err();
    assert!(error.to_string().contains("start a newer version"), "{error}");
}

#[test]
fn batches_of_logs_that_do_not_exist_are_errors() {
    let mut node = Node::new(options(&[])).unwrap();
    let error = node.replay_batch(LogId(7), 0, &batch(1)).unwrap_err();
    assert_eq!(error, ReplayError::UnknownLog(LogId(7)));
    assert!(matches!(node.replay_state(&[1, 99]), Err(ReplayError::Codec(_))));
}
