//! The node as a whole; helpers for the tests of its parts.

use super::*;

/// A moment, `ms` after the start.
pub(super) fn at(ms: u64) -> Now {
    Now {
        mono_ms: 1_000_000 + ms,
        wall_ms: 1_700_000_000_000 + i64::try_from(ms).unwrap(),
    }
}

pub(super) fn options(configs: &[(&str, &str)]) -> Options {
    let configs = configs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Options {
        node_id: 1,
        cluster_id: "test-cluster".to_owned(),
        configs,
        started: at(0),
    }
}

pub(super) fn node(configs: &[(&str, &str)]) -> Node {
    Node::new(options(configs)).unwrap()
}

/// Applies the commands as one that is journaled next, and is durable when this returns.
pub(super) fn apply_all(node: &mut Node, commands: &[Command]) -> Vec<LogEffect> {
    let lsn = Lsn(node.state_lsn().0 + 1);
    let effects = commands.iter().flat_map(|command| node.apply(command)).collect();
    node.journaled(lsn, effects);
    node.committed(lsn, &[])
}

pub(super) fn fresh(seed: u8) -> [u8; 16] {
    [seed; 16]
}

pub(super) fn wish(name: &str, partitions: i32, configs: &[(&str, &str)]) -> CreateTopic {
    let configs = configs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())))
        .collect();
    CreateTopic {
        name: name.to_owned(),
        partitions,
        replication_factor: 1,
        assignments: Vec::new(),
        configs,
    }
}

/// Creates a topic and returns its logs.
pub(super) fn create(node: &mut Node, name: &str, partitions: i32, seed: u8) -> Vec<LogId> {
    let commands = node
        .create_topic(at(0), &wish(name, partitions, &[]), fresh(seed))
        .unwrap();
    apply_all(node, &commands);
    node.topic_by_name(name).unwrap().logs.clone()
}

pub(super) fn batch(count: i32) -> BatchFacts {
    BatchFacts {
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count,
        last_offset_delta: count - 1,
        base_timestamp: at(0).wall_ms,
        max_timestamp: at(0).wall_ms,
        size: 100,
        is_transactional: false,
    }
}

pub(super) fn sequenced(producer_id: i64, base_sequence: i32) -> BatchFacts {
    BatchFacts {
        producer_id,
        producer_epoch: 0,
        base_sequence,
        ..batch(1)
    }
}

#[test]
fn a_start_with_wrong_configurations_is_refused_by_name() {
    let unknown = Node::new(options(&[("log.retention.hour", "1")])).unwrap_err();
    assert!(
        unknown.message().contains("did you mean `log.retention.hours`?"),
        "{unknown}"
    );
    let bad = Node::new(options(&[("num.partitions", "0")])).unwrap_err();
    assert!(bad.message().contains("from 1 to 10000"), "{bad}");
}

#[test]
fn append_commit_fetch() {
    let mut node = node(&[]);
    let logs = create(&mut node, "orders", 2, 1);
    let log = logs[1];
    assert_eq!(node.log(log).map(Log::partition), Some(1));
    let first = node.append(at(0), log, &batch(3)).unwrap();
    assert_eq!(
        first,
        Append::New {
            log,
            base_offset: 0,
            leader_epoch: 0,
            log_append_time_ms: None
        }
    );
    node.appended(log, Lsn(17));
    assert_eq!(node.log(log).map(Log::last_append), Some(Lsn(17)));
    assert_eq!(
        node.fetch_bounds(log, 0),
        Ok(FetchBounds {
            start: 0,
            high_watermark: 0
        })
    );
    assert!(node.committed(Lsn(17), &[(log, 3), (LogId(999), 7)]).is_empty());
    assert_eq!(
        node.fetch_bounds(log, 3),
        Ok(FetchBounds {
            start: 0,
            high_watermark: 3
        })
    );
    assert_eq!(node.fetch_bounds(log, 4), Err(ErrorCode::OffsetOutOfRange));
    assert_eq!(
        node.fetch_bounds(logs[0], 0),
        Ok(FetchBounds {
            start: 0,
            high_watermark: 0
        })
    );
    assert_eq!(
        node.fetch_bounds(LogId(999), 0),
        Err(ErrorCode::UnknownTopicOrPartition)
    );
    assert_eq!(
        node.append(at(0), LogId(999), &batch(1)),
        Err(AppendError::UnknownLog)
    );
}

