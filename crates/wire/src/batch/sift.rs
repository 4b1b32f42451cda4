//! A batch as one reader of a divided partition sees it: only the records of its slice, under a header of their own.
//!
//! ```text
//! stored batch   base 100, last 107:   a0 b1 a2 c3 b4 b5 a6 c7
//! slice of a     base id|100, last 107:   a0 a2 a6                 records as they are, offset deltas too
//! slice of all   base id|100, last 107:   a0 b1 ... c7             header patched, body shared, compressed or not
//! ```
//!
//! What a client sees is what Kafka's log cleaner leaves (`MemoryRecords.filterTo`): base offset, base timestamp,
//! attributes and the producer's fields stay, so that offset, timestamp and sequence of each record are the same as
//! before; count, max timestamp, length and checksum are made anew. Three things differ:
//! - The base offset carries the slice's id in its upper bits, and the leader epoch is -1: a client that knew an
//!   epoch would ask for that epoch's end, and take the plain answer for a truncation.
//! - The records are not compressed again.
//! - The last offset in the header is the batch's own, as after compaction, since most clients go on behind it; but it
//!   stays below the end of the slice, and below the first record of the slice that was left for the next answer.
//!
//! A selection may end anywhere between two records, so an answer can be held close to a wanted size. What one slice is
//! not given, another is: over all slots, the records of all slices are those of the batch
//! (`fuzz/src/sift.rs` checks that for any bytes).

use std::ops::Range;

use bytes::Bytes;

use super::compress::DecompressLimits;
use super::error::BatchError;
use super::header::{BatchHeader, HEADER_LEN, LENGTH_END, patch, seal};
use super::index::{IndexedBatch, index_records};
use crate::slot::Slot;

/// A shared piece smaller than this is copied instead, bytes: a piece of its own costs more than the copy.
const SHARED_BYTES_MIN: usize = 2 << 10;

/// How much of a batch a reader can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The last offset of the header stays below this: the end of the slice, or of the log.
    pub upto: i64,
    /// Most bytes, header included.
    pub bytes_max: usize,
    /// Most records.
    pub records_max: usize,
    /// Whether one record is taken even if it is larger than `bytes_max`, as the first of a Fetch answer is.
    pub at_least_one: bool,
}

impl Room {
    /// Everything.
    pub const ALL: Self = Self {
        upto: i64::MAX,
        bytes_max: usize::MAX,
        records_max: usize::MAX,
        at_least_one: true,
    };
}

/// Which records of an [`IndexedBatch`] go to a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The records as ranges of the body, neighbours as one; not filled in for a whole batch.
    runs: Vec<Range<u32>>,
    records: usize,
    bytes: usize,
    last_offset: i64,
    max_timestamp_delta: i64,
    next: Option<i64>,
    whole: bool,
}

impl Selection {
    /// Adds one record, if there is room.
    fn take(&mut self, record: Range<u32>, room: &Room) -> bool {
        let bytes = self.bytes.max(HEADER_LEN) + record.len();
        let fits = bytes <= room.bytes_max && self.records < room.records_max;
        let is_owed = room.at_least_one && self.records == 0;
        if !fits && !is_owed {
            return false;
        }
        self.records += 1;
        self.bytes = bytes;
        match self.runs.last_mut() {
            Some(run) if run.end == record.start => run.end = record.end,
            _ => self.runs.push(record),
        }
        true
    }

    /// Number of records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Bytes in the answer, header included; 0 without records.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Offset of the first record that the slice has in the batch and that found no room.
    pub fn next(&self) -> Option<i64> {
        self.next
    }

    /// Offset behind the header of what was selected: where a client goes on. Means nothing without records.
    pub fn end(&self) -> i64 {
        self.last_offset.saturating_add(1)
    }

    /// Whether it is the batch as it is stored, compression included.
    pub fn is_whole(&self) -> bool {
        self.whole
    }
}

impl IndexedBatch {
    /// Selects the records that `keep` wants, from the first on, as far as there is room. Offset and slot of each
    /// selected one are appended to `taken`.
    ///
    /// If that is all of them, the batch is selected as it is stored; compressed, it needs only so much room.
    pub fn select(
        &self,
        room: &Room,
        keep: impl Fn(Slot, i64) -> bool,
        taken: &mut Vec<(i64, Slot)>,
    ) -> Selection {
        if self.fits_whole(room) && self.iter().all(|(offset, slot)| keep(slot, offset)) {
            taken.extend(self.iter());
            return self.whole();
        }
        let mut out = Selection {
            max_timestamp_delta: i64::MIN,
            ..Selection::default()
        };
        let mut start = 0;
        for entry in self.entries() {
            let (at, offset) = (start, self.offset_of(entry));
            start = entry.end;
            if !keep(entry.slot, offset) {
                continue;
            }
            if offset >= room.upto || !out.take(at..entry.end, room) {
                out.next = Some(offset);
                break;
            }
            let timestamp_delta = self.timestamp_delta_of(at, entry);
            out.max_timestamp_delta = out.max_timestamp_delta.max(timestamp_delta);
            taken.push((offset, entry.slot));
        }
        let last = self.header().last_offset();
        if out.records == self.len() && out.records > 0 && last < room.upto {
            // One record that is larger than the room: the only way to get here with all of them.
            return self.whole();
        }
        let behind = out.next.unwrap_or(i64::MAX).min(room.upto);
        out.last_offset = last.min(behind.saturating_sub(1));
        out
    }

