//! Reading a slice: where a fetch reads, what it hands out, what it searched in vain, and what is recalled after a
//! restart.

use super::change::Edit;
use super::divided::{Chain, ChainState};
use super::fault::Fault;
use super::live::{Live, Mark, Record};
use super::offset::{Position, SliceId};
use super::step::{Refusal, Step};
use super::{Cursor, Divided};
use crate::ids::Offset;
use crate::limits::SERVED_CEILING_STEP;
use crate::sieve::Sieve;

/// Where a fetch reads.
#[derive(Clone, Debug)]
pub enum Found {
    /// The id is none of this cursor's. If the partition's pool has it retired, treat it as [`Found::Silent`]; else
    /// the offset is out of range.
    Unknown,
    /// The slice is of a chain that is no longer held: no data, a long poll, high watermark = the offset asked for.
    Silent,
    /// Read this.
    Read(ReadPlan),
}

/// What to read for a fetch.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// Name of the chain.
    pub chain: SliceId,
    /// The slice: its id goes into the offsets of the answer.
    pub slice: SliceId,
    /// First offset of the answer; not always the one asked for.
    pub from: Offset,
    /// Nothing of the slice lies below: begin searching here (at or after `from`).
    pub scan_from: Offset,
    /// Which records belong to the slice, and its end.
    pub sieve: Sieve,
    /// If the slice ends and nothing of it is left: where to go on. Locate that.
    pub next: Option<Position>,
}

/// What may leave with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The end of the answer (excluded): what lies at or behind it must be cut off. May lie below the end that was
    /// read, if the slice ended meanwhile.
    pub end: Offset,
}

/// A range of a slice that has to be read again after a restart.
#[derive(Clone, Debug)]
pub struct Recall {
    /// Name of the chain.
    pub chain: SliceId,
    /// The slice.
    pub slice: SliceId,
    /// First offset.
    pub from: Offset,
    /// End (excluded).
    pub to: Offset,
    /// Which records.
    pub sieve: Sieve,
}

impl Divided {
    /// Where a fetch of `offset` in the slice `id` reads. A mere lookup: nothing is handed out yet.
    pub fn locate(&self, live: &Live, id: SliceId, offset: Offset) -> Found {
        let Some((name, chain)) = self.chain_with(id) else {
            return Found::Unknown;
        };
        let Some((mut at, is_slice)) = chain.find(id) else {
            return Found::Unknown;
        };
        if chain.state != ChainState::Held {
            return Found::Silent;
        }
        let start = |at: usize| chain.slices[at].start;
        let mut from = if is_slice {
            offset.max(start(at))
        } else {
            start(at)
        };
        if live.is_broken(Fault::RetiredAtOnce) && at + 1 < chain.slices.len() {
            at = chain.slices.len() - 1;
            from = start(at);
        }
        while at + 1 < chain.slices.len() && is_exhausted(live, name, chain, at, from) {
            at += 1;
            let carried = live.is_broken(Fault::PositionCarried);
            from = if carried { from.max(start(at)) } else { start(at) };
        }
        let slice = &chain.slices[at];
        let next = chain.slices.get(at + 1).map(|next| Position {
            slice: next.id,
            offset: next.start,
        });
        let searched = live
            .slice(name, slice.id)
            .filter(|found| found.is_known && !found.has(from));
        let floor = if at == 0 { chain.pos } else { slice.start };
        let scan_from = searched
            .filter(|_| from >= floor)
            .map_or(from, |found| found.known.max(from));
        let scan_from = live
            .slice(name, slice.id)
            .map_or(scan_from, |found| found.unsearched(scan_from));
        Found::Read(ReadPlan {
            chain: name,
            slice: slice.id,
            from,
            scan_from,
            sieve: live.sieve(name, slice),
            next,
        })
    }

    /// Whether a read begins with what the member was handed before: a repeated request, a lost answer, a seek.
    pub fn is_repeated(&self, live: &Live, plan: &ReadPlan) -> bool {
        let slice = self
            .chain(plan.chain)
            .and_then(|chain| chain.slices.iter().find(|slice| slice.id == plan.slice));
        slice.is_some_and(|slice| plan.from < live.served(plan.chain, slice))
    }

    /// What must be read again after a restart, of chains that are held.
    pub fn recall_wanted(&self, live: &Live) -> Vec<Recall> {
        let held = self.chains().filter(|(_, chain)| chain.state == ChainState::Held);
        let slices = held.flat_map(|(name, chain)| {
            let numbered = chain.slices.iter().enumerate();
            numbered.map(move |(at, slice)| (name, if at == 0 { chain.pos } else { slice.start }, slice))
        });
        let wanted = slices.filter_map(|(chain, from, slice)| {
            let found = live.slice(chain, slice.id).filter(|found| !found.is_known)?;
            Some(Recall {
                chain,
                slice: slice.id,
                from,
                to: slice.to.unwrap_or(found.served).max(from),
                sieve: live.sieve(chain, slice),
            })
        });
        wanted.collect()
    }
}

/// Whether a slice has nothing to read from an offset on, as far as it is known. What is not known is found out by
/// reading, and [`ReadPlan::next`] leads on.
fn is_exhausted(live: &Live, name: SliceId, chain: &Chain, at: usize, from: Offset) -> bool {
    let slice = &chain.slices[at];
    let ends = slice.to.is_some_and(|to| from >= to);
    let floor = if at == 0 { chain.pos } else { slice.start };
    let found = live.slice(name, slice.id);
    let known = found.is_some_and(|found| found.is_known);
    let over = |to: Offset| found.is_some_and(|found| found.unsearched(from) >= to);
    ends || slice.to.is_some_and(over) || (known && from >= floor && !live.has(name, slice, from))
}

