//! The way down: one flag, and everybody who sleeps is told.
//!
//! ```text
//! running --drain()--> draining: nothing new is accepted, parked fetches are answered with what there is, new
//!                      produces are refused with a code that clients retry, connections close when they are idle
//!         --cut()----> cut: connections close at once
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use tokio::sync::watch;

/// How far down the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// In service.
    Running = 0,
    /// Ends, in good order.
    Draining = 1,
    /// Connections are cut.
    Cut = 2,
}

/// The flag, shared by all.
#[derive(Debug)]
pub(crate) struct Shutdown {
    phase: AtomicU8,
    /// For tasks that are written as ordinary async code.
    watch: watch::Sender<Phase>,
    /// For connections, which are polled by hand: a watch per connection would cost each poll a lock.
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    next: u64,
    wakers: HashMap<u64, Waker>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            phase: AtomicU8::new(Phase::Running as u8),
            watch: watch::Sender::new(Phase::Running),
            sleepers: Mutex::default(),
        }
    }
}

impl Shutdown {
    /// The phase now.
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Cut,
        }
    }

    /// Goes on to `phase` (never back) and wakes everybody.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.watch.send_if_modified(|now| {
            let changed = *now < phase;
            *now = phase.max(*now);
            changed
        });
        let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.wakers.values().for_each(Waker::wake_by_ref);
    }

    /// Resolves once `phase` is reached.
    pub(crate) async fn reached(&self, phase: Phase) {
        let mut watch = self.watch.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = watch.wait_for(|now| *now >= phase).await;
    }

    /// Has the task of `cx` woken at each change, until the ticket is dropped.
    pub(crate) fn sleeper(self: &Arc<Self>, cx: &Context<'_>) -> Sleeper {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        let id = sleepers.next;
        sleepers.next += 1;
        sleepers.wakers.insert(id, cx.waker().clone());
        Sleeper {
            id,
            shutdown: Arc::clone(self),
        }
    }
}

/// A registered task.
#[derive(Debug)]
pub(crate) struct Sleeper {
    id: u64,
    shutdown: Arc<Shutdown>,
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self
            .shutdown
            .sleepers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sleepers.wakers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_only_go_forward_and_reach_everybody() {
        let shutdown = Arc::new(Shutdown::default());
        let waiting = tokio::spawn({
            let shutdown = Arc::clone(&shutdown);
            async move { shutdown.reached(Phase::Draining).await }
        });
        shutdown.enter(Phase::Cut);
        shutdown.enter(Phase::Draining);
        assert_eq!(shutdown.phase(), Phase::Cut);
        waiting.await.unwrap();
        shutdown.reached(Phase::Cut).await;
    }

    #[test]
    fn a_dropped_sleeper_is_forgotten() {
        let shutdown = Arc::new(Shutdown::default());
        let cx = Context::from_waker(Waker::noop());
        let sleeper = shutdown.sleeper(&cx);
        assert_eq!(shutdown.sleepers.lock().unwrap().wakers.len(), 1);
        drop(sleeper);
        assert!(shutdown.sleepers.lock().unwrap().wakers.is_empty());
    }
}
