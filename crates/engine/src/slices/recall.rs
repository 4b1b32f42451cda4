//! What may have been handed out of a slice before a restart.

use std::ops::ControlFlow;

use anabranch_core::ids::Offset;
use anabranch_wire::slot::Slot;

use super::read::{SliceQuery, Stop, unit};
use super::scan_cache::{Content, Cost, Opened, ScanCache};
use super::source::{Source, SourceError};
use super::walk::{Halt, Way, walk};

/// Records of a slice, without their bytes.
#[derive(Debug)]
pub struct Recalled {
    /// Offset and slot of each record, in order, as [`SliceRead::records`](super::SliceRead::records) names them.
    pub records: Vec<(Offset, Slot)>,
    /// All records below this are in the list.
    pub scanned_to: Offset,
    /// Why it ends here: never [`Stop::Full`].
    pub stop: Stop,
    /// What it cost; nothing is delivered.
    pub cost: Cost,
}

/// Lists the records of a slice from `query.from` on below `query.upto`: after a restart, from the committed position up to
/// the durable ceiling of what was handed out. Looks at no more than `scan_bytes_max` bytes of records (but at one batch); a
/// caller goes on at `scanned_to`.
///
/// `query.upto` need not be the end of a batch, but must not lie above the high watermark.
///
/// # Errors
/// Those of the source, unless something was found before.
pub fn recall(
    source: &dyn Source,
    cache: &ScanCache,
    query: &SliceQuery<'_>,
    high_watermark: Offset,
    scan_bytes_max: usize,
) -> Result<Recalled, SourceError> {
    let end = query.upto.min(query.sieve.to());
    let way = Way {
        log: query.log,
        from: query.from.max(query.sieve.start()).min(end.max(query.from)),
        end,
        upto: high_watermark,
        scan_bytes_max,
    };
    let mut cost = Cost::default();
    let mut records = Vec::new();
    let keeps = |slot, offset| offset >= query.from && offset < end && query.sieve.keeps(slot, offset);
    let list = |batch: &Opened| {
        match &batch.content {
            Content::Records(index) => {
                let kept = index.iter().filter(|(offset, slot)| keeps(*slot, *offset));
                records.extend(kept);
            }
            Content::Unreadable(_) => {
                let (offset, slot) = unit(batch);
                records.extend(keeps(slot, offset).then_some((offset, slot)));
            }
            Content::Control => {}
        }
        ControlFlow::Continue(())
    };
    let (scanned_to, halt) = walk(source, cache, way, &mut cost, list)?;
    Ok(Recalled {
        records,
        scanned_to,
        stop: match halt {
            Halt::End | Halt::Enough => Stop::Exhausted,
            Halt::Budget => Stop::Budget,
            Halt::NeedsDisk => Stop::NeedsDisk,
        },
        cost,
    })
}

#[cfg(test)]
#[path = "recall_test.rs"]
mod tests;
