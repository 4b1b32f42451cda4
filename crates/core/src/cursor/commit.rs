//! Commits, and what they settle: which slices are done, which slots come loose.

use super::change::{Edit, Note};
use super::divided::{Chain, ChainState};
use super::fault::Fault;
use super::live::Mark;
use super::offset::{Position, SliceId};
use super::step::{Refusal, Step};
use super::{Cursor, Evidence};
use crate::ids::Offset;
use crate::slots::SlotSet;

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Committed {
    /// The member's position moved.
    Moved,
    /// Nothing; the client gets a success all the same.
    Nothing(Why),
}

/// Why a commit did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The cursor is plain, or the number is: it is not about slices of this cursor.
    NotDivided,
    /// The slice is none of this member's chain.
    NotItsSlice,
    /// It belongs to an older assignment.
    OldEpoch,
    /// The member left or was expelled.
    Dead,
    /// The position is not behind the one that is known.
    NotForward,
}

impl Step<'_> {
    /// A member committed `offset` in the slice `id`: all its records before are done, in that slice and in those
    /// before it in its chain. `epoch` is the generation or member epoch of the request. Whether the sender is that
    /// member has been checked.
    pub fn commit(&mut self, member: &str, epoch: i32, id: SliceId, offset: Offset, note: Note) -> Committed {
        match self.read_commit(member, epoch, id, offset) {
            Ok((name, to)) => {
                self.collect_evidence(name, to);
                self.advance(name, to, Some(note));
                Committed::Moved
            }
            Err(why) => Committed::Nothing(why),
        }
    }

    /// The chain and the position that a commit means.
    fn read_commit(
        &mut self,
        member: &str,
        epoch: i32,
        id: SliceId,
        offset: Offset,
    ) -> Result<(SliceId, Position), Why> {
        let divided = self.divided().map_err(|_| Why::NotDivided)?;
        let (name, chain) = divided.chain_with(id).ok_or(Why::NotItsSlice)?;
        if chain.member != member {
            return Err(Why::NotItsSlice);
        }
        if epoch < chain.epoch && !self.live.is_broken(Fault::SameIdAtRegrant) {
            return Err(Why::OldEpoch);
        }
        if chain.state == ChainState::Dead && !self.live.is_broken(Fault::DeadCommitMoves) {
            if self.live.is_broken(Fault::DeadCommitOpensFence) {
                self.open_all_fences(name);
            }
            return Err(Why::Dead);
        }
        let (at, is_slice) = chain.find(id).ok_or(Why::NotItsSlice)?;
        let is_tail_meant = self.live.is_broken(Fault::OldCommitInTail);
        let slice = if is_tail_meant {
            chain.tail()
        } else {
            &chain.slices[at]
        };
        if !is_slice && at == 0 {
            return Err(Why::NotForward);
        }
        // A number means something in the slice it names alone, and not behind its end.
        let end = slice.to.unwrap_or(self.world.log_end);
        let offset = if is_slice || is_tail_meant {
            offset.min(end).max(slice.start)
        } else {
            slice.start
        };
        let to = Position {
            slice: slice.id,
            offset,
        };
        if to <= chain.position() && !self.live.is_broken(Fault::BackwardCommit) {
            return Err(Why::NotForward);
        }
        Ok((name, to))
    }

    /// Notes what the commit proves about those before it, before the position moves.
    fn collect_evidence(&mut self, name: SliceId, to: Position) {
        let (early, latest) = (
            self.live.is_broken(Fault::MarkClearedEarly),
            self.world.evidence == Evidence::Latest,
        );
        let Some(live) = self.live.chains.get_mut(&name) else {
            return;
        };
        if live.has_between(live.last, to) {
            live.sure = live.last;
            live.last = to;
        }
        let proven = if latest || early { to } else { live.sure };
        if let Mark::Fresh(id) = live.mark
            && proven.slice >= id
        {
            live.mark = Mark::Clear;
        }
    }

    /// Looks whether slices are done and slots come loose, without a commit.
    pub(super) fn settle(&mut self, name: SliceId) {
        let position = self
            .divided()
            .ok()
            .and_then(|d| d.chain(name))
            .map(Chain::position);
        if let Some(position) = position {
            self.advance(name, position, None);
        }
    }

    /// Moves the position, then settles the chain.
    fn advance(&mut self, name: SliceId, to: Position, note: Option<Note>) {
        let Ok(chain) = self
            .divided()
            .and_then(|d| d.chain(name).ok_or(Refusal::UnknownChain))
        else {
            return;
        };
        let (mut front, mut pos) = (
            chain.slices.partition_point(|slice| slice.id < to.slice),
            to.offset,
        );
        front = front.min(chain.slices.len() - 1);
        let (mut closed, mut opened) = (Vec::new(), SlotSet::empty());
        let sees = !self.live.is_blind(name) || self.live.is_broken(Fault::SettlesBlind);
        if chain.state == ChainState::Held && sees {
            opened = self.opened(name, chain, to);
            let inner = chain.slices.len() - 1;
            while front < inner && !self.live.has(name, &chain.slices[front], pos) {
                front += 1;
                pos = chain.slices[front].start;
            }
            if !self.live.is_broken(Fault::EmptySlicesStay) {
                let behind = chain.slices[..inner].iter().skip(front + 1);
                let over = behind.filter(|slice| !self.live.has(name, slice, slice.start));
                closed = over.map(|slice| slice.id).collect();
            }
        }
        if chain.state != ChainState::Held {
            // Whoever gets the slots does not know what was searched in vain, and outsiders have seen it as done.
            (front, pos) = self.undone_in(name, chain, front, pos);
        }
        let was_blind = self.live.is_blind(name);
        let front = chain.slices[front].id;
        let stays = chain.position()
            == Position {
                slice: front,
                offset: pos,
            };
        if stays && closed.is_empty() && opened.is_empty() {
            return;
        }
        self.make(Edit::Advance {
            chain: name,
            front,
            pos,
            closed,
            opened,
            note,
        });
        // What was not known may be behind the member now, and then nobody will ask for it to be recalled.
        if was_blind && !self.live.is_blind(name) {
            self.settle(name);
        }
    }

    /// The first slice from `front` on of which something may still have to be done, and from where on.
    fn undone_in(&self, name: SliceId, chain: &Chain, mut front: usize, mut pos: Offset) -> (usize, Offset) {
        loop {
            let slice = &chain.slices[front];
            let undone = self.live.first_undone(name, slice, pos);
            match (undone, chain.slices.get(front + 1)) {
                (Some(undone), _) => return (front, pos.max(undone)),
                (None, None) => return (front, pos),
                (None, Some(next)) => (front, pos) = (front + 1, next.start),
            }
        }
    }

    /// The slots in transit whose records in older slices are done, as far as commits prove it.
    fn opened(&self, name: SliceId, chain: &Chain, to: Position) -> SlotSet {
        let waiting = chain.transit_slots();
        let Some(live) = self
            .live
            .chains
            .get(&name)
            .filter(|live| live.mark == Mark::Clear)
        else {
            return SlotSet::empty();
        };
        if waiting.is_empty() {
            return waiting;
        }
        if self.live.is_broken(Fault::FenceByNumber) {
            return opened_by_number(chain, to);
        }
        let latest = self.world.evidence == Evidence::Latest || self.live.is_broken(Fault::LatestIsEvidence);
        let judge = if latest { to } else { live.sure };
        waiting.difference(&live.busy(judge, chain.tail().id))
    }

    /// What [`Fault::DeadCommitOpensFence`] does wrong.
    fn open_all_fences(&mut self, name: SliceId) {
        let Some(chain) = self.divided().ok().and_then(|d| d.chain(name)) else {
            return;
        };
        let (at, opened) = (chain.position(), chain.transit_slots());
        self.make(Edit::Advance {
            chain: name,
            front: at.slice,
            pos: at.offset,
            closed: Vec::new(),
            opened,
            note: None,
        });
    }
}

/// What [`Fault::FenceByNumber`] does wrong: it waits for the number at which the slice before the transit ends.
fn opened_by_number(chain: &Chain, to: Position) -> SlotSet {
    let mut opened = SlotSet::empty();
    for transit in &chain.transits {
        let before = chain.slices.iter().rfind(|slice| slice.id < transit.by);
        let end = before.and_then(|slice| {
            slice.to.map(|offset| Position {
                slice: slice.id,
                offset,
            })
        });
        if end.is_none_or(|end| to >= end) {
            opened = opened.union(&transit.pieces.slots());
        }
    }
    opened
}

impl Cursor {
    /// What a member that asks for its position gets: in the oldest slice that is not done. `None` if the cursor is
    /// plain, or the member holds no chain (yet). Changes nothing: it may be a mere look.
    pub fn offset_fetch(&self, live: &super::Live, member: &str) -> Option<Position> {
        let Self::Divided(divided) = self else {
            return None;
        };
        let (_, chain) = divided.chain_of(member)?;
        if chain.state != ChainState::Held {
            return None;
        }
        if live.is_broken(Fault::FetchAnswersTail) {
            return Some(Position {
                slice: chain.tail().id,
                offset: chain.tail().start,
            });
        }
        Some(chain.position())
    }
}
