//! The slice ids of one partition, shared by all its groups.
//!
//! Fetch names no group, so an id means one slice whoever asks. Low ids come first: up to
//! [`SliceId::LAST_EXACT_IN_DOUBLE`] their offsets survive every language's numbers. Inside the low ids, and inside
//! the others, ids go round, and one that was retired rests for [`SLICE_ID_QUARANTINE_MS`] before it comes again:
//! an application may have stored an offset that carries it. Those that have rested are forgotten when others retire, so
//! that the pool holds no more than the divisions of that time; and what is asked with each plan or answer does not go
//! through all that rest.
//!
//! An id is durable before anybody sees it: journal the changes of this pool before those of the cursor.

use std::collections::{BTreeMap, BTreeSet};

use super::offset::SliceId;
use crate::codec::{CodecError, Decoder, Encoder};
use crate::limits::SLICE_ID_QUARANTINE_MS;

/// What an id of the pool means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdUse<'a> {
    /// It names a slice of this group, now or formerly, of a chain that exists.
    Taken {
        /// Group id.
        group: &'a str,
    },
    /// Its chain is gone; whoever still fetches it gets no data.
    Retired {
        /// Wall clock, milliseconds.
        since_ms: i64,
    },
}

/// The pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SliceIds {
    /// Ids of chains that exist, with the group.
    taken: BTreeMap<SliceId, String>,
    /// Ids of chains that are gone, with the wall clock when they went, milliseconds.
    resting: BTreeMap<SliceId, i64>,
    /// The same, by that time.
    by_time: BTreeSet<(i64, SliceId)>,
    /// The id taken last, among the low ones and among the others.
    last: [Option<SliceId>; 2],
}

/// One durable change of the pool, in absolute values: making it twice is making it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceIdsChange {
    /// An id got a meaning.
    Taken {
        /// The id.
        id: SliceId,
        /// The group whose slice it names.
        group: String,
    },
    /// Chains are gone, and their ids rest.
    Retired {
        /// Ascending.
        ids: Vec<SliceId>,
        /// Wall clock, milliseconds.
        at_ms: i64,
    },
}

