//! The group coordinator: who belongs to a group, who holds which partition, and how far the group has read.
//!
//! A pure state machine. Time, the topics and fresh ids are arguments; nothing here reads a clock, rolls dice or does
//! IO, so a run can be repeated exactly.
//!
//! # How the parts play together
//!
//! A request enters through a method of [`Coordinator`]. Classic requests pass `doors`, which finds the kind of group;
//! there are two with members:
//!
//! - **The broker assigns** (`consumer`): consumers of the classic protocol and of the consumer protocol (KIP-848),
//!   in any mix. One state machine: the group epoch grows with each change of members, subscriptions or topics; a
//!   target assignment is computed at once (`assign`); each member then moves towards its target by itself
//!   (`consumer::reconcile`), giving up before anybody gets. There is no barrier, and nobody whose assignment stays
//!   the same is disturbed. See ADR 0004.
//! - **A client leads** (`classic`): Connect, Streams, schema registries, assignors that only the clients know. The
//!   classic barrier, plan opaque to the broker.
//!
//! Which partitions there are to assign is smaller for a topic in queue mode (`queues`).
//!
//! Cursors (`commit`, `offsets`) belong to the group whatever its kind. Where the broker assigns, several members may share a
//! partition (`elastic`).
//!
//! # Durability
//!
//! Every method that changes something durable does so through [`GroupChange`]s and returns them in [`Effects`]. The
//! server journals them in order and holds the answers back until they are durable. Changes set absolute values:
//! replaying them, even over a state that has them already, ends in the same state. Recovery: snapshot, replay of the
//! changes since, then [`Coordinator::restart_sessions`].
//!
//! Deadlines (`timers`) and parked requests are volatile. The server calls [`Coordinator::on_time`] at
//! [`Coordinator::next_deadline`], [`Coordinator::topics_changed`] after any change of the topics,
//! [`Coordinator::disconnected`] when the connection of a parked request is gone, and [`Coordinator::expire`] now and
//! then.

mod api;
mod assign;
mod change;
mod classic;
mod codec;
mod commit;
mod consumer;
mod coordinator;
mod describe;
mod doors;
pub mod elastic;
mod ids;
mod offsets;
pub mod protocol;
mod queues;
mod settings;
pub mod state;
mod timers;
mod topics;

#[cfg(test)]
mod codec_test;
#[cfg(test)]
mod commit_test;
#[cfg(test)]
mod describe_test;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod harness_topics;
#[cfg(test)]
mod offsets_test;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod walk;

pub use api::{
    Answer, Caller, CommitAnswer, CommitPartition, Connection, ConsumerHeartbeat, ConsumerHeartbeatAnswer,
    FetchAnswer, FetchedOffset, Heartbeat, JoinAnswer, JoinGroup, JoinedMember, LeaveAnswer, LeaveGroup,
    Leaver, OffsetCommit, OffsetDeleteAnswer, OffsetFetch, Reply, SyncAnswer, SyncGroup, Token, TopicRef,
};
pub use assign::Assignor;
pub use change::GroupChange;
pub use coordinator::{Coordinator, Effects, Notice};
pub use describe::{ConsumerDescribed, ConsumerMember, Described, DescribedMember, Listed, MemberView};
pub use elastic::{CountWanted, Counts, Numbering, Order, Ordered, SliceFetch, SliceRead, SliceRecall};
pub use queues::{QueueReader, QueueReaders};
pub use settings::GroupSettings;
pub use state::Kind;
pub use topics::{TopicView, Topics};
