//! What of a log belongs to a slice, in the form in which a reader asks it: one look-up per record.

use std::sync::Arc;

use anabranch_wire::slot::{SLOTS, Slot};

use crate::ids::Offset;
use crate::slots::SlotSet;

/// Stands for a slot that is not in the slice at all.
const NEVER: Offset = Offset::MAX;

/// The records of a slice: for each slot the offset from which on it belongs to it, and one end for all.
///
/// 32 KiB, whatever is in it; cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Sieve {
    from: Arc<[Offset; SLOTS]>,
    to: Offset,
}

impl Sieve {
    /// A slice without slots that ends at `to` (exclusive; [`Offset::MAX`]: open-ended).
    pub fn empty(to: Offset) -> Self {
        Self {
            from: Arc::new([NEVER; SLOTS]),
            to,
        }
    }

    /// Adds slots, each from the offset `from` on. A slot that is there already has the lower of both.
    pub fn add(&mut self, slots: &SlotSet, from: Offset) {
        let table = Arc::make_mut(&mut self.from);
        for slot in slots.iter() {
            let at = &mut table[slot.index()];
            *at = from.min(*at);
        }
    }

    /// Whether the record belongs to the slice.
    #[inline]
    pub fn keeps(&self, slot: Slot, offset: Offset) -> bool {
        self.from[slot.index()] <= offset && offset < self.to
    }

    /// The offset from which on the slot belongs to the slice; [`Offset::MAX`] if it never does.
    pub fn from_of(&self, slot: Slot) -> Offset {
        self.from[slot.index()]
    }

    /// The offset behind the slice, or [`Offset::MAX`].
    pub fn to(&self) -> Offset {
        self.to
    }

    /// The same slice with an end that lies no later than `to`.
    #[must_use]
    pub fn until(mut self, to: Offset) -> Self {
        self.to = self.to.min(to);
        self
    }

    /// The same slots with another end; none: open-ended.
    #[must_use]
    pub fn up_to(&self, to: Option<Offset>) -> Self {
        Self {
            from: Arc::clone(&self.from),
            to: to.unwrap_or(NEVER),
        }
    }

    /// The lowest offset that can belong to the slice, or [`Offset::MAX`] if it has no slots.
    pub fn start(&self) -> Offset {
        self.from.iter().copied().min().unwrap_or(NEVER)
    }

    /// Whether the slice has every record in `first..=last`, whatever its slot.
    pub fn keeps_all(&self, first: Offset, last: Offset) -> bool {
        last < self.to && self.from.iter().all(|from| *from <= first)
    }
}

impl std::fmt::Debug for Sieve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slots = self.from.iter().filter(|from| **from != NEVER).count();
        let mut out = f.debug_struct("Sieve");
        out.field("slots", &slots)
            .field("start", &self.start())
            .field("to", &self.to);
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    #[test]
    fn a_record_belongs_by_slot_start_and_end() {
        let mut sieve = Sieve::empty(100);
        sieve.add(&[slot(3), slot(4)].into_iter().collect(), 10);
        sieve.add(&[slot(4), slot(9)].into_iter().collect(), 5);
        assert!(!sieve.keeps(slot(3), 9) && sieve.keeps(slot(3), 10) && sieve.keeps(slot(3), 99));
        assert!(!sieve.keeps(slot(3), 100), "the end is exclusive");
        assert!(sieve.keeps(slot(4), 5) && sieve.keeps(slot(9), 5) && !sieve.keeps(slot(8), 50));
        assert_eq!((sieve.start(), sieve.to()), (5, 100));
        assert_eq!((sieve.from_of(slot(4)), sieve.from_of(slot(8))), (5, Offset::MAX));
        assert!(!sieve.clone().until(50).keeps(slot(3), 50));
        assert_eq!(sieve.until(200).to(), 100);
    }

    #[test]
    fn all_slots_together_keep_everything_from_the_latest_start() {
        let mut sieve = Sieve::empty(100);
        assert!(!sieve.keeps_all(0, 1) && sieve.start() == NEVER);
        sieve.add(&SlotSet::all(), 20);
        assert!(sieve.keeps_all(20, 99) && !sieve.keeps_all(19, 99) && !sieve.keeps_all(20, 100));
    }
}