impl SliceIds {
    /// What the id means; `None` if it means nothing (any more).
    pub fn get(&self, id: SliceId) -> Option<IdUse<'_>> {
        let taken = self.taken.get(&id).map(|group| IdUse::Taken { group });
        taken.or_else(|| {
            let since_ms = *self.resting.get(&id)?;
            Some(IdUse::Retired { since_ms })
        })
    }

    /// Whether no slice was ever named, so that offsets of the partition need no decoding.
    pub fn is_unused(&self) -> bool {
        self.taken.is_empty() && self.resting.is_empty()
    }

    /// The groups that are divided here, ascending.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let groups: BTreeSet<&str> = self.taken.values().map(String::as_str).collect();
        groups.into_iter()
    }

    /// The largest id that anybody may still go by; `None` if no group is divided here.
    pub fn largest(&self) -> Option<SliceId> {
        let (taken, _) = self.taken.last_key_value()?;
        let resting = self.resting.last_key_value().map(|(id, _)| id);
        resting.max(Some(taken)).copied()
    }

    /// A free id above `above` (ids grow along a chain) and not above `up_to` (what the group's clients can
    /// represent), or `None` if there is none. Takes nothing: apply [`SliceIdsChange::Taken`].
    pub fn free(&self, above: Option<SliceId>, up_to: SliceId, now_ms: i64) -> Option<SliceId> {
        let first = above.map_or(Some(SliceId::FIRST), SliceId::next)?;
        let low = SliceId::LAST_EXACT_IN_DOUBLE;
        let pools = [(SliceId::FIRST, low), (low.next()?, SliceId::LAST)];
        pools.iter().zip(self.last).find_map(|((start, end), last)| {
            let (start, end) = (first.max(*start), up_to.min(*end));
            let resume = last.and_then(SliceId::next).map_or(start, |next| next.max(start));
            let before = SliceId::new(resume.get() - 1);
            self.first_free(resume, end, now_ms)
                .or_else(|| self.first_free(start, before?.min(end), now_ms))
        })
    }

    /// The same, but never the last one that is free: that is for a slice of all slots, with which a division can end
    /// without anything being read again.
    pub fn spare(&self, above: Option<SliceId>, up_to: SliceId, now_ms: i64) -> Option<SliceId> {
        let found = self.free(above, up_to, now_ms)?;
        (self.left(up_to, now_ms) > 1).then_some(found)
    }

    fn first_free(&self, start: SliceId, end: SliceId, now_ms: i64) -> Option<SliceId> {
        if start > end {
            return None;
        }
        let mut at = start;
        while self.is_in_use(at, now_ms) {
            at = at.next().filter(|next| *next <= end)?;
        }
        Some(at)
    }

    fn is_in_use(&self, id: SliceId, now_ms: i64) -> bool {
        let rests = |since_ms: &i64| !has_rested(*since_ms, now_ms);
        self.taken.contains_key(&id) || self.resting.get(&id).is_some_and(rests)
    }

    /// How many ids not above `up_to` are free.
    pub fn left(&self, up_to: SliceId, now_ms: i64) -> u32 {
        let resting = match up_to {
            // Unlike the few low ones, all that rest can be many.
            SliceId::LAST => self.resting.len(),
            _ => self.resting.range(..=up_to).count(),
        };
        let free_again = self.rested(now_ms).filter(|(_, id)| *id <= up_to).count();
        let in_use = self.taken.range(..=up_to).count() + resting - free_again;
        up_to
            .get()
            .saturating_sub(u32::try_from(in_use).unwrap_or(u32::MAX))
    }

    /// Retired ids whose quarantine is over, in the order in which they retired.
    fn rested(&self, now_ms: i64) -> impl Iterator<Item = &(i64, SliceId)> {
        self.by_time
            .iter()
            .take_while(move |(since_ms, _)| has_rested(*since_ms, now_ms))
    }

    /// Ids that are taken, but not in any cursor: what a crash between the two changes leaves. `is_used` is asked
    /// with the id and its group. Retire them.
    pub fn strays(&self, mut is_used: impl FnMut(SliceId, &str) -> bool) -> Vec<SliceId> {
        let taken = self.taken.iter();
        let strays = taken.filter(|(id, group)| !is_used(**id, group));
        strays.map(|(id, _)| *id).collect()
    }

    /// Makes one change.
    pub fn apply(&mut self, change: &SliceIdsChange) {
        match change {
            SliceIdsChange::Taken { id, group } => {
                self.wake(*id);
                self.taken.insert(*id, group.clone());
                self.last[usize::from(*id > SliceId::LAST_EXACT_IN_DOUBLE)] = Some(*id);
            }
            SliceIdsChange::Retired { ids, at_ms } => {
                self.forget(*at_ms);
                for id in ids {
                    self.lay_to_rest(*id, *at_ms);
                }
            }
        }
    }

    /// Forgets retired ids whose quarantine is over. They read as unknown from then on.
    fn forget(&mut self, now_ms: i64) {
        let rested: Vec<SliceId> = self.rested(now_ms).map(|(_, id)| *id).collect();
        for id in rested {
            self.wake(id);
        }
    }

    fn lay_to_rest(&mut self, id: SliceId, since_ms: i64) {
        self.taken.remove(&id);
        self.wake(id);
        self.resting.insert(id, since_ms);
        self.by_time.insert((since_ms, id));
    }

    fn wake(&mut self, id: SliceId) {
        if let Some(since_ms) = self.resting.remove(&id) {
            self.by_time.remove(&(since_ms, id));
        }
    }

    /// The pool behind other values.
    pub fn put(&self, e: &mut Encoder) {
        for last in self.last {
            e.uvar(last.map_or(0, |id| u64::from(id.get())));
        }
        let taken = self.taken.iter().map(|(id, group)| (*id, IdUse::Taken { group }));
        let retired = |since_ms: &i64| IdUse::Retired { since_ms: *since_ms };
        let resting = self.resting.iter().map(|(id, since_ms)| (*id, retired(since_ms)));
        let uses: BTreeMap<SliceId, IdUse<'_>> = taken.chain(resting).collect();
        e.list(&uses, |e, (id, used)| {
            put_id(e, *id);
            match used {
                IdUse::Taken { group } => {
                    e.u8(0);
                    e.str(group);
                }
                IdUse::Retired { since_ms } => {
                    e.u8(1);
                    e.ivar(*since_ms);
                }
            }
        });
    }

    /// Reads a pool that other values may follow.
    pub fn get_from(d: &mut Decoder<'_>) -> Result<Self, CodecError> {
        let last = [get_opt_id(d)?, get_opt_id(d)?];
        let fits = |id: Option<SliceId>, high: bool| {
            id.is_none_or(|id| (id > SliceId::LAST_EXACT_IN_DOUBLE) == high)
        };
        if !fits(last[0], false) || !fits(last[1], true) {
            return Err(d.invalid("the last slice ids before are in the wrong part of the pool"));
        }
        let mut pool = Self {
            last,
            ..Self::default()
        };
        let mut before = None;
        d.list(|d| {
            let id = get_id(d)?;
            if before.replace(id) >= Some(id) {
                return Err(d.invalid("the slice ids before do not ascend"));
            }
            match d.u8()? {
                0 => drop(pool.taken.insert(id, d.string()?)),
                1 => pool.lay_to_rest(id, d.ivar()?),
                _ => return Err(d.invalid("the byte before is no use of a slice id")),
            }
            Ok(())
        })?;
        Ok(pool)
    }
}

