//! The engine on a simulated disk: what is journaled, what is shown when, and what comes back.

use std::path::Path;
use std::sync::Arc;

use anabranch_core::group::{self, CommitPartition, OffsetCommit};
use anabranch_core::ids::{LogId, Lsn, Now};
use anabranch_core::log::Log;
use anabranch_core::node::{CreateTopic, LogEffect, Options, TopicRef};
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Options as StoreOptions, Step, Store};
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::{BatchBuilder, BatchHeader};
use bytes::Bytes;

use crate::fetch::{Fetch, FetchError, Place, Source, Want, WantTopic};
use crate::slices::ScanCache;
use crate::{Engine, Outcome, Recovery, produce, tell_store};

pub(super) type Tested = Engine<Arc<Store>>;

pub(super) fn at(ms: u64) -> Now {
    Now {
        mono_ms: 1_000 + ms,
        wall_ms: 1_700_000_000_000 + i64::try_from(ms).unwrap(),
    }
}

pub(super) fn open(disk: &Arc<SimDisk>) -> Tested {
    let mut recovery = Recovery::new(Options {
        node_id: 1,
        cluster_id: "test".to_owned(),
        started: at(0),
        ..Options::default()
    })
    .unwrap();
    let options = StoreOptions {
        segment_bytes: 1 << 20,
        ..StoreOptions::default()
    };
    let store = Store::open_manual(
        Path::new("/data"),
        Arc::clone(disk) as Arc<_>,
        options,
        &mut recovery,
    );
    recovery.finish(at(0), Arc::new(store.unwrap()))
}

/// Commits all that is queued, as the commit thread and its listener do.
pub(super) fn commit(engine: &mut Tested) -> Vec<LogEffect> {
    while engine.store().commit_once() == Step::Committed {}
    let tails: Vec<_> = engine
        .node()
        .logs()
        .map(|log| (log.id(), log.next_offset()))
        .collect();
    let upto = engine.store().committed();
    engine.committed(upto, &tails)
}

fn create(engine: &mut Tested, configs: &[(&str, &str)]) -> LogId {
    let configs = configs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned())));
    let wish = CreateTopic {
        name: "t".to_owned(),
        partitions: 1,
        replication_factor: 1,
        assignments: Vec::new(),
        configs: configs.collect(),
    };
    let ((), outcome) = engine.update(at(1), |update| {
        let commands = update.node().create_topic(at(1), &wish, [7; 16]).unwrap();
        update.run(commands);
    });
    assert_eq!(outcome.after, engine.store().last());
    engine.node().topic_by_name("t").unwrap().logs[0]
}

pub(super) fn batch(records: usize, bytes: usize, producer: Option<(i64, i32)>) -> (BatchHeader, Bytes) {
    let mut builder = BatchBuilder::new();
    if let Some((id, sequence)) = producer {
        builder.producer(id, 0, sequence);
    }
    for _ in 0..records {
        builder.append(5, None, Some(&vec![b'x'; bytes]), &[]);
    }
    let bytes = builder.finish().unwrap();
    (BatchHeader::parse(&bytes).unwrap(), bytes)
}

fn append(engine: &mut Tested, log: LogId, records: usize) -> produce::Appended {
    let (header, bytes) = batch(records, 10, None);
    engine.append(at(2), log, &header, bytes).unwrap()
}

fn delete_upto(engine: &mut Tested, log: LogId, offset: i64) -> Outcome {
    let ((), outcome) = engine.update(at(3), |update| {
        let (commands, _) = update.node().delete_records(log, offset).unwrap();
        update.run(commands);
    });
    outcome
}

fn fetch(partition: i32, offset: i64, bytes_max: usize) -> Fetch {
    let want = Want {
        partition,
        leader_epoch: -1,
        offset,
        bytes_max,
    };
    Fetch {
        bytes_min: 1,
        bytes_max: 1 << 20,
        topics: vec![WantTopic {
            place: Place::Name("t".to_owned()),
            partitions: vec![want, want],
        }],
    }
}

