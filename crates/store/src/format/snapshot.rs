//! Snapshot files: a header of 64 bytes and the owner's state behind it.

use super::{ClusterId, FORMAT_VERSION, Get, Put};

/// Bytes of a snapshot's header.
pub(crate) const SNAPSHOT_HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"ANBRSNP\n";

/// The header of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotHeader {
    pub(crate) cluster: ClusterId,
    /// The last entry whose effects are in the snapshot.
    pub(crate) lsn: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) payload_crc: u32,
}

impl SnapshotHeader {
    pub(crate) fn encode(&self) -> [u8; SNAPSHOT_HEADER_BYTES] {
        let mut bytes = [0; SNAPSHOT_HEADER_BYTES];
        let mut put = Put::new(&mut bytes);
        put.bytes(&MAGIC)
            .u32(FORMAT_VERSION)
            .u32(0)
            .bytes(&self.cluster)
            .u64(self.lsn);
        put.u64(self.payload_bytes).u32(self.payload_crc).bytes(&[0; 12]);
        let crc = crc32c::crc32c(&bytes);
        Put::new(&mut bytes[12..16]).u32(crc);
        bytes
    }

    /// The header, or what is wrong with it; `Err(Ok(version))` names a version that is too new.
    pub(crate) fn decode(bytes: &[u8]) -> Result<SnapshotHeader, Result<u32, &'static str>> {
        let Some(header) = bytes.first_chunk::<SNAPSHOT_HEADER_BYTES>() else {
            return Err(Err("it is shorter than its header"));
        };
        let mut get = Get::new(header);
        if get.array::<8>() != MAGIC {
            return Err(Err("it does not start as a snapshot does"));
        }
        let version = get.u32();
        let crc = get.u32();
        let mut unsummed = *header;
        unsummed[12..16].fill(0);
        if crc32c::crc32c(&unsummed) != crc {
            return Err(Err("its header fails the checksum"));
        }
        if version > FORMAT_VERSION {
            return Err(Ok(version));
        }
        Ok(SnapshotHeader {
            cluster: get.array(),
            lsn: get.u64(),
            payload_bytes: get.u64(),
            payload_crc: get.u32(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_as_written_and_every_flipped_bit_is_noticed() {
        let header = SnapshotHeader {
            cluster: [1; 16],
            lsn: 5,
            payload_bytes: 6,
            payload_crc: 7,
        };
        let bytes = header.encode();
        assert_eq!(SnapshotHeader::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SnapshotHeader::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
