//! Finding batches by time.

use anabranch_core::ids::{LogId, Offset};
use bytes::Bytes;

use super::{Failure, Range};
use crate::error::ReadError;
use crate::format::batch;
use crate::index::Run;
use crate::shared::Shared;

/// The newest moment in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxTimestamp {
    /// The largest timestamp of its records, in milliseconds since 1970 UTC.
    pub timestamp: i64,
    /// Base offset of the first batch that has it.
    pub base_offset: Offset,
}

impl Shared {
    /// The first batch within `from..upto` that has a record at or after `timestamp`.
    pub(crate) fn first_batch_at_or_after_time(
        &self,
        log: LogId,
        timestamp: i64,
        from: Offset,
        upto: Offset,
    ) -> Result<Option<Bytes>, ReadError> {
        let mut from = from;
        while let Some(base) = self.retrying(|| self.run_at_or_after(log, timestamp, from, upto))? {
            // The run holds such a batch, but perhaps only one below `from`; then the search goes on behind it.
            let start = base.base_offset.max(from);
            let range = Range {
                from: start,
                upto: base.last_offset.saturating_add(1),
                max_bytes: usize::MAX,
                at_least_one: true,
            };
            for slice in self.read(log, range)? {
                for (position, found) in batch::walk(&slice) {
                    let inside = found.last_offset >= from && found.last_offset < upto;
                    if inside && found.max_timestamp >= timestamp {
                        return Ok(Some(slice.slice(position..position + found.bytes)));
                    }
                }
            }
            from = base.last_offset.saturating_add(1);
        }
        Ok(None)
    }

    /// The first run that reaches into `from..upto` and has such a batch.
    fn run_at_or_after(
        &self,
        log: LogId,
        timestamp: i64,
        from: Offset,
        upto: Offset,
    ) -> Result<Option<Run>, Failure> {
        let wanted = |run: &&Run| run.last_offset >= from && run.max_timestamp >= timestamp;
        // Both under one lock: a segment that is sealed in between would be in neither.
        let (spans, in_active) = {
            let state = self.read_state();
            let Some(log) = state.index.logs.get(&log) else {
                return Ok(None);
            };
            let candidates = log.spans.iter().filter(|span| {
                let summary = &span.summary;
                summary.last_offset >= from
                    && summary.first_offset < upto
                    && summary.max_timestamp >= timestamp
            });
            let spans: Vec<_> = candidates.cloned().collect();
            (spans, log.active.iter().find(wanted).copied())
        };
        for span in spans {
            let entries = self
                .files
                .entries(&span)
                .map_err(|error| (error, Some(span.segment.clone())))?;
            if let Some(run) = entries.iter().find(wanted) {
                return Ok(Some(*run).filter(|run| run.base_offset < upto));
            }
        }
        Ok(in_active.filter(|run| run.base_offset < upto))
    }

    /// The largest timestamp of a log's batches, by the segments that reach above the log's start.
    pub(crate) fn max_timestamp(&self, log: LogId) -> Option<MaxTimestamp> {
        let state = self.read_state();
        let log = state.index.logs.get(&log)?;
        let sealed = log
            .spans
            .iter()
            .map(|span| (span.summary.max_timestamp, span.summary.max_timestamp_base));
        let active = log
            .active
            .iter()
            .filter(|run| run.last_offset >= log.start)
            .map(|run| (run.max_timestamp, run.max_timestamp_base));
        let newest = sealed
            .chain(active)
            .fold(None, |best: Option<(i64, Offset)>, next| match best {
                Some(best) if best.0 >= next.0 => Some(best),
                _ => Some(next),
            });
        newest.map(|(timestamp, base_offset)| MaxTimestamp {
            timestamp,
            base_offset,
        })
    }
}
