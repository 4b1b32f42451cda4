//! What can be wrong with a batch, and the Kafka code for each.

use super::compress::Compression;
use crate::ErrorCode;

/// Why a batch was refused. The text names the fact and the limit; [`BatchError::code`] is what the client gets.
///
/// The codes follow what a Kafka 4 broker answers (`LogValidator`, `DefaultRecordBatch`, `ProduceRequest`), with one
/// choice of ours: damage that the checksum did not see (contents that do not parse behind a right CRC) is
/// [`ErrorCode::InvalidRecord`] and never [`ErrorCode::CorruptMessage`], since clients retry the latter and would send
/// the same bytes again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the batch does.
    #[error("the batch is cut short: it needs {needed} bytes, there are {got}")]
    Truncated {
        /// Bytes that the batch, or its header, takes.
        needed: usize,
        /// Bytes there are.
        got: usize,
    },
    /// The length field is smaller than a header.
    #[error("the batch length {batch_length} is less than a batch header takes")]
    Length {
        /// The field as received.
        batch_length: i32,
    },
    /// Bytes behind the batch that are no batch.
    #[error("{bytes} stray bytes follow the batch")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// No batch at all where one is required.
    #[error("there is no record batch")]
    Missing,
    /// More than one batch where exactly one is required.
    #[error("a produce request may carry only one batch per partition")]
    ManyBatches,
    /// A message set of a format before Kafka 0.11.
    #[error("record format {magic} is not supported: produce with format 2 (Kafka 0.11 and newer)")]
    OldFormat {
        /// The magic byte, 0 or 1.
        magic: i8,
    },
    /// A format that does not exist.
    #[error("unknown record format {magic}")]
    Magic {
        /// The magic byte.
        magic: i8,
    },
    /// The checksum does not match.
    #[error("checksum mismatch: the batch says {stored:#010x}, its bytes give {computed:#010x}")]
    Crc {
        /// From the header.
        stored: u32,
        /// Over the bytes received.
        computed: u32,
    },
    /// Record count and last offset delta are not count and count - 1, or count is below 1.
    #[error("record count {record_count} and last offset delta {last_offset_delta} do not agree")]
    RecordCount {
        /// The field as received.
        record_count: i32,
        /// The field as received.
        last_offset_delta: i32,
    },
    /// So many records do not fit into so few bytes.
    #[error("{record_count} records cannot be held by {bytes} bytes")]
    RecordCountImpossible {
        /// The field as received.
        record_count: i32,
        /// Bytes behind the header.
        bytes: usize,
    },
    /// A compression that is unknown, or not allowed for the request's version.
    #[error("compression type {id} is not supported here")]
    Compression {
        /// Bits 0 to 2 of the attributes.
        id: u8,
    },
    /// A client wrote a control batch.
    #[error("clients may not write control batches")]
    Control,
    /// A transactional batch where none is allowed, or without a producer id.
    #[error("a transactional batch is not allowed here")]
    Transactional,
    /// A producer id without a sequence.
    #[error("producer {producer_id} sent the invalid base sequence {base_sequence}")]
    Sequence {
        /// The producer.
        producer_id: i64,
        /// The field as received.
        base_sequence: i32,
    },
    /// A producer id with a negative epoch.
    #[error("producer {producer_id} sent the invalid epoch {producer_epoch}")]
    ProducerEpoch {
        /// The producer.
        producer_id: i64,
        /// The field as received.
        producer_epoch: i16,
    },
    /// A produced batch whose base offset is not 0.
    #[error("the base offset of a produced batch must be 0, not {base_offset}")]
    BaseOffset {
        /// The field as received.
        base_offset: i64,
    },
    /// Larger than the topic allows.
    #[error("the batch has {size} bytes, more than the {bytes_max} that max.message.bytes allows")]
    TooLarge {
        /// Bytes of the whole batch.
        size: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A timestamp outside the range that the topic accepts.
    #[error("timestamp {timestamp_ms} lies outside the accepted range {min_ms} to {max_ms}")]
    Timestamp {
        /// The timestamp, milliseconds since 1970 UTC.
        timestamp_ms: i64,
        /// Oldest accepted.
        min_ms: i64,
        /// Newest accepted.
        max_ms: i64,
    },
    /// A client claims append time, which is the broker's to set.
    #[error("producers may not set the timestamp type to LogAppendTime")]
    TimestampType,
    /// A record that does not parse or breaks a rule.
    #[error("record {index} is invalid: {reason}")]
    Record {
        /// Position in the batch, from 0.
        index: i32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Compressed data that does not decompress.
    #[error("the {codec} data is damaged: {reason}")]
    Decompress {
        /// Which compression.
        codec: Compression,
        /// As the decoder says.
        reason: String,
    },
    /// Decompression went over its absolute limit.
    #[error("the {codec} data decompresses to more than the limit of {bytes_max} bytes")]
    DecompressedTooLarge {
        /// Which compression.
        codec: Compression,
        /// [`DecompressLimits::bytes_max`](super::DecompressLimits::bytes_max).
        bytes_max: usize,
    },
    /// Decompression went over its limit relative to the compressed size.
    #[error("the {codec} data decompresses to more than {ratio_max} times its {compressed} bytes")]
    DecompressRatio {
        /// Which compression.
        codec: Compression,
        /// [`DecompressLimits::ratio_max`](super::DecompressLimits::ratio_max).
        ratio_max: usize,
        /// Bytes before decompression.
        compressed: usize,
    },
    /// The encoder failed: out of memory, in practice.
    #[error("compressing with {codec} failed: {reason}")]
    Compress {
        /// Which compression.
        codec: Compression,
        /// As the encoder says.
        reason: String,
    },
    /// A batch to be built would pass what the format's 32-bit fields hold.
    #[error("a batch cannot hold more than 2^31 - 1 bytes or records")]
    BuildTooLarge,
}

impl BatchError {
    /// The error code that a client gets for it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Truncated { .. }
            | Self::Length { .. }
            | Self::Trailing { .. }
            | Self::Magic { .. }
            | Self::Crc { .. } => ErrorCode::CorruptMessage,
            Self::OldFormat { .. } => ErrorCode::UnsupportedForMessageFormat,
            Self::Compression { .. } => ErrorCode::UnsupportedCompressionType,
            Self::TooLarge { .. } | Self::BuildTooLarge => ErrorCode::MessageTooLarge,
            Self::Timestamp { .. } | Self::TimestampType => ErrorCode::InvalidTimestamp,
            Self::ProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
            Self::Compress { .. } => ErrorCode::UnknownServerError,
            Self::Missing
            | Self::ManyBatches
            | Self::RecordCount { .. }
            | Self::RecordCountImpossible { .. }
            | Self::Control
            | Self::Transactional
            | Self::Sequence { .. }
            | Self::BaseOffset { .. }
            | Self::Record { .. }
            | Self::Decompress { .. }
            | Self::DecompressedTooLarge { .. }
            | Self::DecompressRatio { .. } => ErrorCode::InvalidRecord,
        }
    }
}
