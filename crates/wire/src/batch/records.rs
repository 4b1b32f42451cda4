//! Walking the records of a batch.
//!
//! ```text
//! record:  length varint, attributes 1 byte, timestamp delta varint, offset delta varint,
//!          key length varint + bytes, value length varint + bytes, header count varint, headers
//! header:  key length varint + bytes, value length varint + bytes
//! ```
//! A length of -1 is null. [`records`] opens a batch into a [`RecordSet`], which borrows the batch if it is not
//! compressed and owns the decompressed bytes if it is; its [`RecordIter`] then yields records that borrow from there.
//! Nothing is allocated per record, and no length is believed before it was compared with the bytes there are.

use std::borrow::Cow;

use super::compress::{self, Compression, DecompressLimits};
use super::error::BatchError;
use super::header::{BatchHeader, HEADER_LEN};
use super::varint::Cursor;

/// The least bytes of a record: all seven fields in one byte each, key and value null.
pub(super) const RECORD_LEN_MIN: usize = 7;

/// Opens the records of one whole v2 batch.
///
/// Bytes behind the batch are not looked at, nor is the checksum.
///
/// # Errors
/// What [`BatchHeader::parse`] refuses, an unknown compression, data that does not decompress or only beyond `limits`,
/// and a record count that the bytes cannot hold.
pub fn records<'a>(batch: &'a [u8], limits: &DecompressLimits) -> Result<RecordSet<'a>, BatchError> {
    let header = BatchHeader::parse(batch)?;
    let body = batch.get(HEADER_LEN..header.size()).unwrap_or_default();
    let body = match header.compression()? {
        Compression::None => Cow::Borrowed(body),
        codec => Cow::Owned(compress::decompress(codec, body, limits)?),
    };
    let room = body.len() / RECORD_LEN_MIN;
    if usize::try_from(header.record_count).is_ok_and(|count| count <= room) {
        Ok(RecordSet { header, body })
    } else {
        Err(BatchError::RecordCountImpossible {
            record_count: header.record_count,
            bytes: body.len(),
        })
    }
}

/// The records of one batch, decompressed.
#[derive(Clone, Debug)]
pub struct RecordSet<'a> {
    header: BatchHeader,
    body: Cow<'a, [u8]>,
}

impl<'a> RecordSet<'a> {
    /// The header of the batch.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records as bytes, decompressed.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The records as bytes, borrowed from the batch unless they were compressed.
    pub(super) fn into_body(self) -> Cow<'a, [u8]> {
        self.body
    }

    /// Walks the records.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter {
            cursor: Cursor { rest: &self.body },
            index: 0,
            count: self.header.record_count,
        }
    }

    /// The offset of a record of this batch.
    pub fn offset_of(&self, record: &Record<'_>) -> i64 {
        self.header
            .base_offset
            .saturating_add(i64::from(record.offset_delta))
    }

    /// The timestamp of a record of this batch, milliseconds since 1970 UTC: its own, or the batch's for append time.
    pub fn timestamp_of(&self, record: &Record<'_>) -> i64 {
        if self.header.is_log_append_time() {
            self.header.max_timestamp
        } else {
            self.header.base_timestamp.saturating_add(record.timestamp_delta)
        }
    }
}

impl<'a> IntoIterator for &'a RecordSet<'_> {
    type Item = Result<Record<'a>, BatchError>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

/// One record, as slices of its batch.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Unused by Kafka so far.
    pub attributes: i8,
    /// Milliseconds after the batch's base timestamp; may be negative.
    pub timestamp_delta: i64,
    /// Offset less the batch's base offset.
    pub offset_delta: i32,
    /// The key, if any.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// The headers, in order, duplicates kept.
    pub headers: RecordHeaders<'a>,
    /// The whole record, its length in front: what to copy to keep it as it is.
    pub raw: &'a [u8],
}

/// Walks the records of a batch.
///
/// The first thing wrong is one `Err`, and the end: a record that does not parse, fewer records than the header
/// counts, or bytes left over behind the last one. Headers inside a record are parsed only by [`RecordHeaders`].
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    cursor: Cursor<'a>,
    index: i32,
    count: i32,
}

impl<'a> RecordIter<'a> {
    #[cold]
    fn fail(&mut self, reason: &'static str) -> BatchError {
        let index = self.index;
        self.cursor.rest = &[];
        self.count = self.index;
        BatchError::Record { index, reason }
    }

