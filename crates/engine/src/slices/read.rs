//! An answer for a member that reads a slice.

use std::ops::ControlFlow;

use anabranch_core::ids::{LogId, Offset};
use anabranch_core::sieve::Sieve;
use anabranch_wire::batch::{Gather, IndexedBatch, Room, share_batch};
use anabranch_wire::slot::{Slot, slot_of_batch};
use bytes::Bytes;

use super::scan_cache::{Content, Cost, Opened, ScanCache};
use super::source::{Source, SourceError};
use super::walk::{Halt, Way, walk};

/// What is read. All offsets are plain log offsets, without a slice id.
#[derive(Clone, Copy, Debug)]
pub struct SliceQuery<'a> {
    /// The log.
    pub log: LogId,
    /// The slice's id, moved to the upper bits of an offset.
    pub id_bits: i64,
    /// Its records.
    pub sieve: &'a Sieve,
    /// The first offset wanted. Records below it are never given, although a plain Fetch would give the whole batch: the
    /// client may come from an older slice, whose every offset is below this slice's.
    pub from: Offset,
    /// The high watermark: the log as far as it may be shown.
    pub upto: Offset,
}

/// How much an answer may hold and cost. What is handed out can no longer move to another member, so the first two are
/// about what the member can process in a second, not what the client would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Most bytes of batches; one record is given even if its batch is larger, as Kafka does.
    pub bytes_max: usize,
    /// Most records.
    pub records_max: usize,
    /// Most bytes of records, decompressed, that are looked at; one batch always is. See
    /// [`SLICE_SCAN_BYTES_MAX`](anabranch_core::limits::SLICE_SCAN_BYTES_MAX).
    pub scan_bytes_max: usize,
}

/// Why an answer ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The slice has nothing more below its end and the high watermark.
    Exhausted,
    /// No room for the next record, which is at [`SliceRead::scanned_to`].
    Full,
    /// The scan budget is used up: going on at [`SliceRead::scanned_to`] may find more.
    Budget,
    /// As `Budget`, but what comes next takes a thread that may wait.
    NeedsDisk,
}

/// An answer: records, or how far there are none. Never a batch without records of the slice.
#[derive(Debug)]
pub struct SliceRead {
    /// Batches in the number space of the slice, to be sent one behind the other; empty without a record.
    pub batches: Vec<Bytes>,
    /// Offset and slot of each record in it, in order. Control records are not named. A batch that cannot be read counts
    /// as one record at its last offset.
    pub records: Vec<(Offset, Slot)>,
    /// The offset behind the last batch header: where a client stands afterwards. The query's `from` without records.
    pub end: Offset,
    /// From `end` up to here the slice has no record: the memo for the next read.
    pub scanned_to: Offset,
    /// Why it ends here.
    pub stop: Stop,
    /// What it cost.
    pub cost: Cost,
}

/// Reads a slice. Without records in the answer, it says in `scanned_to` how far there are none, and a caller that holds
/// the request goes on from there.
///
/// # Errors
/// Those of the source, unless something was found before.
pub fn read_slice(
    source: &dyn Source,
    cache: &ScanCache,
    query: &SliceQuery<'_>,
    limits: &ReadLimits,
) -> Result<SliceRead, SourceError> {
    let end = query.upto.min(query.sieve.to());
    let way = Way {
        log: query.log,
        // What lies in front of the slice is not looked at.
        from: query.from.max(query.sieve.start()).min(end.max(query.from)),
        end,
        upto: query.upto,
        scan_bytes_max: limits.scan_bytes_max,
    };
    let mut cost = Cost::default();
    let mut answer = Answer::new(query, limits, end);
    let (mut scanned_to, halt) = walk(source, cache, way, &mut cost, |batch| answer.visit(batch))?;
    if let Some(next) = answer.next {
        scanned_to = next;
    }
    cost.delivered = answer.bytes as u64;
    cache.note(Cost {
        delivered: cost.delivered,
        ..Cost::default()
    });
    Ok(SliceRead {
        batches: answer.out.into_pieces(),
        records: answer.records,
        end: answer.last_end,
        scanned_to: scanned_to.max(answer.last_end),
        stop: match halt {
            Halt::End => Stop::Exhausted,
            Halt::Enough => Stop::Full,
            Halt::Budget => Stop::Budget,
            Halt::NeedsDisk => Stop::NeedsDisk,
        },
        cost,
    })
}

