//! One partition's log as the core sees it: bounds and producers, never bytes.
//!
//! ```text
//!            start            high_watermark      next_offset
//!   deleted    |  durable, visible   |  in the commit queue  |  not yet
//! -------------+---------------------+-----------------------+---------> offsets
//!                 | decided_start
//! ```
//!
//! A deletion moves the decided start at once, from which further deletions are decided. What anybody is shown is the
//! start, which follows when the entry of the deletion is durable: a crash must not bring back what a reader was told
//! is gone.
//!
//! [`Log::append`] takes the facts of a batch, decides (idempotent sequence rules in [`producers`], size and timestamp
//! here), assigns offsets and remembers what a retry needs. The store then writes the bytes, and reports back twice:
//! [`Log::appended`] with the LSN, [`Log::committed`] once they are durable. Retention is planned in [`retention`] from
//! what the store knows about sizes and times.
//!
//! After a restart the same state comes from a snapshot and a replay of the batch headers behind it.

mod error;
pub mod producers;
pub mod retention;

pub use error::{AppendError, ReplayError};
pub use producers::{ProducerView, SequenceError};
pub use retention::{LogStats, Run};

use crate::codec::{CodecError, Decoder, Encoder};
use crate::config::{TimestampType, TopicSettings};
use crate::ids::{LogId, Lsn, Now, Offset, TopicId};
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::BatchHeader;
pub(crate) use producers::Place;
use producers::{Kept, Producers, Sequenced};

/// No log gets so long: a larger offset in a file is damage, and arithmetic on offsets cannot overflow.
const OFFSET_MAX: Offset = 1 << 62;

/// What the core needs to know of a record batch: fields of its header, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchFacts {
    /// Producer id; negative for a producer that is not idempotent.
    pub producer_id: i64,
    /// Epoch of the producer id.
    pub producer_epoch: i16,
    /// Sequence number of the first record.
    pub base_sequence: i32,
    /// Records in the batch, at least 1.
    pub record_count: i32,
    /// Offset of the last record minus that of the first.
    pub last_offset_delta: i32,
    /// Timestamp of the first record in milliseconds, -1 if it has none.
    pub base_timestamp: i64,
    /// Largest timestamp in milliseconds, -1 if no record has one.
    pub max_timestamp: i64,
    /// Bytes of the whole batch.
    pub size: usize,
    /// Whether the batch belongs to a transaction.
    pub is_transactional: bool,
}

impl From<&BatchHeader> for BatchFacts {
    fn from(header: &BatchHeader) -> Self {
        Self {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            record_count: header.record_count,
            last_offset_delta: header.last_offset_delta,
            base_timestamp: header.base_timestamp,
            max_timestamp: header.max_timestamp,
            size: header.size(),
            is_transactional: header.is_transactional(),
        }
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Append {
    /// It is accepted: the store must append it now, before anything else is decided about this log.
    New {
        /// The log in which it is to be stored; another one than it was addressed to only in queue mode.
        log: LogId,
        /// Offset of its first record there.
        base_offset: Offset,
        /// Leader epoch to write into it.
        leader_epoch: i32,
        /// The time to write into it and to report, for a topic with LogAppendTime.
        log_append_time_ms: Option<i64>,
    },
    /// It is here already; the answer tells the old offset and waits for `lsn`.
    Duplicate {
        /// Offset of its first record; -1 if it is stored in another partition than the one it was addressed to.
        base_offset: Offset,
        /// The time it was given, for a topic with LogAppendTime.
        log_append_time_ms: Option<i64>,
        /// The last append of the log: when this is durable, the batch is.
        lsn: Lsn,
    },
}

/// What a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchBounds {
    /// First offset that exists.
    pub start: Offset,
    /// First offset that is not visible yet.
    pub high_watermark: Offset,
}

/// The log of one partition.
#[derive(Clone, Debug)]
pub struct Log {
    id: LogId,
    topic: TopicId,
    partition: i32,
    /// Durable: what answers show.
    start: Offset,
    /// At or above `start`: where the deletions that are journaled lead to.
    decided_start: Offset,
    high_watermark: Offset,
    next_offset: Offset,
    leader_epoch: i32,
    last_append: Lsn,
    producers: Producers,
    /// Derived from the configuration by the node.
    settings: TopicSettings,
    /// Where batches that are addressed to this partition are stored, if elsewhere; derived by the node, too.
    home: Option<LogId>,
    /// Runs of unknown age; volatile.
    sightings: retention::Sightings,
}

impl Log {
    pub(crate) fn new(id: LogId, topic: TopicId, partition: i32, settings: TopicSettings) -> Self {
        Self {
            id,
            topic,
            partition,
            start: 0,
            decided_start: 0,
            high_watermark: 0,
            next_offset: 0,
            leader_epoch: 0,
            last_append: Lsn(0),
            producers: Producers::default(),
            settings,
            home: None,
            sightings: retention::Sightings::default(),
        }
    }

    /// The id of the log.
    pub fn id(&self) -> LogId {
        self.id
    }

    /// The topic it belongs to.
    pub fn topic(&self) -> TopicId {
        self.topic
    }

