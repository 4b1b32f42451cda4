//! Packing: the live batches of old segments that are mostly dead are copied, log by log, into one new segment that replaces
//! them. So a slow or long-retained log never holds more than about twice its own bytes.
//!
//! ```text
//! 5.seg: a..b....c    6.seg: ..b.......    7.seg: a....c....     =>     7.seg (packed, replaces 5 to 7): aabbcc
//! ```
//!
//! The packed file takes the name of the last one it replaces, by a rename: that is the moment at which it takes effect.
//! A crash before leaves an unfinished file, a crash after leaves segments that the packed one's header declares replaced;
//! a start removes either. Everything copied is verified; a segment with damage is left as it is.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anabranch_core::ids::{LogId, Offset};
use bytes::Bytes;

use super::failed;
use crate::disk::{Access, DiskFile};
use crate::error::{MaintainError, ReadError};
use crate::format::footer::{FooterBuilder, Summary, Trailer};
use crate::format::frame::{FRAME_PAYLOAD_MAX, FrameHeader, FrameKind, frame_bytes};
use crate::format::group::{GROUP_HEADER_BYTES, GroupHeader};
use crate::format::header::{SegmentHeader, SegmentKind};
use crate::format::{BLOCK_BYTES, seed, whole_blocks};
use crate::index::{Run, Span};
use crate::read::Stretch;
use crate::segment::Segment;
use crate::shared::{Event, Shared, State};
use crate::wal::committer::write_footer;
use crate::wal::prepare::write_header;
use crate::wal::writer::GroupWriter;

/// Most segments that one packing replaces.
const SEGMENTS_MAX: usize = 1024;
/// Most bytes that are read at a time, unless a single run is larger.
const PACK_READ_BYTES: usize = 1 << 20;
/// Most run entries that one packing holds in memory.
const ENTRIES_MAX: usize = 1 << 18;
/// What is written must be at most this fraction of what is freed.
const GAIN_DIVISOR: u64 = 2;

/// Neighbouring segments to be packed, and what is live in them.
struct Job {
    segments: Vec<Arc<Segment>>,
    /// By log, then by offset; each with its log's start.
    spans: Vec<(Span, Offset)>,
}

/// Why a packing did not come about.
enum Stop {
    Io(MaintainError),
    /// Something in this segment cannot be read.
    Unreadable(Arc<Segment>, ReadError),
}

impl State {
    /// The oldest neighbours that are worth packing.
    fn packable(&self, horizon: u64, live_percent: u32, segment_bytes: u64) -> Vec<Arc<Segment>> {
        let mut job: Vec<Arc<Segment>> = Vec::new();
        let (mut live, mut total) = (0, 0);
        for segment in self.old_segments(horizon) {
            let segment_live = segment.live_bytes.load(Ordering::Relaxed);
            let fits = segment.live_percent() < u64::from(live_percent)
                && !segment.unpackable.load(Ordering::Relaxed)
                && job.len() < SEGMENTS_MAX
                && live + segment_live <= segment_bytes / GAIN_DIVISOR;
            if fits {
                live += segment_live;
                total += segment.file_bytes;
                job.push(Arc::clone(segment));
            } else if is_worth_it(live, total) {
                break;
            } else {
                job.clear();
                (live, total) = (0, 0);
            }
        }
        if is_worth_it(live, total) { job } else { Vec::new() }
    }

    /// What is live in the segments from the first on, as many as can be packed at once.
    fn job(&self, mut segments: Vec<Arc<Segment>>) -> Option<Job> {
        let (first, last) = (segments.first()?.seq, segments.last()?.seq);
        let mut spans = Vec::new();
        for log in self.index.logs.values() {
            let from = log.spans.partition_point(|span| span.segment.seq < first);
            let inside = log
                .spans
                .range(from..)
                .take_while(|span| span.segment.seq <= last);
            spans.extend(inside.map(|span| (span.clone(), log.start)));
        }
        let mut entries: BTreeMap<u64, usize> = BTreeMap::new();
        for (span, _) in &spans {
            *entries.entry(span.segment.seq).or_default() += span.summary.runs as usize;
        }
        let mut sum = 0;
        segments.retain(|segment| {
            let first_one = sum == 0;
            sum += entries.get(&segment.seq).copied().unwrap_or(0).max(1);
            first_one || sum <= ENTRIES_MAX
        });
        let last = segments.last()?.seq;
        spans.retain(|(span, _)| span.segment.seq <= last);
        spans.sort_by_key(|(span, _)| (span.summary.log, span.summary.first_offset));
        Some(Job { segments, spans })
    }
}

/// Whether replacing `total` bytes of files by `live` bytes of batches frees enough to be worth the copying.
fn is_worth_it(live: u64, total: u64) -> bool {
    // Header, footer and the padding of a group come on top of what is live.
    total > 0 && live + 4 * BLOCK_BYTES as u64 <= total / GAIN_DIVISOR
}