impl Step<'_> {
    /// Reserves what a reader found for a fetch, before the answer leaves: `records` are all records of the slice in
    /// `[plan.from, end)`, in order. Looks again whether they still belong to it: slots may have left meanwhile
    /// (never come), then it is [`Refusal::Stale`], and the fetch is located anew. The answer may leave when the changes of this step are durable, if there are any.
    pub fn reserve(&mut self, plan: &ReadPlan, records: &[Record], end: Offset) -> Result<Reserved, Refusal> {
        let chain = self.held(plan.chain)?;
        let at = chain.slices.iter().position(|slice| slice.id == plan.slice);
        let slice = at.and_then(|at| chain.slices.get(at)).ok_or(Refusal::Stale)?;
        let end = slice.to.map_or(end, |to| end.min(to)).max(plan.from);
        let kept = records.partition_point(|record| record.offset < end);
        let records = &records[..kept];
        let sieve = self.live.sieve(plan.chain, slice);
        if !records
            .iter()
            .all(|record| sieve.keeps(record.slot, record.offset))
        {
            return Err(Refusal::Stale);
        }
        let raised = self.raised_ceiling(slice.ceiling, slice.to, end);
        let floor = if at == Some(0) { chain.pos } else { slice.start };
        if !self.live.is_broken(Fault::ServedNotReserved) {
            self.hand_out(plan, floor, records, end);
        }
        if let Some(ceiling) = raised.filter(|_| !records.is_empty() || end > plan.from) {
            self.make(Edit::Ceiling {
                chain: plan.chain,
                slice: plan.slice,
                ceiling,
            });
        }
        Ok(Reserved { end })
    }

    /// The ceiling that must be durable before an answer up to `end` leaves; `None` if the present one will do.
    fn raised_ceiling(&self, ceiling: Option<Offset>, to: Option<Offset>, end: Offset) -> Option<Offset> {
        if ceiling.is_some_and(|ceiling| end <= ceiling) {
            return None;
        }
        let step = i64::try_from(SERVED_CEILING_STEP).unwrap_or(Offset::MAX);
        let ahead = end.saturating_add(step);
        Some(to.map_or(ahead, |to| ahead.min(to)))
    }

    fn hand_out(&mut self, plan: &ReadPlan, floor: Offset, records: &[Record], end: Offset) {
        let unmarked = self.live.is_broken(Fault::RewindUnmarked) || self.is_ahead_of_fresh_slice(plan);
        let Some(live) = self.live.chains.get_mut(&plan.chain) else {
            return;
        };
        let later = live
            .slices
            .iter()
            .any(|(id, slice)| *id > plan.slice && slice.was_served());
        let Some(found) = live.slices.get_mut(&plan.slice) else {
            return;
        };
        let again = records
            .first()
            .is_some_and(|first| later || first.offset < found.served);
        found.known = found.known.max(floor);
        found.note(plan.from, records, end);
        found.served = found.served.max(end);
        live.bound();
        if again && !unmarked {
            live.mark = Mark::Rewound;
        }
    }

    /// Whether the member is still on its way to the slice that it got as rewound, and saw nothing of it: reading
    /// something once more does not change what a commit in that slice will prove.
    fn is_ahead_of_fresh_slice(&self, plan: &ReadPlan) -> bool {
        let Mark::Fresh(fresh) = self.live.mark(plan.chain) else {
            return false;
        };
        let slices = self.held(plan.chain).map_or(&[][..], |chain| &chain.slices);
        let mut from_fresh_on = slices.iter().filter(|slice| slice.id >= fresh);
        plan.slice < fresh && from_fresh_on.all(|slice| slice.ceiling.is_none())
    }

    /// A reader searched `[plan.scan_from, to)` for the slice and found nothing; the next one need not search it
    /// again.
    pub fn memo(&mut self, plan: &ReadPlan, to: Offset) {
        let Ok(chain) = self.held(plan.chain) else { return };
        let Some(at) = chain.slices.iter().position(|slice| slice.id == plan.slice) else {
            return;
        };
        let slice = &chain.slices[at];
        let to = slice.to.map_or(to, |end| to.min(end));
        let floor = if at == 0 { chain.pos } else { slice.start };
        let found = self.live.chains.get_mut(&plan.chain);
        if let Some(found) = found.and_then(|live| live.slices.get_mut(&plan.slice)) {
            found.note_searched(plan.scan_from, to, floor);
        }
    }

    /// After a restart: all records of the slice in the range of `wanted`, in order. When every range of a chain was
    /// given, it settles and may move again.
    pub fn recall(&mut self, wanted: &Recall, records: &[Record]) -> Result<(), Refusal> {
        self.held(wanted.chain)?;
        let live = self
            .live
            .chains
            .get_mut(&wanted.chain)
            .ok_or(Refusal::UnknownChain)?;
        let found = live.slices.get_mut(&wanted.slice).ok_or(Refusal::Stale)?;
        if !found.is_known {
            found.recall(records);
            live.bound();
            self.settle(wanted.chain);
        }
        Ok(())
    }
}

impl Cursor {
    /// Where a fetch reads; see [`Divided::locate`].
    pub fn locate(&self, live: &Live, id: SliceId, offset: Offset) -> Found {
        match self {
            Self::Divided(divided) => divided.locate(live, id, offset),
            Self::Plain(_) => Found::Unknown,
        }
    }
}
