//! Reading ahead: who reads a log from disk piece by piece finds the next pieces in memory.
//!
//! ```text
//! an answer from disk or from the read cache: served(log, from, next)
//!      | it began where an earlier one of that log ended: a stream
//!      v
//! the store's read-ahead thread: reads until the stream's window behind `next` is in the read cache
//! ```
//!
//! Without the thread (manual mode) nothing is read ahead.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anabranch_core::ids::{LogId, Offset};

use super::Range;
use super::files::READ_BYTES_MAX;
use crate::index::Run;
use crate::segment::Segment;
use crate::shared::Shared;

/// How far ahead of its reader a stream is read, bytes; less if many streams share the read cache.
const WINDOW_BYTES_MAX: usize = 8 << 20;
/// The least window: less than a usual fetch would not help it.
const WINDOW_BYTES_MIN: usize = 1 << 20;
/// Streams that are known at a time; the ones that were not served for longest are forgotten.
const STREAMS_MAX: usize = 16;
/// A stream that was not served while others were served so often has ended.
const QUIET_MAX: u64 = 256;

/// A reader that goes through a log.
#[derive(Debug)]
struct Stream {
    id: u64,
    log: LogId,
    /// Where it goes on.
    next: Offset,
    served_at: u64,
}

#[derive(Debug, Default)]
struct Inner {
    streams: Vec<Stream>,
    /// Streams to be read ahead of, by id.
    jobs: VecDeque<u64>,
    last_id: u64,
    served: u64,
    /// There is a thread that does the jobs.
    running: bool,
    stopped: bool,
}

/// Who is read ahead of.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl ReadAhead {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a reader got what lies between two offsets, and not from the tail cache alone.
    pub(super) fn served(&self, log: LogId, from: Offset, next: Offset) {
        let mut inner = self.lock();
        inner.served += 1;
        let served_at = inner.served;
        let known = inner
            .streams
            .iter_mut()
            .find(|stream| stream.log == log && stream.next == from);
        if let Some(stream) = known {
            (stream.next, stream.served_at) = (next, served_at);
            let id = stream.id;
            if inner.running && !inner.jobs.contains(&id) {
                inner.jobs.push_back(id);
                drop(inner);
                self.changed.notify_one();
            }
            return;
        }
        inner
            .streams
            .retain(|stream| stream.served_at + QUIET_MAX > served_at);
        if inner.streams.len() >= STREAMS_MAX
            && let Some((quietest, _)) = inner
                .streams
                .iter()
                .enumerate()
                .min_by_key(|(_, stream)| stream.served_at)
        {
            inner.streams.swap_remove(quietest);
        }
        inner.last_id += 1;
        let id = inner.last_id;
        inner.streams.push(Stream {
            id,
            log,
            next,
            served_at,
        });
    }

    /// From now on there is a thread.
    pub(crate) fn start(&self) {
        self.lock().running = true;
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// The next stream to read ahead of; `None` at the end.
    fn job(&self) -> Option<u64> {
        let mut inner = self.lock();
        loop {
            if inner.stopped {
                return None;
            }
            if let Some(id) = inner.jobs.pop_front() {
                return Some(id);
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Where a stream goes on by now, and how many bytes from there on are to be in memory.
    fn window(&self, id: u64, cache_bytes: usize) -> Option<(LogId, Offset, usize)> {
        let inner = self.lock();
        let stream = inner.streams.iter().find(|stream| stream.id == id)?;
        // Half of the cache is for windows, the other half for what was just read.
        let share = cache_bytes / 2 / inner.streams.len().max(1);
        let bytes = share.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        (!inner.stopped).then_some((stream.log, stream.next, bytes))
    }
}

/// The body of the thread: until [`ReadAhead::stop`].
pub(crate) fn run(shared: &Shared) {
    while let Some(id) = shared.read_ahead.job() {
        while let Some((log, from, bytes)) = shared.read_ahead.window(id, shared.read_cache.bytes_max()) {
            let window = Range {
                from,
                upto: Offset::MAX,
                max_bytes: bytes,
                at_least_one: true,
            };
            if !shared.read_one_ahead(log, window) {
                break;
            }
        }
    }
}

impl Shared {
    /// Reads the first part of a window that is not in memory. False if there is none, or it cannot be had: whatever is
    /// wrong will be told to the reader who gets there.
    fn read_one_ahead(&self, log: LogId, window: Range) -> bool {
        let Ok(runs) = self.plan_loaded(log, window) else {
            return false;
        };
        let in_memory = |(segment, run): &(Arc<Segment>, Run)| self.in_memory(log, segment, run).is_some();
        let Some(missing) = runs.iter().position(|run| !in_memory(run)) else {
            return false;
        };
        let left = runs.get(missing..).unwrap_or(&[]);
        matches!(self.load(log, left, READ_BYTES_MAX, true), Ok(payloads) if !payloads.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_thread() -> ReadAhead {
        let ahead = ReadAhead::default();
        ahead.start();
        ahead
    }

    #[test]
    fn only_a_reader_that_goes_on_where_it_stopped_is_read_ahead_of() {
        let ahead = with_thread();
        ahead.served(LogId(1), 0, 10);
        ahead.served(LogId(2), 10, 20);
        ahead.served(LogId(1), 50, 60);
        assert!(ahead.lock().jobs.is_empty());
        ahead.served(LogId(1), 10, 30);
        ahead.served(LogId(1), 30, 40);
        let id = ahead.job().unwrap();
        assert!(ahead.lock().jobs.is_empty(), "one job for a stream at a time");
        assert_eq!(ahead.window(id, 32 << 20), Some((LogId(1), 40, (16 << 20) / 3)));
    }

    #[test]
    fn streams_and_their_windows_are_bounded() {
        let ahead = with_thread();
        for log in 0..100 {
            ahead.served(LogId(log), 0, 10);
        }
        assert_eq!(ahead.lock().streams.len(), STREAMS_MAX);
        ahead.served(LogId(99), 10, 20);
        let id = ahead.job().unwrap();
        assert_eq!(ahead.window(id, 1 << 20), Some((LogId(99), 20, WINDOW_BYTES_MIN)));
        for offset in 0..1000 {
            ahead.served(LogId(99), 20 + offset, 21 + offset);
        }
        ahead.served(LogId(7), 500, 510);
        assert_eq!(ahead.lock().streams.len(), 2, "streams that have ended make room");
    }

    #[test]
    fn without_a_thread_and_after_the_end_there_is_no_job() {
        let ahead = ReadAhead::default();
        ahead.served(LogId(1), 0, 10);
        ahead.served(LogId(1), 10, 20);
        assert!(ahead.lock().jobs.is_empty());
        ahead.stop();
        assert_eq!(ahead.job(), None);
    }
}
