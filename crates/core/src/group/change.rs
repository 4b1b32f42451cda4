//! The durable changes of groups, and the one function that turns them into state.
//!
//! Every change sets something to an absolute value. So the state is the fold of all changes, replaying a whole run
//! of changes over the state that they led to changes nothing, and a snapshot is just a shorter run.

use std::collections::BTreeMap;

use super::state::{
    ConsumerGroup, Current, Generation, Group, Held, Kind, Member, MemberState, Partitions, Sharers,
};
use crate::cursor::{Cursor, CursorChange, SliceIdsChange};
use crate::elastic::{Decision, Refusal, Settled};
use crate::ids::TopicId;

/// One durable change of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupChange {
    /// The group is one whose assignment the broker makes; sets what concerns it as a whole.
    Consumer {
        /// Group id.
        group: String,
        /// Group epoch.
        epoch: i32,
        /// Whether tools see a group of the consumer protocol.
        modern: bool,
        /// Hash of the subscribed topics.
        topics_hash: u64,
        /// Wall clock at which the last member left, milliseconds.
        empty_since_ms: Option<i64>,
    },
    /// A member joined or changed what it wants.
    Member {
        /// Group id.
        group: String,
        /// The member, whole.
        member: Member,
    },
    /// What a member shall hold.
    Target {
        /// Group id.
        group: String,
        /// Member id.
        member_id: String,
        /// All its partitions.
        partitions: Partitions,
    },
    /// What a member holds, and its epoch.
    Current {
        /// Group id.
        group: String,
        /// Member id.
        member_id: String,
        /// The new value, whole.
        current: Current,
    },
    /// A member is gone, with its target and what it held.
    MemberGone {
        /// Group id.
        group: String,
        /// Member id.
        member_id: String,
    },
    /// A group with a client leader completed a generation.
    Generation {
        /// Group id.
        group: String,
        /// The generation, whole.
        generation: Generation,
        /// Wall clock at which the last member left, milliseconds.
        empty_since_ms: Option<i64>,
    },
    /// Offsets were committed.
    Cursors {
        /// Group id.
        group: String,
        /// The new cursors.
        cursors: Vec<(TopicId, i32, Cursor)>,
    },
    /// Offsets were deleted or have expired.
    CursorsGone {
        /// Group id.
        group: String,
        /// Whose cursors are gone.
        partitions: Vec<(TopicId, i32)>,
    },
    /// Who shares a partition.
    Shared {
        /// Group id.
        group: String,
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: i32,
        /// All who share it; if nobody does it is the assignor's again.
        sharers: Sharers,
    },
    /// A divided cursor changed, in this order.
    CursorEdits {
        /// Group id.
        group: String,
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: i32,
        /// One or more changes.
        changes: Vec<CursorChange>,
    },
    /// Slice ids of a partition were taken by the group, or are retired. The pool belongs to the partition: it has no
    /// part in what [`apply`] makes of the groups.
    SliceIds {
        /// Group id.
        group: String,
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: i32,
        /// One or more changes.
        changes: Vec<SliceIdsChange>,
    },
    /// The planner decided something. Decisions have a log of their own: they have no part in what [`apply`] makes of
    /// the groups.
    Decided {
        /// Group id.
        group: String,
        /// The decision.
        decision: Box<Decision>,
    },
    /// The planner refused something, for the first time since its last decision.
    Refused {
        /// Group id.
        group: String,
        /// The refusal.
        refusal: Box<Refusal>,
    },
    /// What became of a decision.
    Settled {
        /// Group id.
        group: String,
        /// The number of the decision in the group's log.
        number: u64,
        /// What, and when.
        settled: Settled,
    },
    /// An operator stops what the planner does to the group, or lets it go on.
    Paused {
        /// Group id.
        group: String,
        /// Whether it is stopped.
        paused: bool,
    },
    /// The group is gone with all it had.
    Gone {
        /// Group id.
        group: String,
    },
}

impl GroupChange {
    /// Id of the group that it changes.
    pub fn group(&self) -> &str {
        match self {
            Self::Consumer { group, .. }
            | Self::Member { group, .. }
            | Self::Target { group, .. }
            | Self::Current { group, .. }
            | Self::MemberGone { group, .. }
            | Self::Generation { group, .. }
            | Self::Cursors { group, .. }
            | Self::CursorsGone { group, .. }
            | Self::Shared { group, .. }
            | Self::CursorEdits { group, .. }
            | Self::SliceIds { group, .. }
            | Self::Decided { group, .. }
            | Self::Refused { group, .. }
            | Self::Settled { group, .. }
            | Self::Paused { group, .. }
            | Self::Gone { group } => group,
        }
    }
}

