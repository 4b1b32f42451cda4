//! The durable changes of a divided cursor, and the one function that makes them.
//!
//! A change carries the version that it leads to, and values rather than instructions. A replay may begin anywhere:
//! changes that a state already has are recognised by their version; those that begin or end a division set the
//! whole state and are made always. So replaying a whole run over the state that it led to changes nothing.

use super::divided::{Chain, ChainState, Divided, Slice, Transit};
use super::offset::SliceId;
use super::pieces::Pieces;
use super::{Cursor, Plain};
use crate::ids::Offset;
use crate::limits::CHAIN_CLOSED_IDS_MAX;
use crate::slots::SlotSet;

/// One durable change of a divided cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorChange {
    /// The version of the cursor after it.
    pub version: u64,
    /// What changes.
    pub edit: Edit,
}

/// What a change says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The cursor is divided: all slots are loose at the plain offset.
    Divide {
        /// The plain cursor before.
        kept: Plain,
    },
    /// A member holds a new chain of one slice. What is left of its former one is loose.
    Grant {
        /// Member id.
        member: String,
        /// Epoch of the assignment.
        epoch: i32,
        /// The slice; its slots are taken from wherever they were.
        slice: Slice,
    },
    /// A chain's tail ends, and another slice follows.
    Succeed {
        /// First id of the chain.
        chain: SliceId,
        /// Where the tail ends.
        to: Offset,
        /// Its successor; slots that the chain did not have are taken from wherever they were.
        slice: Slice,
        /// What is in transit from now on, with the offset at which each goes on.
        transit: Pieces,
    },
    /// A chain's position moved, slices were closed, slots came loose.
    Advance {
        /// First id of the chain.
        chain: SliceId,
        /// The oldest slice that is not done.
        front: SliceId,
        /// Position in it.
        pos: Offset,
        /// Slices behind it that are done as well, ascending.
        closed: Vec<SliceId>,
        /// Slots in transit that came loose, at the offsets of their transits.
        opened: SlotSet,
        /// What outsiders see of the commit, if one did this.
        note: Option<Note>,
    },
    /// A chain is no longer held.
    State {
        /// First id of the chain.
        chain: SliceId,
        /// Whose it is now.
        state: ChainState,
    },
    /// More may have been handed out from a slice.
    Ceiling {
        /// First id of the chain.
        chain: SliceId,
        /// The slice.
        slice: SliceId,
        /// Nothing at or above was handed out.
        ceiling: Offset,
    },
    /// The cursor is plain.
    Plain {
        /// The plain cursor.
        plain: Plain,
    },
}

/// What a client said with a commit, beside the position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The client's own note.
    pub metadata: String,
    /// Wall clock of the commit, milliseconds.
    pub commit_ms: i64,
    /// See [`Plain::expires_ms`].
    pub expires_ms: Option<i64>,
}

impl CursorChange {
    /// The cursor that the change leads to where there is none; `None` if it needs one.
    pub fn start(&self) -> Option<Cursor> {
        match &self.edit {
            Edit::Divide { kept } => Some(Cursor::Divided(Box::new(Divided {
                version: self.version,
                kept: kept.clone(),
                chains: std::collections::BTreeMap::new(),
                loose: Pieces::of(kept.offset, &SlotSet::all()),
            }))),
            Edit::Plain { plain } => Some(Cursor::Plain(plain.clone())),
            _ => None,
        }
    }

    /// Makes the change. Never fails: what concerns something unknown has no effect. Returns the ids that mean nothing
    /// any more by it: of chains that are gone, and those that a long chain forgot.
    pub fn apply(&self, cursor: &mut Cursor) -> Vec<SliceId> {
        if let Some(started) = self.start() {
            let gone = match cursor {
                Cursor::Divided(divided) => divided.chains.values().flat_map(Chain::ids).collect(),
                Cursor::Plain(_) => Vec::new(),
            };
            *cursor = started;
            return gone;
        }
        match cursor {
            Cursor::Divided(divided) if self.version > divided.version => {
                divided.version = self.version;
                let mut gone = divided.make(&self.edit);
                gone.extend(divided.bury());
                gone
            }
            Cursor::Divided(_) | Cursor::Plain(_) => Vec::new(),
        }
    }
}

