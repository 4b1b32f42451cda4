//! Elastic groups: several members of a group share one partition.
//!
//! What each of them reads is the cursor's matter ([`crate::cursor`]); who shall get what, the planner's
//! ([`crate::elastic`]). Here the two meet the group: members that come, give up, commit and leave.
//!
//! - `shares`: which members hold a shared partition, how one that was held whole comes to be shared, and what
//!   becomes of it when members leave.
//! - `promises`: slots that a member is to get as soon as nobody else can be at work on them.
//! - `moves`: what happens to a divided cursor when a member gets a partition, gives it up, leaves or comes back.
//! - `slices`: fetches, commits and offset fetches of members that read slices.
//!
//! Everything volatile is in [`Elastic`]: after a restart it begins empty, promises are made anew by the planner, and
//! [`Coordinator::recover_slices`] brings back what the cursors need.
//!
//! [`Coordinator::recover_slices`]: super::Coordinator::recover_slices

mod moves;
mod promises;
mod shares;
mod slices;

#[cfg(test)]
mod moves_test;
#[cfg(test)]
mod shares_test;

use std::collections::BTreeMap;

use crate::cursor::Live;
use crate::ids::TopicId;
use crate::slots::SlotSet;

pub(in crate::group) use slices::NotYet;
pub use slices::{SliceFetch, SliceRecall};

/// A partition of a topic.
pub(super) type Key = (TopicId, i32);

/// What is volatile about all divided cursors.
#[derive(Debug, Default)]
pub(super) struct Elastic {
    /// What was handed out, by group and partition.
    pub(super) live: BTreeMap<(String, Key), Live>,
    /// Slots that members are to get, by group and partition.
    pub(super) promises: BTreeMap<(String, Key), Promises>,
}

/// The slots of one partition that each member is to get. Disjoint, and none empty.
pub(super) type Promises = BTreeMap<String, SlotSet>;
