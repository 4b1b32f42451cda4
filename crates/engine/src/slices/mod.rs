//! Reading slices of a log: what the members of a group that share a partition are given, and what is left for them.
//!
//! ```text
//!             read_slice (Fetch)      recall (after a restart)      survey, Tally (planner)
//!                    \                   |                         /          |
//!                     `------ walk ------+------------------------'           |
//!                              |                                              |
//!                          ScanCache  one scan, however many slices           |
//!                              |                                              |
//!                            Source   the store, in memory or from disk  -----'
//! ```
//!
//! - A [`Source`] gives stored batches. [`InMemory`] never blocks and says so where the disk is needed; [`FromDisk`]
//!   is for a thread that may wait.
//! - The [`ScanCache`] keeps batches with their records found, so that k readers of one log decompress and walk it once.
//! - [`read_slice`] makes an answer for a member: matching records up to a size, or how far nothing matches.
//! - [`recall()`] lists what may have been handed out before a restart.
//! - [`survey()`] counts the remaining records per slot, exactly or from a sample; a [`Tally`] is filled in the background
//!   so that most of the answer costs no reading.
//!
//! Nothing here decides anything or waits for anything but the disk, and nothing is async.
//!
//! # Batches that have no slot
//! Control batches belong to no slice; they are passed on where they lie between data of one answer, so that a reader of
//! transactions sees the ends that it expects, and they never make an answer alone. A batch whose records cannot be
//! read, which a producer can cause since batches are believed on receipt, is one unit at its last offset, in the
//! slot of its base offset: one member gets it, whole, and fails on it exactly as it would on any Kafka broker, while the
//! other slices go on.

mod read;
mod recall;
mod scan_cache;
mod source;
mod survey;
mod tally;
mod totals;
mod walk;

pub use read::{ReadLimits, SliceQuery, SliceRead, Stop, read_slice};
pub use recall::{Recalled, recall};
pub use scan_cache::{Cost, ScanCache};
pub use source::{FromDisk, InMemory, Source, SourceError};
pub use survey::{SlotCounts, survey};
pub use tally::Tally;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod store_test;
