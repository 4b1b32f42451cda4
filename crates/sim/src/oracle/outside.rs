//! Whoever is no member of a group sees one plain committed offset, whatever becomes of the cursor inside: the lowest at
//! which any slot is resumed, or a little above, if nothing lies in between.

use std::collections::BTreeMap;

use anabranch_core::cursor::Cursor;

use super::commits::{Key, NONE};
use super::progress::{Facts, Progress};
use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str = "who is no member sees a plain offset: all below it is done, and it is no lower than where the group goes on";

/// What was durable at some step, and from then on.
#[derive(Clone, Copy, Debug)]
struct Shown {
    step: u64,
    /// The lowest offset at which a slot is resumed.
    lowest: i64,
    /// Then nothing but this is to be told.
    is_plain: bool,
}

/// What was durable when, of each cursor that was ever divided.
#[derive(Debug, Default)]
pub struct Outside {
    shown: BTreeMap<Key, Vec<Shown>>,
    /// Steps of named resets.
    resets: BTreeMap<Key, u64>,
}

impl Outside {
    /// What is durable from this step on.
    pub fn durable(&mut self, key: &Key, cursor: Option<&Cursor>, step: u64, is_reset: bool) {
        let shown = Shown {
            step,
            lowest: cursor.map_or(NONE, |cursor| cursor.outside_view(None).offset),
            is_plain: matches!(cursor, Some(Cursor::Plain(_))),
        };
        self.shown.entry(key.clone()).or_default().push(shown);
        if is_reset {
            self.resets.insert(key.clone(), step);
        }
    }

    /// Somebody asked at step `began` and was told this.
    pub fn read(
        &self,
        key: &Key,
        found: i64,
        began: u64,
        progress: &Progress,
        facts: Option<&Facts<'_>>,
    ) -> Verdict {
        let history = self.shown.get(key).map_or(&[][..], Vec::as_slice);
        // Who asked before the first division may be told what was committed then; the oracle of commits knew that.
        let before = history.partition_point(|shown| shown.step < began).checked_sub(1);
        let since = before
            .and_then(|before| history.get(before..))
            .unwrap_or_default();
        let least = since.iter().map(|shown| shown.lowest).min();
        if least.is_some_and(|least| found < least) {
            let detail =
                format!("{key:?}: {found} was told, where {least:?} is the least since step {began}");
            return Err(Violation::new(SENTENCE, detail));
        }
        let is_plain = !since.is_empty() && since.iter().all(|shown| shown.is_plain);
        if is_plain && since.iter().all(|shown| shown.lowest != found) {
            let detail = format!("{key:?}: {found} was told, and plain since step {began} it was {since:?}");
            return Err(Violation::new(SENTENCE, detail));
        }
        let was_reset = self.resets.get(key).is_some_and(|step| *step >= began);
        let (false, Some(facts)) = (was_reset, facts) else {
            return Ok(());
        };
        for (offset, slot) in facts.records.range(facts.start, found) {
            if progress.resume(key, slot).is_some_and(|resume| offset >= resume) {
                let detail = format!(
                    "{key:?}: {found} was told, and slot {} is resumed at {:?}, with a record at {offset}",
                    slot.get(),
                    progress.resume(key, slot)
                );
                return Err(Violation::new(SENTENCE, detail));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tp;
    use anabranch_core::cursor::Plain;

    #[test]
    fn what_was_true_at_some_moment_since_the_question_may_be_told_and_nothing_else() {
        let (key, mut outside) = (("g".to_owned(), Tp::default()), Outside::default());
        let plain = |offset| {
            Cursor::Plain(Plain {
                offset,
                ..Plain::default()
            })
        };
        outside.durable(&key, Some(&plain(5)), 10, false);
        outside.durable(&key, Some(&plain(8)), 20, false);
        let progress = Progress::default();
        let read = |outside: &Outside, found, began| outside.read(&key, found, began, &progress, None);
        let before = |found, began| read(&outside, found, began);
        before(3, 9).unwrap();
        before(5, 15).unwrap();
        before(5, 20).unwrap();
        before(8, 30).unwrap();
        assert!(before(5, 30).is_err());
        assert!(before(4, 15).is_err());
        before(4, 5).unwrap();
        assert!(before(9, 30).is_err(), "higher than it ever was");
        assert!(before(7, 15).is_err(), "between two that it was");
        outside.durable(&key, None, 40, false);
        outside.durable(&key, Some(&plain(12)), 50, false);
        read(&outside, 12, 60).unwrap();
        assert!(read(&outside, 13, 60).is_err());
    }
}
