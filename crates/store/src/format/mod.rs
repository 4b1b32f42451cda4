//! The bytes on disk, as tables of fields: `docs/format/wal.md`, `segment.md` and `snapshot.md` draw the same tables,
//! and a test holds the three against a stored segment.
//!
//! All numbers are little-endian. Every checksum is CRC-32C. Inside a segment it is seeded with the cluster id and the
//! segment's epoch, a number that no other use of any segment file of this store ever had: what a recycled file still
//! holds from earlier can therefore never pass for current content.

pub(crate) mod batch;
pub(crate) mod footer;
pub(crate) mod frame;
pub(crate) mod group;
pub(crate) mod header;
pub(crate) mod meta;
pub(crate) mod snapshot;

/// Version of the whole data folder: META, segments and snapshots carry it.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Groups start and end on multiples of this, and so do all writes to segments.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// The cluster that a folder belongs to.
pub(crate) type ClusterId = [u8; 16];

/// `bytes` rounded up to whole blocks.
pub(crate) fn whole_blocks(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// What the checksums inside a segment start from.
///
/// CRC-32C maps different 32-bit counters behind an equal prefix to different values, so two epochs below 2^32 of one
/// cluster never share a seed.
pub(crate) fn seed(cluster: &ClusterId, epoch: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(cluster), &epoch.to_le_bytes())
}

/// Writes fields one behind the other. The tables are of fixed size, so running out of room is a programming error.
pub(crate) struct Put<'a> {
    buf: &'a mut [u8],
    at: usize,
}

impl<'a> Put<'a> {
    pub(crate) fn new(buf: &'a mut [u8]) -> Self {
        Put { buf, at: 0 }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.buf[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn i64(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
}

/// Reads fields one behind the other, from a block whose length the caller has checked.
pub(crate) struct Get<'a> {
    buf: &'a [u8],
    at: usize,
}

impl<'a> Get<'a> {
    pub(crate) fn new(buf: &'a [u8]) -> Self {
        Get { buf, at: 0 }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.buf[self.at..self.at + N]);
        self.at += N;
        array
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }
}

/// The numbers of a table of offsets or sequence numbers.
pub(crate) fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|chunk| Get::new(chunk).u32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_of_one_cluster_never_share_a_seed() {
        let cluster = [7; 16];
        let seeds: std::collections::BTreeSet<_> = (0..10_000).map(|epoch| seed(&cluster, epoch)).collect();
        assert_eq!(seeds.len(), 10_000);
        assert_ne!(seed(&[8; 16], 1), seed(&cluster, 1));
    }
}
