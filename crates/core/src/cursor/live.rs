//! The volatile half of a divided cursor: what was handed out and may still be in work.

use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

use anabranch_wire::slot::Slot;

use super::divided::{Chain, Divided, Slice};
use super::fault::{Fault, Planted};
use super::offset::{Position, SliceId};
use crate::ids::Offset;
use crate::limits::HANDED_OUT_RECORDS_MAX;
use crate::sieve::Sieve;
use crate::slots::SlotSet;

/// What is known about a divided cursor and need not survive a restart. After one, begin with [`Live::recover`].
#[derive(Clone, Debug, Default)]
pub struct Live {
    pub(super) chains: BTreeMap<SliceId, LiveChain>,
    pub(crate) planted: Planted,
}

/// The same of one chain.
#[derive(Clone, Debug)]
pub(super) struct LiveChain {
    /// By slice; those that are done stay until `sure` has passed them.
    pub(super) slices: BTreeMap<SliceId, HandedOut>,
    /// The committed position before the present one, with a record in between: two different positions are the
    /// ends of two batches, and the later was only taken when the earlier was done.
    pub(super) sure: Position,
    /// The latest such position.
    pub(super) last: Position,
    pub(super) mark: Mark,
    /// When each transit began, monotonic milliseconds.
    pub(super) since_ms: BTreeMap<SliceId, u64>,
}

/// Whether the member reads again what it was handed before (seek, restart, lost answer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Mark {
    /// No.
    Clear,
    /// Yes: it has to get a fresh slice.
    Rewound,
    /// It has one, and must commit in it.
    Fresh(SliceId),
}

/// What was handed out from one slice.
#[derive(Clone, Debug)]
pub(super) struct HandedOut {
    /// Nothing at or above was ever handed out.
    pub(super) served: Offset,
    /// Below it all records of the slice are in `records` or `block`, or committed.
    pub(super) known: Offset,
    /// Not after a restart, until [`super::Step::recall`].
    pub(super) is_known: bool,
    /// Records in rising order of offset.
    pub(super) records: VecDeque<Record>,
    pub(super) block: Option<Block>,
    /// Where a reader has searched in vain last, wherever that was: a slice loses records and never gains any.
    pub(super) searched: Option<(Offset, Offset)>,
    sieve: OnceLock<Sieve>,
}

/// A record that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Its offset in the log.
    pub offset: Offset,
    /// Its slot.
    pub slot: Slot,
}

/// Records that are not remembered one by one: any slot may be anywhere below `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Block {
    pub(super) until: Offset,
    /// A record that was certainly handed out, the last one known.
    pub(super) certain: Option<Offset>,
    /// How many records went into it, and the first of them.
    pub(super) count: u64,
    pub(super) since: Offset,
}

impl Block {
    /// Something below `until` may have been handed out, nothing certainly.
    pub(super) fn up_to(until: Offset) -> Self {
        Self {
            until,
            certain: None,
            count: 0,
            since: until,
        }
    }

    /// About how many of its records lie at or after `from`, as if they lay evenly.
    fn left(&self, from: Offset) -> u64 {
        let (all, left) = (
            self.until.saturating_sub(self.since),
            self.until.saturating_sub(from),
        );
        match (u64::try_from(all), u64::try_from(left)) {
            (_, Err(_) | Ok(0)) | (Err(_) | Ok(0), _) => 0,
            (Ok(all), Ok(left)) if left < all => {
                let share = u128::from(self.count) * u128::from(left) / u128::from(all);
                u64::try_from(share).unwrap_or(self.count)
            }
            (Ok(_), Ok(_)) => self.count,
        }
    }
}

impl Live {
    /// Whether this fault is planted. Always false in the shipped program.
    #[inline]
    pub(super) fn is_broken(&self, fault: Fault) -> bool {
        self.planted.is(fault)
    }

    /// What is known after a restart: how far each slice may have been handed out, and nothing of the records. Chains
    /// that were read count as rewound, and are blind until [`super::Step::recall`] was given every range of
    /// [`Divided::recall_wanted`]. `log_end` is that of the recovered log.
    pub fn recover(&mut self, divided: &Divided, log_end: Offset, mono_ms: u64) {
        let chains = divided.chains.iter().map(|(name, chain)| {
            let recovered = LiveChain::recover(*name, chain, log_end, mono_ms, self);
            (*name, recovered)
        });
        self.chains = chains.collect();
    }

    pub(super) fn slice(&self, name: SliceId, slice: SliceId) -> Option<&HandedOut> {
        self.chains.get(&name)?.slices.get(&slice)
    }

    /// Whether it is not known what was handed out from a chain.
    pub(super) fn is_blind(&self, name: SliceId) -> bool {
        self.chains
            .get(&name)
            .is_none_or(|chain| chain.slices.values().any(|slice| !slice.is_known))
    }

    pub(super) fn mark(&self, name: SliceId) -> Mark {
        self.chains.get(&name).map_or(Mark::Rewound, |chain| chain.mark)
    }

