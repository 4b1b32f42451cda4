//! The durable half of a divided cursor: chains of slices, what is in transit, what is loose.

use std::collections::BTreeMap;

use super::Plain;
use super::fault::Fault;
use super::live::Live;
use super::offset::{Position, SliceId};
use super::pieces::Pieces;
use crate::ids::Offset;
use crate::slots::SlotSet;

/// A cursor that several members share. Every slot is in exactly one place: in the tail of a chain, in transit from
/// a chain, or loose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Divided {
    /// Counts the changes since the division; makes a replay over a newer state harmless.
    pub(super) version: u64,
    /// What outsiders see beside the offset: of the latest commit. The offset is that of the division.
    pub(super) kept: Plain,
    /// Chains by the first id they ever had.
    pub(super) chains: BTreeMap<SliceId, Chain>,
    /// Slots that nobody has, each with the offset from which it waits.
    pub(super) loose: Pieces,
}

/// A member's share: its slices, oldest first. Only the last, the *tail*, is open-ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    pub(super) member: String,
    pub(super) epoch: i32,
    pub(super) state: ChainState,
    /// Ids of slices that are done, ascending.
    pub(super) closed: Vec<SliceId>,
    /// Never empty.
    pub(super) slices: Vec<Slice>,
    /// Committed position in the oldest slice.
    pub(super) pos: Offset,
    pub(super) transits: Vec<Transit>,
    /// Whether anything was ever handed out from it.
    pub(super) touched: bool,
}

/// Whose the chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainState {
    /// The member reads it.
    Held,
    /// The member gave it up, with proof. Its commits count until the slots are granted anew.
    GivenUp,
    /// The member left or was expelled. Its commits have no effect.
    Dead,
}

/// One slice: what a member reads under one id. Slots are never added to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Its id.
    pub id: SliceId,
    /// Where reading it begins: the lowest offset of its pieces when it was made, or where an empty one stands.
    pub start: Offset,
    /// Its slots, each with its first offset.
    pub pieces: Pieces,
    /// Where it ends (excluded), once it has a successor.
    pub to: Option<Offset>,
    /// Nothing at or above was ever handed out; `None` if nothing at all was. In steps of
    /// [`crate::limits::SERVED_CEILING_STEP`], durable before an answer leaves.
    pub ceiling: Option<Offset>,
}

/// Slots that left a chain's tail and whose records in its older slices may still be in work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transit {
    /// The slice that was made when they left: it names the transit.
    pub by: SliceId,
    /// The slots, each with the offset at which it goes on if its records before are committed.
    pub pieces: Pieces,
}

impl Chain {
    /// The member.
    pub fn member(&self) -> &str {
        &self.member
    }

    /// The epoch (or generation) of the assignment that granted it.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Whose it is.
    pub fn state(&self) -> ChainState {
        self.state
    }

    /// The slices that are not done, oldest first; never empty.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The ids of slices that are done, ascending.
    pub fn closed(&self) -> &[SliceId] {
        &self.closed
    }

    /// What is in transit from it.
    pub fn transits(&self) -> &[Transit] {
        &self.transits
    }

    /// The committed position: in the oldest slice that is not done.
    pub fn position(&self) -> Position {
        Position {
            slice: self.front().id,
            offset: self.pos,
        }
    }

    /// The oldest slice that is not done.
    pub fn front(&self) -> &Slice {
        self.slices.first().expect("a chain has a slice")
    }

    /// The open-ended slice.
    pub fn tail(&self) -> &Slice {
        self.slices.last().expect("a chain has a slice")
    }