    /// The partition of the topic.
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// First offset that exists ("log start offset", "low watermark"), durably: what answers show.
    pub fn start(&self) -> Offset {
        self.start
    }

    /// The start that follows once all deletions that were decided are durable; at or above [`Self::start`].
    pub fn decided_start(&self) -> Offset {
        self.decided_start
    }

    /// First offset that readers cannot see yet. Also the last stable offset: there are no transactions.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The offset that the next record gets ("log end offset").
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// The epoch of the leader. A single node never changes it.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The last append of a batch that is stored here or was addressed here, as the store reported it; `Lsn(0)` if there was
    /// none since the start, then all is durable.
    pub fn last_append(&self) -> Lsn {
        self.last_append
    }

    /// The settings of the topic.
    pub fn settings(&self) -> &TopicSettings {
        &self.settings
    }

    /// The idempotent producers known here, by id.
    pub fn producers(&self) -> Vec<ProducerView> {
        self.producers.view()
    }

    /// How many producers are remembered.
    pub fn producer_count(&self) -> usize {
        self.producers.len()
    }

    /// What a fetch from `offset` may see; OFFSET_OUT_OF_RANGE outside the log. An offset between the high watermark
    /// and the end is in range: the fetch waits.
    pub fn fetch_bounds(&self, offset: Offset) -> Result<FetchBounds, ErrorCode> {
        if offset < self.start || offset > self.next_offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        Ok(FetchBounds {
            start: self.start,
            high_watermark: self.high_watermark,
        })
    }

    /// Decides about a batch and, if it is new, assigns its offsets. `producers_max` bounds the producers remembered.
    ///
    /// A batch that is here already is acknowledged again before anything else is checked, so that a retry succeeds
    /// even if a setting has changed in between. After a refusal the batches that the producer had sent behind it are
    /// refused as well (OUT_OF_ORDER_SEQUENCE_NUMBER), until the refused one comes again: clients rely on it.
    pub(crate) fn append(
        &mut self,
        now: Now,
        batch: &BatchFacts,
        producers_max: usize,
    ) -> Result<Append, AppendError> {
        if let Some(duplicate) = self.admit(now, batch)? {
            return Ok(duplicate);
        }
        let (append, place) = self.place(now, batch);
        self.remember(now.mono_ms, batch, place, producers_max);
        Ok(append)
    }

    /// The first part of [`Log::append`], done by the log that the batch is addressed to: whether it may be appended. If it
    /// is here already it is returned.
    pub(crate) fn admit(&mut self, now: Now, batch: &BatchFacts) -> Result<Option<Append>, AppendError> {
        if batch.is_transactional {
            return Err(AppendError::Transactional);
        }
        if let Sequenced::Duplicate(kept) = self.producers.check(now.mono_ms, batch)? {
            return Ok(Some(self.duplicate(kept)));
        }
        if let Err(error) = self.check_content(now, batch) {
            self.producers.note_refused(now.mono_ms, batch);
            return Err(error);
        }
        Ok(None)
    }

    /// The second part, done by the log in which the batch is stored: it gets its offsets.
    pub(crate) fn place(&mut self, now: Now, batch: &BatchFacts) -> (Append, Place) {
        let log_append_time_ms =
            (self.settings.timestamp_type == TimestampType::LogAppendTime).then_some(now.wall_ms);
        let place = self.advance(batch, log_append_time_ms.unwrap_or(batch.max_timestamp));
        let append = Append::New {
            log: self.id,
            base_offset: place.base_offset,
            leader_epoch: self.leader_epoch,
            log_append_time_ms,
        };
        (append, place)
    }

    /// The third part, done by the log that the batch is addressed to: what a retry needs.
    pub(crate) fn remember(&mut self, mono_ms: u64, batch: &BatchFacts, place: Place, producers_max: usize) {
        if batch.producer_id >= 0 {
            self.producers.accept(mono_ms, batch, place);
            self.producers.shrink_to(producers_max);
        }
    }

    /// Notes that the server refuses a batch for a reason of its own, before it comes to [`Log::append`]; unless it is
    /// here already, then it is acknowledged again.
    pub(crate) fn note_refused(&mut self, now: Now, batch: &BatchFacts) -> Option<Append> {
        if let Ok(Sequenced::Duplicate(kept)) = self.producers.check(now.mono_ms, batch) {
            return Some(self.duplicate(kept));
        }
        self.producers.note_refused(now.mono_ms, batch);
        None
    }

    fn duplicate(&self, kept: Kept) -> Append {
        let append_time = self.settings.timestamp_type == TimestampType::LogAppendTime;
        Append::Duplicate {
            base_offset: if kept.is_elsewhere { -1 } else { kept.base_offset },
            log_append_time_ms: append_time.then_some(kept.timestamp),
            lsn: self.last_append,
        }
    }

    /// Takes a batch from the journal into the log in which it is stored. It was accepted once, so only its place is checked.
    /// The log that it was addressed to is to [`remember`](Log::remember) it.
    pub(crate) fn replay_place(
        &mut self,
        base_offset: Offset,
        batch: &BatchFacts,
    ) -> Result<Place, ReplayError> {
        if base_offset != self.next_offset {
            return Err(ReplayError::Gap {
                log: self.id,
                expected: self.next_offset,
                found: base_offset,
            });
        }
        let place = self.advance(batch, batch.max_timestamp);
        self.high_watermark = self.next_offset;
        Ok(place)
    }

