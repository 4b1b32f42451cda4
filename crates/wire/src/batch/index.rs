//! A batch opened once for many readers: where each record lies, which offset it has, and to which slot it belongs.
//!
//! The walk that finds this out, and the decompression before it, are what a filtered read costs. A partition that is
//! divided among k members is read k times over; with [`IndexedBatch`] kept between them it is opened once, and each
//! reader only asks its question per record ([`IndexedBatch::select`]).

use std::borrow::Cow;

use bytes::Bytes;

use super::compress::DecompressLimits;
use super::error::BatchError;
use super::header::{BatchHeader, HEADER_LEN};
use super::records::{RecordSet, records};
use super::varint::Cursor;
use crate::slot::{Slot, slot_of_batch, slot_of_key};

/// A record in the body of its batch. Records lie one behind the other, so an end is also the next one's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Behind its last byte, counted from the start of the decompressed records.
    pub(super) end: u32,
    /// Offset less the base offset.
    pub(super) offset_delta: i32,
    /// Milliseconds after the base timestamp, or [`FAR`].
    timestamp_delta: i32,
    pub(super) slot: Slot,
}

/// Stands for a timestamp delta that takes more than 32 bits: it is read again where it is needed.
const FAR: i32 = i32::MIN;

/// A stored batch with its records decompressed and found.
///
/// Memory: the bytes of the batch (shared with whoever gave them), the decompressed records if it is compressed, and 16
/// bytes per record.
#[derive(Clone, Debug)]
pub struct IndexedBatch {
    header: BatchHeader,
    stored: Bytes,
    body: Bytes,
    entries: Box<[Entry]>,
}

/// Opens the batch at the start of `batch` and finds its records. The checksum is not looked at.
///
/// A record's slot is that of its key; records without a key have the slot of the batch's base offset, so the batch
/// must be as it is stored, with its own base offset.
///
/// # Errors
/// What [`records`] refuses, a record that does not parse, and offsets that do not rise or that leave the range which
/// the header names. Produced batches are believed about all this on receipt, so a stored one can be at fault.
pub fn index_records(batch: &Bytes, limits: &DecompressLimits) -> Result<IndexedBatch, BatchError> {
    let set = records(batch, limits)?;
    let header = *set.header();
    let entries = find(&set)?;
    let stored = batch.slice(..header.size());
    let body = match set.into_body() {
        Cow::Borrowed(_) => stored.slice(HEADER_LEN..),
        // Without the spare room that decompression left.
        Cow::Owned(body) => Bytes::from(body.into_boxed_slice()),
    };
    Ok(IndexedBatch {
        header,
        stored,
        body,
        entries: entries.into(),
    })
}

fn find(set: &RecordSet<'_>) -> Result<Vec<Entry>, BatchError> {
    let header = set.header();
    let mut entries = Vec::with_capacity(usize::try_from(header.record_count).unwrap_or(0));
    let keyless = slot_of_batch(header.base_offset);
    let (mut end, mut last) = (0, -1);
    // No adapter around the walk: it would no longer be inlined, which doubles the time.
    for record in set {
        let record = record?;
        end += record.raw.len();
        if record.offset_delta <= last {
            return Err(misplaced(&entries, "its offset is not above the one before"));
        }
        last = record.offset_delta;
        entries.push(Entry {
            end: place(end).ok_or_else(|| misplaced(&entries, "it lies beyond 2 GiB"))?,
            offset_delta: last,
            timestamp_delta: i32::try_from(record.timestamp_delta).unwrap_or(FAR),
            slot: record.key.map_or(keyless, slot_of_key),
        });
    }
    if last > header.last_offset_delta {
        return Err(misplaced(
            &entries,
            "an offset is above the last one of the batch",
        ));
    }
    Ok(entries)
}

/// An end that a batch of its own, which has a signed length, could have as well.
fn place(end: usize) -> Option<u32> {
    u32::try_from(end)
        .ok()
        .filter(|end| *end <= i32::MAX as u32 - HEADER_LEN as u32)
}

#[cold]
fn misplaced(before: &[Entry], reason: &'static str) -> BatchError {
    let index = i32::try_from(before.len()).unwrap_or(i32::MAX);
    BatchError::Record { index, reason }
}

