//! A slot's records are begun in the order of the log, without a hole, and never by two members at a time.
//!
//! Only members count, in the durable sense: whoever was expelled may not know it yet, works on for nothing, and is the
//! exception that invariant 3 names. A record that was begun before may be begun again, by anybody.

use std::collections::BTreeMap;

use anabranch_wire::slot::Slot;

use super::commits::Key;
use super::progress::Facts;
use super::{Verdict, Violation};

/// The sentence about order.
pub const ORDER: &str = "the records of a slot are first delivered in the order of the log, without a hole";
/// The sentence about members.
pub const ALONE: &str = "no two members of a group process one slot at the same time";

/// Who works.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// Its group.
    pub group: &'a str,
    /// The client's number.
    pub client: usize,
    /// Its member id.
    pub member: &'a str,
}

#[derive(Clone, Debug)]
struct InHand {
    key: Key,
    slot: Slot,
    offset: i64,
    member: String,
}

/// What everybody has in hand, and how far each slot was delivered.
#[derive(Debug, Default)]
pub struct Works {
    /// By client: one record at a time.
    in_hand: BTreeMap<usize, InHand>,
    /// So many of a slot's records are known to be delivered or deleted.
    passed: BTreeMap<(Key, Slot), usize>,
}

impl Works {
    /// A member takes a record in hand. `is_member` tells who is one at present, durably.
    pub fn begins(
        &mut self,
        worker: &Worker<'_>,
        key: &Key,
        (offset, slot): (i64, Slot),
        is_member: impl Fn(&str) -> bool,
        facts: &Facts<'_>,
    ) -> Verdict {
        self.dropped(worker.client);
        // What was deleted since it was handed out counts for nobody any more: the others go on without it.
        if !is_member(worker.member) || offset < facts.start {
            return Ok(());
        }
        let others = self
            .in_hand
            .iter()
            .filter(|(_, other)| other.key == *key && other.slot == slot)
            .filter(|(_, other)| other.offset >= facts.start);
        let other = others.into_iter().find(|(_, other)| is_member(&other.member));
        if let Some((client, other)) = other {
            let detail = format!(
                "{key:?}: client {} begins the record at {offset}, of slot {}, while client {client} has the one at {} in hand",
                worker.client,
                slot.get(),
                other.offset
            );
            return Err(Violation::new(ALONE, detail));
        }
        self.in_hand.insert(
            worker.client,
            InHand {
                key: key.clone(),
                slot,
                offset,
                member: worker.member.to_owned(),
            },
        );
        let passed = self.passed.entry((key.clone(), slot)).or_default();
        let of_slot = facts.records.of_slot(slot);
        while let Some(earlier) = of_slot.get(*passed).filter(|earlier| **earlier < offset) {
            if *earlier >= facts.start && !facts.delivery.has(key, *earlier) {
                let detail = format!(
                    "{key:?}: client {} begins the record at {offset}, of slot {}, and nobody was given the one at {earlier}",
                    worker.client,
                    slot.get()
                );
                return Err(Violation::new(ORDER, detail));
            }
            *passed += 1;
        }
        Ok(())
    }

    /// A client has nothing in hand any more: it is done, or thrown away.
    pub fn dropped(&mut self, client: usize) {
        self.in_hand.remove(&client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tp;
    use crate::oracle::delivery::Delivery;
    use crate::oracle::truth::Truth;

    #[test]
    fn two_at_a_time_and_holes_are_noticed_and_those_who_were_expelled_do_not_count() {
        let key = ("g".to_owned(), Tp::default());
        let (mut truth, delivery) = (Truth::default(), Delivery::default());
        truth.add(key.1, 0, &[1, 1]);
        let records = truth.of(key.1).unwrap();
        let facts = Facts {
            records,
            delivery: &delivery,
            start: 0,
        };
        let at = |offset| (offset, records.at(offset).unwrap().1);
        let who = |client, member| Worker {
            group: "g",
            client,
            member,
        };
        let (all, mut works) = (|_: &str| true, Works::default());
        works.begins(&who(1, "a"), &key, at(0), all, &facts).unwrap();
        assert!(
            works.begins(&who(2, "b"), &key, at(0), all, &facts).is_err(),
            "two"
        );
        let but_a = |member: &str| member != "a";
        works.begins(&who(2, "b"), &key, at(0), but_a, &facts).unwrap();
        works.dropped(1);
        works.dropped(2);
        works.begins(&who(1, "a"), &key, at(1), but_a, &facts).unwrap();
        assert!(
            works.begins(&who(1, "a"), &key, at(1), all, &facts).is_err(),
            "a hole"
        );
    }
}
