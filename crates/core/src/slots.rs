//! Sets of slots: which keys a share of a partition has.
//!
//! A slot is a hash of a record's key ([`anabranch_wire::slot`]). Everything that moves between members of a group
//! moves as whole slots, so a set of them says exactly whose keys are whose.

use std::fmt;

use anabranch_wire::slot::{SLOTS, Slot};

const WORDS: usize = SLOTS / 64;

/// A set of slots; 512 bytes, whatever is in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotSet {
    words: Box<[u64; WORDS]>,
}

impl SlotSet {
    /// No slot.
    pub fn empty() -> Self {
        Self {
            words: Box::new([0; WORDS]),
        }
    }

    /// Every slot.
    pub fn all() -> Self {
        Self {
            words: Box::new([u64::MAX; WORDS]),
        }
    }

    /// Whether the slot is in the set.
    #[inline]
    pub fn contains(&self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        self.words[word] & bit != 0
    }

    /// Adds a slot; says whether it was missing.
    pub fn insert(&mut self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        let was_missing = self.words[word] & bit == 0;
        self.words[word] |= bit;
        was_missing
    }

    /// Takes a slot out; says whether it was there.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let (word, bit) = place(slot);
        let was_there = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        was_there
    }

    /// How many slots are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no slot is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether the set is every slot.
    pub fn is_all(&self) -> bool {
        self.words.iter().all(|word| *word == u64::MAX)
    }

    /// Whether the two sets have no slot in common.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(other.words.iter()).all(|(a, b)| a & b == 0)
    }

    /// Whether every slot of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words
            .iter()
            .zip(other.words.iter())
            .all(|(a, b)| a & !b == 0)
    }

    /// The slots in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.zip_with(other, |a, b| a | b)
    }

    /// The slots in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip_with(other, |a, b| a & b)
    }

    /// The slots of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.zip_with(other, |a, b| a & !b)
    }

    /// The slots, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(slot_at(at * 64 + bit as usize))
            })
        })
    }

    /// Runs of neighbouring slots as (first, last), both in the set, in rising order. For people to read.
    pub fn runs(&self) -> Vec<(Slot, Slot)> {
        let mut runs = Vec::new();
        let mut next = 0;
        while let Some(first) = self.find(next, true) {
            let end = self.find(first, false).unwrap_or(SLOTS);
            runs.push((slot_at(first), slot_at(end - 1)));
            next = end;
        }
        runs
    }

    /// The first place from `from` on that is in the set, or is not.
    fn find(&self, from: usize, is_in: bool) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (at, word) in self.words.iter().enumerate().skip(from / 64) {
            let wanted = if is_in { *word } else { !*word } & mask;
            if wanted != 0 {
                return Some(at * 64 + wanted.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The set as 64 words, lowest slot in the lowest bit: what the journal keeps.
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The set of these words.
    pub fn from_words(words: [u64; WORDS]) -> Self {
        Self {
            words: Box::new(words),
        }
    }

    fn zip_with(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let mut words = Box::new([0; WORDS]);
        for (out, (a, b)) in words.iter_mut().zip(self.words.iter().zip(other.words.iter())) {
            *out = f(*a, *b);
        }
        Self { words }
    }
}

impl Default for SlotSet {
    /// No slot.
    fn default() -> Self {
        Self::empty()
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> Self {
        let mut set = Self::empty();
        for slot in slots {
            set.insert(slot);
        }
        set
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("{all}");
        }
        let mut list = f.debug_set();
        for (first, last) in self.runs() {
            list.entry(&format_args!("{}..={}", first.get(), last.get()));
        }
        list.finish()
    }
}

#[inline]
fn place(slot: Slot) -> (usize, u64) {
    let slot = usize::from(slot.get());
    (slot / 64, 1 << (slot % 64))
}

fn slot_at(at: usize) -> Slot {
    let number = u16::try_from(at).ok();
    number
        .and_then(Slot::new)
        .expect("the words have as many bits as there are slots")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(slots: &BTreeSet<u16>) -> SlotSet {
        slots.iter().filter_map(|slot| Slot::new(*slot)).collect()
    }

    fn slots() -> impl Strategy<Value = BTreeSet<u16>> {
        proptest::collection::btree_set(0..SLOTS as u16, 0..200)
    }

    proptest! {
        #[test]
        fn it_is_a_set(a in slots(), b in slots()) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.union(&y), set(&a.union(&b).copied().collect()));
            prop_assert_eq!(x.intersection(&y), set(&a.intersection(&b).copied().collect()));
            prop_assert_eq!(x.difference(&y), set(&a.difference(&b).copied().collect()));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.is_disjoint(&y), a.is_disjoint(&b));
            prop_assert_eq!(x.iter().map(Slot::get).collect::<Vec<_>>(), a.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(&SlotSet::from_words(*x.words()), &x);
        }

        #[test]
        fn runs_cover_the_set_and_do_not_touch(a in slots()) {
            let runs = set(&a).runs();
            let again: BTreeSet<u16> = runs.iter().flat_map(|(first, last)| first.get()..=last.get()).collect();
            prop_assert_eq!(again, a);
            prop_assert!(runs.windows(2).all(|pair| pair[0].1.get() + 1 < pair[1].0.get()));
        }
    }

    #[test]
    fn slots_come_and_go() {
        let mut set = SlotSet::empty();
        let slot = Slot::new(4095).unwrap();
        assert!(set.insert(slot) && !set.insert(slot) && set.contains(slot));
        assert!(set.remove(slot) && !set.remove(slot) && set.is_empty());
        assert!(SlotSet::all().is_all() && SlotSet::all().len() == SLOTS);
    }

    #[test]
    fn it_prints_as_runs() {
        let set: SlotSet = [1, 2, 3, 9].into_iter().filter_map(Slot::new).collect();
        assert_eq!(format!("{set:?}"), "{1..=3, 9..=9}");
        assert_eq!(format!("{:?}", SlotSet::all()), "{all}");
    }
}
