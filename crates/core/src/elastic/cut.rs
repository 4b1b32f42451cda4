//! The cut: which slots of a share go to whom, so that the *records* are dealt evenly.
//!
//! Two steps. [`weigh`] turns records per slot into at most a few hundred *atoms*: runs of neighbouring slots, bisected
//! until each has less than a small part of the records or is a single slot. [`deal`] puts the atoms, largest first, onto
//! the side that is lightest so far. The sides then differ by no more than the largest atom: the hottest slot, or far less
//! than 2 % of a side.
//!
//! Atoms instead of slots cost no evenness and save three times: shares are few runs of slots, a decision keeps its inputs
//! in about a kilobyte instead of twenty, and dealing takes microseconds.

use anabranch_wire::slot::{SLOTS, Slot};

use super::counts::SlotCounts;
use crate::slots::SlotSet;

/// An atom that is not a single slot has at most one of so many parts of an even side: 1.6 %.
const PARTS_OF_A_SIDE: u64 = 64;
/// The most slots of an atom, however few records they have: records to come shall be dealt evenly, too.
const WIDTH_MAX: usize = 64;

/// A run of slots that is dealt as a whole. Slots of the run that the share does not have weigh nothing and go nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atom {
    /// The first slot's number.
    pub first: u16,
    /// How many slot numbers it spans, at least 1.
    pub width: u16,
    /// The records of the share in it.
    pub records: u64,
}

/// A share, weighed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The slots that are there to deal.
    pub slots: SlotSet,
    /// Their records, by runs that cover all slots in rising order.
    pub atoms: Vec<Atom>,
    /// How far the records of a side may lie from the truth; 0 if all were counted.
    pub error: u64,
}

/// The slot with the most records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hottest {
    /// Which.
    pub slot: Slot,
    /// Its records.
    pub records: u64,
    /// Records of all other slots together.
    pub others: u64,
}

/// One side of a cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// What was dealt to it.
    pub slots: SlotSet,
    /// Records of those slots.
    pub records: u64,
}

/// Weighs the slots of a share that is to be cut into `sides` (at least 1) sides.
pub fn weigh(slots: &SlotSet, counts: &SlotCounts, sides: usize) -> Weights {
    let mut prefix = Vec::with_capacity(SLOTS + 1);
    let mut sum = 0u64;
    prefix.push(sum);
    for number in 0..SLOTS as u16 {
        let inside = Slot::new(number).filter(|slot| slots.contains(*slot));
        sum = sum.saturating_add(inside.map_or(0, |slot| counts.get(slot)));
        prefix.push(sum);
    }
    let most = sum / (sides.max(1) as u64).saturating_mul(PARTS_OF_A_SIDE);
    let mut atoms = Vec::new();
    bisect(&prefix, 0, SLOTS, most, &mut atoms);
    let error = counts.precision().error_of(sum / sides.max(1) as u64);
    Weights {
        slots: slots.clone(),
        atoms,
        error,
    }
}

/// Cuts `[from, to)` in two until a part is small enough: at most `most` records in at most [`WIDTH_MAX`] slots, or one
/// slot.
fn bisect(prefix: &[u64], from: usize, to: usize, most: u64, atoms: &mut Vec<Atom>) {
    let at = |index: usize| prefix.get(index).copied().unwrap_or(0);
    let records = at(to) - at(from);
    if to - from == 1 || (records <= most && to - from <= WIDTH_MAX) {
        atoms.push(Atom {
            first: from as u16,
            width: (to - from) as u16,
            records,
        });
        return;
    }
    let middle = usize::midpoint(from, to);
    bisect(prefix, from, middle, most, atoms);
    bisect(prefix, middle, to, most, atoms);
}

impl Weights {
    /// Records of all atoms.
    pub fn total(&self) -> u64 {
        self.atoms
            .iter()
            .fold(0, |sum, atom| sum.saturating_add(atom.records))
    }

    /// The hottest slot, as far as the atoms tell: the heaviest that is a single slot. Every slot with more than one part
    /// in [`PARTS_OF_A_SIDE`] of a side is one.
    pub fn hottest(&self) -> Option<Hottest> {
        let single = self
            .atoms
            .iter()
            .filter(|atom| atom.width == 1 && atom.records > 0);
        let heaviest = single.max_by_key(|atom| (atom.records, std::cmp::Reverse(atom.first)))?;
        Some(Hottest {
            slot: Slot::new(heaviest.first)?,
            records: heaviest.records,
            others: self.total().saturating_sub(heaviest.records),
        })
    }

    fn slots_of(&self, atom: Atom) -> impl Iterator<Item = Slot> {
        let run = atom.first..atom.first.saturating_add(atom.width);
        run.filter_map(Slot::new)
            .filter(|slot| self.slots.contains(*slot))
    }
}

/// Deals the slots among as many sides as `start` has; `start` are the records that each side has already and keeps.
///
/// Side 0 is the owner: if one slot alone is at least an even side, it stays there, since the owner is at work on it and
/// whatever moves has to wait for that. Slots without records follow the number of slots, for the sake of records to come,
/// and stay away from sides that have more than their part.
pub fn deal(weights: &Weights, start: &[u64]) -> Vec<Side> {
    let mut sides = vec![Side::default(); start.len()];
    let mut load = start.to_vec();
    let mut width = vec![0usize; start.len()];
    let total = start
        .iter()
        .fold(weights.total(), |sum, records| sum.saturating_add(*records));
    let even = total / (start.len().max(1) as u64);
    let pinned = weights.hottest().filter(|hottest| hottest.records >= even.max(1));
    let mut order: Vec<Atom> = weights.atoms.clone();
    order.sort_by_key(|atom| (std::cmp::Reverse(atom.records), atom.first));
    for atom in order {
        let is_pinned = pinned.is_some_and(|hottest| atom.width == 1 && hottest.slot.get() == atom.first);
        let to = match () {
            () if is_pinned => Some(0),
            () if atom.records > 0 => lightest(&load, |at| (load.get(at), width.get(at))),
            () => lightest(&load, |at| {
                (load.get(at).is_some_and(|records| *records > even), width.get(at))
            }),
        };
        let Some(to) = to else { continue };
        let (Some(side), Some(records), Some(slots)) =
            (sides.get_mut(to), load.get_mut(to), width.get_mut(to))
        else {
            continue;
        };
        *records = records.saturating_add(atom.records);
        side.records = side.records.saturating_add(atom.records);
        for slot in weights.slots_of(atom) {
            side.slots.insert(slot);
            *slots += 1;
        }
    }
    sides
}

/// The first side with the least key.
fn lightest<K: Ord>(sides: &[u64], key: impl Fn(usize) -> K) -> Option<usize> {
    (0..sides.len()).min_by_key(|at| key(*at))
}
