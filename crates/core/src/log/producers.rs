//! Sequence numbers of idempotent producers, by the rules of Kafka's `ProducerStateManager` and `ProducerAppendInfo`.
//!
//! Of each producer the last five batches are kept: as many as a client has in flight. A batch that is one of them is a
//! retry, and gets its old offset. Otherwise:
//!
//! | producer here | epoch of the batch | first sequence | |
//! |---|---|---|---|
//! | unknown | any | any | accepted (KIP-360: it may have been forgotten) |
//! | known | older | any | INVALID_PRODUCER_EPOCH |
//! | known | same | the one after the last | accepted; after 2^31-1 comes 0 |
//! | known | same | another | OUT_OF_ORDER_SEQUENCE_NUMBER |
//! | known | newer | 0 | accepted, the old batches are forgotten |
//! | known | newer | another | OUT_OF_ORDER_SEQUENCE_NUMBER |
//!
//! "Unknown, any" has a hole: if the *first* batch of a producer is refused (too large, say), the next one in flight
//! would be taken as its first; the client renumbers it after the refusal, and the renumbered retry would be lost as a
//! duplicate. So a refusal of an unknown producer is remembered for a while: only the refused sequence may come next.
//!
//! Who is forgotten first is decided by the order of the last batches, not by a clock, so that a replay of the same
//! batches forgets the same producers. Idle time is counted on the monotonic clock and starts anew after a restart.
//!
//! A client counts its sequence numbers for the partition that it addresses. In queue mode ([`crate::queues`]) the batch may
//! be stored in another one; its sequence numbers are kept here, where it was addressed, and it is marked.

use super::BatchFacts;
use crate::codec::{CodecError, Decoder, Encoder};
use crate::ids::Offset;
use crate::limits;
use anabranch_wire::ErrorCode;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a batch of an idempotent producer was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SequenceError {
    /// A batch before it is missing, or it is an old one that is no longer kept.
    #[error("producer {producer_id} sent sequence {found}, expected was {expected}")]
    OutOfOrder {
        /// The producer.
        producer_id: i64,
        /// The sequence number that would have been accepted.
        expected: i32,
        /// The first sequence number of the batch.
        found: i32,
    },
    /// A newer instance of the producer has written already.
    #[error("producer {producer_id} sent epoch {found}, the current one is {current}")]
    OldEpoch {
        /// The producer.
        producer_id: i64,
        /// The epoch of its last accepted batch.
        current: i16,
        /// The epoch of the batch.
        found: i16,
    },
}

impl SequenceError {
    /// The Kafka error code to answer with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::OutOfOrder { .. } => ErrorCode::OutOfOrderSequenceNumber,
            Self::OldEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        }
    }
}

/// A producer, as DescribeProducers shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerView {
    /// Producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Sequence number of its last record.
    pub last_sequence: i32,
    /// Largest timestamp of its last batch, in milliseconds.
    pub last_timestamp: i64,
    /// Offset of its last record, in whatever partition it is stored.
    pub last_offset: Offset,
}

/// A batch that is recognised when it comes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    first_sequence: i32,
    last_sequence: i32,
    pub(super) base_offset: Offset,
    last_offset: Offset,
    pub(super) timestamp: i64,
    /// It is stored in another partition than the one it was addressed to.
    pub(super) is_elsewhere: bool,
}

/// Where a batch was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) base_offset: Offset,
    pub(super) last_offset: Offset,
    pub(super) timestamp: i64,
    pub(super) is_elsewhere: bool,
}

impl Place {
    /// The same, to be remembered by another log than the one in which it is.
    pub(crate) fn elsewhere(self) -> Self {
        Self {
            is_elsewhere: true,
            ..self
        }
    }
}

/// The verdict on an acceptable batch.
pub(super) enum Sequenced {
    /// It may be appended.
    New,
    /// It has been appended before.
    Duplicate(Kept),
}

const KEPT_MAX: usize = limits::PRODUCER_BATCHES_KEPT;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Producer {
    epoch: i16,
    /// How many of `kept` are in use; at least one.
    count: usize,
    /// The last batches, oldest first.
    kept: [Kept; KEPT_MAX],
    /// Monotonic time of the last batch; 0 if it came from before the start.
    seen_ms: u64,
    /// Place of the last batch in the order of all.
    turn: u64,
}

impl Producer {
    fn new(epoch: i16) -> Self {
        Self {
            epoch,
            count: 0,
            kept: Default::default(),
            seen_ms: 0,
            turn: 0,
        }
    }

    fn batches(&self) -> &[Kept] {
        self.kept.get(..self.count).unwrap_or(&self.kept)
    }

