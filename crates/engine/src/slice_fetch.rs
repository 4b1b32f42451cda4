//! The part of a Fetch that reads slices.
//!
//! An answer is made of what was read without the lock, and leaves only if the slice is still what it was: then its
//! records are noted as handed out ([`Engine::reserve`]). What was searched in vain is noted as well, so that the next look
//! begins behind it ([`Engine::note_searches`]).

use std::sync::Arc;

use anabranch_core::cursor::{ReadPlan, Record, SliceOffset};
use anabranch_core::group::{Connection, SliceFetch, SliceRead};
use anabranch_core::ids::{LogId, Now, Offset, TopicId};
use anabranch_core::limits::{SLICE_ANSWER_BYTES_MAX, SLICE_SCAN_BYTES_MAX};
use anabranch_core::log::{FetchBounds, Log};
use anabranch_core::node::Node;
use anabranch_store::Store;
use anabranch_wire::ErrorCode;

use crate::fetch::{FetchError, Look, Read, Reads, Seen, Source};
use crate::slices::{FromDisk, InMemory, ReadLimits, ScanCache, SliceQuery, SourceError, Stop, read_slice};
use crate::{Engine, Journal, Outcome};

/// Which records of a partition are asked for.
#[derive(Clone, Debug)]
pub enum Part {
    /// All.
    Whole,
    /// Those of a slice.
    Slice(Arc<SliceSeen>),
    /// Those of a slice, when its member has committed some of what it has. It waits as for a log without new records.
    Later(Arc<SliceSeen>),
    /// None: the slice was another member's, or is over. Whoever asks waits as for a log without new records.
    Nothing,
}

/// One look at a slice.
#[derive(Debug)]
pub struct SliceSeen {
    group: String,
    key: (TopicId, i32),
    plan: ReadPlan,
    /// Most records that the member is to be handed at once.
    records_max: usize,
}

/// Records of a slice that were read.
#[derive(Debug)]
pub struct OfSlice {
    records: Vec<Record>,
    /// The offset behind the last batch.
    end: Offset,
    /// No record lies between `end` and here.
    scanned_to: Offset,
    stop: Stop,
}

impl PartialEq for Part {
    /// Whether another look would read the same.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole, Self::Whole) | (Self::Nothing, Self::Nothing) => true,
            (Self::Slice(a), Self::Slice(b)) => a.is_same(&b.plan) && a.plan.scan_from == b.plan.scan_from,
            (Self::Later(a), Self::Later(b)) => a.is_same(&b.plan),
            _ => false,
        }
    }
}

impl Eq for Part {}

/// Looks at the slice that an offset names.
pub(crate) fn see_slice(
    node: &Node,
    log: &Log,
    key: (TopicId, i32),
    at: SliceOffset,
) -> Result<Seen, ErrorCode> {
    let bounds = FetchBounds {
        start: log.start(),
        high_watermark: log.high_watermark(),
    };
    let seen = |read: Box<SliceRead>| {
        Arc::new(SliceSeen {
            group: read.group,
            key,
            plan: read.plan,
            records_max: read.records_max,
        })
    };
    let part = match node.groups().locate_slice(key, at) {
        SliceFetch::Unknown => return Err(ErrorCode::OffsetOutOfRange),
        SliceFetch::Silent => Part::Nothing,
        SliceFetch::Read(read) => Part::Slice(seen(read)),
        SliceFetch::Full(read) => Part::Later(seen(read)),
    };
    Ok(Seen {
        log: log.id(),
        bounds,
        part,
    })
}

impl SliceSeen {
    fn is_same(&self, plan: &ReadPlan) -> bool {
        self.plan.chain == plan.chain
            && self.plan.slice == plan.slice
            && self.plan.from == plan.from
            && self.plan.sieve.to() == plan.sieve.to()
    }

    /// Whether nothing of the slice can be there to be read.
    pub(crate) fn is_at_end(&self, high_watermark: Offset) -> bool {
        self.plan.next.is_none() && self.plan.scan_from >= high_watermark
    }

    /// Reads it; `None` if the disk is needed and must not be used.
    pub(crate) fn read(
        &self,
        store: &Store,
        scans: &ScanCache,
        (log, bounds, bytes_max): (LogId, FetchBounds, usize),
        source: Source,
    ) -> Option<Result<Read, FetchError>> {
        let id = SliceOffset::new(Some(self.plan.slice), 0).map_or(0, SliceOffset::to_wire);
        let query = SliceQuery {
            log,
            id_bits: id,
            sieve: &self.plan.sieve,
            // What was deleted is passed over, as after compaction.
            from: self.plan.scan_from.max(bounds.start),
            upto: bounds.high_watermark,
        };
        let limits = ReadLimits {
            bytes_max: bytes_max.min(SLICE_ANSWER_BYTES_MAX),
            records_max: self.records_max,
            scan_bytes_max: SLICE_SCAN_BYTES_MAX,
        };
        let read = match source {
            Source::Memory => read_slice(&InMemory(store), scans, &query, &limits),
            Source::Disk => read_slice(&FromDisk(store), scans, &query, &limits),
        };
        let read = match read {
            Ok(read) => read,
            Err(SourceError::NeedsDisk) if source == Source::Memory => return None,
            Err(error) => return Some(Err(FetchError::Slice(error))),
        };
        if source == Source::Memory && read.records.is_empty() && read.stop == Stop::NeedsDisk {
            return None;
        }
        let record = |(offset, slot)| Record { offset, slot };
        let of_slice = OfSlice {
            records: read.records.into_iter().map(record).collect(),
            end: read.end,
            scanned_to: read.scanned_to,
            stop: read.stop,
        };
        Some(Ok(Read {
            batches: read.batches,
            of_slice: Some(of_slice),
        }))
    }
}

