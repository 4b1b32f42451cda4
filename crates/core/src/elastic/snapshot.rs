//! What the planner sees of one group: everything it decides by, and nothing else.
//!
//! All topics of the group are in it, since a member without work may serve any topic that it subscribes to. Maps are
//! ordered, so that equal snapshots give equal plans. Moments are monotonic milliseconds, as in [`Now::mono_ms`].

use std::collections::{BTreeMap, BTreeSet};

use super::counts::SlotCounts;
use super::settings::{ElasticSettings, GroupElasticSettings};
use crate::ids::{Now, TopicId};
use crate::slots::SlotSet;

/// A member's id, as in the group protocol.
pub type MemberId = String;

/// One group at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The moment.
    pub now: Now,
    /// What the group goes by as a whole.
    pub settings: GroupElasticSettings,
    /// Whether the operator has stopped all changes that are not needed to keep records flowing.
    pub paused: bool,
    /// When a whole partition was last moved between members that both had work.
    pub balanced_ms: Option<u64>,
    /// Whole partitions are dealt by number alone: the members chose a plan in which they belong together.
    pub dealt_by_number: bool,
    /// The members.
    pub members: BTreeMap<MemberId, MemberView>,
    /// The topics that any of them subscribes to, or that the group has unread records of.
    pub topics: BTreeMap<TopicId, TopicView>,
}

/// What a member is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It holds nothing.
    Idle,
    /// It holds shares or partitions, and has processed everything that they have.
    Drained,
    /// It has records to process.
    Busy,
    /// It holds something and takes no records, of its own will.
    Paused,
    /// It says that it is about to go: it gets nothing more.
    Leaving,
    /// It is not there, and may come back before its session ends: a static member that restarts. Nothing of it is
    /// touched.
    Away,
}

/// Whether, and why not, a member may hold a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Eligibility {
    /// It may.
    #[default]
    Yes,
    /// It may not; the text is for people, such as "its client software is not known to read slices".
    No(String),
}

/// What is known of a member's commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commits {
    /// How many commits with progress have been seen.
    pub seen: u64,
    /// When the newest of them came.
    pub last_ms: Option<u64>,
    /// The usual time between two of them, in milliseconds.
    pub interval_ms: Option<u64>,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// What it is doing.
    pub state: MemberState,
    /// Since when it is doing that.
    pub since_ms: u64,
    /// Whether it has an instance id of its own (KIP-345).
    pub is_static: bool,
    /// Whether it may hold slices.
    pub eligibility: Eligibility,
    /// The topics that it subscribes to: what it may serve.
    pub topics: BTreeSet<TopicId>,
    /// Records that it processes in a second, as measured while it had work.
    pub rate: Option<u64>,
    /// Its commits.
    pub commits: Commits,
    /// When it was first handed a record that it has not committed; none: there is no such record.
    pub uncommitted_ms: Option<u64>,
}

/// One topic, in the eyes of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView {
    /// Its name.
    pub name: String,
    /// What it goes by in this group.
    pub settings: ElasticSettings,
    /// Why its partitions must not be divided, whatever the settings: it is internal, or compacted. The text is for people.
    pub excluded: Option<String>,
    /// When a partition of it was last divided for this group.
    pub divided_ms: Option<u64>,
    /// Its partitions.
    pub partitions: BTreeMap<i32, PartitionView>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// How the group reads it.
    pub reading: Reading,
    /// Slice ids that can still be given out before quarantine ends for others.
    pub ids_left: u32,
    /// Since when there has been nothing to read in it and nothing in flight; none: there is.
    pub quiet_since_ms: Option<u64>,
    /// An earlier decision about it takes effect when a member has given it up: until then nothing else is decided.
    pub awaits_yield: bool,
}

/// How a group reads a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// By one position.
    Plain(PlainView),
    /// By slices.
    Divided(DividedView),
}

/// A partition with one position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainView {
    /// Who holds it; a member that is not in [`Snapshot::members`] counts as nobody.
    pub holder: Option<MemberId>,
    /// Records from the committed position to the end of the log.
    pub remaining: u64,
    /// There are records, but the group has committed nothing: how many its holder will read is its own choice.
    pub without_position: bool,
    /// The same by slot, if they were counted.
    pub counts: Option<SlotCounts>,
}

/// A partition that is divided. Every slot is in one share, one transit or one loose set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DividedView {
    /// The members' shares.
    pub shares: BTreeMap<MemberId, ShareView>,
    /// Slots that their source has let go of, and that wait for its commits.
    pub transits: Vec<Transit>,
    /// Slots that nobody has: their fence has opened, or their holder is gone.
    pub loose: Vec<Loose>,
    /// Whether all slots would go on at one offset, so that the partition could be plain again.
    pub one_position: bool,
}

/// What one member holds of a divided partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareView {
    /// The slots of its newest slice: those that can be moved.
    pub slots: SlotSet,
    /// Records in all its slices that are still to be processed, handed out or not.
    pub remaining: u64,
    /// Those of them that were handed out. They stay with the member, whatever moves.
    pub handed_out: u64,
    /// Per slot, if they were counted.
    pub counts: Option<ShareCounts>,
    /// Whether its chain has no room for another slice.
    pub chain_full: bool,
    /// Whether the member went back behind its own commits; then no commit proves anything.
    pub rewound: bool,
    /// Whether it is not yet known again, after a restart, what was handed out.
    pub blind: bool,
    /// When slots last came back to it because their fence had not opened in time.
    pub returned_ms: Option<u64>,
}

/// Records of a share by slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareCounts {
    /// Not handed out: what a release can move.
    pub movable: SlotCounts,
    /// Handed out and not done: what only a give-up can move.
    pub handed_out: SlotCounts,
}

/// Slots on their way from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transit {
    /// Which.
    pub slots: SlotSet,
    /// Whose commits open the fence.
    pub source: MemberId,
    /// Who is to get them.
    pub target: Option<MemberId>,
    /// Since when.
    pub since_ms: u64,
    /// Records of theirs that the target will find.
    pub remaining: u64,
}

/// Slots that can be granted at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loose {
    /// Which.
    pub slots: SlotSet,
    /// Who is to get them by an earlier decision. While it is there, the planner has nothing to decide.
    pub promised: Option<MemberId>,
    /// Since when nobody has them.
    pub since_ms: u64,
    /// Records of theirs that are still to be processed.
    pub remaining: u64,
    /// The same by slot, if they were counted.
    pub counts: Option<SlotCounts>,
}

impl MemberView {
    /// Whether it has nothing to do and would take something.
    pub fn is_needy(&self) -> bool {
        matches!(self.state, MemberState::Idle | MemberState::Drained)
    }

    /// Whether it may be given anything.
    pub fn takes(&self) -> bool {
        matches!(
            self.state,
            MemberState::Idle | MemberState::Drained | MemberState::Busy
        )
    }

    /// Whether it may hold a slice of that topic.
    pub fn may_share(&self, topic: TopicId) -> bool {
        self.eligibility == Eligibility::Yes && self.topics.contains(&topic)
    }
}

impl PartitionView {
    /// Records of the partition that the group still has to process, as far as they are in somebody's share, on their way
    /// or loose.
    pub fn remaining(&self) -> u64 {
        match &self.reading {
            Reading::Plain(plain) => plain.remaining,
            Reading::Divided(divided) => {
                let shares = divided.shares.values().map(|share| share.remaining);
                let transits = divided.transits.iter().map(|transit| transit.remaining);
                let loose = divided.loose.iter().map(|loose| loose.remaining);
                shares.chain(transits).chain(loose).fold(0, u64::saturating_add)
            }
        }
    }
}
