//! What a decision was made from: each kind of question with all that its answer depends on, and nothing else.
//!
//! [`super::decide`] answers them. The planner asks; a recorded decision is replayed by asking again. So they are bounded
//! in size, and times in them are ages, not moments.

use super::counts::Precision;
use super::cut::{Hottest, Weights};
use super::settings::{CommitEvidence, Mode};
use super::snapshot::MemberId;
use crate::ids::TopicId;
use crate::slots::SlotSet;

/// Most shares that one question about dividing names: those with the most records.
pub const CANDIDATES_MAX: usize = 8;
/// Most members without work in one question; further ones are in the next.
pub const NEEDY_MAX: usize = 64;
/// Most members that are considered as takers of slots that nobody has.
pub const RECEIVERS_MAX: usize = 64;
/// Most members in one question about whole partitions: the most loaded and the least loaded.
pub const BALANCE_MEMBERS_MAX: usize = 32;
/// Most partitions in one question about whole partitions.
pub const BALANCE_ITEMS_MAX: usize = 256;

/// A partition, with its topic's name for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionRef {
    /// The topic.
    pub topic: TopicId,
    /// Its name.
    pub name: String,
    /// The partition's number.
    pub partition: i32,
}

impl std::fmt::Display for PartitionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.name, self.partition)
    }
}

/// A question to the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Which share is divided for members without work, and how.
    Divide(Box<DivideInputs>),
    /// Who gets slots that nobody has.
    Grant(Box<GrantInputs>),
    /// Whether slots whose fence stays shut go back.
    Return(Box<ReturnInputs>),
    /// Which whole partitions go to whom.
    Balance(Box<BalanceInputs>),
    /// Whether a divided partition flows together at one member.
    Fold(Box<FoldInputs>),
    /// Whether a partition whose slots one member has becomes plain.
    Plain(Box<PlainInputs>),
}

/// For [`Inputs::Divide`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DivideInputs {
    /// Whether the operator has stopped changes.
    pub paused: bool,
    /// The members without work, longest without it first.
    pub needy: Vec<Needy>,
    /// The shares and plain partitions with the most records, largest first.
    pub candidates: Vec<Candidate>,
    /// How many smaller ones there are besides.
    pub more_candidates: u32,
    /// The victim's records, once it has been chosen and counted.
    pub victim: Option<Weights>,
}

/// A member without work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needy {
    /// Who.
    pub id: MemberId,
    /// Whether it has drained what it holds; else it holds nothing.
    pub drained: bool,
    /// For how long, in milliseconds.
    pub for_ms: u64,
}

/// A share, or a plain partition, that may be divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The partition.
    pub of: PartitionRef,
    /// Who holds it.
    pub owner: MemberId,
    /// Whether it is a whole partition that was never divided.
    pub plain: bool,
    /// Records still to be processed.
    pub remaining: u64,
    /// Those of them that were handed out.
    pub handed_out: u64,
    /// How many slots it has.
    pub slots: u32,
    /// Its hottest slot, if its records were counted.
    pub hottest: Option<Hottest>,
    /// How they were counted.
    pub precision: Precision,
    /// The members of [`DivideInputs::needy`], by position, that may have a part of it, each with whether it would be one
    /// sharer more.
    pub takers: Vec<(u16, bool)>,
    /// How many members share the partition now.
    pub sharers: u32,
    /// Slice ids left.
    pub ids_left: u32,
    /// What stands in the way, as facts.
    pub facts: Facts,
    /// How long ago the topic was last divided, in milliseconds.
    pub divided_ago_ms: Option<u64>,
    /// How long ago slots came back since their fence had not opened, in milliseconds.
    pub returned_ago_ms: Option<u64>,
    /// The owner's rate, records a second.
    pub rate: Option<u64>,
    /// Commits with progress of the owner.
    pub commits: u64,
    /// The usual time between two of them, in milliseconds.
    pub commit_interval_ms: Option<u64>,
    /// For how long the owner has had records without committing anything, in milliseconds.
    pub uncommitted_for_ms: Option<u64>,
    /// The settings that apply.
    pub rules: DivideRules,
}

/// What may stand in the way of dividing a share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The topic must not be divided, and why.
    pub excluded: Option<String>,
    /// A member that subscribes to the topic may not hold slices: who, and why.
    pub ineligible: Option<(MemberId, String)>,
    /// The owner is leaving, or away within its session.
    pub owner_absent: bool,
    /// Slots of the partition are on their way already.
    pub in_transit: bool,
    /// See [`super::ShareView::chain_full`].
    pub chain_full: bool,
    /// See [`super::ShareView::rewound`].
    pub rewound: bool,
    /// See [`super::ShareView::blind`].
    pub blind: bool,
}

