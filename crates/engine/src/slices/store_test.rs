//! The real store, on its simulated disk: slices read together from memory and from disk.

use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn, Offset};
use anabranch_core::sieve::Sieve;
use anabranch_core::slots::SlotSet;
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Batch, Options, Replay, ReplayError, Step, Store};
use anabranch_wire::batch::BatchHeader;

use super::fake::{Fake, ID, LOG, delivered, share, sieve};
use super::*;

struct Nothing;

impl Replay for Nothing {
    fn snapshot(&mut self, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }

    fn state(&mut self, _: Lsn, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }

    fn batches(&mut self, _: Lsn, _: LogId, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }
}

/// The same log as `fake`, and as much of another between.
fn store(fake: &Fake, cache_bytes: usize) -> Store {
    let options = Options {
        segment_bytes: 256 << 10,
        cache_bytes,
        spare_segments: 2,
        free_bytes_min: Some(0),
        ..Options::default()
    };
    let disk = Arc::new(SimDisk::new(5));
    let store = Store::open_manual(Path::new("/d"), disk, options, &mut Nothing).unwrap();
    for (n, bytes) in fake.batches.iter().enumerate() {
        let header = BatchHeader::parse(bytes).unwrap();
        for log in [LOG, LogId(LOG.0 + 1)] {
            store.append_batch(Batch {
                log,
                base_offset: header.base_offset,
                leader_epoch: 2,
                last_offset: header.last_offset(),
                max_timestamp: header.max_timestamp,
                bytes: bytes.clone(),
            });
        }
        if n % 9 == 8 {
            assert_eq!(store.commit_once(), Step::Committed);
        }
    }
    while store.commit_once() == Step::Committed {}
    assert_eq!(store.commit_once(), Step::Idle);
    store
}

const LIMITS: ReadLimits = ReadLimits {
    bytes_max: 16 << 10,
    records_max: 1_000,
    scan_bytes_max: 8 << 20,
};

/// Offsets and keys.
type Records = Vec<(Offset, Vec<u8>)>;

/// Reads slices to their ends by turns. Gives what each was given, and the cost of all.
fn read_all(source: &dyn Source, cache: &ScanCache, sieves: &[Sieve], end: Offset) -> (Vec<Records>, Cost) {
    let mut found = vec![Vec::new(); sieves.len()];
    let mut at = vec![0; sieves.len()];
    let mut cost = Cost::default();
    while at.iter().any(|at| *at < end) {
        for (number, sieve) in sieves.iter().enumerate() {
            let query = SliceQuery {
                log: LOG,
                id_bits: ID,
                sieve,
                from: at[number],
                upto: end,
            };
            let read = read_slice(source, cache, &query, &LIMITS).unwrap();
            found[number].extend(delivered(&read.batches));
            cost += read.cost;
            at[number] = read.scanned_to;
        }
    }
    (found, cost)
}

#[test]
fn slices_of_a_stored_log_are_the_log() {
    let mut fake = Fake::new();
    fake.fill(600, 30, |_, random| random % 2_000);
    let store = store(&fake, 64 << 10);
    for (members, most) in [(1u16, 1.2), (2, 1.3), (8, 2.0)] {
        let sieves: Vec<_> = (0..members)
            .map(|member| sieve(&share(member, members), 0, Offset::MAX))
            .collect();
        let cache = ScanCache::new(1 << 20);
        let (found, cost) = read_all(&FromDisk(&store), &cache, &sieves, fake.end());
        let mut merged: Vec<_> = found.into_iter().flatten().collect();
        merged.sort();
        let expected: Vec<_> = fake
            .records()
            .into_iter()
            .map(|(offset, _, key)| (offset, key))
            .collect();
        assert_eq!(merged, expected);
        let (read, opened) = (
            cost.read as f64 / cost.delivered as f64,
            cost.opened as f64 / cost.delivered as f64,
        );
        assert!(
            read <= most && opened <= most,
            "{members} members: {read:.2} {opened:.2}"
        );
    }
}

#[test]
fn memory_alone_serves_the_tail_and_sends_the_rest_away() {
    let mut fake = Fake::new();
    fake.fill(600, 30, |_, random| random % 2_000);
    let store = store(&fake, 64 << 10);
    let cache = ScanCache::new(1 << 20);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let read = |from| {
        let query = SliceQuery {
            log: LOG,
            id_bits: ID,
            sieve: &all,
            from,
            upto: fake.end(),
        };
        read_slice(&InMemory(&store), &cache, &query, &LIMITS)
    };
    assert!(matches!(read(0), Err(SourceError::NeedsDisk)));
    let tail = read(fake.end() - 60).unwrap();
    assert_eq!((tail.records.len(), tail.stop), (60, Stop::Exhausted));
}

#[test]
fn surveys_and_tallies_of_a_stored_log() {
    let mut fake = Fake::new();
    fake.fill(1_000, 30, |_, random| random % 500);
    let store = store(&fake, 64 << 10);
    let source = FromDisk(&store);
    let whole: u64 = fake.batches.iter().map(|batch| batch.len() as u64).sum();
    assert_eq!(source.bytes_between(LOG, 0, fake.end()), whole);
    let half = source.bytes_between(LOG, 0, fake.end() / 2);
    assert!(half.abs_diff(whole / 2) < whole / 20, "{half} of {whole}");
    assert_eq!(source.bytes_between(LOG, fake.end(), fake.end() + 5), 0);

    let cache = ScanCache::new(4 << 20);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let expected = fake.records();
    let counted = survey(&source, &cache, LOG, &all, 0, fake.end(), 4 << 20).unwrap();
    assert!(counted.is_exact());
    assert_eq!(counted.sum(&SlotSet::all()), expected.len() as u64);
    let sampled = survey(&source, &cache, LOG, &all, 0, fake.end(), 200 << 10).unwrap();
    let even = share(0, 2);
    let truth = expected
        .iter()
        .filter(|(_, slot, _)| even.contains(*slot))
        .count() as u64;
    assert!(!sampled.is_exact() && sampled.sum(&even).abs_diff(truth) <= sampled.error(&even));
    assert_eq!(counted.sum(&even), truth);

    let mut tally = Tally::new(LOG, 0, 1 << 20);
    while tally.end() < fake.end() {
        tally.advance(&source, fake.end(), 100 << 10).unwrap();
    }
    let found = tally
        .remaining(&InMemory(&store), &cache, &all, fake.end(), 0)
        .unwrap();
    assert!(found.is_exact());
    assert_eq!(found.to_table(), counted.to_table());
}
