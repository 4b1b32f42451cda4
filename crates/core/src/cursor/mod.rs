//! What a group has read of a partition.
//!
//! A cursor belongs to a group and a partition. It is *plain*, one offset as in Kafka, or *divided* among members,
//! each of which reads a part of the slots. This module is the whole protocol by which slots move between members
//! while records are in work, as a pure state machine; who shall get what is decided elsewhere.
//!
//! # Words
//!
//! A member's share is a **chain** of **slices**, oldest first. The last, the **tail**, is open-ended; older ones stay
//! readable up to their end until their records are committed. A client sees a slice as an offset that carries its id
//! ([`SliceOffset`]). A committed position lies *in* the slice it names; the number is never carried over to another.
//! Slots that left a tail are **in transit** until the records that the member was handed of them are done (the
//! **fence**); then they are **loose** and can be granted.
//!
//! # Two halves
//!
//! [`Cursor`] is durable and changes by [`CursorChange`]s alone. [`Live`] lies beside it and is volatile: which records
//! were handed out and may be in work. The cursor never reads a log: whoever reads for a member reports what it found.
//! [`SliceIds`] belongs to the partition, not to the group: Fetch names no group.
//!
//! A [`Step`] borrows the three, makes one or more operations, and says in [`Changes`] what to journal. It has changed
//! the state already. **A reply of any kind leaves, and anybody is told or woken, only when the changes are durable**,
//! those of earlier steps included; ids are journalled before the cursor.
//!
//! # Which event calls what
//!
//! | event | calls |
//! |---|---|
//! | Fetch with a slice id | [`SliceIds::get`] for the group, then [`Cursor::locate`]. `Unknown`: out of range, or silence if the pool has it retired. `Silent`: no data, long poll, high watermark = the offset asked for. `Read`: read from `scan_from` with the sieve |
//! | records were found | [`Step::reserve`] in one locked step, **before** the answer leaves; cut the answer at [`Reserved::end`]. `Stale`: locate again. The first answer of a slice, and one in every [`crate::limits::SERVED_CEILING_STEP`] offsets, has a change to wait for |
//! | nothing was found | [`Step::memo`] with the end of the search. If the slice ends there and [`ReadPlan::next`] is given, locate that; else long poll |
//! | OffsetCommit with a slice id | after the checks of who it is: [`Step::commit`]. Whatever it says, the client gets a success. A commit with a plain number while the cursor is divided has no effect |
//! | OffsetFetch of a member | [`Cursor::offset_fetch`]; `None` while divided: a retriable error until the grant is durable. Never changes anything |
//! | OffsetFetch of anybody else | [`Cursor::outside_view`] |
//! | a member gave the partition up, with proof | [`Step::give_up`]; complete its parked fetches, empty, before anybody is told of a new assignment |
//! | a member left or was expelled | [`Step::dead`] |
//! | a member is assigned the partition | [`Step::divide`] if the cursor is plain and shall be divided; then [`Step::grant`] of some of [`Divided::grantable`]. Or, if nobody holds anything: [`Divided::plain_probe`], feed it the log, [`Step::back_to_plain`] |
//! | the planner takes slots from a member | [`Step::release`]; wake its parked fetches (locate anew). Look at [`Divided::grantable`] after every commit |
//! | the planner gives slots to a member that holds a chain | [`Step::jump_grant`]; wake its parked fetches |
//! | a fence does not open in time | [`Step::return_transit`] |
//! | a chain is marked as rewound | [`Step::refresh`], as soon as there is room |
//! | an operator's reset, a member that cannot read slices | [`Step::collapse`] |
//! | start of the program | replay; then for each divided cursor [`Live::recover`], [`SliceIds::strays`], and in the background [`Divided::recall_wanted`] and [`Step::recall`]. Until that is done the chains are blind: commits move positions, but nothing settles and nothing is released. A recovery grants, frees and expels nothing |
//!
//! Deciding never waits: [`Step::release`], [`Step::jump_grant`], [`Step::refresh`] and [`Step::return_transit`] are good
//! at any moment, whatever is parked, paused or on its way. A fetch that was sent before and arrives after needs no rule.
//!
//! # What a commit proves
//!
//! Clients commit ahead of their work. With [`Evidence::Previous`] a fence opens when the *previous distinct* committed
//! position covers the records; positions, ends of slices and OffsetFetch go by the latest one. Distinct means: with a
//! record in between.
//!
//! # Where what is
//!
//! `offset` ids and numbers · `ids` the pool · `pieces` slots with offsets · `divided` the durable state and what
//! follows from it · `change`, `codec` its changes and their bytes · `live` the volatile half · `step` moves · `commit`
//! commits and settling · `read` lookup, reservation, recall · `plain` the ways back ·
//! `view` for the planner · `fault` planted faults.