#[test]
fn records_and_deletions_show_once_they_are_durable_and_a_crash_takes_back_only_what_nobody_saw() {
    let disk = Arc::new(SimDisk::new(1));
    let mut engine = open(&disk);
    let log = create(&mut engine, &[]);
    let appended = append(&mut engine, log, 10);
    assert_eq!((appended.base_offset, appended.log_start_offset), (0, 0));
    let look = fetch(0, 0, 1 << 20);
    assert!(
        look.finds_nothing(&look.look(engine.node())),
        "nothing is durable yet"
    );
    assert!(commit(&mut engine).is_empty());
    assert!(!look.finds_nothing(&look.look(engine.node())));

    let outcome = delete_upto(&mut engine, log, 4);
    assert_eq!(outcome.after, engine.store().last());
    assert_eq!(append(&mut engine, log, 1).log_start_offset, 0);
    assert!(
        look.look(engine.node())[0].is_ok(),
        "what is not durably gone is there"
    );
    drop(engine);
    let disk = Arc::new(disk.power_cycle(2));
    let mut engine = open(&disk);
    let start = |engine: &Tested| engine.node().log(log).map(Log::start);
    assert_eq!(start(&engine), Some(0));

    let _ = delete_upto(&mut engine, log, 6);
    let effects = commit(&mut engine);
    assert_eq!(effects, [LogEffect::Start { log, offset: 6 }]);
    tell_store(engine.store(), &effects);
    assert_eq!(
        look.look(engine.node())[0],
        Err(ErrorCode::OffsetOutOfRange),
        "gone, and told so"
    );
    drop(engine);
    let engine = open(&Arc::new(disk.power_cycle(3)));
    assert_eq!(start(&engine), Some(6));
}

#[test]
fn the_engine_says_which_logs_are_gone_and_the_store_hears_of_it_when_that_is_durable() {
    let mut engine = open(&Arc::new(SimDisk::new(1)));
    let log = create(&mut engine, &[]);
    append(&mut engine, log, 1);
    assert!(commit(&mut engine).is_empty());
    let ((), outcome) = engine.update(at(3), |update| {
        let commands = update.node().delete_topic(at(3), TopicRef::Name("t")).unwrap();
        update.run(commands);
    });
    assert_eq!(outcome.look_again, [log]);
    assert!(engine.committed(Lsn(outcome.after.0 - 1), &[]).is_empty());
    assert_eq!(engine.store().logs(), [log]);
    let effects = commit(&mut engine);
    assert_eq!(effects, [LogEffect::Drop { log }]);
    tell_store(engine.store(), &effects);
    assert!(engine.store().logs().is_empty());
}

#[test]
fn a_duplicate_is_acknowledged_even_while_batches_are_refused() {
    let mut engine = open(&Arc::new(SimDisk::new(1)));
    let log = create(&mut engine, &[("message.timestamp.type", "LogAppendTime")]);
    let (header, bytes) = batch(2, 10, Some((9, 0)));
    let first = engine.append(at(5), log, &header, bytes.clone()).unwrap();
    assert_eq!(first.log_append_time_ms, Some(at(5).wall_ms));
    let again = engine.append(at(6), log, &header, bytes).unwrap();
    assert_eq!(
        (again.base_offset, again.is_duplicate, again.after),
        (0, true, first.after)
    );
    let refused = engine.refuse(at(7), log, &header).unwrap();
    assert_eq!(refused, again);
    let (next, bytes) = batch(1, 10, Some((9, 2)));
    assert_eq!(engine.refuse(at(8), log, &next), None);
    assert!(commit(&mut engine).is_empty());
    let stored = engine.store().read(log, 0, 2, 1 << 20, true).unwrap();
    let stored = BatchHeader::parse(&stored[0]).unwrap();
    assert_eq!(stored.max_timestamp, at(5).wall_ms);
    assert!(engine.append(at(9), log, &next, bytes).is_ok());
}

