//! Committed offsets: an acknowledged commit is what later reads find, until another one replaces it; and while members
//! work, positions only grow.
//!
//! Each (group, partition) is a register. A read may return the value of any write that is not certainly overwritten:
//! a write is overwritten if another one began after it had ended and ended before the read began. A write whose answer
//! was lost never ends, so it may take effect at any time, or never.

use std::collections::BTreeMap;

use super::{Verdict, Violation};
use crate::message::Tp;

/// The sentence about what is read.
pub const READ: &str = "an acknowledged commit is found by every later read, until it is replaced";
/// The sentence about what is written.
pub const FORWARD: &str = "committed positions of a working group never go back, except by a named reset";

/// A group's cursor on a partition.
pub type Key = (String, Tp);

/// The value of a register that was never written, or was deleted.
pub const NONE: i64 = -1;

#[derive(Clone, Copy, Debug)]
struct Write {
    value: i64,
    began: u64,
    /// When its answer came; `u64::MAX` while it has none.
    ended: u64,
}

/// All registers.
#[derive(Debug, Default)]
pub struct Commits {
    registers: BTreeMap<Key, Vec<Write>>,
    /// Where members went back of their own will: from here on, up to there.
    returns: BTreeMap<Key, Vec<(i64, i64)>>,
}

impl Commits {
    /// A write is sent.
    pub fn began(&mut self, key: Key, value: i64, step: u64) {
        self.registers.entry(key).or_default().push(Write {
            value,
            began: step,
            ended: u64::MAX,
        });
    }

    /// The write of this value that was sent at `began` is acknowledged.
    pub fn ended(&mut self, key: &Key, value: i64, began: u64, step: u64) {
        let Some(writes) = self.registers.get_mut(key) else {
            return;
        };
        let is_it =
            |write: &&mut Write| write.began == began && write.value == value && write.ended == u64::MAX;
        if let Some(write) = writes.iter_mut().find(is_it) {
            write.ended = step;
        }
    }

    /// The write was refused: it never had, and never will have, an effect. Of several that look alike (two members of one
    /// group may commit the same at the same moment, and a request may be sent twice) it is one.
    pub fn refused(&mut self, key: &Key, value: i64, began: u64) {
        let Some(writes) = self.registers.get_mut(key) else {
            return;
        };
        let is_it = |write: &Write| write.began == began && write.value == value && write.ended == u64::MAX;
        if let Some(at) = writes.iter().position(is_it) {
            writes.remove(at);
        }
    }

    /// The topic is gone, or its group: so are their cursors.
    pub fn forget(&mut self, gone: impl Fn(&Key) -> bool) {
        self.registers.retain(|key, _| !gone(key));
    }

    /// A read that began at step `began` has found this value.
    pub fn read(&self, key: &Key, found: i64, began: u64) -> Verdict {
        let writes = self.registers.get(key).map_or(&[][..], Vec::as_slice);
        let overwritten = |ended: u64| {
            writes
                .iter()
                .any(|other| other.began > ended && other.ended < began)
        };
        let possible = writes
            .iter()
            .any(|write| write.value == found && !overwritten(write.ended));
        // The initial state is a write that ended before everything.
        let initial = found == NONE && !overwritten(0);
        if possible || initial {
            return Ok(());
        }
        let detail =
            format!("{key:?}: a read that began at step {began} found {found}; written were {writes:?}");
        Err(Violation::new(READ, detail))
    }

    /// A member goes back itself: it has sent an older commit again, or has sought. Its commits may be from here on for a
    /// while, up to there.
    pub fn may_return(&mut self, key: Key, from: i64, upto: i64) {
        self.returns.entry(key).or_default().push((from, upto));
    }

    /// The broker replaces a member's committed position.
    pub fn forward(&self, key: &Key, before: i64, after: i64) -> Verdict {
        let returns = self.returns.get(key).map_or(&[][..], Vec::as_slice);
        let is_own = |(from, upto): &(i64, i64)| (*from..=*upto).contains(&after);
        if after >= before || returns.iter().any(is_own) {
            return Ok(());
        }
        Err(Violation::new(
            FORWARD,
            format!("{key:?}: from {before} back to {after}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overwritten_value_must_not_come_back_and_an_unknown_one_may() {
        let key = ("g".to_owned(), Tp::default());
        let mut oracle = Commits::default();
        oracle.read(&key, NONE, 1).unwrap();
        oracle.began(key.clone(), 10, 2);
        oracle.read(&key, NONE, 3).unwrap();
        oracle.read(&key, 10, 3).unwrap();
        oracle.ended(&key, 10, 2, 4);
        assert!(oracle.read(&key, NONE, 5).is_err(), "lost");
        oracle.began(key.clone(), 20, 6);
        oracle.read(&key, 10, 7).unwrap();
        oracle.read(&key, 20, 7).unwrap();
        oracle.began(key.clone(), 30, 8);
        oracle.ended(&key, 30, 8, 9);
        oracle.read(&key, 20, 10).unwrap();
        assert!(oracle.read(&key, 10, 10).is_err(), "overwritten");
        oracle.refused(&key, 20, 6);
        assert!(oracle.read(&key, 20, 10).is_err(), "refused");
        for _ in 0..2 {
            oracle.began(key.clone(), 40, 11);
        }
        oracle.refused(&key, 40, 11);
        oracle.read(&key, 40, 12).unwrap();
        assert!(oracle.forward(&key, 5, 4).is_err());
        oracle.forward(&key, 5, 5).unwrap();
        oracle.may_return(key.clone(), 3, 4);
        oracle.forward(&key, 5, 4).unwrap();
        assert!(oracle.forward(&key, 5, 2).is_err());
    }
}
