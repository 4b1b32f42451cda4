//! Who waits for the disk: answers leave only after what they depend on is durable.
//!
//! ```text
//! connection: front answer needs lsn 17 -> Gate::poll -> registers (17, waker)
//! commit thread: group up to lsn 40 is on disk -> Durable::advance(40) -> wakes all with lsn <= 40, in one batch
//! ```
//!
//! A connection registers its *front* answer only: everything behind it has a later turn anyway. So a group that
//! completes a thousand pipelined produces of a connection costs one wake-up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use anabranch_core::ids::Lsn;

/// The store failed for good: nothing that is not durable yet will ever be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store has failed; nothing is acknowledged any more")]
pub(crate) struct Failed;

/// How far the log is durable, and who waits for more.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    committed: AtomicU64,
    failed: AtomicBool,
    waiters: Mutex<BinaryHeap<Reverse<Waiter>>>,
}

#[derive(Debug)]
struct Waiter {
    lsn: u64,
    waker: Waker,
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.lsn == other.lsn
    }
}

impl Eq for Waiter {}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.lsn.cmp(&other.lsn)
    }
}

impl Durable {
    /// Starts with everything up to `committed` durable.
    pub(crate) fn new(committed: Lsn) -> Self {
        Self {
            committed: AtomicU64::new(committed.0),
            ..Self::default()
        }
    }

    /// The last durable entry.
    pub(crate) fn committed(&self) -> Lsn {
        Lsn(self.committed.load(Ordering::Acquire))
    }

    /// Whether the store has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until `lsn` is durable.
    pub(crate) async fn reached(&self, lsn: Lsn) -> Result<(), Failed> {
        let mut gate = Gate::default();
        std::future::poll_fn(|cx| gate.poll(self, lsn, cx)).await
    }

    /// Notes that everything up to `upto` is durable and wakes who waited for it.
    pub(crate) fn advance(&self, upto: Lsn) {
        let mut due = Vec::new();
        {
            // Stored under the lock: a waiter that registers afterwards sees the new value.
            let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
            self.committed.fetch_max(upto.0, Ordering::AcqRel);
            while waiters.peek().is_some_and(|Reverse(waiter)| waiter.lsn <= upto.0) {
                due.extend(waiters.pop().map(|Reverse(waiter)| waiter.waker));
            }
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// Notes that the store has failed and wakes everybody, to be told so.
    pub(crate) fn fail(&self) {
        let waiters = {
            let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
            self.failed.store(true, Ordering::Release);
            std::mem::take(&mut *waiters)
        };
        waiters
            .into_iter()
            .for_each(|Reverse(waiter)| waiter.waker.wake());
    }
}

/// One waiter's place in the queue; to be polled by one task only, since it registers once per LSN.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    registered: Option<Lsn>,
}

impl Gate {
    /// Ready once `lsn` is durable.
    pub(crate) fn poll(&mut self, durable: &Durable, lsn: Lsn, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        if durable.committed() >= lsn {
            return Poll::Ready(Ok(()));
        }
        if self.registered == Some(lsn) && !durable.has_failed() {
            return Poll::Pending;
        }
        let mut waiters = durable.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        if durable.committed() >= lsn {
            return Poll::Ready(Ok(()));
        }
        if durable.has_failed() {
            return Poll::Ready(Err(Failed));
        }
        waiters.push(Reverse(Waiter {
            lsn: lsn.0,
            waker: cx.waker().clone(),
        }));
        self.registered = Some(lsn);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_group_wakes_each_waiter_it_covers_once() {
        let durable = Durable::new(Lsn(10));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        let mut gates: Vec<Gate> = (0..4).map(|_| Gate::default()).collect();
        assert_eq!(gates[0].poll(&durable, Lsn(10), &cx), Poll::Ready(Ok(())));
        for (gate, lsn) in gates.iter_mut().zip([11, 12, 13, 20]) {
            assert_eq!(gate.poll(&durable, Lsn(lsn), &cx), Poll::Pending);
            assert_eq!(gate.poll(&durable, Lsn(lsn), &cx), Poll::Pending);
        }
        durable.advance(Lsn(13));
        assert_eq!(count.0.load(Ordering::SeqCst), 3);
        assert_eq!(gates[2].poll(&durable, Lsn(13), &cx), Poll::Ready(Ok(())));
        assert_eq!(gates[3].poll(&durable, Lsn(20), &cx), Poll::Pending);
    }

    #[tokio::test]
    async fn a_failure_reaches_every_waiter_but_not_what_was_durable() {
        let durable = Arc::new(Durable::new(Lsn(1)));
        let waiting = tokio::spawn({
            let durable = Arc::clone(&durable);
            async move { durable.reached(Lsn(2)).await }
        });
        while durable.waiters.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        durable.fail();
        assert_eq!(waiting.await.unwrap(), Err(Failed));
        assert_eq!(durable.reached(Lsn(1)).await, Ok(()));
        assert_eq!(durable.reached(Lsn(3)).await, Err(Failed));
    }
}
