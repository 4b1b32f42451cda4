//! Where each log's batches are.
//!
//! ```text
//! log -> spans of sealed segments (a summary each; their run entries are on disk, and cached) ; runs of the active segment
//! ```
//!
//! A *run* is one frame of a log: consecutive batches that lie behind each other. A *span* is all that a sealed segment
//! holds of a log. Memory therefore grows with segments times logs, not with batches.

pub(crate) mod entries;
mod log;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anabranch_core::ids::{LogId, Offset};

use crate::format::footer::Summary;
use crate::format::frame::{FrameKind, frame_bytes};
use crate::format::header::SegmentKind;
use crate::segment::Segment;

pub(crate) use log::{LogIndex, Place};

/// Consecutive batches of one log in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) base_offset: Offset,
    pub(crate) last_offset: Offset,
    pub(crate) max_timestamp: i64,
    /// Base offset of the first batch with that timestamp.
    pub(crate) max_timestamp_base: Offset,
    /// Where the frame starts in its file.
    pub(crate) position: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) batches: u32,
}

impl Run {
    /// Length of the whole frame in a segment of that kind.
    pub(crate) fn frame_bytes(&self, kind: SegmentKind) -> usize {
        let kind = match kind {
            SegmentKind::Plain => FrameKind::Batches,
            SegmentKind::Packed => FrameKind::Packed,
        };
        frame_bytes(kind, self.payload_bytes as usize, self.batches as usize)
    }
}

/// What a sealed segment holds of a log.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) segment: Arc<Segment>,
    pub(crate) summary: Summary,
}

/// The index of all logs.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) logs: HashMap<LogId, LogIndex>,
    /// Logs with runs in the active segment.
    active_logs: Vec<LogId>,
    active_runs: usize,
    /// Dropped logs of which entries may still be on their way, with the last entry number that can be one.
    dropped: HashMap<LogId, u64>,
}

impl Index {
    /// Adds a run of the active segment. Runs of a log come in offset order.
    pub(crate) fn push_active(&mut self, log: LogId, run: Run) {
        if self.dropped.contains_key(&log) {
            return;
        }
        let entry = self.logs.entry(log).or_default();
        if entry.active.is_empty() {
            self.active_logs.push(log);
        }
        entry.active.push(run);
        self.active_runs += 1;
    }

    /// Runs in the active segment, and the number of logs that have some.
    pub(crate) fn active_size(&self) -> (usize, usize) {
        (self.active_runs, self.active_logs.len())
    }

    /// The runs of the active segment by ascending log, for its footer.
    pub(crate) fn active_runs(&self) -> Vec<(LogId, &[Run])> {
        let runs = |log: &LogId| self.logs.get(log).map(|entry| (*log, entry.active.as_slice()));
        let mut all: Vec<_> = self.active_logs.iter().filter_map(runs).collect();
        all.sort_unstable_by_key(|(log, _)| *log);
        all
    }

    /// The active segment is sealed now: its runs become spans.
    pub(crate) fn seal_active(&mut self, segment: &Arc<Segment>, summaries: &[Summary]) {
        for log in self.active_logs.drain(..) {
            if let Some(entry) = self.logs.get_mut(&log) {
                entry.active = Vec::new();
            }
        }
        self.active_runs = 0;
        for summary in summaries {
            self.add_span(segment, *summary);
        }
    }

    /// Adds what a sealed segment holds of a log, unless all of it is dead.
    pub(crate) fn add_span(&mut self, segment: &Arc<Segment>, summary: Summary) {
        if self.dropped.contains_key(&summary.log) {
            return;
        }
        let entry = self.logs.entry(summary.log).or_default();
        if summary.last_offset < entry.start {
            return;
        }
        segment.live_bytes.fetch_add(summary.bytes, Ordering::Relaxed);
        entry.insert_span(Span {
            segment: Arc::clone(segment),
            summary,
        });
    }

    /// Forgets what lies wholly below `start`.
    pub(crate) fn set_log_start(&mut self, log: LogId, start: Offset) {
        // A log without batches needs no entry: everything it will get lies above its start.
        if let Some(entry) = self.logs.get_mut(&log) {
            entry.set_start(start);
        }
    }

    /// Forgets a log, and its batches up to entry `last_lsn` that are still to come.
    pub(crate) fn drop_log(&mut self, log: LogId, last_lsn: u64) {
        if let Some(mut entry) = self.logs.remove(&log) {
            if !entry.active.is_empty() {
                self.active_runs -= entry.active.len();
                self.active_logs.retain(|active| *active != log);
            }
            entry.set_start(Offset::MAX);
        }
        self.dropped.insert(log, last_lsn);
    }

    /// Everything up to `lsn` has been added: dropped logs that can get nothing more are forgotten for good.
    pub(crate) fn committed(&mut self, lsn: u64) {
        if !self.dropped.is_empty() {
            self.dropped.retain(|_, last| *last > lsn);
        }
    }

    /// Replaces the spans that `logs` have in the segments from `replaces.0` to `replaces.1` by those of a packed one.
    pub(crate) fn replace_spans(
        &mut self,
        logs: &[LogId],
        replaces: (u64, u64),
        segment: &Arc<Segment>,
        summaries: &[Summary],
    ) {
        let old = |span: &Span| (replaces.0..=replaces.1).contains(&span.segment.seq);
        for log in logs {
            if let Some(entry) = self.logs.get_mut(log) {
                entry.spans.retain(|span| !old(span));
            }
        }
        for summary in summaries {
            // A log that was dropped while its batches were copied is not in the index, and stays out of it.
            if self.logs.contains_key(&summary.log) {
                self.add_span(segment, *summary);
            }
        }
    }
}

#[cfg(test)]
mod tests;
