//! What was read from disk of late, verified: the rest of a stretch of which a reader took a part, and what was read ahead
//! of one.
//!
//! ```text
//! reader --miss--> begin (waits while somebody else reads the place) -> room -> read, verify -> insert -> end
//! ```
//!
//! The bound holds for the memory itself: a stretch that has left the cache counts until the last answer made of it has
//! left, and without room nothing is kept or read ahead. A reader always gets its own bytes, room or not.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anabranch_core::ids::LogId;
use bytes::Bytes;

/// A place of a log in a segment: epoch, log, position.
type Key = (u64, LogId, u32);

/// A bounded cache of stretches: runs of one log that were read with one read.
#[derive(Debug)]
pub(crate) struct ReadCache {
    inner: Mutex<Inner>,
    /// Somebody's read has ended.
    ended: Condvar,
    used: Arc<AtomicUsize>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the place of their first run.
    stretches: BTreeMap<Key, Stretch>,
    by_age: BTreeMap<u64, Key>,
    tick: u64,
    /// What is being read.
    reading: Vec<Place>,
}

#[derive(Debug)]
struct Stretch {
    /// Position and payload of each run, ascending.
    runs: Vec<(u32, Bytes)>,
    age: u64,
}

/// A part of a segment that somebody reads for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) epoch: u64,
    pub(crate) log: LogId,
    pub(crate) positions: Range<usize>,
}

impl Place {
    fn meets(&self, other: &Place) -> bool {
        self.epoch == other.epoch
            && self.log == other.log
            && self.positions.start < other.positions.end
            && other.positions.start < self.positions.end
    }
}

/// Memory that was granted; given back when dropped.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A read under way: others who want the same place wait until it is dropped.
pub(crate) struct Turn<'a> {
    cache: &'a ReadCache,
    place: Place,
    /// Whether somebody else read the place meanwhile: it may be in the cache now.
    pub(crate) waited: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inner = self.cache.lock();
        if let Some(at) = inner.reading.iter().position(|place| *place == self.place) {
            inner.reading.swap_remove(at);
        }
        drop(inner);
        self.cache.ended.notify_all();
    }
}

impl ReadCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        ReadCache {
            inner: Mutex::default(),
            ended: Condvar::new(),
            used: Arc::default(),
            bytes_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most that it holds.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Memory in use, with what answers still hold.
    pub(crate) fn bytes(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// The payload of the run at a position, if it is here.
    pub(crate) fn get(&self, epoch: u64, log: LogId, position: u32) -> Option<Bytes> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let (key, stretch) = inner
            .stretches
            .range_mut((epoch, log, 0)..=(epoch, log, position))
            .next_back()?;
        let at = stretch
            .runs
            .binary_search_by_key(&position, |(position, _)| *position)
            .ok()?;
        inner.by_age.remove(&stretch.age);
        inner.tick += 1;
        stretch.age = inner.tick;
        inner.by_age.insert(inner.tick, *key);
        stretch.runs.get(at).map(|(_, payload)| payload.clone())
    }

    /// Takes the turn to read a place; waits while another reads a part of it.
    pub(crate) fn begin(&self, place: Place) -> Turn<'_> {
        let mut inner = self.lock();
        let mut waited = false;
        while inner.reading.iter().any(|other| other.meets(&place)) {
            waited = true;
            inner = self.ended.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.reading.push(place.clone());
        Turn {
            cache: self,
            place,
            waited,
        }
    }

    /// Room for `bytes`; what was used least of late goes for it. `None` if answers hold too much.
    pub(crate) fn room(&self, bytes: usize) -> Option<Room> {
        let mut inner = self.lock();
        while self.bytes() + bytes > self.bytes_max {
            let (_, key) = inner.by_age.pop_first()?;
            // Memory that no answer holds is given back here.
            inner.stretches.remove(&key);
        }
        // Only added to under this lock, so the bound holds.
        self.used.fetch_add(bytes, Ordering::AcqRel);
        Some(Room {
            bytes,
            used: Arc::clone(&self.used),
        })
    }

    /// Keeps a stretch whose memory has its room.
    pub(crate) fn insert(&self, epoch: u64, log: LogId, runs: Vec<(u32, Bytes)>) {
        let Some((first, _)) = runs.first() else { return };
        let key = (epoch, log, *first);
        let mut inner = self.lock();
        inner.tick += 1;
        let age = inner.tick;
        inner.by_age.insert(age, key);
        if let Some(old) = inner.stretches.insert(key, Stretch { runs, age }) {
            inner.by_age.remove(&old.age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Held {
        bytes: Vec<u8>,
        _room: Room,
    }

    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    /// Keeps two runs of 10 bytes at `position` and behind it.
    fn keep(cache: &ReadCache, position: u32) -> bool {
        let Some(room) = cache.room(20) else { return false };
        let held = Bytes::from_owner(Held {
            bytes: vec![7; 20],
            _room: room,
        });
        let runs = vec![(position, held.slice(..10)), (position + 10, held.slice(10..))];
        cache.insert(1, LogId(1), runs);
        true
    }

    #[test]
    fn each_run_of_a_stretch_is_found_and_nothing_else() {
        let cache = ReadCache::new(100);
        assert!(keep(&cache, 100));
        assert_eq!(cache.get(1, LogId(1), 110).unwrap().len(), 10);
        assert!(cache.get(1, LogId(1), 100).is_some());
        for (epoch, log, position) in [(1, 1, 99), (1, 1, 105), (1, 1, 120), (2, 1, 100), (1, 2, 100)] {
            assert!(cache.get(epoch, LogId(log), position).is_none());
        }
    }

    #[test]
    fn the_least_recently_used_goes_and_the_bound_holds() {
        let cache = ReadCache::new(50);
        assert!(keep(&cache, 100) && keep(&cache, 200));
        assert!(cache.get(1, LogId(1), 100).is_some());
        assert!(keep(&cache, 300));
        assert_eq!(cache.bytes(), 40);
        assert!(cache.get(1, LogId(1), 200).is_none());
        assert!(cache.get(1, LogId(1), 100).is_some() && cache.get(1, LogId(1), 300).is_some());
    }

    #[test]
    fn what_an_answer_holds_counts_until_it_has_left() {
        let cache = ReadCache::new(50);
        assert!(keep(&cache, 100) && keep(&cache, 200));
        let answer = [100, 200].map(|position| cache.get(1, LogId(1), position).unwrap());
        assert!(!keep(&cache, 300), "all of it is held by answers");
        assert_eq!(cache.bytes(), 40);
        drop(answer);
        assert_eq!(cache.bytes(), 0);
        assert!(keep(&cache, 300));
    }

    #[test]
    fn who_wants_a_place_that_is_being_read_waits_for_it() {
        let cache = ReadCache::new(100);
        let place = |positions| Place {
            epoch: 1,
            log: LogId(1),
            positions,
        };
        let first = cache.begin(place(0..100));
        assert!(!cache.begin(place(100..200)).waited, "another place");
        let (started, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                started.store(1, Ordering::SeqCst);
                drop(cache.begin(place(50..60)));
                done.store(1, Ordering::SeqCst);
            });
            while started.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(done.load(Ordering::SeqCst), 0, "the place is being read");
            drop(first);
        });
        assert_eq!(done.load(Ordering::SeqCst), 1);
        assert!(cache.lock().reading.is_empty());
    }
}
