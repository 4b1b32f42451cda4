//! When a classic member has to join again.

use crate::group::coordinator::Coordinator;
use crate::ids::TopicId;

impl Coordinator {
    /// Whether a classic member has to rejoin: it must give something up, or what it waits for has become free. A
    /// member whose assignment stays as it is is left alone, however often the epoch grows.
    pub(in crate::group) fn must_rejoin(&self, group: &str, member_id: &str) -> bool {
        let Some(state) = self.member(group, member_id) else {
            return false;
        };
        let (current, target) = (&state.current, &state.target);
        let wanted = |topic: &TopicId, partition: &i32| {
            target
                .get(topic)
                .is_some_and(|partitions| partitions.contains(partition))
        };
        // Eager members stop for a rejoin, so one that has work waits until everything it is to get is free.
        let takes_part = state.member.is_cooperative() || current.assigned.is_empty();
        let gives_up = !current.revoking.is_empty()
            || current
                .assigned
                .iter()
                .any(|(topic, held)| held.keys().any(|p| !wanted(topic, p)));
        let lacking = || {
            target.iter().flat_map(|(topic, partitions)| {
                let held = current.assigned.get(topic);
                let lacks = move |partition: &&i32| !held.is_some_and(|held| held.contains_key(partition));
                partitions
                    .iter()
                    .filter(lacks)
                    .map(move |partition| (*topic, *partition))
            })
        };
        let is_free = |key| self.may_take(group, key, member_id);
        let gains = if takes_part {
            lacking().any(is_free)
        } else {
            lacking().next().is_some() && lacking().all(is_free)
        };
        gives_up || gains
    }
}
