//! One step of a divided cursor: checked, made, and noted for the journal.

use super::change::{CursorChange, Edit};
use super::divided::{Chain, ChainState, Divided, Slice};
use super::fault::Fault;
use super::ids::{IdUse, SliceIds, SliceIdsChange};
use super::live::{HandedOut, Live, LiveChain, Mark};
use super::offset::{SliceId, SliceOffset};
use super::pieces::Pieces;
use super::{Cursor, Evidence};
use crate::ids::{Now, Offset};
use crate::limits::{CHAIN_CLOSED_IDS_MAX, CHAIN_SLICES_MAX};
use crate::slots::SlotSet;

/// What a step has to know of the world outside.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// The group.
    pub group: &'a str,
    /// The moment.
    pub now: Now,
    /// End of the partition's log, as far as readers may see it.
    pub log_end: Offset,
    /// What a commit of this group proves.
    pub evidence: Evidence,
    /// The largest slice id that all its clients can represent.
    pub ids_up_to: SliceId,
}

/// Why a step was not made. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refusal {
    /// The cursor is plain.
    #[error("the cursor is not divided")]
    NotDivided,
    /// The cursor is divided already.
    #[error("the cursor is divided already")]
    Divided,
    /// There is no offset to divide at, or it does not fit a slice offset.
    #[error("there is no committed offset that fits a slice offset")]
    NoPosition,
    /// There is no such chain.
    #[error("there is no such chain")]
    UnknownChain,
    /// The chain is given up or dead.
    #[error("the chain is not held")]
    NotHeld,
    /// The member holds a chain, or somebody does where nobody may.
    #[error("a chain is still held")]
    StillHeld,
    /// The member reads again what it was handed out.
    #[error("the member reads again what it was handed out before")]
    Rewound,
    /// The member does not.
    #[error("the member was not seen to read anything again")]
    NotRewound,
    /// After a restart, what was handed out is not known yet.
    #[error("what was handed out before the restart is not known yet")]
    Blind,
    /// The chain has as many slices as it may have.
    #[error("the chain has as many slices as it may have")]
    Full,
    /// Some of the slots are not there to be moved.
    #[error("some of the slots are not there to be moved")]
    NotThere,
    /// No slots were named.
    #[error("no slots were named")]
    NoSlots,
    /// No slice id is free.
    #[error("no slice id is free")]
    NoId,
    /// There is no offset that means the same for all slots.
    #[error("no offset is exact for all slots")]
    NotExact,
    /// The cursor changed since it was looked at.
    #[error("the cursor changed since it was looked at")]
    Stale,
}

/// What a step changed, in the order in which it has to be journalled: ids before what they name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "changes that are not journalled are lost"]
pub struct Changes {
    /// Of the partition's slice ids.
    pub ids: Vec<SliceIdsChange>,
    /// Of the cursor.
    pub cursor: Vec<CursorChange>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.cursor.is_empty()
    }
}

/// A step under way. The cursor changes with each call; [`Step::finish`] says what to journal.
#[derive(Debug)]
pub struct Step<'a> {
    pub(super) cursor: &'a mut Cursor,
    pub(super) live: &'a mut Live,
    pub(super) ids: &'a mut SliceIds,
    pub(super) world: World<'a>,
    changes: Changes,
}

impl<'a> Step<'a> {
    /// Begins a step of one group's cursor in one partition.
    pub fn new(cursor: &'a mut Cursor, live: &'a mut Live, ids: &'a mut SliceIds, world: World<'a>) -> Self {
        Self {
            cursor,
            live,
            ids,
            world,
            changes: Changes::default(),
        }
    }

    /// What was changed.
    pub fn finish(self) -> Changes {
        self.changes
    }

    pub(super) fn divided(&self) -> Result<&Divided, Refusal> {
        match &*self.cursor {
            Cursor::Divided(divided) => Ok(divided),
            Cursor::Plain(_) => Err(Refusal::NotDivided),
        }
    }

    pub(super) fn held(&self, name: SliceId) -> Result<&Chain, Refusal> {
        let chain = self.divided()?.chain(name).ok_or(Refusal::UnknownChain)?;
        match chain.state {
            ChainState::Held => Ok(chain),
            ChainState::GivenUp | ChainState::Dead => Err(Refusal::NotHeld),
        }
    }

