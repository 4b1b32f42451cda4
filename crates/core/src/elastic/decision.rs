//! Decisions and refusals as data: what, for what reason, from whom to whom, and from what inputs.

use anabranch_wire::slot::Slot;

use super::inputs::{Inputs, PartitionRef};
use super::snapshot::MemberId;
use crate::slots::SlotSet;

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A share is divided for members that had nothing.
    Split,
    /// A share is divided for members that have drained their own.
    Steal,
    /// Everything but one hot slot is taken from its owner.
    Isolate,
    /// Slots that nobody has are given to members: their holder left or died.
    Merge,
    /// Whole partitions are given out or moved.
    Balance,
    /// Slots go back to where they came from, since their fence did not open in time.
    Return,
    /// The shares of a partition flow together at one member.
    Fold,
    /// A partition whose slots one member has becomes plain.
    Plain,
}

/// Why a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A member holds nothing.
    MemberIdle,
    /// A member has processed everything it holds.
    MemberDrained,
    /// Slots are without a holder.
    NoHolder,
    /// The loads of members differ.
    Uneven,
    /// The fence did not open in time.
    FenceTimeout,
    /// There has been nothing to read for long.
    Quiet,
    /// The topic is not to be divided any more.
    SwitchedOff,
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// `elastic.mode` is off.
    Off,
    /// `elastic.mode` is queues.
    Queues,
    /// The operator has stopped changes.
    Paused,
    /// The topic must not be divided.
    Excluded {
        /// Why.
        text: String,
    },
    /// A member may not hold slices.
    Ineligible {
        /// Which.
        member: MemberId,
        /// Why.
        text: String,
    },
    /// No topic that the members without work subscribe to has anything to read.
    NothingToServe,
    /// Too few records are left.
    BelowThreshold {
        /// In the largest part that could be divided.
        remaining: u64,
        /// So many are needed.
        needed: u64,
    },
    /// The owner will be done by itself soon.
    FinishingSoon {
        /// In so many milliseconds.
        left_ms: u64,
        /// It is left alone below so many.
        needed_ms: u64,
    },
    /// The topic was divided a moment ago.
    Cooldown {
        /// It may be again in so many milliseconds.
        left_ms: u64,
    },
    /// As many members share the partition as may.
    SlicesMax {
        /// `elastic.slices.max`.
        max: u32,
    },
    /// The partition has no slice ids left.
    IdsExhausted,
    /// All records are in one slot, which cannot be divided.
    HotKey {
        /// The slot.
        slot: Slot,
        /// Its records.
        records: u64,
    },
    /// The owner went back behind its own commits.
    Rewound,
    /// After a restart it is not known yet what the owner was handed.
    Blind,
    /// The owner's chain of slices is full until it commits.
    ChainFull,
    /// The owner takes records and does not commit.
    NeverCommits,
    /// Slots of the partition are on their way already.
    InTransit,
    /// The owner is leaving, or away within its session.
    OwnerAbsent,
    /// Nobody is there to take the slots.
    NoReceiver,
    /// It is not time yet.
    Waiting {
        /// It will be in so many milliseconds.
        left_ms: u64,
    },
    /// There is something to read.
    NotQuiet,
    /// No move would make the loads more equal by enough.
    EvenEnough,
}

/// How slots change hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The source's slice ends at what was handed out; its commits open the fence. Nobody is interrupted.
    Release,
    /// The source gives its share up and gets its own part back: for what was handed out already.
    Regrant,
    /// The holder of a plain partition gives it up once and gets its own part back as a slice.
    Divide,
    /// Nobody has them: they are granted at once.
    Grant,
    /// The source takes back what it had released; no fence is needed.
    Return,
    /// A whole partition is assigned, with the usual revocation if somebody has it.
    Assign,
    /// The holder gives the partition up and gets it back as a plain one.
    Plain,
}

