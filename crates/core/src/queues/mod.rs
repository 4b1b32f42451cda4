//! Queue mode: the number of queues of a topic follows the number of instances that read it.
//!
//! A topic with `elastic.mode=queues` shows all its partitions to every client, for ever: the *facade*. Of these ids the
//! first W are written (the *write queue count*; a batch for an id at or above it is stored in id mod W), and the first R
//! are assigned to members of groups (the *read queue count*). Always 1 <= W <= R <= facade.
//!
//! ```text
//!            0 ........ W-1 | W ....... R-1 | R ......... facade-1
//!   written       yes       |      no       |        no
//!   assigned      yes       |      yes      |        no, but to groups that have not read what is retained there
//! ```
//!
//! The counts follow a *goal*, the number of live instances of the largest group, one change at a time:
//!
//! ```text
//!   goal > W:  R up to the goal at once --- write delay ---> W up to the goal            (reading ahead)
//!   goal < W:  W down to the goal at once -- drain delay --> R down to W if all is read  (draining)
//!                                                       \--> else later, and who it is   (postponed)
//! ```
//!
//! So consumers are there before producers write to a queue, and stay until it has been read. Which phase it is follows
//! from the three numbers, so there is never more than one, and a goal that changes in the middle of a phase turns it
//! around from where it is.
//!
//! - [`step`]: the machine. Pure: the moment, the wish of the groups and what is unread are arguments.
//! - [`decision`]: each change with its reason, as data and as a sentence, and the log of a topic.
//! - [`settings`]: the keys `elastic.queues.*`.
//! - The groups' side (who is live, what is unread, which ids a group gets) is in `group/queues.rs`; the node's (where a
//!   batch goes, what is durable) in `node/queues.rs`.
//!
//! # What is calm
//!
//! More instances count at once, fewer only after `elastic.queues.shrink.grace.ms`: a consumer that is restarted changes
//! nothing. When nobody reads a topic the counts stay. A restart of the broker begins the grace anew, and goes on with the
//! delay of a phase where the wall clock says it is.

mod codec;
mod decision;
mod settings;
mod step;

#[cfg(test)]
pub(crate) mod codec_samples;
#[cfg(test)]
mod faults_test;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod world_test;

pub use decision::{Decision, Kind, QueueLog, Why};
pub use settings::QueueSettings;
pub use step::{Change, Moment, Watch, Wish};

/// The durable part of a topic in queue mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    /// W, the write queue count: ids below it are written. At least 1.
    pub write: u32,
    /// R, the read queue count: ids below it are assigned. At least W.
    pub read: u32,
    /// What both are to become.
    pub goal: u32,
    /// What an operator wants in the place of the number of instances.
    pub wish: Option<u32>,
    /// What is waited for.
    pub phase: Phase,
    /// When the phase began, wall clock, milliseconds since 1970 UTC.
    pub since_ms: i64,
}

/// What a topic waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: W, R and the goal are equal.
    #[default]
    Idle,
    /// R was raised; W follows after the write delay.
    ReadingAhead,
    /// W was lowered; R follows after the drain delay.
    Draining,
    /// The drain delay is over, and a group has not read everything.
    Postponed(Blocked),
}

/// A group that has not read everything in a queue that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The group.
    pub group: String,
    /// The queue, the first of those with unread records.
    pub queue: u32,
    /// How many records of it are unread.
    pub unread: u64,
}

impl Queues {
    /// A topic whose first `count` ids are written and assigned, at rest.
    pub fn at_rest(count: u32, now_ms: i64) -> Self {
        let count = count.max(1);
        Self {
            write: count,
            read: count,
            goal: count,
            wish: None,
            phase: Phase::Idle,
            since_ms: now_ms,
        }
    }

    /// The id in which a batch for `id` is stored.
    pub fn home(&self, id: u32) -> u32 {
        if id < self.write {
            id
        } else {
            id % self.write.max(1)
        }
    }
}

impl Phase {
    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::ReadingAhead => "reading-ahead",
            Self::Draining => "draining",
            Self::Postponed(_) => "postponed",
        }
    }
}
