//! Offset agreement: one (topic id, partition, offset) has one value, for all readers and for ever; and where a
//! producer was told that its record is, everybody finds it.

use std::collections::BTreeMap;

use super::{Verdict, Violation};
use crate::message::Tp;
use crate::record::RecordId;

/// The sentence.
pub const SENTENCE: &str = "one offset of a partition holds one value, for all readers and for ever";

/// What was ever seen, or told, at each offset.
#[derive(Debug, Default)]
pub struct Agreement {
    logs: BTreeMap<Tp, BTreeMap<i64, RecordId>>,
}

impl Agreement {
    /// What is known to be at an offset.
    pub fn at(&self, tp: Tp, offset: i64) -> Option<RecordId> {
        self.logs.get(&tp)?.get(&offset).copied()
    }

    /// Somebody saw, or was told, that this record is there.
    pub fn observe(&mut self, tp: Tp, offset: i64, id: RecordId, who: &str) -> Verdict {
        let known = *self.logs.entry(tp).or_default().entry(offset).or_insert(id);
        if known == id {
            return Ok(());
        }
        let detail =
            format!("{who} finds record {id} at offset {offset} of {tp:?}, where record {known} was before");
        Err(Violation::new(SENTENCE, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::ids::TopicId;

    #[test]
    fn another_value_at_a_known_offset_is_noticed_another_incarnation_is_not() {
        let (old, new) = ((TopicId([1; 16]), 0), (TopicId([2; 16]), 0));
        let mut oracle = Agreement::default();
        oracle.observe(old, 5, 100, "a").unwrap();
        oracle.observe(old, 5, 100, "b").unwrap();
        oracle.observe(new, 5, 200, "a").unwrap();
        assert!(oracle.observe(old, 5, 101, "a").is_err());
    }
}
