//! What happens to divided cursors when members get partitions, give them up, leave, or come back.
//!
//! The order inside a step does not matter to what survives a crash: each change by itself leads to a state from which the
//! group goes on. A member that holds a partition without a chain of it was not told of it yet, and a chain whose
//! member does not hold the partition is given up by [`Coordinator::recover_slices`].

use std::collections::{BTreeMap, BTreeSet};

use super::promises::holds_chain;
use super::{Key, Promises};
use crate::cursor::{self, ChainState, Cursor, Evidence, Live, Plain, SliceId};
use crate::elastic::CommitEvidence;
use crate::group::change::GroupChange;
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::{Current, Sharers, Sharing};
use crate::slots::SlotSet;

impl Coordinator {
    /// A group's cursor in a partition.
    pub(in crate::group) fn cursor(&self, group: &str, key: Key) -> Option<&Cursor> {
        self.groups.get(group)?.cursors.get(&key)
    }

    /// Looks at the volatile half of a cursor.
    pub(in crate::group) fn with_live<T>(&self, group: &str, key: Key, look: impl FnOnce(&Live) -> T) -> T {
        match self.elastic.division(group, key) {
            Some(division) => look(&division.live),
            None => look(&Live::default()),
        }
    }

    /// Changes a divided cursor, or divides a plain one, and notes the changes. `None` if there is no cursor.
    pub(in crate::group) fn edit_cursor<T>(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        key: Key,
        work: impl FnOnce(&mut cursor::Step<'_>) -> T,
    ) -> Option<T> {
        let ids_up_to = self.ids_up_to(group);
        let cursor = self.groups.get_mut(group)?.cursors.get_mut(&key)?;
        let live = &mut self.elastic.division_mut(group, key).live;
        let ids = self.slice_ids.entry(key).or_default();
        let world = cursor::World {
            group,
            now: step.now,
            log_end: step.topics.log_end(key.0, key.1),
            evidence: match step.topics.commit_evidence(group, key.0) {
                CommitEvidence::Previous => Evidence::Previous,
                CommitEvidence::Latest => Evidence::Latest,
            },
            ids_up_to,
        };
        let mut edit = cursor::Step::new(cursor, live, ids, world);
        let result = work(&mut edit);
        let changes = edit.finish();
        if matches!(cursor, Cursor::Plain(_)) {
            self.elastic.division_ended(group, key);
        }
        if ids.is_unused() {
            self.slice_ids.remove(&key);
        }
        if !changes.is_empty() {
            step.effects.moved.insert(key);
        }
        let has_changed = !changes.cursor.is_empty();
        let (topic, partition) = key;
        if !changes.ids.is_empty() {
            step.effects.changes.push(GroupChange::SliceIds {
                group: group.to_owned(),
                topic,
                partition,
                changes: changes.ids,
            });
        }
        if !changes.cursor.is_empty() {
            step.effects.changes.push(GroupChange::CursorEdits {
                group: group.to_owned(),
                topic,
                partition,
                changes: changes.cursor,
            });
        }
        if has_changed {
            self.settle_decisions(step, group);
        }
        Some(result)
    }

    /// The largest slice id that all members can represent in their offsets.
    pub(super) fn ids_up_to(&self, group: &str) -> SliceId {
        let members = self
            .consumer(group)
            .into_iter()
            .flat_map(|group| group.members.values());
        let mut small = members.filter(|state| state.member.recognised().habits().needs_small_ids);
        match small.next() {
            Some(_) => SliceId::LAST_EXACT_IN_DOUBLE,
            None => SliceId::LAST,
        }
    }

    /// A member holds something else than before.
    pub(in crate::group) fn held_changed(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        member_id: &str,
        before: &Current,
    ) {
        let Some(state) = self.member(group, member_id) else {
            return;
        };
        let (old, new) = (keys(before), keys(&state.current));
        let epoch = state.current.epoch;
        for key in old.difference(&new) {
            self.given_up(step, group, *key, member_id);
        }
        for key in new.difference(&old) {
            self.taken(step, group, *key, member_id, epoch);
        }
        self.settle_decisions(step, group);
    }

    /// A member has given a partition up, with proof.
    fn given_up(&mut self, step: &mut Step<'_>, group: &str, key: Key, member_id: &str) {
        if let Some(Cursor::Divided(divided)) = self.cursor(group, key)
            && holds_chain(divided, member_id)
        {
            self.edit_cursor(step, group, key, |edit| edit.give_up(member_id));
            self.keep_promises(step, group, key);
        }
    }

    /// A member gets a partition: with it, its part.
    fn taken(&mut self, step: &mut Step<'_>, group: &str, key: Key, member_id: &str, epoch: i32) {
        let is_divided = matches!(self.cursor(group, key), Some(Cursor::Divided(_)));
        let sharers = self.sharers(group, key).map_or(0, |sharers| sharers.len());
        if sharers <= 1 {
            if is_divided || sharers == 1 {
                self.take_whole(step, group, key, member_id, epoch);
            }
            return;
        }
        if !is_divided {
            let divided = self.edit_cursor(step, group, key, |edit| edit.divide().is_ok());
            if divided != Some(true) {
                return;
            }
        }
        let due = self.due(group, key, member_id);
        self.grant(step, group, key, member_id, epoch, &due);
    }

    /// A partition that nobody else shares comes to one member whole: its cursor is still divided, or was to be and never was.
    fn take_whole(&mut self, step: &mut Step<'_>, group: &str, key: Key, member_id: &str, epoch: i32) {
        self.elastic.edit_promises(group, key, Promises::clear);
        let member = self.member(group, member_id).map(|state| &state.member);
        let refused = member.and_then(|member| member.eligibility().err());
        match refused {
            Some(why) => self.end_division(step, group, key, &why.to_string()),
            None => {
                self.make_plain(step, group, key);
            }
        }
        if !matches!(self.cursor(group, key), Some(Cursor::Divided(_))) {
            self.set_sharers(step, group, key, Sharers::new());
            return;
        }
        let sharers = [(member_id.to_owned(), Sharing::Holds)].into();
        self.set_sharers(step, group, key, sharers);
        let refused = self.grant(step, group, key, member_id, epoch, &SlotSet::all());
        if let Some(why @ cursor::Refusal::NoId) = refused {
            self.end_division(step, group, key, &why.to_string());
            self.set_sharers(step, group, key, Sharers::new());
        }
    }

    /// Makes the cursor plain again if that is exact and nobody reads slices of it. Says whether it is plain now.
    pub(in crate::group) fn make_plain(&mut self, step: &mut Step<'_>, group: &str, key: Key) -> bool {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return true;
        };
        let probe = self.with_live(group, key, |live| divided.plain_probe(live));
        probe.needs_no_record()
            && self
                .edit_cursor(step, group, key, |edit| edit.back_to_plain(&probe))
                .is_some_and(|made| made.is_ok())
    }