    fn fits_whole(&self, room: &Room) -> bool {
        !self.is_empty()
            && self.stored().len() <= room.bytes_max
            && self.len() <= room.records_max
            && self.header().last_offset() < room.upto
    }

    fn whole(&self) -> Selection {
        Selection {
            records: self.len(),
            last_offset: self.header().last_offset(),
            bytes: self.stored().len(),
            whole: true,
            ..Selection::default()
        }
    }

    /// Appends the selected records as a batch of the slice whose id, moved to the upper bits, is `id_bits`. Nothing is
    /// appended for a selection without records.
    pub fn write(&self, selection: &Selection, id_bits: i64, out: &mut Gather) {
        if selection.whole {
            share_batch(self.stored(), id_bits, out);
        } else if selection.records > 0 {
            self.write_part(selection, id_bits, &mut out.open);
        }
    }

    fn write_part(&self, selection: &Selection, id_bits: i64, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(selection.bytes);
        out.extend_from_slice(&[0; HEADER_LEN]);
        for run in &selection.runs {
            let records = self
                .body()
                .get(run.start as usize..run.end as usize)
                .unwrap_or_default();
            out.extend_from_slice(records);
        }
        let stored = self.header();
        let mut header = *stored;
        header.base_offset = stored.base_offset.saturating_add(id_bits);
        header.leader_epoch = -1;
        // Neither can overflow: an index of more than 2 GiB is refused, and a record has bytes.
        header.batch_length = i32::try_from(selection.bytes - LENGTH_END).unwrap_or(i32::MAX);
        header.record_count = i32::try_from(selection.records).unwrap_or(i32::MAX);
        header.attributes = stored.uncompressed_attributes();
        let last_offset_delta = selection.last_offset.saturating_sub(stored.base_offset);
        header.last_offset_delta = i32::try_from(last_offset_delta).unwrap_or(stored.last_offset_delta);
        if !stored.is_log_append_time() {
            header.max_timestamp = stored
                .base_timestamp
                .saturating_add(selection.max_timestamp_delta);
        }
        if let Some(raw) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
            header.write_to(raw);
        }
        seal(out.get_mut(start..).unwrap_or_default());
    }
}

/// Appends a whole stored batch as a batch of a slice: base offset and leader epoch are changed, which both lie outside
/// the checksum; the rest is shared, or copied if it is short. `batch` ends where the batch ends.
///
/// This is also how batches go that have no record to choose from: control batches, and those that cannot be read.
pub fn share_batch(batch: &Bytes, id_bits: i64, out: &mut Gather) {
    let Ok(header) = BatchHeader::parse(batch) else {
        return;
    };
    let start = out.open.len();
    out.open
        .extend_from_slice(batch.get(..HEADER_LEN).unwrap_or_default());
    let base_offset = header.base_offset.saturating_add(id_bits);
    patch(out.open.get_mut(start..).unwrap_or_default(), base_offset, -1);
    out.share(batch.slice(HEADER_LEN..));
}

/// Filters one stored batch in one call: index, select, write. For a single reader without a bound on its answer.
///
/// Returns what was appended to `out`: `None` if the slice has no record in the batch.
///
/// # Errors
/// Those of [`index_records`].
pub fn sift(
    batch: &Bytes,
    id_bits: i64,
    limits: &DecompressLimits,
    keep: impl Fn(Slot, i64) -> bool,
    out: &mut Gather,
) -> Result<Option<Selection>, BatchError> {
    let index = index_records(batch, limits)?;
    let selection = index.select(&Room::ALL, keep, &mut Vec::new());
    index.write(&selection, id_bits, out);
    Ok((selection.records > 0).then_some(selection))
}

/// Bytes of an answer: what is copied grows in one piece, what is large enough is shared.
#[derive(Debug, Default)]
pub struct Gather {
    pieces: Vec<Bytes>,
    open: Vec<u8>,
}

impl Gather {
    fn share(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            self.open.extend_from_slice(&bytes);
        } else {
            self.close();
            self.pieces.push(bytes);
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
    }

    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.open.is_empty()
    }

    /// What was appended, in order.
    pub fn into_pieces(mut self) -> Vec<Bytes> {
        self.close();
        self.pieces
    }
}

#[cfg(test)]
#[path = "sift_test.rs"]
mod tests;
