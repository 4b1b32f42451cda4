//! A log's start moves only by what was asked for: a deletion of records, or retention; never back, and never beyond
//! what is visible. Retention by time takes nothing that is young, whatever the wall clock says.
//!
//! A deletion shows once it is durable, so a start does not go back over a crash either: a member that went on from there
//! would not come back for what is below.

use std::collections::BTreeMap;

use super::{Verdict, Violation};
use crate::message::Tp;

/// The sentence.
pub const SENTENCE: &str =
    "records are deleted only by a request or by retention, and only when they are due";

/// The retention clock may run this much faster than time; a little more is allowed for rounding.
const CLOCK_SPEED_MAX: u64 = 25;
/// It is read this seldom, and may run so fast since it was last read, milliseconds.
const READ_MS: u64 = 4_000;

/// Where starts were, and may be.
#[derive(Debug, Default)]
pub struct LogStart {
    /// The highest that was ever shown.
    shown: BTreeMap<Tp, i64>,
    allowed: BTreeMap<Tp, i64>,
}

impl LogStart {
    /// The broker shows these bounds.
    pub fn shown(&mut self, tp: Tp, start: i64, high_watermark: i64) -> Verdict {
        let before = self.shown.entry(tp).or_default();
        let allowed = self.allowed.get(&tp).copied().unwrap_or(0);
        let problem = if start < *before {
            format!("the start was {before} before")
        } else if start > high_watermark {
            format!("the high watermark is {high_watermark}")
        } else if start > allowed {
            format!("only records below {allowed} may be gone")
        } else {
            *before = start;
            return Ok(());
        };
        Err(Violation::new(
            SENTENCE,
            format!("{tp:?} starts at {start}, and {problem}"),
        ))
    }

    /// The log is back after a restart and starts here.
    pub fn recovered(&self, tp: Tp, start: i64) -> Verdict {
        let before = self.highest(tp);
        if start >= before {
            return Ok(());
        }
        let detail = format!(
            "{tp:?}: a start of {before} was shown before the restart, after it the log starts at {start}"
        );
        Err(Violation::new(SENTENCE, detail))
    }

    /// Below this, somebody was shown that nothing is there any more.
    pub fn highest(&self, tp: Tp) -> i64 {
        self.shown.get(&tp).copied().unwrap_or(0)
    }

    /// Below this, records may be gone.
    pub fn allowed(&self, tp: Tp) -> i64 {
        self.allowed.get(&tp).copied().unwrap_or(0)
    }

    /// Somebody asks, or retention decides, that records below `offset` go.
    pub fn allow(&mut self, tp: Tp, offset: i64) {
        let allowed = self.allowed.entry(tp).or_default();
        *allowed = offset.max(*allowed);
    }

    /// Retention by time alone takes a record of this age, in milliseconds that have really passed.
    pub fn aged_out(&self, tp: Tp, offset: i64, age_ms: u64, retention_ms: u64) -> Verdict {
        if (age_ms + READ_MS) * CLOCK_SPEED_MAX >= retention_ms {
            return Ok(());
        }
        let detail = format!(
            "offset {offset} of {tp:?} was deleted by retention ({retention_ms} ms) at an age of {age_ms} ms"
        );
        Err(Violation::new(SENTENCE, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_nobody_asked_for_is_noticed() {
        let (tp, mut oracle) = (Tp::default(), LogStart::default());
        oracle.shown(tp, 0, 10).unwrap();
        assert!(oracle.shown(tp, 1, 10).is_err());
        oracle.allow(tp, 5);
        oracle.shown(tp, 5, 10).unwrap();
        assert!(oracle.shown(tp, 4, 10).is_err(), "back");
        oracle.recovered(tp, 5).unwrap();
        assert!(oracle.recovered(tp, 4).is_err(), "back over a restart");
        oracle.allow(tp, 20);
        assert!(oracle.shown(tp, 11, 10).is_err(), "beyond the watermark");
        oracle.aged_out(tp, 0, 60_000, 1_000_000).unwrap();
        assert!(oracle.aged_out(tp, 0, 30_000, 1_000_000).is_err());
    }
}
