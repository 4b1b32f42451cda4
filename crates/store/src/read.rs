//! Reading a log: from memory while its batches are in the tail cache, from segment files otherwise.
//!
//! A read asks the index for the runs that it needs, under a short lock, and then gets each run's bytes. A segment may be
//! freed or packed between the two; then its file does not check out, the reader sees that the segment was retired, and
//! asks the index again.

mod files;
mod plan;
mod time;

use std::sync::Arc;

use anabranch_core::ids::{LogId, Offset};
use bytes::Bytes;

use crate::error::ReadError;
use crate::format::batch;
use crate::format::frame::FRAME_HEADER_BYTES;
use crate::index::Run;
use crate::segment::Segment;
use crate::shared::{Shared, State};

pub(crate) use files::Files;
use plan::{Loaded, Planned};
pub use time::MaxTimestamp;

/// How often a read starts again because segments were freed under it. More means that something else is wrong.
const RETRIES_MAX: usize = 16;

/// What a reader wants of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// The first offset: the answer starts with the batch that holds it.
    pub(crate) from: Offset,
    /// The answer ends before the first batch that reaches up to here.
    pub(crate) upto: Offset,
    /// Most bytes.
    pub(crate) max_bytes: usize,
    /// Whether the first batch is given even if it is larger.
    pub(crate) at_least_one: bool,
}

/// What failed, and on which segment.
type Failure = (ReadError, Option<Arc<Segment>>);

/// Collects slices of runs until the range is exhausted.
struct Collector {
    range: Range,
    bytes: usize,
    slices: Vec<Bytes>,
}

impl Collector {
    fn new(range: Range) -> Self {
        Collector {
            range,
            bytes: 0,
            slices: Vec::new(),
        }
    }

    /// Takes what it wants of a run; false when it wants no more.
    fn add(&mut self, run: &Run, payload: &Bytes) -> bool {
        let room = self.range.max_bytes.saturating_sub(self.bytes);
        if run.base_offset >= self.range.from && run.last_offset < self.range.upto && payload.len() <= room {
            self.bytes += payload.len();
            self.slices.push(payload.clone());
            return true;
        }
        self.add_part(payload, room)
    }

    fn add_part(&mut self, payload: &Bytes, room: usize) -> bool {
        let (mut start, mut end) = (None, 0);
        let mut whole = true;
        for (position, found) in batch::walk(payload) {
            if found.last_offset < self.range.from {
                continue;
            }
            let from = *start.get_or_insert(position);
            let first = self.slices.is_empty() && position == from;
            let fits = position + found.bytes - from <= room || (first && self.range.at_least_one);
            if found.last_offset >= self.range.upto || !fits {
                whole = false;
                break;
            }
            end = position + found.bytes;
        }
        if let Some(start) = start.filter(|&start| start < end) {
            self.bytes += end - start;
            self.slices.push(payload.slice(start..end));
        }
        whole
    }
}

/// The bytes of a run's batches, if they are in the tail cache.
fn cached(state: &State, segment: &Segment, run: &Run) -> Option<Bytes> {
    let position = run
        .position
        .checked_add(u32::try_from(FRAME_HEADER_BYTES).ok()?)?;
    state
        .cache
        .get(segment.epoch, position, run.payload_bytes as usize)
}

impl Shared {
    /// What memory holds of a range, at least its first batch; `None` if that takes the disk.
    pub(crate) fn try_read(&self, log: LogId, range: Range) -> Option<Vec<Bytes>> {
        let mut found = Vec::new();
        {
            let state = self.read_state();
            let runs = match state.plan(&self.files, &Loaded::new(), log, range) {
                Planned::Nothing => return Some(Vec::new()),
                Planned::Hole(_) | Planned::Entries(_) => return None,
                Planned::Runs(runs) => runs,
            };
            for (segment, run) in runs {
                let Some(payload) = cached(&state, &segment, &run) else {
                    break;
                };
                found.push((run, payload));
            }
        }
        if found.is_empty() {
            return None;
        }
        let mut collector = Collector::new(range);
        for (run, payload) in &found {
            if !collector.add(run, payload) {
                break;
            }
        }
        Some(collector.slices)
    }

    /// Reads a range, from disk where needed.
    pub(crate) fn read(&self, log: LogId, range: Range) -> Result<Vec<Bytes>, ReadError> {
        self.retrying(|| {
            let runs = self.plan_loaded(log, range)?;
            let mut collector = Collector::new(range);
            let mut left = runs.as_slice();
            while let Some((segment, run)) = left.first() {
                let in_memory = cached(&self.read_state(), segment, run);
                let (payloads, taken) = match in_memory {
                    Some(payload) => (vec![payload], 1),
                    None => {
                        let payloads = self
                            .files
                            .payloads(log, left)
                            .map_err(|error| (error, Some(Arc::clone(segment))))?;
                        let taken = payloads.len();
                        (payloads, taken)
                    }
                };
                for ((_, run), payload) in left.iter().zip(&payloads) {
                    if !collector.add(run, payload) {
                        return Ok(collector.slices);
                    }
                }
                left = left.get(taken.max(1)..).unwrap_or(&[]);
            }
            Ok(collector.slices)
        })
    }

    /// The runs of a range; loads run entries as needed.
    fn plan_loaded(&self, log: LogId, range: Range) -> Result<Vec<(Arc<Segment>, Run)>, Failure> {
        let mut loaded = Loaded::new();
        loop {
            let planned = self.read_state().plan(&self.files, &loaded, log, range);
            match planned {
                Planned::Nothing => return Ok(Vec::new()),
                Planned::Runs(runs) => return Ok(runs),
                Planned::Hole(next) => {
                    return Err((
                        ReadError::Missing {
                            log,
                            offset: range.from,
                            next,
                        },
                        None,
                    ));
                }
                Planned::Entries(span) => {
                    let runs = self
                        .files
                        .entries(&span)
                        .map_err(|error| (error, Some(Arc::clone(&span.segment))))?;
                    loaded.push((span.segment.epoch, runs));
                }
            }
        }
    }

    /// Repeats what failed on a segment that was freed meanwhile.
    fn retrying<T>(&self, attempt: impl Fn() -> Result<T, Failure>) -> Result<T, ReadError> {
        let mut tries = 0;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err((_, Some(segment))) if segment.is_retired() && tries < RETRIES_MAX => {
                    self.files.forget(segment.epoch);
                    tries += 1;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }
}