    fn last(&self) -> Kept {
        self.batches().last().copied().unwrap_or_default()
    }

    fn push(&mut self, batch: Kept) {
        if self.count == KEPT_MAX {
            self.kept.rotate_left(1);
            self.count -= 1;
        }
        if let Some(slot) = self.kept.get_mut(self.count) {
            *slot = batch;
            self.count += 1;
        }
    }
}

/// The first batch of an unknown producer was refused: that sequence must come next.
#[derive(Clone, Copy, Debug)]
struct RefusedFirst {
    epoch: i16,
    sequence: i32,
    at_ms: u64,
}

/// The producers of one log.
#[derive(Clone, Debug, Default)]
pub(super) struct Producers {
    by_id: BTreeMap<i64, Producer>,
    /// Turn of the last batch -> producer: the longest idle comes first.
    by_turn: BTreeMap<u64, i64>,
    next_turn: u64,
    /// Volatile.
    refused: BTreeMap<i64, RefusedFirst>,
}

impl Producers {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn view(&self) -> Vec<ProducerView> {
        let view = |(id, producer): (&i64, &Producer)| {
            let last = producer.last();
            ProducerView {
                producer_id: *id,
                epoch: producer.epoch,
                last_sequence: last.last_sequence,
                last_timestamp: last.timestamp,
                last_offset: last.last_offset,
            }
        };
        self.by_id.iter().map(view).collect()
    }

    /// Applies the table of the module. Changes nothing.
    pub(super) fn check(&self, mono_ms: u64, batch: &BatchFacts) -> Result<Sequenced, SequenceError> {
        let (producer_id, found) = (batch.producer_id, batch.base_sequence);
        if producer_id < 0 {
            return Ok(Sequenced::New);
        }
        let out_of_order = |expected| {
            Err(SequenceError::OutOfOrder {
                producer_id,
                expected,
                found,
            })
        };
        let Some(producer) = self.by_id.get(&producer_id) else {
            return match self.awaited(mono_ms, batch) {
                Some(expected) if expected != found => out_of_order(expected),
                _ => Ok(Sequenced::New),
            };
        };
        if batch.producer_epoch < producer.epoch {
            let (current, found) = (producer.epoch, batch.producer_epoch);
            return Err(SequenceError::OldEpoch {
                producer_id,
                current,
                found,
            });
        }
        if batch.producer_epoch > producer.epoch {
            return if found == 0 {
                Ok(Sequenced::New)
            } else {
                out_of_order(0)
            };
        }
        let last_sequence = last_sequence(batch);
        let same = |kept: &&Kept| kept.first_sequence == found && kept.last_sequence == last_sequence;
        if let Some(kept) = producer.batches().iter().find(same) {
            return Ok(Sequenced::Duplicate(*kept));
        }
        let expected = add_wrapping(producer.last().last_sequence, 1);
        if found == expected {
            Ok(Sequenced::New)
        } else {
            out_of_order(expected)
        }
    }

    fn awaited(&self, mono_ms: u64, batch: &BatchFacts) -> Option<i32> {
        let refused = self.refused.get(&batch.producer_id)?;
        let fresh = mono_ms.saturating_sub(refused.at_ms) < limits::REFUSED_PRODUCER_MS;
        (fresh && refused.epoch == batch.producer_epoch).then_some(refused.sequence)
    }

    /// The batch was refused for another reason than its sequence; nothing to do if the producer is known, since then
    /// its next sequence stays the expected one.
    pub(super) fn note_refused(&mut self, mono_ms: u64, batch: &BatchFacts) {
        if batch.producer_id < 0 || self.by_id.contains_key(&batch.producer_id) {
            return;
        }
        if self
            .awaited(mono_ms, batch)
            .is_some_and(|sequence| sequence != batch.base_sequence)
        {
            return;
        }
        let first = RefusedFirst {
            epoch: batch.producer_epoch,
            sequence: batch.base_sequence,
            at_ms: mono_ms,
        };
        self.refused.insert(batch.producer_id, first);
        if self.refused.len() > limits::REFUSED_PRODUCERS_PER_LOG_MAX {
            let oldest = self
                .refused
                .iter()
                .min_by_key(|(_, refused)| refused.at_ms)
                .map(|(id, _)| *id);
            oldest.and_then(|id| self.refused.remove(&id));
        }
    }

