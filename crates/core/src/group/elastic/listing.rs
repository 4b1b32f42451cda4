//! The number space of answers to requests that carry no offset: ListOffsets and OffsetForLeaderEpoch.
//!
//! A member that reads a slice compares what it is told with its position, so it must be told numbers of its own chain:
//!
//! ```text
//! asked for        answered
//! the first        oldest id of the chain | start of the log      no larger than any position of the member
//! the last         newest id of the chain | end of the log        no smaller than any position of the member
//! that of a time   id of the slice that is open there | offset    whoever goes on from there misses nothing of its chain
//! ```
//!
//! The oldest id, not the newest, for the first: a member begins in the oldest slice that is not done (OffsetFetch), and
//! sarama and segmentio/kafka-go refuse, or move to the start, what lies before the first offset that they are told.
//!
//! If it cannot be told which of several members asks, the range is that of all of them, for clients that can do with it. One
//! that cannot is told plain offsets; or to come again, if it will be known soon.

use anabranch_wire::ErrorCode;

use super::Key;
use super::identity::Space;
use crate::cursor::{Chain, ChainState, Cursor, IdUse, SliceId, SliceIds, SliceOffset};
use crate::group::api::Caller;
use crate::group::coordinator::Coordinator;
use crate::group::state::Member;
use crate::ids::Offset;

/// How offsets of a log are numbered for whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// The ids for the first offset and for the last; `None` is the plain log.
    first: Option<SliceId>,
    last: Option<SliceId>,
    /// The slices of the chain, oldest first, each with its end if it has one. None in the plain log, and if it is not
    /// known whose chain it is.
    slices: Vec<(SliceId, Option<Offset>)>,
}

impl Numbering {
    fn of_chain(chain: &Chain) -> Self {
        let slices = chain.slices().iter().map(|slice| (slice.id, slice.to));
        Self {
            first: chain.ids().next(),
            last: Some(chain.tail().id),
            slices: slices.collect(),
        }
    }

    /// What holds of both.
    fn widened(&self, other: &Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            slices: Vec::new(),
        }
    }

    /// Whether offsets are those of the log. Leader epochs are told, and checked, only then (see KIP-320).
    pub fn is_plain(&self) -> bool {
        self.last.is_none()
    }

    /// The number for the first offset of the log.
    pub fn first(&self, start: Offset) -> Offset {
        number(self.first, start)
    }

    /// The number for the end of the log.
    pub fn last(&self, end: Offset) -> Offset {
        number(self.last, end)
    }

    /// The number for an offset between the two. Plain if the chain is not known: an id of somebody else's chain would
    /// lead to other records.
    pub fn at(&self, offset: Offset) -> Offset {
        let is_open = |(_, to): &&(SliceId, Option<Offset>)| to.is_none_or(|to| offset < to);
        number(self.slices.iter().find(is_open).map(|(id, _)| *id), offset)
    }
}

/// A log that has grown out of what fits beside an id is numbered plainly; it is not divided (any more).
fn number(id: Option<SliceId>, offset: Offset) -> Offset {
    SliceOffset::new(id, offset).map_or(offset, SliceOffset::to_wire)
}

impl Coordinator {
    /// How offsets of a partition are to be numbered in an answer to a request that carries none.
    ///
    /// # Errors
    /// One that makes every client ask again: it cannot be told yet who asks. A member that went by plain offsets would read
    /// what is others', and leave its own.
    pub fn numbering(&self, caller: &Caller, key: Key) -> Result<Numbering, ErrorCode> {
        let mut holders = self.slice_holders(key);
        if holders.is_empty() {
            return Ok(Numbering::default());
        }
        let seen = match self.space(caller, key.0, key.1, &holders) {
            Space::Plain => return Ok(Numbering::default()),
            Space::NotYet => return Err(ErrorCode::NotLeaderOrFollower),
            Space::Members(_) => None,
            Space::Slice(id) => self.chain_with(key, id),
        };
        if let Some(chain) = seen.filter(|chain| chain.state() == ChainState::Held) {
            return Ok(Numbering::of_chain(chain));
        }
        // Those that read the whole log can be taken for one of the others, too.
        holders.extend(self.plain_holders(key));
        let known = self.space_of_members(caller, &holders).into_iter().flatten();
        let numberings = known.map(|(group, member)| {
            let chain = self.held_chain(group, member, key);
            chain.map_or_else(Numbering::default, Numbering::of_chain)
        });
        let numbering = numberings.reduce(|all, other| all.widened(&other));
        // Whoever lost its slice and does not know it yet still goes by its numbers.
        Ok(numbering
            .or_else(|| seen.map(Numbering::of_chain))
            .unwrap_or_default())
    }

