//! What reading and counting slices has cost since the start, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use super::scan_cache::Cost;

/// Counters that only grow; each is exact, but they say nothing about each other at one instant.
#[derive(Debug, Default)]
pub(super) struct Totals {
    read: AtomicU64,
    opened: AtomicU64,
    delivered: AtomicU64,
}

impl Totals {
    pub(super) fn add(&self, cost: Cost) {
        for (total, more) in [
            (&self.read, cost.read),
            (&self.opened, cost.opened),
            (&self.delivered, cost.delivered),
        ] {
            total.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> Cost {
        Cost {
            read: self.read.load(Ordering::Relaxed),
            opened: self.opened.load(Ordering::Relaxed),
            delivered: self.delivered.load(Ordering::Relaxed),
        }
    }
}
