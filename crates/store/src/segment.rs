//! What the store knows in memory of a segment file.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::format::header::SegmentKind;
use crate::format::{self, ClusterId};

/// A segment. Shared between the index, the readers and those who free and pack.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) seq: u64,
    /// Which use of the file; what caches are keyed by.
    pub(crate) epoch: u64,
    /// What its checksums start from.
    pub(crate) seed: u32,
    pub(crate) kind: SegmentKind,
    /// The first of the segments that it stands for; its own number if it was not packed.
    pub(crate) replaces_from: u64,
    /// Length of the file.
    pub(crate) file_bytes: u64,
    /// First and last entry; `(1, 0)` while it is being written, and if it has none.
    pub(crate) lsns: (u64, u64),
    /// Bytes of batches that are not yet below their log's start. Meaningful once sealed.
    pub(crate) live_bytes: AtomicU64,
    /// Set, under the index's lock, before the file is given away. A reader who failed looks here and tries again.
    pub(crate) retired: AtomicBool,
    /// Set when packing met damage in it: its bytes stay where they are.
    pub(crate) unpackable: AtomicBool,
}

impl Segment {
    pub(crate) fn new(
        cluster: &ClusterId,
        seq: u64,
        epoch: u64,
        kind: SegmentKind,
        file_bytes: u64,
        lsns: (u64, u64),
    ) -> Self {
        Segment {
            seq,
            epoch,
            seed: format::seed(cluster, epoch),
            kind,
            replaces_from: seq,
            file_bytes,
            lsns,
            live_bytes: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            unpackable: AtomicBool::new(false),
        }
    }

    /// The same file, with other length or entries.
    pub(crate) fn with(&self, file_bytes: u64, lsns: (u64, u64)) -> Self {
        Segment {
            seq: self.seq,
            epoch: self.epoch,
            seed: self.seed,
            kind: self.kind,
            replaces_from: self.replaces_from,
            file_bytes,
            lsns,
            live_bytes: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            unpackable: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Live bytes in percent of the file.
    pub(crate) fn live_percent(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed).saturating_mul(100) / self.file_bytes.max(1)
    }
}