impl Shared {
    /// Packs one set of neighbours, if there is one worth it. Gives the number of segments that are replaced.
    pub(super) fn pack_once(&self) -> Result<usize, MaintainError> {
        if self.options.pack_live_percent == 0 {
            return Ok(0);
        }
        let horizon = self.horizon();
        let job = {
            let state = self.read_state();
            let segments = state.packable(
                horizon,
                self.options.pack_live_percent,
                self.options.segment_bytes,
            );
            state.job(segments)
        };
        let Some(job) = job else { return Ok(0) };
        let path = self.layout.unfinished("pack");
        let result = self.pack(&job, &path);
        if result.is_err() {
            // Gives the space back; the error that counts is the one above.
            let _ = self.disk.remove(&path);
        }
        match result {
            Ok(()) => Ok(job.segments.len()),
            Err(Stop::Io(error)) => Err(error),
            Err(Stop::Unreadable(segment, error)) => {
                tracing::error!(%error, "a segment cannot be packed");
                segment.unpackable.store(true, Ordering::Relaxed);
                if let ReadError::Damaged(damage) = error {
                    self.emit(Event::Damaged(damage));
                }
                Ok(0)
            }
        }
    }

    fn pack(&self, job: &Job, path: &Path) -> Result<(), Stop> {
        let io = |action: &'static str| -> Box<dyn FnOnce(io::Error) -> Stop> {
            let path = path.to_owned();
            Box::new(move |source| Stop::Io(failed(path, action)(source)))
        };
        let access = if self.options.direct_io {
            Access::Direct
        } else {
            Access::Write
        };
        let file = self.disk.create(path, access).map_err(io("create"))?;
        let mut packer = Packer::new(self, &*file, self.preparer.fresh_epoch());
        for (span, start) in &job.spans {
            self.copy_span(span, *start, &mut packer, &io)?;
        }
        packer.flush().map_err(io("write"))?;
        let (segment, summaries) = packer.finish(&job.segments).map_err(io("write"))?;
        file.sync_data().map_err(io("sync"))?;
        drop(file);
        self.take_effect(job, path, &Arc::new(segment), &summaries)
    }

    fn copy_span(
        &self,
        span: &Span,
        start: Offset,
        packer: &mut Packer<'_>,
        io: &dyn Fn(&'static str) -> Box<dyn FnOnce(io::Error) -> Stop>,
    ) -> Result<(), Stop> {
        let unreadable = |error| Stop::Unreadable(Arc::clone(&span.segment), error);
        let log = span.summary.log;
        let entries = self.files.entries(span).map_err(unreadable)?;
        let live = entries.iter().filter(|run| run.last_offset >= start);
        let runs: Vec<_> = live.map(|run| (Arc::clone(&span.segment), *run)).collect();
        let mut left = runs.as_slice();
        while let Some(stretch) = Stretch::of(left, PACK_READ_BYTES) {
            let payloads = self.files.payloads(log, &stretch, None).map_err(unreadable)?;
            for ((_, run), payload) in left.iter().zip(&payloads) {
                packer.add(log, run, payload.clone()).map_err(io("write"))?;
            }
            left = left.get(payloads.len().max(1)..).unwrap_or(&[]);
        }
        Ok(())
    }

    /// Gives the packed file its name and the index its content, and then the replaced files away.
    fn take_effect(
        &self,
        job: &Job,
        path: &Path,
        segment: &Arc<Segment>,
        summaries: &[Summary],
    ) -> Result<(), Stop> {
        let mut logs: Vec<LogId> = job.spans.iter().map(|(span, _)| span.summary.log).collect();
        logs.dedup();
        let range = (job.segments.first().map_or(0, |first| first.seq), segment.seq);
        {
            // Under the lock, so that no reader opens the file by its name and takes it for the old one.
            let mut state = self.write_state();
            self.disk
                .rename(path, &self.layout.segment(segment.seq))
                .map_err(|error| Stop::Io(failed(path.to_owned(), "rename")(error)))?;
            state.index.replace_spans(&logs, range, segment, summaries);
            for old in &job.segments {
                state.retire(old);
            }
            state.sealed.insert(segment.seq, Arc::clone(segment));
        }
        let wal = &self.layout.wal;
        self.disk
            .sync_dir(wal)
            .map_err(|error| Stop::Io(failed(wal.clone(), "sync")(error)))?;
        let Some((last, others)) = job.segments.split_last() else {
            return Ok(());
        };
        self.files.forget(last.epoch);
        self.give_away(others).map_err(Stop::Io)
    }
}

/// A frame of the packed segment.
struct PackedFrame {
    log: LogId,
    run: Run,
    pieces: Vec<Bytes>,
}

/// Writes the packed segment, group by group.
struct Packer<'a> {
    shared: &'a Shared,
    file: &'a dyn DiskFile,
    epoch: u64,
    seed: u32,
    position: u64,
    frames: Vec<PackedFrame>,
    bytes: usize,
    group_seq: u64,
    group_crc: u32,
    footer: FooterBuilder,
    /// Runs of the log that is being written.
    log: Option<LogId>,
    runs: Vec<Run>,
}

