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
/// The sentence about slots that have moved: what a member got of them before is done when another one begins.
pub const LEFT: &str = "who has left a slot to another member begins none of its records any more";
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

/// A slot's way through a group.
#[derive(Debug, Default)]
struct Way {
    /// So many of its records are known to be delivered or deleted.
    passed: usize,
    /// The step from which on the newest slice was there in which one of its records was begun, and whose slice that was.
    newest: Option<(u64, String)>,
}

/// What everybody has in hand, and how far each slot was delivered.
#[derive(Debug, Default)]
pub struct Works {
    /// By client: one record at a time.
    in_hand: BTreeMap<usize, InHand>,
    ways: BTreeMap<Key, BTreeMap<Slot, Way>>,
}

impl Works {
    /// A member takes a record in hand. `since` is the step from which on the slice was there in which it got it, if it got
    /// it in one. `is_member` tells who is one at present, durably.
    pub fn begins(
        &mut self,
        worker: &Worker<'_>,
        key: &Key,
        (offset, slot, since): (i64, Slot, Option<u64>),
        is_member: impl Fn(&str) -> bool,
        facts: &Facts<'_>,
    ) -> Verdict {
        self.dropped(worker.client);
        // What was deleted since it was handed out counts for nobody any more: the others go on without it.
        if !is_member(worker.member) || offset < facts.start {
            return Ok(());
        }
        let wrong = |sentence, what: &str| {
            let detail = format!(
                "{key:?}: client {} begins the record at {offset}, of slot {}, {what}",
                worker.client,
                slot.get()
            );
            Err(Violation::new(sentence, detail))
        };
        let others = self
            .in_hand
            .iter()
            .filter(|(_, other)| other.key == *key && other.slot == slot)
            .filter(|(_, other)| other.offset >= facts.start);
        let other = others.into_iter().find(|(_, other)| is_member(&other.member));
        if let Some((client, other)) = other {
            let what = format!("while client {client} has the one at {} in hand", other.offset);
            return wrong(ALONE, &what);
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
        let way = self.ways.entry(key.clone()).or_default().entry(slot).or_default();
        match (&way.newest, since) {
            (Some((newest, member)), Some(since)) if *newest > since => {
                if member != worker.member {
                    return wrong(LEFT, &format!("which {member} has gone on with in a newer slice"));
                }
            }
            (_, Some(since)) => way.newest = Some((since, worker.member.to_owned())),
            (_, None) => {}
        }
        let of_slot = facts.records.of_slot(slot);
        while let Some(earlier) = of_slot.get(way.passed).filter(|earlier| **earlier < offset) {
            if *earlier >= facts.start && !facts.delivery.has(key, *earlier) {
                return wrong(ORDER, &format!("and nobody was given the one at {earlier}"));
            }
            way.passed += 1;
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
        let slot = records.at(0).unwrap().1;
        let at = |offset| (offset, slot, None);
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

    #[test]
    fn whoever_goes_on_in_an_old_slice_of_a_slot_that_has_moved_is_noticed() {
        let key = ("g".to_owned(), Tp::default());
        let (mut truth, mut delivery) = (Truth::default(), Delivery::default());
        truth.add(key.1, 0, &[1, 1]);
        delivery.processed(&key, 0, 2);
        let records = truth.of(key.1).unwrap();
        let slot = records.at(0).unwrap().1;
        let facts = Facts {
            records,
            delivery: &delivery,
            start: 0,
        };
        let mut works = Works::default();
        let mut begins = |client, member, offset, since| {
            let worker = Worker {
                group: "g",
                client,
                member,
            };
            let verdict = works.begins(&worker, &key, (offset, slot, Some(since)), |_| true, &facts);
            works.dropped(client);
            verdict
        };
        begins(1, "a", 0, 10).unwrap();
        begins(1, "a", 1, 20).unwrap();
        begins(1, "a", 0, 10).unwrap();
        begins(2, "b", 1, 30).unwrap();
        assert!(begins(1, "a", 0, 20).is_err());
        begins(1, "a", 1, 40).unwrap();
    }
}
