//! What became of the planner's thoughts since the process began, as numbers that only grow.
//!
//! Decision logs forget, these do not; but they begin anew with each start, as counters of a process do.

use std::collections::BTreeMap;

use super::decision::{Kind, WhyNot};
use super::log::{Ended, Settled};

/// Upper bounds of the buckets of [`Durations`], milliseconds; beyond the last lies one more bucket.
pub const HANDOVER_BOUNDS_MS: [u64; 14] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
];

/// What was decided and refused, over all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    decided: BTreeMap<Kind, u64>,
    refused: BTreeMap<&'static str, u64>,
    handovers: BTreeMap<(Kind, Ended), Durations>,
}

/// Durations by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many fell into each bucket of [`HANDOVER_BOUNDS_MS`], and how many were longer.
    pub buckets: [u64; HANDOVER_BOUNDS_MS.len() + 1],
    /// Sum of all of them, milliseconds.
    pub sum_ms: u64,
}

impl Durations {
    fn add(&mut self, took_ms: u64) {
        let bucket = HANDOVER_BOUNDS_MS.partition_point(|bound| *bound < took_ms);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Totals {
    /// Decisions of a kind.
    pub fn decided(&self, kind: Kind) -> u64 {
        self.decided.get(&kind).copied().unwrap_or(0)
    }

    /// Refusals by the code of their reason ([`WhyNot::code`]), those included that repeat an earlier one.
    pub fn refused(&self) -> &BTreeMap<&'static str, u64> {
        &self.refused
    }

    /// How long decisions took from being made to their end, by kind and end.
    pub fn handovers(&self) -> &BTreeMap<(Kind, Ended), Durations> {
        &self.handovers
    }

    pub(crate) fn add_decision(&mut self, kind: Kind) {
        *self.decided.entry(kind).or_default() += 1;
    }

    pub(crate) fn add_refusal(&mut self, why_not: &WhyNot) {
        *self.refused.entry(why_not.code()).or_default() += 1;
    }

    pub(crate) fn add_end(&mut self, kind: Kind, settled: Settled) {
        let durations = self.handovers.entry((kind, settled.ended)).or_default();
        durations.add(settled.handover_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_bounds_them() {
        let mut totals = Totals::default();
        for handover_ms in [0, 10, 11, 300_000, 300_001] {
            let ended = Ended::Done;
            totals.add_end(Kind::Split, Settled { ended, handover_ms });
        }
        let durations = &totals.handovers()[&(Kind::Split, Ended::Done)];
        assert_eq!(durations.buckets[..3], [2, 1, 0]);
        assert_eq!(durations.buckets[13..], [1, 1]);
        assert_eq!((durations.count(), durations.sum_ms), (5, 600_022));
    }
}