impl IndexedBatch {
    /// The header of the batch.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The batch as it is stored.
    pub fn stored(&self) -> &Bytes {
        &self.stored
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no record, as compaction may leave a batch.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the records, decompressed.
    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// Bytes of memory that it holds beside the stored batch.
    pub fn memory_bytes(&self) -> usize {
        // Records that are not compressed are a part of the stored batch.
        let own_body =
            self.body.len() * usize::from(self.header.compression() != Ok(super::Compression::None));
        size_of::<Self>() + own_body + self.entries.len() * size_of::<Entry>()
    }

    /// Offset and slot of each record, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i64, Slot)> + '_ {
        self.entries
            .iter()
            .map(|entry| (self.offset_of(entry), entry.slot))
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Milliseconds of a record, which begins at `start`, after the base timestamp.
    #[inline]
    pub(super) fn timestamp_delta_of(&self, start: u32, entry: &Entry) -> i64 {
        if entry.timestamp_delta == FAR {
            self.far_timestamp_delta(start)
        } else {
            i64::from(entry.timestamp_delta)
        }
    }

    #[cold]
    fn far_timestamp_delta(&self, start: u32) -> i64 {
        let mut record = Cursor {
            rest: self.body.get(start as usize..).unwrap_or_default(),
        };
        // Length and attributes are in front of it.
        let read = record.take_i32().and_then(|_| record.take_u8());
        read.and_then(|_| record.take_i64()).unwrap_or(0)
    }

    #[inline]
    pub(super) fn offset_of(&self, entry: &Entry) -> i64 {
        self.header
            .base_offset
            .saturating_add(i64::from(entry.offset_delta))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Compression};
    use super::*;

    const LIMITS: DecompressLimits = DecompressLimits {
        bytes_max: 1 << 20,
        ratio_max: 1000,
    };

    fn batch(compression: Compression) -> Bytes {
        let mut builder = BatchBuilder::new();
        builder.base_offset(500).compression(compression, None);
        builder.append(1, Some(b"a"), Some(b"1"), &[]);
        builder.append(2, None, Some(b"2"), &[]);
        builder.append_at(7, 3, Some(b""), None, &[]);
        builder.finish().unwrap()
    }

    #[test]
    fn finds_offset_and_slot_of_each_record() {
        for compression in Compression::ALL {
            let stored = batch(compression);
            let index = index_records(&stored, &LIMITS).unwrap();
            let expected = [
                (500, slot_of_key(b"a")),
                (501, slot_of_batch(500)),
                (507, slot_of_key(b"")),
            ];
            assert_eq!(index.iter().collect::<Vec<_>>(), expected, "{compression}");
            assert_eq!((index.len(), index.is_empty()), (3, false));
            assert_eq!(index.stored(), &stored);
            assert_eq!(
                index.entries().last().unwrap().end as usize,
                index.body_bytes(),
                "records tile the body"
            );
            let owned = index.memory_bytes() - size_of::<IndexedBatch>() - 3 * size_of::<Entry>();
            let is_open = compression == Compression::None;
            assert_eq!(owned, if is_open { 0 } else { index.body_bytes() });
        }
    }

    #[test]
    fn what_follows_the_batch_is_not_looked_at() {
        let stored = batch(Compression::None);
        let longer = Bytes::from([&stored[..], b"more"].concat());
        assert_eq!(index_records(&longer, &LIMITS).unwrap().stored(), &stored);
    }

    #[test]
    fn offsets_that_cannot_be_are_refused() {
        let body = |deltas: [u8; 2]| -> Vec<u8> {
            deltas
                .iter()
                .flat_map(|delta| [12, 0, 0, *delta, 1, 1, 0])
                .collect()
        };
        let with = |deltas: [u8; 2], last_offset_delta: i32| {
            let mut bytes = batch(Compression::None)[..HEADER_LEN].to_vec();
            bytes.extend(body(deltas));
            bytes[8..12].copy_from_slice(&(49i32 + 14).to_be_bytes());
            bytes[23..27].copy_from_slice(&last_offset_delta.to_be_bytes());
            bytes[57..61].copy_from_slice(&2i32.to_be_bytes());
            index_records(&Bytes::from(bytes), &LIMITS).map(|index| index.len())
        };
        // Deltas are zigzag: 2 is 1, 4 is 2, 1 is -1.
        assert_eq!(with([2, 4], 2), Ok(2));
        for (deltas, last_offset_delta) in [([4, 4], 9), ([4, 2], 9), ([1, 2], 9), ([2, 4], 1), ([0, 2], -1)]
        {
            let found = with(deltas, last_offset_delta);
            assert!(
                matches!(found, Err(BatchError::Record { .. })),
                "{deltas:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_batch_without_records_is_empty() {
        let mut bytes = batch(Compression::None)[..HEADER_LEN].to_vec();
        bytes[8..12].copy_from_slice(&49i32.to_be_bytes());
        bytes[57..61].copy_from_slice(&0i32.to_be_bytes());
        assert!(index_records(&Bytes::from(bytes), &LIMITS).unwrap().is_empty());
    }
}
