//! Where stored batches come from.

use anabranch_core::ids::{LogId, Offset};
use anabranch_store::{ReadError, Store};
use anabranch_wire::batch::BatchError;
use bytes::Bytes;

/// Why batches could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// They are not in memory, or somebody is just reading them: ask again on a thread that may wait.
    #[error("the batches are not in memory")]
    NeedsDisk,
    /// The store could not read them.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What is stored is no batch, although its frame is whole.
    #[error("log {log} has no batch at offset {offset}: {error}")]
    NoBatch {
        /// The log.
        log: LogId,
        /// The offset asked for.
        offset: Offset,
        /// What is wrong with it.
        error: BatchError,
    },
}

/// Gives stored batches.
pub trait Source {
    /// Whole batches in order, from the one that holds `from` on (or the first one behind it), that end below `upto`: as
    /// many as fit into `bytes_max`, possibly fewer, but at least one if there is one. A slice holds one or more batches.
    ///
    /// # Errors
    /// [`SourceError`].
    fn read(
        &self,
        log: LogId,
        from: Offset,
        upto: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Bytes>, SourceError>;

    /// About how many bytes the batches of `from..upto` have. Never blocks.
    fn bytes_between(&self, log: LogId, from: Offset, upto: Offset) -> u64;

    /// Whether the caller's thread may wait, for the disk or for another reader.
    fn may_wait(&self) -> bool;
}

/// The store, as far as its batches are in memory.
#[derive(Clone, Copy, Debug)]
pub struct InMemory<'a>(pub &'a Store);

/// The store, on a thread that may wait for the disk.
#[derive(Clone, Copy, Debug)]
pub struct FromDisk<'a>(pub &'a Store);

impl Source for InMemory<'_> {
    fn read(
        &self,
        log: LogId,
        from: Offset,
        upto: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Bytes>, SourceError> {
        self.0
            .try_read(log, from, upto, bytes_max, true)
            .ok_or(SourceError::NeedsDisk)
    }

    fn bytes_between(&self, log: LogId, from: Offset, upto: Offset) -> u64 {
        bytes_between(self.0, log, from, upto)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

impl Source for FromDisk<'_> {
    fn read(
        &self,
        log: LogId,
        from: Offset,
        upto: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Bytes>, SourceError> {
        Ok(self.0.read(log, from, upto, bytes_max, true)?)
    }

    fn bytes_between(&self, log: LogId, from: Offset, upto: Offset) -> u64 {
        bytes_between(self.0, log, from, upto)
    }

    fn may_wait(&self) -> bool {
        true
    }
}

/// The stored ranges' bytes, each by the share of its offsets that is asked for.
fn bytes_between(store: &Store, log: LogId, from: Offset, upto: Offset) -> u64 {
    let stats = store.log_stats(log);
    let share = |first: Offset, last: Offset, bytes: u64| {
        let common = last
            .saturating_add(1)
            .min(upto)
            .saturating_sub(first.max(from))
            .max(0);
        let all = last.saturating_sub(first).saturating_add(1).max(1);
        (u128::from(bytes) * u128::from(common.unsigned_abs()) / u128::from(all.unsigned_abs())) as u64
    };
    stats
        .ranges
        .iter()
        .map(|range| share(range.first_offset, range.last_offset, range.bytes))
        .sum()
}
