//! Walks the groups of a segment file and tells where they end.

use std::io;

use anabranch_core::ids::LogId;

use crate::buffer::Buffer;
use crate::disk::DiskFile;
use crate::format::frame::{Frame, FrameKind};
use crate::format::group::{GROUP_HEADER_BYTES, GroupHeader};
use crate::format::{BLOCK_BYTES, batch, whole_blocks};
use crate::index::Run;

/// Bytes read at a time.
const WINDOW_BYTES: usize = 4 << 20;

/// What the next group must follow, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) group_seq: u64,
    pub(crate) group_crc: u32,
    pub(crate) last_lsn: u64,
    pub(crate) durable_lsn: u64,
}

impl Chain {
    /// Before the first group of a store.
    pub(crate) const START: Chain = Chain {
        group_seq: 0,
        group_crc: 0,
        last_lsn: 0,
        durable_lsn: 0,
    };

    fn admits(&self, header: &GroupHeader) -> bool {
        header.group_seq == self.group_seq.saturating_add(1)
            && header.previous_crc == self.group_crc
            && header.first_lsn == self.last_lsn.saturating_add(1)
    }

    pub(crate) fn after(header: &GroupHeader, crc: u32) -> Chain {
        Chain {
            group_seq: header.group_seq,
            group_crc: crc,
            last_lsn: header.next_lsn().saturating_sub(1),
            durable_lsn: header.durable_lsn,
        }
    }
}

/// A whole and intact group.
pub(crate) struct Group<'a> {
    pub(crate) position: u64,
    pub(crate) header: GroupHeader,
    pub(crate) crc: u32,
    pub(crate) frames: Vec<(usize, Frame<'a>)>,
}

impl Group<'_> {
    /// Where the next group starts.
    pub(crate) fn end(&self) -> u64 {
        self.position + whole_blocks(self.header.bytes as usize) as u64
    }
}

/// Reads a file through a window.
pub(crate) struct Scanner<'a> {
    file: &'a dyn DiskFile,
    file_bytes: u64,
    seed: u32,
    window: Buffer,
    window_at: u64,
    window_bytes: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(file: &'a dyn DiskFile, file_bytes: u64, seed: u32) -> Self {
        let window = usize::try_from(file_bytes)
            .unwrap_or(WINDOW_BYTES)
            .min(WINDOW_BYTES);
        let file_bytes = file_bytes - file_bytes % BLOCK_BYTES as u64;
        Scanner {
            file,
            file_bytes,
            seed,
            window: Buffer::zeroed(whole_blocks(window)),
            window_at: 0,
            window_bytes: 0,
        }
    }

    /// `len` bytes from a block's start on; `None` if the file ends before.
    fn bytes(&mut self, position: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let end = position.checked_add(len as u64);
        if end.is_none_or(|end| end > self.file_bytes) {
            return Ok(None);
        }
        let inside =
            position >= self.window_at && position + len as u64 <= self.window_at + self.window_bytes as u64;
        if !inside {
            let left = usize::try_from(self.file_bytes - position).unwrap_or(usize::MAX);
            if whole_blocks(len) > self.window.as_slice().len() {
                self.window = Buffer::zeroed(whole_blocks(len));
            }
            let fill = self.window.as_slice().len().min(left);
            self.window_bytes = 0;
            self.file
                .read_at(&mut self.window.as_mut_slice()[..fill], position)?;
            (self.window_at, self.window_bytes) = (position, fill);
        }
        let from = usize::try_from(position - self.window_at).unwrap_or(usize::MAX);
        Ok(self.window.as_slice().get(from..from + len))
    }

    /// The group at `position`, if it is whole, intact and follows `chain`.
    pub(crate) fn group(&mut self, position: u64, chain: Option<Chain>) -> io::Result<Option<Group<'_>>> {
        let seed = self.seed;
        let Some(block) = self.bytes(position, BLOCK_BYTES)? else {
            return Ok(None);
        };
        let Some((header, crc)) = GroupHeader::decode(block, seed) else {
            return Ok(None);
        };
        if chain.is_some_and(|chain| !chain.admits(&header)) {
            return Ok(None);
        }
        let len = header.bytes as usize;
        if len < GROUP_HEADER_BYTES {
            return Ok(None);
        }
        let Some(content) = self.bytes(position, whole_blocks(len))? else {
            return Ok(None);
        };
        let Some(frames) = frames_of(&content[..len], &header, seed) else {
            return Ok(None);
        };
        Ok(Some(Group {
            position,
            header,
            crc,
            frames,
        }))
    }

    /// Looks from `position` on for a group header which says that entry `lsn` had been durable.
    pub(crate) fn proof_of(&mut self, lsn: u64, position: u64) -> io::Result<Option<u64>> {
        let seed = self.seed;
        let mut at = position;
        while let Some(block) = self.bytes(at, BLOCK_BYTES)? {
            if GroupHeader::decode(block, seed).is_some_and(|(header, _)| header.durable_lsn >= lsn) {
                return Ok(Some(at));
            }
            at += BLOCK_BYTES as u64;
        }
        Ok(None)
    }
}

fn frames_of<'a>(content: &'a [u8], header: &GroupHeader, seed: u32) -> Option<Vec<(usize, Frame<'a>)>> {
    let mut frames = Vec::new();
    let mut at = GROUP_HEADER_BYTES;
    let mut crc = seed;
    for _ in 0..header.frame_count {
        let frame = Frame::decode(content.get(at..)?, seed)?;
        crc = crc32c::crc32c_append(crc, &frame.crc.to_le_bytes());
        frames.push((at, frame));
        at += frame.bytes;
    }
    (at == content.len() && crc == header.frames_crc).then_some(frames)
}

/// The index entry of a frame of batches at a position of the file; `None` if its payload is not what the header says.
pub(crate) fn run_of(frame: &Frame<'_>, position: u64) -> Option<(LogId, Run)> {
    let header = &frame.header;
    let mut run = Run {
        base_offset: header.base_offset,
        last_offset: header.last_offset,
        max_timestamp: i64::MIN,
        max_timestamp_base: header.base_offset,
        position: u32::try_from(position).ok()?,
        payload_bytes: header.payload_bytes,
        batches: header.entries,
    };
    let (mut bytes, mut batches, mut last) = (0, 0, None);
    for (at, found) in batch::walk(frame.payload) {
        bytes = at + found.bytes;
        batches += 1;
        last = Some(found.last_offset);
        if batches == 1 || found.max_timestamp > run.max_timestamp {
            run.max_timestamp = found.max_timestamp;
            run.max_timestamp_base = found.base_offset;
        }
    }
    let as_told = header.kind != FrameKind::State
        && bytes == frame.payload.len()
        && batches == header.entries
        && last == Some(header.last_offset);
    as_told.then_some((header.log, run))
}
