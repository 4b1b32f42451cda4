//! Ids of slices that were retired: one may name another slice only when it has rested long enough.

use std::collections::BTreeMap;

use anabranch_core::cursor::SliceId;
use anabranch_core::limits::SLICE_ID_QUARANTINE_MS;

use crate::message::Tp;

/// Since when ids rest, by the wall clock.
#[derive(Debug, Default)]
pub struct Rested {
    since_ms: BTreeMap<(Tp, SliceId), i64>,
    /// The latest that the wall clock has ever shown: it may have jumped back since an id was taken.
    wall_ms_max: i64,
}

impl Rested {
    /// The wall clock shows this.
    pub fn clock(&mut self, wall_ms: i64) {
        self.wall_ms_max = self.wall_ms_max.max(wall_ms);
    }

    /// Ids are retired.
    pub fn retired(&mut self, tp: Tp, ids: &[SliceId], at_ms: i64) {
        self.since_ms.extend(ids.iter().map(|id| ((tp, *id), at_ms)));
    }

    /// An id comes again. Says whether it may.
    pub fn takes(&mut self, tp: Tp, id: SliceId) -> bool {
        let since_ms = self.since_ms.remove(&(tp, id));
        since_ms.is_some_and(|since_ms| {
            since_ms.saturating_add_unsigned(SLICE_ID_QUARANTINE_MS) <= self.wall_ms_max
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_again_once_it_has_rested() {
        let (tp, mut rested) = (Tp::default(), Rested::default());
        let id = SliceId::new(5).unwrap();
        assert!(!rested.takes(tp, id), "not retired");
        rested.retired(tp, &[id], 1_000);
        rested.clock(SLICE_ID_QUARANTINE_MS as i64 + 999);
        assert!(!rested.takes(tp, id), "too early");
        rested.retired(tp, &[id], 1_000);
        rested.clock(SLICE_ID_QUARANTINE_MS as i64 + 1_000);
        rested.clock(0);
        assert!(rested.takes(tp, id));
        assert!(!rested.takes(tp, id), "once");
    }
}
