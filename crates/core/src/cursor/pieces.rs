//! Slots with the offset from which each counts.

use std::collections::BTreeMap;

use anabranch_wire::slot::Slot;

use crate::ids::Offset;
use crate::sieve::Sieve;
use crate::slots::SlotSet;

/// Disjoint sets of slots, each with an offset, in rising order of it. No set is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pieces(BTreeMap<Offset, SlotSet>);

impl Pieces {
    /// No slot.
    pub fn new() -> Self {
        Self::default()
    }

    /// These slots, all from the same offset.
    pub fn of(from: Offset, slots: &SlotSet) -> Self {
        let mut pieces = Self::new();
        pieces.add(from, slots);
        pieces
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many different offsets there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All slots.
    pub fn slots(&self) -> SlotSet {
        let mut all = SlotSet::empty();
        for slots in self.0.values() {
            all = all.union(slots);
        }
        all
    }

    /// The sets with their offsets, lowest offset first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Offset, &SlotSet)> {
        self.0.iter().map(|(from, slots)| (*from, slots))
    }

    /// The lowest offset.
    pub fn lowest(&self) -> Option<Offset> {
        self.0.first_key_value().map(|(from, _)| *from)
    }

    /// The highest offset.
    pub fn highest(&self) -> Option<Offset> {
        self.0.last_key_value().map(|(from, _)| *from)
    }

    /// From where the slot counts; `None` if it is not here.
    pub fn from_of(&self, slot: Slot) -> Option<Offset> {
        let found = self.0.iter().find(|(_, slots)| slots.contains(slot));
        found.map(|(from, _)| *from)
    }

    /// Puts slots in at an offset; those that are here already move to it.
    pub fn add(&mut self, from: Offset, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        self.remove(slots);
        let set = self.0.entry(from).or_insert_with(SlotSet::empty);
        *set = set.union(slots);
    }

    /// Puts all of `other` in.
    pub fn merge(&mut self, other: &Self) {
        for (from, slots) in other.iter() {
            self.add(from, slots);
        }
    }

    /// Takes slots out, as far as they are here.
    pub fn remove(&mut self, slots: &SlotSet) {
        self.0.retain(|_, set| {
            if !set.is_disjoint(slots) {
                *set = set.difference(slots);
            }
            !set.is_empty()
        });
    }

    /// The table of these pieces for readers, up to `to` (excluded).
    pub fn sieve(&self, to: Option<Offset>) -> Sieve {
        let mut sieve = Sieve::empty(to.unwrap_or(Offset::MAX));
        for (from, slots) in self.iter() {
            sieve.add(slots, from);
        }
        sieve
    }

    /// Only these slots.
    #[must_use]
    pub fn restricted(&self, slots: &SlotSet) -> Self {
        let pairs = self.0.iter().map(|(from, set)| (*from, set.intersection(slots)));
        Self(pairs.filter(|(_, set)| !set.is_empty()).collect())
    }

    /// The same slots, none from below `floor`.
    #[must_use]
    pub fn raised(&self, floor: Offset) -> Self {
        let mut raised = Self::new();
        for (from, slots) in self.iter() {
            raised.add(from.max(floor), slots);
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(slots: std::ops::Range<u16>) -> SlotSet {
        slots.filter_map(Slot::new).collect()
    }

    #[test]
    fn a_slot_is_at_one_offset() {
        let mut pieces = Pieces::of(5, &set(0..10));
        pieces.add(9, &set(4..12));
        assert_eq!(pieces.from_of(Slot::new(3).unwrap()), Some(5));
        assert_eq!(pieces.from_of(Slot::new(4).unwrap()), Some(9));
        assert_eq!(pieces.slots(), set(0..12));
        assert_eq!((pieces.lowest(), pieces.highest()), (Some(5), Some(9)));
        pieces.remove(&set(0..4));
        assert_eq!((pieces.len(), pieces.lowest()), (1, Some(9)));
    }

    #[test]
    fn raising_joins_what_was_below_the_floor() {
        let mut pieces = Pieces::of(1, &set(0..2));
        pieces.add(2, &set(2..4));
        pieces.add(8, &set(4..6));
        let raised = pieces.raised(5);
        assert_eq!(raised.len(), 2);
        assert_eq!(raised.from_of(Slot::new(0).unwrap()), Some(5));
        assert_eq!(raised.from_of(Slot::new(5).unwrap()), Some(8));
        assert_eq!(pieces.restricted(&set(3..5)).slots(), set(3..5));
    }
}