    /// Remembers an accepted batch.
    pub(super) fn accept(&mut self, mono_ms: u64, batch: &BatchFacts, place: Place) {
        let kept = Kept {
            first_sequence: batch.base_sequence,
            last_sequence: last_sequence(batch),
            base_offset: place.base_offset,
            last_offset: place.last_offset,
            timestamp: place.timestamp,
            is_elsewhere: place.is_elsewhere,
        };
        self.refused.remove(&batch.producer_id);
        let turn = self.next_turn;
        self.next_turn += 1;
        let fresh = || Producer::new(batch.producer_epoch);
        let producer = self.by_id.entry(batch.producer_id).or_insert_with(fresh);
        if producer.count > 0 {
            self.by_turn.remove(&producer.turn);
        }
        if producer.epoch != batch.producer_epoch {
            producer.epoch = batch.producer_epoch;
            producer.count = 0;
        }
        producer.seen_ms = mono_ms;
        producer.turn = turn;
        producer.push(kept);
        self.by_turn.insert(turn, batch.producer_id);
    }

    /// Forgets the longest idle producers until at most `max` are left.
    pub(super) fn shrink_to(&mut self, max: usize) {
        while self.by_id.len() > max {
            let Some((_, id)) = self.by_turn.pop_first() else {
                return;
            };
            self.by_id.remove(&id);
        }
    }

    /// Forgets producers that were idle for `expiration_ms`.
    pub(super) fn expire(&mut self, now_ms: u64, started_ms: u64, expiration_ms: u64) {
        while let Some(first) = self.by_turn.first_entry() {
            let seen_ms = self
                .by_id
                .get(first.get())
                .map_or(0, |producer| producer.seen_ms.max(started_ms));
            if now_ms.saturating_sub(seen_ms) < expiration_ms {
                break;
            }
            let id = first.remove();
            self.by_id.remove(&id);
        }
        self.refused
            .retain(|_, refused| now_ms.saturating_sub(refused.at_ms) < limits::REFUSED_PRODUCER_MS);
    }

    /// The producers in the order of their last batches.
    pub(super) fn put(&self, e: &mut Encoder) {
        e.list(&self.by_turn, |e, (_, id)| {
            let producer = self.by_id.get(id);
            e.ivar(*id);
            e.ivar(producer.map_or(0, |producer| i64::from(producer.epoch)));
            e.list(producer.map_or(&[][..], Producer::batches), |e, kept| {
                e.ivar(i64::from(kept.first_sequence));
                e.ivar(i64::from(kept.last_sequence));
                e.ivar(kept.base_offset);
                e.ivar(kept.last_offset - kept.base_offset);
                e.ivar(kept.timestamp);
                e.bool(kept.is_elsewhere);
            });
        });
    }

    /// Reads them back. The first version of the format has them in the order of their ids; then the order of their last
    /// batches is that of the offsets, since no batch was stored elsewhere.
    pub(super) fn get(d: &mut Decoder<'_>, version: u64) -> Result<Self, CodecError> {
        let mut found = d.list(|d| {
            let (id, epoch) = (d.ivar()?, d.ivar16()?);
            let batches = d.list(|d| get_kept(d, version))?;
            if batches.is_empty() || batches.len() > KEPT_MAX {
                return Err(d.invalid("a producer has no batch, or more than are kept"));
            }
            let mut producer = Producer::new(epoch);
            batches.iter().for_each(|kept| producer.push(*kept));
            Ok((id, producer))
        })?;
        if version == 1 {
            found.sort_by_key(|(_, producer)| producer.last().last_offset);
        }
        let mut producers = Self::default();
        for (id, mut producer) in found {
            if producers.by_id.contains_key(&id) {
                return Err(d.invalid("a producer comes twice"));
            }
            producer.turn = producers.next_turn;
            producers.next_turn += 1;
            producers.by_turn.insert(producer.turn, id);
            producers.by_id.insert(id, producer);
        }
        Ok(producers)
    }
}

fn get_kept(d: &mut Decoder<'_>, version: u64) -> Result<Kept, CodecError> {
    let (first_sequence, last_sequence) = (d.ivar32()?, d.ivar32()?);
    let (base_offset, delta, timestamp) = (d.ivar()?, d.ivar()?, d.ivar()?);
    let last_offset = base_offset
        .checked_add(delta)
        .filter(|last| *last >= base_offset && base_offset >= 0);
    let last_offset = last_offset.ok_or_else(|| d.invalid("the offsets of a kept batch are not valid"))?;
    Ok(Kept {
        first_sequence,
        last_sequence,
        base_offset,
        last_offset,
        timestamp,
        is_elsewhere: version > 1 && d.bool()?,
    })
}

fn last_sequence(batch: &BatchFacts) -> i32 {
    add_wrapping(batch.base_sequence, batch.last_offset_delta)
}

/// Sequence numbers run from 0 to 2^31-1 and start again at 0.
fn add_wrapping(sequence: i32, more: i32) -> i32 {
    ((i64::from(sequence) + i64::from(more)) & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
#[path = "producers_test.rs"]
mod tests;