/// The bounds of a partition in the number space of the offset that was asked for.
///
/// A member that gets records sees the end of the log in the space of their slice; one that gets none sees its own
/// position as the high watermark: that is what says "nothing to do" to every client.
pub fn bounds_seen(seen: &Seen, asked: Offset, is_empty: bool) -> FetchBounds {
    let slice = match &seen.part {
        Part::Whole => return seen.bounds,
        Part::Slice(slice) | Part::Later(slice) => Some(slice.plan.slice),
        Part::Nothing => None,
    };
    let asked_slice = SliceOffset::from_wire(asked).and_then(SliceOffset::slice);
    let shifted = |offset| {
        let shifted = SliceOffset::new(slice.or(asked_slice), offset);
        shifted.map_or(asked, SliceOffset::to_wire)
    };
    FetchBounds {
        start: shifted(seen.bounds.start).min(asked),
        high_watermark: if is_empty {
            asked
        } else {
            shifted(seen.bounds.high_watermark)
        },
    }
}

impl<J: Journal> Engine<J> {
    /// Notes which slices are fetched on a connection, by a request that waits so many milliseconds if it finds nothing; see
    /// [`Coordinator::slice_fetched`].
    ///
    /// [`Coordinator::slice_fetched`]: anabranch_core::group::Coordinator::slice_fetched
    pub fn slices_fetched(&mut self, now: Now, connection: Connection, look: &Look, wait_ms: u64) {
        let until_ms = now.mono_ms.saturating_add(wait_ms);
        for seen in look.iter().flatten() {
            if let Part::Slice(slice) | Part::Later(slice) = &seen.part {
                let groups = self.node.groups_mut().0;
                groups.slice_fetched(connection, slice.key, slice.plan.slice, until_ms);
            }
        }
    }

    /// Notes what was searched in vain. Says whether looking again at once may find more: a slice was over, or a search
    /// ended because of its budget.
    pub fn note_searches(&mut self, now: Now, look: &Look, reads: &Reads) -> bool {
        let mut is_open = false;
        for (slice, read) in slices(look, reads).filter(|(_, read)| read.records.is_empty()) {
            let (groups, topics) = self.node.groups_mut();
            groups.note_searched(
                now,
                &topics,
                &slice.group,
                slice.key,
                &slice.plan,
                read.scanned_to,
            );
            let is_over = slice.plan.next.is_some() && read.scanned_to >= slice.plan.sieve.to();
            is_open |= is_over || matches!(read.stop, Stop::Budget | Stop::NeedsDisk);
        }
        is_open
    }

    /// Reserves the records of slices for an answer that is about to leave. `None` if some slice is not what it was when it
    /// was read: nothing is reserved then, and the fetch looks again. Else the entry that the answer waits for, and what is
    /// to be passed on.
    pub fn reserve(&mut self, now: Now, look: &Look, reads: &Reads) -> Option<Outcome> {
        let is_fresh = |(slice, read): (&SliceSeen, &OfSlice)| {
            let at = SliceOffset::new(Some(slice.plan.slice), slice.plan.from);
            let found = at.map(|at| self.node.groups().locate_slice(slice.key, at));
            match found {
                Some(SliceFetch::Read(read)) => slice.is_same(&read.plan),
                _ => read.records.is_empty(),
            }
        };
        if !slices(look, reads).all(is_fresh) {
            return None;
        }
        let mut all = Outcome::nothing(self.node.state_lsn());
        for (slice, read) in slices(look, reads).filter(|(_, read)| !read.records.is_empty()) {
            let (groups, topics) = self.node.groups_mut();
            let handed = (read.records.as_slice(), read.end);
            let (reserved, effects) =
                groups.reserve_slice(now, &topics, &slice.group, slice.key, &slice.plan, handed);
            debug_assert!(
                reserved.is_ok_and(|reserved| reserved.end == read.end),
                "it was fresh"
            );
            all.absorb(self.settle(effects));
        }
        all.after = all.after.max(self.node.state_lsn());
        Some(all)
    }
}

/// The slices among what was read.
fn slices<'a>(look: &'a Look, reads: &'a Reads) -> impl Iterator<Item = (&'a SliceSeen, &'a OfSlice)> + 'a {
    look.iter().zip(reads).filter_map(|(seen, read)| {
        let (Ok(seen), Ok(read)) = (seen, read) else {
            return None;
        };
        let Part::Slice(slice) = &seen.part else {
            return None;
        };
        Some((slice.as_ref(), read.of_slice.as_ref()?))
    })
}
