//! A sealed segment's index, at the end of its file:
//!
//! ```text
//! | zeros | run entries, log by log | one summary per log | trailer: last block of the file |
//! ```
//!
//! An opening store reads trailer and summaries in one go; the run entries of a log are read when one of its offsets is
//! asked for, and checked against the checksum in its summary.

use anabranch_core::ids::{LogId, Offset};

use super::{BLOCK_BYTES, FORMAT_VERSION, Get, Put};
use crate::index::Run;

/// Bytes of one run entry.
pub(crate) const RUN_BYTES: usize = 44;
/// Bytes of one log's summary.
pub(crate) const SUMMARY_BYTES: usize = 60;
/// Bytes of the trailer that are used; it starts the last block of the file.
pub(crate) const TRAILER_BYTES: usize = 96;
const MAGIC: [u8; 8] = *b"ANBREND\n";

/// What a sealed segment holds of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) log: LogId,
    /// Number of run entries.
    pub(crate) runs: u32,
    /// Where its run entries start in the file.
    pub(crate) entries_position: u32,
    pub(crate) entries_crc: u32,
    pub(crate) first_offset: Offset,
    pub(crate) last_offset: Offset,
    pub(crate) max_timestamp: i64,
    /// Base offset of the first batch with that timestamp.
    pub(crate) max_timestamp_base: Offset,
    /// Bytes of its batches.
    pub(crate) bytes: u64,
    /// Batches in the segment.
    pub(crate) batches: u32,
}

/// The end of a sealed segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) epoch: u64,
    pub(crate) first_lsn: u64,
    /// Less than `first_lsn` if the segment holds no entry.
    pub(crate) last_lsn: u64,
    pub(crate) last_group_seq: u64,
    pub(crate) last_group_crc: u32,
    /// Where the last group ends.
    pub(crate) groups_end: u32,
    /// Where the run entries start; they reach up to the summaries.
    pub(crate) entries_position: u32,
    /// Where the summaries start; they reach up to the trailer.
    pub(crate) summaries_position: u32,
    pub(crate) summaries: u32,
    pub(crate) summaries_crc: u32,
}

/// Upper bound of a footer's length, in whole blocks, for so many runs of so many logs.
pub(crate) fn footer_bytes(runs: usize, logs: usize) -> usize {
    super::whole_blocks(runs * RUN_BYTES + logs * SUMMARY_BYTES) + BLOCK_BYTES
}

pub(crate) fn encode_run(run: &Run, bytes: &mut [u8]) {
    let mut put = Put::new(bytes);
    put.i64(run.base_offset)
        .i64(run.last_offset)
        .i64(run.max_timestamp)
        .i64(run.max_timestamp_base);
    put.u32(run.position).u32(run.payload_bytes).u32(run.batches);
}

pub(crate) fn decode_runs(bytes: &[u8]) -> Vec<Run> {
    let decode = |bytes| {
        let mut get = Get::new(bytes);
        Run {
            base_offset: get.i64(),
            last_offset: get.i64(),
            max_timestamp: get.i64(),
            max_timestamp_base: get.i64(),
            position: get.u32(),
            payload_bytes: get.u32(),
            batches: get.u32(),
        }
    };
    bytes.chunks_exact(RUN_BYTES).map(decode).collect()
}

impl Summary {
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        let mut put = Put::new(bytes);
        put.u32(self.log.0)
            .u32(self.runs)
            .u32(self.entries_position)
            .u32(self.entries_crc);
        put.i64(self.first_offset)
            .i64(self.last_offset)
            .i64(self.max_timestamp)
            .i64(self.max_timestamp_base);
        put.u64(self.bytes).u32(self.batches);
    }

    pub(crate) fn decode_all(bytes: &[u8]) -> Vec<Summary> {
        let decode = |bytes| {
            let mut get = Get::new(bytes);
            Summary {
                log: LogId(get.u32()),
                runs: get.u32(),
                entries_position: get.u32(),
                entries_crc: get.u32(),
                first_offset: get.i64(),
                last_offset: get.i64(),
                max_timestamp: get.i64(),
                max_timestamp_base: get.i64(),
                bytes: get.u64(),
                batches: get.u32(),
            }
        };
        bytes.chunks_exact(SUMMARY_BYTES).map(decode).collect()
    }

    /// Length of its run entries.
    pub(crate) fn entries_bytes(&self) -> usize {
        self.runs as usize * RUN_BYTES
    }
}

