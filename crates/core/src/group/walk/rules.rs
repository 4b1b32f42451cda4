//! What must hold during and after a random walk.

use std::collections::{BTreeMap, BTreeSet};

use super::client::Client;
use super::{TOPICS, Walk};
use crate::group::state::ConsumerGroup;
use crate::group::{Assignor, Topics};
use crate::ids::TopicId;

impl Walk {
    /// What holds after every step.
    pub(super) fn check(&mut self) {
        let Some(group) = self.group() else { return };
        assert!(group.epoch >= self.epoch, "the group epoch went back");
        let epoch = group.epoch;
        let mut held: BTreeMap<(TopicId, i32), BTreeSet<&str>> = BTreeMap::new();
        for (id, state) in &group.members {
            assert!(
                state.current.epoch <= group.epoch,
                "a member is ahead of its group"
            );
            let both = state.current.assigned.iter().chain(&state.current.revoking);
            for key in both.flat_map(|(topic, held)| held.keys().map(|partition| (*topic, *partition))) {
                held.entry(key).or_default().insert(id);
            }
        }
        for (key, holders) in &held {
            let shared = group.shared.contains_key(key);
            assert!(holders.len() == 1 || shared, "{key:?} is held by {holders:?}");
        }
        let owners: BTreeMap<_, BTreeSet<&str>> = group
            .owners
            .iter()
            .map(|(key, ids)| (*key, ids.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(owners, held, "the index of owners");
        let mut working: BTreeMap<(TopicId, i32), &Client> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| self.is_member(client)) {
            for key in &client.owned {
                assert!(
                    held.get(key)
                        .is_some_and(|holders| holders.contains(client.id.as_str())),
                    "{client:?} works on what it has not"
                );
                let other = working.insert(*key, client);
                assert!(other.is_none(), "{client:?} and {other:?} both work on {key:?}");
            }
        }
        self.check_target(group);
        self.epoch = epoch;
    }

    /// The target has every partition of every subscribed topic exactly once, at a subscriber.
    fn check_target(&self, group: &ConsumerGroup) {
        for name in TOPICS {
            let topic = self.bench.topics.by_name(name).unwrap();
            let takers = group
                .members
                .values()
                .filter(|state| state.member.topics.contains(name));
            let mut all: Vec<i32> = takers
                .clone()
                .flat_map(|state| state.target.get(&topic.id).into_iter().flatten().copied())
                .collect();
            all.sort_unstable();
            let expected = if takers.count() == 0 { 0 } else { topic.partitions };
            assert_eq!(all, (0..expected).collect::<Vec<_>>(), "target of {name}");
        }
    }

    pub(super) fn check_balance(&self, group: &ConsumerGroup) {
        let loads: Vec<usize> = group
            .members
            .values()
            .map(|state| state.target.values().map(BTreeSet::len).sum())
            .collect();
        let mut subscriptions = group.members.values().map(|state| &state.member.topics);
        let first = subscriptions.next();
        let equal = subscriptions.all(|topics| Some(topics) == first);
        if equal && self.bench.coordinator.assignor("g") != Assignor::Range && !loads.is_empty() {
            let (low, high) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            assert!(high - low <= 1, "loads {loads:?}");
        }
    }
}
