//! The durable state of groups: what a restart must bring back, and nothing else.
//!
//! It changes only through [`GroupChange`](super::GroupChange), so that the journal rebuilds it exactly. Indexes
//! (`owners`, `instances`) are derived from it and kept here because the same function maintains both.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::assign::is_eager;
use super::elastic::ClientFacts;
use crate::cursor::Cursor;
use crate::ids::TopicId;

/// A set of partitions, by topic.
pub type Partitions = BTreeMap<TopicId, BTreeSet<i32>>;

/// Partitions that a member holds, each with the member epoch at which it was assigned (KIP-1251: a commit of an
/// older epoch is good for what was already assigned then).
pub type Held = BTreeMap<TopicId, BTreeMap<i32, i32>>;

/// One group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Which protocol family the group uses, with its members.
    pub kind: Kind,
    /// What the group has read, by topic and partition. Keyed by topic id, so that a topic made anew under an old
    /// name inherits nothing.
    pub cursors: BTreeMap<(TopicId, i32), Cursor>,
    /// Wall clock at which the last member left, milliseconds; `None` while there are members, or never were.
    pub empty_since_ms: Option<i64>,
    /// An operator has stopped what the planner does of its own accord.
    pub paused: bool,
}

/// The protocol family of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No members ever: somebody only commits offsets.
    #[default]
    Simple,
    /// The broker assigns partitions; members speak the consumer protocol (KIP-848) or the classic one, in any mix.
    Consumer(ConsumerGroup),
    /// A client leads, and all meet at a barrier: Connect, Streams, schema registries, custom assignors.
    Classic(Generation),
}

/// A group whose assignment the broker makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerGroup {
    /// Grows with every change of members, subscriptions or topics; the target assignment always is this epoch's.
    pub epoch: i32,
    /// Whether a member of the consumer protocol has joined since the group was last empty: what tools are told.
    pub modern: bool,
    /// Hash of the subscribed topics and their partition counts that the target was computed from.
    pub topics_hash: u64,
    /// Members by id.
    pub members: BTreeMap<String, MemberState>,
    /// Partitions that are not the assignor's to give: whoever shares one is named here.
    pub shared: BTreeMap<(TopicId, i32), Sharers>,
    /// Derived: which members hold a partition, whether they may keep it or have still to release it. More than one
    /// only if it is shared.
    pub owners: BTreeMap<(TopicId, i32), BTreeSet<String>>,
    /// Derived: member id by instance id.
    pub instances: BTreeMap<String, String>,
}

/// The members that share a partition, and how each stands to it. Never empty.
pub type Sharers = BTreeMap<String, Sharing>;

/// How a member stands to a partition that is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It is to hold the partition.
    Holds,
    /// It is to give the partition up once, and gets it back with another share; then it holds.
    Yields,
}

/// A member with its assignments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberState {
    /// Who it is and what it wants.
    pub member: Member,
    /// What it holds now.
    pub current: Current,
    /// What it shall hold.
    pub target: Partitions,
}

/// Who a member is and what it subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member (KIP-345).
    pub instance_id: Option<String>,
    /// Rack, as the client names it.
    pub rack_id: Option<String>,
    /// Client id of the last request that changed the member.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// What else is known of the client.
    pub client: ClientFacts,
    /// How long the member may take to release partitions, or to rejoin, milliseconds.
    pub rebalance_timeout_ms: i32,
    /// Subscribed topic names.
    pub topics: BTreeSet<String>,
    /// Subscribed topics by regular expression (RE2 syntax, whole name).
    pub regex: Option<String>,
    /// Assignor asked for (consumer protocol).
    pub assignor: Option<String>,
    /// Set for a member that speaks the classic protocol.
    pub classic: Option<ClassicMember>,
}

/// What is special to a classic member of a consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassicMember {
    /// Session timeout it asked for, milliseconds.
    pub session_timeout_ms: i32,
    /// Names of its protocols (assignors), best first.
    pub protocols: Vec<String>,
}

/// Where a member is on its way to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Nothing to release.
    #[default]
    Stable,
    /// Must release partitions before anything else happens.
    Unrevoked,
    /// Has released all it must; waits for partitions that others still hold.
    Unreleased,
}

