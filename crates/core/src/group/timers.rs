//! Deadlines of groups and members. Volatile: after a restart they are set anew.

use std::collections::{BTreeMap, BTreeSet};

/// What runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    /// The member was not heard of for a session.
    Session,
    /// The member did not release its partitions in time (consumer protocol).
    Release,
    /// The member was told to rejoin and did not (classic, consumer group).
    Rejoin,
    /// The member joined and did not sync (classic, consumer group).
    Sync,
    /// A member id was handed out and nobody came with it (barrier group).
    Pending,
    /// The join phase of a barrier group ends.
    JoinPhase,
    /// The sync phase of a barrier group ends.
    SyncPhase,
}

/// Names a timer. Timers of the group as a whole have an empty member id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerKey {
    /// Group id.
    pub(crate) group: String,
    /// Member id.
    pub(crate) member: String,
    /// What runs out.
    pub(crate) kind: TimerKind,
}

impl TimerKey {
    pub(crate) fn new(group: &str, member: &str, kind: TimerKind) -> Self {
        Self {
            group: group.to_owned(),
            member: member.to_owned(),
            kind,
        }
    }
}

/// All deadlines, by name and by time.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    at: BTreeMap<TimerKey, u64>,
    queue: BTreeSet<(u64, TimerKey)>,
}

impl Timers {
    /// Sets or moves a deadline.
    pub(crate) fn set(&mut self, key: TimerKey, at_ms: u64) {
        if let Some(old) = self.at.insert(key.clone(), at_ms) {
            let mut entry = (old, key);
            self.queue.remove(&entry);
            entry.0 = at_ms;
            self.queue.insert(entry);
        } else {
            self.queue.insert((at_ms, key));
        }
    }

    /// Sets a deadline unless it runs already.
    pub(crate) fn set_if_absent(&mut self, key: TimerKey, at_ms: u64) {
        if !self.at.contains_key(&key) {
            self.set(key, at_ms);
        }
    }

    /// Forgets a deadline.
    pub(crate) fn cancel(&mut self, key: &TimerKey) {
        if let Some(at) = self.at.remove(key) {
            self.queue.remove(&(at, key.clone()));
        }
    }

    /// Forgets all deadlines of a member.
    pub(crate) fn cancel_member(&mut self, group: &str, member: &str) {
        self.cancel_from(TimerKey::new(group, member, TimerKind::Session), |key| {
            key.group == group && key.member == member
        });
    }

    /// Forgets all deadlines of a group.
    pub(crate) fn cancel_group(&mut self, group: &str) {
        self.cancel_from(TimerKey::new(group, "", TimerKind::Session), |key| {
            key.group == group
        });
    }

    fn cancel_from(&mut self, from: TimerKey, wanted: impl Fn(&TimerKey) -> bool) {
        let keys: Vec<_> = self
            .at
            .range(from..)
            .map(|(key, _)| key)
            .take_while(|key| wanted(key))
            .cloned()
            .collect();
        for key in keys {
            self.cancel(&key);
        }
    }

    /// When a deadline runs out, if it is set.
    pub(crate) fn get(&self, key: &TimerKey) -> Option<u64> {
        self.at.get(key).copied()
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<u64> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Removes and returns the earliest deadline that is not after `now_ms`.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<TimerKey> {
        if self.next()? > now_ms {
            return None;
        }
        let (_, key) = self.queue.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, member: &str) -> TimerKey {
        TimerKey::new(group, member, TimerKind::Session)
    }

    #[test]
    fn deadlines_come_in_order_and_once() {
        let mut timers = Timers::default();
        timers.set(key("g", "a"), 30);
        timers.set(key("g", "b"), 10);
        timers.set(key("g", "a"), 20);
        timers.set_if_absent(key("g", "a"), 5);
        assert_eq!(timers.next(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        assert_eq!(timers.pop_due(25), Some(key("g", "b")));
        assert_eq!(timers.pop_due(25), Some(key("g", "a")));
        assert_eq!(timers.pop_due(25), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn cancelling_touches_only_its_group_and_member() {
        let mut timers = Timers::default();
        for (group, member) in [("g", "a"), ("g", "b"), ("gg", "a"), ("f", "a")] {
            timers.set(key(group, member), 10);
            timers.set(TimerKey::new(group, member, TimerKind::Sync), 11);
        }
        timers.cancel_member("g", "a");
        assert_eq!(timers.get(&key("g", "a")), None);
        assert_eq!(timers.get(&TimerKey::new("g", "a", TimerKind::Sync)), None);
        assert_eq!(timers.get(&key("g", "b")), Some(10));
        timers.cancel_group("g");
        let left: Vec<_> = std::iter::from_fn(|| timers.pop_due(99))
            .map(|k| k.group)
            .collect();
        assert_eq!(left, ["f", "gg", "f", "gg"]);
    }
}