    /// All ids that mean something in it, ascending.
    pub fn ids(&self) -> impl Iterator<Item = SliceId> + '_ {
        let mut ids: Vec<SliceId> = self.closed.clone();
        ids.extend(self.slices.iter().map(|slice| slice.id));
        ids.sort_unstable();
        ids.into_iter()
    }

    /// The slots in transit.
    pub fn transit_slots(&self) -> SlotSet {
        let mut all = SlotSet::empty();
        for transit in &self.transits {
            all = all.union(&transit.pieces.slots());
        }
        all
    }

    /// Tail and transits.
    pub fn slots(&self) -> SlotSet {
        self.tail().pieces.slots().union(&self.transit_slots())
    }

    /// Which slice an id means: its index, and whether it is that slice itself or one that is done, for which the
    /// next larger stands in. `None` if the id is none of the chain's.
    pub(super) fn find(&self, id: SliceId) -> Option<(usize, bool)> {
        let at = self.slices.partition_point(|slice| slice.id < id);
        match self.slices.get(at) {
            Some(slice) if slice.id == id => Some((at, true)),
            Some(_) if self.closed.binary_search(&id).is_ok() => Some((at, false)),
            Some(_) | None => None,
        }
    }

    /// From where each slot goes on if this member does nothing more: the oldest slice that has something of it
    /// left, by number; the transit's offset if none has. `name` is the chain's.
    pub fn resume(&self, name: SliceId, live: &Live) -> Pieces {
        let (mut left, mut found) = (self.slots(), Pieces::new());
        if live.is_broken(Fault::GrantAtReleasePoint) && self.state != ChainState::Held {
            for transit in &self.transits {
                found.merge(&transit.pieces);
            }
            left = left.difference(&found.slots());
        }
        for (at, slice) in self.slices.iter().enumerate() {
            let start = if at == 0 { self.pos } else { slice.start };
            // What was searched in vain is not searched again, and outsiders have seen it as done.
            let undone = live.first_undone(name, slice, start).or(slice.to);
            let floor = undone.unwrap_or(start);
            for (from, slots) in slice.pieces.restricted(&left).iter() {
                let from = from.max(floor);
                if slice.to.is_none_or(|to| from < to) {
                    left = left.difference(slots);
                    found.add(from, slots);
                }
            }
        }
        for transit in &self.transits {
            found.merge(&transit.pieces.restricted(&left));
        }
        found
    }

    /// Removes slots wherever they are in the chain.
    pub(super) fn forget(&mut self, slots: &SlotSet) {
        for slice in &mut self.slices {
            slice.pieces.remove(slots);
        }
        self.forget_transits(slots);
    }

    pub(super) fn forget_transits(&mut self, slots: &SlotSet) {
        for transit in &mut self.transits {
            transit.pieces.remove(slots);
        }
        self.transits.retain(|transit| !transit.pieces.is_empty());
    }
}