    /// A fresh id, durable before what it names. The last one is for a slice of all slots.
    pub(super) fn take_id(&mut self, above: Option<SliceId>, is_whole: bool) -> Result<SliceId, Refusal> {
        let World { ids_up_to, now, .. } = self.world;
        let mut free = match is_whole {
            true => self.ids.free(above, ids_up_to, now.wall_ms),
            false => self.ids.spare(above, ids_up_to, now.wall_ms),
        };
        if self.live.is_broken(Fault::SmallerId) && above.is_some() {
            let is_taken = |id: &SliceId| matches!(self.ids.get(*id), Some(IdUse::Taken { .. }));
            free = (1..).map_while(SliceId::new).find(|id| !is_taken(id));
        }
        let id = free.ok_or(Refusal::NoId)?;
        let change = SliceIdsChange::Taken {
            id,
            group: self.world.group.to_owned(),
        };
        self.ids.apply(&change);
        self.changes.ids.push(change);
        Ok(id)
    }

    /// The one way in which the cursor changes: the durable half by the change, the volatile half after it.
    pub(super) fn make(&mut self, edit: Edit) {
        let version = match &*self.cursor {
            Cursor::Divided(divided) => divided.version + 1,
            Cursor::Plain(_) => 1,
        };
        let change = CursorChange { version, edit };
        let mut gone = change.apply(self.cursor);
        self.follow(&change.edit);
        self.changes.cursor.push(change);
        if !gone.is_empty() {
            gone.sort_unstable();
            gone.dedup();
            let retired = SliceIdsChange::Retired {
                ids: gone,
                at_ms: self.world.now.wall_ms,
            };
            self.ids.apply(&retired);
            self.changes.ids.push(retired);
        }
        debug_assert_eq!(
            match &*self.cursor {
                Cursor::Divided(divided) if self.live.planted.any().is_none() => divided.check(),
                Cursor::Divided(_) | Cursor::Plain(_) => Ok(()),
            },
            Ok(())
        );
    }

    fn follow(&mut self, edit: &Edit) {
        let Cursor::Divided(divided) = &*self.cursor else {
            self.live.chains.clear();
            return;
        };
        self.live
            .chains
            .retain(|name, _| divided.chains.contains_key(name));
        match edit {
            Edit::Grant { slice, .. } => {
                self.live.chains.insert(slice.id, LiveChain::new(slice));
            }
            Edit::Succeed {
                chain,
                slice,
                transit,
                ..
            } => {
                if let (Some(live), Some(chain)) = (self.live.chains.get_mut(chain), divided.chain(*chain)) {
                    live.succeed(chain, slice);
                    if !transit.is_empty() {
                        live.since_ms.insert(slice.id, self.world.now.mono_ms);
                    }
                }
            }
            Edit::Advance { chain, opened, .. } => {
                if let (Some(live), Some(chain)) = (self.live.chains.get_mut(chain), divided.chain(*chain)) {
                    live.advance(chain, !opened.is_empty());
                }
            }
            Edit::Divide { .. } | Edit::State { .. } | Edit::Ceiling { .. } | Edit::Plain { .. } => {}
        }
    }

    /// Divides the plain cursor: all slots are loose at its offset. Only inside a grant, when whoever read the
    /// partition has given it up (B7 of the protocol), or nobody did.
    pub fn divide(&mut self) -> Result<(), Refusal> {
        let Cursor::Plain(plain) = &*self.cursor else {
            return Err(Refusal::Divided);
        };
        SliceOffset::new(None, plain.offset).ok_or(Refusal::NoPosition)?;
        let kept = plain.clone();
        self.make(Edit::Divide { kept });
        Ok(())
    }

