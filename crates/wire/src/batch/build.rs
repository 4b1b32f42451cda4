//! Making batches: for the broker's own needs, for tools, and for tests.

use bytes::Bytes;

use super::compress::{self, Compression};
use super::error::BatchError;
use super::header::{BatchHeader, HEADER_LEN, seal};
use super::varint;

/// A header of a record to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField<'a> {
    /// The key.
    pub key: &'a str,
    /// The value, or null.
    pub value: Option<&'a [u8]>,
}

/// Collects records and makes one v2 batch of them.
///
/// ```
/// use anabranch_wire::batch::{BatchBuilder, BatchHeader, Compression};
///
/// let mut builder = BatchBuilder::new();
/// builder.compression(Compression::Lz4, None);
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[]);
/// let batch = builder.finish()?;
/// assert_eq!(BatchHeader::parse(&batch)?.record_count, 1);
/// # Ok::<(), anabranch_wire::batch::BatchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    header: BatchHeader,
    compression: Compression,
    level: Option<i32>,
    transactional: bool,
    control: bool,
    records: Vec<u8>,
    count: usize,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// An empty batch at offset 0, leader epoch -1, not compressed, without producer: what a plain producer sends.
    pub fn new() -> Self {
        Self {
            header: BatchHeader {
                base_offset: 0,
                batch_length: 0,
                leader_epoch: -1,
                magic: 2,
                crc: 0,
                attributes: 0,
                last_offset_delta: -1,
                base_timestamp: -1,
                max_timestamp: -1,
                producer_id: -1,
                producer_epoch: -1,
                base_sequence: -1,
                record_count: 0,
            },
            compression: Compression::None,
            level: None,
            transactional: false,
            control: false,
            records: Vec::new(),
            count: 0,
        }
    }

    /// Sets the offset of the first record.
    pub fn base_offset(&mut self, offset: i64) -> &mut Self {
        self.header.base_offset = offset;
        self
    }

    /// Sets the leader epoch.
    pub fn leader_epoch(&mut self, epoch: i32) -> &mut Self {
        self.header.leader_epoch = epoch;
        self
    }

    /// Makes it a batch of an idempotent producer.
    pub fn producer(&mut self, id: i64, epoch: i16, base_sequence: i32) -> &mut Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Marks it as part of a transaction.
    pub fn transactional(&mut self, transactional: bool) -> &mut Self {
        self.transactional = transactional;
        self
    }

    /// Sets the compression; `level` as in [`compress::compress`].
    pub fn compression(&mut self, compression: Compression, level: Option<i32>) -> &mut Self {
        self.compression = compression;
        self.level = level;
        self
    }

    /// Appends a record; its offset is the one after the last record's. `timestamp_ms` is since 1970 UTC, -1 for none.
    pub fn append(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderField<'_>],
    ) -> &mut Self {
        let offset_delta = self.header.last_offset_delta.saturating_add(1);
        self.append_at(offset_delta, timestamp_ms, key, value, headers)
    }

    /// Like [`BatchBuilder::append`], but says the offset less the base offset, which must be above the last record's:
    /// a batch with gaps, as a log may hold after compaction, but no client may send.
    pub fn append_at(
        &mut self,
        offset_delta: i32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderField<'_>],
    ) -> &mut Self {
        debug_assert!(
            offset_delta > self.header.last_offset_delta,
            "offsets must grow within a batch"
        );
        if self.count == 0 {
            self.header.base_timestamp = timestamp_ms;
        }
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp_ms);
        self.header.last_offset_delta = offset_delta;
        self.count += 1;
        let timestamp_delta = timestamp_ms.wrapping_sub(self.header.base_timestamp);
        put_record(
            &mut self.records,
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        );
        self
    }

    /// How many records there are so far.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the batch so far, before compression.
    pub fn size(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// The batch: records compressed, lengths and counts filled in, checksum last.
    ///
    /// # Errors
    /// [`BatchError::BuildTooLarge`] if a 32-bit field of the header overflows, [`BatchError::Compress`].
    pub fn finish(self) -> Result<Bytes, BatchError> {
        let body = match self.compression {
            Compression::None => self.records,
            codec => compress::compress(codec, self.level, &self.records)?,
        };
        let size = HEADER_LEN + body.len();
        let mut header = self.header;
        header.batch_length = i32::try_from(size - 12).map_err(|_| BatchError::BuildTooLarge)?;
        header.record_count = i32::try_from(self.count).map_err(|_| BatchError::BuildTooLarge)?;
        header.attributes = BatchHeader::attributes_of(self.compression, self.transactional, self.control);

        let mut raw = [0; HEADER_LEN];
        header.write_to(&mut raw);
        let mut batch = Vec::with_capacity(size);
        batch.extend_from_slice(&raw);
        batch.extend_from_slice(&body);
        seal(&mut batch);
        Ok(batch.into())
    }
}

