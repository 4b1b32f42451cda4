//! Why a batch was not accepted, or does not fit the state that it is replayed into.

use super::SequenceError;
use crate::codec::CodecError;
use crate::ids::{LogId, Offset};
use anabranch_wire::ErrorCode;
use thiserror::Error;

/// Why a batch was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// No such log (any more).
    #[error("the partition does not exist")]
    UnknownLog,
    /// Larger than the topic allows.
    #[error("the batch has {size} bytes; max.message.bytes of the topic is {max}")]
    TooLarge {
        /// Bytes of the batch.
        size: usize,
        /// What is allowed.
        max: usize,
    },
    /// A timestamp outside the accepted range.
    #[error("timestamp {timestamp} is more than {max_ms} ms {side} the broker's clock ({now_ms})")]
    Timestamp {
        /// The timestamp, in milliseconds.
        timestamp: i64,
        /// The broker's clock, in milliseconds.
        now_ms: i64,
        /// The bound, in milliseconds.
        max_ms: i64,
        /// "ahead of" or "behind".
        side: &'static str,
    },
    /// A batch of a transaction.
    #[error("transactions are not supported yet")]
    Transactional,
    /// The sequence rules of idempotent producers.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}

impl AppendError {
    /// The Kafka error code to answer with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownLog => ErrorCode::UnknownTopicOrPartition,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
            Self::Timestamp { .. } => ErrorCode::InvalidTimestamp,
            Self::Transactional => ErrorCode::InvalidTxnState,
            Self::Sequence(error) => error.code(),
        }
    }
}

/// A batch or a command in the journal does not fit the state that the entries before it led to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The bytes of the entry are not valid.
    #[error("the journal entry cannot be read: {0}")]
    Codec(#[from] CodecError),
    /// A batch of a log that no entry created.
    #[error("the journal holds a batch of log {0}, which does not exist at that point")]
    UnknownLog(LogId),
    /// A hole or an overlap between batches.
    #[error("the batch of log {log} starts at offset {found}, the one before it ended at {expected}")]
    Gap {
        /// The log.
        log: LogId,
        /// Where it had to start.
        expected: Offset,
        /// Where it starts.
        found: Offset,
    },
}
