//! Puts frames one behind the other into a buffer, as one commit group.

use crate::buffer::Buffer;
use crate::format::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::format::group::{GROUP_HEADER_BYTES, GroupHeader};
use crate::format::whole_blocks;

/// A group in the making. The buffer must have been taken long enough for all that will be put into it.
pub(crate) struct GroupWriter {
    buffer: Buffer,
    at: usize,
    frame_start: usize,
    seed: u32,
    frame_count: u32,
    frames_crc: u32,
}

/// A finished group.
pub(crate) struct BuiltGroup {
    pub(crate) buffer: Buffer,
    /// Checksum of its header.
    pub(crate) crc: u32,
}

impl GroupWriter {
    pub(crate) fn new(buffer: Buffer, seed: u32) -> Self {
        let at = GROUP_HEADER_BYTES;
        GroupWriter {
            buffer,
            at,
            frame_start: at,
            seed,
            frame_count: 0,
            frames_crc: seed,
        }
    }

    /// Starts a frame; gives its position in the group.
    pub(crate) fn begin_frame(&mut self) -> usize {
        self.frame_start = self.at;
        self.at += FRAME_HEADER_BYTES;
        self.frame_start
    }

    /// Appends a copy to the frame and lends it for changes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> &mut [u8] {
        let end = self.at + bytes.len();
        let place = &mut self.buffer.as_mut_slice()[self.at..end];
        place.copy_from_slice(bytes);
        self.at = end;
        place
    }

    /// Ends the frame: pads it and writes its header.
    pub(crate) fn end_frame(&mut self, header: &FrameHeader) {
        let end = self.at.next_multiple_of(8);
        let frame = &mut self.buffer.as_mut_slice()[self.frame_start..end];
        frame[self.at - self.frame_start..].fill(0);
        let crc = header.seal(frame, self.seed);
        self.frames_crc = crc32c::crc32c_append(self.frames_crc, &crc.to_le_bytes());
        self.frame_count += 1;
        self.at = end;
    }

    /// Writes the group's header and the padding. What the header says about bytes and frames is filled in.
    pub(crate) fn finish(mut self, header: GroupHeader) -> BuiltGroup {
        let header = GroupHeader {
            bytes: u32::try_from(self.at).unwrap_or(u32::MAX),
            frame_count: self.frame_count,
            frames_crc: self.frames_crc,
            ..header
        };
        let (bytes, crc) = header.encode(self.seed);
        let end = whole_blocks(self.at);
        debug_assert_eq!(
            end,
            self.buffer.as_slice().len(),
            "the plan foresaw another length"
        );
        let content = self.buffer.as_mut_slice();
        content[..GROUP_HEADER_BYTES].copy_from_slice(&bytes);
        content[self.at..].fill(0);
        BuiltGroup {
            buffer: self.buffer,
            crc,
        }
    }
}