    #[inline(always)]
    fn record(&mut self) -> Result<Record<'a>, &'static str> {
        let start = self.cursor.rest;
        let length = self.cursor.take_i32().ok_or("its length is no varint")?;
        let bytes = self
            .cursor
            .take(length)
            .ok_or("its length passes the end of the batch")?;
        let raw = start
            .get(..start.len() - self.cursor.rest.len())
            .unwrap_or_default();
        let mut inner = Cursor { rest: bytes };
        let attributes = inner.take_u8().ok_or("it is empty")? as i8;
        let timestamp_delta = inner.take_i64().ok_or("its timestamp delta is no varint")?;
        let offset_delta = inner.take_i32().ok_or("its offset delta is no varint")?;
        let key = nullable(&mut inner).ok_or("its key passes its end")?;
        let value = nullable(&mut inner).ok_or("its value passes its end")?;
        let count = inner.take_i32().ok_or("its header count is no varint")?;
        if count < 0 {
            return Err("its header count is negative");
        }
        let headers = RecordHeaders { cursor: inner, count };
        Ok(Record {
            attributes,
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
            raw,
        })
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, BatchError>;

    // A call per record would pass a record of some hundred bytes through memory: twice the time of the walk.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.count {
            return if self.cursor.rest.is_empty() {
                None
            } else {
                Some(Err(self.fail("bytes follow the last record")))
            };
        }
        match self.record() {
            Ok(record) => {
                self.index += 1;
                Some(Ok(record))
            }
            Err(reason) => Some(Err(self.fail(reason))),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A batch's count was compared with its bytes when it was opened; one more for an error at the end.
        let left = usize::try_from(self.count - self.index).unwrap_or(0);
        (0, Some(left + 1))
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}

/// A length and as many bytes; -1 is null. `None` if it is less, or more than there is.
#[inline]
fn nullable<'a>(cursor: &mut Cursor<'a>) -> Option<Option<&'a [u8]>> {
    match cursor.take_i32()? {
        -1 => Some(None),
        length => cursor.take(length).map(Some),
    }
}

/// A header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// The key: UTF-8 by convention, which nobody enforces.
    pub key: &'a [u8],
    /// The value, or null.
    pub value: Option<&'a [u8]>,
}

/// Walks the headers of a record. What is wrong is one `Err` with the reason, and the end.
#[derive(Clone, Copy, Debug)]
pub struct RecordHeaders<'a> {
    cursor: Cursor<'a>,
    count: i32,
}

impl RecordHeaders<'_> {
    /// Headers still to come, as the record claims.
    pub fn count(&self) -> i32 {
        self.count
    }
}

impl<'a> Iterator for RecordHeaders<'a> {
    type Item = Result<RecordHeader<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.count == 0 {
            if self.cursor.rest.is_empty() {
                return None;
            }
            self.cursor.rest = &[];
            return Some(Err("bytes follow its last header"));
        }
        self.count -= 1;
        let key = self.cursor.take_i32().and_then(|length| self.cursor.take(length));
        let found = match key {
            Some(key) => nullable(&mut self.cursor).map(|value| RecordHeader { key, value }),
            None => None,
        };
        if found.is_none() {
            self.count = 0;
            self.cursor.rest = &[];
        }
        Some(found.ok_or("a header passes its end"))
    }
}

