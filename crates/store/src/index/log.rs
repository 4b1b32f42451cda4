//! The index of one log.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use anabranch_core::ids::Offset;

use super::{Run, Span};

/// Where a log's batches are: sealed spans first, then runs of the active segment, both in offset order.
#[derive(Debug, Default)]
pub(crate) struct LogIndex {
    /// Offsets below are dead.
    pub(crate) start: Offset,
    pub(crate) spans: VecDeque<Span>,
    pub(crate) active: Vec<Run>,
}

/// Where an offset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the span with this number, or at its start if the offset lies below the log's start.
    Span(usize),
    /// In the active segment's run with this number, likewise.
    Active(usize),
    /// Nowhere, although the log goes on with this offset.
    Hole(Offset),
    /// Behind the last batch.
    End,
}

impl LogIndex {
    /// Finds the first batch whose last offset is at or behind `offset`.
    pub(crate) fn place(&self, offset: Offset) -> Place {
        let span = self
            .spans
            .partition_point(|span| span.summary.last_offset < offset);
        if let Some(found) = self.spans.get(span) {
            return self.checked(offset, found.summary.first_offset, Place::Span(span));
        }
        let run = self.active.partition_point(|run| run.last_offset < offset);
        match self.active.get(run) {
            Some(found) => self.checked(offset, found.base_offset, Place::Active(run)),
            None => Place::End,
        }
    }

    fn checked(&self, offset: Offset, found: Offset, place: Place) -> Place {
        // What lies below the start may be gone; a reader who asks for it is served from the first batch there is.
        if found > offset.max(self.start) {
            Place::Hole(found)
        } else {
            place
        }
    }

    /// Adds a span where its offsets belong.
    pub(super) fn insert_span(&mut self, span: Span) {
        let at = self
            .spans
            .partition_point(|other| other.summary.first_offset < span.summary.first_offset);
        self.spans.insert(at, span);
    }

    /// Moves the start forward and forgets spans that lie below it, taking their bytes off their segments' live ones.
    pub(super) fn set_start(&mut self, start: Offset) {
        self.start = self.start.max(start);
        while let Some(span) = self
            .spans
            .front()
            .filter(|span| span.summary.last_offset < self.start)
        {
            span.segment
                .live_bytes
                .fetch_sub(span.summary.bytes, Ordering::Relaxed);
            self.spans.pop_front();
        }
    }
}