/// Whether the quarantine of an id that retired then is over. A clock that went back frees nothing.
fn has_rested(since_ms: i64, now_ms: i64) -> bool {
    let rested_ms = u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(0);
    rested_ms >= SLICE_ID_QUARANTINE_MS
}

impl SliceIdsChange {
    /// Writes the change behind other values.
    pub fn put(&self, e: &mut Encoder) {
        match self {
            Self::Taken { id, group } => {
                e.u8(1);
                put_id(e, *id);
                e.str(group);
            }
            Self::Retired { ids, at_ms } => {
                e.u8(2);
                put_ids(e, ids);
                e.ivar(*at_ms);
            }
        }
    }

    /// Reads a change that other values may follow.
    pub fn get(d: &mut Decoder<'_>) -> Result<Self, CodecError> {
        let at = d.position();
        Ok(match d.u8()? {
            1 => Self::Taken {
                id: get_id(d)?,
                group: d.string()?,
            },
            2 => Self::Retired {
                ids: get_ids(d)?,
                at_ms: d.ivar()?,
            },
            tag => {
                return Err(CodecError::UnknownTag {
                    at,
                    tag: u64::from(tag),
                    what: "change of slice ids",
                });
            }
        })
    }
}

pub(super) fn put_id(e: &mut Encoder, id: SliceId) {
    e.uvar(u64::from(id.get()));
}

pub(super) fn get_id(d: &mut Decoder<'_>) -> Result<SliceId, CodecError> {
    let number = d.uvar32()?;
    SliceId::new(number).ok_or_else(|| d.invalid("the number before is no slice id"))
}

fn get_opt_id(d: &mut Decoder<'_>) -> Result<Option<SliceId>, CodecError> {
    match d.uvar32()? {
        0 => Ok(None),
        number => SliceId::new(number)
            .map(Some)
            .ok_or_else(|| d.invalid("the number before is no slice id")),
    }
}

pub(super) fn put_ids(e: &mut Encoder, ids: &[SliceId]) {
    e.list(ids, |e, id| put_id(e, *id));
}

