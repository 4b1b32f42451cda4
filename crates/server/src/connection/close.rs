//! Why a connection ends, and how loudly to say so.

use std::io;

use anabranch_wire::ErrorCode;

use crate::durable::Failed;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Close {
    /// The client has closed its side.
    #[error("the client closed the connection")]
    Eof,
    /// The client has closed its side in the middle of a request.
    #[error("the client closed the connection {received} bytes into a request of {announced}")]
    Truncated {
        /// Bytes that the length prefix promised.
        announced: usize,
        /// Bytes that came.
        received: usize,
    },
    /// The socket failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The client sent what no Kafka client sends.
    #[error("{0}")]
    Hostile(String),
    /// A produce that wants no answer failed; the end of the connection is the only way to say so.
    #[error("a produce without acknowledgement was refused: {0}")]
    Refused(ErrorCode),
    /// Nothing was asked for a long time.
    #[error("idle for too long")]
    Idle,
    /// A request began and did not go on.
    #[error("a request was sent too slowly, or never to its end")]
    Stalled,
    /// Answers are not taken.
    #[error("the client did not read its answers in time")]
    NotRead,
    /// The server ends, and nothing is owed.
    #[error("the server is shutting down")]
    Drained,
    /// The server ends, now.
    #[error("the server has shut down")]
    Cut,
    /// An answer could not be encoded; a fault of ours, and logged as such where it happened.
    #[error("the answer cannot be sent")]
    Unanswerable,
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Close {
    /// Whether the client is to blame: such ends are worth a line in the log.
    pub(crate) fn is_expulsion(&self) -> bool {
        matches!(
            self,
            Self::Hostile(_) | Self::Stalled | Self::NotRead | Self::Truncated { .. }
        )
    }
}
