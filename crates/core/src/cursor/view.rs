//! What the planner sees of a divided cursor.

use std::collections::BTreeMap;

use anabranch_wire::slot::{SLOTS, Slot};

use super::divided::{Chain, ChainState, Divided};
use super::live::{Live, Mark};
use super::offset::{Position, SliceId};
use super::pieces::Pieces;
use crate::ids::Offset;

/// One chain, for the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainView {
    /// Its name: the first id it ever had.
    pub chain: SliceId,
    /// Member id.
    pub member: String,
    /// Epoch of the assignment that granted it.
    pub epoch: i32,
    /// Whose it is.
    pub state: ChainState,
    /// How many slices it has.
    pub slices: usize,
    /// Whether it can get one more; if not, moves from and to it wait for its commits.
    pub has_room: bool,
    /// Committed position.
    pub position: Position,
    /// Nothing at or above was handed out of the tail.
    pub served: Offset,
    /// Slots of the tail, each with the offset from which its records can move now.
    pub movable: Pieces,
    /// What the member was handed out and has not committed.
    pub undone: Undone,
    /// The lowest offset that may still have to be done by it, as far as is known. At the end of the log or behind it, the
    /// member has done everything; `None`: it has no slots.
    pub undone_from: Option<Offset>,
    /// Slots in transit from it.
    pub transits: Vec<TransitView>,
    /// Whether the member reads again what it was handed before: nothing moves from it until it has had a fresh
    /// slice ([`super::Step::refresh`]) and committed in it.
    pub rewound: Rewound,
    /// Whether what was handed out before a restart is not known yet: nothing moves from it.
    pub is_blind: bool,
}

/// Records in work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Records by slot.
    pub by_slot: BTreeMap<Slot, u32>,
    /// Whether there are others that are not remembered one by one.
    pub and_more: bool,
    /// About how many of those; 0 as well if it is not known.
    pub unlisted: u64,
}

/// Whether a member reads again what it was handed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rewound {
    /// No.
    No,
    /// Yes, and it needs a fresh slice.
    NeedsRefresh,
    /// Yes, and it has to commit in the slice it got for that.
    Refreshed,
}

/// One transit, for the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitView {
    /// The slice that was made when it began.
    pub by: SliceId,
    /// Its slots and where each goes on.
    pub pieces: Pieces,
    /// When it began, monotonic milliseconds; after a restart, when that was.
    pub since_ms: u64,
}

impl Divided {
    /// All chains as the planner sees them. What can be granted besides is [`Divided::grantable`].
    pub fn view(&self, live: &Live) -> Vec<ChainView> {
        self.chains()
            .map(|(name, chain)| self.view_of(live, name, chain))
            .collect()
    }

    /// How many records a chain's member was handed and has not committed, about.
    pub fn outstanding(&self, live: &Live, name: SliceId) -> u64 {
        let Some(chain) = self.chain(name) else {
            return 0;
        };
        let slices = chain.slices.iter().enumerate();
        let counts = slices.map(|(at, slice)| {
            let from = if at == 0 { chain.pos } else { slice.start };
            live.slice(name, slice.id).map_or(0, |found| {
                (found.at_or_after(from).len() as u64).saturating_add(found.unlisted(from))
            })
        });
        counts.fold(0, u64::saturating_add)
    }

    fn view_of(&self, live: &Live, name: SliceId, chain: &Chain) -> ChainView {
        let place = self.place(name, live).unwrap_or(Offset::MAX);
        let since = live.chains.get(&name).map(|live| &live.since_ms);
        let transits = chain.transits.iter().map(|transit| TransitView {
            by: transit.by,
            pieces: transit.pieces.clone(),
            since_ms: since
                .and_then(|since| since.get(&transit.by))
                .copied()
                .unwrap_or(0),
        });
        ChainView {
            chain: name,
            member: chain.member.clone(),
            epoch: chain.epoch,
            state: chain.state,
            slices: chain.slices.len(),
            has_room: self.has_room(name, live),
            position: chain.position(),
            served: live.served(name, chain.tail()),
            movable: chain.tail().pieces.raised(place),
            undone: undone(live, name, chain),
            undone_from: self.undone_from(live, name),
            transits: transits.collect(),
            rewound: match live.mark(name) {
                Mark::Clear => Rewound::No,
                Mark::Rewound => Rewound::NeedsRefresh,
                Mark::Fresh(_) => Rewound::Refreshed,
            },
            is_blind: live.is_blind(name),
        }
    }
}

fn undone(live: &Live, name: SliceId, chain: &Chain) -> Undone {
    let mut undone = Undone::default();
    // A busy member has tens of thousands of records in work, and this is asked at every look of the planner.
    let mut by_slot = vec![0u32; SLOTS];
    for (at, slice) in chain.slices.iter().enumerate() {
        let from = if at == 0 { chain.pos } else { slice.start };
        let Some(found) = live.slice(name, slice.id) else {
            undone.and_more = true;
            continue;
        };
        undone.and_more |= !found.is_known || found.block.is_some_and(|block| block.until > from);
        undone.unlisted = undone.unlisted.saturating_add(found.unlisted(from));
        for record in found.at_or_after(from) {
            if let Some(count) = by_slot.get_mut(record.slot.index()) {
                *count += 1;
            }
        }
    }
    let counted = (0..).zip(by_slot).filter(|(_, count)| *count > 0);
    undone.by_slot = counted
        .filter_map(|(number, count)| Some((Slot::new(number)?, count)))
        .collect();
    undone
}
