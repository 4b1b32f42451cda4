//! Batches with their records found, shared by all readers of a log.
//!
//! The unit is a *stretch*: consecutive batches of about 64 KiB, copied out of what the store gave. The copy costs a
//! fraction of the walk, and without it a cached batch would keep the whole read or commit group alive that it came in,
//! so that the budget would bound nothing. A stretch is opened, that is, decompressed and walked, when the first reader
//! gets to it, and by that reader alone; the others find it open.
//!
//! One reader at a time loads batches of a log. The others of that log wait for it, since most likely it loads what they
//! want, too; those who may not wait are told to come back on a thread that may.
//!
//! What was not used for longest goes first. To be loaded counts as a use, or what was loaded ahead would go before what
//! everybody has read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use anabranch_core::ids::{LogId, Offset};
use anabranch_core::limits::{DECOMPRESSED_BATCH_BYTES_MAX, DECOMPRESSION_RATIO_MAX};
use anabranch_wire::batch::{
    BatchError, BatchHeader, BatchIter, DecompressLimits, IndexedBatch, index_records,
};
use bytes::Bytes;

use super::source::{Source, SourceError};
use super::totals::Totals;

/// Bytes of batches that make a stretch; a larger batch is one alone.
const STRETCH_BYTES: usize = 64 << 10;
/// Most bytes that one load asks the source for: the size of a large commit group, which the store reads and verifies as a
/// whole whatever part of it is wanted.
const LOAD_BYTES_MAX: usize = 4 << 20;
/// A load is at most this share of the cache, so that it does not drive out what it brings in.
const LOAD_SHARE: usize = 4;
/// What a stretch and a batch in it take beside their bytes, about.
const STRETCH_OVERHEAD: usize = 256;

/// What reading cost, in bytes. The ratio of the first two to the last is the read amplification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Given by the source.
    pub read: u64,
    /// Records walked for the first time, decompressed.
    pub opened: u64,
    /// In answers.
    pub delivered: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.opened += other.opened;
        self.delivered += other.delivered;
    }
}

/// What is in a stored batch.
#[derive(Debug)]
pub(super) enum Content {
    /// Records, found.
    Records(IndexedBatch),
    /// Control records: of no slot.
    Control,
    /// Records that cannot be read.
    Unreadable(BatchError),
}

/// A batch that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) header: BatchHeader,
    pub(super) stored: Bytes,
    pub(super) content: Content,
}

impl Opened {
    /// Opens one stored batch. What is wrong with its records is a content like any other.
    pub(super) fn new(header: BatchHeader, stored: Bytes) -> Self {
        let limits = DecompressLimits {
            bytes_max: DECOMPRESSED_BATCH_BYTES_MAX,
            ratio_max: DECOMPRESSION_RATIO_MAX,
        };
        let content = if header.is_control() {
            Content::Control
        } else {
            match index_records(&stored, &limits) {
                Ok(index) => Content::Records(index),
                Err(error) => Content::Unreadable(error),
            }
        };
        Self {
            header,
            stored,
            content,
        }
    }

    /// Bytes of its records, decompressed: what looking through it costs.
    pub(super) fn body_bytes(&self) -> usize {
        match &self.content {
            Content::Records(index) => index.body_bytes(),
            Content::Control | Content::Unreadable(_) => self.stored.len(),
        }
    }

    fn memory_bytes(&self) -> usize {
        let index = match &self.content {
            Content::Records(index) => index.memory_bytes(),
            Content::Control | Content::Unreadable(_) => 0,
        };
        size_of::<Self>() + index
    }
}

/// Consecutive batches.
#[derive(Debug)]
pub(super) struct Stretch {
    first: Offset,
    last: Offset,
    bytes: Bytes,
    batches: OnceLock<Box<[Opened]>>,
}

impl Stretch {
    fn open(bytes: &Bytes) -> Box<[Opened]> {
        BatchIter::new(bytes)
            .flatten()
            .map(|(at, header)| Opened::new(header, bytes.slice(at..at + header.size())))
            .collect()
    }

    /// The offset behind its last batch.
    pub(super) fn next_offset(&self) -> Offset {
        self.last.saturating_add(1)
    }
}

/// Opened stretches of logs, within a budget. Shared by all threads.
#[derive(Debug)]
pub struct ScanCache {
    inner: Mutex<Inner>,
    loaded: Condvar,
    bytes_max: usize,
    totals: Totals,
}

#[derive(Debug, Default)]
struct Inner {
    stretches: BTreeMap<Key, Held>,
    /// The same by time of last use, oldest first.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    /// Logs that somebody is loading.
    loading: BTreeSet<LogId>,
}

/// A log, and the first offset of a stretch.
type Key = (LogId, Offset);

#[derive(Debug)]
struct Held {
    stretch: Arc<Stretch>,
    bytes: usize,
    last_use: u64,
}

impl Inner {
    fn find(&mut self, log: LogId, offset: Offset) -> Option<Arc<Stretch>> {
        let reach = (log, Offset::MIN)..=(log, offset);
        let (key, held) = self.stretches.range_mut(reach).next_back()?;
        if held.stretch.last < offset {
            return None;
        }
        self.uses += 1;
        self.by_use.remove(&held.last_use);
        self.by_use.insert(self.uses, *key);
        held.last_use = self.uses;
        Some(Arc::clone(&held.stretch))
    }

    fn insert(&mut self, log: LogId, stretch: Arc<Stretch>, bytes_max: usize) {
        let key = (log, stretch.first);
        let bytes = stretch.bytes.len() + STRETCH_OVERHEAD;
        self.remove(key);
        self.uses += 1;
        self.by_use.insert(self.uses, key);
        let held = Held {
            stretch,
            bytes,
            last_use: self.uses,
        };
        self.stretches.insert(key, held);
        self.bytes += bytes;
        self.evict(bytes_max);
    }