/// The settings that a division depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivideRules {
    /// `elastic.mode`.
    pub mode: Mode,
    /// `elastic.commit.evidence`.
    pub evidence: CommitEvidence,
    /// `elastic.split.min.remaining`, records.
    pub split_min_remaining: u64,
    /// `elastic.steal.min.remaining`, records.
    pub steal_min_remaining: u64,
    /// `elastic.steal.min.ms`, milliseconds.
    pub steal_min_ms: u64,
    /// `elastic.split.cooldown.ms`, milliseconds.
    pub cooldown_ms: u64,
    /// `elastic.fence.timeout.ms`, milliseconds.
    pub fence_timeout_ms: u64,
    /// `elastic.watchdog.commit.ms`, milliseconds.
    pub watchdog_commit_ms: u64,
    /// `elastic.slices.max`, members.
    pub slices_max: u32,
}

/// For [`Inputs::Grant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantInputs {
    /// The partition.
    pub of: PartitionRef,
    /// The slots that nobody has.
    pub slots: SlotSet,
    /// Their records still to be processed.
    pub remaining: u64,
    /// The same by slot, if they were counted.
    pub weights: Option<Weights>,
    /// For how long nobody has had them, in milliseconds.
    pub for_ms: u64,
    /// Who could take them, least loaded first.
    pub receivers: Vec<Receiver>,
    /// How many members share the partition now.
    pub sharers: u32,
    /// `elastic.slices.max`, members.
    pub slices_max: u32,
    /// `elastic.split.min.remaining`, records.
    pub split_min_remaining: u64,
}

/// A member that could take slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Who.
    pub id: MemberId,
    /// Records that it has to process already, of all partitions.
    pub load: u64,
    /// Slots of this partition that it has.
    pub slots: u32,
}

/// For [`Inputs::Return`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnInputs {
    /// The partition.
    pub of: PartitionRef,
    /// The slots on their way.
    pub slots: SlotSet,
    /// From whom.
    pub source: MemberId,
    /// To whom.
    pub target: Option<MemberId>,
    /// Records of theirs that the target would have found.
    pub remaining: u64,
    /// For how long, in milliseconds.
    pub for_ms: u64,
    /// `elastic.fence.timeout.ms`, milliseconds; at most `elastic.split.cooldown.ms` if the source has had nothing to do for so
    /// long.
    pub fence_timeout_ms: u64,
}

/// For [`Inputs::Balance`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceInputs {
    /// Whether the operator has stopped changes. Partitions that nobody has are given out all the same.
    pub paused: bool,
    /// The members.
    pub members: Vec<Load>,
    /// The topics that the items are of.
    pub topics: Vec<ItemTopic>,
    /// Whole partitions: those that nobody has, and those of the members above.
    pub items: Vec<Item>,
    /// How long ago whole partitions were last moved between members that both had work, in milliseconds.
    pub balanced_ago_ms: Option<u64>,
    /// `elastic.balance.cooldown.ms`, milliseconds.
    pub cooldown_ms: u64,
    /// The most records that a cut could give to one member without work.
    pub cut_gives: u64,
    /// The fewest records for which a partition is moved: the least `elastic.split.min.remaining` of the topics.
    pub min_remaining: u64,
}

/// What a member has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Who.
    pub id: MemberId,
    /// Records to process, of all that it holds.
    pub records: u64,
    /// Shares and partitions that it holds.
    pub items: u32,
    /// Whether it is without work.
    pub needy: bool,
    /// Whether it may be given anything.
    pub takes: bool,
}

/// A topic of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemTopic {
    /// Its id.
    pub topic: TopicId,
    /// Its name.
    pub name: String,
    /// The members of [`BalanceInputs::members`], by position, that subscribe to it.
    pub takers: Vec<u16>,
}

/// A whole partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Position of its topic in [`BalanceInputs::topics`].
    pub topic: u16,
    /// The partition's number.
    pub partition: i32,
    /// Position of its owner in [`BalanceInputs::members`]; none: nobody has it.
    pub owner: Option<u16>,
    /// Records to process.
    pub remaining: u64,
}

/// For [`Inputs::Fold`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldInputs {
    /// The partition.
    pub of: PartitionRef,
    /// The shares.
    pub shares: Vec<FoldShare>,
    /// For how long there has been nothing to read, in milliseconds; none: there is.
    pub quiet_for_ms: Option<u64>,
    /// `elastic.merge.delay.ms`, milliseconds.
    pub merge_delay_ms: u64,
    /// `elastic.mode`: a topic that is not divided any more does not wait.
    pub mode: Mode,
}

/// A share in a [`FoldInputs`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldShare {
    /// Whose.
    pub member: MemberId,
    /// Its slots.
    pub slots: SlotSet,
    /// Its records still to be processed.
    pub remaining: u64,
    /// Whether its holder can be given more.
    pub takes: bool,
}

/// For [`Inputs::Plain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainInputs {
    /// The partition.
    pub of: PartitionRef,
    /// Who has all its slots.
    pub member: MemberId,
    /// For how long there has been nothing to read, in milliseconds; none: there is.
    pub quiet_for_ms: Option<u64>,
    /// `elastic.merge.delay.ms`, milliseconds.
    pub merge_delay_ms: u64,
    /// `elastic.mode`.
    pub mode: Mode,
}