    /// The largest id that names, or named, a slice of a partition, if any group is divided there.
    pub fn largest_slice(&self, key: Key) -> Option<SliceId> {
        self.slice_ids.get(&key).and_then(SliceIds::largest)
    }

    /// The members that hold a chain of the partition, with their groups.
    fn slice_holders(&self, key: Key) -> Vec<(&str, &Member)> {
        let pool = self.slice_ids.get(&key).into_iter();
        let groups = pool.flat_map(SliceIds::groups);
        let holders = groups.flat_map(|group| {
            let divided = match self.cursor(group, key) {
                Some(Cursor::Divided(divided)) => Some(divided),
                Some(Cursor::Plain(_)) | None => None,
            };
            let chains = divided.into_iter().flat_map(|divided| divided.chains());
            let held = chains.filter(|(_, chain)| chain.state() == ChainState::Held);
            held.filter_map(move |(_, chain)| Some((group, &self.member(group, chain.member())?.member)))
        });
        holders.collect()
    }

    /// The members of groups that are not divided to which the whole partition is assigned.
    fn plain_holders(&self, key: Key) -> impl Iterator<Item = (&str, &Member)> {
        let plain = move |group: &str| !matches!(self.cursor(group, key), Some(Cursor::Divided(_)));
        let groups = self.groups.iter().filter(move |(id, _)| plain(id));
        groups.flat_map(move |(id, group)| {
            let consumer = group.consumer().into_iter();
            consumer.flat_map(move |consumer| {
                let owners = consumer.owners.get(&key).into_iter().flatten();
                owners.filter_map(move |owner| Some((id.as_str(), &consumer.members.get(owner)?.member)))
            })
        })
    }

    fn held_chain(&self, group: &str, member_id: &str, key: Key) -> Option<&Chain> {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return None;
        };
        let (_, chain) = divided.chain_of(member_id)?;
        (chain.state() == ChainState::Held).then_some(chain)
    }

    fn chain_with(&self, key: Key, id: SliceId) -> Option<&Chain> {
        let Some(IdUse::Taken { group }) = self.slice_ids.get(&key)?.get(id) else {
            return None;
        };
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return None;
        };
        divided.chain_with(id).map(|(_, chain)| chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_several_is_that_of_all_and_what_lies_between_is_plain() {
        let id = SliceId::new;
        let of = |first, last| Numbering {
            first: id(first),
            last: id(last),
            slices: id(last).map(|id| (id, None)).into_iter().collect(),
        };
        let number = |slice, offset| SliceOffset::new(id(slice), offset).unwrap().to_wire();
        let both = of(3, 9).widened(&of(5, 7));
        assert_eq!(
            (both.first(10), both.at(15), both.last(20)),
            (number(3, 10), 15, number(9, 20))
        );
        // Somebody who reads the whole log is among them.
        let all = both.widened(&Numbering::default());
        assert_eq!((all.first(10), all.last(20)), (10, number(9, 20)));
        assert!(!all.is_plain());
    }

    #[test]
    fn an_offset_that_does_not_fit_beside_an_id_is_told_as_it_is() {
        let end = SliceOffset::OFFSET_END;
        assert_eq!(number(SliceId::new(1), end), end);
        assert!(number(SliceId::new(1), end - 1) > end);
    }
}