impl Divided {
    fn make(&mut self, edit: &Edit) -> Vec<SliceId> {
        let mut forgotten = Vec::new();
        match edit {
            Edit::Divide { .. } | Edit::Plain { .. } => {}
            Edit::Grant { member, epoch, slice } => self.grant(member, *epoch, slice),
            Edit::Succeed {
                chain,
                to,
                slice,
                transit,
            } => self.succeed(*chain, *to, slice, transit),
            Edit::Advance {
                chain,
                front,
                pos,
                closed,
                opened,
                note,
            } => {
                if let Some(note) = note {
                    self.kept.metadata.clone_from(&note.metadata);
                    self.kept.commit_ms = note.commit_ms;
                    self.kept.expires_ms = note.expires_ms;
                }
                if let Some(chain) = self.chains.get_mut(chain) {
                    if note.is_some() {
                        forgotten = chain.forget_closed();
                    }
                    let came_loose = chain.advance(*front, *pos, closed, opened);
                    self.loose.merge(&came_loose);
                }
            }
            Edit::State { chain, state } => {
                if let Some(chain) = self.chains.get_mut(chain) {
                    chain.state = *state;
                }
            }
            Edit::Ceiling {
                chain,
                slice,
                ceiling,
            } => {
                if let Some(chain) = self.chains.get_mut(chain) {
                    chain.touched = true;
                    if let Some(slice) = chain.slices.iter_mut().find(|s| s.id == *slice) {
                        slice.ceiling = Some(*ceiling);
                    }
                }
            }
        }
        forgotten
    }

    fn grant(&mut self, member: &str, epoch: i32, slice: &Slice) {
        if let Some((name, _)) = self.chain_of(member)
            && let Some(former) = self.chains.get_mut(&name)
        {
            let left = former.resume(name, &super::Live::default());
            former.forget(&left.slots());
            former.state = ChainState::Dead;
            self.loose.merge(&left);
        }
        self.take(&slice.pieces.slots(), None);
        let chain = Chain {
            member: member.to_owned(),
            epoch,
            state: ChainState::Held,
            closed: Vec::new(),
            pos: slice.start,
            slices: vec![slice.clone()],
            transits: Vec::new(),
            touched: false,
        };
        self.chains.insert(slice.id, chain);
    }

    fn succeed(&mut self, name: SliceId, to: Offset, slice: &Slice, transit: &Pieces) {
        let Some(tail) = self.chains.get(&name).map(|chain| chain.tail().pieces.slots()) else {
            return;
        };
        let gained = slice.pieces.slots().difference(&tail);
        self.take(&gained, Some(name));
        let Some(chain) = self.chains.get_mut(&name) else {
            return;
        };
        chain.forget_transits(&gained);
        if let Some(tail) = chain.slices.last_mut() {
            tail.to = Some(to);
        }
        chain.slices.push(slice.clone());
        if !transit.is_empty() {
            chain.transits.push(Transit {
                by: slice.id,
                pieces: transit.clone(),
            });
        }
    }

    /// Removes slots from wherever they are, except from the chain `but`.
    fn take(&mut self, slots: &SlotSet, but: Option<SliceId>) {
        if slots.is_empty() {
            return;
        }
        self.loose.remove(slots);
        for (name, chain) in &mut self.chains {
            if Some(*name) != but {
                chain.forget(slots);
            }
        }
    }

    /// Removes chains that nobody holds and that have no slot left.
    fn bury(&mut self) -> Vec<SliceId> {
        let is_over = |chain: &Chain| chain.state != ChainState::Held && chain.slots().is_empty();
        let over = self.chains.extract_if(.., |_, chain| is_over(chain));
        over.flat_map(|(_, chain)| chain.ids().collect::<Vec<_>>())
            .collect()
    }
}

impl Chain {
    /// At a commit that counts: forgets the oldest ids of a chain that has gone through very many. Such a commit names
    /// the oldest open slice or a later one, so the member was there; what was done before that is behind it, and behind
    /// whatever else it has under way, if there are hundreds in between. The chain's name stays.
    fn forget_closed(&mut self) -> Vec<SliceId> {
        let front = self.front().id;
        let behind = self.closed.partition_point(|id| *id < front);
        let over = behind.min(self.closed.len().saturating_sub(CHAIN_CLOSED_IDS_MAX / 2));
        if over < 2 {
            return Vec::new();
        }
        self.closed.drain(1..over).collect()
    }

    /// Returns what came loose.
    fn advance(&mut self, front: SliceId, pos: Offset, closed: &[SliceId], opened: &SlotSet) -> Pieces {
        let tail = self.tail().id;
        let is_done = |id: SliceId| id != tail && (id < front || closed.binary_search(&id).is_ok());
        let done: Vec<SliceId> = self
            .slices
            .iter()
            .map(|s| s.id)
            .filter(|id| is_done(*id))
            .collect();
        self.slices.retain(|slice| !is_done(slice.id));
        self.closed.extend(done);
        self.closed.sort_unstable();
        self.pos = pos;
        let mut came_loose = Pieces::new();
        for transit in &self.transits {
            came_loose.merge(&transit.pieces.restricted(opened));
        }
        self.forget(&came_loose.slots());
        came_loose
    }
}
