//! Has the next segment file ready before it is needed, so that a commit never waits for space and never runs out of it.
//!
//! A prepared segment is a freed one, whose blocks were written before, or a fresh file. A fresh file is filled with zeros
//! while commit groups are small: overwriting written blocks syncs about twice as fast as writing reserved ones. With large
//! groups that does not count, and the filling would only take time from the disk. If commits need the file while it is still
//! being filled, they get it as it is.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::buffer::{Buffer, HUGE_PAGE_BYTES};
use crate::disk::{Access, Disk, DiskFile};
use crate::format::header::{SegmentHeader, SegmentKind};
use crate::format::{BLOCK_BYTES, ClusterId};
use crate::layout::Layout;
use crate::segment::Segment;

/// How long to wait before space is looked for again after there was none.
const RETRY_MS: u64 = 500;
/// Zeros written at a time. A commit that needs the file waits for one such write.
const FILL_BYTES: usize = HUGE_PAGE_BYTES;

/// A segment file that can be written to.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) segment: Arc<Segment>,
    pub(crate) file: Arc<dyn DiskFile>,
}

/// What the next segment will be used for, as far as the last one tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) seq: u64,
    pub(crate) small_groups: bool,
}

enum Slot {
    /// This segment is to be made.
    Wanted(Wanted),
    /// Somebody is making it.
    Working,
    /// It is there.
    Ready(Prepared),
    /// The last try failed.
    Failed(Wanted),
    /// Nothing is wanted yet.
    Idle,
    /// Nothing will be made any more.
    Stopped,
}

/// Makes segment files, one ahead.
pub(crate) struct Preparer {
    disk: Arc<dyn Disk>,
    layout: Layout,
    cluster: ClusterId,
    segment_bytes: u64,
    access: Access,
    preformat: bool,
    free_bytes_min: u64,
    slot: Mutex<Slot>,
    changed: Condvar,
    /// A commit waits: stop filling.
    hurry: AtomicBool,
    /// The store is closing: no more waiting for space that is not there.
    closing: AtomicBool,
    next_epoch: AtomicU64,
    /// Numbers in the names of freed files that can be used again.
    spares: Mutex<Vec<u64>>,
    failed: AtomicBool,
    free_bytes: AtomicU64,
}

/// What a new preparer starts from.
pub(crate) struct PreparerStart {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) cluster: ClusterId,
    pub(crate) segment_bytes: u64,
    pub(crate) access: Access,
    pub(crate) preformat: bool,
    pub(crate) free_bytes_min: u64,
    pub(crate) next_epoch: u64,
    pub(crate) spares: Vec<u64>,
}

impl Preparer {
    pub(crate) fn new(start: PreparerStart) -> Self {
        let preparer = Preparer {
            disk: start.disk,
            layout: start.layout,
            cluster: start.cluster,
            segment_bytes: start.segment_bytes,
            access: start.access,
            preformat: start.preformat,
            free_bytes_min: start.free_bytes_min,
            slot: Mutex::new(Slot::Idle),
            changed: Condvar::new(),
            hurry: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            next_epoch: AtomicU64::new(start.next_epoch),
            spares: Mutex::new(start.spares),
            failed: AtomicBool::new(false),
            free_bytes: AtomicU64::new(u64::MAX),
        };
        preparer.look_at_space();
        preparer
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, slot: Slot) {
        let mut current = self.slot();
        if !matches!(*current, Slot::Stopped) {
            *current = slot;
        }
        drop(current);
        self.changed.notify_all();
    }

