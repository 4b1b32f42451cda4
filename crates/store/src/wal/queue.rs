//! The queue before the committer. Appending is a push under a short lock; the committer takes all at once, so there is one
//! wake-up per group and none while it is busy.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anabranch_core::ids::Lsn;

use super::Entry;

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<Entry>,
    /// Sequence number of the next entry to be pushed.
    next_lsn: u64,
    committer_waits: bool,
    stop: bool,
}

/// Entries in the order of their sequence numbers.
#[derive(Debug)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    filled: Condvar,
}

/// What woke the committer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Work,
    Stop,
}

impl Queue {
    pub(crate) fn new(next_lsn: u64) -> Self {
        Queue {
            inner: Mutex::new(Inner {
                next_lsn,
                ..Inner::default()
            }),
            filled: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry and gives it the next sequence number.
    pub(crate) fn push(&self, entry: Entry) -> Lsn {
        let mut inner = self.lock();
        let lsn = inner.next_lsn;
        inner.next_lsn += 1;
        inner.entries.push(entry);
        let wake = std::mem::take(&mut inner.committer_waits);
        drop(inner);
        if wake {
            self.filled.notify_one();
        }
        Lsn(lsn)
    }

    /// The last sequence number given.
    pub(crate) fn last(&self) -> Lsn {
        Lsn(self.lock().next_lsn - 1)
    }

    /// Moves everything behind what is in `pending`.
    pub(crate) fn take(&self, pending: &mut VecDeque<Entry>) {
        pending.extend(self.lock().entries.drain(..));
    }

    /// Waits until there is an entry, or the end.
    pub(crate) fn wait(&self) -> Wake {
        let mut inner = self.lock();
        loop {
            if inner.stop {
                return Wake::Stop;
            }
            if !inner.entries.is_empty() {
                return Wake::Work;
            }
            inner.committer_waits = true;
            inner = self.filled.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends all waiting, now and later.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.filled.notify_all();
    }

    /// Whether [`Self::stop`] was called.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stop
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn numbers_follow_the_order_of_pushes() {
        let queue = Queue::new(5);
        assert_eq!(queue.last(), Lsn(4));
        assert_eq!(queue.push(Entry::State(vec![1])), Lsn(5));
        assert_eq!(queue.push(Entry::State(vec![2])), Lsn(6));
        let mut pending = VecDeque::new();
        queue.take(&mut pending);
        assert!(matches!(&pending[0], Entry::State(bytes) if bytes == &[1]));
        assert_eq!((pending.len(), queue.last()), (2, Lsn(6)));
    }

    #[test]
    fn a_waiting_committer_is_woken_by_a_push_and_by_the_end() {
        let queue = Arc::new(Queue::new(1));
        let waiter = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let first = queue.wait();
                queue.take(&mut VecDeque::new());
                (first, queue.wait())
            }
        });
        queue.push(Entry::State(vec![]));
        // The waiter takes the entry; only then may the end come.
        while !queue.lock().entries.is_empty() {
            std::thread::yield_now();
        }
        queue.stop();
        assert_eq!(waiter.join().unwrap(), (Wake::Work, Wake::Stop));
    }
}