    /// Adds what opening brought.
    fn charge(&mut self, key: Key, stretch: &Arc<Stretch>, extra: usize, bytes_max: usize) {
        let held = self.stretches.get_mut(&key);
        if let Some(held) = held.filter(|held| Arc::ptr_eq(&held.stretch, stretch)) {
            held.bytes += extra;
            self.bytes += extra;
            self.evict(bytes_max);
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(held) = self.stretches.remove(&key) {
            self.by_use.remove(&held.last_use);
            self.bytes -= held.bytes;
        }
    }

    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some((_, key)) = self.by_use.pop_first()
        {
            self.remove(key);
        }
    }
}

/// The right to load a log; given back when dropped, also by a panic.
struct Loading<'a> {
    cache: &'a ScanCache,
    log: LogId,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.cache.lock().loading.remove(&self.log);
        self.cache.loaded.notify_all();
    }
}

impl ScanCache {
    /// An empty cache that holds at most `bytes_max` bytes (usually
    /// [`SCAN_CACHE_BYTES_MAX`](anabranch_core::limits::SCAN_CACHE_BYTES_MAX)), indexes included.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            inner: Mutex::default(),
            loaded: Condvar::new(),
            bytes_max,
            totals: Totals::default(),
        }
    }

    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// What all reading and counting of slices has cost since the start. Its first two to its last is the read
    /// amplification, what the planner's counts read included.
    pub fn totals(&self) -> Cost {
        self.totals.get()
    }

    /// Notes what something cost. Whoever makes a [`Cost`] notes it, also if nothing comes of it.
    pub(crate) fn note(&self, cost: Cost) {
        self.totals.add(cost);
    }

    /// Forgets a log that is deleted.
    pub fn forget(&self, log: LogId) {
        let mut inner = self.lock();
        let keys: Vec<_> = inner
            .stretches
            .range((log, Offset::MIN)..=(log, Offset::MAX))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            inner.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stretch that holds `offset`, or the first one behind it; `None` if nothing ends below `upto` there. Its
    /// batches are given by [`Self::batches`]; it can begin below `offset`, and hold batches at or above `upto`.
    pub(super) fn stretch_at(
        &self,
        source: &dyn Source,
        log: LogId,
        offset: Offset,
        upto: Offset,
        cost: &mut Cost,
    ) -> Result<Option<Arc<Stretch>>, SourceError> {
        let mut inner = self.lock();
        let loading = loop {
            if let Some(found) = inner.find(log, offset) {
                return Ok(Some(found));
            }
            if inner.loading.insert(log) {
                break Loading { cache: self, log };
            }
            if !source.may_wait() {
                return Err(SourceError::NeedsDisk);
            }
            inner = self.loaded.wait(inner).unwrap_or_else(PoisonError::into_inner);
        };
        drop(inner);
        let found = self.load(source, log, offset, upto, cost);
        drop(loading);
        found
    }

    fn load(
        &self,
        source: &dyn Source,
        log: LogId,
        offset: Offset,
        upto: Offset,
        cost: &mut Cost,
    ) -> Result<Option<Arc<Stretch>>, SourceError> {
        let bytes_max = LOAD_BYTES_MAX.min(self.bytes_max / LOAD_SHARE).max(1);
        let slices = source.read(log, offset, upto, bytes_max)?;
        cost.read += slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        let mut first = None;
        for slice in &slices {
            for stretch in cut(log, offset, slice)? {
                let mut inner = self.lock();
                // From here on another reader has loaded it.
                if first.is_some() && inner.find(log, stretch.first).is_some() {
                    return Ok(first);
                }
                inner.insert(log, Arc::clone(&stretch), self.bytes_max);
                first.get_or_insert(stretch);
            }
        }
        Ok(first)
    }

    /// The batches of a stretch, opened. Who is first pays for it.
    pub(super) fn batches<'a>(&self, log: LogId, stretch: &'a Arc<Stretch>, cost: &mut Cost) -> &'a [Opened] {
        let mut opened_now = false;
        let batches = stretch.batches.get_or_init(|| {
            opened_now = true;
            Stretch::open(&stretch.bytes)
        });
        if opened_now {
            cost.opened += batches.iter().map(|batch| batch.body_bytes() as u64).sum::<u64>();
            let extra = batches.iter().map(Opened::memory_bytes).sum();
            self.lock()
                .charge((log, stretch.first), stretch, extra, self.bytes_max);
        }
        batches
    }
}

/// Cuts batches into stretches of their own memory.
fn cut(log: LogId, offset: Offset, slice: &Bytes) -> Result<Vec<Arc<Stretch>>, SourceError> {
    let mut stretches = Vec::new();
    let mut open: Option<(usize, usize, Offset, Offset)> = None;
    let close = |(start, end, first, last): (usize, usize, Offset, Offset)| {
        Arc::new(Stretch {
            first,
            last,
            bytes: Bytes::copy_from_slice(slice.get(start..end).unwrap_or_default()),
            batches: OnceLock::new(),
        })
    };
    for found in BatchIter::new(slice) {
        let (at, header) = found.map_err(|error| SourceError::NoBatch { log, offset, error })?;
        let end = at + header.size();
        open = match open {
            Some((start, _, first, _)) if end - start <= STRETCH_BYTES => {
                Some((start, end, first, header.last_offset()))
            }
            other => {
                stretches.extend(other.map(close));
                Some((at, end, header.base_offset, header.last_offset()))
            }
        };
    }
    stretches.extend(open.map(close));
    Ok(stretches)
}

#[cfg(test)]
#[path = "scan_cache_test.rs"]
mod tests;
