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
//! - `exhausted`: what becomes of a partition of which no slice id is free.
//! - `place`: whole partitions that were placed by load.
//! - `flow`: how much of its share a member is handed ahead of its commits.
//! - `planning`: when the planner is asked; `view`: what it sees; `activity`: what members are doing; `act`: what
//!   becomes of its decisions, and `settled` whether it did; `operate`: what an operator asks.
//! - `watch`: members that do not read what they hold.
//! - `average`: of what `flow` and `activity` measure.
//!
//! Kafka's protocol was not made for this: most clients do not say who they are where it matters (OffsetFetch,
//! ListOffsets, Fetch), and each library has habits that decide what can be done with it. So:
//!
//! - [`software`](ClientSoftware) is what a client says about itself; `introduce` remembers it for those of its
//!   connections on which it says nothing.
//! - `family` has one row for each client library: how it is told from others, from which version on it may get a
//!   share, and its habits.
//! - `eligible` says who may be divided, and if not, why.
//! - `identity` knows which member speaks on a connection, and so who asks for a committed offset.
//! - `handed` knows for which of its partitions a member has not asked yet where to begin.
//! - `seen` remembers the slices that a connection has fetched; `listing` numbers offsets for whoever asks without one.
//!
//! Of this only the facts in [`ClientFacts`] are durable, as a part of the member. The rest is in memory, bounded, and is
//! there again once the clients have reconnected.
//!
//! Everything volatile about slices is in `memory`: after a restart it begins empty, promises are made anew by the
//! planner, and [`Coordinator::recover_slices`] brings back what the cursors need.
//!
//! [`Coordinator::recover_slices`]: super::Coordinator::recover_slices

mod act;
mod activity;
mod average;
mod counted;
mod eligible;
mod exhausted;
mod family;
mod flow;
mod handed;
mod identity;
mod introduce;
mod listing;
mod memory;
mod moves;
mod operate;
mod place;
mod planning;
mod promises;
mod seen;
mod settled;
mod shares;
mod slices;
mod software;
mod view;
mod watch;

#[cfg(test)]
mod claims_test;
#[cfg(test)]
mod eligible_test;
#[cfg(test)]
mod exhausted_test;
#[cfg(test)]
mod family_test;
#[cfg(test)]
mod flow_test;
#[cfg(test)]
mod identity_test;
#[cfg(test)]
mod listing_test;
#[cfg(test)]
mod moves_test;
#[cfg(test)]
mod place_test;
#[cfg(test)]
mod planning_test;
#[cfg(test)]
mod room;
#[cfg(test)]
mod settled_test;
#[cfg(test)]
mod shares_test;
#[cfg(test)]
mod space_test;
#[cfg(test)]
mod watch_test;

use std::collections::BTreeMap;

use crate::ids::TopicId;
use crate::slots::SlotSet;

pub use eligible::{Ineligible, Reason};
pub(super) use family::introduction;
pub use family::{Family, Habits, Recognised, Rejoin, Since, recognise};
pub(super) use identity::Identities;
pub use identity::{Asker, Identity};
pub use listing::Numbering;
pub(super) use memory::Elastic;
pub use operate::{Order, Ordered};
pub use planning::CountWanted;
pub(in crate::group) use slices::NotYet;
pub use slices::{SliceFetch, SliceRead, SliceRecall};
pub use software::{ClientFacts, ClientSoftware, Version};
pub use view::Counts;

/// A partition of a topic.
pub(super) type Key = (TopicId, i32);

/// The slots of one partition that each member is to get. Disjoint, and none empty.
pub(super) type Promises = BTreeMap<String, SlotSet>;