#[test]
fn deleted_topics_take_their_logs_along_and_log_ids_never_come_back() {
    let mut node = node(&[]);
    let logs = create(&mut node, "orders", 2, 1);
    node.append(at(0), logs[0], &sequenced(5, 0)).unwrap();
    assert_eq!(node.producers_total, 1);
    let commands = node.delete_topic(at(1), TopicRef::Name("orders")).unwrap();
    let effects = apply_all(&mut node, &commands);
    assert_eq!(
        effects,
        [LogEffect::Drop { log: logs[0] }, LogEffect::Drop { log: logs[1] }]
    );
    assert_eq!((node.logs().len(), node.producers_total), (0, 0));
    assert!(
        apply_all(&mut node, &commands).is_empty(),
        "a second time does nothing"
    );
    let again = create(&mut node, "orders", 1, 2);
    assert!(again[0] > logs[1]);
}

#[test]
fn configurations_take_effect_at_once_and_the_topic_is_stronger() {
    let mut node = node(&[("message.max.bytes", "99")]);
    let log = create(&mut node, "orders", 1, 1)[0];
    let too_large = |node: &mut Node| {
        matches!(
            node.append(at(0), log, &batch(1)),
            Err(AppendError::TooLarge { .. })
        )
    };
    assert!(
        too_large(&mut node),
        "the broker's configuration counts for the topic"
    );
    let set = |resource, key: &str, value: &str| {
        let configs = Values::from([(key.to_owned(), value.to_owned())]);
        Command::SetConfigs { resource, configs }
    };
    node.apply(&set(Resource::ClusterDefault, "message.max.bytes", "100"));
    assert!(!too_large(&mut node));
    node.apply(&set(
        Resource::Topic("orders".to_owned()),
        "max.message.bytes",
        "50",
    ));
    assert!(too_large(&mut node));
    node.apply(&set(Resource::ClusterDefault, "num.partitions", "4"));
    assert_eq!(node.settings().num_partitions, 4);
}

#[test]
fn new_partitions_are_logs_of_the_topic() {
    let mut node = node(&[]);
    create(&mut node, "orders", 1, 1);
    create(&mut node, "other", 1, 2);
    let commands = node.create_partitions("orders", 3, None).unwrap();
    apply_all(&mut node, &commands);
    let topic = node.topic_by_name("orders").unwrap();
    assert_eq!(topic.logs, [LogId(0), LogId(2), LogId(3)]);
    for (partition, log) in (0..).zip(&topic.logs) {
        let log = node.log(*log).unwrap();
        assert_eq!((log.partition(), log.topic()), (partition, topic.id));
    }
}

#[test]
fn when_producers_are_too_many_in_total_a_log_makes_room_among_its_own() {
    let mut node = node(&[]);
    let log = create(&mut node, "orders", 1, 1)[0];
    for id in 0..100 {
        node.append(at(0), log, &sequenced(id, 0)).unwrap();
    }
    node.producers_total = limits::PRODUCERS_TOTAL_MAX;
    node.append(at(0), log, &sequenced(100, 0)).unwrap();
    assert_eq!(
        node.log(log).map(Log::producer_count),
        Some(limits::PRODUCERS_PER_LOG_MIN)
    );
    assert_eq!(
        node.producers_total,
        limits::PRODUCERS_TOTAL_MAX - 100 + limits::PRODUCERS_PER_LOG_MIN
    );
}

#[test]
fn what_is_here_already_is_acknowledged_even_while_the_server_refuses() {
    let mut node = node(&[]);
    let log = create(&mut node, "t", 1, 1)[0];
    node.append(at(0), log, &sequenced(7, 0)).unwrap();
    node.appended(log, Lsn(3));
    let known = node.note_refused(at(1), log, &sequenced(7, 0));
    let duplicate = Append::Duplicate {
        base_offset: 0,
        log_append_time_ms: None,
        lsn: Lsn(3),
    };
    assert_eq!(known, Some(duplicate));
    assert_eq!(node.note_refused(at(1), log, &sequenced(7, 1)), None);
    assert_eq!(node.note_refused(at(1), log, &sequenced(8, 0)), None);
    assert!(
        node.append(at(2), log, &sequenced(8, 1)).is_err(),
        "the refused one must come first"
    );
    assert_eq!(node.note_refused(at(1), LogId(99), &sequenced(7, 0)), None);
}

#[test]
fn the_state_lsn_only_grows() {
    let mut node = node(&[]);
    node.journaled(Lsn(5), Vec::new());
    node.journaled(Lsn(3), Vec::new());
    assert_eq!(node.state_lsn(), Lsn(5));
}
