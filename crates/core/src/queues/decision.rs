//! Decisions about the queues of a topic: what was done, why, and from what numbers.

use std::collections::VecDeque;

use super::{Blocked, Phase};
use crate::limits::QUEUE_DECISIONS_PER_TOPIC_MAX;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The topic entered queue mode.
    Start,
    /// The read queue count was raised; the write queue count follows.
    ReadUp,
    /// The write queue count was raised.
    WriteUp,
    /// The write queue count was lowered; the read queue count follows.
    WriteDown,
    /// The read queue count was lowered.
    ReadDown,
    /// Lowering the read queue count was put off.
    Postpone,
    /// The goal changed, and neither count had to: a phase was turned around.
    Turn,
    /// An operator said what is wanted.
    Wish,
    /// The topic left queue mode: all its partitions are written and assigned.
    End,
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// `elastic.mode` of the topic became `queues`.
    SwitchedOn,
    /// `elastic.mode` of the topic is something else now, or the topic must not be in queue mode.
    SwitchedOff,
    /// So many instances has the largest group.
    LargestGroup {
        /// The group.
        group: String,
        /// Its instances that read the topic.
        instances: u32,
    },
    /// The settings allow no other number.
    Bounds,
    /// An operator wants it so; `None`: the number of instances is to count again.
    Operator {
        /// How many queues.
        wish: Option<u32>,
    },
    /// The delay of the phase is over.
    DelayOver,
    /// The delay is over, and everything in the queues that go has been read.
    Drained,
    /// The delay is over, and a group has not read everything.
    Unread(Blocked),
    /// An operator did not want to wait any longer; what is unread, if anything is, stays assigned to its group.
    Forced(Option<Blocked>),
}

/// A change with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When, wall clock, milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// What was done.
    pub kind: Kind,
    /// Why.
    pub why: Why,
    /// Write and read queue count before.
    pub before: (u32, u32),
    /// Write and read queue count after.
    pub after: (u32, u32),
    /// What both are to become.
    pub goal: u32,
    /// How long it takes until the next change at least, milliseconds; 0 if none is to come.
    pub wait_ms: u64,
}

/// The newest decisions about a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLog {
    /// Oldest first, each with its number.
    pub(super) entries: VecDeque<(u64, Decision)>,
    /// The number of the next one.
    pub(super) next: u64,
}

impl QueueLog {
    /// Adds a decision; the oldest go.
    pub fn note(&mut self, decision: Decision) {
        self.entries.push_back((self.next, decision));
        self.next += 1;
        while self.entries.len() > QUEUE_DECISIONS_PER_TOPIC_MAX {
            self.entries.pop_front();
        }
    }

    /// The decisions, oldest first, with their numbers.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (u64, &Decision)> {
        self.entries.iter().map(|(number, decision)| (*number, decision))
    }
}

impl Kind {
    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(self) -> &'static str {
        match self {
            Self::Start => "queues-start",
            Self::ReadUp => "read-up",
            Self::WriteUp => "write-up",
            Self::WriteDown => "write-down",
            Self::ReadDown => "read-down",
            Self::Postpone => "postpone",
            Self::Turn => "turn",
            Self::Wish => "wish",
            Self::End => "queues-end",
        }
    }
}

impl Why {
    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SwitchedOn => "switched-on",
            Self::SwitchedOff => "switched-off",
            Self::LargestGroup { .. } => "largest-group",
            Self::Bounds => "bounds",
            Self::Operator { .. } => "operator",
            Self::DelayOver => "delay-over",
            Self::Drained => "drained",
            Self::Unread(_) => "unread",
            Self::Forced(_) => "forced",
        }
    }

    /// The group that it is about.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::LargestGroup { group, .. } => Some(group),
            Self::Unread(blocked) | Self::Forced(Some(blocked)) => Some(&blocked.group),
            _ => None,
        }
    }
}

impl Decision {
    /// What was done, and why, in one sentence.
    pub fn sentence(&self) -> String {
        let (write, read) = self.after;
        let what = match self.kind {
            Kind::Start => format!("{} read and {write} written from now on", queues_are(read)),
            Kind::ReadUp => format!(
                "{} read after {}; {write} {} written, and {} will be in {}",
                queues_are(read),
                self.before.1,
                are(write),
                self.goal,
                seconds(self.wait_ms)
            ),
            Kind::WriteUp => format!("{} written after {}", queues_are(write), self.before.0),
            Kind::WriteDown => format!(
                "{} written after {}; {read} {} read, and {} will be in {} if nothing is unread then",
                queues_are(write),
                self.before.0,
                are(read),
                self.goal,
                seconds(self.wait_ms)
            ),
            Kind::ReadDown => format!("{} read after {}", queues_are(read), self.before.1),
            Kind::Postpone => format!(
                "{read} queues stay assigned, though {write} {} written",
                are(write)
            ),
            Kind::Turn => format!(
                "{} wanted now; {write} {} written, {read} read",
                queues_are(self.goal),
                are(write)
            ),
            Kind::Wish => match self.why {
                Why::Operator { wish: None } => "the number of queues follows the instances".to_owned(),
                _ => "the number of queues is an operator's".to_owned(),
            },
            Kind::End => format!("all {read} partitions are read and written from now on"),
        };
        format!("{what}, since {}", self.why.sentence())
    }
}

fn are(count: u32) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn queues_are(count: u32) -> String {
    let noun = if count == 1 { "queue" } else { "queues" };
    format!("{count} {noun} {}", are(count))
}

impl Why {
    /// The reason, to stand behind "since".
    fn sentence(&self) -> String {
        match self {
            Self::SwitchedOn => "elastic.mode is queues".to_owned(),
            Self::SwitchedOff => "the topic is not in queue mode any more".to_owned(),
            Self::LargestGroup { group, instances } => {
                let noun = if *instances == 1 { "instance" } else { "instances" };
                format!("the largest group, {group}, has {instances} {noun}")
            }
            Self::Bounds => {
                "elastic.queues.min, elastic.queues.max and the partitions allow no other number".to_owned()
            }
            Self::Operator { wish: Some(wish) } => format!("an operator wants {wish}"),
            Self::Operator { wish: None } => "an operator wants no number of their own any more".to_owned(),
            Self::DelayOver => "the consumers have had time to come".to_owned(),
            Self::Drained => "everything in the queues that go has been read".to_owned(),
            Self::Unread(blocked) => blocked.sentence(),
            Self::Forced(None) => "an operator did not want to wait".to_owned(),
            Self::Forced(Some(blocked)) => {
                format!(
                    "an operator did not want to wait, although {}",
                    blocked.sentence()
                )
            }
        }
    }
}

impl Blocked {
    /// Who has not read what.
    pub fn sentence(&self) -> String {
        let noun = if self.unread == 1 { "record" } else { "records" };
        format!(
            "group {} has {} {noun} of queue {} to read",
            self.group, self.unread, self.queue
        )
    }
}

impl Phase {
    /// Whether R waits to follow W down.
    pub(super) fn is_shrinking(&self) -> bool {
        matches!(self, Self::Draining | Self::Postponed(_))
    }
}

fn seconds(ms: u64) -> String {
    match ms % 1000 {
        0 => format!("{} s", ms / 1000),
        _ => format!("{ms} ms"),
    }
}
