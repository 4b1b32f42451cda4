//! At least once: what a group has committed, a member of it has processed; and once faults have healed, everything
//! that can be read is processed, within a bounded time.

use std::collections::BTreeMap;

use super::commits::Key;
use super::{Verdict, Violation};

/// The sentence about safety.
pub const COMMITTED: &str =
    "what lies below a group's committed position was processed by one of its members";
/// The sentence about liveness.
pub const DRAINED: &str =
    "once faults have healed, every group that has members processes all there is, in bounded time";

/// A set of offsets, as ranges.
#[derive(Clone, Debug, Default)]
struct Coverage {
    /// First offset -> the one behind the last. Ranges neither overlap nor touch.
    ranges: BTreeMap<i64, i64>,
}

impl Coverage {
    fn add(&mut self, mut from: i64, mut upto: i64) {
        if from >= upto {
            return;
        }
        let touching: Vec<(i64, i64)> = self
            .ranges
            .range(..=upto)
            .rev()
            .map(|(a, b)| (*a, *b))
            .take_while(|(_, end)| *end >= from)
            .collect();
        for (start, end) in touching {
            self.ranges.remove(&start);
            from = from.min(start);
            upto = upto.max(end);
        }
        self.ranges.insert(from, upto);
    }

    /// The first offset from `from` on, below `upto`, that is not in it.
    fn gap(&self, from: i64, upto: i64) -> Option<i64> {
        let end = self
            .ranges
            .range(..=from)
            .next_back()
            .map_or(from, |(_, end)| (*end).max(from));
        (end < upto).then_some(end)
    }

    /// How many of the offsets from `from` on, below `upto`, are not in it.
    fn missing(&self, from: i64, upto: i64) -> u64 {
        let length = |from: i64, upto: i64| u64::try_from(upto - from).unwrap_or(0);
        let ranges = self.ranges.range(..upto).rev();
        let covered = ranges
            .take_while(|(_, end)| **end > from)
            .map(|(start, end)| length(from.max(*start), upto.min(*end)));
        length(from, upto) - covered.sum::<u64>()
    }
}

/// What each group has processed.
#[derive(Debug, Default)]
pub struct Delivery {
    processed: BTreeMap<Key, Coverage>,
}

impl Delivery {
    /// A member has processed the records from `from` on, below `upto`.
    pub fn processed(&mut self, key: &Key, from: i64, upto: i64) {
        match self.processed.get_mut(key) {
            Some(coverage) => coverage.add(from, upto),
            None => self.processed.entry(key.clone()).or_default().add(from, upto),
        }
    }

    /// Whether a member has processed the record at an offset.
    pub fn has(&self, key: &Key, offset: i64) -> bool {
        let covered = self.processed.get(key);
        covered.is_some_and(|covered| covered.gap(offset, offset + 1).is_none())
    }

    /// A member resumes at a committed position; what lies below `start` has been deleted.
    pub fn resumed(&self, key: &Key, position: i64, start: i64) -> Verdict {
        match self.gap(key, start, position) {
            None => Ok(()),
            Some(gap) => {
                let detail = format!("{key:?} resumes at {position}, but nobody processed offset {gap}");
                Err(Violation::new(COMMITTED, detail))
            }
        }
    }

    /// How many offsets from `from` on, below `upto`, no member of the group has processed.
    pub fn missing(&self, key: &Key, from: i64, upto: i64) -> u64 {
        let none = Coverage::default();
        self.processed.get(key).unwrap_or(&none).missing(from, upto)
    }

    /// The first offset that the group should process and has not.
    pub fn gap(&self, key: &Key, start: i64, high_watermark: i64) -> Option<i64> {
        let none = Coverage::default();
        self.processed
            .get(key)
            .unwrap_or(&none)
            .gap(start, high_watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tp;

    #[test]
    fn ranges_join_and_gaps_are_found() {
        let key = ("g".to_owned(), Tp::default());
        let mut oracle = Delivery::default();
        for (from, upto) in [(4, 6), (0, 2), (8, 9), (2, 4), (5, 7)] {
            oracle.processed(&key, from, upto);
        }
        assert_eq!(oracle.gap(&key, 0, 7), None);
        assert_eq!(oracle.gap(&key, 0, 9), Some(7));
        assert_eq!(oracle.gap(&key, 8, 9), None);
        let missing = [(0, 9, 1), (-2, 10, 4), (3, 7, 0), (7, 8, 1), (5, 3, 0)];
        for (from, upto, count) in missing {
            assert_eq!(oracle.missing(&key, from, upto), count, "{from} to {upto}");
        }
        oracle.resumed(&key, 7, 0).unwrap();
        assert!(oracle.resumed(&key, 8, 0).is_err());
        oracle.resumed(&key, 9, 8).unwrap();
        oracle.processed(&key, 7, 8);
        assert_eq!(oracle.gap(&key, 0, 9), None);
        assert_eq!(oracle.processed[&key].ranges.len(), 1);
    }
}
