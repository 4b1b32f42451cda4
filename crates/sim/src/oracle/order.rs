//! Order in real time: a record that was sent after another one was acknowledged comes behind it. For one producer
//! with one request in flight this is the order of its records.

use std::collections::BTreeMap;

use super::{Verdict, Violation};
use crate::message::Tp;

/// The sentence.
pub const SENTENCE: &str =
    "what is sent after another record was acknowledged comes behind it in the partition";

/// When the acknowledged end of each partition was where.
#[derive(Debug, Default)]
pub struct Order {
    /// Step -> largest offset acknowledged by then; both ascending.
    ends: BTreeMap<Tp, Vec<(u64, i64)>>,
}

impl Order {
    /// Records from `base` to `last`, first sent at step `sent`, are acknowledged at step `now`.
    pub fn acked(&mut self, tp: Tp, sent: u64, now: u64, base: i64, last: i64) -> Verdict {
        let ends = self.ends.entry(tp).or_default();
        let before = ends.partition_point(|(step, _)| *step < sent);
        if let Some((_, end)) = before.checked_sub(1).and_then(|at| ends.get(at))
            && base <= *end
        {
            let detail = format!(
                "a batch sent at step {sent} is at offset {base} of {tp:?}, but offset {end} had been acknowledged before"
            );
            return Err(Violation::new(SENTENCE, detail));
        }
        let end = ends.last().map_or(last, |(_, end)| last.max(*end));
        ends.push((now, end));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_later_must_come_later() {
        let mut oracle = Order::default();
        oracle.acked(Tp::default(), 1, 10, 5, 6).unwrap();
        oracle.acked(Tp::default(), 9, 11, 3, 4).unwrap();
        oracle.acked(Tp::default(), 12, 13, 7, 7).unwrap();
        assert!(oracle.acked(Tp::default(), 12, 14, 6, 6).is_err());
    }
}