impl Divided {
    /// The chains, by the first id each ever had, which names it.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = (SliceId, &Chain)> {
        self.chains.iter().map(|(id, chain)| (*id, chain))
    }

    /// The chain of this name.
    pub fn chain(&self, id: SliceId) -> Option<&Chain> {
        self.chains.get(&id)
    }

    /// The member's chain, with its name.
    pub fn chain_of(&self, member: &str) -> Option<(SliceId, &Chain)> {
        self.chains().find(|(_, chain)| chain.member == member)
    }

    /// The chain that a slice id belongs or belonged to, with its name.
    pub fn chain_with(&self, id: SliceId) -> Option<(SliceId, &Chain)> {
        self.chains
            .range(..=id)
            .map(|(name, chain)| (*name, chain))
            .find(|(_, chain)| chain.find(id).is_some())
    }

    /// Slots that nobody has.
    pub fn loose(&self) -> &Pieces {
        &self.loose
    }

    /// Counts the changes since the division.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All slots that can be granted, each with the offset at which it goes on: what is loose, and all of chains
    /// that nobody holds.
    pub fn grantable(&self, live: &Live) -> Pieces {
        let mut grantable = self.loose.clone();
        for (name, chain) in &self.chains {
            if chain.state != ChainState::Held {
                grantable.merge(&chain.resume(*name, live));
            } else if live.is_broken(Fault::GrantBeforeFence) {
                for transit in &chain.transits {
                    grantable.merge(&transit.pieces);
                }
            }
        }
        grantable
    }

    /// From where each of the 4096 slots goes on.
    pub fn resume(&self, live: &Live) -> Pieces {
        let mut all = self.loose.clone();
        for (name, chain) in &self.chains {
            all.merge(&chain.resume(*name, live));
        }
        all
    }

    /// The lowest offset that a chain's member may still have to do in its slices, as far as `live` knows.
    pub(super) fn undone_from(&self, live: &Live, name: SliceId) -> Option<Offset> {
        let chain = self.chains.get(&name)?;
        let undone = chain.slices.iter().enumerate().filter_map(|(at, slice)| {
            let from = if at == 0 { chain.pos } else { slice.start };
            let counts = !slice.pieces.is_empty();
            counts.then(|| live.first_undone(name, slice, from)).flatten()
        });
        undone.min()
    }

    /// The lowest offset that somebody of the group may still need, as far as `live` knows: what a drained slice
    /// was searched for in vain does not count.
    pub fn outside_offset(&self, live: &Live) -> Offset {
        let chains = self.chains.iter().flat_map(|(name, chain)| {
            let transits = chain
                .transits
                .iter()
                .filter_map(|transit| transit.pieces.lowest());
            self.undone_from(live, *name).into_iter().chain(transits)
        });
        if live.is_broken(Fault::OutsiderSeesHeldOnly) {
            let held = self
                .chains
                .values()
                .filter(|chain| chain.state == ChainState::Held);
            if let Some(lowest) = held.map(|chain| chain.pos).min() {
                return lowest;
            }
        }
        chains
            .chain(self.loose.lowest())
            .min()
            .unwrap_or(self.kept.offset)
    }

    /// Checks what must hold between any two steps: invariant 1 (every slot in exactly one place) and 4 (ids grow
    /// along a chain), and the shape that every rule relies on. For tests and the simulator.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = SlotSet::empty();
        let mut ids = std::collections::BTreeSet::new();
        let mut members = std::collections::BTreeSet::new();
        let mut place = |what: String, slots: &SlotSet| {
            if !seen.is_disjoint(slots) {
                return Err(format!(
                    "I1: slots of {what} are in two places: {:?}",
                    seen.intersection(slots)
                ));
            }
            seen = seen.union(slots);
            Ok(())
        };
        place("the loose ones".to_owned(), &self.loose.slots())?;
        for (name, chain) in &self.chains {
            let of = |what: &str| format!("{what} of chain {} ({})", name.get(), chain.member);
            if chain.slices.is_empty() {
                return Err(of("no slice"));
            }
            place(of("the tail"), &chain.tail().pieces.slots())?;
            for transit in &chain.transits {
                place(of("a transit"), &transit.pieces.slots())?;
            }
            if !members.insert(&chain.member) {
                return Err(of("a second chain"));
            }
            if !chain.slices.is_sorted_by(|a, b| a.id < b.id) || !chain.closed.is_sorted_by(|a, b| a < b) {
                return Err(of("I4: ids that do not grow along the slices"));
            }
            if chain.ids().next() != Some(*name) || !chain.ids().all(|id| ids.insert(id)) {
                return Err(of("I4: ids that do not begin with its name, or come twice"));
            }
            let own = chain.slots();
            for (at, slice) in chain.slices.iter().enumerate() {
                if slice.to.is_none() != (at + 1 == chain.slices.len()) {
                    return Err(of("an open end inside, or a closed one at the end,"));
                }
                if !slice.pieces.slots().is_subset(&own) {
                    return Err(of("I1: slots in an old slice that are not its own"));
                }
                if slice.pieces.lowest().is_some_and(|from| from < slice.start) {
                    return Err(of("a piece before the start"));
                }
            }
            if chain.pos < chain.front().start || chain.front().to.is_some_and(|to| chain.pos > to) {
                return Err(of("a position outside the oldest slice"));
            }
        }
        if !seen.is_all() {
            return Err(format!(
                "I1: slots are nowhere: {:?}",
                SlotSet::all().difference(&seen)
            ));
        }
        Ok(())
    }
}
