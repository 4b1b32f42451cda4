//! Which records belong to a slice, as readers ask it: once per record.

use std::sync::Arc;

use anabranch_wire::slot::{SLOTS, Slot};

use super::pieces::Pieces;
use crate::ids::Offset;

/// A slice as a table: from which offset on each slot counts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sieve {
    from: Arc<[Offset; SLOTS]>,
    to: Offset,
}

impl Sieve {
    /// The table of these pieces, up to `to` (excluded).
    pub fn new(pieces: &Pieces, to: Option<Offset>) -> Self {
        let mut table = [Offset::MAX; SLOTS];
        for (from, slots) in pieces.iter() {
            for slot in slots.iter() {
                table[slot.index()] = from;
            }
        }
        Self {
            from: Arc::new(table),
            to: to.unwrap_or(Offset::MAX),
        }
    }

    /// Whether a record belongs to the slice.
    #[inline]
    pub fn passes(&self, offset: Offset, slot: Slot) -> bool {
        self.from[slot.index()] <= offset && offset < self.to
    }

    /// From where the slot counts; `i64::MAX` if it is not in the slice.
    #[inline]
    pub fn from_of(&self, slot: Slot) -> Offset {
        self.from[slot.index()]
    }

    /// Where the slice ends (excluded); `i64::MAX` if it is open-ended.
    pub fn to(&self) -> Offset {
        self.to
    }

    /// The same table with another end.
    #[must_use]
    pub fn up_to(&self, to: Option<Offset>) -> Self {
        Self {
            from: Arc::clone(&self.from),
            to: to.unwrap_or(Offset::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::SlotSet;

    #[test]
    fn a_record_passes_by_slot_and_offset() {
        let slot = |number| Slot::new(number).unwrap();
        let mut pieces = Pieces::of(5, &[slot(1), slot(2)].into_iter().collect::<SlotSet>());
        pieces.add(9, &[slot(4095)].into_iter().collect());
        let sieve = Sieve::new(&pieces, Some(20));
        assert!(sieve.passes(5, slot(1)) && sieve.passes(19, slot(2)) && sieve.passes(9, slot(4095)));
        assert!(!sieve.passes(4, slot(1)) && !sieve.passes(20, slot(1)) && !sieve.passes(8, slot(4095)));
        assert!(!sieve.passes(10, slot(0)), "not in the slice");
        assert!(sieve.up_to(None).passes(20, slot(1)));
    }
}