    /// A number that no use of a segment had before.
    pub(crate) fn fresh_epoch(&self) -> u64 {
        self.next_epoch.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks for a segment to be made.
    pub(crate) fn want(&self, wanted: Wanted) {
        self.set(Slot::Wanted(wanted));
    }

    /// Hands in a segment that an earlier run had prepared.
    pub(crate) fn found(&self, prepared: Prepared) {
        self.set(Slot::Ready(prepared));
    }

    /// The segment that was asked for, once it is there; `None` when the store stops, or closes and has no space.
    pub(crate) fn wait(&self) -> Option<Prepared> {
        let mut slot = self.slot();
        loop {
            match std::mem::replace(&mut *slot, Slot::Idle) {
                Slot::Ready(prepared) => return Some(prepared),
                Slot::Stopped => {
                    *slot = Slot::Stopped;
                    return None;
                }
                other => *slot = other,
            }
            if matches!(*slot, Slot::Failed(_)) && self.closing.load(Ordering::Relaxed) {
                return None;
            }
            self.hurry.store(true, Ordering::Relaxed);
            slot = self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The segment that was asked for, if it is there.
    pub(crate) fn try_take(&self) -> Option<Prepared> {
        let mut slot = self.slot();
        match std::mem::replace(&mut *slot, Slot::Idle) {
            Slot::Ready(prepared) => Some(prepared),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Makes the segment that is asked for, if one is. The thread of the store calls this in a loop, manual mode once
    /// before each group.
    pub(crate) fn work(&self) {
        let wanted = {
            let mut slot = self.slot();
            let (Slot::Wanted(wanted) | Slot::Failed(wanted)) = *slot else {
                return;
            };
            *slot = Slot::Working;
            wanted
        };
        let made = self.make(wanted.seq, self.preformat && wanted.small_groups);
        self.failed.store(made.is_err(), Ordering::Relaxed);
        self.look_at_space();
        match made {
            Ok(prepared) => self.set(Slot::Ready(prepared)),
            Err(error) => {
                tracing::warn!(segment = wanted.seq, %error, "cannot prepare the next segment; trying again");
                self.set(Slot::Failed(wanted));
            }
        }
    }

    /// The body of the preparing thread: until [`Self::stop`].
    pub(crate) fn run(&self) {
        loop {
            let slot = self.slot();
            let slot = match *slot {
                Slot::Stopped => return,
                Slot::Wanted(_) => slot,
                Slot::Failed(_) => {
                    let pause = Duration::from_millis(RETRY_MS);
                    self.changed
                        .wait_timeout(slot, pause)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                Slot::Working | Slot::Ready(_) | Slot::Idle => {
                    self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner)
                }
            };
            drop(slot);
            self.work();
        }
    }

    /// From now on, a failure to make a segment ends the waiting for it.
    pub(crate) fn close(&self) {
        let _slot = self.slot();
        self.closing.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Ends all waiting.
    pub(crate) fn stop(&self) {
        *self.slot() = Slot::Stopped;
        self.hurry.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Makes a segment file at once, so that a start does not wait for zeros to be written.
    pub(crate) fn make_unfilled(&self, seq: u64) -> io::Result<Prepared> {
        self.make(seq, false)
    }

    /// Makes a segment file: from a freed one or from nothing; its header and name are durable.
    fn make(&self, seq: u64, fill: bool) -> io::Result<Prepared> {
        self.hurry.store(false, Ordering::Relaxed);
        let (path, file) = match self.take_spare() {
            Some(spare) => spare,
            None => self.fresh_file(fill)?,
        };
        let made = self.finish(seq, &path, file);
        if made.is_err() {
            // Whatever state it is in, it is no segment yet; the error that counts is the one above.
            let _ = self.disk.remove(&path);
        }
        made
    }

    fn finish(&self, seq: u64, path: &std::path::Path, file: Arc<dyn DiskFile>) -> io::Result<Prepared> {
        let file_bytes = file.len()?;
        let epoch = self.fresh_epoch();
        let header = SegmentHeader {
            cluster: self.cluster,
            seq,
            epoch,
            kind: SegmentKind::Plain,
            replaces: (seq, seq),
            file_bytes,
            last_lsn: 0,
        };
        write_header(&*file, &header)?;
        file.sync_data()?;
        self.disk.rename(path, &self.layout.segment(seq))?;
        self.disk.sync_dir(&self.layout.wal)?;
        let segment = Segment::new(&self.cluster, seq, epoch, SegmentKind::Plain, file_bytes, (1, 0));
        Ok(Prepared {
            segment: Arc::new(segment),
            file,
        })
    }

    /// A freed file that opens and has the right length. Others are removed.
    fn take_spare(&self) -> Option<(PathBuf, Arc<dyn DiskFile>)> {
        loop {
            let spare = self.spares.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            let path = self.layout.spare(spare);
            match self.disk.open(&path, self.access) {
                Ok(file) if file.len().is_ok_and(|len| len == self.segment_bytes) => {
                    return Some((path, file));
                }
                _ => drop(self.disk.remove(&path)),
            }
        }
    }

    fn fresh_file(&self, fill: bool) -> io::Result<(PathBuf, Arc<dyn DiskFile>)> {
        let path = self.layout.unfinished("next");
        let file = self.disk.create(&path, self.access)?;
        let reserved = file.allocate(self.segment_bytes);
        let filled = reserved.and_then(|()| if fill { self.fill(&*file) } else { Ok(()) });
        if let Err(error) = filled {
            // Gives back what was reserved; the error that counts is the one above.
            let _ = self.disk.remove(&path);
            return Err(error);
        }
        Ok((path, file))
    }

    /// Writes zeros, until a commit needs the file.
    fn fill(&self, file: &dyn DiskFile) -> io::Result<()> {
        let zeros =
            Buffer::zeroed(usize::try_from(self.segment_bytes).map_or(FILL_BYTES, |all| all.min(FILL_BYTES)));
        let mut at = 0;
        while at < self.segment_bytes && !self.hurry.load(Ordering::Relaxed) {
            let len = (self.segment_bytes - at).min(FILL_BYTES as u64);
            let bytes = zeros
                .as_slice()
                .get(..usize::try_from(len).unwrap_or(FILL_BYTES))
                .unwrap_or(&[]);
            file.write_at(bytes, at)?;
            at += len;
        }
        Ok(())
    }

    /// Takes a freed file for later. Its new name is already durable.
    pub(crate) fn add_spare(&self, seq: u64) {
        self.spares
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(seq);
    }

    /// How many freed files are kept.
    pub(crate) fn spares(&self) -> usize {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Looks how much space is free.
    pub(crate) fn look_at_space(&self) {
        match self.disk.free_bytes(&self.layout.wal) {
            Ok(bytes) => self.free_bytes.store(bytes, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "cannot tell the free space"),
        }
    }

    /// Free bytes at the last look, and whether that is too little.
    pub(crate) fn space(&self) -> (u64, bool) {
        let free_bytes = self.free_bytes.load(Ordering::Relaxed);
        let spares = self.spares() as u64 * self.segment_bytes;
        let low =
            self.failed.load(Ordering::Relaxed) || free_bytes.saturating_add(spares) < self.free_bytes_min;
        (free_bytes, low)
    }
}

/// Writes a segment's first block.
pub(crate) fn write_header(file: &dyn DiskFile, header: &SegmentHeader) -> io::Result<()> {
    let mut block = Buffer::zeroed(BLOCK_BYTES);
    let bytes = header.encode();
    block.as_mut_slice()[..bytes.len()].copy_from_slice(&bytes);
    file.write_at(block.as_slice(), 0)
}
