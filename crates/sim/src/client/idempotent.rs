//! An idempotent producer, by the rules of librdkafka and the Java client: up to five batches in flight, each with its
//! sequence number; what was not acknowledged is sent again, in order, under the same numbers; after a final refusal
//! the epoch grows and numbers begin anew.
//!
//! It names the topic by its id. When the topic is gone it starts over, with a new producer id.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::ids::TopicId;
use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::{Client, Seat, is_passing};
use crate::message::{Answer, Place, Request};
use crate::net::{CallId, Line};
use crate::oracle::{Intent, Violation, idempotence};
use crate::record::{self, RecordId};
use crate::run::Ctx;
use crate::sights::Sight;

const LEARN: u32 = 0;
const NEXT: u32 = 1;
const AGAIN: u32 = 2;

/// Batches in flight on a connection.
const IN_FLIGHT_MAX: usize = 5;
/// How far ahead of the clock a timestamp is that no broker takes, milliseconds.
const FAR_AHEAD_MS: i64 = 3 * 3_600_000;

#[derive(Debug)]
struct Batch {
    ids: Vec<RecordId>,
    bytes: Bytes,
    call: Option<CallId>,
    in_doubt: bool,
}

#[derive(Debug, Default)]
struct Partition {
    next_sequence: i32,
    next_ordinal: u64,
    queue: VecDeque<Batch>,
    /// Something came back: nothing new is sent until all of the queue has been sent again.
    stuck: bool,
}

impl Partition {
    /// Whether all of the queue is to be sent again, and nothing of it is under way.
    fn is_idle(&self) -> bool {
        self.stuck && self.queue.iter().all(|batch| batch.call.is_none())
    }
}

/// The producer.
#[derive(Debug)]
pub struct Idempotent {
    seat: Seat,
    topic: String,
    id: Option<TopicId>,
    count: i32,
    producer: Option<(i64, i16)>,
    session: u64,
    partitions: BTreeMap<i32, Partition>,
    /// A call that is no produce.
    call: Option<CallId>,
    pause_ms: u64,
    /// A final refusal has come: once nothing is in flight, the epoch grows.
    ending: bool,
    settled: bool,
}

impl Idempotent {
    /// A producer to one topic.
    pub fn new(seat: Seat, topic: &str, pause_ms: u64) -> Self {
        Self {
            seat,
            topic: topic.to_owned(),
            id: None,
            count: 0,
            producer: None,
            session: 0,
            partitions: BTreeMap::new(),
            call: None,
            pause_ms,
            ending: false,
            settled: false,
        }
    }

    fn in_flight(&self) -> usize {
        self.partitions
            .values()
            .flat_map(|partition| &partition.queue)
            .filter(|batch| batch.call.is_some())
            .count()
    }

    fn next(&mut self, ctx: &mut Ctx<'_>) {
        let pause_ms = ctx.world.rng.between(0, self.pause_ms);
        self.seat.wake_in(ctx, pause_ms, NEXT);
        let (Some(id), Some((producer, epoch))) = (self.id, self.producer) else {
            return;
        };
        if self.settled || self.ending || self.in_flight() >= IN_FLIGHT_MAX {
            return;
        }
        let number = ctx.world.rng.below(u64::try_from(self.count).unwrap_or(1)) as i32;
        let partition = self.partitions.entry(number).or_default();
        if partition.stuck || partition.queue.len() >= IN_FLIGHT_MAX {
            return;
        }
        let count = ctx.world.rng.between(1, 4);
        let intent = Intent {
            session: self.session,
            idempotent: true,
            topic: &self.topic,
            clock_ahead_ms: self.seat.clock.ahead_ms,
            id: Some(id),
            partition: number,
            ordinal: partition.next_ordinal,
        };
        let ids = ctx.oracle.sending(ctx.world, &intent, count);
        let mut timestamp_ms = self.seat.wall_ms(ctx);
        if ctx.world.rng.below(150) == 0 {
            timestamp_ms += FAR_AHEAD_MS;
        }
        let bytes = record::batch(
            &ids,
            timestamp_ms,
            Some((producer, epoch, partition.next_sequence)),
        );
        ctx.oracle.batches.sent(&bytes, &ids);
        partition.next_sequence += count as i32;
        partition.next_ordinal += count;
        partition.queue.push_back(Batch {
            ids,
            bytes,
            call: None,
            in_doubt: false,
        });
        self.send_all(ctx, number);
    }

    /// Sends what is in the queue of a partition and not in flight.
    fn send_all(&mut self, ctx: &mut Ctx<'_>, number: i32) {
        let Some(id) = self.id else { return };
        let Some(partition) = self.partitions.get_mut(&number) else {
            return;
        };
        partition.stuck = false;
        for batch in partition.queue.iter_mut().filter(|batch| batch.call.is_none()) {
            let request = Request::Produce {
                place: Place::Id(id),
                partition: number,
                batch: batch.bytes.clone(),
            };
            batch.call = Some(self.seat.send(ctx, Line::Data, request));
        }
    }

