//! How soon members learn of changes: when a classic one has to join again, when the others are to be heard of next.

use crate::group::coordinator::Coordinator;
use crate::group::state::MemberState;
use crate::group::topics::Topics;
use crate::ids::TopicId;

/// Longest heartbeat interval while a partition is shared, milliseconds.
const HEARTBEAT_WHILE_SHARED_MS: i32 = 1_000;

/// The same while a member waits for work: two heartbeats pass before it has some, one of whoever gives it up and one of its
/// own.
const HEARTBEAT_WHILE_WAITED_FOR_MS: i32 = 500;

impl Coordinator {
    /// How soon the member is to be heard of again. While a partition is shared, or a member waits for work that could be
    /// divided, members are to learn of changes soon.
    pub(super) fn heartbeat_interval_ms(&self, topics: &dyn Topics, group: &str) -> i32 {
        let usual = self.timings(group).heartbeat_interval_ms;
        let Some(consumer) = self.consumer(group) else {
            return usual;
        };
        let waits = |state: &MemberState| state.target.is_empty();
        let is_waited_for = consumer.members.len() > 1
            && consumer.members.values().any(waits)
            && self.concerns_planner(topics, group);
        if is_waited_for {
            usual.min(HEARTBEAT_WHILE_WAITED_FOR_MS)
        } else if consumer.shared.is_empty() {
            usual
        } else {
            usual.min(HEARTBEAT_WHILE_SHARED_MS)
        }
    }

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
