//! The fixed 61 bytes at the head of a batch: reading, writing, and changing what a broker changes.

use super::compress::Compression;
use super::error::BatchError;

/// Bytes of a batch header, and so the least size of a batch.
pub const HEADER_LEN: usize = 61;

/// Bytes in front of what the batch length counts: base offset and the length itself.
pub(super) const LENGTH_END: usize = 12;
/// Where the CRC lies; it covers everything from [`ATTRIBUTES_AT`] on.
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAGIC_AT: usize = 16;
const MAX_TIMESTAMP_AT: usize = 35;

const COMPRESSION_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

/// The header of a v2 batch, by value: 64 bytes to copy, no reference to the batch.
///
/// Fields are as on the wire. A header from [`BatchHeader::parse`] has magic 2 and a batch length that holds at least
/// the header; everything else may be any value until [`check_produced`](super::check_produced) has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; 0 as produced, assigned by the broker.
    pub base_offset: i64,
    /// Bytes that follow this field.
    pub batch_length: i32,
    /// Epoch of the leader that appended it; assigned by the broker.
    pub leader_epoch: i32,
    /// Format: 2.
    pub magic: i8,
    /// CRC-32C from the attributes to the end.
    pub crc: u32,
    /// Compression, timestamp type, transactional, control.
    pub attributes: i16,
    /// Offset of the last record less the base offset. Compaction and filtering leave it larger than count - 1.
    pub last_offset_delta: i32,
    /// What the records' timestamp deltas are added to, milliseconds since 1970 UTC.
    pub base_timestamp: i64,
    /// The largest timestamp of the records, milliseconds since 1970 UTC; -1 if they have none.
    pub max_timestamp: i64,
    /// The idempotent producer, or -1.
    pub producer_id: i64,
    /// Its epoch, or -1.
    pub producer_epoch: i16,
    /// Sequence number of the first record. Means nothing without a producer id (some clients then send 0).
    pub base_sequence: i32,
    /// Records in the batch.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header of the batch at the start of `bytes`, all of which must be there; more may follow.
    ///
    /// # Errors
    /// [`BatchError::OldFormat`] for a message set of format 0 or 1, [`BatchError::Magic`] for an unknown format,
    /// [`BatchError::Length`] for a length below a header's, [`BatchError::Truncated`] if the batch is not whole.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let header = Self::peek(bytes)?;
        if header.size() > bytes.len() {
            return Err(BatchError::Truncated {
                needed: header.size(),
                got: bytes.len(),
            });
        }
        Ok(header)
    }

    /// Like [`BatchHeader::parse`], but needs only the [`HEADER_LEN`] bytes of the header, not the records.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`].
    pub fn peek(bytes: &[u8]) -> Result<Self, BatchError> {
        // The magic byte has the same place in all formats; old ones have other fields behind it.
        match bytes.get(MAGIC_AT).map(|magic| *magic as i8) {
            Some(2) | None => {}
            Some(magic @ (0 | 1)) => return Err(BatchError::OldFormat { magic }),
            Some(magic) => return Err(BatchError::Magic { magic }),
        }
        let Some(raw) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Truncated {
                needed: HEADER_LEN,
                got: bytes.len(),
            });
        };
        let header = Self::from_raw(raw);
        let least = HEADER_LEN - LENGTH_END;
        if usize::try_from(header.batch_length).is_ok_and(|length| length >= least) {
            Ok(header)
        } else {
            Err(BatchError::Length {
                batch_length: header.batch_length,
            })
        }
    }

    fn from_raw(raw: &[u8; HEADER_LEN]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(field(raw, 0)),
            batch_length: i32::from_be_bytes(field(raw, 8)),
            leader_epoch: i32::from_be_bytes(field(raw, 12)),
            magic: i8::from_be_bytes(field(raw, MAGIC_AT)),
            crc: u32::from_be_bytes(field(raw, CRC_AT)),
            attributes: i16::from_be_bytes(field(raw, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(field(raw, 23)),
            base_timestamp: i64::from_be_bytes(field(raw, 27)),
            max_timestamp: i64::from_be_bytes(field(raw, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(field(raw, 43)),
            producer_epoch: i16::from_be_bytes(field(raw, 51)),
            base_sequence: i32::from_be_bytes(field(raw, 53)),
            record_count: i32::from_be_bytes(field(raw, 57)),
        }
    }

    /// Writes the header as it is, the CRC field included.
    pub fn write_to(&self, out: &mut [u8; HEADER_LEN]) {
        put(out, 0, self.base_offset.to_be_bytes());
        put(out, 8, self.batch_length.to_be_bytes());
        put(out, 12, self.leader_epoch.to_be_bytes());
        put(out, MAGIC_AT, self.magic.to_be_bytes());
        put(out, CRC_AT, self.crc.to_be_bytes());
        put(out, ATTRIBUTES_AT, self.attributes.to_be_bytes());
        put(out, 23, self.last_offset_delta.to_be_bytes());
        put(out, 27, self.base_timestamp.to_be_bytes());
        put(out, MAX_TIMESTAMP_AT, self.max_timestamp.to_be_bytes());
        put(out, 43, self.producer_id.to_be_bytes());
        put(out, 51, self.producer_epoch.to_be_bytes());
        put(out, 53, self.base_sequence.to_be_bytes());
        put(out, 57, self.record_count.to_be_bytes());
    }

    /// Bytes of the whole batch.
    pub fn size(&self) -> usize {
        // Negative only in a header that did not come from a parse.
        LENGTH_END + usize::try_from(self.batch_length).unwrap_or(0)
    }

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`BatchError::Compression`] for the unassigned numbers 5 to 7.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        let id = (self.attributes & COMPRESSION_MASK) as u8;
        Compression::from_id(id).ok_or(BatchError::Compression { id })
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether its record is a control record, which clients hide from the application.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether all records have the batch's max timestamp, as set by the broker on append.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// Whether an idempotent producer wrote it.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }

    /// Offset of the last record; held at `i64::MAX` for a hostile header.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset behind the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Sequence number of the last record: Kafka's numbers wrap from `i32::MAX` to 0.
    pub fn last_sequence(&self) -> i32 {
        self.base_sequence.wrapping_add(self.last_offset_delta) & i32::MAX
    }

    /// The attributes of the same batch without compression.
    pub(super) fn uncompressed_attributes(&self) -> i16 {
        self.attributes & !COMPRESSION_MASK
    }

    /// The attribute bits for these properties.
    pub(super) fn attributes_of(compression: Compression, transactional: bool, control: bool) -> i16 {
        i16::from(compression.id())
            | if transactional { TRANSACTIONAL } else { 0 }
            | if control { CONTROL } else { 0 }
    }
}

/// Overwrites base offset and leader epoch. Both lie outside the CRC, which stays right.
///
/// A slice shorter than a header is no batch and is left as it is.
pub fn patch(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    if let Some(raw) = batch.first_chunk_mut::<HEADER_LEN>() {
        put(raw, 0, base_offset.to_be_bytes());
        put(raw, 12, leader_epoch.to_be_bytes());
    }
}

/// Stamps a whole batch with the time of its append: the timestamp type, the max timestamp, and the CRC anew.
///
/// The records and the base timestamp stay; a reader takes the max timestamp for all records of such a batch. `batch`
/// must end where the batch ends. A slice shorter than a header is left as it is.
pub fn set_log_append_time(batch: &mut [u8], now_ms: i64) {
    let Some(raw) = batch.first_chunk_mut::<HEADER_LEN>() else {
        return;
    };
    let attributes = i16::from_be_bytes(field(raw, ATTRIBUTES_AT)) | LOG_APPEND_TIME;
    put(raw, ATTRIBUTES_AT, attributes.to_be_bytes());
    put(raw, MAX_TIMESTAMP_AT, now_ms.to_be_bytes());
    seal(batch);
}

/// The CRC-32C of a whole batch, computed from its bytes; 0 for a slice shorter than a header.
pub(super) fn crc_of(batch: &[u8]) -> u32 {
    batch.get(ATTRIBUTES_AT..).map_or(0, crc32c::crc32c)
}

/// Computes the CRC of a whole batch and writes it into the header.
pub(super) fn seal(batch: &mut [u8]) {
    let crc = crc_of(batch);
    if let Some(raw) = batch.first_chunk_mut::<HEADER_LEN>() {
        put(raw, CRC_AT, crc.to_be_bytes());
    }
}

/// Walks consecutive whole batches, as a log or a fetch response holds them: `(position, header)` for each.
///
/// The batch is `&bytes[position..position + header.size()]`. A batch that is cut short or no batch is one `Err`, and
/// the end. Checksums are not looked at.
#[derive(Clone, Debug)]
pub struct BatchIter<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BatchIter<'a> {
    /// The batches in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }
}

