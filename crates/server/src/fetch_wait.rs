//! Fetches that wait for records: parked on the logs they read, woken by the commit that moves a high watermark.
//!
//! A fetch that found nothing registers *under the lock under which it looked*, and the commit listener moves high
//! watermarks under the same lock, so that no wake-up is lost and nothing is polled. One commit group wakes a fetch
//! once, however many of its partitions moved. Whoever is woken looks again; if that is not enough for its `min_bytes`
//! it registers anew.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_core::ids::LogId;
use tokio::sync::Notify;

/// One parked fetch.
#[derive(Debug)]
pub(crate) struct Parked {
    id: u64,
    notify: Notify,
}

impl Parked {
    /// Resolves when one of its logs has moved, also if that was before the call.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}

/// Who waits on which log.
#[derive(Debug, Default)]
pub(crate) struct FetchWaits {
    next: u64,
    logs: HashMap<LogId, Vec<Arc<Parked>>>,
}

impl FetchWaits {
    /// Parks a fetch on `logs`. It must be taken out again by [`FetchWaits::leave`] with the same logs.
    pub(crate) fn park(&mut self, logs: &[LogId]) -> Arc<Parked> {
        let parked = Arc::new(Parked {
            id: self.next,
            notify: Notify::new(),
        });
        self.next += 1;
        for log in logs {
            self.logs.entry(*log).or_default().push(Arc::clone(&parked));
        }
        parked
    }

    /// Wakes all that wait on `log`.
    pub(crate) fn wake(&mut self, log: LogId) {
        // Entries of other logs stay until their fetch leaves, which it does when it has run.
        if let Some(waiting) = self.logs.get_mut(&log) {
            waiting.drain(..).for_each(|parked| parked.notify.notify_one());
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&mut self) {
        for (_, waiting) in self.logs.drain() {
            waiting.iter().for_each(|parked| parked.notify.notify_one());
        }
    }

    /// Takes a fetch out.
    pub(crate) fn leave(&mut self, parked: &Parked, logs: &[LogId]) {
        for log in logs {
            if let Some(waiting) = self.logs.get_mut(log) {
                waiting.retain(|other| other.id != parked.id);
                if waiting.is_empty() {
                    self.logs.remove(log);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fetch_is_woken_by_any_of_its_logs_and_leaves_nothing_behind() {
        let mut waits = FetchWaits::default();
        let both = [LogId(1), LogId(2)];
        let first = waits.park(&both);
        let second = waits.park(&[LogId(2)]);
        waits.wake(LogId(1));
        first.woken().await;
        waits.leave(&first, &both);
        waits.wake(LogId(2));
        second.woken().await;
        waits.leave(&second, &[LogId(2)]);
        assert!(waits.logs.values().all(Vec::is_empty));
    }

    #[tokio::test]
    async fn everybody_is_woken_at_the_end() {
        let mut waits = FetchWaits::default();
        let parked: Vec<_> = (0..5).map(|n| waits.park(&[LogId(n), LogId(7)])).collect();
        waits.wake_all();
        for one in parked {
            one.woken().await;
        }
        assert!(waits.logs.is_empty());
    }
}
