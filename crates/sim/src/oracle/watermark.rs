//! The high watermark never goes back, and never shows what a crash then removes.

use std::collections::BTreeMap;

use super::{Verdict, Violation};
use crate::message::Tp;

/// The sentence.
pub const SENTENCE: &str = "the high watermark never goes back, not even over a crash";

/// The highest that was ever shown.
#[derive(Debug, Default)]
pub struct Watermark {
    shown: BTreeMap<Tp, i64>,
}

impl Watermark {
    /// The broker shows this one.
    pub fn shown(&mut self, tp: Tp, high_watermark: i64) -> Verdict {
        let before = self.shown.entry(tp).or_default();
        if high_watermark < *before {
            let detail = format!("{tp:?}: {before} was shown before, now {high_watermark}");
            return Err(Violation::new(SENTENCE, detail));
        }
        *before = high_watermark;
        Ok(())
    }

    /// The partition is back after a restart and ends here.
    pub fn recovered(&self, tp: Tp, end: i64) -> Verdict {
        let before = self.shown.get(&tp).copied().unwrap_or(0);
        if end < before {
            let detail =
                format!("{tp:?}: {before} was shown before the restart, after it the log ends at {end}");
            return Err(Violation::new(SENTENCE, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_is_noticed_in_operation_and_over_a_restart() {
        let mut oracle = Watermark::default();
        oracle.shown(Tp::default(), 4).unwrap();
        oracle.shown(Tp::default(), 4).unwrap();
        assert!(oracle.shown(Tp::default(), 3).is_err());
        oracle.recovered(Tp::default(), 4).unwrap();
        assert!(oracle.recovered(Tp::default(), 3).is_err());
    }
}