    /// Where the slice was handed out to; its ceiling or an endless one if that is not known.
    pub(super) fn served(&self, name: SliceId, slice: &Slice) -> Offset {
        let found = self.slice(name, slice.id);
        found.map_or(slice.ceiling.unwrap_or(slice.start), |slice| slice.served)
    }

    /// Whether a record of the slice lies at or after `from`, below its end. An open-ended slice is asked about what
    /// was handed out of it.
    pub(super) fn has(&self, name: SliceId, slice: &Slice, from: Offset) -> bool {
        if self.is_broken(Fault::FenceByNumber) {
            return slice.to.is_none_or(|to| from < to);
        }
        self.slice(name, slice.id).is_none_or(|found| found.has(from))
    }

    /// The first offset at or after `from` that may still have to be done; `None` if the slice is over.
    pub(super) fn first_undone(&self, name: SliceId, slice: &Slice, from: Offset) -> Option<Offset> {
        let Some(found) = self.slice(name, slice.id).filter(|found| found.is_known) else {
            return slice.to.is_none_or(|to| from < to).then_some(from);
        };
        // What was handed out and was searched in vain since, was deleted: nobody can do it any more. The search began where
        // the member was, which may be ahead of what it has committed.
        let from = found.unsearched(from);
        if found.block.is_some_and(|block| block.until > from) {
            return Some(from);
        }
        let slots = slice.pieces.slots();
        let mut left = found
            .records
            .iter()
            .filter(|r| r.offset >= from && slots.contains(r.slot))
            .filter(|r| found.unsearched(r.offset) == r.offset);
        // What was searched behind a part that was skipped counts as soon as that part is done.
        let known = found.unsearched(found.known.max(from));
        let beyond = match slice.to {
            Some(to) => (known < to).then_some(known),
            None => Some(known),
        };
        left.next().map(|record| record.offset).or(beyond)
    }

    /// The table of a slice, made when it is first wanted.
    pub(super) fn sieve(&self, name: SliceId, slice: &Slice) -> Sieve {
        match self.slice(name, slice.id) {
            Some(found) => {
                let table = found.sieve.get_or_init(|| slice.pieces.sieve(None));
                table.up_to(slice.to)
            }
            None => slice.pieces.sieve(slice.to),
        }
    }
}

impl LiveChain {
    pub(super) fn new(slice: &Slice) -> Self {
        let start = Position {
            slice: slice.id,
            offset: slice.start,
        };
        Self {
            slices: BTreeMap::from([(slice.id, HandedOut::new(slice.start))]),
            sure: start,
            last: start,
            mark: Mark::Clear,
            since_ms: BTreeMap::new(),
        }
    }

    fn recover(name: SliceId, chain: &Chain, log_end: Offset, mono_ms: u64, live: &Live) -> Self {
        let is_lost = live.is_broken(Fault::CeilingLost);
        let slices = chain.slices.iter().enumerate().map(|(at, slice)| {
            let from = if at == 0 { chain.pos } else { slice.start };
            let mut found = HandedOut::new(slice.start);
            if let (Some(ceiling), false) = (slice.ceiling, is_lost) {
                found.served = ceiling.min(log_end).max(slice.start);
            }
            let end = slice.to.unwrap_or(found.served);
            found.is_known = slice.ceiling.is_none() || end <= from;
            found.known = end.max(from);
            (slice.id, found)
        });
        let mut slices: BTreeMap<SliceId, HandedOut> = slices.collect();
        let front = chain.front();
        let moved = !chain.closed.is_empty() || chain.pos > front.start;
        if let (true, Some(found)) = (chain.touched && moved, slices.get_mut(&front.id)) {
            // What was committed last may still be in work, and of what slots it was is no longer known.
            found.block = Some(Block::up_to(chain.pos));
        }
        let was_read = !is_lost && chain.slices.iter().any(|slice| slice.ceiling.is_some());
        let is_marked = was_read && !live.is_broken(Fault::MarkLostAtRestart);
        Self {
            slices,
            sure: Position {
                slice: name,
                offset: 0,
            },
            last: chain.position(),
            mark: if is_marked { Mark::Rewound } else { Mark::Clear },
            since_ms: chain
                .transits
                .iter()
                .map(|transit| (transit.by, mono_ms))
                .collect(),
        }
    }

    /// Slots with a record at or after `judge` in slices before `tail`.
    pub(super) fn busy(&self, judge: Position, tail: SliceId) -> SlotSet {
        let mut busy = SlotSet::empty();
        if judge.slice > tail {
            return busy;
        }
        for (id, slice) in self.slices.range(judge.slice..tail) {
            let from = if *id == judge.slice {
                judge.offset
            } else {
                Offset::MIN
            };
            if slice.block.is_some_and(|block| block.until > from) {
                return SlotSet::all();
            }
            for record in slice.at_or_after(from) {
                busy.insert(record.slot);
            }
        }
        busy
    }

    /// Whether a record was certainly handed out between two positions, the second excluded.
    pub(super) fn has_between(&self, from: Position, to: Position) -> bool {
        if from > to {
            return false;
        }
        self.slices.range(from.slice..=to.slice).any(|(id, slice)| {
            let low = if *id == from.slice {
                from.offset
            } else {
                Offset::MIN
            };
            let high = if *id == to.slice { to.offset } else { Offset::MAX };
            let certain = slice.block.and_then(|block| block.certain);
            let mut offsets = slice.at_or_after(low).map(|record| record.offset).chain(certain);
            offsets.any(|offset| (low..high).contains(&offset))
        })
    }