/// Ascending ids.
pub(super) fn get_ids(d: &mut Decoder<'_>) -> Result<Vec<SliceId>, CodecError> {
    let ids = d.list(get_id)?;
    let set: BTreeSet<_> = ids.iter().collect();
    if set.len() != ids.len() || !ids.is_sorted() {
        return Err(d.invalid("the slice ids before do not ascend"));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REST: i64 = SLICE_ID_QUARANTINE_MS as i64;

    fn id(number: u32) -> SliceId {
        SliceId::new(number).unwrap()
    }

    fn take(ids: &mut SliceIds, above: Option<u32>, now_ms: i64) -> Option<u32> {
        let found = ids.free(above.map(id), SliceId::LAST, now_ms)?;
        ids.apply(&SliceIdsChange::Taken {
            id: found,
            group: "g".into(),
        });
        Some(found.get())
    }

    fn retire(ids: &mut SliceIds, number: u32, at_ms: i64) {
        ids.apply(&SliceIdsChange::Retired {
            ids: vec![id(number)],
            at_ms,
        });
    }

    #[test]
    fn low_ids_come_first_and_go_round() {
        let mut ids = SliceIds::default();
        assert_eq!(take(&mut ids, None, 0), Some(1));
        assert_eq!(take(&mut ids, None, 0), Some(2));
        retire(&mut ids, 1, 0);
        assert_eq!(
            take(&mut ids, None, REST),
            Some(3),
            "1 is free again, but the ids go round"
        );
        assert_eq!(take(&mut ids, Some(100), 0), Some(101));
        for expected in 102..=127 {
            assert_eq!(take(&mut ids, None, 0), Some(expected));
        }
        assert_eq!(take(&mut ids, None, 0), Some(4), "1 rests; round to the gap");
        assert_eq!(
            take(&mut ids, Some(110), 0),
            Some(128),
            "a chain goes on among the others"
        );
        assert_eq!(take(&mut ids, None, REST), Some(5), "low ones are preferred");
    }

    #[test]
    fn a_retired_id_rests_before_it_comes_again() {
        let mut ids = SliceIds::default();
        for _ in 1..=127 {
            take(&mut ids, None, 0);
        }
        retire(&mut ids, 9, 1_000);
        let free = |ids: &SliceIds, now_ms| ids.free(None, SliceId::LAST_EXACT_IN_DOUBLE, now_ms);
        assert_eq!(free(&ids, 1_000 + REST - 1), None);
        assert_eq!(free(&ids, 1_000 + REST), Some(id(9)));
        let left = |ids: &SliceIds, up_to, now_ms| ids.left(up_to, now_ms);
        let low = SliceId::LAST_EXACT_IN_DOUBLE;
        assert_eq!((left(&ids, low, 1_000), left(&ids, low, 1_000 + REST)), (0, 1));
        assert_eq!(left(&ids, SliceId::LAST, 1_000), SliceId::LAST.get() - 127);
        assert_eq!(free(&ids, 0), None, "a clock that went back frees nothing");
        retire(&mut ids, 10, 1_000 + REST - 1);
        assert_eq!(ids.get(id(9)), Some(IdUse::Retired { since_ms: 1_000 }));
        retire(&mut ids, 11, 1_000 + REST);
        assert_eq!(ids.get(id(9)), None, "it is forgotten when others retire");
        assert!(ids.get(id(10)).is_some() && ids.get(id(11)).is_some());
        assert_eq!(
            (
                left(&ids, low, 1_000 + REST),
                left(&ids, SliceId::LAST, 1_000 + REST)
            ),
            (1, SliceId::LAST.get() - 126)
        );
    }

    #[test]
    fn the_pool_of_a_partition_that_is_divided_for_ever_does_not_grow() {
        let mut ids = SliceIds::default();
        let step_ms = REST / 100;
        for round in 0..1_000 {
            let number = take(&mut ids, None, round * step_ms).unwrap();
            retire(&mut ids, number, round * step_ms);
        }
        assert_eq!((ids.resting.len(), ids.by_time.len()), (100, 100));
        assert_eq!(ids.largest(), None);
    }

    #[test]
    fn the_largest_id_counts_while_a_group_is_divided() {
        let mut ids = SliceIds::default();
        assert_eq!((ids.largest(), ids.groups().count()), (None, 0));
        for _ in 0..3 {
            take(&mut ids, None, 0);
        }
        assert_eq!(ids.groups().collect::<Vec<_>>(), ["g"]);
        retire(&mut ids, 3, 0);
        assert_eq!(
            ids.largest(),
            Some(id(3)),
            "somebody may not know yet that it is over"
        );
        retire(&mut ids, 1, 0);
        retire(&mut ids, 2, 0);
        assert_eq!((ids.largest(), ids.groups().count()), (None, 0));
    }

    #[test]
    fn exhaustion_is_an_answer() {
        let mut ids = SliceIds::default();
        assert_eq!(ids.free(Some(SliceId::LAST), SliceId::LAST, 0), None);
        for number in 1..=SliceId::LAST.get() {
            ids.apply(&SliceIdsChange::Taken {
                id: id(number),
                group: String::new(),
            });
        }
        assert_eq!(ids.free(None, SliceId::LAST, i64::MAX), None);
        retire(&mut ids, 131_071, 0);
        assert_eq!(
            ids.free(Some(id(131_070)), SliceId::LAST, REST),
            Some(SliceId::LAST)
        );
        assert_eq!(ids.free(None, SliceId::LAST, REST), Some(SliceId::LAST));
    }

    #[test]
    fn strays_are_found() {
        let mut ids = SliceIds::default();
        for _ in 0..3 {
            take(&mut ids, None, 0);
        }
        retire(&mut ids, 1, 0);
        assert_eq!(ids.strays(|id, group| group == "g" && id.get() == 2), [id(3)]);
    }

    proptest! {
        #[test]
        fn no_id_is_given_twice_and_the_pool_comes_back(
            ops in prop::collection::vec((prop::option::of(1..150u32), any::<bool>()), 0..300)
        ) {
            let mut ids = SliceIds::default();
            let mut taken = BTreeSet::new();
            for (now_ms, (above, gives_back)) in ops.into_iter().enumerate() {
                if let Some(got) = take(&mut ids, above, now_ms as i64) {
                    prop_assert!(above.is_none_or(|above| got > above));
                    prop_assert!(taken.insert(got), "{} was taken or rests", got);
                    if gives_back {
                        retire(&mut ids, got, now_ms as i64);
                    }
                }
            }
            let mut e = Encoder::new();
            ids.put(&mut e);
            let bytes = e.into_bytes();
            let mut d = Decoder::new(&bytes);
            prop_assert_eq!(SliceIds::get_from(&mut d).unwrap(), ids);
            prop_assert!(d.finish().is_ok());
        }
    }
}
