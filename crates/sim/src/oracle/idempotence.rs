//! An idempotent producer's records are each there once, in order, without a hole, however often they were sent.

use std::collections::BTreeMap;

use super::durability::Audit;
use super::ledger::Ledger;
use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str =
    "the records of an idempotent producer are there once each, in order, without a hole";

/// Checks all that a partition holds.
pub fn audit(ledger: &Ledger, audit: &Audit) -> Verdict {
    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
    for (offset, id) in &audit.found {
        let Some(sent) = ledger.get(*id).filter(|sent| sent.idempotent) else {
            continue;
        };
        let first = if audit.start == 0 { 0 } else { sent.ordinal };
        let expected = *next.get(&sent.session).unwrap_or(&first);
        if sent.ordinal != expected {
            let detail = format!(
                "at offset {offset} of {:?} is record {id}, the {}th of session {}; the {expected}th should come",
                audit.tp, sent.ordinal, sent.session
            );
            return Err(Violation::new(SENTENCE, detail));
        }
        next.insert(sent.session, expected + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Tp;

    #[test]
    fn twice_swapped_and_missing_are_noticed() {
        let mut ledger = Ledger::default();
        let ids: Vec<u64> = (0..3).map(|n| ledger.sample(7, n)).collect();
        let check = |start, order: &[usize]| {
            let found = (start..)
                .zip(order)
                .map(|(offset, n)| (offset, ids[*n]))
                .collect();
            super::audit(
                &ledger,
                &Audit {
                    tp: Tp::default(),
                    start,
                    high_watermark: 9,
                    found,
                },
            )
        };
        check(0, &[0, 1, 2]).unwrap();
        check(4, &[1, 2]).unwrap();
        for order in [&[0, 0, 1][..], &[0, 2], &[1, 0], &[1]] {
            assert!(check(0, order).is_err(), "{order:?}");
        }
    }
}