    /// Returns why not, if it was refused.
    fn grant(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        key: Key,
        member_id: &str,
        epoch: i32,
        slots: &SlotSet,
    ) -> Option<cursor::Refusal> {
        let granted = self.edit_cursor(step, group, key, |edit| edit.grant(member_id, epoch, slots));
        match granted {
            Some(Ok(_)) => {
                self.withdraw(group, key, slots);
                self.elastic
                    .division_mut(group, key)
                    .returned_ms
                    .remove(member_id);
                None
            }
            Some(Err(refusal)) => {
                let partition = key.1;
                let text =
                    format!("member {member_id} gets nothing of partition {partition} for now: {refusal}");
                step.notice(group, text);
                Some(refusal)
            }
            None => None,
        }
    }

    /// A member is gone: left, expelled, or replaced by another process. What it had of divided partitions is free,
    /// and its commits have no effect any more.
    pub(in crate::group) fn member_gone(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        member_id: &str,
        held: &Current,
    ) {
        self.withdraw_from(group, member_id);
        self.elastic.member_gone(group, member_id);
        for key in keys(held) {
            if let Some(Cursor::Divided(_)) = self.cursor(group, key) {
                self.edit_cursor(step, group, key, |edit| edit.dead(member_id));
                self.keep_promises(step, group, key);
            }
        }
    }

