//! Segment files opened for reading, and what is read from them.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_core::ids::LogId;
use bytes::Bytes;

use super::cache::Room;
use crate::buffer::{Buffer, HUGE_PAGE_BYTES, Pool, class_of};
use crate::disk::{Access, Disk, DiskFile};
use crate::error::{Damage, ReadError};
use crate::format::BLOCK_BYTES;
use crate::format::footer::decode_runs;
use crate::format::frame::{FRAME_HEADER_BYTES, Frame, FrameKind};
use crate::index::entries::EntryCache;
use crate::index::{Run, Span};
use crate::layout::Layout;
use crate::segment::Segment;

/// Most files that are kept open for reading.
const HANDLES_MAX: usize = 64;
/// Most bytes that one read of a file asks for, unless a single run is larger: with its first and last block, a huge page.
pub(crate) const READ_BYTES_MAX: usize = HUGE_PAGE_BYTES - 2 * BLOCK_BYTES;
/// Runs that are no further apart are read together: a gap costs less than another request.
const GAP_BYTES_MAX: usize = 16 << 10;

/// Reads segment files; caches handles and run entries.
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    layout: Layout,
    access: Access,
    pool: Arc<Pool>,
    handles: Mutex<Handles>,
    entries: Mutex<EntryCache>,
}

/// Part of a file in memory, and the room that it takes of the read cache.
struct Part {
    buffer: Buffer,
    /// Where the wanted bytes begin: reads are of whole blocks.
    start: usize,
    _room: Option<Room>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_slice().get(self.start..).unwrap_or(&[])
    }
}

