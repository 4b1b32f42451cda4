//! Frames: the parts of a commit group. A frame holds one state entry, or consecutive batches of one log.
//!
//! ```text
//! | frame header | payload | table: one u32 per batch, its lsn minus the first | zeros to a multiple of 8 |
//! ```
//!
//! The batches of a log are gathered within a group, so their sequence numbers are not consecutive: the table keeps each
//! one's number, and a replay can put every entry of a group back into the order in which it was appended. Packed
//! frames have no table, since they are never replayed.

use anabranch_core::ids::{LogId, Offset};

use super::{Get, Put, u32s};

/// Bytes of a frame header; the payload starts right behind it.
pub(crate) const FRAME_HEADER_BYTES: usize = 48;

/// A frame takes no further batch once its payload would grow beyond this: small enough that a reader who wants a part
/// of it checks little more than that, large enough that checksums and headers do not count.
pub(crate) const FRAME_PAYLOAD_MAX: usize = 256 << 10;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// One state entry.
    State,
    /// Batches of one log, with their sequence numbers.
    Batches,
    /// Batches of one log that packing copied, without sequence numbers.
    Packed,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// 0 for state.
    pub(crate) log: LogId,
    pub(crate) payload_bytes: u32,
    /// Entries in the frame: 1 for state, the number of batches otherwise.
    pub(crate) entries: u32,
    /// Of the first entry; 0 in packed frames.
    pub(crate) first_lsn: u64,
    pub(crate) base_offset: Offset,
    pub(crate) last_offset: Offset,
}

/// A frame as it was read back and verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) crc: u32,
    pub(crate) payload: &'a [u8],
    table: &'a [u8],
    /// Length with padding: the next frame starts there.
    pub(crate) bytes: usize,
}

/// Whole length of a frame.
pub(crate) fn frame_bytes(kind: FrameKind, payload: usize, entries: usize) -> usize {
    (FRAME_HEADER_BYTES + payload + table_bytes(kind, entries)).next_multiple_of(8)
}

pub(crate) fn table_bytes(kind: FrameKind, entries: usize) -> usize {
    if kind == FrameKind::Batches {
        entries * 4
    } else {
        0
    }
}

impl FrameHeader {
    /// Writes the header with the checksum of the whole frame, whose payload and table are already in place.
    pub(crate) fn seal(&self, frame: &mut [u8], seed: u32) -> u32 {
        let kind = match self.kind {
            FrameKind::State => 1,
            FrameKind::Batches => 2,
            FrameKind::Packed => 3,
        };
        let mut put = Put::new(&mut frame[..FRAME_HEADER_BYTES]);
        put.u32(0)
            .u8(kind)
            .bytes(&[0; 3])
            .u32(self.log.0)
            .u32(self.payload_bytes)
            .u32(self.entries)
            .u32(0);
        put.u64(self.first_lsn)
            .i64(self.base_offset)
            .i64(self.last_offset);
        let crc = crc32c::crc32c_append(seed, &frame[4..]);
        Put::new(&mut frame[..4]).u32(crc);
        crc
    }

    /// The fields of a header, not verified; `None` if they contradict each other.
    fn peek(bytes: &[u8]) -> Option<(FrameHeader, u32)> {
        let bytes = bytes.first_chunk::<FRAME_HEADER_BYTES>()?;
        let mut get = Get::new(bytes);
        let crc = get.u32();
        let kind = match get.u8() {
            1 => FrameKind::State,
            2 => FrameKind::Batches,
            3 => FrameKind::Packed,
            _ => return None,
        };
        let _: [u8; 3] = get.array();
        let (log, payload_bytes, entries, _) = (LogId(get.u32()), get.u32(), get.u32(), get.u32());
        let header = FrameHeader {
            kind,
            log,
            payload_bytes,
            entries,
            first_lsn: get.u64(),
            base_offset: get.i64(),
            last_offset: get.i64(),
        };
        Some((header, crc))
    }
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, if a whole and intact one is there.
    pub(crate) fn decode(bytes: &'a [u8], seed: u32) -> Option<Frame<'a>> {
        let (header, crc) = FrameHeader::peek(bytes)?;
        let payload_end = FRAME_HEADER_BYTES.checked_add(usize::try_from(header.payload_bytes).ok()?)?;
        let entries = usize::try_from(header.entries).ok()?;
        let table_end = payload_end.checked_add(table_bytes(header.kind, entries))?;
        let end = table_end.checked_next_multiple_of(8)?;
        let whole = bytes.get(..end)?;
        if crc32c::crc32c_append(seed, &whole[4..]) != crc {
            return None;
        }
        Some(Frame {
            header,
            crc,
            payload: &whole[FRAME_HEADER_BYTES..payload_end],
            table: &whole[payload_end..table_end],
            bytes: end,
        })
    }

    /// The sequence number of each entry. Empty for packed frames.
    pub(crate) fn lsns(&self) -> impl Iterator<Item = u64> + '_ {
        let state = (self.header.kind == FrameKind::State).then_some(self.header.first_lsn);
        state
            .into_iter()
            .chain(u32s(self.table).map(|delta| self.header.first_lsn.saturating_add(u64::from(delta))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        let header = FrameHeader {
            kind: FrameKind::Batches,
            log: LogId(4),
            payload_bytes: 5,
            entries: 2,
            first_lsn: 100,
            base_offset: 7,
            last_offset: 9,
        };
        let mut bytes = vec![0; frame_bytes(FrameKind::Batches, 5, 2)];
        bytes[48..53].copy_from_slice(b"hello");
        bytes[57..61].copy_from_slice(&3u32.to_le_bytes());
        header.seal(&mut bytes, 1);
        bytes
    }

    #[test]
    fn a_frame_is_read_back_as_written() {
        let bytes = frame();
        let frame = Frame::decode(&bytes, 1).unwrap();
        assert_eq!(frame.payload, b"hello");
        assert_eq!(frame.lsns().collect::<Vec<_>>(), [100, 103]);
        assert_eq!(
            (
                frame.header.log,
                frame.header.base_offset,
                frame.header.last_offset
            ),
            (LogId(4), 7, 9)
        );
        assert_eq!(frame.bytes, 64);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = frame();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::decode(&flipped, 1).is_none(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Frame::decode(&bytes[..len], 1).is_none(), "cut at {len}");
        }
        assert!(Frame::decode(&bytes, 2).is_none(), "another epoch");
    }

    #[test]
    fn huge_lengths_are_refused_without_overflow() {
        let mut bytes = frame();
        bytes[12..16].fill(0xff);
        bytes[16..20].fill(0xff);
        assert!(Frame::decode(&bytes, 1).is_none());
    }
}
