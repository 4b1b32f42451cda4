//! Which runs a range needs.

use std::sync::Arc;

use anabranch_core::ids::{LogId, Offset};

use super::{Files, Range};
use crate::index::{LogIndex, Place, Run, Span};
use crate::segment::Segment;
use crate::shared::State;

/// Most runs that one read touches: a fetch of many tiny runs is answered in parts.
const RUNS_MAX: usize = 4096;

/// The answer of the index.
pub(crate) enum Planned {
    /// These runs, in order; the last ones may turn out not to be needed.
    Runs(Vec<(Arc<Segment>, Run)>),
    /// The run entries of this span are on disk.
    Entries(Span),
    /// Nothing is stored for the range.
    Nothing,
    /// The log has a hole here, up to that offset.
    Hole(Offset),
}

/// Run entries of segments, by epoch, that this reader has loaded itself.
pub(super) type Loaded = Vec<(u64, Arc<[Run]>)>;

struct Planner<'a> {
    range: Range,
    files: &'a Files,
    loaded: &'a Loaded,
    runs: Vec<(Arc<Segment>, Run)>,
    bytes: usize,
    active: &'a Arc<Segment>,
}

impl Planner<'_> {
    /// Adds runs; false when the range needs no more.
    fn add(&mut self, segment: &Arc<Segment>, runs: &[Run]) -> bool {
        for run in runs {
            if run.last_offset < self.range.from {
                continue;
            }
            let enough = !self.runs.is_empty() && self.bytes >= self.range.max_bytes;
            if run.base_offset >= self.range.upto || enough || self.runs.len() >= RUNS_MAX {
                return false;
            }
            // Of the run that holds the start, perhaps only the end is wanted.
            if run.base_offset >= self.range.from {
                self.bytes += run.payload_bytes as usize;
            }
            self.runs.push((Arc::clone(segment), *run));
        }
        true
    }

    fn entries(&self, span: &Span) -> Option<Arc<[Run]>> {
        let own = self.loaded.iter().find(|(epoch, _)| *epoch == span.segment.epoch);
        own.map(|(_, runs)| Arc::clone(runs))
            .or_else(|| self.files.cached_entries(span))
    }

    fn take_spans(&mut self, log: &LogIndex, first: usize) -> Option<Span> {
        for span in log.spans.range(first..) {
            if span.summary.first_offset >= self.range.upto {
                return None;
            }
            let Some(entries) = self.entries(span) else {
                // With some runs at hand the answer can be given without these.
                return self.runs.is_empty().then(|| span.clone());
            };
            let from = entries.partition_point(|run| run.last_offset < self.range.from);
            if !self.add(&span.segment, entries.get(from..).unwrap_or(&[])) {
                return None;
            }
        }
        self.take_active(log, 0);
        None
    }

    fn take_active(&mut self, log: &LogIndex, first: usize) {
        let active = Arc::clone(self.active);
        self.add(&active, log.active.get(first..).unwrap_or(&[]));
    }
}

impl State {
    /// Finds the runs of a range, as far as the index is in memory.
    pub(super) fn plan(&self, files: &Files, loaded: &Loaded, log: LogId, range: Range) -> Planned {
        let Some(log) = self.index.logs.get(&log) else {
            return Planned::Nothing;
        };
        if range.from >= range.upto {
            return Planned::Nothing;
        }
        let mut planner = Planner {
            range,
            files,
            loaded,
            runs: Vec::new(),
            bytes: 0,
            active: &self.active,
        };
        let missing = match log.place(range.from) {
            Place::End => return Planned::Nothing,
            Place::Hole(next) => return Planned::Hole(next),
            Place::Span(first) => planner.take_spans(log, first),
            Place::Active(first) => {
                planner.take_active(log, first);
                None
            }
        };
        match missing {
            Some(span) => Planned::Entries(span),
            None if planner.runs.is_empty() => Planned::Nothing,
            None => Planned::Runs(planner.runs),
        }
    }
}