impl Trailer {
    pub(crate) fn encode(&self, seed: u32) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        let mut put = Put::new(&mut bytes);
        put.bytes(&MAGIC)
            .u32(FORMAT_VERSION)
            .u32(0)
            .u64(self.epoch)
            .u64(self.first_lsn)
            .u64(self.last_lsn);
        put.u64(self.last_group_seq)
            .u32(self.last_group_crc)
            .u32(self.groups_end)
            .u32(self.entries_position);
        put.u32(self.summaries_position)
            .u32(self.summaries)
            .u32(self.summaries_crc)
            .bytes(&[0; 24]);
        let crc = crc32c::crc32c_append(seed, &bytes);
        Put::new(&mut bytes[12..16]).u32(crc);
        bytes
    }

    /// The trailer at the start of `block`, if one of this segment's epoch is there.
    pub(crate) fn decode(block: &[u8], epoch: u64, seed: u32) -> Option<Trailer> {
        let mut bytes = *block.first_chunk::<TRAILER_BYTES>()?;
        let mut get = Get::new(&bytes);
        if get.array::<8>() != MAGIC || get.u32() != FORMAT_VERSION {
            return None;
        }
        let crc = get.u32();
        let trailer = Trailer {
            epoch: get.u64(),
            first_lsn: get.u64(),
            last_lsn: get.u64(),
            last_group_seq: get.u64(),
            last_group_crc: get.u32(),
            groups_end: get.u32(),
            entries_position: get.u32(),
            summaries_position: get.u32(),
            summaries: get.u32(),
            summaries_crc: get.u32(),
        };
        bytes[12..16].fill(0);
        (crc32c::crc32c_append(seed, &bytes) == crc && trailer.epoch == epoch).then_some(trailer)
    }
}

/// Builds a footer as the bytes that end a file of `file_bytes`.
pub(crate) struct FooterBuilder {
    entries: Vec<u8>,
    summaries: Vec<Summary>,
    seed: u32,
}

impl FooterBuilder {
    pub(crate) fn new(seed: u32) -> Self {
        FooterBuilder {
            entries: Vec::new(),
            summaries: Vec::new(),
            seed,
        }
    }

