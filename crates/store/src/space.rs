//! Gives space back: frees segments that hold nothing live, and tells what is stored.
//!
//! A segment can go when every batch in it is below its log's start and every entry in it is covered by the oldest kept
//! snapshot. Freed files are kept for the log to use again, a few of them; more are removed. The newest sealed segment always
//! stays: it tells a start where the log stood when the active one is still empty.

mod pack;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anabranch_core::ids::LogId;

use crate::error::MaintainError;
use crate::format::header::SegmentKind;
use crate::index::{LogIndex, Run};
use crate::segment::Segment;
use crate::shared::{Shared, State};
use crate::store::{LogStats, StoredRange};

/// The active segment is reported in about this many parts of a log, so that retention need not wait until it is sealed.
const ACTIVE_PARTS: u64 = 64;

/// What a round of maintenance did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Segments that were freed because nothing in them was live.
    pub freed: usize,
    /// Segments whose live batches were copied into a packed one.
    pub packed: usize,
    /// Whether another round would find something to do.
    pub more: bool,
}

fn failed(file: PathBuf, action: &'static str) -> impl FnOnce(io::Error) -> MaintainError {
    move |source| MaintainError { file, action, source }
}

impl State {
    /// Sealed segments that may be freed or packed: those the snapshots cover, without the newest one.
    fn old_segments(&self, horizon: u64) -> impl Iterator<Item = &Arc<Segment>> {
        let newest = self.sealed.keys().next_back().copied();
        self.sealed
            .values()
            .filter(move |segment| Some(segment.seq) != newest && segment.lsns.1 <= horizon)
    }

    fn retire(&mut self, segment: &Segment) {
        segment.retired.store(true, Ordering::Release);
        self.sealed.remove(&segment.seq);
    }
}

impl Shared {
    /// One round: free all that is dead, then pack one set of segments.
    pub(crate) fn maintain(&self) -> Result<Maintained, MaintainError> {
        self.preparer.look_at_space();
        let freed = self.free_dead()?;
        let packed = self.pack_once()?;
        Ok(Maintained {
            freed,
            packed,
            more: packed > 0,
        })
    }

    fn free_dead(&self) -> Result<usize, MaintainError> {
        let horizon = self.horizon();
        let dead: Vec<Arc<Segment>> = {
            let mut state = self.write_state();
            let is_dead = |segment: &&Arc<Segment>| segment.live_bytes.load(Ordering::Relaxed) == 0;
            let dead: Vec<_> = state.old_segments(horizon).filter(is_dead).cloned().collect();
            for segment in &dead {
                state.retire(segment);
            }
            dead
        };
        self.give_away(&dead)?;
        Ok(dead.len())
    }

    /// Keeps the files of retired segments to be used again, or removes them.
    fn give_away(&self, segments: &[Arc<Segment>]) -> Result<(), MaintainError> {
        let mut kept = Vec::new();
        for segment in segments {
            self.files.forget(segment.epoch);
            let path = self.layout.segment(segment.seq);
            let wanted = self.preparer.spares() + kept.len() < self.options.spare_segments;
            let usable =
                segment.kind == SegmentKind::Plain && segment.file_bytes == self.options.segment_bytes;
            if wanted && usable {
                let spare = self.layout.spare(segment.seq);
                self.disk.rename(&path, &spare).map_err(failed(path, "rename"))?;
                kept.push(segment.seq);
            } else {
                self.disk.remove(&path).map_err(failed(path, "remove"))?;
            }
        }
        if !segments.is_empty() {
            // Before a file is written again, its old name must be gone for good.
            self.disk
                .sync_dir(&self.layout.wal)
                .map_err(failed(self.layout.wal.clone(), "sync"))?;
            for seq in kept {
                self.preparer.add_spare(seq);
            }
        }
        Ok(())
    }

    /// What is stored of a log.
    pub(crate) fn log_stats(&self, log: LogId) -> LogStats {
        let state = self.read_state();
        let Some(log) = state.index.logs.get(&log) else {
            return LogStats::default();
        };
        let sealed = log.spans.iter().map(|span| StoredRange {
            first_offset: span.summary.first_offset,
            last_offset: span.summary.last_offset,
            bytes: span.summary.bytes,
            max_timestamp: span.summary.max_timestamp,
        });
        let mut ranges: Vec<StoredRange> = sealed.collect();
        ranges.extend(active_ranges(log, self.options.segment_bytes / ACTIVE_PARTS));
        LogStats {
            bytes: ranges.iter().map(|range| range.bytes).sum(),
            ranges,
        }
    }
}

/// Gathers the live runs of the active segment into parts of some size.
fn active_ranges(log: &LogIndex, part_bytes: u64) -> Vec<StoredRange> {
    let mut ranges: Vec<StoredRange> = Vec::new();
    let live = |run: &&Run| run.last_offset >= log.start;
    for run in log.active.iter().filter(live) {
        let bytes = u64::from(run.payload_bytes);
        match ranges.last_mut() {
            Some(range) if range.bytes + bytes <= part_bytes => {
                range.last_offset = run.last_offset;
                range.bytes += bytes;
                range.max_timestamp = range.max_timestamp.max(run.max_timestamp);
            }
            _ => ranges.push(StoredRange {
                first_offset: run.base_offset,
                last_offset: run.last_offset,
                bytes,
                max_timestamp: run.max_timestamp,
            }),
        }
    }
    ranges
}
