//! Record batches of the Kafka log format, version 2 (magic 2, KIP-98).
//!
//! ```text
//! offset  bytes  field                   covered by the CRC
//!      0      8  base offset             no: the broker assigns it
//!      8      4  batch length            no: counts what follows it, so a batch is 12 + length bytes long
//!     12      4  partition leader epoch  no: the broker assigns it
//!     16      1  magic                   no
//!     17      4  CRC-32C                 of everything from offset 21 to the end
//!     21      2  attributes              bits 0-2 compression, 3 append time, 4 transactional, 5 control
//!     23      4  last offset delta       yes
//!     27      8  base timestamp          yes, as all that follows
//!     35      8  max timestamp
//!     43      8  producer id
//!     51      2  producer epoch
//!     53      4  base sequence
//!     57      4  record count
//!     61      .  records, compressed as one block if attributes say so
//! ```
//!
//! How the parts play together on the way of a produced batch:
//! - [`check_produced`] judges it once, on receipt, from the header and one pass of CRC; the records stay closed. It
//!   hands back the [`BatchHeader`], the only thing the rest of the broker needs.
//! - [`patch`] writes offset and leader epoch in place; both lie outside the CRC. A topic with append time uses
//!   [`set_log_append_time`], which pays a second CRC pass.
//! - [`BatchIter`] walks stored batches, one header after the other.
//! - [`records()`] opens a batch where its keys are needed: decompressed through [`compress`], always bounded by
//!   [`DecompressLimits`], and walked by [`RecordIter`] without an allocation per record. [`check_records`] adds the
//!   rules that only the records show.
//! - [`index_records`] opens a batch for many readers of a divided partition; each gets the records of its slice by
//!   [`IndexedBatch::select`] and [`IndexedBatch::write`].
//! - [`BatchBuilder`] makes batches, [`commit_marker`] the filler that moves a client over a hole.
//!
//! Everything that fails is a [`BatchError`], and each of these knows the Kafka code that a client gets.

pub mod build;
pub mod check;
pub mod compress;
pub mod error;
pub mod header;
pub mod index;
pub mod records;
pub mod sift;

mod snappy;
mod varint;

#[cfg(test)]
mod differential_test;

pub use build::{BatchBuilder, HeaderField, commit_marker};
pub use check::{ProduceLimits, check_produced, check_records};
pub use compress::{Compression, DecompressLimits};
pub use error::BatchError;
pub use header::{BatchHeader, BatchIter, HEADER_LEN, patch, set_log_append_time};
pub use index::{IndexedBatch, index_records};
pub use records::{Record, RecordHeader, RecordHeaders, RecordIter, RecordSet, records};
pub use sift::{Gather, Room, Selection, share_batch, sift};
