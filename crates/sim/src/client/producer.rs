//! A plain producer: one request in flight, acks = all, sends again whatever it does not know the end of. So records
//! may be there twice, but what was acknowledged is there, and later ones come later.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Client, Seat, is_passing};
use crate::message::{Answer, Place, Request};
use crate::net::{CallId, Line};
use crate::oracle::Intent;
use crate::record::{self, RecordId};
use crate::run::Ctx;
use crate::sights::Sight;

const LEARN: u32 = 0;
const NEXT: u32 = 1;
const AGAIN: u32 = 2;

/// A client gives a batch up after so many attempts.
const ATTEMPTS_MAX: u32 = 40;

#[derive(Debug)]
struct Attempt {
    ids: Vec<RecordId>,
    batch: Bytes,
    partition: i32,
    attempts: u32,
    /// Whether the end of an attempt is unknown.
    in_doubt: bool,
}

/// The producer.
#[derive(Debug)]
pub struct Producer {
    seat: Seat,
    topic: String,
    partitions: i32,
    session: u64,
    ordinals: BTreeMap<i32, u64>,
    attempt: Option<Attempt>,
    call: Option<CallId>,
    /// Longest pause between two batches, milliseconds.
    pause_ms: u64,
    settled: bool,
}

impl Producer {
    /// A producer to one topic.
    pub fn new(seat: Seat, topic: &str, pause_ms: u64) -> Self {
        Self {
            seat,
            topic: topic.to_owned(),
            partitions: 0,
            session: 0,
            ordinals: BTreeMap::new(),
            attempt: None,
            call: None,
            pause_ms,
            settled: false,
        }
    }

    fn next(&mut self, ctx: &mut Ctx<'_>) {
        if self.settled || self.attempt.is_some() {
            return;
        }
        let partition = ctx.world.rng.below(u64::try_from(self.partitions).unwrap_or(1)) as i32;
        let ordinal = self.ordinals.entry(partition).or_default();
        let count = ctx.world.rng.between(1, 4);
        let intent = Intent {
            session: self.session,
            idempotent: false,
            topic: &self.topic,
            clock_ahead_ms: self.seat.clock.ahead_ms,
            id: None,
            partition,
            ordinal: *ordinal,
        };
        *ordinal += count;
        let ids = ctx.oracle.sending(ctx.world, &intent, count);
        let batch = record::batch(&ids, self.seat.wall_ms(ctx), None);
        ctx.oracle.batches.sent(&batch, &ids);
        self.attempt = Some(Attempt {
            ids,
            batch,
            partition,
            attempts: 0,
            in_doubt: false,
        });
        self.attempt(ctx);
    }

    fn attempt(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(attempt) = &mut self.attempt {
            attempt.attempts += 1;
            let place = Place::Name(self.topic.clone());
            let request = Request::Produce {
                place,
                partition: attempt.partition,
                batch: attempt.batch.clone(),
            };
            self.call = Some(self.seat.send(ctx, Line::Data, request));
        }
    }

    fn refused(&mut self, ctx: &mut Ctx<'_>, passing: bool, in_doubt: bool) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.in_doubt |= in_doubt;
        if passing && attempt.attempts < ATTEMPTS_MAX {
            let pause_ms = ctx.world.rng.between(20, 300);
            return self.seat.wake_in(ctx, pause_ms, AGAIN);
        }
        if let Some(attempt) = self.attempt.take().filter(|attempt| !attempt.in_doubt) {
            ctx.oracle.failed(&attempt.ids);
        }
        self.seat.wake_in(ctx, 100, LEARN);
    }
}

impl Client for Producer {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if self.seat.clock.ahead_ms != 0 {
            ctx.saw(Sight::ProducerClockWrong);
        }
        self.session = ctx.oracle.ledger.session();
        self.seat.wake_in(ctx, 1, LEARN);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, what: u32) {
        match what {
            LEARN => self.call = Some(self.seat.send(ctx, Line::Data, Request::Metadata)),
            NEXT => self.next(ctx),
            _ => self.attempt(ctx),
        }
    }

    fn answer(&mut self, ctx: &mut Ctx<'_>, _line: Line, call: CallId, answer: Option<Answer>) {
        if self.call != Some(call) {
            return;
        }
        self.call = None;
        match answer {
            Some(Answer::Metadata(topics)) => match topics.iter().find(|topic| topic.name == self.topic) {
                Some(topic) => {
                    self.partitions = topic.partitions;
                    self.seat.wake_in(ctx, 1, NEXT);
                }
                None => self.seat.wake_in(ctx, 500, LEARN),
            },
            Some(Answer::Produced {
                topic, base_offset, ..
            }) => {
                if let Some(attempt) = self.attempt.take() {
                    ctx.oracle
                        .acked(ctx.world, (topic, attempt.partition), base_offset, &attempt.ids);
                }
                let pause_ms = ctx.world.rng.between(0, self.pause_ms);
                let what = if ctx.world.rng.percent(5) { LEARN } else { NEXT };
                self.seat.wake_in(ctx, pause_ms, what);
            }
            Some(Answer::Refused(error)) if self.attempt.is_some() => {
                self.refused(ctx, is_passing(error), false);
            }
            None if self.attempt.is_some() => self.refused(ctx, true, true),
            _ => self.seat.wake_in(ctx, 200, LEARN),
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