/// What a member holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// Member epoch; a classic member's generation. -2: a static member that left for a while.
    pub epoch: i32,
    /// The member epoch before; answers may be lost, so it is still accepted where that is safe.
    pub previous_epoch: i32,
    /// Progress towards the target.
    pub progress: Progress,
    /// Partitions the member may work on.
    pub assigned: Held,
    /// Partitions it was told to release and has not yet.
    pub revoking: Held,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            epoch: 0,
            previous_epoch: -1,
            progress: Progress::Stable,
            assigned: Held::new(),
            revoking: Held::new(),
        }
    }
}

/// The last completed generation of a group with a client leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Generation id.
    pub generation: i32,
    /// Whether the leader's plan has come. If not, a restart goes back to the join phase: nobody may take an old
    /// assignment for this generation's.
    pub settled: bool,
    /// Protocol type ("connect", "sr", ...).
    pub protocol_type: String,
    /// The protocol all members share; `None` without members.
    pub protocol: Option<String>,
    /// Member id of the leader.
    pub leader: Option<String>,
    /// Members by id.
    pub members: BTreeMap<String, Seat>,
}

/// A member of a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Client id.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// Rebalance timeout, milliseconds.
    pub rebalance_timeout_ms: i32,
    /// Session timeout, milliseconds.
    pub session_timeout_ms: i32,
    /// Protocols with the member's metadata, best first. Opaque to the broker.
    pub protocols: Vec<(String, Bytes)>,
    /// What the leader gave it. Opaque to the broker.
    pub assignment: Bytes,
}

impl Group {
    /// Whether nobody is a member, according to the durable state.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Simple => true,
            Kind::Consumer(group) => group.members.is_empty(),
            Kind::Classic(generation) => generation.members.is_empty(),
        }
    }

    /// The consumer group inside, if it is one.
    pub fn consumer(&self) -> Option<&ConsumerGroup> {
        match &self.kind {
            Kind::Consumer(group) => Some(group),
            Kind::Simple | Kind::Classic(_) => None,
        }
    }
}

impl Member {
    /// Whether the member speaks the classic protocol.
    pub fn is_classic(&self) -> bool {
        self.classic.is_some()
    }

    /// Whether the member keeps its partitions while it rejoins.
    pub fn is_cooperative(&self) -> bool {
        self.classic
            .as_ref()
            .is_none_or(|classic| !classic.protocols.iter().any(|name| is_eager(name)))
    }
}

impl ConsumerGroup {
    /// Epoch at which the member got the partition, if it holds it (assigned or about to be released).
    pub fn held_since(&self, member_id: &str, topic: TopicId, partition: i32) -> Option<i32> {
        let current = &self.members.get(member_id)?.current;
        let find = |held: &Held| held.get(&topic)?.get(&partition).copied();
        find(&current.assigned).or_else(|| find(&current.revoking))
    }

    /// Whether nobody stands in the way of this member's getting the partition. One that is shared may be held by
    /// others at the same time, but not by somebody who still has all of it.
    pub fn is_free_for(&self, key: (TopicId, i32), member_id: &str) -> bool {
        let mut owners = self.owners.get(&key).into_iter().flatten();
        match self.shared.get(&key) {
            None => owners.all(|owner| owner == member_id),
            Some(sharers) => {
                let holds = |id: &str| sharers.get(id) == Some(&Sharing::Holds);
                holds(member_id) && owners.all(|owner| holds(owner))
            }
        }
    }
}

/// The partitions of `held`, without their epochs.
pub fn without_epochs(held: &Held) -> Partitions {
    held.iter()
        .map(|(&topic, partitions)| (topic, partitions.keys().copied().collect()))
        .collect()
}

/// Whether both name the same partitions.
pub fn same_partitions(held: &Held, partitions: &Partitions) -> bool {
    held.len() == partitions.len()
        && held.iter().zip(partitions).all(|((a, held), (b, set))| {
            a == b && held.len() == set.len() && held.keys().zip(set).all(|(p, q)| p == q)
        })
}