impl<'a> Packer<'a> {
    fn new(shared: &'a Shared, file: &'a dyn DiskFile, epoch: u64) -> Self {
        let seed = seed(&shared.cluster, epoch);
        Packer {
            shared,
            file,
            epoch,
            seed,
            position: BLOCK_BYTES as u64,
            frames: Vec::new(),
            bytes: 0,
            group_seq: 0,
            group_crc: 0,
            footer: FooterBuilder::new(seed),
            log: None,
            runs: Vec::new(),
        }
    }

    /// Adds the batches of a run: to the last frame if they continue it and it has room.
    fn add(&mut self, log: LogId, run: &Run, payload: Bytes) -> io::Result<()> {
        if let Some(frame) = self.frames.last_mut()
            && frame.log == log
            && frame.run.last_offset + 1 == run.base_offset
            && frame.run.payload_bytes as usize + payload.len() <= FRAME_PAYLOAD_MAX
        {
            frame.run.last_offset = run.last_offset;
            frame.run.payload_bytes += run.payload_bytes;
            frame.run.batches += run.batches;
            if run.max_timestamp > frame.run.max_timestamp {
                frame.run.max_timestamp = run.max_timestamp;
                frame.run.max_timestamp_base = run.max_timestamp_base;
            }
            self.bytes += payload.len();
            frame.pieces.push(payload);
            return Ok(());
        }
        if self.bytes + payload.len() > self.shared.options.group_bytes_max() {
            self.flush()?;
        }
        self.bytes += payload.len();
        self.frames.push(PackedFrame {
            log,
            run: *run,
            pieces: vec![payload],
        });
        Ok(())
    }

    /// Writes the frames gathered so far as one group.
    fn flush(&mut self) -> io::Result<()> {
        if self.frames.is_empty() {
            return Ok(());
        }
        let kind = FrameKind::Packed;
        let length = |frame: &PackedFrame| frame_bytes(kind, frame.run.payload_bytes as usize, 0);
        let bytes = whole_blocks(GROUP_HEADER_BYTES + self.frames.iter().map(length).sum::<usize>());
        let mut writer = GroupWriter::new(self.shared.pool.take(bytes), self.seed);
        for mut frame in std::mem::take(&mut self.frames) {
            let at = writer.begin_frame() as u64;
            for piece in &frame.pieces {
                writer.push(piece);
            }
            writer.end_frame(&FrameHeader {
                kind,
                log: frame.log,
                payload_bytes: frame.run.payload_bytes,
                entries: frame.run.batches,
                first_lsn: 0,
                base_offset: frame.run.base_offset,
                last_offset: frame.run.last_offset,
            });
            frame.run.position = u32::try_from(self.position + at).map_err(io::Error::other)?;
            self.index(frame.log, frame.run);
        }
        self.group_seq += 1;
        let group = writer.finish(GroupHeader {
            group_seq: self.group_seq,
            first_lsn: 1,
            previous_crc: self.group_crc,
            ..GroupHeader::default()
        });
        self.file.write_at(group.buffer.as_slice(), self.position)?;
        self.position += group.buffer.as_slice().len() as u64;
        self.group_crc = group.crc;
        self.bytes = 0;
        Ok(())
    }

    fn index(&mut self, log: LogId, run: Run) {
        if let Some(before) = self.log.filter(|before| *before != log) {
            self.footer.add(before, &self.runs);
            self.runs.clear();
        }
        self.log = Some(log);
        self.runs.push(run);
    }

    /// Writes footer and header.
    fn finish(mut self, replaced: &[Arc<Segment>]) -> io::Result<(Segment, Vec<Summary>)> {
        if let Some(log) = self.log {
            self.footer.add(log, &self.runs);
        }
        let from = replaced.first().map_or(0, |segment| segment.replaces_from);
        let seq = replaced.last().map_or(0, |segment| segment.seq);
        let last_lsn = replaced.iter().map(|segment| segment.lsns.1).max().unwrap_or(0);
        let file_bytes = self.position + self.footer.bytes() as u64;
        let trailer = Trailer {
            epoch: self.epoch,
            first_lsn: 1,
            last_lsn,
            last_group_seq: self.group_seq,
            last_group_crc: self.group_crc,
            groups_end: u32::try_from(self.position).map_err(io::Error::other)?,
            ..Trailer::default()
        };
        let summaries = write_footer(self.footer, trailer, self.file, file_bytes)?;
        let header = SegmentHeader {
            cluster: self.shared.cluster,
            seq,
            epoch: self.epoch,
            kind: SegmentKind::Packed,
            replaces: (from, seq),
            file_bytes,
            last_lsn,
        };
        write_header(self.file, &header)?;
        let mut segment = Segment::new(
            &self.shared.cluster,
            seq,
            self.epoch,
            SegmentKind::Packed,
            file_bytes,
            (1, last_lsn),
        );
        segment.replaces_from = from;
        Ok((segment, summaries))
    }
}
