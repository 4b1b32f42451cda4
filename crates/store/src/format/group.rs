//! Commit groups: what one write and one sync make durable together.
//!
//! ```text
//! | group header | frame | frame | ... | zeros to the end of the block |
//! ```
//!
//! A group's header is 64 bytes at the start of a block, so that it lies in one sector and is there whole or not at all. It
//! ties the group to its place: to the segment by the seed, to the group before it by that one's checksum, and to its
//! frames by a checksum over theirs. A frame that an earlier, discarded group left at the same place is thereby
//! never taken for a part of this one.

use super::{Get, Put};

/// Bytes of a group header.
pub(crate) const GROUP_HEADER_BYTES: usize = 64;
const MAGIC: u32 = u32::from_le_bytes(*b"ABGR");

/// Set in the empty group that an orderly close leaves behind.
pub(crate) const FLAG_CLEAN_CLOSE: u32 = 1;

/// The header of a commit group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// Counts groups over all segments, from 1.
    pub(crate) group_seq: u64,
    /// The first of `lsn_count` consecutive sequence numbers.
    pub(crate) first_lsn: u64,
    /// Everything up to here was durable before this group was written. A valid header therefore proves that a hole
    /// below this number is damage, and not the torn end of the log.
    pub(crate) durable_lsn: u64,
    pub(crate) lsn_count: u32,
    /// Length with this header, without the zeros behind it.
    pub(crate) bytes: u32,
    pub(crate) frame_count: u32,
    /// Checksum over the checksums of the frames.
    pub(crate) frames_crc: u32,
    /// Checksum of the group before; 0 for the very first and for packed segments' first.
    pub(crate) previous_crc: u32,
    pub(crate) flags: u32,
}

impl GroupHeader {
    /// The bytes, and the checksum in them that the next group refers to.
    pub(crate) fn encode(&self, seed: u32) -> ([u8; GROUP_HEADER_BYTES], u32) {
        let mut bytes = [0; GROUP_HEADER_BYTES];
        let mut put = Put::new(&mut bytes);
        put.u32(MAGIC)
            .u32(0)
            .u64(self.group_seq)
            .u64(self.first_lsn)
            .u64(self.durable_lsn);
        put.u32(self.lsn_count)
            .u32(self.bytes)
            .u32(self.frame_count)
            .u32(self.frames_crc);
        put.u32(self.previous_crc).u32(self.flags).u64(0);
        let crc = crc32c::crc32c_append(seed, &bytes[8..]);
        Put::new(&mut bytes[4..8]).u32(crc);
        (bytes, crc)
    }

    /// The header at the start of `block` and its checksum, if one of this segment's epoch is there.
    pub(crate) fn decode(block: &[u8], seed: u32) -> Option<(GroupHeader, u32)> {
        let bytes = block.first_chunk::<GROUP_HEADER_BYTES>()?;
        let mut get = Get::new(bytes);
        if get.u32() != MAGIC {
            return None;
        }
        let crc = get.u32();
        if crc32c::crc32c_append(seed, &bytes[8..]) != crc {
            return None;
        }
        let header = GroupHeader {
            group_seq: get.u64(),
            first_lsn: get.u64(),
            durable_lsn: get.u64(),
            lsn_count: get.u32(),
            bytes: get.u32(),
            frame_count: get.u32(),
            frames_crc: get.u32(),
            previous_crc: get.u32(),
            flags: get.u32(),
        };
        Some((header, crc))
    }

    /// The sequence number behind the group's last.
    pub(crate) fn next_lsn(&self) -> u64 {
        self.first_lsn.saturating_add(u64::from(self.lsn_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> GroupHeader {
        GroupHeader {
            group_seq: 1,
            first_lsn: 2,
            durable_lsn: 1,
            lsn_count: 3,
            bytes: 400,
            frame_count: 2,
            frames_crc: 5,
            previous_crc: 6,
            flags: 0,
        }
    }

    #[test]
    fn a_header_is_read_back_as_written() {
        let (bytes, crc) = header().encode(77);
        assert_eq!(GroupHeader::decode(&bytes, 77), Some((header(), crc)));
    }

    #[test]
    fn another_epoch_is_not_accepted() {
        let (bytes, _) = header().encode(77);
        assert_eq!(GroupHeader::decode(&bytes, 78), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (bytes, _) = header().encode(77);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(GroupHeader::decode(&flipped, 77), None, "bit {bit}");
        }
    }
}
