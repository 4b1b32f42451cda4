//! The write side: what is appended goes through a queue to the committer, who writes it as groups into segments.
//!
//! ```text
//! append --> queue --take all--> plan --> writer --> pwrite, fdatasync --> publish: index, cache, committed LSN, listener
//!                                           |
//!                         prepare: the next segment file, ready before it is needed
//! ```

pub(crate) mod committer;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod queue;
pub(crate) mod writer;

use anabranch_core::ids::{LogId, Offset};
use bytes::Bytes;

/// One record batch to be appended.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The log it belongs to.
    pub log: LogId,
    /// Offset of its first record; written into the stored copy.
    pub base_offset: Offset,
    /// Partition leader epoch; written into the stored copy.
    pub leader_epoch: i32,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Largest timestamp of its records, in milliseconds since 1970 UTC.
    pub max_timestamp: i64,
    /// One whole batch of format v2, checked, as it was received.
    pub bytes: Bytes,
}

/// Something in the queue. Its sequence number follows from its place.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Batch(Batch),
    State(Vec<u8>),
}

impl Entry {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Entry::Batch(batch) => batch.bytes.len(),
            Entry::State(bytes) => bytes.len(),
        }
    }
}
