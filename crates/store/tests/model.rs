//! Random use of a store against a plain list: reads, lookups by time and statistics, across rolls, freeing, packing and
//! new starts.

mod common;

use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn, Offset};
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Options, Step, Store};
use bytes::Bytes;
use common::workload::split;
use common::{Recorder, batch, open_manual, small, stored};
use proptest::prelude::*;

const LOGS: u32 = 3;

#[derive(Clone, Debug)]
enum Op {
    Append {
        log: u32,
        records: i32,
        timestamp: i64,
        body: usize,
    },
    Commit,
    Maintain,
    /// Moves the start of a log forward by so many thousandths of what it holds.
    Start {
        log: u32,
        share: i64,
    },
    Reopen {
        clean: bool,
    },
    Read {
        log: u32,
        from: i64,
        upto: i64,
        max_bytes: usize,
        at_least_one: bool,
    },
    Time {
        log: u32,
        timestamp: i64,
        from: i64,
        upto: i64,
    },
}

fn ops() -> impl Strategy<Value = Op> {
    let log = 0..LOGS;
    let share = 0i64..=1000;
    prop_oneof![
        12 => (log.clone(), 1..6i32, 0..500i64, prop_oneof![4 => 0..300usize, 1 => 0..7000usize])
            .prop_map(|(log, records, timestamp, body)| Op::Append { log, records, timestamp, body }),
        6 => Just(Op::Commit),
        2 => Just(Op::Maintain),
        1 => (log.clone(), share.clone()).prop_map(|(log, share)| Op::Start { log, share }),
        1 => any::<bool>().prop_map(|clean| Op::Reopen { clean }),
        6 => (log.clone(), share.clone(), share.clone(), 0..20_000usize, any::<bool>()).prop_map(
            |(log, from, upto, max_bytes, at_least_one)| Op::Read { log, from, upto, max_bytes, at_least_one }
        ),
        4 => (log, 0..520i64, share.clone(), share)
            .prop_map(|(log, timestamp, from, upto)| Op::Time { log, timestamp, from, upto }),
    ]
}

#[derive(Clone, Debug)]
struct Stored {
    base: Offset,
    last: Offset,
    timestamp: i64,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Log {
    batches: Vec<Stored>,
    committed: usize,
    start: Offset,
}

impl Log {
    fn next(&self) -> Offset {
        self.batches.last().map_or(0, |batch| batch.last + 1)
    }

    fn end(&self) -> Offset {
        self.batches[..self.committed]
            .last()
            .map_or(0, |batch| batch.last + 1)
    }

    /// An offset somewhere between the start and a little behind the end.
    fn at(&self, share: i64) -> Offset {
        self.start + (self.end() + 3 - self.start) * share / 1000
    }

    fn reach(&self, from: Offset, upto: Offset) -> impl Iterator<Item = &Stored> {
        self.batches[..self.committed]
            .iter()
            .filter(move |batch| batch.last >= from && batch.last < upto)
    }
}

struct World {
    disk: Arc<SimDisk>,
    options: Options,
    store: Option<Store>,
    logs: Vec<Log>,
}

impl World {
    fn new() -> World {
        let disk = Arc::new(SimDisk::new(0));
        let options = Options {
            index_cache_bytes: 2000,
            ..small()
        };
        let mut world = World {
            disk,
            options,
            store: None,
            logs: vec![Log::default(); LOGS as usize],
        };
        world.open();
        world
    }

    fn open(&mut self) -> Recorder {
        let disk: Arc<SimDisk> = Arc::clone(&self.disk);
        let (store, recorder) = open_manual(Path::new("/d"), disk, self.options.clone()).expect("it opens");
        for (id, log) in self.logs.iter().enumerate() {
            store.set_log_start(LogId(id as u32), log.start);
        }
        self.store = Some(store);
        recorder
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("open except within `reopen`")
    }

