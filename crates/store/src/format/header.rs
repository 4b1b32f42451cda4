//! A segment's first block: whose file this is, which use of it, and what it replaces.

use super::{ClusterId, FORMAT_VERSION, Get, Put};

/// Bytes of the header; the rest of its block is zero.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 88;
const MAGIC: [u8; 8] = *b"ANBRSEG\n";

/// How a segment came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Written by commits; holds entries of all kinds, gapless in their sequence numbers.
    Plain,
    /// Written by packing; holds only batches that were live in the segments it replaces.
    Packed,
}

/// The header of a segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) cluster: ClusterId,
    pub(crate) seq: u64,
    /// Differs for every use of every segment file of a store, see [`super::seed`].
    pub(crate) epoch: u64,
    pub(crate) kind: SegmentKind,
    /// First and last sequence number of the segments that this one stands for; both `seq` for a plain one.
    pub(crate) replaces: (u64, u64),
    /// Length of the file when it was made; it never gets shorter.
    pub(crate) file_bytes: u64,
    /// For a packed segment the last entry of those it replaces, 0 for a plain one.
    pub(crate) last_lsn: u64,
}

/// Why a block is no header that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    NoSegment,
    NewerFormat(u32),
    Checksum,
}

impl HeaderError {
    pub(crate) fn what(&self) -> String {
        match self {
            HeaderError::NoSegment => "the segment header is missing".to_owned(),
            HeaderError::NewerFormat(found) => format!("the segment header has format version {found}"),
            HeaderError::Checksum => "the segment header fails its checksum".to_owned(),
        }
    }
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let kind = match self.kind {
            SegmentKind::Plain => 0,
            SegmentKind::Packed => 1,
        };
        let mut put = Put::new(&mut bytes);
        put.bytes(&MAGIC)
            .u32(FORMAT_VERSION)
            .u32(0)
            .bytes(&self.cluster)
            .u64(self.seq)
            .u64(self.epoch);
        put.u64(self.replaces.0).u64(self.replaces.1).u64(self.file_bytes);
        put.u64(self.last_lsn).u8(kind).bytes(&[0; 7]);
        let crc = crc32c::crc32c(&bytes);
        Put::new(&mut bytes[12..16]).u32(crc);
        bytes
    }

    pub(crate) fn decode(block: &[u8]) -> Result<SegmentHeader, HeaderError> {
        let Some(bytes) = block.first_chunk::<SEGMENT_HEADER_BYTES>() else {
            return Err(HeaderError::NoSegment);
        };
        let mut get = Get::new(bytes);
        if get.array::<8>() != MAGIC {
            return Err(HeaderError::NoSegment);
        }
        let version = get.u32();
        let crc = get.u32();
        let mut unsummed = *bytes;
        unsummed[12..16].fill(0);
        if crc32c::crc32c(&unsummed) != crc {
            return Err(HeaderError::Checksum);
        }
        if version > FORMAT_VERSION {
            return Err(HeaderError::NewerFormat(version));
        }
        let header = SegmentHeader {
            cluster: get.array(),
            seq: get.u64(),
            epoch: get.u64(),
            replaces: (get.u64(), get.u64()),
            file_bytes: get.u64(),
            last_lsn: get.u64(),
            kind: SegmentKind::Plain,
        };
        match get.u8() {
            0 => Ok(header),
            1 => Ok(SegmentHeader {
                kind: SegmentKind::Packed,
                ..header
            }),
            _ => Err(HeaderError::NewerFormat(version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            cluster: [3; 16],
            seq: 9,
            epoch: 11,
            kind: SegmentKind::Packed,
            replaces: (4, 9),
            file_bytes: 64 << 20,
            last_lsn: 77,
        }
    }

    #[test]
    fn a_header_is_read_back_as_written() {
        assert_eq!(SegmentHeader::decode(&header().encode()), Ok(header()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = header().encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