impl std::iter::FusedIterator for RecordHeaders<'_> {}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, HeaderField};
    use super::*;

    const LIMITS: DecompressLimits = DecompressLimits {
        bytes_max: 1 << 20,
        ratio_max: 1000,
    };

    #[test]
    fn yields_what_was_appended() {
        let mut builder = BatchBuilder::new();
        builder.base_offset(100);
        let headers = [
            HeaderField {
                key: "trace",
                value: Some(b"1"),
            },
            HeaderField {
                key: "trace",
                value: Some(b"2"),
            },
            HeaderField { key: "", value: None },
        ];
        builder.append(5_000, Some(b"key"), Some(b"value"), &headers);
        builder.append(4_000, None, None, &[]);
        builder.append(6_000, Some(b""), Some(b""), &[]);
        let batch = builder.finish().unwrap();

        let set = records(&batch, &LIMITS).unwrap();
        let all: Vec<_> = set.iter().map(Result::unwrap).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(
            (all[0].key, all[0].value),
            (Some(&b"key"[..]), Some(&b"value"[..]))
        );
        let found: Vec<_> = all[0]
            .headers
            .map(Result::unwrap)
            .map(|h| (h.key, h.value))
            .collect();
        let expected: [(&[u8], Option<&[u8]>); 3] =
            [(b"trace", Some(b"1")), (b"trace", Some(b"2")), (b"", None)];
        assert_eq!(found, expected, "duplicates stay, in order");
        assert_eq!((all[1].key, all[1].value), (None, None));
        assert_eq!((all[2].key, all[2].value), (Some(&b""[..]), Some(&b""[..])));
        assert_eq!(
            all.iter().map(|r| set.offset_of(r)).collect::<Vec<_>>(),
            [100, 101, 102]
        );
        assert_eq!(
            all.iter().map(|r| set.timestamp_of(r)).collect::<Vec<_>>(),
            [5_000, 4_000, 6_000]
        );
        let copied: Vec<u8> = all.iter().flat_map(|r| r.raw.iter().copied()).collect();
        assert_eq!(copied, set.body(), "raw slices tile the body");
    }

    #[test]
    fn append_time_overrides_the_records_own() {
        let mut builder = BatchBuilder::new();
        builder.append(5_000, None, Some(b"v"), &[]);
        let mut batch = builder.finish().unwrap().to_vec();
        super::super::set_log_append_time(&mut batch, 77_000);
        let set = records(&batch, &LIMITS).unwrap();
        let record = set.iter().next().unwrap().unwrap();
        assert_eq!(set.timestamp_of(&record), 77_000);
    }

    fn walk(body: &[u8], count: i32) -> Vec<Result<(), BatchError>> {
        let iter = RecordIter {
            cursor: Cursor { rest: body },
            index: 0,
            count,
        };
        iter.map(|record| record.map(|_| ())).collect()
    }

    #[test]
    fn each_malformed_field_is_named_and_ends_the_walk() {
        let good = [12, 0, 0, 0, 1, 1, 0];
        assert_eq!(walk(&good, 1), [Ok(())]);
        for (body, reason) in [
            (
                &[1, 0, 0, 0, 1, 1, 0][..],
                "its length passes the end of the batch",
            ),
            (&[14, 0, 0, 0, 1, 1, 0], "its length passes the end of the batch"),
            (&[0, 0, 0, 0, 0, 0, 0], "it is empty"),
            (
                &[12, 0, 0x80, 0x80, 0x80, 0x80, 0x80],
                "its timestamp delta is no varint",
            ),
            (
                &[12, 0, 0, 0x80, 0x80, 0x80, 0x80],
                "its offset delta is no varint",
            ),
            (&[12, 0, 0, 0, 3, 1, 0], "its key passes its end"),
            (&[12, 0, 0, 0, 8, 1, 0], "its key passes its end"),
            (&[12, 0, 0, 0, 1, 8, 0], "its value passes its end"),
            (&[12, 0, 0, 0, 1, 1, 1], "its header count is negative"),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
                "its length is no varint",
            ),
        ] {
            assert_eq!(
                walk(body, 9),
                [Err(BatchError::Record { index: 0, reason })],
                "{body:?}"
            );
        }
        let two = [good, good].concat();
        let left_over = BatchError::Record {
            index: 1,
            reason: "bytes follow the last record",
        };
        assert_eq!(walk(&two, 1), [Ok(()), Err(left_over)]);
        assert_eq!(walk(&two, 3).len(), 3, "a third that is not there is an error");
        assert!(walk(&two, 3)[2].is_err());
    }

    #[test]
    fn headers_end_at_the_first_fault() {
        let headers = |rest: &'static [u8], count| RecordHeaders {
            cursor: Cursor { rest },
            count,
        };
        assert_eq!(
            headers(b"", i32::MAX).collect::<Vec<_>>(),
            [Err("a header passes its end")]
        );
        assert_eq!(
            headers(&[1, 1], 1).collect::<Vec<_>>(),
            [Err("a header passes its end")]
        );
        assert_eq!(
            headers(&[0, 1], 0).collect::<Vec<_>>(),
            [Err("bytes follow its last header")]
        );
        let empty = RecordHeader {
            key: b"",
            value: None,
        };
        assert_eq!(headers(&[0, 1], 1).collect::<Vec<_>>(), [Ok(empty)]);
    }

    #[test]
    fn a_record_count_beyond_the_bytes_is_refused_on_opening() {
        let mut builder = BatchBuilder::new();
        builder.append(0, None, None, &[]);
        let mut batch = builder.finish().unwrap().to_vec();
        for count in [2, i32::MAX, -1] {
            batch[57..61].copy_from_slice(&i32::to_be_bytes(count));
            let error = records(&batch, &LIMITS).unwrap_err();
            assert_eq!(
                error,
                BatchError::RecordCountImpossible {
                    record_count: count,
                    bytes: 7
                }
            );
        }
    }
}
