//! What the logs really hold, record by record, as the journal has it: which record is at which offset, and in which slot.

use std::collections::BTreeMap;

use anabranch_wire::slot::{Slot, slot_of_batch, slot_of_key};

use crate::message::Tp;
use crate::record::{self, RecordId};

/// One partition.
#[derive(Debug, Default)]
pub struct Records {
    by_offset: BTreeMap<i64, (RecordId, Slot)>,
    by_slot: BTreeMap<Slot, Vec<i64>>,
}

/// All partitions.
#[derive(Debug, Default)]
pub struct Truth {
    logs: BTreeMap<Tp, Records>,
}

impl Records {
    /// The record at an offset.
    pub fn at(&self, offset: i64) -> Option<(RecordId, Slot)> {
        self.by_offset.get(&offset).copied()
    }

    /// Offsets and slots from `from` on, below `upto`.
    pub fn range(&self, from: i64, upto: i64) -> impl Iterator<Item = (i64, Slot)> + '_ {
        let range = self.by_offset.range(from..upto.max(from));
        range.map(|(offset, (_, slot))| (*offset, *slot))
    }

    /// All offsets of a slot, ascending.
    pub fn of_slot(&self, slot: Slot) -> &[i64] {
        self.by_slot.get(&slot).map_or(&[], Vec::as_slice)
    }
}

impl Truth {
    /// A batch is durable.
    pub fn add(&mut self, tp: Tp, base_offset: i64, ids: &[RecordId]) {
        let log = self.logs.entry(tp).or_default();
        for (offset, id) in (base_offset..).zip(ids) {
            let key = record::key(*id);
            let slot = key.map_or_else(|| slot_of_batch(base_offset), |key| slot_of_key(&key));
            log.by_offset.insert(offset, (*id, slot));
            let offsets = log.by_slot.entry(slot).or_default();
            if offsets.last().is_none_or(|last| *last < offset) {
                offsets.push(offset);
            }
        }
    }

    /// A partition's records.
    pub fn of(&self, tp: Tp) -> Option<&Records> {
        self.logs.get(&tp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_slots_of_their_keys_and_the_others_that_of_their_batch() {
        let (tp, mut truth) = (Tp::default(), Truth::default());
        truth.add(tp, 10, &[3, 4, 6]);
        truth.add(tp, 13, &[4]);
        let log = truth.of(tp).unwrap();
        let keyed = slot_of_key(&record::key(4).unwrap());
        assert_eq!(log.at(10), Some((3, slot_of_batch(10))));
        assert_eq!(log.at(12), Some((6, slot_of_batch(10))));
        assert_eq!(log.of_slot(keyed), [11, 13]);
        assert_eq!(log.range(11, 13).count(), 2);
    }
}