#[derive(Default)]
struct Handles {
    open: HashMap<u64, (Arc<dyn DiskFile>, u64)>,
    tick: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    /// `access` says whether files are read past the operating system's cache.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        layout: Layout,
        access: Access,
        pool: Arc<Pool>,
        index_cache_bytes: usize,
    ) -> Self {
        Files {
            disk,
            layout,
            access,
            pool,
            handles: Mutex::new(Handles::default()),
            entries: Mutex::new(EntryCache::new(index_cache_bytes)),
        }
    }

    fn handle(&self, segment: &Segment) -> io::Result<Arc<dyn DiskFile>> {
        let mut handles = lock(&self.handles);
        handles.tick += 1;
        let tick = handles.tick;
        if let Some((file, used)) = handles.open.get_mut(&segment.epoch) {
            *used = tick;
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&self.layout.segment(segment.seq), self.access)?;
        if handles.open.len() >= HANDLES_MAX
            && let Some(oldest) = handles
                .open
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key)
        {
            handles.open.remove(&oldest);
        }
        handles.open.insert(segment.epoch, (Arc::clone(&file), tick));
        Ok(file)
    }

    /// Closes the file of a segment that is no more.
    pub(crate) fn forget(&self, epoch: u64) {
        lock(&self.handles).open.remove(&epoch);
    }

    /// Reads the blocks that hold these bytes of a segment.
    fn part(
        &self,
        segment: &Segment,
        start: usize,
        end: usize,
        room: Option<Room>,
    ) -> Result<Part, ReadError> {
        let first = start - start % BLOCK_BYTES;
        let mut buffer = self.pool.take(end.next_multiple_of(BLOCK_BYTES) - first);
        self.handle(segment)
            .and_then(|file| file.read_at(buffer.as_mut_slice(), first as u64))
            .map_err(|error| self.io(segment, error))?;
        Ok(Part {
            buffer,
            start: start - first,
            _room: room,
        })
    }

    fn io(&self, segment: &Segment, source: io::Error) -> ReadError {
        let file = self.layout.segment(segment.seq);
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Damage {
                file,
                position: segment.file_bytes,
                what: "the file is shorter than it was".to_owned(),
            }
            .into();
        }
        ReadError::Io { file, source }
    }

    /// Keeps the entries of a segment that was just sealed: its readers are still close.
    pub(crate) fn keep_entries(&self, epoch: u64, lists: Vec<(LogId, Arc<[Run]>)>) {
        let mut cache = lock(&self.entries);
        for (log, runs) in lists {
            cache.insert(epoch, log, runs);
        }
    }

    /// A span's run entries, if they are in memory.
    pub(crate) fn cached_entries(&self, span: &Span) -> Option<Arc<[Run]>> {
        lock(&self.entries).get(span.segment.epoch, span.summary.log)
    }

    /// A span's run entries.
    pub(crate) fn entries(&self, span: &Span) -> Result<Arc<[Run]>, ReadError> {
        if let Some(runs) = self.cached_entries(span) {
            return Ok(runs);
        }
        let (segment, summary) = (&span.segment, &span.summary);
        let position = summary.entries_position as usize;
        let part = self.part(segment, position, position + summary.entries_bytes(), None)?;
        let bytes = part.as_ref().get(..summary.entries_bytes()).unwrap_or(&[]);
        if crc32c::crc32c_append(segment.seed, bytes) != summary.entries_crc {
            let what = format!("the index of log {} fails its checksum", summary.log);
            return Err(Damage {
                file: self.layout.segment(segment.seq),
                position: position as u64,
                what,
            }
            .into());
        }
        let runs: Arc<[Run]> = decode_runs(bytes).into();
        lock(&self.entries).insert(segment.epoch, summary.log, Arc::clone(&runs));
        Ok(runs)
    }

    /// The bytes of the runs of a stretch: of all of them, or of those before one that is damaged. An error if already the
    /// first one is.
    pub(crate) fn payloads(
        &self,
        log: LogId,
        stretch: &Stretch<'_>,
        room: Option<Room>,
    ) -> Result<Vec<Bytes>, ReadError> {
        let segment = stretch.segment;
        let part = self.part(segment, stretch.start, stretch.end, room)?;
        let bytes = Bytes::from_owner(part);
        let mut payloads = Vec::with_capacity(stretch.runs.len());
        for (_, run) in stretch.runs {
            match self.verified(log, segment, run, &bytes, stretch.start) {
                Ok(payload) => payloads.push(payload),
                Err(error) if payloads.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(payloads)
    }

    /// Cuts a run's batches out of what was read from `start` on.
    fn verified(
        &self,
        log: LogId,
        segment: &Segment,
        run: &Run,
        bytes: &Bytes,
        start: usize,
    ) -> Result<Bytes, ReadError> {
        let at = run.position as usize - start;
        let as_indexed = |frame: &Frame<'_>| {
            frame.header.kind != FrameKind::State
                && frame.header.log == log
                && frame.header.base_offset == run.base_offset
                && frame.header.last_offset == run.last_offset
                && frame.payload.len() == run.payload_bytes as usize
        };
        let frame = bytes
            .get(at..)
            .and_then(|bytes| Frame::decode(bytes, segment.seed))
            .filter(as_indexed);
        match frame {
            Some(frame) => {
                let from = at + FRAME_HEADER_BYTES;
                Ok(bytes.slice(from..from + frame.payload.len()))
            }
            None => {
                let what = format!(
                    "the batches of log {log} from offset {} to {} fail their checksum",
                    run.base_offset, run.last_offset
                );
                let position = u64::from(run.position);
                Err(Damage {
                    file: self.layout.segment(segment.seq),
                    position,
                    what,
                }
                .into())
            }
        }
    }
}

/// Runs of a log that lie close enough in a segment to be read at once.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'a> {
    pub(crate) segment: &'a Arc<Segment>,
    pub(crate) runs: &'a [(Arc<Segment>, Run)],
    /// Where the first one starts and the last one ends.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl<'a> Stretch<'a> {
    /// As many runs from the front as fit into `bytes_max`, at least one; `None` of none.
    pub(crate) fn of(runs: &'a [(Arc<Segment>, Run)], bytes_max: usize) -> Option<Self> {
        let (segment, first) = runs.first()?;
        let start = first.position as usize;
        let mut end = start + first.frame_bytes(segment.kind);
        let mut count = 1;
        for (other, run) in runs.iter().skip(1) {
            let position = run.position as usize;
            let run_end = position + run.frame_bytes(segment.kind);
            let near = position >= end && position - end <= GAP_BYTES_MAX && run_end - start <= bytes_max;
            if other.epoch != segment.epoch || !near {
                break;
            }
            end = run_end;
            count += 1;
        }
        Some(Stretch {
            segment,
            runs: runs.get(..count)?,
            start,
            end,
        })
    }

    /// Memory that it takes.
    pub(crate) fn buffer_bytes(&self) -> usize {
        class_of(self.end - self.start + 2 * BLOCK_BYTES)
    }
}
