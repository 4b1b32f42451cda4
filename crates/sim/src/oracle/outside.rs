//! Whoever is no member of a group sees one plain committed offset, whatever becomes of the cursor inside: the lowest at
//! which any slot is resumed, or a little above, if nothing lies in between.

use std::collections::BTreeMap;

use anabranch_core::cursor::Cursor;

use super::commits::{Key, NONE};
use super::progress::{Facts, Progress};
use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str = "who is no member sees a plain offset: all below it is done, and it is no lower than where the group goes on";

/// What was durable when: of each cursor that was ever divided, the lowest offset at which a slot is resumed.
#[derive(Debug, Default)]
pub struct Outside {
    lowest: BTreeMap<Key, Vec<(u64, i64)>>,
    /// Steps of named resets.
    resets: BTreeMap<Key, u64>,
}

impl Outside {
    /// What is durable from this step on.
    pub fn durable(&mut self, key: &Key, cursor: Option<&Cursor>, step: u64, is_reset: bool) {
        let offset = cursor.map_or(NONE, |cursor| cursor.outside_view(None).offset);
        self.lowest.entry(key.clone()).or_default().push((step, offset));
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
        let history = self.lowest.get(key).map_or(&[][..], Vec::as_slice);
        // Who asked before the first division may be told what was committed then; the oracle of commits knew that.
        let before = history.partition_point(|(step, _)| *step < began).checked_sub(1);
        let since = before.and_then(|before| history.get(before..));
        let least = since.into_iter().flatten().map(|(_, offset)| *offset).min();
        if least.is_some_and(|least| found < least) {
            let detail =
                format!("{key:?}: {found} was told, where {least:?} is the least since step {began}");
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
    fn what_was_true_at_some_moment_since_the_question_may_be_told_and_nothing_lower() {
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
        let read = |found, began| outside.read(&key, found, began, &progress, None);
        read(3, 9).unwrap();
        read(5, 15).unwrap();
        read(5, 20).unwrap();
        read(8, 30).unwrap();
        assert!(read(5, 30).is_err());
        assert!(read(4, 15).is_err());
        read(4, 5).unwrap();
    }
}
