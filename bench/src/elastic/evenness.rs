//! E4: how evenly the cut halves a backlog, over a thousand random workloads. A pure function; no broker, no clock.

use crate::case::Numbers;
use anabranch_core::elastic::SlotCounts;
use anabranch_core::elastic::cut::{deal, weigh};
use anabranch_core::slots::SlotSet;
use anabranch_wire::slot::{SLOTS, Slot, slot_of_key};
use anyhow::{Result, ensure};

const WORKLOADS: u64 = 1_000;

/// What counts as even: this share of a side, or the records of the hottest slot if those are more.
const EVEN: f64 = 0.02;

/// Exponents of the distributions of keys; 0 is uniform.
const ZIPFS: [f64; 4] = [0.0, 0.8, 1.0, 1.2];

pub(super) fn run(numbers: &mut Numbers) -> Result<()> {
    let mut even = 0;
    let mut off_by = Vec::new();
    for workload in 0..WORKLOADS {
        let counts = drawn(workload);
        let (off, bound) = halve(&counts)?;
        even += u64::from(off <= bound);
        off_by.push(off as f64 / (counts.total() as f64 / 2.0));
    }
    numbers.insert("e4.even_share".into(), even as f64 / WORKLOADS as f64);
    numbers.insert("e4.off_p50".into(), super::quantile(&mut off_by, 0.5));
    numbers.insert("e4.off_p99".into(), super::quantile(&mut off_by, 0.99));
    Ok(())
}

/// How far a half lies from the even one, and how far it may, in records.
fn halve(counts: &SlotCounts) -> Result<(u64, u64)> {
    let all = SlotSet::all();
    let sides = deal(&weigh(&all, counts, 2), &[0, 0]);
    let dealt: u64 = sides.iter().map(|side| counts.total_of(&side.slots)).sum();
    ensure!(dealt == counts.total(), "the cut has lost records");
    let half = counts.total() / 2;
    let hottest = all.iter().map(|slot| counts.get(slot)).max().unwrap_or(0);
    let off = sides
        .iter()
        .map(|side| counts.total_of(&side.slots).abs_diff(half))
        .max()
        .unwrap_or(0);
    Ok((off, ((half as f64 * EVEN) as u64).max(hottest)))
}

/// A seeded workload: 20 to 20,000 keys, 1,000 to 100,000 records, drawn one by one.
fn drawn(seed: u64) -> SlotCounts {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut unit = || {
        // xorshift64: plenty for a draw.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / 2f64.powi(53)
    };
    let zipf = ZIPFS[(seed % 4) as usize];
    let keys = (20.0 * 1000f64.powf(unit())) as u32;
    let records = (1e3 * 100f64.powf(unit())) as u32;
    let mut sum = 0.0;
    let cumulated: Vec<(f64, Slot)> = (1..=keys)
        .map(|rank| {
            sum += f64::from(rank).powf(-zipf);
            (sum, slot_of_key(format!("{seed}-{rank}").as_bytes()))
        })
        .collect();
    let mut counts = vec![0; SLOTS];
    for _ in 0..records {
        let at = unit() * sum;
        let rank = cumulated
            .partition_point(|(up_to, _)| *up_to <= at)
            .min(cumulated.len() - 1);
        counts[cumulated[rank].1.index()] += 1;
    }
    SlotCounts::exact(SlotSet::all().iter().map(|slot| (slot, counts[slot.index()])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_equal_slots_are_a_half_each_and_one_slot_stays_whole() {
        let slots: Vec<Slot> = SlotSet::all().iter().collect();
        let two = SlotCounts::exact([(slots[1], 500), (slots[4000], 500)]);
        assert_eq!(halve(&two).unwrap(), (0, 500));
        let one = SlotCounts::exact([(slots[1], 1000)]);
        assert_eq!(halve(&one).unwrap(), (500, 1000));
    }
}