/// All groups by id.
pub(crate) type Groups = BTreeMap<String, Group>;

/// Makes one change. Never fails: a change that concerns something unknown creates it, or has no effect.
pub(crate) fn apply(groups: &mut Groups, change: &GroupChange) {
    match change {
        GroupChange::Consumer {
            group,
            epoch,
            modern,
            topics_hash,
            empty_since_ms,
        } => {
            let group = groups.entry(group.clone()).or_default();
            group.empty_since_ms = *empty_since_ms;
            let consumer = as_consumer(group);
            consumer.epoch = *epoch;
            consumer.modern = *modern;
            consumer.topics_hash = *topics_hash;
        }
        GroupChange::Member { group, member } => {
            as_consumer(groups.entry(group.clone()).or_default()).put_member(member.clone());
        }
        GroupChange::Target {
            group,
            member_id,
            partitions,
        } => {
            if let Some(state) = member(groups, group, member_id) {
                state.target.clone_from(partitions);
            }
        }
        GroupChange::Current {
            group,
            member_id,
            current,
        } => {
            if let Some(consumer) = consumer(groups, group) {
                consumer.put_current(member_id, current.clone());
            }
        }
        GroupChange::MemberGone { group, member_id } => {
            if let Some(consumer) = consumer(groups, group) {
                consumer.remove_member(member_id);
            }
        }
        GroupChange::Generation {
            group,
            generation,
            empty_since_ms,
        } => {
            let group = groups.entry(group.clone()).or_default();
            group.kind = Kind::Classic(generation.clone());
            group.empty_since_ms = *empty_since_ms;
        }
        GroupChange::Cursors { group, cursors } => {
            let group = groups.entry(group.clone()).or_default();
            for (topic, partition, cursor) in cursors {
                group.cursors.insert((*topic, *partition), cursor.clone());
            }
        }
        GroupChange::CursorsGone { group, partitions } => {
            if let Some(group) = groups.get_mut(group) {
                for key in partitions {
                    group.cursors.remove(key);
                }
            }
        }
        GroupChange::Shared {
            group,
            topic,
            partition,
            sharers,
        } => {
            if let Some(consumer) = consumer(groups, group) {
                if sharers.is_empty() {
                    consumer.shared.remove(&(*topic, *partition));
                } else {
                    consumer.shared.insert((*topic, *partition), sharers.clone());
                }
            }
        }
        GroupChange::CursorEdits {
            group,
            topic,
            partition,
            changes,
        } => {
            let cursors = &mut groups.entry(group.clone()).or_default().cursors;
            for change in changes {
                edit_cursor(cursors, (*topic, *partition), change);
            }
        }
        GroupChange::Paused { group, paused } => {
            if let Some(group) = groups.get_mut(group) {
                group.paused = *paused;
            }
        }
        GroupChange::SliceIds { .. }
        | GroupChange::Decided { .. }
        | GroupChange::Refused { .. }
        | GroupChange::Settled { .. } => {}
        GroupChange::Gone { group } => {
            groups.remove(group);
        }
    }
}

/// A replay may begin behind the division of a cursor that is gone by now: then there is nothing to change.
fn edit_cursor(cursors: &mut BTreeMap<(TopicId, i32), Cursor>, key: (TopicId, i32), change: &CursorChange) {
    match cursors.get_mut(&key) {
        Some(cursor) => {
            change.apply(cursor);
        }
        None => cursors.extend(change.start().map(|cursor| (key, cursor))),
    }
}

