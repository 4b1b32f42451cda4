//! Members that hold a share and do not read it (`elastic.watchdog.fetch.ms`).
//!
//! Whoever has a share asks for its records again and again. A member that could have records of its share, has none in its
//! hands, and does not ask, may stand at an offset outside of the share, or does not want to read: its application has
//! paused the partition. Nobody can tell which. So the member gives the partition up, once, and gets it back: it asks anew
//! where to begin. If it does not read then either, it counts as paused ([`MemberState::Paused`]): it is given nothing
//! more, and what it does not read can go to others, as from anybody who is slow. Its next fetch ends that.
//!
//! A member that still has records to commit is left alone, however long it takes: it may be at work on them, and clients ask
//! for no more than they have room for.
//!
//! [`MemberState::Paused`]: crate::elastic::MemberState::Paused

use super::{Elastic, Key};
use crate::elastic::{MemberState, Reading, Snapshot};
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::Sharing;
use crate::slots::SlotSet;

/// What is known of a member as a reader of its share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    /// Until when its newest fetch waits, if it finds nothing; monotonic milliseconds.
    until_ms: u64,
    /// Since when it could have records, and does not ask.
    since_ms: Option<u64>,
    /// It gave the share up for that reason before.
    had_its_turn: bool,
    /// It did not read after that either.
    is_paused: bool,
}

impl Watched {
    /// It fetches, and waits until then if there is nothing.
    pub(super) fn fetched(&mut self, until_ms: u64) {
        self.until_ms = self.until_ms.max(until_ms);
        self.since_ms = None;
        self.is_paused = false;
    }

    /// A look at it. `could`: there is something for it to read, and it has nothing in its hands. Says whether it is to take
    /// its share anew.
    fn look(&mut self, now_ms: u64, could: bool, patience_ms: u64) -> bool {
        if !could || now_ms < self.until_ms {
            self.since_ms = None;
            return false;
        }
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) < patience_ms {
            return false;
        }
        self.is_paused = self.had_its_turn;
        let is_first = !self.had_its_turn;
        if is_first {
            self.had_its_turn = true;
            self.since_ms = None;
        }
        is_first
    }
}

impl Coordinator {
    /// Looks at all who hold shares. Whoever is found paused counts as that from the next look on.
    pub(super) fn watch_readers(&mut self, step: &mut Step<'_>, group: &str, snapshot: &Snapshot) {
        let mut stuck: Vec<(Key, String, SlotSet)> = Vec::new();
        for (topic, view) in &snapshot.topics {
            for (partition, state) in &view.partitions {
                let Reading::Divided(divided) = &state.reading else {
                    continue;
                };
                let key = (*topic, *partition);
                let watched = &mut self.elastic.division_mut(group, key).watched;
                watched.retain(|member, _| divided.shares.contains_key(member));
                for (id, share) in &divided.shares {
                    let member = snapshot.members.get(id);
                    let is_there = member.is_some_and(|member| member.state != MemberState::Away);
                    let has_to_read = share.remaining > 0 && share.handed_out == 0 && !share.blind;
                    let could = is_there && has_to_read && !state.awaits_yield;
                    let patience_ms = view.settings.watchdog_fetch_ms;
                    let watched = watched.entry(id.clone()).or_default();
                    if watched.look(step.now.mono_ms, could, patience_ms) {
                        stuck.push((key, id.clone(), share.slots.clone()));
                    }
                }
            }
        }
        let takes_anew = !stuck.is_empty();
        for (key, id, slots) in stuck {
            let text = format!(
                "member {id} does not read its share of partition {}: it gives the partition up and gets it back",
                key.1
            );
            step.notice(group, text);
            self.promise(group, key, &id, &slots);
            let mut sharers = self.sharers(group, key).unwrap_or_default();
            sharers.insert(id, Sharing::Yields);
            self.set_sharers(step, group, key, sharers);
        }
        if takes_anew {
            self.replan(step, group);
        }
    }
}

impl Elastic {
    /// Whether a share waits for its member in vain.
    pub(super) fn waits_in_vain(&self, group: &str, key: Key, member: &str) -> bool {
        let watched = self
            .division(group, key)
            .and_then(|division| division.watched.get(member));
        watched.is_some_and(|watched| watched.is_paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE_MS: u64 = 10_000;

    fn look(watched: &mut Watched, now_ms: u64, could: bool) -> bool {
        watched.look(now_ms, could, PATIENCE_MS)
    }

    #[test]
    fn a_member_gets_one_turn_and_is_paused_if_that_does_not_help() {
        let mut watched = Watched::default();
        assert!(!look(&mut watched, 0, true));
        assert!(!look(&mut watched, 9_999, true));
        assert!(look(&mut watched, 10_000, true));
        assert!(!look(&mut watched, 10_500, true), "the time begins anew");
        assert!(!watched.is_paused);
        assert!(!look(&mut watched, 20_500, true));
        assert!(watched.is_paused);
        watched.fetched(21_000);
        assert!(!watched.is_paused);
        assert!(!look(&mut watched, 22_000, true));
        assert!(!look(&mut watched, 32_000, true), "never a second turn");
        assert!(watched.is_paused);
    }

    #[test]
    fn a_fetch_that_waits_and_having_nothing_to_read_are_no_silence() {
        let mut watched = Watched::default();
        watched.fetched(30_000);
        assert!(!look(&mut watched, 29_000, true), "it waits for more to come");
        assert!(!look(&mut watched, 30_000, true));
        assert!(!look(&mut watched, 39_000, false), "it had nothing to ask for");
        assert!(!look(&mut watched, 40_000, true));
        assert!(!look(&mut watched, 49_000, true));
        assert!(look(&mut watched, 50_000, true));
    }
}
