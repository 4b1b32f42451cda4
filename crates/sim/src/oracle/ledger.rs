//! What was ever sent: the book that the oracles compare with. And no invented bytes: whatever anybody reads must be in
//! it, sent to that very partition, and not refused for good.

use anabranch_core::ids::TopicId;

use super::{Verdict, Violation};
use crate::message::Tp;
use crate::record::{Fate, RecordId, Sent};

/// The sentence.
pub const SENTENCE: &str = "what is read was sent by a producer, to this partition, and was not refused";

/// All records.
#[derive(Debug, Default)]
pub struct Ledger {
    sent: Vec<Sent>,
    sessions: u64,
}

impl Ledger {
    /// A number for a producer's session.
    pub fn session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// Notes a record and gives it its number.
    pub fn add(&mut self, sent: Sent) -> RecordId {
        self.sent.push(sent);
        self.sent.len() as RecordId
    }

    /// A record.
    pub fn get(&self, id: RecordId) -> Option<&Sent> {
        self.sent.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// How many records were sent.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Notes what became of a record.
    pub fn set_fate(&mut self, id: RecordId, fate: Fate) {
        let index = usize::try_from(id.saturating_sub(1)).unwrap_or(usize::MAX);
        if let Some(sent) = self.sent.get_mut(index) {
            sent.fate = fate;
        }
    }

    /// Somebody read this record there. `name` is the topic's name, if it is known. Of a topic that was ever in queue mode
    /// records may be in partitions below the one that they were sent to: [`super::queues`] knows in which.
    pub fn check(&self, tp: Tp, offset: i64, id: RecordId, name: Option<&str>, is_queued: bool) -> Verdict {
        let wrong = |why: String| {
            Err(Violation::new(
                SENTENCE,
                format!("offset {offset} of {tp:?}: {why}"),
            ))
        };
        let Some(sent) = self.get(id) else {
            return wrong(format!("record {id} was never sent"));
        };
        let elsewhere = |id: TopicId| id != tp.0;
        let is_there = sent.partition == tp.1 || (is_queued && tp.1 < sent.partition);
        if !is_there || sent.id.is_some_and(elsewhere) || name.is_some_and(|name| name != sent.topic) {
            return wrong(format!("record {id} was sent elsewhere: {sent:?}"));
        }
        if sent.fate == Fate::Failed {
            return wrong(format!(
                "record {id} was refused for good, and is there: {sent:?}"
            ));
        }
        Ok(())
    }

    /// A record for tests.
    #[cfg(test)]
    pub(crate) fn sample(&mut self, session: u64, ordinal: u64) -> RecordId {
        self.add(Sent {
            session,
            idempotent: true,
            topic: "t".into(),
            id: None,
            partition: 0,
            ordinal,
            step: 1,
            sent_ms: 0,
            dated: true,
            fate: Fate::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_and_refused_records_are_noticed() {
        let mut ledger = Ledger::default();
        let id = ledger.sample(1, 0);
        let here = (TopicId([1; 16]), 0);
        ledger.check(here, 0, id, Some("t"), false).unwrap();
        assert!(ledger.check(here, 0, id + 1, None, false).is_err(), "never sent");
        assert!(
            ledger.check((here.0, 1), 0, id, None, true).is_err(),
            "another partition"
        );
        assert!(
            ledger.check(here, 0, id, Some("u"), false).is_err(),
            "another topic"
        );
        ledger.set_fate(id, Fate::Failed);
        assert!(ledger.check(here, 0, id, None, false).is_err(), "refused");
    }
}
