//! Partitions that a member has been given, and for which it has not asked where to begin.
//!
//! Kept from the changes of the members' assignments. A member of the consumer protocol or a cooperative one asks for what
//! is new to it; an eager one for all, each time it has joined.

use std::collections::{BTreeMap, BTreeSet};

use crate::cursor::Cursor;
use crate::group::change::{GroupChange, Groups};
use crate::group::state::{Held, Kind};
use crate::ids::TopicId;

/// Topic and partition.
pub(super) type Key = (TopicId, i32);

/// Group and member.
type MemberKey = (String, String);

/// What members have not asked for yet.
#[derive(Debug, Default)]
pub(super) struct Handed {
    unasked: BTreeMap<MemberKey, BTreeSet<Key>>,
    /// Members that have not been heard of since the broker started: it is not known what they had asked for.
    unheard: BTreeSet<MemberKey>,
}

impl Handed {
    /// What is known after a restart: nothing, of nobody. Whoever shares a partition may still have to ask where to begin.
    pub(super) fn after_restart(groups: &Groups) -> Self {
        let mut handed = Self::default();
        for (id, group) in groups {
            let Kind::Consumer(consumer) = &group.kind else {
                continue;
            };
            let is_shared = |key: &Key| matches!(group.cursors.get(key), Some(Cursor::Divided(_)));
            for (member, state) in &consumer.members {
                let member = (id.clone(), member.clone());
                handed.unheard.insert(member.clone());
                let shared = each(&state.current.assigned).filter(is_shared);
                handed.put(member, shared.collect());
            }
        }
        handed
    }

    /// Takes note of a change that is about to be made to `groups`.
    pub(super) fn observe(&mut self, groups: &Groups, change: &GroupChange) {
        match change {
            GroupChange::Current {
                group,
                member_id,
                current,
            } => {
                let state = groups
                    .get(group)
                    .and_then(|group| group.consumer()?.members.get(member_id));
                let before = state.map(|state| &state.current.assigned);
                self.assigned((group.clone(), member_id.clone()), before, &current.assigned);
            }
            GroupChange::MemberGone { group, member_id } => {
                let key = (group.clone(), member_id.clone());
                self.unasked.remove(&key);
                self.unheard.remove(&key);
            }
            _ => {}
        }
    }

    fn assigned(&mut self, member: MemberKey, before: Option<&Held>, after: &Held) {
        let had = |(topic, partition): &Key| {
            before.is_some_and(|held| held.get(topic).is_some_and(|held| held.contains_key(partition)))
        };
        let unasked = self.unasked.get(&member);
        let still = |key: &Key| unasked.is_some_and(|unasked| unasked.contains(key));
        let now: BTreeSet<Key> = each(after).filter(|key| !had(key) || still(key)).collect();
        self.put(member, now);
    }

    /// An eager member has joined, and forgotten all its positions.
    pub(super) fn forgot_positions(&mut self, group: &str, member: &str, assigned: &Held) {
        self.put((group.to_owned(), member.to_owned()), each(assigned).collect());
    }

    fn put(&mut self, member: MemberKey, keys: BTreeSet<Key>) {
        if keys.is_empty() {
            self.unasked.remove(&member);
        } else {
            self.unasked.insert(member, keys);
        }
    }

    /// The member has spoken on a connection that is known to be its own now.
    pub(super) fn heard(&mut self, group: &str, member: &str) {
        if !self.unheard.is_empty() {
            self.unheard.remove(&(group.to_owned(), member.to_owned()));
        }
    }

    /// The member has asked where to begin in these partitions.
    pub(super) fn asked(&mut self, group: &str, member: &str, keys: impl Iterator<Item = Key>) {
        let member = (group.to_owned(), member.to_owned());
        if let Some(unasked) = self.unasked.get_mut(&member) {
            keys.for_each(|key| {
                unasked.remove(&key);
            });
            if unasked.is_empty() {
                self.unasked.remove(&member);
            }
        }
    }

    /// Whether the member has been heard of since the broker started, and if so, what it has not asked for.
    pub(super) fn unasked(&self, group: &str, member: &str) -> Unasked<'_> {
        let member = (group.to_owned(), member.to_owned());
        if self.unheard.contains(&member) {
            return Unasked::Unknown;
        }
        Unasked::Keys(self.unasked.get(&member))
    }
}

/// What a member has not asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unasked<'a> {
    /// It has not been heard of since the broker started.
    Unknown,
    /// These partitions; `None`: there are none.
    Keys(Option<&'a BTreeSet<Key>>),
}

impl Unasked<'_> {
    /// Whether the member may still have to ask for a partition.
    pub(super) fn may_include(self, key: &Key) -> bool {
        match self {
            Self::Unknown => true,
            Self::Keys(keys) => keys.is_some_and(|keys| keys.contains(key)),
        }
    }
}

fn each(held: &Held) -> impl Iterator<Item = Key> {
    held.iter()
        .flat_map(|(&topic, partitions)| partitions.keys().map(move |&partition| (topic, partition)))
}
