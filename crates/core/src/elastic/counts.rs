//! How many records of each slot there are, and how sure that is.

use anabranch_wire::slot::{SLOTS, Slot};

use crate::slots::SlotSet;

/// How the records of a [`SlotCounts`] were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Every record was looked at.
    Exact,
    /// Some were looked at, spread evenly over the range, and the counts are scaled up.
    Sampled {
        /// Records that were looked at.
        looked_at: u64,
        /// Records that the range has.
        of: u64,
    },
}

impl Precision {
    /// How far the true number of a set of slots may lie from a counted `records`, in records: 0 if every record was
    /// looked at, else three standard deviations of the sample (which 99.7 % of samples keep), rounded up.
    pub fn error_of(self, records: u64) -> u64 {
        let Self::Sampled { looked_at, of } = self else {
            return 0;
        };
        if looked_at == 0 {
            return of;
        }
        if looked_at >= of {
            return 0;
        }
        let (looked_at, of) = (looked_at as f64, of as f64);
        let share = (records as f64 / of).min(1.0);
        // A slot that the sample missed may still have some: no share counts as smaller than one record of the sample.
        let share = share.max(1.0 / looked_at).min(1.0);
        let spread = share * (1.0 - share).max(1.0 / looked_at);
        (3.0 * of * (spread / looked_at).sqrt()).ceil() as u64
    }
}

/// Records per slot.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotCounts {
    records: Box<[u64]>,
    precision: Precision,
}

impl SlotCounts {
    /// Nothing in any slot.
    pub fn none() -> Self {
        Self::exact(std::iter::empty())
    }

    /// Counts of records that were all looked at. A slot that comes twice counts twice.
    pub fn exact(counts: impl IntoIterator<Item = (Slot, u64)>) -> Self {
        let mut records = vec![0u64; SLOTS].into_boxed_slice();
        for (slot, count) in counts {
            if let Some(cell) = records.get_mut(slot.index()) {
                *cell = cell.saturating_add(count);
            }
        }
        Self {
            records,
            precision: Precision::Exact,
        }
    }

    /// Counts scaled up from `looked_at` records to the `of` records that there are. The sample must be spread evenly over
    /// the range: the first records of a backlog say little about the rest.
    pub fn sampled(counts: impl IntoIterator<Item = (Slot, u64)>, looked_at: u64, of: u64) -> Self {
        let mut sample = Self::exact(counts);
        if looked_at < of {
            for cell in &mut sample.records {
                let scaled = u128::from(*cell) * u128::from(of) / u128::from(looked_at.max(1));
                *cell = u64::try_from(scaled).unwrap_or(u64::MAX);
            }
        }
        sample.precision = Precision::Sampled { looked_at, of };
        sample
    }

    /// Counts that somebody has scaled up already, from `looked_at` records to the `of` records that there are.
    pub fn estimated(counts: impl IntoIterator<Item = (Slot, u64)>, looked_at: u64, of: u64) -> Self {
        let mut counts = Self::exact(counts);
        counts.precision = Precision::Sampled { looked_at, of };
        counts
    }

    /// Records of one slot.
    pub fn get(&self, slot: Slot) -> u64 {
        self.records.get(slot.index()).copied().unwrap_or(0)
    }

    /// Records of all slots.
    pub fn total(&self) -> u64 {
        self.records
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Records of some slots.
    pub fn total_of(&self, slots: &SlotSet) -> u64 {
        slots
            .iter()
            .fold(0, |sum, slot| sum.saturating_add(self.get(slot)))
    }

    /// How the records were counted.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The counts of these slots alone.
    #[must_use]
    pub fn only(&self, slots: &SlotSet) -> Self {
        let mut records = vec![0u64; SLOTS].into_boxed_slice();
        for slot in slots.iter() {
            if let Some(cell) = records.get_mut(slot.index()) {
                *cell = self.get(slot);
            }
        }
        Self {
            records,
            precision: self.precision,
        }
    }

    /// Both together, as sure as the less sure one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let both = self.records.iter().zip(&other.records);
        let precision = match (self.precision, other.precision) {
            (Precision::Exact, precision) | (precision, Precision::Exact) => precision,
            (Precision::Sampled { looked_at: a, of: b }, Precision::Sampled { looked_at: c, of: d }) => {
                Precision::Sampled {
                    looked_at: a.saturating_add(c),
                    of: b.saturating_add(d),
                }
            }
        };
        Self {
            records: both.map(|(a, b)| a.saturating_add(*b)).collect(),
            precision,
        }
    }
}

impl std::fmt::Debug for SlotCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SlotCounts({} records, {:?})", self.total(), self.precision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    #[test]
    fn counts_add_up() {
        let counts = SlotCounts::exact([(slot(1), 5), (slot(1), 2), (slot(4095), 1)]);
        assert_eq!((counts.get(slot(1)), counts.total()), (7, 8));
        let set: SlotSet = [slot(4095), slot(9)].into_iter().collect();
        assert_eq!(counts.total_of(&set), 1);
        assert_eq!(counts.plus(&counts).total(), 16);
        assert_eq!(Precision::Exact.error_of(1 << 40), 0);
    }

    /// A sample of every tenth of a million records: the bound holds for a half, a hundredth and a slot.
    #[test]
    fn the_bound_of_a_sample_holds() {
        let (of, step) = (1_000_000u64, 10u64);
        let slot_of =
            |i: u64| slot((anabranch_wire::slot::murmur2(&i.to_be_bytes()).unsigned_abs() % 4096) as u16);
        let truth = SlotCounts::exact((0..of).map(|i| (slot_of(i), 1)));
        let sample = SlotCounts::sampled(
            (0..of).step_by(step as usize).map(|i| (slot_of(i), 1)),
            of / step,
            of,
        );
        assert!(sample.total().abs_diff(of) <= SLOTS as u64);
        for width in [2048u16, 41, 1] {
            let set: SlotSet = (0..width).map(slot).collect();
            let (seen, real) = (sample.total_of(&set), truth.total_of(&set));
            let bound = sample.precision().error_of(seen);
            assert!(
                seen.abs_diff(real) <= bound,
                "{width} slots: {seen} for {real}, bound {bound}"
            );
            assert!(bound < of / 50, "{width} slots: the bound {bound} says nothing");
        }
    }

    #[test]
    fn a_sample_of_nothing_promises_nothing() {
        let counts = SlotCounts::sampled([], 0, 500);
        assert_eq!(counts.precision().error_of(0), 500);
        let whole = SlotCounts::sampled([(slot(0), 9)], 9, 9);
        assert_eq!((whole.total(), whole.precision().error_of(9)), (9, 0));
    }
}
