//! Bounded memory by permits: who wants to hold bytes for a client asks here first.
//!
//! ```text
//! connection: length prefix read -> RequestBudget::try_take(len) -> body read -> answer leaves -> permit dropped
//!                                        | not enough
//!                                        v
//!                                   socket is not read until somebody gives bytes back
//! ```
//!
//! Small requests (heartbeats, commits, metadata) draw from a share of their own, so that a few clients that announce
//! large bodies and then dawdle cannot keep groups from heartbeating.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests up to this size are "small", bytes.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// The small requests' part of the budget: one in this many.
const SMALL_SHARE: usize = 8;

/// Bytes that are held for a client; given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    bytes: OwnedSemaphorePermit,
}

impl Permit {
    /// Gives back what goes beyond `bytes`; all of it for none.
    pub(crate) fn shrink_to(mut self, bytes: usize) -> Option<Self> {
        let excess = self.bytes.num_permits().saturating_sub(bytes);
        drop(self.bytes.split(excess));
        (bytes > 0).then_some(self)
    }
}

/// A wait for bytes that were not there.
pub(crate) type Waiting = Pin<Box<dyn Future<Output = Permit> + Send>>;

/// A pool of bytes, shared by all connections.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pool: Arc<Semaphore>,
    capacity: usize,
}

impl Budget {
    /// Creates a pool of `capacity` bytes (at least 1, at most what a semaphore counts in one request: 4 GiB).
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, u32::MAX as usize);
        Self {
            pool: Arc::new(Semaphore::new(capacity)),
            capacity,
        }
    }

    /// Takes `bytes` if they are there. More than the whole pool counts as the whole pool, so that a single large
    /// request can always be served when it is alone.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Permit> {
        let permits = self.permits(bytes);
        Arc::clone(&self.pool)
            .try_acquire_many_owned(permits)
            .ok()
            .map(|bytes| Permit { bytes })
    }

    /// Waits for `bytes`; first come, first served.
    pub(crate) async fn take(&self, bytes: usize) -> Permit {
        let permits = self.permits(bytes);
        let bytes = Arc::clone(&self.pool).acquire_many_owned(permits).await;
        Permit {
            bytes: bytes.expect("the pool is never closed"),
        }
    }

    /// Bytes that are not taken.
    #[cfg(test)]
    pub(crate) fn available(&self) -> usize {
        self.pool.available_permits()
    }

    fn permits(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.clamp(1, self.capacity)).unwrap_or(u32::MAX)
    }
}

/// The memory for request bodies of all connections.
#[derive(Clone, Debug)]
pub(crate) struct RequestBudget {
    small: Budget,
    large: Budget,
}

impl RequestBudget {
    /// Divides `capacity` bytes between small requests and the rest.
    pub(crate) fn new(capacity: usize) -> Self {
        let small = (capacity / SMALL_SHARE).max(1);
        Self {
            small: Budget::new(small),
            large: Budget::new(capacity.saturating_sub(small)),
        }
    }

    /// Takes room for a request of `bytes`, if it is there. A small request may have of the large share as well.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Permit> {
        if bytes > SMALL_BYTES_MAX {
            return self.large.try_take(bytes);
        }
        self.small.try_take(bytes).or_else(|| self.large.try_take(bytes))
    }

    /// A wait for room, to be polled by the connection.
    pub(crate) fn waiting(&self, bytes: usize) -> Waiting {
        let pool = self.pool(bytes).clone();
        Box::pin(async move { pool.take(bytes).await })
    }

    /// Bytes that are not taken.
    #[cfg(test)]
    pub(crate) fn available(&self) -> usize {
        self.small.available() + self.large.available()
    }

    fn pool(&self, bytes: usize) -> &Budget {
        if bytes <= SMALL_BYTES_MAX {
            &self.small
        } else {
            &self.large
        }
    }
}

/// A permit that is taken at once or waited for.
#[derive(Default)]
pub(crate) enum Claim {
    /// Nothing asked.
    #[default]
    Idle,
    /// Asked; not there yet.
    Waiting(Waiting),
    /// Granted.
    Held(Permit),
}

impl Claim {
    /// Asks once, then drives the wait.
    pub(crate) fn poll_held(
        &mut self,
        cx: &mut Context<'_>,
        budget: &RequestBudget,
        bytes: usize,
    ) -> Poll<()> {
        if matches!(self, Self::Idle) {
            *self = match budget.try_take(bytes) {
                Some(permit) => Self::Held(permit),
                None => Self::Waiting(budget.waiting(bytes)),
            };
        }
        if let Self::Waiting(waiting) = self {
            match waiting.as_mut().poll(cx) {
                Poll::Ready(permit) => *self = Self::Held(permit),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Hands the permit over and is idle again.
    pub(crate) fn hand_over(&mut self) -> Option<Permit> {
        match std::mem::take(self) {
            Self::Held(permit) => Some(permit),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Whether a permit is waited for.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_come_back_when_the_permit_is_dropped() {
        let budget = Budget::new(100);
        let first = budget.try_take(70).expect("70 of 100");
        assert!(budget.try_take(31).is_none());
        let waiting = budget.take(31);
        drop(first);
        drop(waiting.await);
        assert_eq!(budget.available(), 100);
    }

    #[test]
    fn a_request_larger_than_the_pool_takes_all_of_it() {
        let budget = Budget::new(100);
        let all = budget.try_take(1_000).expect("clamped");
        assert_eq!(budget.available(), 0);
        drop(all);
        assert_eq!(budget.available(), 100);
    }

    #[test]
    fn large_requests_leave_the_small_share_alone() {
        let budget = RequestBudget::new(8 << 20);
        let _all = budget.try_take(7 << 20).expect("all of the large share");
        assert!(budget.try_take(SMALL_BYTES_MAX + 1).is_none());
        assert!(budget.try_take(100).is_some());
    }

    #[test]
    fn small_requests_use_what_large_ones_leave() {
        let budget = RequestBudget::new(8 << 20);
        let held: Vec<_> = std::iter::from_fn(|| budget.try_take(SMALL_BYTES_MAX)).collect();
        assert_eq!(held.len(), (8 << 20) / SMALL_BYTES_MAX);
        assert_eq!(budget.available(), 0);
    }
}