impl Iterator for BatchIter<'_> {
    type Item = Result<(usize, BatchHeader), BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.position..).filter(|rest| !rest.is_empty())?;
        let position = self.position;
        match BatchHeader::parse(rest) {
            Ok(header) => {
                self.position += header.size();
                Some(Ok((position, header)))
            }
            Err(error) => {
                self.position = self.bytes.len();
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for BatchIter<'_> {}

/// The `N` bytes at `at`; callers name only fields that lie inside the header.
#[inline]
fn field<const N: usize>(raw: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&raw[at..at + N]);
    out
}

#[inline]
fn put<const N: usize>(raw: &mut [u8; HEADER_LEN], at: usize, value: [u8; N]) {
    raw[at..at + N].copy_from_slice(&value);
}

#[cfg(test)]
mod tests {
    use super::super::BatchBuilder;
    use super::*;

    fn batch() -> Vec<u8> {
        let mut builder = BatchBuilder::new();
        builder.producer(7, 3, 40);
        builder.append(1_000, Some(b"k"), Some(b"v"), &[]);
        builder.append(1_010, None, Some(b"w"), &[]);
        builder.finish().unwrap().to_vec()
    }

    #[test]
    fn parse_and_write_are_inverse() {
        let bytes = batch();
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(header.size(), bytes.len());
        assert_eq!((header.last_offset(), header.next_offset()), (1, 2));
        assert_eq!((header.base_timestamp, header.max_timestamp), (1_000, 1_010));
        assert_eq!(
            (header.producer_id, header.producer_epoch, header.base_sequence),
            (7, 3, 40)
        );
        assert_eq!(header.last_sequence(), 41);
        let mut out = [0; HEADER_LEN];
        header.write_to(&mut out);
        assert_eq!(out, bytes[..HEADER_LEN]);
    }

    #[test]
    fn patching_leaves_the_checksum_right() {
        let mut bytes = batch();
        patch(&mut bytes, i64::MAX - 9, 5);
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!((header.base_offset, header.leader_epoch), (i64::MAX - 9, 5));
        assert_eq!(header.crc, crc_of(&bytes));
    }

    #[test]
    fn append_time_renews_the_checksum() {
        let mut bytes = batch();
        let before = BatchHeader::parse(&bytes).unwrap();
        set_log_append_time(&mut bytes, 99_000);
        let after = BatchHeader::parse(&bytes).unwrap();
        assert!(after.is_log_append_time() && !before.is_log_append_time());
        assert_eq!((after.base_timestamp, after.max_timestamp), (1_000, 99_000));
        assert_ne!(after.crc, before.crc);
        assert_eq!(after.crc, crc_of(&bytes));
    }

    #[test]
    fn sequences_wrap_at_two_to_the_31() {
        let mut header = BatchHeader::parse(&batch()).unwrap();
        header.base_sequence = i32::MAX;
        assert_eq!(header.last_sequence(), 0);
    }

    #[test]
    fn offsets_of_a_hostile_header_do_not_overflow() {
        let mut header = BatchHeader::parse(&batch()).unwrap();
        header.base_offset = i64::MAX;
        header.last_offset_delta = i32::MAX;
        assert_eq!((header.last_offset(), header.next_offset()), (i64::MAX, i64::MAX));
        header.base_offset = i64::MIN;
        header.last_offset_delta = i32::MIN;
        assert_eq!(header.last_offset(), i64::MIN);
    }

    #[test]
    fn iterates_batches_and_ends_at_damage() {
        let one = batch();
        let mut many = [one.clone(), one.clone(), one.clone()].concat();
        let positions: Vec<_> = BatchIter::new(&many).map(|found| found.unwrap().0).collect();
        assert_eq!(positions, [0, one.len(), 2 * one.len()]);

        many.truncate(many.len() - 1);
        let results: Vec<_> = BatchIter::new(&many).collect();
        assert_eq!(results.len(), 3);
        assert_eq!(
            results[2],
            Err(BatchError::Truncated {
                needed: one.len(),
                got: one.len() - 1
            })
        );
        assert_eq!(BatchIter::new(&[]).count(), 0);
    }

    #[test]
    fn old_and_unknown_formats_are_told_apart() {
        let mut bytes = batch();
        for (magic, expected) in [
            (0, BatchError::OldFormat { magic: 0 }),
            (1, BatchError::OldFormat { magic: 1 }),
            (3, BatchError::Magic { magic: 3 }),
            (0xff, BatchError::Magic { magic: -1 }),
        ] {
            bytes[MAGIC_AT] = magic;
            assert_eq!(BatchHeader::parse(&bytes), Err(expected.clone()));
            // A whole message of format 0 can be shorter than a v2 header.
            assert_eq!(BatchHeader::parse(&bytes[..26]), Err(expected));
        }
    }

    #[test]
    fn short_and_negative_lengths_are_refused() {
        let mut bytes = batch();
        for batch_length in [0, 48, -1, i32::MIN] {
            bytes[8..12].copy_from_slice(&batch_length.to_be_bytes());
            assert_eq!(
                BatchHeader::parse(&bytes),
                Err(BatchError::Length { batch_length })
            );
        }
        bytes[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
        let needed = 12 + i32::MAX as usize;
        assert_eq!(
            BatchHeader::parse(&bytes),
            Err(BatchError::Truncated {
                needed,
                got: bytes.len()
            })
        );
    }
}