    fn advance(&mut self, batch: &BatchFacts, timestamp: i64) -> Place {
        let base_offset = self.next_offset;
        let last_offset = base_offset + i64::from(batch.last_offset_delta.max(0));
        self.next_offset = last_offset + 1;
        Place {
            base_offset,
            last_offset,
            timestamp,
            is_elsewhere: false,
        }
    }

    fn check_content(&self, now: Now, batch: &BatchFacts) -> Result<(), AppendError> {
        let max = self.settings.message_bytes_max;
        if batch.size > max {
            return Err(AppendError::TooLarge {
                size: batch.size,
                max,
            });
        }
        if self.settings.timestamp_type == TimestampType::LogAppendTime {
            return Ok(());
        }
        let now_ms = now.wall_ms;
        let after = self.settings.timestamp_after_ms_max;
        if batch.max_timestamp >= 0 && batch.max_timestamp.saturating_sub(now_ms) > after {
            let timestamp = batch.max_timestamp;
            return Err(AppendError::Timestamp {
                timestamp,
                now_ms,
                max_ms: after,
                side: "ahead of",
            });
        }
        let before = self.settings.timestamp_before_ms_max;
        if batch.base_timestamp >= 0 && now_ms.saturating_sub(batch.base_timestamp) > before {
            let timestamp = batch.base_timestamp;
            return Err(AppendError::Timestamp {
                timestamp,
                now_ms,
                max_ms: before,
                side: "behind",
            });
        }
        Ok(())
    }

    pub(crate) fn appended(&mut self, lsn: Lsn) {
        self.last_append = self.last_append.max(lsn);
    }

    /// Everything below `next_offset` is durable. Returns whether readers see more than before.
    pub(crate) fn committed(&mut self, next_offset: Offset) -> bool {
        debug_assert!(
            next_offset <= self.next_offset,
            "committed beyond what was appended"
        );
        let advanced = next_offset > self.high_watermark;
        self.high_watermark = self.high_watermark.max(next_offset.min(self.next_offset));
        advanced
    }

    /// It is decided that records below `offset` go. The start never goes back, and never beyond the end.
    pub(crate) fn decide_start(&mut self, offset: Offset) {
        self.decided_start = self.decided_start.max(offset.min(self.next_offset));
    }

    /// A decision that records below `offset` go is durable.
    pub(crate) fn commit_start(&mut self, offset: Offset) {
        self.start = self.start.max(offset.min(self.decided_start));
    }

    /// Where batches that are addressed to this partition are stored; `None`: here.
    pub(crate) fn home(&self) -> Option<LogId> {
        self.home
    }

    pub(crate) fn set_home(&mut self, home: Option<LogId>) {
        self.home = home;
    }

    pub(crate) fn set_settings(&mut self, settings: TopicSettings) {
        self.settings = settings;
    }

    /// Forgets producers that were idle for `expiration_ms`; those from before the start count from `started_ms`.
    pub(crate) fn expire_producers(&mut self, now: Now, started_ms: u64, expiration_ms: u64) {
        self.producers.expire(now.mono_ms, started_ms, expiration_ms);
    }

    /// How far retention may advance the start at the time of the retention clock; see [`retention`].
    pub(crate) fn plan_retention(&mut self, now: Now, clock_ms: i64, stats: &LogStats) -> Option<Offset> {
        let bounds = FetchBounds {
            start: self.decided_start,
            high_watermark: self.high_watermark,
        };
        retention::plan(
            &self.settings,
            bounds,
            now.mono_ms,
            clock_ms,
            &mut self.sightings,
            stats,
        )
    }

    pub(crate) fn put(&self, e: &mut Encoder) {
        e.uvar(u64::from(self.id.0));
        e.id(&self.topic.0);
        e.ivar(i64::from(self.partition));
        // By the time the snapshot is used, the deletions in it are durable.
        e.ivar(self.decided_start);
        e.ivar(self.next_offset);
        e.ivar(i64::from(self.leader_epoch));
        self.producers.put(e);
    }

    /// Reads a log of a snapshot of this format version.
    pub(crate) fn get(
        d: &mut Decoder<'_>,
        settings: TopicSettings,
        version: u64,
    ) -> Result<Self, CodecError> {
        let mut log = Self::new(LogId(d.uvar32()?), TopicId(d.id()?), d.ivar32()?, settings);
        log.start = d.ivar()?;
        log.next_offset = d.ivar()?;
        if log.start < 0 || log.next_offset < log.start || log.next_offset > OFFSET_MAX {
            return Err(d.invalid("the bounds of a log contradict each other"));
        }
        log.decided_start = log.start;
        log.high_watermark = log.next_offset;
        log.leader_epoch = d.ivar32()?;
        log.producers = Producers::get(d, version)?;
        Ok(log)
    }
}

#[cfg(test)]
#[path = "log_test.rs"]
mod tests;