    /// Grants slots by an assignment to a member that holds no chain: a new chain under a fresh id, also if the
    /// member gets its own slots back. What is left of its former chain comes loose. No slots at all are a chain
    /// that waits for some.
    ///
    /// Returns the id, which is also the name of the chain.
    pub fn grant(&mut self, member: &str, epoch: i32, slots: &SlotSet) -> Result<SliceId, Refusal> {
        let divided = self.divided()?;
        let former = divided.chain_of(member).map(|(_, chain)| chain);
        if former.is_some_and(|chain| chain.state == ChainState::Held) {
            return Err(Refusal::StillHeld);
        }
        let pieces = self.grantable(slots)?;
        let reused = former.map(|chain| chain.tail().id);
        let id = match reused {
            Some(id) if self.live.is_broken(Fault::SameIdAtRegrant) => id,
            _ => self.take_id(None, *slots == SlotSet::all())?,
        };
        let slice = Slice {
            id,
            start: pieces.lowest().unwrap_or(self.world.log_end),
            pieces,
            to: None,
            ceiling: None,
        };
        self.make(Edit::Grant {
            member: member.to_owned(),
            epoch,
            slice,
        });
        Ok(id)
    }

    fn grantable(&self, slots: &SlotSet) -> Result<Pieces, Refusal> {
        let pieces = self.divided()?.grantable(self.live).restricted(slots);
        if pieces.slots() == *slots {
            Ok(pieces)
        } else {
            Err(Refusal::NotThere)
        }
    }

    /// Takes slots out of a held chain's tail, at any moment: they are in transit until its commits prove that their
    /// records in the older slices are done, which may be at once. All slots of the tail may go.
    ///
    /// Returns the id of the successor, which names the transit. Wake parked fetches and tell others once it is
    /// durable.
    pub fn release(&mut self, name: SliceId, slots: &SlotSet) -> Result<SliceId, Refusal> {
        let tail = self.held(name)?.tail().pieces.clone();
        if self.live.mark(name) != Mark::Clear {
            return Err(Refusal::Rewound);
        }
        if self.live.is_blind(name) {
            return Err(Refusal::Blind);
        }
        if slots.is_empty() {
            return Err(Refusal::NoSlots);
        }
        if !slots.is_subset(&tail.slots()) {
            return Err(Refusal::NotThere);
        }
        let place = self.place(name)?;
        let leaving = tail.restricted(slots);
        let mut transit = if self.live.is_broken(Fault::TransitForgetsFrom) {
            Pieces::of(place, slots)
        } else {
            leaving.raised(place)
        };
        if self.live.is_broken(Fault::ReleaseLosesSlot) {
            transit.remove(&slots.iter().take(1).collect());
        }
        let mut staying = tail;
        staying.remove(slots);
        self.succeed(name, place, staying.raised(place), transit)
    }

    /// Grants slots to a member that holds a chain, at any moment: its own go on behind what was handed out, the new
    /// ones at their resume points.
    pub fn jump_grant(&mut self, name: SliceId, slots: &SlotSet) -> Result<SliceId, Refusal> {
        let own = self.held(name)?.tail().pieces.clone();
        if slots.is_empty() {
            return Err(Refusal::NoSlots);
        }
        let mut gained = self.grantable(slots)?;
        let place = self.place(name)?;
        if self.live.is_broken(Fault::MergeAtReceiver) {
            gained = Pieces::of(place, slots);
        }
        let mut pieces = own.raised(place);
        pieces.merge(&gained);
        self.succeed(name, place, pieces, Pieces::new())
    }

    /// Gives slots that are in transit from a held chain back to it. Needs no fence: the same member, in order.
    pub fn return_transit(&mut self, name: SliceId, slots: &SlotSet) -> Result<SliceId, Refusal> {
        let chain = self.held(name)?;
        let own = chain.tail().pieces.clone();
        let mut returning = Pieces::new();
        for transit in &chain.transits {
            returning.merge(&transit.pieces.restricted(slots));
        }
        if slots.is_empty() {
            return Err(Refusal::NoSlots);
        }
        if returning.slots() != *slots {
            return Err(Refusal::NotThere);
        }
        let place = self.place(name)?;
        let mut pieces = own.raised(place);
        pieces.merge(&returning);
        self.succeed(name, place, pieces, Pieces::new())
    }

    /// Gives a rewound chain a fresh slice with the same slots. Once the member's commits prove that it is past
    /// everything before, its slots can move again.
    pub fn refresh(&mut self, name: SliceId) -> Result<SliceId, Refusal> {
        let own = self.held(name)?.tail().pieces.clone();
        if self.live.mark(name) != Mark::Rewound {
            return Err(Refusal::NotRewound);
        }
        let place = self.place(name)?;
        let id = self.succeed(name, place, own.raised(place), Pieces::new())?;
        if let Some(chain) = self.live.chains.get_mut(&name) {
            chain.mark = Mark::Fresh(id);
        }
        Ok(id)
    }

