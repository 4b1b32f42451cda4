//! Whole partitions that the planner has placed by load.
//!
//! The assignor deals partitions by number. Where the planner found that members have unequal work, it moves one, and the
//! partition then stays with that member, whatever the assignor says, until the member leaves, does not want the topic
//! any more, or shares the partition, or the topic goes to queue mode, where the number of queues is what counts. Places
//! are volatile: after a restart the next epoch deals by number again, and the planner looks anew.
//!
//! Members whose clients chose a plan in which partitions belong together (range), or in which their order is fixed, are left
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use super::Key;
use crate::group::assign::{Assignor, Plan, Problem};
use crate::group::coordinator::{Coordinator, Step};
use crate::ids::TopicId;

/// Members by the partitions that were placed with them.
pub(super) type Places = BTreeMap<Key, String>;

impl Coordinator {
    /// Whether the planner may place whole partitions of a group.
    pub(super) fn places_by_load(&self, group: &str) -> bool {
        self.assignor(group) == Assignor::Sticky
    }

    /// A partition is to be with this member.
    pub(super) fn place(&mut self, step: &Step<'_>, group: &str, key: Key, member: &str) {
        let memory = self.elastic.group_mut(group);
        memory.placed.insert(key, member.to_owned());
        memory.balanced_ms = Some(step.now.mono_ms);
    }

    /// Puts the partitions that were placed where they are to be, and forgets places that mean nothing any more.
    pub(in crate::group) fn keep_places(&mut self, group: &str, problem: &Problem, plan: &mut Plan) {
        let by_load = self.places_by_load(group);
        let Some(memory) = self.elastic.placing_group(group) else {
            return;
        };
        let queued: BTreeSet<TopicId> = problem
            .topics
            .iter()
            .filter(|topic| topic.is_queued)
            .map(|topic| topic.id)
            .collect();
        memory.placed.retain(|(topic, partition), member| {
            if queued.contains(topic) {
                return false;
            }
            let wants = problem
                .members
                .get(member)
                .is_some_and(|seeker| seeker.topics.contains(topic));
            let holds = |id: &String, plan: &Plan| {
                let has = plan.get(id).and_then(|has| has.get(topic));
                has.is_some_and(|has| has.contains(partition))
            };
            let holder = plan.keys().find(|id| holds(id, plan)).cloned();
            let (true, true, Some(holder)) = (by_load, wants, holder) else {
                return false;
            };
            if let Some(has) = plan.get_mut(&holder).and_then(|has| has.get_mut(topic)) {
                has.remove(partition);
            }
            if let Some(has) = plan.get_mut(&holder) {
                has.retain(|_, partitions| !partitions.is_empty());
            }
            let has = plan.entry(member.clone()).or_default();
            has.entry(*topic).or_default().insert(*partition);
            true
        });
    }

    /// The member that is to have a partition whole, and whether it is on its way to it.
    pub(super) fn whole_holder(&self, group: &str, (topic, partition): Key) -> (Option<String>, bool) {
        let Some(consumer) = self.consumer(group) else {
            return (None, false);
        };
        let mut members = consumer.members.iter();
        let target = members.find(|(_, state)| {
            let has = state.target.get(&topic);
            has.is_some_and(|has| has.contains(&partition))
        });
        let owners = consumer.owners.get(&(topic, partition));
        match target {
            Some((id, _)) => {
                let has_it = owners.is_some_and(|owners| owners.len() == 1 && owners.contains(id));
                (Some(id.clone()), !has_it)
            }
            None => (
                owners.and_then(|owners| owners.first()).cloned(),
                owners.is_some(),
            ),
        }
    }

    /// Whether a partition was placed with this member.
    pub(super) fn is_placed(&self, group: &str, key: Key, member: &str) -> bool {
        let placed = self.elastic.group(group).and_then(|group| group.placed.get(&key));
        placed.is_some_and(|id| id == member)
    }
}