fn put_record(
    out: &mut Vec<u8>,
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[HeaderField<'_>],
) {
    let headers_len: usize = headers
        .iter()
        .map(|field| nullable_len(Some(field.key.as_bytes())) + nullable_len(field.value))
        .sum();
    let length = 1
        + varint::len(timestamp_delta)
        + varint::len(i64::from(offset_delta))
        + nullable_len(key)
        + nullable_len(value)
        + varint::len(headers.len() as i64)
        + headers_len;
    out.reserve(length + 5);
    varint::put(out, length as i64);
    out.push(0);
    varint::put(out, timestamp_delta);
    varint::put(out, i64::from(offset_delta));
    put_nullable(out, key);
    put_nullable(out, value);
    varint::put(out, headers.len() as i64);
    for field in headers {
        put_nullable(out, Some(field.key.as_bytes()));
        put_nullable(out, field.value);
    }
}

fn nullable_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::len(bytes.len() as i64) + bytes.len())
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            varint::put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
        None => varint::put(out, -1),
    }
}

/// A filler for the offsets `first..=last`: a control batch with one commit marker of no producer.
///
/// Clients hide it from the application and move on behind `last`. Some look at the record's own offset and not at the
/// batch's last, so the marker sits at `last`.
///
/// # Errors
/// [`BatchError::BuildTooLarge`] if the range is empty or longer than a batch can span (2^31 offsets).
pub fn commit_marker(
    first: i64,
    last: i64,
    leader_epoch: i32,
    timestamp_ms: i64,
) -> Result<Bytes, BatchError> {
    // Version 0, type 1: commit. Then version 0 and coordinator epoch 0.
    const KEY: [u8; 4] = [0, 0, 0, 1];
    const VALUE: [u8; 6] = [0; 6];
    let delta = last.checked_sub(first).filter(|delta| *delta >= 0);
    let delta = delta
        .and_then(|delta| i32::try_from(delta).ok())
        .ok_or(BatchError::BuildTooLarge)?;
    let mut builder = BatchBuilder::new();
    builder.base_offset(first).leader_epoch(leader_epoch);
    builder.control = true;
    builder.append_at(delta, timestamp_ms, Some(&KEY), Some(&VALUE), &[]);
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::super::{DecompressLimits, records};
    use super::*;

    #[test]
    fn counts_as_it_goes() {
        let mut builder = BatchBuilder::new();
        assert!(builder.is_empty());
        builder
            .append(-1, None, Some(b"x"), &[])
            .append(-1, None, Some(b"y"), &[]);
        assert_eq!(builder.len(), 2);
        let size = builder.size();
        let batch = builder.finish().unwrap();
        assert_eq!(batch.len(), size);
        assert_eq!(BatchHeader::parse(&batch).unwrap().max_timestamp, -1);
    }

    #[test]
    fn a_filler_puts_its_record_at_the_end_of_the_hole() {
        let batch = commit_marker(1_000, 1_499, 4, 7).unwrap();
        let limits = DecompressLimits {
            bytes_max: 1000,
            ratio_max: 1,
        };
        let set = records(&batch, &limits).unwrap();
        assert!(set.header().is_control());
        assert!(!set.header().has_producer_id());
        assert_eq!(
            (set.header().base_offset, set.header().next_offset()),
            (1_000, 1_500)
        );
        assert_eq!((set.header().record_count, set.header().leader_epoch), (1, 4));
        let record = set.iter().next().unwrap().unwrap();
        assert_eq!(set.offset_of(&record), 1_499);
        assert_eq!(
            (record.key, record.value),
            (Some(&[0, 0, 0, 1][..]), Some(&[0; 6][..]))
        );
    }

    #[test]
    fn a_hole_that_is_no_hole_is_refused() {
        assert_eq!(commit_marker(5, 4, 0, 0), Err(BatchError::BuildTooLarge));
        assert_eq!(commit_marker(0, 1 << 31, 0, 0), Err(BatchError::BuildTooLarge));
        assert_eq!(
            commit_marker(i64::MIN, i64::MAX, 0, 0),
            Err(BatchError::BuildTooLarge)
        );
    }
}
