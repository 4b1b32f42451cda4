//! A divided cursor has every slot once: in one tail, in one transit, or loose. Counted anew from what is durable, after each
//! change.

use anabranch_core::cursor::Divided;
use anabranch_core::slots::SlotSet;

use super::commits::Key;
use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str =
    "the slices and transits of a group's partition divide the 4096 slots: none twice, none missing";

/// Counts the slots of a cursor.
pub fn check(key: &Key, cursor: &Divided) -> Verdict {
    let mut seen = SlotSet::empty();
    let mut place = |what: String, slots: SlotSet| {
        let twice = seen.intersection(&slots);
        seen = seen.union(&slots);
        match twice.is_empty() {
            true => Ok(()),
            false => Err(wrong(key, &format!("{what} has slots again: {twice:?}"))),
        }
    };
    place("what is loose".to_owned(), cursor.loose().slots())?;
    for (name, chain) in cursor.chains() {
        let of = |what: &str| format!("{what} of chain {} ({})", name.get(), chain.member());
        place(of("the tail"), chain.tail().pieces.slots())?;
        for transit in chain.transits() {
            place(of("a transit"), transit.pieces.slots())?;
        }
    }
    match SlotSet::all().difference(&seen) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(wrong(key, &format!("slots are nowhere: {missing:?}"))),
    }
}

fn wrong(key: &Key, what: &str) -> Violation {
    Violation::new(SENTENCE, format!("{key:?}: {what}"))
}
