//! Identifiers and moments: newtypes, so that a log, an LSN and an offset cannot be mixed up.

use std::fmt;

/// Position of a record in a log, as Kafka counts it: 0 is the first record ever appended.
pub type Offset = i64;

/// A log of the store, that is, one topic partition. Assigned once when the partition is created and never used
/// again, so that frames of a deleted topic can never be taken for those of its namesake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub u32);

/// Log sequence number: counts every entry (batch or state change) ever appended to the write-ahead log, from 1.
///
/// `Lsn(0)` precedes everything; an answer that depends on nothing may wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// A topic's identity on the wire (KIP-516). Never changes and never comes back after a deletion.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

/// A moment, as the caller saw it when it asked: the core reads no clock of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time in milliseconds from an arbitrary start: for sessions, timeouts and delays.
    pub mono_ms: u64,
    /// Wall clock, milliseconds since 1970 UTC: for timestamps and retention only. It may jump.
    pub wall_ms: i64,
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TopicId(")?;
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        write!(f, ")")
    }
}
