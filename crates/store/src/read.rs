//! Reading a log: from memory while its batches are in the tail cache or were read of late, from segment files otherwise.
//!
//! A read asks the index for the runs that it needs, under a short lock, and then gets each run's bytes. A segment may be
//! freed or packed between the two; then its file does not check out, the reader sees that the segment was retired, and
//! asks the index again.

pub(crate) mod ahead;
mod cache;
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

pub(crate) use ahead::ReadAhead;
use cache::Place;
pub(crate) use cache::ReadCache;
use files::READ_BYTES_MAX;
pub(crate) use files::{Files, Stretch};
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
    /// Behind the last offset collected.
    next: Offset,
}

impl Collector {
    fn new(range: Range) -> Self {
        Collector {
            range,
            bytes: 0,
            slices: Vec::new(),
            next: range.from,
        }
    }

    /// Takes what it wants of a run; false when it wants no more.
    fn add(&mut self, run: &Run, payload: &Bytes) -> bool {
        let room = self.range.max_bytes.saturating_sub(self.bytes);
        if run.base_offset >= self.range.from && run.last_offset < self.range.upto && payload.len() <= room {
            self.bytes += payload.len();
            self.slices.push(payload.clone());
            self.next = run.last_offset.saturating_add(1);
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
            self.next = found.last_offset.saturating_add(1);
        }
        if let Some(start) = start.filter(|&start| start < end) {
            self.bytes += end - start;
            self.slices.push(payload.slice(start..end));
        }
        whole
    }
}

/// Where a payload was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Tail,
    Disk,
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
        let mut from = Origin::Tail;
        {
            let state = self.read_state();
            let runs = match state.plan(&self.files, &Loaded::new(), log, range) {
                Planned::Nothing => return Some(Vec::new()),
                Planned::Hole(_) | Planned::Entries(_) => return None,
                Planned::Runs(runs) => runs,
            };
            for (segment, run) in runs {
                let payload = cached(&state, &segment, &run).or_else(|| {
                    from = Origin::Disk;
                    self.read_cache.get(segment.epoch, log, run.position)
                });
                let Some(payload) = payload else { break };
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
        Some(self.served(log, collector, from))
    }

    /// Reads a range, from disk where needed.
    pub(crate) fn read(&self, log: LogId, range: Range) -> Result<Vec<Bytes>, ReadError> {
        self.retrying(|| {
            let runs = self.plan_loaded(log, range)?;
            let mut collector = Collector::new(range);
            let mut from = Origin::Tail;
            let mut left = runs.as_slice();
            while let Some((segment, run)) = left.first() {
                let payloads = match self.in_memory(log, segment, run) {
                    Some((payload, place)) => {
                        if place == Origin::Disk {
                            from = Origin::Disk;
                        }
                        vec![payload]
                    }
                    None => {
                        from = Origin::Disk;
                        match self.load(log, left, READ_BYTES_MAX, false) {
                            Ok(payloads) => payloads,
                            // What lies before it is good; the error is for who asks for this.
                            Err(_) if !collector.slices.is_empty() => break,
                            Err(error) => return Err((error, Some(Arc::clone(segment)))),
                        }
                    }
                };
                for ((_, run), payload) in left.iter().zip(&payloads) {
                    if !collector.add(run, payload) {
                        return Ok(self.served(log, collector, from));
                    }
                }
                left = left.get(payloads.len().max(1)..).unwrap_or(&[]);
            }
            Ok(self.served(log, collector, from))
        })
    }

    fn in_memory(&self, log: LogId, segment: &Segment, run: &Run) -> Option<(Bytes, Origin)> {
        let tail = cached(&self.read_state(), segment, run);
        tail.map(|payload| (payload, Origin::Tail)).or_else(|| {
            let payload = self.read_cache.get(segment.epoch, log, run.position)?;
            Some((payload, Origin::Disk))
        })
    }

    /// Reads the first of these runs, and those that can be read along with it, up to `bytes_max`. With `room_needed`
    /// only if they can be kept; then there may be none.
    fn load(
        &self,
        log: LogId,
        runs: &[(Arc<Segment>, Run)],
        bytes_max: usize,
        room_needed: bool,
    ) -> Result<Vec<Bytes>, ReadError> {
        let Some(stretch) = Stretch::of(runs, bytes_max) else {
            return Ok(Vec::new());
        };
        let epoch = stretch.segment.epoch;
        let turn = self.read_cache.begin(Place {
            epoch,
            log,
            positions: stretch.start..stretch.end,
        });
        if turn.waited
            && let Some((_, run)) = runs.first()
            && let Some(payload) = self.read_cache.get(epoch, log, run.position)
        {
            return Ok(vec![payload]);
        }
        let room = self.read_cache.room(stretch.buffer_bytes());
        let keep = room.is_some();
        if room_needed && !keep {
            return Ok(Vec::new());
        }
        let payloads = self.files.payloads(log, &stretch, room)?;
        if keep {
            let positions = stretch.runs.iter().map(|(_, run)| run.position);
            self.read_cache
                .insert(epoch, log, positions.zip(payloads.iter().cloned()).collect());
        }
        Ok(payloads)
    }

    /// Hands out what was collected, and has the next part read ahead if it came from disk.
    fn served(&self, log: LogId, collector: Collector, from: Origin) -> Vec<Bytes> {
        if from == Origin::Disk {
            self.read_ahead.served(log, collector.range.from, collector.next);
        }
        collector.slices
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