    fn place(&self, name: SliceId) -> Result<Offset, Refusal> {
        let divided = self.divided()?;
        if !divided.has_room(name, self.live) {
            return Err(Refusal::Full);
        }
        divided.place(name, self.live).ok_or(Refusal::UnknownChain)
    }

    fn succeed(
        &mut self,
        name: SliceId,
        to: Offset,
        pieces: Pieces,
        transit: Pieces,
    ) -> Result<SliceId, Refusal> {
        let above = self.held(name)?.tail().id;
        let id = self.take_id(Some(above), false)?;
        let slice = Slice {
            id,
            start: pieces.lowest().unwrap_or(to),
            pieces,
            to: None,
            ceiling: None,
        };
        self.make(Edit::Succeed {
            chain: name,
            to,
            slice,
            transit,
        });
        self.settle(name);
        Ok(id)
    }

    /// The member gives the partition up, with proof (B7 of the protocol). Its commits count until its slots are
    /// granted anew. Does nothing if it holds no chain.
    pub fn give_up(&mut self, member: &str) {
        self.set_state(member, ChainState::GivenUp);
    }

    /// The member left, or was expelled: its commits have no effect any more. Does nothing if it has no chain.
    pub fn dead(&mut self, member: &str) {
        self.set_state(member, ChainState::Dead);
    }

    fn set_state(&mut self, member: &str, state: ChainState) {
        let found = self.divided().ok().and_then(|divided| divided.chain_of(member));
        if let Some((chain, found)) = found
            && found.state < state
        {
            self.make(Edit::State { chain, state });
            self.settle(chain);
        }
    }
}

impl Divided {
    /// Where the chain's tail would end if it had a successor now: behind all that was handed out and committed. Of
    /// a slot of the tail everything from the later of this and its own first offset on can move.
    pub fn place(&self, name: SliceId, live: &Live) -> Option<Offset> {
        let chain = self.chain(name)?;
        let tail = chain.tail();
        let mut place = tail.start;
        if !live.is_broken(Fault::ReleaseIgnoresServed) {
            place = place.max(live.served(name, tail));
        }
        if chain.slices.len() == 1 && !live.is_broken(Fault::ReleaseIgnoresPosition) {
            place = place.max(chain.pos);
        }
        Some(place)
    }

    /// Whether the chain can get another slice: it has fewer than it may have, or its tail would be done at once.
    pub fn has_room(&self, name: SliceId, live: &Live) -> bool {
        let Some(chain) = self.chain(name) else {
            return false;
        };
        let count = chain.slices.len();
        let vanishes =
            count > 1 && !live.is_blind(name) && self.place(name, live) == Some(chain.tail().start);
        chain.closed.len() < CHAIN_CLOSED_IDS_MAX && (count < CHAIN_SLICES_MAX || vanishes)
    }
}

impl LiveChain {
    /// The chain got a slice. If it only has slots that its predecessor had, what was searched there in vain need
    /// not be searched again.
    fn succeed(&mut self, chain: &Chain, slice: &Slice) {
        let mut fresh = HandedOut::new(slice.start);
        let before = chain.slices.iter().rev().nth(1);
        if let Some(before) = before
            && let Some(old) = self.slices.get(&before.id)
            && old.is_known
            && slice.pieces.slots().is_subset(&before.pieces.slots())
        {
            fresh.known = fresh.known.max(old.known);
        }
        self.slices.insert(slice.id, fresh);
    }

    /// Slices were closed, or slots came loose.
    fn advance(&mut self, chain: &Chain, slots_left: bool) {
        for (id, found) in &mut self.slices {
            if slots_left {
                found.drop_sieve();
            }
            if chain.slices.iter().all(|slice| slice.id != *id) {
                found.commit_blindly(Offset::MAX);
                found.is_known = true;
            }
        }
        if let Some(front) = self.slices.get_mut(&chain.front().id)
            && chain.pos > chain.front().start
        {
            front.commit_blindly(chain.pos);
        }
        self.since_ms
            .retain(|by, _| chain.transits.iter().any(|transit| transit.by == *by));
        self.prune(chain);
    }
}