/// The answer as it grows.
struct Answer<'a> {
    query: &'a SliceQuery<'a>,
    limits: &'a ReadLimits,
    end: Offset,
    out: Gather,
    records: Vec<(Offset, Slot)>,
    bytes: usize,
    last_end: Offset,
    /// The first record without room.
    next: Option<Offset>,
    /// Control batches since the last data: they go out if more data follows.
    pending: Vec<Bytes>,
    pending_bytes: usize,
}

impl<'a> Answer<'a> {
    fn new(query: &'a SliceQuery<'a>, limits: &'a ReadLimits, end: Offset) -> Self {
        Self {
            query,
            limits,
            end,
            out: Gather::default(),
            records: Vec::new(),
            bytes: 0,
            last_end: query.from,
            next: None,
            pending: Vec::new(),
            pending_bytes: 0,
        }
    }

    fn visit(&mut self, batch: &Opened) -> ControlFlow<()> {
        match &batch.content {
            Content::Records(index) => self.select(index),
            Content::Control => {
                if !self.records.is_empty() {
                    self.pending_bytes += batch.stored.len();
                    self.pending.push(batch.stored.clone());
                }
            }
            Content::Unreadable(error) => {
                let (offset, slot) = unit(batch);
                if self.keeps(slot, offset) {
                    tracing::warn!(log = %self.query.log, base_offset = batch.header.base_offset, %error,
                        "a batch cannot be read and is passed on as it is");
                    self.pass(batch, slot, offset);
                }
            }
        }
        if self.next.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn keeps(&self, slot: Slot, offset: Offset) -> bool {
        offset >= self.query.from && offset < self.end && self.query.sieve.keeps(slot, offset)
    }

    fn select(&mut self, index: &IndexedBatch) {
        let used = self.bytes + self.pending_bytes;
        let room = Room {
            upto: self.end,
            bytes_max: self.limits.bytes_max.saturating_sub(used),
            records_max: self.limits.records_max.saturating_sub(self.records.len()),
            at_least_one: self.records.is_empty(),
        };
        let (query, end) = (self.query, self.end);
        let keep = |slot, offset| offset >= query.from && offset < end && query.sieve.keeps(slot, offset);
        let selection = index.select(&room, keep, &mut self.records);
        self.next = selection.next();
        if selection.records() > 0 {
            self.send_pending();
            index.write(&selection, query.id_bits, &mut self.out);
            self.bytes += selection.bytes();
            self.last_end = selection.end();
        }
    }

    /// Takes a batch that has no record to choose from, whole or not at all.
    fn pass(&mut self, batch: &Opened, slot: Slot, offset: Offset) {
        let bytes = self.bytes + self.pending_bytes + batch.stored.len();
        let fits = bytes <= self.limits.bytes_max && self.records.len() < self.limits.records_max;
        if !fits && !self.records.is_empty() {
            self.next = Some(offset);
            return;
        }
        self.send_pending();
        share_batch(&batch.stored, self.query.id_bits, &mut self.out);
        self.bytes += batch.stored.len();
        self.records.push((offset, slot));
        self.last_end = batch.header.next_offset();
    }

    fn send_pending(&mut self) {
        for batch in self.pending.drain(..) {
            share_batch(&batch, self.query.id_bits, &mut self.out);
        }
        self.bytes += std::mem::take(&mut self.pending_bytes);
    }
}

/// The one record that a batch counts as which cannot be read: at its last offset, so that it lies below the end of any
/// slice that has it, in the slot of its base offset.
pub(super) fn unit(batch: &Opened) -> (Offset, Slot) {
    (
        batch.header.last_offset(),
        slot_of_batch(batch.header.base_offset),
    )
}

#[cfg(test)]
#[path = "read_test.rs"]
mod tests;