#[test]
fn a_batch_of_a_compacted_topic_must_have_keys() {
    let mut engine = open(&Arc::new(SimDisk::new(1)));
    create(&mut engine, &[("cleanup.policy", "compact")]);
    let target = produce::target(engine.node(), TopicRef::Name("t"), 0).unwrap();
    let (_, bytes) = batch(1, 10, None);
    assert!(produce::check(&target, &bytes, true).is_err());
    let missing = |topic, partition| produce::target(engine.node(), topic, partition).unwrap_err();
    assert_eq!(
        missing(TopicRef::Name("t"), 1),
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(
        missing(TopicRef::Id(anabranch_core::ids::TopicId([1; 16])), 0),
        ErrorCode::UnknownTopicId
    );
}

#[test]
fn the_first_batch_is_read_whole_and_the_rest_obeys_the_limits() {
    let mut engine = open(&Arc::new(SimDisk::new(1)));
    let log = create(&mut engine, &[]);
    for _ in 0..3 {
        append(&mut engine, log, 1);
    }
    assert!(commit(&mut engine).is_empty());
    let read = |fetch: &Fetch| {
        let look = fetch.look(engine.node());
        fetch
            .read(engine.store(), &ScanCache::new(1 << 20), &look, Source::Memory)
            .unwrap()
    };
    let counts = |fetch: &Fetch| -> Vec<usize> {
        let batches = read(fetch);
        assert!(fetch.is_enough(&batches));
        batches
            .iter()
            .map(|all| all.as_ref().unwrap().batches.iter().map(headers).sum())
            .collect()
    };
    assert_eq!(counts(&fetch(0, 0, 1 << 20)), [3, 3]);
    assert_eq!(counts(&fetch(0, 0, 1)), [1, 0], "one, though it is too large");
    let narrow = Fetch {
        bytes_max: 1,
        ..fetch(0, 1, 1 << 20)
    };
    assert_eq!(counts(&narrow), [1, 0]);
    assert_eq!(
        narrow.bytes_expected(&narrow.look(engine.node())),
        Some(1),
        "the bound of the whole"
    );
    let end = fetch(0, 3, 1 << 20);
    let look = end.look(engine.node());
    assert!(end.finds_nothing(&look) && end.bytes_expected(&look).is_none());
    assert!(!end.is_enough(&end.nothing(&look)));
    let unknown = fetch(1, 0, 1 << 20);
    assert!(unknown.is_enough(&read(&unknown)), "an error is answered at once");
    assert!(matches!(
        &read(&unknown)[0],
        Err(FetchError::Refused(ErrorCode::UnknownTopicOrPartition))
    ));
}

fn headers(run: &Bytes) -> usize {
    anabranch_wire::batch::BatchIter::new(run).count()
}

#[test]
fn retention_tells_what_it_deletes_and_notes_its_clock() {
    let disk = Arc::new(SimDisk::new(1));
    let mut engine = open(&disk);
    let noted = engine.note_retention_clock(at(0));
    assert_eq!(noted.after, engine.store().last());
    let log = create(&mut engine, &[("retention.bytes", "0")]);
    append(&mut engine, log, 3);
    assert!(commit(&mut engine).is_empty());
    let stats = crate::log_stats(engine.store(), [log]);
    let (deleted, _) = engine.retain(at(10), &stats);
    assert_eq!(
        deleted,
        [crate::Deleted {
            log,
            from: 0,
            upto: 3
        }]
    );
    let (again, _) = engine.retain(at(11), &stats);
    assert!(again.is_empty(), "decided once");
    assert_eq!(commit(&mut engine), [LogEffect::Start { log, offset: 3 }]);
    let (lsn, snapshot) = engine.snapshot();
    engine.store().write_snapshot(lsn, &snapshot).unwrap();
    drop(engine);
    let engine = open(&Arc::new(disk.power_cycle(2)));
    assert_eq!(engine.node().log(log).map(Log::start), Some(3));
    assert_eq!(engine.node().state().retention_clock_ms(), Some(at(0).wall_ms));
}

#[test]
fn what_is_committed_while_the_wall_clock_is_set_back_is_not_old_when_it_is_right_again() {
    const DAY_MS: i64 = 86_400_000;
    let mut engine = open(&Arc::new(SimDisk::new(1)));
    let _ = engine.note_retention_clock(at(0));
    create(&mut engine, &[]);
    let partition = CommitPartition {
        partition: 0,
        offset: 5,
        leader_epoch: -1,
        metadata: None,
    };
    let request = OffsetCommit {
        version: 8,
        group_id: "g".to_owned(),
        generation_or_epoch: -1,
        retention_ms: -1,
        topics: vec![(group::TopicRef::Name("t".to_owned()), vec![partition])],
        ..OffsetCommit::default()
    };
    let set_back = Now {
        wall_ms: at(10).wall_ms - 400 * DAY_MS,
        ..at(10)
    };
    let (_, outcome) = engine.group(set_back, |groups, topics, now| {
        groups.commit(now, topics, &anabranch_core::group::Caller::default(), &request)
    });
    assert_eq!(outcome.after, engine.store().last());
    let cursors = |engine: &Tested| engine.node().groups().groups()["g"].cursors.len();
    let _ = engine.expire_groups(at(20));
    assert_eq!(cursors(&engine), 1);
    let week_later = at(8 * DAY_MS as u64);
    let _ = engine.expire_groups(week_later);
    assert!(
        engine
            .node()
            .groups()
            .groups()
            .get("g")
            .is_none_or(|group| group.cursors.is_empty())
    );
}