    fn produced(&mut self, ctx: &mut Ctx<'_>, number: i32, at: usize, answer: Option<&Answer>) {
        let Some(partition) = self.partitions.get_mut(&number) else {
            return;
        };
        let Some(batch) = partition.queue.get_mut(at) else {
            return;
        };
        batch.call = None;
        match answer {
            Some(Answer::Produced {
                topic, base_offset, ..
            }) => {
                let ids = std::mem::take(&mut batch.ids);
                partition.queue.remove(at);
                ctx.oracle.acked(ctx.world, (*topic, number), *base_offset, &ids);
            }
            None => {
                batch.in_doubt = true;
                partition.stuck = true;
            }
            Some(Answer::Refused(error)) if is_passing(*error) => {
                partition.stuck = true;
                if *error == ErrorCode::OutOfOrderSequenceNumber && at == 0 && !self.ending {
                    let detail = format!(
                        "producer {:?} sent the batch that is next for partition {number} and was told {error:?}",
                        self.producer
                    );
                    ctx.oracle
                        .judge(Err(Violation::new(idempotence::SENTENCE, detail)));
                }
            }
            Some(Answer::Refused(ErrorCode::UnknownTopicId | ErrorCode::UnknownTopicOrPartition)) => {
                self.id = None;
                self.ending = true;
            }
            _ => {
                ctx.saw(Sight::RefusedForEver);
                if !batch.in_doubt {
                    ctx.oracle.failed(&batch.ids);
                }
                self.ending = true;
            }
        }
    }

    /// After a batch has come back: what now.
    fn go_on(&mut self, ctx: &mut Ctx<'_>) {
        if self.ending {
            if self.in_flight() == 0 {
                self.begin_anew(ctx);
            }
            return;
        }
        if self.partitions.values().any(Partition::is_idle) {
            let pause_ms = ctx.world.rng.between(20, 200);
            self.seat.wake_in(ctx, pause_ms, AGAIN);
        }
    }

    fn begin_anew(&mut self, ctx: &mut Ctx<'_>) {
        self.ending = false;
        self.partitions.clear();
        self.session = ctx.oracle.ledger.session();
        match (&mut self.producer, self.id) {
            (Some((_, epoch)), Some(_)) => *epoch += 1,
            _ => {
                self.producer = None;
                self.learn(ctx);
            }
        }
    }

    fn learn(&mut self, ctx: &mut Ctx<'_>) {
        let request = if self.id.is_none() {
            Request::Metadata
        } else {
            Request::InitProducerId
        };
        self.call = Some(self.seat.send(ctx, Line::Data, request));
    }
}

impl Client for Idempotent {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.session = ctx.oracle.ledger.session();
        self.seat.wake_in(ctx, 1, LEARN);
        self.seat.wake_in(ctx, 1, NEXT);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, what: u32) {
        match what {
            LEARN => self.learn(ctx),
            NEXT => self.next(ctx),
            _ => {
                let idle = self
                    .partitions
                    .iter()
                    .filter(|(_, partition)| partition.is_idle());
                let idle: Vec<i32> = idle.map(|(number, _)| *number).filter(|_| !self.ending).collect();
                for number in idle {
                    self.send_all(ctx, number);
                }
            }
        }
    }

    fn answer(&mut self, ctx: &mut Ctx<'_>, _line: Line, call: CallId, answer: Option<Answer>) {
        if self.call == Some(call) {
            self.call = None;
            match answer {
                Some(Answer::Metadata(topics)) => {
                    let topic = topics.iter().find(|topic| topic.name == self.topic);
                    self.id = topic.map(|topic| topic.id);
                    self.count = topic.map_or(0, |topic| topic.partitions);
                    let pause_ms = if self.id.is_some() { 1 } else { 500 };
                    self.seat.wake_in(ctx, pause_ms, LEARN);
                }
                Some(Answer::InitProducerId { id, epoch }) => {
                    let verdict = ctx.oracle.producer_ids.given(id);
                    ctx.oracle.judge(verdict);
                    self.producer = Some((id, epoch));
                }
                _ => self.seat.wake_in(ctx, 200, LEARN),
            }
            return;
        }
        let place = self.partitions.iter().find_map(|(number, partition)| {
            let at = partition
                .queue
                .iter()
                .position(|batch| batch.call == Some(call))?;
            Some((*number, at))
        });
        if let Some((number, at)) = place {
            self.produced(ctx, number, at, answer.as_ref());
            self.go_on(ctx);
        }
    }

    fn settle(&mut self, _ctx: &mut Ctx<'_>) {
        self.settled = true;
    }

    fn die(&mut self, ctx: &mut Ctx<'_>) {
        self.seat.reborn(ctx);
        *self = Self {
            settled: self.settled,
            ..Self::new(self.seat.clone(), &self.topic, self.pause_ms)
        };
        self.start(ctx);
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }
}
