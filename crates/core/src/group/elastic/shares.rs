//! Partitions that several members hold at the same time.
//!
//! The assignor gives each partition to one member. A partition that is *shared* is taken out of its hands: its holders
//! are named one by one, durably, and each has it in its target. It becomes shared in two steps, since a member that holds a
//! partition whole must not go on while another gets part of it:
//!
//! 1. The takers are named, and the present holder as one who *yields*: the partition is in nobody's target but the
//!    takers', and these wait.
//! 2. The holder gives it up, as for any other move: by a heartbeat, a JoinGroup. Then
//!    [`Coordinator::finish_yields`] makes it one of the holders, and all get the partition.
//!
//! The same detour serves a member that already shares the partition and shall drop what it has buffered of it.
//!
//! Holders that leave the group, or the topic, fall out of the list at the next epoch. A list without anybody left ends the
//! sharing, and the partition is the assignor's again.

use std::collections::{BTreeMap, BTreeSet};

use crate::group::change::GroupChange;
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::{Sharers, Sharing};
use crate::ids::TopicId;

type Key = (TopicId, i32);

impl Coordinator {
    /// The member has said what it owns: what it was to yield and does not hold any more, it shares from now on. Says
    /// whether there was any.
    pub(in crate::group) fn finish_yields(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        member_id: &str,
    ) -> bool {
        let Some(consumer) = self.consumer(group) else {
            return false;
        };
        let owns = |key| {
            let owners = consumer.owners.get(key);
            owners.is_some_and(|owners| owners.contains(member_id))
        };
        let done: Vec<(Key, Sharers)> = consumer
            .shared
            .iter()
            .filter(|(key, sharers)| sharers.get(member_id) == Some(&Sharing::Yields) && !owns(key))
            .map(|(key, sharers)| (*key, sharers.clone()))
            .collect();
        let any = !done.is_empty();
        for (key, mut sharers) in done {
            sharers.insert(member_id.to_owned(), Sharing::Holds);
            self.set_sharers(step, group, key, sharers);
        }
        if any {
            self.replan(step, group);
        }
        any
    }

    /// Drops whoever is no member any more, or does not want the topic any more, from the lists.
    pub(in crate::group) fn prune_sharers(&mut self, step: &mut Step<'_>, group: &str) {
        let Some(consumer) = self.groups.get(group).and_then(|group| group.consumer()) else {
            return;
        };
        if consumer.shared.is_empty() {
            return;
        }
        let mut wanted: BTreeMap<&str, BTreeSet<TopicId>> = BTreeMap::new();
        for (id, state) in &consumer.members {
            let topics = self.regexes.resolve(&state.member, step.topics, &self.settings);
            wanted.insert(id, topics);
        }
        let mut fewer = Vec::new();
        for (key, sharers) in &consumer.shared {
            let mut left = sharers.clone();
            left.retain(|id, _| {
                wanted
                    .get(id.as_str())
                    .is_some_and(|topics| topics.contains(&key.0))
            });
            if left.len() < sharers.len() {
                fewer.push((*key, left));
            }
        }
        for (key, sharers) in fewer {
            self.set_sharers(step, group, key, sharers);
        }
    }

    /// A static member came back under another id: it shares what it shared before.
    pub(in crate::group) fn rename_sharer(&mut self, step: &mut Step<'_>, group: &str, old: &str, new: &str) {
        let Some(consumer) = self.consumer(group) else {
            return;
        };
        let renamed: Vec<(Key, Sharers)> = consumer
            .shared
            .iter()
            .filter(|(_, sharers)| sharers.contains_key(old))
            .map(|(key, sharers)| (*key, sharers.clone()))
            .collect();
        for (key, mut sharers) in renamed {
            if let Some(sharing) = sharers.remove(old) {
                sharers.insert(new.to_owned(), sharing);
            }
            self.set_sharers(step, group, key, sharers);
        }
    }

    /// The members that share a partition, if it is shared.
    pub(in crate::group) fn sharers(&self, group: &str, key: Key) -> Option<Sharers> {
        self.consumer(group)?.shared.get(&key).cloned()
    }

    /// Puts the list down; an empty one ends the sharing. Targets follow with the next epoch.
    pub(in crate::group) fn set_sharers(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        (topic, partition): Key,
        sharers: Sharers,
    ) {
        let change = GroupChange::Shared {
            group: group.to_owned(),
            topic,
            partition,
            sharers,
        };
        self.record(step, change);
    }

    /// A new epoch, with which targets follow the lists.
    pub(in crate::group) fn replan(&mut self, step: &mut Step<'_>, group: &str) {
        let modern = self.consumer(group).is_some_and(|consumer| consumer.modern);
        self.next_epoch(step, group, modern);
    }
}