/// Slots that go from one to another. With [`How::Regrant`] and [`How::Divide`] the source's own part is among the moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The partition.
    pub of: PartitionRef,
    /// Which slots.
    pub slots: SlotSet,
    /// From whom; none: nobody has them.
    pub from: Option<MemberId>,
    /// To whom.
    pub to: MemberId,
    /// By what means.
    pub how: How,
}

/// Records to process of one member, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareChange {
    /// Whose.
    pub member: MemberId,
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// A change, as it follows from its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What kind it is.
    pub kind: Kind,
    /// Why it is made.
    pub why: Why,
    /// What moves.
    pub moves: Vec<Move>,
    /// What the members had and have to process: of this share for a division, of everything for a balance.
    pub shares: Vec<ShareChange>,
    /// Shares that have more records and could not be divided, with what stood in the way.
    pub passed_over: Vec<PassedOver>,
    /// How far the numbers behind `shares` may lie from the truth, in records; 0 if all were counted.
    pub error: u64,
}

/// A share that would have come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// Its partition.
    pub of: PartitionRef,
    /// Its owner.
    pub owner: MemberId,
    /// What stood in the way.
    pub why_not: WhyNot,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This is done.
    Change(Change),
    /// Nothing is.
    Refused {
        /// Why.
        why_not: WhyNot,
        /// The partition and the owner it is about, if it is about one.
        about: Option<(PartitionRef, MemberId)>,
    },
    /// The records of this candidate have to be counted first, by position in [`super::DivideInputs::candidates`].
    Uncounted(usize),
}

/// A change with the inputs it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When, wall clock, milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The change.
    pub change: Change,
    /// From what.
    pub inputs: Inputs,
}

/// A refusal with the inputs it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When, wall clock, milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// What stood in the way.
    pub why_not: WhyNot,
    /// The partition and the owner it is about, if it is about one.
    pub about: Option<(PartitionRef, MemberId)>,
    /// From what.
    pub inputs: Inputs,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Split,
        Self::Steal,
        Self::Isolate,
        Self::Merge,
        Self::Balance,
        Self::Return,
        Self::Fold,
        Self::Plain,
    ];

    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Steal => "steal",
            Self::Isolate => "isolate",
            Self::Merge => "merge",
            Self::Balance => "balance",
            Self::Return => "return",
            Self::Fold => "fold",
            Self::Plain => "plain",
        }
    }
}

impl Why {
    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(self) -> &'static str {
        match self {
            Self::MemberIdle => "member-idle",
            Self::MemberDrained => "member-drained",
            Self::NoHolder => "no-holder",
            Self::Uneven => "uneven",
            Self::FenceTimeout => "fence-timeout",
            Self::Quiet => "quiet",
            Self::SwitchedOff => "switched-off",
        }
    }
}

impl WhyNot {
    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Queues => "queues",
            Self::Paused => "paused",
            Self::Excluded { .. } => "excluded",
            Self::Ineligible { .. } => "ineligible",
            Self::NothingToServe => "nothing-to-serve",
            Self::BelowThreshold { .. } => "below-threshold",
            Self::FinishingSoon { .. } => "finishing-soon",
            Self::Cooldown { .. } => "cooldown",
            Self::SlicesMax { .. } => "slices-max",
            Self::IdsExhausted => "ids-exhausted",
            Self::HotKey { .. } => "hot-key",
            Self::Rewound => "rewound",
            Self::Blind => "blind",
            Self::ChainFull => "chain-full",
            Self::NeverCommits => "never-commits",
            Self::InTransit => "in-transit",
            Self::OwnerAbsent => "owner-absent",
            Self::NoReceiver => "no-receiver",
            Self::Waiting { .. } => "waiting",
            Self::NotQuiet => "not-quiet",
            Self::EvenEnough => "even-enough",
        }
    }
}

impl How {
    /// A word for logs, metrics and JSON; it never changes.
    pub fn code(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Regrant => "regrant",
            Self::Divide => "divide",
            Self::Grant => "grant",
            Self::Return => "return",
            Self::Assign => "assign",
            Self::Plain => "plain",
        }
    }
}
