//! After a restart: which records members were handed before it.
//!
//! What was handed out is not durable, only how far it went at most. Until that range has been read again nothing moves
//! away from the member ([`anabranch_core::cursor`]).

use anabranch_core::cursor::{Record, SliceOffset};
use anabranch_core::group::{SliceRecall, Topics};
use anabranch_core::ids::{LogId, Now, Offset};
use anabranch_core::limits::SLICE_SCAN_BYTES_MAX;
use anabranch_store::Store;

use crate::slices::{FromDisk, ScanCache, SliceQuery, SourceError, Stop, recall};
use crate::{Engine, Journal, Outcome};

/// A range of a slice to be read again.
#[derive(Clone, Debug)]
pub struct RecallTask {
    wanted: SliceRecall,
    log: LogId,
    log_start: Offset,
    high_watermark: Offset,
}

impl RecallTask {
    /// The log that is to be read.
    pub fn log(&self) -> LogId {
        self.log
    }

    /// Reads the range. From the disk, so not under a lock.
    ///
    /// # Errors
    /// Those of reading the log. The member's slots then stay where they are.
    pub fn read(&self, store: &Store, scans: &ScanCache) -> Result<Vec<Record>, SourceError> {
        let range = &self.wanted.recall;
        let id_bits = SliceOffset::new(Some(range.slice), 0).map_or(0, SliceOffset::to_wire);
        let upto = range.to.min(self.high_watermark);
        // What was deleted need not be done any more, and cannot be read.
        let mut from = range.from.max(self.log_start);
        let mut records = Vec::new();
        while from < upto {
            let query = SliceQuery {
                log: self.log,
                id_bits,
                sieve: &range.sieve,
                from,
                upto,
            };
            let found = recall(
                &FromDisk(store),
                scans,
                &query,
                self.high_watermark,
                SLICE_SCAN_BYTES_MAX,
            )?;
            let record = |(offset, slot)| Record { offset, slot };
            records.extend(found.records.into_iter().map(record));
            if found.stop == Stop::Exhausted || found.scanned_to <= from {
                break;
            }
            from = found.scanned_to;
        }
        Ok(records)
    }
}

impl<J: Journal> Engine<J> {
    /// What must be read again. Empty once everything was.
    pub fn recalls(&self) -> Vec<RecallTask> {
        let partitions = self.node.partitions();
        let task = |wanted: SliceRecall| {
            let (topic, partition) = wanted.key;
            Some(RecallTask {
                log: self.log_of(wanted.key)?,
                log_start: partitions.log_start(topic, partition),
                high_watermark: partitions.log_end(topic, partition),
                wanted,
            })
        };
        let wanted = self.node.groups().recalls_wanted().into_iter();
        wanted.filter_map(task).collect()
    }

    /// Takes what was read.
    pub fn recalled(&mut self, now: Now, task: &RecallTask, records: &[Record]) -> Outcome {
        self.group(now, |coordinator, topics, now| {
            ((), coordinator.recall_slice(now, topics, &task.wanted, records))
        })
        .1
    }
}