    /// Forgets what lies before `sure`, and slices that are done of which nothing can be in work.
    pub(super) fn prune(&mut self, chain: &Chain) {
        let sure = self.sure;
        if let Some(slice) = self.slices.get_mut(&sure.slice) {
            while slice
                .records
                .front()
                .is_some_and(|record| record.offset < sure.offset)
            {
                slice.records.pop_front();
            }
            if slice.block.is_some_and(|block| block.until <= sure.offset) {
                slice.block = None;
            }
        }
        self.slices.retain(|id, slice| {
            let in_work = *id >= sure.slice && slice.has(Offset::MIN);
            in_work || chain.slices.iter().any(|slice| slice.id == *id)
        });
    }

    /// Keeps the number of records below its limit: the oldest half becomes blocks.
    pub(super) fn bound(&mut self) {
        let total: usize = self.slices.values().map(|slice| slice.records.len()).sum();
        if total <= HANDED_OUT_RECORDS_MAX {
            return;
        }
        let mut left = total / 2;
        for slice in self.slices.values_mut() {
            let count = left.min(slice.records.len());
            left -= count;
            slice.make_block(count);
        }
    }
}

impl HandedOut {
    pub(super) fn new(start: Offset) -> Self {
        Self {
            served: start,
            known: start,
            is_known: true,
            records: VecDeque::new(),
            block: None,
            searched: None,
            sieve: OnceLock::new(),
        }
    }

    /// A reader has found nothing of the slice in `[from, to)`; nothing of it that is not known lies below `floor`.
    pub(super) fn note_searched(&mut self, from: Offset, to: Offset, floor: Offset) {
        let touches = |(start, end): &(Offset, Offset)| *start <= from && from <= *end;
        let start = self.searched.filter(touches).map_or(from, |(start, _)| start);
        let end = to.max(from);
        self.searched = Some((start, end));
        if start <= self.known.max(floor) {
            self.known = self.known.max(end);
        }
    }

    /// Where a search from here on has to begin.
    pub(super) fn unsearched(&self, from: Offset) -> Offset {
        let covers = |(start, end): &(Offset, Offset)| (*start..*end).contains(&from);
        self.searched.filter(covers).map_or(from, |(_, end)| end)
    }

    /// Whether something at or after `from` was handed out, or may have been.
    pub(super) fn has(&self, from: Offset) -> bool {
        let last = self.records.back().map(|record| record.offset);
        last.is_some_and(|last| last >= from) || self.block.is_some_and(|block| block.until > from)
    }

    /// Whether anything was ever handed out.
    pub(super) fn was_served(&self) -> bool {
        self.has(Offset::MIN)
    }

    pub(super) fn at_or_after(&self, from: Offset) -> impl ExactSizeIterator<Item = &Record> {
        let at = self.records.partition_point(|record| record.offset < from);
        self.records.range(at..)
    }

    /// About how many records at or after `from` are not remembered one by one.
    pub(super) fn unlisted(&self, from: Offset) -> u64 {
        self.block.map_or(0, |block| block.left(from))
    }

    /// The pieces changed: the table must be made anew.
    pub(super) fn drop_sieve(&mut self) {
        self.sieve = OnceLock::new();
    }

    /// Notes what a reader found in `[from, end)`: all records of the slice there.
    pub(super) fn note(&mut self, from: Offset, records: &[Record], end: Offset) {
        if from > self.known {
            // The member skipped a part. It is not in work, but it is not done either.
            self.make_block(self.records.len());
            let before = self.block.unwrap_or(Block::up_to(from));
            self.block = Some(Block {
                until: from,
                ..before
            });
        }
        let new = records.iter().filter(|record| record.offset >= self.known);
        self.records.extend(new);
        self.known = self.known.max(end);
    }

    /// Turns the oldest `count` records into a block.
    fn make_block(&mut self, count: usize) {
        let first = self.records.front().map(|record| record.offset);
        if let (Some(first), Some(last)) = (first, self.records.drain(..count).next_back()) {
            let before = self.block.filter(|block| block.count > 0);
            self.block = Some(Block {
                until: last.offset + 1,
                certain: Some(last.offset),
                count: before.map_or(0, |block| block.count) + count as u64,
                since: before.map_or(first, |block| block.since),
            });
        }
    }

    /// Something below `until` was committed, and it is not known which records it was.
    pub(super) fn commit_blindly(&mut self, until: Offset) {
        if !self.is_known {
            self.block = Some(Block::up_to(until));
        }
    }

    /// Fills in what a restart had forgotten: all records of the slice below what was handed out since.
    pub(super) fn recall(&mut self, records: &[Record]) {
        let first = self.records.front().map_or(Offset::MAX, |record| record.offset);
        for record in records.iter().rev().filter(|record| record.offset < first) {
            self.records.push_front(*record);
        }
        self.is_known = true;
    }
}
