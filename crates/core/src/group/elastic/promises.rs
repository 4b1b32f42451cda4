//! Slots that members are to get.
//!
//! A move of slots is decided at once and happens later, when the fence has opened or the holder has given up. Until
//! then the slots are *promised* to the member that is to have them. Promises are volatile: a planner that finds loose
//! slots which nobody is promised decides anew.

use super::{Key, Promises};
use crate::cursor::{ChainState, Cursor, Divided};
use crate::group::coordinator::{Coordinator, Step};
use crate::slots::SlotSet;

impl Coordinator {
    /// Promises slots of a partition to a member. What was promised to others of them is theirs no more.
    pub(in crate::group) fn promise(&mut self, group: &str, key: Key, member_id: &str, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        self.elastic.edit_promises(group, key, |promises| {
            withdraw(promises, slots);
            let promised = promises
                .entry(member_id.to_owned())
                .or_insert_with(SlotSet::empty);
            *promised = promised.union(slots);
        });
    }

    /// What a member is promised of a partition.
    pub(in crate::group) fn promised(&self, group: &str, key: Key, member_id: &str) -> SlotSet {
        self.elastic
            .promises(group, key)
            .and_then(|promises| promises.get(member_id))
            .cloned()
            .unwrap_or_else(SlotSet::empty)
    }

    /// Takes back what is promised of these slots, to whomever.
    pub(in crate::group) fn withdraw(&mut self, group: &str, key: Key, slots: &SlotSet) {
        self.elastic
            .edit_promises(group, key, |promises| withdraw(promises, slots));
    }

    /// Takes back all that is promised to a member that is gone.
    pub(in crate::group) fn withdraw_from(&mut self, group: &str, member_id: &str) {
        self.elastic.edit_all_promises(group, |promises| {
            promises.remove(member_id);
        });
    }

    /// The slots promised to a member that can be granted to it now.
    pub(in crate::group) fn due(&self, group: &str, key: Key, member_id: &str) -> SlotSet {
        let promised = self.promised(group, key, member_id);
        if promised.is_empty() {
            return promised;
        }
        match self.cursor(group, key) {
            Some(Cursor::Divided(divided)) => {
                let grantable = self.with_live(group, key, |live| divided.grantable(live));
                promised.intersection(&grantable.slots())
            }
            Some(Cursor::Plain(_)) | None => promised,
        }
    }

    /// Whether a member that is to hold a partition may get it now.
    ///
    /// A shared one: if it holds a chain of it already, or something of what it is promised is free. Before the
    /// division that is as soon as nobody holds the whole.
    pub(in crate::group) fn may_take(&self, group: &str, key: Key, member_id: &str) -> bool {
        let Some(consumer) = self.consumer(group) else {
            return false;
        };
        if !consumer.is_free_for(key, member_id) {
            return false;
        }
        let Some(sharers) = consumer.shared.get(&key) else {
            return true;
        };
        let is_alone = sharers.len() == 1;
        match self.cursor(group, key) {
            Some(Cursor::Divided(divided)) => {
                is_alone || holds_chain(divided, member_id) || !self.due(group, key, member_id).is_empty()
            }
            Some(Cursor::Plain(_)) => is_alone || !self.promised(group, key, member_id).is_empty(),
            // Nothing was ever committed, so there is nothing to divide.
            None => true,
        }
    }

    /// Grants what is due to members that hold a chain already. Others get theirs with the partition.
    pub(in crate::group) fn keep_promises(&mut self, step: &mut Step<'_>, group: &str, key: Key) {
        let Some(promises) = self.elastic.promises(group, key) else {
            return;
        };
        let members: Vec<String> = promises.keys().cloned().collect();
        for member_id in members {
            let due = self.due(group, key, &member_id);
            let Some(Cursor::Divided(divided)) = self.cursor(group, key) else {
                return;
            };
            let held = divided
                .chain_of(&member_id)
                .filter(|(_, chain)| chain.state() == ChainState::Held);
            let Some((chain, _)) = held.filter(|_| !due.is_empty()) else {
                continue;
            };
            let granted = self.edit_cursor(step, group, key, |edit| edit.jump_grant(chain, &due));
            if granted.is_some_and(|granted| granted.is_ok()) {
                self.withdraw(group, key, &due);
            }
        }
    }
}

fn withdraw(promises: &mut Promises, slots: &SlotSet) {
    promises.retain(|_, promised| {
        *promised = promised.difference(slots);
        !promised.is_empty()
    });
}

pub(super) fn holds_chain(divided: &Divided, member_id: &str) -> bool {
    divided
        .chain_of(member_id)
        .is_some_and(|(_, chain)| chain.state() == ChainState::Held)
}
