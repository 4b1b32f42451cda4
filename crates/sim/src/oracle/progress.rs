//! While a cursor is divided, no slot's position goes back, and what lies below it was delivered. A cursor becomes divided
//! where it was, and plain where that is exact; anything else is a named reset.
//!
//! Looked at in the durable state, after each change, slot by slot: where each would be resumed if everything ended now.

use std::collections::BTreeMap;

use anabranch_core::cursor::{Cursor, CursorChange, Edit, Live, Pieces};
use anabranch_core::slots::SlotSet;
use anabranch_wire::slot::{SLOTS, Slot};

use super::commits::{Key, NONE};
use super::delivery::Delivery;
use super::truth::Records;
use super::{Verdict, Violation};

/// The sentence about positions.
pub const FORWARD: &str =
    "while a cursor is divided, committed positions never go back, except by a named reset";
/// The sentence about records.
pub const DELIVERED: &str =
    "what lies below a slot's committed position was delivered to a member of the group";

/// What is known otherwise of a partition.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its records.
    pub records: &'a Records,
    /// What groups have processed.
    pub delivery: &'a Delivery,
    /// Below this, records may be deleted.
    pub start: i64,
}

/// Where a group goes on in a partition.
#[derive(Clone, Debug)]
enum Place {
    Plain(i64),
    /// By slot; and the same as the cursor says it.
    Divided(Vec<i64>, Pieces),
}

/// All cursors that were ever divided.
#[derive(Debug, Default)]
pub struct Progress {
    places: BTreeMap<Key, Place>,
}

impl Progress {
    /// Whether a cursor was ever divided.
    pub fn was_divided(&self, key: &Key) -> bool {
        self.places.contains_key(key)
    }

    /// Where a slot goes on; `None` while the cursor is plain.
    pub fn resume(&self, key: &Key, slot: Slot) -> Option<i64> {
        match self.places.get(key)? {
            Place::Plain(_) => None,
            Place::Divided(table, _) => table.get(slot.index()).copied(),
        }
    }

    /// Edits of a divided cursor are durable and have led to `cursor`. `is_reset`: they were told to the operator as a reset.
    pub fn edited(
        &mut self,
        key: &Key,
        edits: &[CursorChange],
        cursor: &Cursor,
        is_reset: bool,
        facts: &Facts<'_>,
    ) -> Verdict {
        let mut place = self.places.remove(key);
        for change in edits {
            match &change.edit {
                Edit::Divide { kept } => {
                    if let Some(Place::Plain(at)) = place
                        && at != kept.offset
                    {
                        let detail =
                            format!("{key:?}: at {at} before the division, at {} in it", kept.offset);
                        return Err(Violation::new(FORWARD, detail));
                    }
                    let table = vec![kept.offset; SLOTS];
                    place = Some(Place::Divided(table, Pieces::of(kept.offset, &SlotSet::all())));
                }
                Edit::Plain { plain } => {
                    // Without an offset: the group or the topic goes, and the offset with it.
                    if let Some(Place::Divided(before, _)) = &place
                        && !is_reset
                        && plain.offset != NONE
                    {
                        exact(key, before, plain.offset, facts)?;
                    }
                    place = Some(Place::Plain(plain.offset));
                }
                _ => {}
            }
        }
        let after = match cursor {
            Cursor::Plain(plain) => Place::Plain(plain.offset),
            Cursor::Divided(divided) => {
                let resume = divided.resume(&Live::default());
                if let Some(Place::Divided(_, before)) = &place
                    && *before == resume
                {
                    self.places.extend(place.map(|place| (key.clone(), place)));
                    return Ok(());
                }
                let mut table = vec![i64::MIN; SLOTS];
                for (from, slots) in resume.iter() {
                    slots.iter().for_each(|slot| table[slot.index()] = from);
                }
                if let Some(Place::Divided(before, _)) = &place {
                    forward(key, before, &table, facts)?;
                }
                Place::Divided(table, resume)
            }
        };
        self.places.insert(key.clone(), after);
        Ok(())
    }

    /// A plain cursor was set.
    pub fn set(&mut self, key: &Key, offset: i64) {
        if let Some(place) = self.places.get_mut(key) {
            *place = Place::Plain(offset);
        }
    }
}

/// No slot goes back, and what it leaves behind was delivered.
fn forward(key: &Key, before: &[i64], after: &[i64], facts: &Facts<'_>) -> Verdict {
    let both = before.iter().zip(after);
    if let Some((slot, (before, after))) = both
        .clone()
        .enumerate()
        .find(|(_, (before, after))| after < before)
    {
        let detail = format!("{key:?}: slot {slot} goes from {before} back to {after}");
        return Err(Violation::new(FORWARD, detail));
    }
    let moved = both.filter(|(before, after)| before != after);
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for (before, after) in moved {
        (low, high) = (low.min(*before), high.max(*after));
    }
    for (offset, slot) in facts.records.range(low.max(facts.start), high) {
        let passed = (before[slot.index()]..after[slot.index()]).contains(&offset);
        if passed && !facts.delivery.has(key, offset) {
            let detail = format!(
                "{key:?}: slot {} goes from {} to {}, and nobody was given the record at {offset}",
                slot.get(),
                before[slot.index()],
                after[slot.index()]
            );
            return Err(Violation::new(DELIVERED, detail));
        }
    }
    Ok(())
}

/// Each record that lies below `at` was behind its slot's position, and no other.
fn exact(key: &Key, before: &[i64], at: i64, facts: &Facts<'_>) -> Verdict {
    let low = before.iter().copied().fold(at, i64::min).max(facts.start);
    let high = before.iter().copied().fold(at, i64::max);
    for (offset, slot) in facts.records.range(low, high) {
        let was_done = offset < before[slot.index()];
        let wrong = match (was_done, offset < at) {
            (true, false) => Some((FORWARD, "which was done, comes again")),
            (false, true) => Some((DELIVERED, "which was not done, is passed over")),
            (true, true) | (false, false) => None,
        };
        if let Some((sentence, what)) = wrong {
            let detail = format!("{key:?} is plain at {at}: the record at {offset}, {what}");
            return Err(Violation::new(sentence, detail));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tp;
    use crate::oracle::truth::Truth;

    #[test]
    fn steps_back_and_records_that_nobody_was_given_are_noticed() {
        let key = ("g".to_owned(), Tp::default());
        let (mut truth, mut delivery) = (Truth::default(), Delivery::default());
        truth.add(key.1, 0, &[1, 1, 2]);
        delivery.processed(&key, 0, 1);
        let records = truth.of(key.1).unwrap();
        let facts = Facts {
            records,
            delivery: &delivery,
            start: 0,
        };
        let slot = records.at(0).unwrap().1.index();
        let at = |offset| {
            let mut table = vec![0; SLOTS];
            table[slot] = offset;
            table
        };
        forward(&key, &at(0), &at(1), &facts).unwrap();
        assert!(forward(&key, &at(1), &at(0), &facts).is_err(), "back");
        assert!(forward(&key, &at(0), &at(2), &facts).is_err(), "not delivered");
        let later = Facts { start: 2, ..facts };
        forward(&key, &at(0), &at(2), &later).unwrap();
        exact(&key, &at(2), 2, &facts).unwrap();
        assert!(exact(&key, &at(1), 0, &facts).is_err(), "comes again");
        assert!(exact(&key, &at(1), 3, &facts).is_err(), "passed over");
    }
}
