//! The cut against random workloads: every one must be even, as far as its hottest slot allows.

use anabranch_wire::slot::{SLOTS, Slot, slot_of_key};
use proptest::prelude::*;

use super::counts::SlotCounts;
use super::cut::{Side, deal, weigh};
use crate::slots::SlotSet;

/// A small generator, so that workloads need nothing from outside.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// How keys are spread over records.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys {
    Uniform,
    /// The exponent, in tenths.
    Zipf(u32),
    /// All keys in a few neighbouring slots.
    Clustered,
    /// Nine tenths of the records have one key.
    OneHeavy,
}

pub(super) const KEYS: [Keys; 6] = [
    Keys::Uniform,
    Keys::Zipf(8),
    Keys::Zipf(10),
    Keys::Zipf(12),
    Keys::Clustered,
    Keys::OneHeavy,
];

/// Records per slot of a workload with so many keys and about so many records.
pub(super) fn workload(keys: Keys, key_count: u64, records: u64, seed: u64) -> SlotCounts {
    let mut dice = Dice(seed);
    let weight = |rank: u64| match keys {
        Keys::Zipf(tenths) => 1.0 / ((rank + 1) as f64).powf(f64::from(tenths) / 10.0),
        Keys::OneHeavy if rank == 0 => 9.0 * key_count as f64,
        _ => 1.0,
    };
    let sum: f64 = (0..key_count).map(weight).sum();
    let base = dice.below(SLOTS as u64);
    SlotCounts::exact((0..key_count).map(|rank| {
        let key = dice.next();
        let slot = match keys {
            Keys::Clustered => Slot::new(((base + key % 40) % SLOTS as u64) as u16).unwrap(),
            _ => slot_of_key(&key.to_be_bytes()),
        };
        (slot, (records as f64 * weight(rank) / sum) as u64)
    }))
}

fn hottest(counts: &SlotCounts) -> u64 {
    (0..SLOTS as u16)
        .filter_map(Slot::new)
        .map(|slot| counts.get(slot))
        .max()
        .unwrap_or(0)
}

fn is_dealt(slots: &SlotSet, sides: &[Side]) -> bool {
    let together = sides
        .iter()
        .fold(SlotSet::empty(), |all, side| all.union(&side.slots));
    let widths: usize = sides.iter().map(|side| side.slots.len()).sum();
    together == *slots && widths == slots.len()
}

/// E4: a thousand workloads, cut 2 to 8 ways.
#[test]
fn a_thousand_workloads_are_cut_evenly() {
    let mut atoms_max = 0;
    for round in 0..1000u64 {
        let mut dice = Dice(round);
        let keys = KEYS[(round % 6) as usize];
        let key_count = 1 + dice.below(if round % 3 == 0 { 50 } else { 4_000 });
        let counts = workload(keys, key_count, 1000 + dice.below(2_000_000), round);
        let all = SlotSet::all();
        for ways in 2..=8usize {
            let weights = weigh(&all, &counts, ways);
            atoms_max = atoms_max.max(weights.atoms.len());
            let sides = deal(&weights, &vec![0; ways]);
            assert!(is_dealt(&all, &sides), "{keys:?} {ways} ways");
            let even = counts.total() / ways as u64;
            // The rounding of `even` is at most one record.
            let bound = (even / 50).max(hottest(&counts)) + 1;
            for side in &sides {
                assert_eq!(side.records, counts.total_of(&side.slots));
                let off = side.records.abs_diff(even);
                assert!(
                    off <= bound,
                    "round {round}: {keys:?}, {ways} ways: {off} of {even}, bound {bound}"
                );
            }
        }
    }
    assert!(atoms_max <= 2500, "{atoms_max} atoms");
}

#[test]
fn what_was_handed_out_counts_for_its_owner() {
    let counts = workload(Keys::Uniform, 10_000, 100_000, 7);
    let weights = weigh(&SlotSet::all(), &counts, 2);
    let kept = 20_000;
    let sides = deal(&weights, &[kept, 0]);
    let (owner, other) = (sides[0].records + kept, sides[1].records);
    assert!(
        owner.abs_diff(other) <= (owner + other) / 50,
        "{owner} and {other}"
    );
    // More than half was handed out: all that is left goes.
    let sides = deal(&weights, &[500_000, 0]);
    assert_eq!(sides[1].records, counts.total());
}

#[test]
fn one_hot_slot_stays_alone_with_its_owner() {
    let counts = workload(Keys::OneHeavy, 1000, 100_000, 3);
    let weights = weigh(&SlotSet::all(), &counts, 3);
    let hot = weights.hottest().unwrap();
    assert!(hot.records > hot.others);
    let sides = deal(&weights, &[100, 0, 0]);
    assert_eq!(sides[0].slots.len(), 1);
    assert!(sides[0].slots.contains(hot.slot));
    assert!(sides[1].slots.len().abs_diff(sides[2].slots.len()) <= 128);
}

#[test]
fn slots_without_records_are_dealt_by_number() {
    let counts = SlotCounts::none();
    for ways in 1..=8usize {
        let weights = weigh(&SlotSet::all(), &counts, ways);
        for side in deal(&weights, &vec![0; ways]) {
            assert!(
                side.slots.len().abs_diff(SLOTS / ways) <= 64,
                "{ways} ways: {}",
                side.slots.len()
            );
        }
    }
}

#[test]
fn a_cut_of_uniform_keys_is_a_few_runs_and_a_kilobyte() {
    let counts = workload(Keys::Uniform, 20_000, 1_000_000, 1);
    let weights = weigh(&SlotSet::all(), &counts, 2);
    assert!(weights.atoms.len() <= 256, "{}", weights.atoms.len());
    let sides = deal(&weights, &[0, 0]);
    assert!(sides.iter().all(|side| side.slots.runs().len() <= 128));
}

proptest! {
    /// Whatever the share, whatever the sides have already: nothing is lost, and nothing dealt twice.
    #[test]
    fn every_slot_goes_to_exactly_one_side(
        seed in any::<u64>(), share in 0u64..4096, start in prop::collection::vec(0u64..1_000_000, 1..64),
    ) {
        let mut dice = Dice(seed);
        let slots: SlotSet = (0..SLOTS as u16).filter(|_| dice.below(4096) < share).filter_map(Slot::new).collect();
        let counts = workload(KEYS[(seed % 6) as usize], 100, 10_000, seed);
        let weights = weigh(&slots, &counts, start.len());
        let sides = deal(&weights, &start);
        prop_assert!(is_dealt(&slots, &sides));
        prop_assert_eq!(sides.iter().map(|side| side.records).sum::<u64>(), counts.total_of(&slots));
        prop_assert_eq!(deal(&weights, &start), sides);
    }
}