    /// Adds a log, whose runs are in offset order. Logs come in ascending order.
    pub(crate) fn add(&mut self, log: LogId, runs: &[Run]) {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return;
        };
        let start = self.entries.len();
        self.entries.resize(start + runs.len() * RUN_BYTES, 0);
        for (run, bytes) in runs.iter().zip(self.entries[start..].chunks_exact_mut(RUN_BYTES)) {
            encode_run(run, bytes);
        }
        let newest = runs.iter().fold(
            first,
            |a, b| if b.max_timestamp > a.max_timestamp { b } else { a },
        );
        self.summaries.push(Summary {
            log,
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            entries_position: u32::try_from(start).unwrap_or(u32::MAX),
            entries_crc: crc32c::crc32c_append(self.seed, &self.entries[start..]),
            first_offset: first.base_offset,
            last_offset: last.last_offset,
            max_timestamp: newest.max_timestamp,
            max_timestamp_base: newest.max_timestamp_base,
            bytes: runs.iter().map(|run| u64::from(run.payload_bytes)).sum(),
            batches: runs.iter().map(|run| run.batches).fold(0, u32::saturating_add),
        });
    }

    /// Length of the footer in whole blocks.
    pub(crate) fn bytes(&self) -> usize {
        footer_bytes(self.entries.len() / RUN_BYTES, self.summaries.len())
    }

    /// Fills `footer`, which is [`Self::bytes`] long and ends the file at `file_bytes`. Gives the summaries with their
    /// final positions.
    pub(crate) fn finish(mut self, trailer: Trailer, file_bytes: u64, footer: &mut [u8]) -> Vec<Summary> {
        let content = footer.len() - BLOCK_BYTES;
        let summaries_at = content - self.summaries.len() * SUMMARY_BYTES;
        let entries_at = summaries_at - self.entries.len();
        footer[..entries_at].fill(0);
        footer[entries_at..summaries_at].copy_from_slice(&self.entries);
        let place =
            |at: usize| u32::try_from(file_bytes - footer.len() as u64 + at as u64).unwrap_or(u32::MAX);
        let (entries_position, summaries_position) = (place(entries_at), place(summaries_at));
        for summary in &mut self.summaries {
            summary.entries_position += entries_position;
        }
        for (summary, bytes) in self
            .summaries
            .iter()
            .zip(footer[summaries_at..content].chunks_exact_mut(SUMMARY_BYTES))
        {
            summary.encode(bytes);
        }
        let trailer = Trailer {
            entries_position,
            summaries_position,
            summaries: u32::try_from(self.summaries.len()).unwrap_or(u32::MAX),
            summaries_crc: crc32c::crc32c_append(self.seed, &footer[summaries_at..content]),
            ..trailer
        };
        footer[content..].fill(0);
        footer[content..content + TRAILER_BYTES].copy_from_slice(&trailer.encode(self.seed));
        self.summaries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(base_offset: Offset, max_timestamp: i64) -> Run {
        Run {
            base_offset,
            last_offset: base_offset + 9,
            max_timestamp,
            max_timestamp_base: base_offset,
            position: 4096,
            payload_bytes: 100,
            batches: 2,
        }
    }

    #[test]
    fn a_footer_is_read_back_as_written() {
        let mut builder = FooterBuilder::new(5);
        builder.add(LogId(1), &[run(0, 7), run(10, 9), run(20, 9)]);
        builder.add(LogId(8), &[run(100, 3)]);
        let mut footer = vec![0xaa; builder.bytes()];
        let trailer = Trailer {
            epoch: 2,
            first_lsn: 1,
            last_lsn: 8,
            groups_end: 8192,
            ..Trailer::default()
        };
        let summaries = builder.finish(trailer, 1 << 16, &mut footer);

        let start = (1 << 16) - footer.len();
        let found = Trailer::decode(&footer[footer.len() - BLOCK_BYTES..], 2, 5).unwrap();
        assert_eq!((found.first_lsn, found.last_lsn, found.groups_end), (1, 8, 8192));
        let from = found.summaries_position as usize - start;
        let bytes = &footer[from..from + found.summaries as usize * SUMMARY_BYTES];
        assert_eq!(crc32c::crc32c_append(5, bytes), found.summaries_crc);
        assert_eq!(Summary::decode_all(bytes), summaries);
        let first = summaries[0];
        assert_eq!(
            (first.max_timestamp, first.max_timestamp_base, first.bytes),
            (9, 10, 300)
        );
        let at = first.entries_position as usize - start;
        assert_eq!(
            decode_runs(&footer[at..at + first.entries_bytes()]),
            [run(0, 7), run(10, 9), run(20, 9)]
        );
    }

    #[test]
    fn a_trailer_of_another_use_of_the_file_is_not_accepted() {
        let bytes = Trailer {
            epoch: 2,
            ..Trailer::default()
        }
        .encode(5);
        assert!(Trailer::decode(&bytes, 2, 5).is_some());
        assert!(Trailer::decode(&bytes, 3, 6).is_none());
        assert!(Trailer::decode(&bytes, 3, 5).is_none());
    }

    #[test]
    fn every_flipped_bit_of_a_trailer_is_noticed() {
        let bytes = Trailer {
            epoch: 2,
            first_lsn: 5,
            ..Trailer::default()
        }
        .encode(5);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Trailer::decode(&flipped, 2, 5).is_none(), "bit {bit}");
        }
    }
}
