use anabranch_wire::batch::Compression;

use super::super::fake::{Fake, LOG, share, sieve};
use super::*;

fn exact(fake: &Fake, sieve: &Sieve) -> Vec<u64> {
    count_exactly(&fake.records(), sieve)
}

fn count_exactly(records: &[(Offset, Slot, Vec<u8>)], sieve: &Sieve) -> Vec<u64> {
    let mut counts = vec![0; SLOTS];
    for (offset, slot, _) in records {
        counts[slot.index()] += u64::from(sieve.keeps(*slot, *offset));
    }
    counts
}

fn ask(fake: &Fake, sieve: &Sieve, bytes_max: usize) -> SlotCounts {
    survey(
        fake,
        &ScanCache::new(4 << 20),
        LOG,
        sieve,
        0,
        fake.end(),
        bytes_max,
    )
    .unwrap()
}

#[test]
fn a_small_range_is_counted() {
    let mut fake = Fake::new();
    fake.fill(50, 20, |_, random| random % 100);
    fake.push_control();
    fake.push(Compression::Zstd, 10, &["", "", "a"]);
    let mut starts = sieve(&share(0, 2), 100, Offset::MAX);
    starts.add(&share(1, 2), 457);
    for sieve in [
        sieve(&SlotSet::all(), 0, Offset::MAX),
        sieve(&share(1, 3), 300, 801),
        starts,
    ] {
        let found = ask(&fake, &sieve, 1 << 20);
        assert!(found.is_exact() && found.error(&SlotSet::all()) == 0);
        assert_eq!(found.to_table().to_vec(), exact(&fake, &sieve));
        assert_eq!(
            found.sum(&SlotSet::all()),
            exact(&fake, &sieve).iter().sum::<u64>()
        );
    }
    let nothing = ask(&fake, &sieve(&SlotSet::all(), fake.end(), Offset::MAX), 1 << 20);
    assert!(nothing.is_exact() && nothing.sum(&SlotSet::all()) == 0);
}

/// Distributions of keys: even, a few hot ones, changing along the log, one key per batch.
fn workloads() -> Vec<(&'static str, Fake)> {
    let make = |key: fn(usize, u64) -> u64| {
        let mut fake = Fake::new();
        fake.fill(3_000, 40, key);
        fake
    };
    vec![
        ("even", make(|_, random| random % 10_000)),
        (
            "hot",
            make(|_, random| if random % 3 == 0 { 1 } else { random / 3 % 5_000 }),
        ),
        (
            "changing",
            make(|batch, random| random % 50 + batch as u64 / 30 * 10),
        ),
        ("bursts", make(|batch, _| (batch as u64 * 7_919) % 400)),
    ]
}

#[test]
fn a_sample_is_as_good_as_it_says_at_a_bounded_cost() {
    for (name, fake) in workloads() {
        let records = fake.records();
        let (mut asked, mut right) = (0, 0);
        // Each start makes another sample.
        for start in (0..8).map(|number| number * 1_111) {
            let mut sieve = sieve(&share(0, 3), start, Offset::MAX);
            sieve.add(&share(1, 3), start + 41_234);
            sieve.add(&share(2, 3), start);
            let expected = count_exactly(&records, &sieve);
            let budget = 256 << 10;
            let found = ask(&fake, &sieve, budget);
            assert!(!found.is_exact());
            assert!(
                found.cost.read <= budget as u64 * 5 / 4,
                "{name}: {:?}",
                found.cost
            );
            let total: u64 = expected.iter().sum();
            for of in [2, 3, 7, 64] {
                for slots in (0..of.min(16)).map(|rest| share(rest, of)) {
                    let truth: u64 = slots.iter().map(|slot| expected[slot.index()]).sum();
                    let (sum, error) = (found.sum(&slots), found.error(&slots));
                    asked += 1;
                    right += u32::from(sum.abs_diff(truth) <= error);
                    assert!(
                        of > 2 || error < total / 4,
                        "{name}: a bound of {error} says nothing"
                    );
                }
            }
        }
        assert!(
            right * 100 >= asked * 95,
            "{name}: {right} of {asked} within the bound"
        );
    }
}

#[test]
fn the_cost_does_not_grow_with_the_range() {
    let cost = |batches| {
        let mut fake = Fake::new();
        fake.fill(batches, 20, |_, random| random % 1_000);
        ask(&fake, &sieve(&SlotSet::all(), 0, Offset::MAX), 100 << 10).cost
    };
    let (small, large) = (cost(500), cost(8_000));
    assert!(large.read <= small.read * 5 / 4, "{small:?} {large:?}");
}

#[test]
fn batches_that_grow_when_opened_end_the_sample_early() {
    let mut fake = Fake::new();
    for _ in 0..400 {
        // 40,000 bytes that compress to a few hundred.
        fake.push(Compression::Zstd, 400, &["a"; 100]);
    }
    let budget = 500_000;
    let found = ask(&fake, &sieve(&SlotSet::all(), 0, Offset::MAX), budget);
    assert!(
        !found.is_exact() && found.cost.opened < 3 * budget as u64,
        "{:?}",
        found.cost
    );
    assert_eq!(found.sum(&SlotSet::all()), 40_000);
}

#[test]
fn points_are_spread_evenly_wherever_they_end() {
    assert_eq!(
        [0, 1, 2, 3, 4].map(|n| point(n, 0, 800)),
        [400, 200, 600, 100, 500]
    );
    for end in 1..64 {
        let mut points: Vec<_> = (0..end).map(|n| point(n, 1_000, 65_000)).collect();
        points.sort_unstable();
        let gaps = points.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.clone().max() <= gaps.min().map(|gap| gap * 4));
    }
    assert_eq!(point(0, 5, 5), 5);
    assert!(point(31, 0, Offset::MAX) > 0);
}
