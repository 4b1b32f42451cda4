//! What a broker verifies on receipt of a produced batch.
//!
//! [`check_produced`] is on the path of every produce: one read of the header and one CRC pass, nothing else. It
//! believes the producer about the records themselves. [`check_records`] opens the batch and verifies them, too: for
//! topics that need their keys.
//!
//! The rules are those of Kafka 4 (`ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords`,
//! `LogValidator.validateBatch`), with the order of checks kept where it decides the code: size before checksum,
//! checksum before contents.

use std::ops::RangeInclusive;

use super::compress::{Compression, DecompressLimits};
use super::error::BatchError;
use super::header::{BatchHeader, HEADER_LEN, crc_of};
use super::records::{RECORD_LEN_MIN, RecordSet, records};

/// Most records per byte of compressed data that are believed without opening it.
///
/// Offsets are assigned by the record count of the header, so a lie burns offsets: 2^31 of them for a hundred bytes.
/// Each record differs from its neighbour at least in its offset delta, so no compression comes near this bound.
const RECORDS_PER_COMPRESSED_BYTE_MAX: usize = 128;

/// A timestamp that says "none".
const NO_TIMESTAMP: i64 = -1;

/// What the topic and the request allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceLimits {
    /// Largest batch in bytes as sent: `max.message.bytes`.
    pub bytes_max: usize,
    /// Whether the batch may be part of a transaction.
    pub transactional: bool,
    /// Whether zstd is allowed: Produce from version 7 (KIP-110).
    pub zstd: bool,
    /// Accepted timestamps, milliseconds since 1970 UTC (`message.timestamp.before.max.ms` and `.after.max.ms` around
    /// the clock); `None` accepts all. Records without timestamp always pass. Of a batch whose records stay closed, only
    /// the max timestamp is compared.
    pub timestamps_ms: Option<RangeInclusive<i64>>,
}

/// Checks the records field of one partition of a produce request: exactly one v2 batch, as a client may write it.
///
/// Does not open the records: a batch that passes can still hold records that do not parse, which harms only its
/// readers. `bytes` is the whole field.
///
/// # Errors
/// The first rule broken, in the order: length and format, size, checksum, number of batches, attributes, counts,
/// producer fields, timestamps.
pub fn check_produced(bytes: &[u8], limits: &ProduceLimits) -> Result<BatchHeader, BatchError> {
    if bytes.is_empty() {
        return Err(BatchError::Missing);
    }
    let header = BatchHeader::parse(bytes)?;
    let size = header.size();
    if size > limits.bytes_max {
        return Err(BatchError::TooLarge {
            size,
            bytes_max: limits.bytes_max,
        });
    }
    let (batch, behind) = bytes.split_at(size);
    let computed = crc_of(batch);
    if computed != header.crc {
        return Err(BatchError::Crc {
            stored: header.crc,
            computed,
        });
    }
    check_single(behind)?;
    check_attributes(&header, limits)?;
    check_counts(&header)?;
    check_producer(&header)?;
    check_timestamp(header.max_timestamp, limits)?;
    Ok(header)
}

fn check_single(behind: &[u8]) -> Result<(), BatchError> {
    if behind.is_empty() {
        Ok(())
    } else if BatchHeader::peek(behind).is_ok() {
        Err(BatchError::ManyBatches)
    } else {
        Err(BatchError::Trailing { bytes: behind.len() })
    }
}

fn check_attributes(header: &BatchHeader, limits: &ProduceLimits) -> Result<(), BatchError> {
    let compression = header.compression()?;
    if compression == Compression::Zstd && !limits.zstd {
        return Err(BatchError::Compression { id: compression.id() });
    }
    if header.is_control() {
        return Err(BatchError::Control);
    }
    // Without a producer id a transaction could never end.
    if header.is_transactional() && !(limits.transactional && header.has_producer_id()) {
        return Err(BatchError::Transactional);
    }
    if header.is_log_append_time() {
        return Err(BatchError::TimestampType);
    }
    Ok(())
}

fn check_counts(header: &BatchHeader) -> Result<(), BatchError> {
    let BatchHeader {
        record_count,
        last_offset_delta,
        base_offset,
        ..
    } = *header;
    if base_offset != 0 {
        return Err(BatchError::BaseOffset { base_offset });
    }
    if record_count < 1 || last_offset_delta != record_count - 1 {
        return Err(BatchError::RecordCount {
            record_count,
            last_offset_delta,
        });
    }
    let count = record_count as usize;
    let bytes = header.size() - HEADER_LEN;
    let room = match header.compression()? {
        Compression::None => bytes / RECORD_LEN_MIN,
        _ => bytes.saturating_mul(RECORDS_PER_COMPRESSED_BYTE_MAX),
    };
    if count > room {
        return Err(BatchError::RecordCountImpossible { record_count, bytes });
    }
    Ok(())
}

/// Epoch and sequence count only together with a producer id. Without one they are not looked at, as in Kafka: some
/// clients send -1 there, others 0.
fn check_producer(header: &BatchHeader) -> Result<(), BatchError> {
    let BatchHeader {
        producer_id,
        producer_epoch,
        base_sequence,
        ..
    } = *header;
    if !header.has_producer_id() {
        return Ok(());
    }
    if base_sequence < 0 {
        return Err(BatchError::Sequence {
            producer_id,
            base_sequence,
        });
    }
    if producer_epoch < 0 {
        return Err(BatchError::ProducerEpoch {
            producer_id,
            producer_epoch,
        });
    }
    Ok(())
}

fn check_timestamp(timestamp_ms: i64, limits: &ProduceLimits) -> Result<(), BatchError> {
    match &limits.timestamps_ms {
        Some(range) if timestamp_ms != NO_TIMESTAMP && !range.contains(&timestamp_ms) => {
            Err(BatchError::Timestamp {
                timestamp_ms,
                min_ms: *range.start(),
                max_ms: *range.end(),
            })
        }
        _ => Ok(()),
    }
}

/// Opens a batch that passed [`check_produced`] and verifies its records: each parses to its last byte, headers
/// included, offset deltas count up from 0, timestamps are in range, and there are as many as the header says.
///
/// `key_required` is the rule of compacted topics. Hands back the opened records, for whoever needs the keys next.
///
/// # Errors
/// What [`records`] refuses, then the first record that breaks a rule.
pub fn check_records<'a>(
    batch: &'a [u8],
    limits: &ProduceLimits,
    decompress: &DecompressLimits,
    key_required: bool,
) -> Result<RecordSet<'a>, BatchError> {
    let set = records(batch, decompress)?;
    for (index, record) in (0..).zip(set.iter()) {
        let record = record?;
        let fail = |reason| BatchError::Record { index, reason };
        if record.offset_delta != index {
            return Err(fail("its offset delta is not one more than the last"));
        }
        if key_required && record.key.is_none() {
            return Err(fail("a compacted topic needs a key in each record"));
        }
        for header in record.headers {
            header.map_err(fail)?;
        }
        check_timestamp(set.timestamp_of(&record), limits)?;
    }
    Ok(set)
}

#[cfg(test)]
#[path = "check_test.rs"]
mod tests;