    fn commit(&mut self) {
        while self.store().commit_once() == Step::Committed {}
        self.logs
            .iter_mut()
            .for_each(|log| log.committed = log.batches.len());
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Append {
                log,
                records,
                timestamp,
                body,
            } => {
                let model = &mut self.logs[log as usize];
                let entry = batch(log, model.next(), records, timestamp, &vec![log as u8; body]);
                let bytes = stored(&entry);
                model.batches.push(Stored {
                    base: entry.base_offset,
                    last: entry.last_offset,
                    timestamp,
                    bytes,
                });
                self.store().append_batch(entry);
            }
            Op::Commit => self.commit(),
            Op::Maintain => {
                self.commit();
                let store = self.store();
                store.write_snapshot(store.committed(), b"").expect("a good disk");
                while store.maintain().expect("a good disk").more {}
            }
            Op::Start { log, share } => {
                let model = &mut self.logs[log as usize];
                model.start = model.at(share).min(model.end());
                let start = model.start;
                self.store().set_log_start(LogId(log), start);
            }
            Op::Reopen { clean } => {
                self.commit();
                let last = self.store().last();
                let store = self.store.take().expect("open");
                if clean {
                    assert!(store.close());
                } else {
                    drop(store);
                }
                self.open();
                assert_eq!(self.store().committed(), last);
            }
            Op::Read {
                log,
                from,
                upto,
                max_bytes,
                at_least_one,
            } => {
                let model = &self.logs[log as usize];
                self.check_read(log, model.at(from), model.at(upto), max_bytes, at_least_one);
            }
            Op::Time {
                log,
                timestamp,
                from,
                upto,
            } => self.check_time(log, timestamp, from, upto),
        }
    }

    fn check_read(&self, log: u32, from: Offset, upto: Offset, max_bytes: usize, at_least_one: bool) {
        let mut expected: Vec<&[u8]> = Vec::new();
        let mut sum = 0;
        for batch in self.logs[log as usize].reach(from, upto) {
            sum += batch.bytes.len();
            if sum > max_bytes && !(expected.is_empty() && at_least_one) {
                break;
            }
            expected.push(&batch.bytes);
        }
        let check = |slices: &[Bytes]| {
            let found: Vec<&[u8]> = slices.iter().flat_map(|slice| split(slice)).collect();
            assert!(
                expected.starts_with(&found),
                "{} batches, expected a prefix of {}",
                found.len(),
                expected.len()
            );
            assert_eq!(
                found.is_empty(),
                expected.is_empty(),
                "something whenever there is something"
            );
        };
        check(
            &self
                .store()
                .read(LogId(log), from, upto, max_bytes, at_least_one)
                .expect("nothing is damaged"),
        );
        if let Some(slices) = self
            .store()
            .try_read(LogId(log), from, upto, max_bytes, at_least_one)
        {
            check(&slices);
        }
    }

    fn check_time(&self, log: u32, timestamp: i64, from: i64, upto: i64) {
        let model = &self.logs[log as usize];
        let (from, upto) = (model.at(from), model.at(upto));
        let expected = model.reach(from, upto).find(|batch| batch.timestamp >= timestamp);
        let found = self
            .store()
            .first_batch_at_or_after_time(LogId(log), timestamp, from, upto);
        let found = found.expect("nothing is damaged");
        assert_eq!(found.as_deref(), expected.map(|batch| batch.bytes.as_slice()));

        let newest = self.store().max_timestamp(LogId(log));
        let live = model
            .reach(model.start, Offset::MAX)
            .map(|batch| batch.timestamp)
            .max();
        assert!(newest.map(|newest| newest.timestamp) >= live);
        if let Some(newest) = newest {
            let first = model
                .batches
                .iter()
                .find(|batch| batch.base == newest.base_offset)
                .expect("a batch's base");
            assert_eq!(first.timestamp, newest.timestamp);
        }
        if model.start == 0 {
            assert_eq!(newest.map(|newest| newest.timestamp), live);
            let first = model
                .reach(0, Offset::MAX)
                .find(|batch| Some(batch.timestamp) == live);
            assert_eq!(
                newest.map(|newest| newest.base_offset),
                first.map(|batch| batch.base)
            );
        }
    }

    fn check_stats(&self) {
        for (id, model) in self.logs.iter().enumerate() {
            let stats = self.store().log_stats(LogId(id as u32));
            let live: usize = model
                .reach(model.start, Offset::MAX)
                .map(|batch| batch.bytes.len())
                .sum();
            assert!(stats.bytes >= live as u64);
            if model.start == 0 {
                assert_eq!(stats.bytes, live as u64);
            }
            assert!(stats.ranges.is_sorted_by(|a, b| a.last_offset < b.first_offset));
            if live > 0 {
                assert_eq!(
                    stats.ranges.last().map(|range| range.last_offset + 1),
                    Some(model.end())
                );
                assert!(
                    stats.ranges[0].first_offset <= model.start && model.start <= stats.ranges[0].last_offset
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_store_answers_as_a_plain_list_does(ops in prop::collection::vec(ops(), 1..250)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
        }
        world.commit();
        world.check_stats();
        assert_eq!(world.store().last(), world.store().committed());
        let recorder = {
            drop(world.store.take());
            world.open()
        };
        let replayed_last = recorder.items.last().map_or(Lsn(0), |(lsn, _)| *lsn);
        assert!(replayed_last <= world.store().committed());
        world.check_stats();
    }
}