mod change;
mod codec;
mod commit;
mod divided;
mod fault;
mod ids;
mod live;
mod offset;
mod pieces;
mod plain;
mod read;
mod step;
mod view;

#[cfg(test)]
mod tests;

pub use crate::sieve::Sieve;
pub use change::{CursorChange, Edit, Note};
pub use commit::{Committed, Why};
pub use divided::{Chain, ChainState, Divided, Slice, Transit};
pub use fault::Fault;
pub(crate) use fault::Planted;
pub use ids::{IdUse, SliceIds, SliceIdsChange};
pub use live::{Live, Record};
pub use offset::{Position, SliceId, SliceOffset};
pub use pieces::Pieces;
pub use plain::PlainProbe;
pub use read::{Found, ReadPlan, Recall, Reserved};
pub use step::{Changes, Refusal, Step, World};
pub use view::{ChainView, Rewound, TransitView, Undone};

use crate::ids::Offset;

/// A group's position in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// One committed offset for the whole partition.
    Plain(Plain),
    /// Several members have read different parts of it.
    Divided(Box<Divided>),
}

/// What a commit of a group proves about records in work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// The committed position before the latest one covers what is done. Right for every client.
    #[default]
    Previous,
    /// The latest one does: for applications that are known to commit after their work.
    Latest,
}

/// The fields of a plain cursor, as a client committed them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plain {
    /// The offset of the next record the group wants; -1 if a client committed "none".
    pub offset: Offset,
    /// Leader epoch of the last record read, or -1 if the client did not say (KIP-320).
    pub leader_epoch: i32,
    /// The client's own note, kept as it came (at most `GroupSettings::offset_metadata_bytes_max` bytes).
    pub metadata: String,
    /// Wall clock of the commit, milliseconds since 1970 UTC.
    pub commit_ms: i64,
    /// Wall clock after which the cursor may be dropped, if the client asked for a retention of its own
    /// (OffsetCommit v2 to v4).
    pub expires_ms: Option<i64>,
}

impl Cursor {
    /// What somebody who is no member of the group sees as the committed position: while divided, the lowest offset
    /// that any slot resumes at, what is known to hold no record left out. Without `live` it may be lower than with
    /// it, never higher. A member's note is about another offset than this, and is not shown.
    pub fn outside_view(&self, live: Option<&Live>) -> Plain {
        match self {
            Self::Plain(plain) => plain.clone(),
            Self::Divided(divided) => Plain {
                offset: divided.outside_offset(live.unwrap_or(&Live::default())),
                leader_epoch: -1,
                metadata: String::new(),
                ..divided.kept.clone()
            },
        }
    }

    /// Whether the cursor may be dropped at `now_ms`, given that the group needs it no longer since `idle_since_ms`
    /// (both wall clock) and keeps unused cursors for `retention_ms`.
    ///
    /// A retention named by the client replaces the group's, as in Kafka. Of a divided cursor the latest commit
    /// counts.
    pub fn is_expired(&self, now_ms: i64, idle_since_ms: Option<i64>, retention_ms: i64) -> bool {
        let plain = match self {
            Self::Plain(plain) => plain,
            Self::Divided(divided) => &divided.kept,
        };
        match plain.expires_ms {
            Some(at) => now_ms >= at,
            None => {
                let from = idle_since_ms.map_or(plain.commit_ms, |idle| idle.max(plain.commit_ms));
                now_ms.saturating_sub(from) >= retention_ms
            }
        }
    }
}