/// The changes that build these groups from nothing.
pub(crate) fn rebuild(groups: &Groups) -> Vec<GroupChange> {
    let mut changes = Vec::new();
    for (id, group) in groups {
        match &group.kind {
            Kind::Simple => {}
            Kind::Consumer(consumer) => {
                changes.push(header(id, consumer, group.empty_since_ms));
                for (member_id, state) in &consumer.members {
                    let (group, member_id) = (id.clone(), member_id.clone());
                    changes.push(GroupChange::Member {
                        group: group.clone(),
                        member: state.member.clone(),
                    });
                    changes.push(GroupChange::Target {
                        group: group.clone(),
                        member_id: member_id.clone(),
                        partitions: state.target.clone(),
                    });
                    changes.push(GroupChange::Current {
                        group,
                        member_id,
                        current: state.current.clone(),
                    });
                }
                changes.extend(consumer.shared.iter().map(|((topic, partition), sharers)| {
                    GroupChange::Shared {
                        group: id.clone(),
                        topic: *topic,
                        partition: *partition,
                        sharers: sharers.clone(),
                    }
                }));
            }
            Kind::Classic(generation) => changes.push(GroupChange::Generation {
                group: id.clone(),
                generation: generation.clone(),
                empty_since_ms: group.empty_since_ms,
            }),
        }
        let cursors: Vec<_> = group
            .cursors
            .iter()
            .map(|((t, p), c)| (*t, *p, c.clone()))
            .collect();
        if !cursors.is_empty() || group.kind == Kind::Simple {
            changes.push(GroupChange::Cursors {
                group: id.clone(),
                cursors,
            });
        }
        if group.paused {
            changes.push(GroupChange::Paused {
                group: id.clone(),
                paused: true,
            });
        }
    }
    changes
}

/// The change that sets what concerns a consumer group as a whole to what it is.
pub(crate) fn header(id: &str, consumer: &ConsumerGroup, empty_since_ms: Option<i64>) -> GroupChange {
    GroupChange::Consumer {
        group: id.to_owned(),
        epoch: consumer.epoch,
        modern: consumer.modern,
        topics_hash: consumer.topics_hash,
        empty_since_ms,
    }
}

fn as_consumer(group: &mut Group) -> &mut ConsumerGroup {
    if !matches!(group.kind, Kind::Consumer(_)) {
        group.kind = Kind::Consumer(ConsumerGroup::default());
    }
    match &mut group.kind {
        Kind::Consumer(consumer) => consumer,
        Kind::Simple | Kind::Classic(_) => unreachable!("the kind was set to Consumer just above"),
    }
}

fn consumer<'a>(groups: &'a mut Groups, group: &str) -> Option<&'a mut ConsumerGroup> {
    match &mut groups.get_mut(group)?.kind {
        Kind::Consumer(consumer) => Some(consumer),
        Kind::Simple | Kind::Classic(_) => None,
    }
}

fn member<'a>(groups: &'a mut Groups, group: &str, member_id: &str) -> Option<&'a mut MemberState> {
    consumer(groups, group)?.members.get_mut(member_id)
}

impl ConsumerGroup {
    fn put_member(&mut self, member: Member) {
        let id = member.member_id.clone();
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), id.clone());
        }
        self.members.entry(id).or_default().member = member;
    }

    fn put_current(&mut self, member_id: &str, current: Current) {
        let Some(state) = self.members.get_mut(member_id) else {
            return;
        };
        let old = std::mem::replace(&mut state.current, current);
        let new = state.current.clone();
        self.disown(member_id, &old);
        for (topic, partition) in each(&new.assigned).chain(each(&new.revoking)) {
            let owners = self.owners.entry((topic, partition)).or_default();
            owners.insert(member_id.to_owned());
        }
    }

    fn remove_member(&mut self, member_id: &str) {
        let Some(state) = self.members.remove(member_id) else {
            return;
        };
        self.disown(member_id, &state.current);
        if let Some(instance) = &state.member.instance_id
            && self.instances.get(instance).is_some_and(|id| id == member_id)
        {
            self.instances.remove(instance);
        }
    }

    /// Removes what the member holds from the index, but never somebody else's entry: in a replay over a newer
    /// state the partition may belong to another member already.
    fn disown(&mut self, member_id: &str, current: &Current) {
        for key in each(&current.assigned).chain(each(&current.revoking)) {
            if let Some(owners) = self.owners.get_mut(&key) {
                owners.remove(member_id);
                if owners.is_empty() {
                    self.owners.remove(&key);
                }
            }
        }
    }
}

fn each(held: &Held) -> impl Iterator<Item = (TopicId, i32)> {
    held.iter()
        .flat_map(|(&topic, partitions)| partitions.keys().map(move |&p| (topic, p)))
}
