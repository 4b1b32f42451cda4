//! From the planner's moves to what the group does: promises, sharers, operations of the cursor.

use std::collections::{BTreeMap, BTreeSet};

use super::Key;
use crate::cursor::{ChainState, Cursor, Fault, Refusal, SliceId};
use crate::elastic::{Change, How, Kind, Move};
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::{Sharers, Sharing};
use crate::slots::SlotSet;

impl Coordinator {
    /// Does what was decided.
    pub(super) fn act(&mut self, step: &mut Step<'_>, group: &str, change: &Change) {
        let mut by_partition: BTreeMap<Key, Vec<&Move>> = BTreeMap::new();
        for one in &change.moves {
            by_partition
                .entry((one.of.topic, one.of.partition))
                .or_default()
                .push(one);
        }
        let mut is_new_epoch = false;
        for (key, moves) in by_partition {
            is_new_epoch |= self.act_on(step, group, key, &moves);
            if matches!(change.kind, Kind::Split | Kind::Steal | Kind::Isolate) {
                let divided_ms = &mut self.elastic.group_mut(group).divided_ms;
                divided_ms.insert(key.0, step.now.mono_ms);
            }
        }
        if is_new_epoch {
            self.replan(step, group);
        }
    }

    /// The moves of one partition. Says whether members are to hold something else from now on.
    fn act_on(&mut self, step: &mut Step<'_>, group: &str, key: Key, moves: &[&Move]) -> bool {
        let is_gathered = self.let_go(step, group, key, moves);
        let mut sharers = self.sharers(group, key).unwrap_or_default();
        let before = sharers.clone();
        let mut is_placed = false;
        for one in moves {
            match one.how {
                How::Release | How::Grant => self.promise_and_share(group, key, one, &mut sharers),
                How::Divide => {
                    self.promise_and_share(group, key, one, &mut sharers);
                    let owners = match self.elastic.is_broken(Fault::OwnerNotAsked) {
                        true => BTreeSet::new(),
                        false => self.owners_of(group, key),
                    };
                    for owner in owners {
                        sharers.insert(owner, Sharing::Yields);
                    }
                }
                How::Regrant => {
                    self.promise_and_share(group, key, one, &mut sharers);
                    if let Some(from) = &one.from {
                        sharers.insert(from.clone(), Sharing::Yields);
                    }
                }
                How::Plain => {
                    sharers.insert(one.to.clone(), Sharing::Yields);
                }
                How::Assign => {
                    self.place(step, group, key, &one.to);
                    is_placed = true;
                }
                How::Return => {}
            }
        }
        let changed = sharers != before;
        if changed {
            self.set_sharers(step, group, key, sharers);
        }
        self.keep_promises(step, group, key);
        changed || is_placed || is_gathered
    }

    /// What the cursor does at once: slots leave their chains, or come back to them. Says whether members are to hold
    /// something else from now on, since slots cannot come back.
    fn let_go(&mut self, step: &mut Step<'_>, group: &str, key: Key, moves: &[&Move]) -> bool {
        let mut released: BTreeMap<&str, SlotSet> = BTreeMap::new();
        for one in moves.iter().filter(|one| one.how == How::Release) {
            if let Some(from) = &one.from {
                let slots = released.entry(from).or_insert_with(SlotSet::empty);
                *slots = slots.union(&one.slots);
            }
        }
        for (from, slots) in released {
            let Some(chain) = self.chain_of(group, key, from) else {
                continue;
            };
            let done = self.edit_cursor(step, group, key, |edit| edit.release(chain, &slots));
            self.tell_refusal(step, group, key, done);
        }
        let mut is_gathered = false;
        for one in moves.iter().filter(|one| one.how == How::Return) {
            self.withdraw(group, key, &one.slots);
            if let Some(chain) = self.chain_of(group, key, &one.to) {
                let done = self.edit_cursor(step, group, key, |edit| edit.return_transit(chain, &one.slots));
                let returned_ms = &mut self.elastic.division_mut(group, key).returned_ms;
                returned_ms.insert(one.to.clone(), step.now.mono_ms);
                if matches!(done, Some(Err(Refusal::NoId))) {
                    is_gathered |= self.gather(step, group, key);
                }
                self.tell_refusal(step, group, key, done);
            }
        }
        is_gathered
    }

    /// Slots that could not be let go of stay where they are; a promise of them is kept when they come loose some day,
    /// or withdrawn by the planner's next thought about them.
    fn tell_refusal(
        &self,
        step: &mut Step<'_>,
        group: &str,
        key: Key,
        done: Option<Result<SliceId, Refusal>>,
    ) {
        if let Some(Err(refusal)) = done {
            let text = format!("slots of partition {} did not move: {refusal}", key.1);
            step.notice(group, text);
        }
    }

    fn promise_and_share(&mut self, group: &str, key: Key, one: &Move, sharers: &mut Sharers) {
        self.promise(group, key, &one.to, &one.slots);
        sharers.entry(one.to.clone()).or_insert(Sharing::Holds);
    }

    pub(super) fn owners_of(&self, group: &str, key: Key) -> BTreeSet<String> {
        let owners = self
            .consumer(group)
            .and_then(|consumer| consumer.owners.get(&key));
        owners.cloned().unwrap_or_default()
    }

    fn chain_of(&self, group: &str, key: Key, member_id: &str) -> Option<SliceId> {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return None;
        };
        let (name, chain) = divided.chain_of(member_id)?;
        (chain.state() == ChainState::Held).then_some(name)
    }

    /// Puts right what a restart, or a decision that was overtaken, has left behind: members that share a partition
    /// without having anything of it, or the promise of it, share it no more; members that read again what they had are
    /// given a fresh slice; and what could not be granted for want of a slice id is tried again.
    pub(super) fn tidy(&mut self, step: &mut Step<'_>, group: &str) {
        let Some(consumer) = self.consumer(group) else {
            return;
        };
        let shared: Vec<(Key, Sharers)> = consumer
            .shared
            .iter()
            .map(|(key, sharers)| (*key, sharers.clone()))
            .collect();
        let mut is_new_epoch = false;
        for (key, sharers) in shared {
            let mut left = sharers.clone();
            let is_divided = matches!(self.cursor(group, key), Some(Cursor::Divided(_)));
            if is_divided || self.elastic.promises(group, key).is_some() {
                left.retain(|id, sharing| *sharing == Sharing::Yields || self.has_a_part(group, key, id));
            } else {
                // One who yields does so for nobody's sake, and one who is alone has the whole.
                left.clear();
            }
            if left != sharers {
                is_new_epoch = true;
                self.set_sharers(step, group, key, left);
            }
            self.keep_promises(step, group, key);
            is_new_epoch |= self.gather_exhausted(step, group, key);
            self.refresh_rewound(step, group, key);
        }
        if is_new_epoch {
            self.replan(step, group);
        }
    }

    fn has_a_part(&self, group: &str, key: Key, member_id: &str) -> bool {
        let is_alone = self.sharers(group, key).is_some_and(|sharers| sharers.len() == 1);
        is_alone
            || self.chain_of(group, key, member_id).is_some()
            || !self.promised(group, key, member_id).is_empty()
    }

    fn refresh_rewound(&mut self, step: &mut Step<'_>, group: &str, key: Key) {
        let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
            return;
        };
        let chains = self.with_live(group, key, |live| divided.view(live));
        for chain in chains {
            if chain.rewound == crate::cursor::Rewound::NeedsRefresh && chain.has_room {
                self.edit_cursor(step, group, key, |edit| edit.refresh(chain.chain).is_ok());
            }
        }
    }
}
