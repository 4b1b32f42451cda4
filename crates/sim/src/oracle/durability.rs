//! An acknowledged record is there, at the offset that was told, until it is deleted; and between a log's start and
//! its high watermark there is no hole.

use std::collections::BTreeMap;

use super::{Verdict, Violation};
use crate::message::Tp;
use crate::record::RecordId;

/// The sentence.
pub const SENTENCE: &str =
    "an acknowledged record survives any crash, and is found where its producer was told";

/// What producers were told.
#[derive(Debug, Default)]
pub struct Durability {
    acked: BTreeMap<Tp, BTreeMap<i64, RecordId>>,
}

/// All that a partition holds.
#[derive(Debug)]
pub struct Audit {
    /// The partition.
    pub tp: Tp,
    /// First offset that exists.
    pub start: i64,
    /// First offset that is not visible.
    pub high_watermark: i64,
    /// Offset and number of each record from some offset at or below the start on, as they are stored.
    pub found: Vec<(i64, RecordId)>,
}

impl Durability {
    /// A producer was told so.
    pub fn acked(&mut self, tp: Tp, offset: i64, id: RecordId) {
        self.acked.entry(tp).or_default().insert(offset, id);
    }

    /// How many records were acknowledged.
    pub fn count(&self) -> usize {
        self.acked.values().map(BTreeMap::len).sum()
    }

    /// Compares with all that is there.
    pub fn audit(&self, audit: &Audit) -> Verdict {
        let Audit {
            tp,
            start,
            high_watermark,
            found,
        } = audit;
        let wrong = |detail| Err(Violation::new(SENTENCE, detail));
        let live = found.iter().skip_while(|(offset, _)| offset < start);
        let mut expected = *start;
        for (offset, _) in live {
            if *offset != expected {
                return wrong(format!(
                    "{tp:?} has a hole: after offset {expected} should come, {offset} comes"
                ));
            }
            expected += 1;
        }
        if expected != *high_watermark {
            return wrong(format!(
                "{tp:?} ends at {expected}, its high watermark is {high_watermark}"
            ));
        }
        let found: BTreeMap<i64, RecordId> = found.iter().copied().collect();
        let Some(acked) = self.acked.get(tp) else {
            return Ok(());
        };
        for (offset, id) in acked.range(start..) {
            match found.get(offset) {
                Some(there) if there == id => {}
                other => {
                    return wrong(format!(
                        "record {id} was acknowledged at offset {offset} of {tp:?} ({start} to {high_watermark}); there is {other:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(start: i64, high_watermark: i64, found: &[(i64, RecordId)]) -> Audit {
        Audit {
            tp: Tp::default(),
            start,
            high_watermark,
            found: found.to_vec(),
        }
    }

    #[test]
    fn losses_holes_and_moved_records_are_noticed() {
        let mut oracle = Durability::default();
        oracle.acked(Tp::default(), 1, 11);
        oracle.audit(&audit(0, 3, &[(0, 10), (1, 11), (2, 12)])).unwrap();
        assert!(oracle.audit(&audit(0, 1, &[(0, 10)])).is_err(), "lost");
        assert!(
            oracle.audit(&audit(0, 3, &[(0, 10), (1, 99), (2, 11)])).is_err(),
            "moved"
        );
        assert!(oracle.audit(&audit(0, 3, &[(0, 10), (2, 12)])).is_err(), "hole");
        assert!(
            oracle.audit(&audit(0, 4, &[(0, 10), (1, 11), (2, 12)])).is_err(),
            "short"
        );
        oracle.audit(&audit(2, 3, &[(2, 12)])).unwrap();
    }
}
