//! Values that several others are made of.

use anabranch_wire::slot::{SLOTS, Slot};

use super::{Read, Reader, Writer};
use crate::codec::Encoder;
use crate::elastic::counts::Precision;
use crate::elastic::cut::{Atom, Hottest, Weights};
use crate::elastic::inputs::PartitionRef;
use crate::ids::TopicId;
use crate::slots::SlotSet;

/// Bytes of a set as one bit a slot: what a set takes at most.
const BITMAP_BYTES: usize = SLOTS / 8;

pub(super) fn put_partition(w: &mut Writer, of: &PartitionRef) {
    w.e.id(&of.topic.0);
    w.name(&of.name);
    w.e.ivar(i64::from(of.partition));
}

pub(super) fn get_partition(r: &mut Reader<'_>) -> Read<PartitionRef> {
    Ok(PartitionRef {
        topic: TopicId(r.d.id()?),
        name: r.name()?,
        partition: r.d.ivar32()?,
    })
}

/// `u8` 0 and runs, or `u8` 1 and one bit a slot if that is shorter.
pub(super) fn put_slots(w: &mut Writer, slots: &SlotSet) {
    let runs = runs(slots);
    if runs.len() <= BITMAP_BYTES {
        w.e.u8(0);
        w.e.bytes(&runs);
        return;
    }
    w.e.u8(1);
    for word in slots.words() {
        for byte in word.to_le_bytes() {
            w.e.u8(byte);
        }
    }
}

/// Runs as (slots skipped since the last run, slots in it).
fn runs(slots: &SlotSet) -> Vec<u8> {
    let mut e = Encoder::new();
    let mut next = 0;
    for (first, last) in slots.runs() {
        e.uvar(u64::from(first.get() - next));
        e.uvar(u64::from(last.get() - first.get() + 1));
        next = last.get() + 1;
    }
    e.into_bytes()
}

pub(super) fn get_slots(r: &mut Reader<'_>) -> Read<SlotSet> {
    let mut slots = SlotSet::empty();
    match r.d.u8()? {
        0 => {
            let mut inner = r.d.section()?;
            let mut next = 0u64;
            while inner.remaining() > 0 {
                let (skipped, width) = (inner.uvar()?, inner.uvar()?);
                if width == 0 || (skipped == 0 && next > 0) {
                    return Err(r.d.invalid("runs of slots touch"));
                }
                let first = next.saturating_add(skipped);
                next = first.saturating_add(width);
                if next > SLOTS as u64 {
                    return Err(r.d.invalid("a run of slots goes beyond the last slot"));
                }
                for slot in (first as u16..next as u16).filter_map(Slot::new) {
                    slots.insert(slot);
                }
            }
        }
        1 => {
            let mut words = [0u64; SLOTS / 64];
            for word in &mut words {
                let mut bytes = [0u8; 8];
                for byte in &mut bytes {
                    *byte = r.d.u8()?;
                }
                *word = u64::from_le_bytes(bytes);
            }
            slots = SlotSet::from_words(words);
            if runs(&slots).len() <= BITMAP_BYTES {
                return Err(r.d.invalid("a set of slots is not in its shortest form"));
            }
        }
        tag => return Err(r.unknown("a set of slots", tag)),
    }
    Ok(slots)
}

fn get_slot(r: &mut Reader<'_>) -> Read<Slot> {
    let number = r.u16()?;
    Slot::new(number).ok_or_else(|| r.d.invalid("a slot number is too large"))
}

pub(super) fn put_hottest(w: &mut Writer, hottest: &Hottest) {
    put_hot_key(w, hottest.slot, hottest.records);
    w.e.uvar(hottest.others);
}

pub(super) fn get_hottest(r: &mut Reader<'_>) -> Read<Hottest> {
    let (slot, records) = get_hot_key(r)?;
    Ok(Hottest {
        slot,
        records,
        others: r.d.uvar()?,
    })
}

pub(super) fn put_hot_key(w: &mut Writer, slot: Slot, records: u64) {
    w.e.uvar(u64::from(slot.get()));
    w.e.uvar(records);
}

pub(super) fn get_hot_key(r: &mut Reader<'_>) -> Read<(Slot, u64)> {
    Ok((get_slot(r)?, r.d.uvar()?))
}

pub(super) fn put_precision(w: &mut Writer, precision: Precision) {
    match precision {
        Precision::Exact => w.e.u8(0),
        Precision::Sampled { looked_at, of } => {
            w.e.u8(1);
            w.e.uvar(looked_at);
            w.e.uvar(of);
        }
    }
}

pub(super) fn get_precision(r: &mut Reader<'_>) -> Read<Precision> {
    match r.d.u8()? {
        0 => Ok(Precision::Exact),
        1 => Ok(Precision::Sampled {
            looked_at: r.d.uvar()?,
            of: r.d.uvar()?,
        }),
        tag => Err(r.unknown("a precision", tag)),
    }
}

/// The slots, the error, and of each atom the binary logarithm of its width, and its records; positions follow.
pub(super) fn put_weights(w: &mut Writer, weights: &Weights) {
    put_slots(w, &weights.slots);
    w.e.uvar(weights.error);
    w.list(&weights.atoms, |w, atom| {
        w.e.u8(atom.width.max(1).ilog2() as u8);
        w.e.uvar(atom.records);
    });
}

pub(super) fn get_weights(r: &mut Reader<'_>) -> Read<Weights> {
    let slots = get_slots(r)?;
    let error = r.d.uvar()?;
    let mut next = 0u16;
    let atoms = r.list(|r| {
        let log = r.d.u8()?;
        let width = 1u16.checked_shl(u32::from(log));
        let width = width.filter(|width| usize::from(next) + usize::from(*width) <= SLOTS);
        let width = width.ok_or_else(|| r.d.invalid("atoms go beyond the last slot"))?;
        let first = next;
        next += width;
        Ok(Atom {
            first,
            width,
            records: r.d.uvar()?,
        })
    })?;
    if usize::from(next) != SLOTS {
        return Err(r.d.invalid("atoms end before the last slot"));
    }
    Ok(Weights { slots, atoms, error })
}