    /// The chains that a member holds.
    pub(in crate::group) fn chains_of(&self, group: &str, member_id: &str) -> BTreeMap<Key, SliceId> {
        let Some(state) = self.member(group, member_id) else {
            return BTreeMap::new();
        };
        let chain = |key: Key| match self.cursor(group, key)? {
            Cursor::Divided(divided) if holds_chain(divided, member_id) => {
                Some((key, divided.chain_of(member_id)?.0))
            }
            Cursor::Divided(_) | Cursor::Plain(_) => None,
        };
        keys(&state.current).into_iter().filter_map(chain).collect()
    }

    /// A member gave up, by joining again, everything that it then gets back at once (an eager one that stays as it
    /// is), or another process took its place. It reads its positions anew, and what was committed of the time before
    /// must not count: each of these chains that it still has is granted anew, under a fresh id.
    pub(in crate::group) fn renew_chains(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        (former, chains): (&str, BTreeMap<Key, SliceId>),
        member_id: &str,
    ) {
        let Some(epoch) = self.member(group, member_id).map(|state| state.current.epoch) else {
            return;
        };
        for (key, name) in chains {
            let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
                continue;
            };
            let Some(chain) = divided
                .chain(name)
                .filter(|chain| chain.state() == ChainState::Held)
            else {
                continue;
            };
            let others = self.promised_to_others(group, key, member_id);
            let slots = chain.slots().difference(&others);
            self.edit_cursor(step, group, key, |edit| {
                if former == member_id {
                    edit.give_up(former);
                } else {
                    edit.dead(former);
                }
            });
            self.grant(step, group, key, member_id, epoch, &slots);
            self.keep_promises(step, group, key);
        }
    }

    /// The group is no longer one whose partitions the broker divides: every cursor is plain from now on, at the lowest
    /// offset that somebody may still need. Records may be delivered again.
    pub(in crate::group) fn end_divisions(&mut self, step: &mut Step<'_>, group: &str, why: &str) {
        let cursors = self
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| &group.cursors);
        let divided: Vec<Key> = cursors
            .filter(|(_, cursor)| matches!(cursor, Cursor::Divided(_)))
            .map(|(key, _)| *key)
            .collect();
        for key in divided {
            self.end_division(step, group, key, why);
        }
    }

    /// The same for one partition.
    pub(in crate::group) fn end_division(&mut self, step: &mut Step<'_>, group: &str, key: Key, why: &str) {
        if self.make_plain(step, group, key) {
            return;
        }
        let Some(cursor) = self.cursor(group, key) else {
            return;
        };
        let plain = self.with_live(group, key, |live| cursor.outside_view(Some(live)));
        step.notice(
            group,
            format!(
                "partition {} is read from offset {} again, undivided: {why}",
                key.1, plain.offset
            ),
        );
        self.edit_cursor(step, group, key, |edit| edit.collapse(plain));
        self.elastic.edit_promises(group, key, Promises::clear);
    }

    /// Cursors are about to be deleted: the ids of their slices name nothing any more.
    pub(in crate::group) fn forget_cursors(&mut self, step: &mut Step<'_>, group: &str, gone: &[Key]) {
        for key in gone {
            if let Some(Cursor::Divided(_)) = self.cursor(group, *key) {
                // Should only this survive a crash, the group has no offset there, rather than the first.
                let none = Plain {
                    offset: -1,
                    ..Plain::default()
                };
                self.edit_cursor(step, group, *key, |edit| edit.collapse(none));
            }
            self.elastic.edit_promises(group, *key, Promises::clear);
        }
    }

    fn promised_to_others(&self, group: &str, key: Key, member_id: &str) -> SlotSet {
        let promises = self.elastic.promises(group, key);
        let others = promises.into_iter().flatten().filter(|(id, _)| *id != member_id);
        others.fold(SlotSet::empty(), |all, (_, slots)| all.union(slots))
    }

    /// After a recovery, once the high watermarks are known: what the cursors need to go on. Chains whose member does
    /// not hold the partition any more are given up; ids that name nothing are retired.
    pub fn recover_slices(
        &mut self,
        now: crate::ids::Now,
        topics: &dyn super::super::topics::Topics,
    ) -> super::super::coordinator::Effects {
        let mut step = Step::new(now, topics);
        self.elastic.forget();
        let mut divided_keys = Vec::new();
        for (id, group) in &self.groups {
            for (key, cursor) in &group.cursors {
                if let Cursor::Divided(divided) = cursor {
                    let live = &mut self.elastic.division_mut(id, *key).live;
                    live.recover(divided, topics.log_end(key.0, key.1), now.mono_ms);
                    divided_keys.push((id.clone(), *key));
                }
            }
        }
        for (group, key) in divided_keys {
            self.drop_unheld_chains(&mut step, &group, key);
        }
        self.retire_strays(&mut step);
        self.settle_former_decisions(&mut step);
        step.effects
    }

    fn drop_unheld_chains(&mut self, step: &mut Step<'_>, group: &str, key: Key) {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return;
        };
        let holds = |member: &str| {
            let state = self.member(group, member);
            state.map(|state| keys(&state.current).contains(&key))
        };
        let held = divided
            .chains()
            .filter(|(_, chain)| chain.state() == ChainState::Held);
        let unheld: Vec<(String, bool)> = held
            .filter_map(|(_, chain)| match holds(chain.member()) {
                Some(true) => None,
                Some(false) => Some((chain.member().to_owned(), true)),
                None => Some((chain.member().to_owned(), false)),
            })
            .collect();
        for (member, is_there) in unheld {
            self.edit_cursor(step, group, key, |edit| {
                if is_there {
                    edit.give_up(&member);
                } else {
                    edit.dead(&member);
                }
            });
        }
    }

    /// A crash between an id's taking and its use leaves one that names nothing.
    fn retire_strays(&mut self, step: &mut Step<'_>) {
        let mut retired = Vec::new();
        for (key, pool) in &self.slice_ids {
            let is_used = |id: SliceId, group: &str| match self.cursor(group, *key) {
                Some(Cursor::Divided(divided)) => divided.chain_with(id).is_some(),
                Some(Cursor::Plain(_)) | None => false,
            };
            let mut by_group: BTreeMap<String, Vec<SliceId>> = BTreeMap::new();
            for id in pool.strays(is_used) {
                if let Some(cursor::IdUse::Taken { group }) = pool.get(id) {
                    by_group.entry(group.to_owned()).or_default().push(id);
                }
            }
            retired.extend(by_group.into_iter().map(|(group, ids)| (*key, group, ids)));
        }
        for ((topic, partition), group, ids) in retired {
            let at_ms = step.now.wall_ms;
            let change = GroupChange::SliceIds {
                group,
                topic,
                partition,
                changes: vec![cursor::SliceIdsChange::Retired { ids, at_ms }],
            };
            self.record(step, change);
        }
    }
}

/// All partitions that a member may be at work on.
fn keys(current: &Current) -> BTreeSet<Key> {
    let both = current.assigned.iter().chain(&current.revoking);
    both.flat_map(|(topic, held)| held.keys().map(|partition| (*topic, *partition)))
        .collect()
}
