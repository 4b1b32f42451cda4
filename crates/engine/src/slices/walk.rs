//! One pass over the batches of a log, through the cache, within a budget.

use std::ops::ControlFlow;

use anabranch_core::ids::{LogId, Offset};

use super::scan_cache::{Cost, Opened, ScanCache};
use super::source::{Source, SourceError};

/// What to pass over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) log: LogId,
    /// The first offset of interest.
    pub(super) from: Offset,
    /// The offset behind the last one of interest.
    pub(super) end: Offset,
    /// No batch that reaches up to here is looked at: the high watermark.
    pub(super) upto: Offset,
    /// Looking ends once so many bytes of records were looked at.
    pub(super) scan_bytes_max: usize,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// At its end.
    End,
    /// The visitor had enough.
    Enough,
    /// The budget is used up.
    Budget,
    /// What comes next needs the disk, and the source may not wait for it.
    NeedsDisk,
}

/// Visits the batches of a way in order. Returns how far everything was visited, and why not further.
///
/// # Errors
/// Those of the source, if the first batch could not be had; once something was visited, a later read will meet it.
pub(super) fn walk(
    source: &dyn Source,
    cache: &ScanCache,
    way: Way,
    cost: &mut Cost,
    visit: impl FnMut(&Opened) -> ControlFlow<()>,
) -> Result<(Offset, Halt), SourceError> {
    let mut spent = Cost::default();
    let walked = go(source, cache, way, &mut spent, visit);
    cache.note(spent);
    *cost += spent;
    walked
}

fn go(
    source: &dyn Source,
    cache: &ScanCache,
    way: Way,
    cost: &mut Cost,
    mut visit: impl FnMut(&Opened) -> ControlFlow<()>,
) -> Result<(Offset, Halt), SourceError> {
    let mut at = way.from;
    let mut looked_at = 0;
    while at < way.end {
        let stretch = match cache.stretch_at(source, way.log, at, way.upto, cost) {
            Ok(Some(stretch)) => stretch,
            Ok(None) => return Ok((at, Halt::End)),
            Err(SourceError::NeedsDisk) if at > way.from => return Ok((at, Halt::NeedsDisk)),
            Err(_) if at > way.from => return Ok((at, Halt::Budget)),
            Err(error) => return Err(error),
        };
        let batches = cache.batches(way.log, &stretch, cost);
        let first = batches.partition_point(|batch| batch.header.last_offset() < at);
        for batch in batches.get(first..).unwrap_or_default() {
            if batch.header.base_offset >= way.end {
                return Ok((way.end, Halt::End));
            }
            if batch.header.last_offset() >= way.upto {
                return Ok((at, Halt::End));
            }
            if looked_at >= way.scan_bytes_max && at > way.from {
                return Ok((at, Halt::Budget));
            }
            looked_at += batch.body_bytes();
            if visit(batch).is_break() {
                return Ok((at, Halt::Enough));
            }
            at = batch.header.next_offset();
        }
        // Also if its batches ended early.
        at = at.max(stretch.next_offset());
    }
    Ok((way.end, Halt::End))
}
