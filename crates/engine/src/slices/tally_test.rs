use anabranch_core::slots::SlotSet;

use super::super::fake::{Fake, LOG, share, sieve};
use super::*;

fn full(fake: &Fake, bytes_max: usize) -> Tally {
    let mut tally = Tally::new(LOG, 0, bytes_max);
    while tally.end() < fake.end() {
        tally.advance(fake, fake.end(), 10_000).unwrap();
    }
    tally
}

fn exact(fake: &Fake, sieve: &Sieve, upto: Offset) -> Vec<u64> {
    let mut counts = vec![0; SLOTS];
    for (offset, slot, _) in fake.records() {
        counts[slot.index()] += u64::from(offset < upto && sieve.keeps(slot, offset));
    }
    counts
}

fn log() -> Fake {
    let mut fake = Fake::new();
    fake.fill(2_000, 40, |batch, random| random % 500 + batch as u64 / 100);
    fake
}

#[test]
fn remaining_is_exact_where_the_cut_blocks_can_be_read() {
    let fake = log();
    let tally = full(&fake, 1 << 20);
    assert_eq!((tally.start(), tally.end()), (0, fake.end()));
    let cache = ScanCache::new(8 << 20);
    let mut starts = sieve(&share(0, 2), 9_999, Offset::MAX);
    starts.add(&share(1, 2), 40_001);
    for sieve in [
        sieve(&SlotSet::all(), 0, Offset::MAX),
        sieve(&share(2, 3), 4_097, 70_001),
        sieve(&SlotSet::all(), 79_999, Offset::MAX),
        starts,
    ] {
        let found = tally
            .remaining(&fake, &cache, &sieve, fake.end(), 16 << 20)
            .unwrap();
        assert!(found.is_exact());
        assert_eq!(found.to_table().to_vec(), exact(&fake, &sieve, fake.end()));
    }
}

#[test]
fn questions_cost_what_the_cut_blocks_cost() {
    let mut fake = log();
    let tally = full(&fake, 1 << 20);
    let cache = ScanCache::new(8 << 20);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let found = tally.remaining(&fake, &cache, &all, fake.end(), 1 << 20).unwrap();
    assert_eq!(found.cost, Cost::default(), "whole blocks need no reading");
    let from = sieve(&SlotSet::all(), 50_000, Offset::MAX);
    let found = tally
        .remaining(&fake, &cache, &from, fake.end(), 1 << 20)
        .unwrap();
    assert!(found.cost.opened < 500_000, "{:?}", found.cost);

    // The same where the disk would be needed: the cut block is interpolated, with a bound that holds.
    fake.may_wait = false;
    fake.on_disk = fake.end();
    let cold = ScanCache::new(8 << 20);
    let found = tally.remaining(&fake, &cold, &from, fake.end(), 1 << 20).unwrap();
    assert_eq!((found.cost, found.is_exact()), (Cost::default(), false));
    let expected = exact(&fake, &from, fake.end());
    for slots in [SlotSet::all(), share(0, 2), share(5, 64)] {
        let truth: u64 = slots.iter().map(|slot| expected[slot.index()]).sum();
        let (sum, error) = (found.sum(&slots), found.error(&slots));
        assert!(
            sum.abs_diff(truth) <= error && error <= 6_000,
            "{sum} for {truth}, within {error}"
        );
    }
}

#[test]
fn memory_is_bounded_by_longer_blocks() {
    let fake = log();
    for bytes_max in [0, 100_000, 1 << 20] {
        let tally = full(&fake, bytes_max);
        assert!(tally.memory_bytes() <= bytes_max.max(4 * (16 << 10)));
        let all: u64 = tally.blocks.iter().map(|block| block.records).sum();
        assert_eq!(all, 80_000);
        let mut next = 0;
        for block in &tally.blocks {
            assert_eq!(
                (block.first, block.records),
                (next, block.counts.iter().map(|count| u64::from(*count)).sum())
            );
            next = block.next;
        }
        assert_eq!(next, fake.end());
    }
}

#[test]
fn what_came_in_since_is_counted_in() {
    let mut fake = log();
    let tally = full(&fake, 1 << 20);
    let before = fake.end();
    fake.fill(50, 40, |_, random| random % 30);
    let cache = ScanCache::new(8 << 20);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let found = tally
        .remaining(&fake, &cache, &all, fake.end(), 16 << 20)
        .unwrap();
    assert!(found.is_exact());
    assert_eq!(found.to_table().to_vec(), exact(&fake, &all, fake.end()));
    let found = tally.remaining(&fake, &cache, &all, before, 16 << 20).unwrap();
    assert_eq!(found.sum(&SlotSet::all()), before as u64);
}

#[test]
fn trimming_moves_the_start_and_what_lies_below_can_still_be_asked_for() {
    let fake = log();
    let mut tally = full(&fake, 1 << 20);
    tally.trim(30_000);
    assert!((20_000..=30_000).contains(&tally.start()) && tally.end() == fake.end());
    let cache = ScanCache::new(8 << 20);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let found = tally
        .remaining(&fake, &cache, &all, fake.end(), 64 << 20)
        .unwrap();
    assert!(found.is_exact());
    assert_eq!(found.sum(&SlotSet::all()), fake.end() as u64);
    tally.trim(fake.end() + 5);
    assert_eq!(
        (tally.start(), tally.end(), tally.memory_bytes()),
        (fake.end() + 5, fake.end() + 5, 0)
    );
    tally.trim(10);
    assert_eq!(tally.end(), fake.end() + 5);
}

#[test]
fn a_start_inside_a_batch_counts_from_there() {
    let fake = log();
    let mut tally = Tally::new(LOG, 17, 1 << 20);
    while tally.end() < fake.end() {
        tally.advance(&fake, fake.end(), 100_000).unwrap();
    }
    assert_eq!(tally.start(), 17);
    let all: u64 = tally.blocks.iter().map(|block| block.records).sum();
    assert_eq!(all, fake.end() as u64 - 17);
}
