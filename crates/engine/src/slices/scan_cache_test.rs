use std::sync::Barrier;

use anabranch_wire::batch::Compression;

use super::super::fake::{Fake, LOG};
use super::*;

fn small_batches(count: usize) -> Fake {
    let mut fake = Fake::new();
    for _ in 0..count {
        fake.push(Compression::Lz4, 400, &["a", "b", "c", "", "e"]);
    }
    fake
}

/// Walks all of a log, as a reader does; gives the records that it found.
fn pass(cache: &ScanCache, source: &Fake) -> (usize, Cost) {
    let (mut at, mut cost, mut records) = (0, Cost::default(), 0);
    while let Some(stretch) = cache
        .stretch_at(source, LOG, at, source.end(), &mut cost)
        .unwrap()
    {
        for batch in cache.batches(LOG, &stretch, &mut cost) {
            if let Content::Records(index) = &batch.content {
                records += index.len();
            }
        }
        at = stretch.next_offset();
    }
    (records, cost)
}

#[test]
fn the_second_reader_costs_nothing() {
    let fake = small_batches(200);
    let cache = ScanCache::new(8 << 20);
    let (records, cost) = pass(&cache, &fake);
    assert_eq!(records, 1_000);
    assert_eq!(cost.read, *fake.bytes_read.lock().unwrap());
    assert!(cost.opened > cost.read, "decompressed");
    assert_eq!(pass(&cache, &fake), (1_000, Cost::default()));
    assert!(cache.bytes() > cost.opened as usize + cost.read as usize && cache.bytes() < 8 << 20);
}

#[test]
fn what_is_held_stays_within_the_budget_and_readers_go_on() {
    let fake = small_batches(2_000);
    for budget in [0, 100_000, 400_000] {
        let cache = ScanCache::new(budget);
        for _ in 0..3 {
            assert_eq!(pass(&cache, &fake).0, 10_000);
            assert!(cache.bytes() <= budget, "{} of {budget}", cache.bytes());
        }
    }
}

#[test]
fn what_is_used_outlives_what_is_not() {
    let mut fake = Fake::new();
    for _ in 0..2_000 {
        fake.push(Compression::None, 400, &["a", "b", "c", "", "e"]);
    }
    let bytes: usize = fake.batches.iter().map(Bytes::len).sum();
    let cache = ScanCache::new(bytes / 3);
    let mut cost = Cost::default();
    let first = cache
        .stretch_at(&fake, LOG, 0, fake.end(), &mut cost)
        .unwrap()
        .unwrap();
    let mut at = first.next_offset();
    while let Some(stretch) = cache.stretch_at(&fake, LOG, at, fake.end(), &mut cost).unwrap() {
        at = stretch.next_offset();
        // Somebody reads the first one all the time.
        let before = cost;
        cache.stretch_at(&fake, LOG, 0, fake.end(), &mut cost).unwrap();
        assert_eq!(cost, before);
    }
    assert!(
        cost.read >= bytes as u64 && cache.bytes() <= bytes / 3,
        "the rest went through the cache"
    );
}

#[test]
fn a_deleted_log_leaves_nothing() {
    let fake = small_batches(100);
    let cache = ScanCache::new(8 << 20);
    let (_, cost) = pass(&cache, &fake);
    cache.forget(LogId(LOG.0 + 1));
    assert!(cache.bytes() > 0);
    cache.forget(LOG);
    assert_eq!(cache.bytes(), 0);
    assert_eq!(pass(&cache, &fake).1, cost);
}

#[test]
fn many_threads_cost_one_scan() {
    let fake = small_batches(1_000);
    let cache = ScanCache::new(32 << 20);
    let start = Barrier::new(8);
    let costs: Vec<Cost> = std::thread::scope(|scope| {
        let reader = || {
            scope.spawn(|| {
                start.wait();
                let (records, cost) = pass(&cache, &fake);
                assert_eq!(records, 5_000);
                cost
            })
        };
        let readers: Vec<_> = (0..8).map(|_| reader()).collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let mut sum = Cost::default();
    costs.into_iter().for_each(|cost| sum += cost);
    let (_, alone) = pass(&ScanCache::new(32 << 20), &fake);
    assert_eq!(sum, alone);
}

#[test]
fn who_may_not_wait_is_sent_away_while_another_loads() {
    let mut fake = small_batches(10);
    fake.may_wait = false;
    let cache = ScanCache::new(1 << 20);
    cache.lock().loading.insert(LOG);
    let mut cost = Cost::default();
    let refused = cache.stretch_at(&fake, LOG, 0, fake.end(), &mut cost);
    assert!(matches!(refused, Err(SourceError::NeedsDisk)));
    drop(Loading {
        cache: &cache,
        log: LOG,
    });
    assert!(
        cache
            .stretch_at(&fake, LOG, 0, fake.end(), &mut cost)
            .unwrap()
            .is_some()
    );
}

#[test]
fn bytes_that_are_no_batch_are_named() {
    let fake = small_batches(3);
    let mut damaged = fake.batches[0].to_vec();
    damaged[16] = 9;
    struct Broken(Bytes);
    impl Source for Broken {
        fn read(&self, _: LogId, _: Offset, _: Offset, _: usize) -> Result<Vec<Bytes>, SourceError> {
            Ok(vec![self.0.clone()])
        }
        fn bytes_between(&self, _: LogId, _: Offset, _: Offset) -> u64 {
            0
        }
        fn may_wait(&self) -> bool {
            true
        }
    }
    let cache = ScanCache::new(1 << 20);
    let found = cache.stretch_at(&Broken(damaged.into()), LOG, 0, 100, &mut Cost::default());
    assert!(matches!(
        found,
        Err(SourceError::NoBatch {
            log: LOG,
            offset: 0,
            ..
        })
    ));
    // The right to load was given back.
    assert!(
        cache
            .stretch_at(&fake, LOG, 0, fake.end(), &mut Cost::default())
            .unwrap()
            .is_some()
    );
}
