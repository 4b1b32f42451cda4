//! Model clients: they obey the rules of the real libraries, and tell the oracles what they do and learn.

pub mod admin;
pub mod idempotent;
pub mod member;
pub mod outsider;
pub mod producer;

use anabranch_wire::ErrorCode;

use crate::message::{Answer, Request};
use crate::net::{CallId, Line};
use crate::run::Ctx;
use crate::world::Event;

/// What all clients can do.
pub trait Client {
    /// Begins, or begins again after a death.
    fn start(&mut self, ctx: &mut Ctx<'_>);
    /// A timer of this life has run out.
    fn wake(&mut self, ctx: &mut Ctx<'_>, what: u32);
    /// An answer is here; `None` if it was lost with its connection.
    fn answer(&mut self, ctx: &mut Ctx<'_>, line: Line, call: CallId, answer: Option<Answer>);
    /// Faults have healed: no new work, but what was begun is finished.
    fn settle(&mut self, ctx: &mut Ctx<'_>);
    /// Dies at once: all that it had in memory is gone.
    fn die(&mut self, ctx: &mut Ctx<'_>);
    /// Ends in good order, if it knows such a thing, to begin again later.
    fn leave(&mut self, _ctx: &mut Ctx<'_>) {}
    /// Where it sits.
    fn seat(&self) -> &Seat;
    /// Its group, while it is a member.
    fn group(&self) -> Option<&str> {
        None
    }
}

/// A client's place in the run.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Its number.
    pub index: usize,
    /// Counts its lives: timers of an earlier one are void.
    pub life: u64,
    /// Its clocks.
    pub clock: Clock,
}

/// A client's clocks, as far as they are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// How much of the time that passes they show, in percent: timers run out early on a fast one.
    pub percent: u64,
    /// How far the wall clock is ahead, milliseconds.
    pub ahead_ms: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            percent: 100,
            ahead_ms: 0,
        }
    }
}

impl Seat {
    /// The seat of a client.
    pub fn new(index: usize) -> Self {
        Self::with_clock(index, Clock::default())
    }

    /// The seat of a client whose clocks are wrong.
    pub fn with_clock(index: usize, clock: Clock) -> Self {
        Self {
            index,
            life: 0,
            clock,
        }
    }

    /// What its wall clock shows, milliseconds.
    pub fn wall_ms(&self, ctx: &Ctx<'_>) -> i64 {
        ctx.world.now().wall_ms + self.clock.ahead_ms
    }

    /// Sends a request.
    pub fn send(&self, ctx: &mut Ctx<'_>, line: Line, request: Request) -> CallId {
        ctx.net.send(ctx.world, (self.index, line), request)
    }

    /// Sets a timer.
    pub fn wake_in(&self, ctx: &mut Ctx<'_>, ms: u64, what: u32) {
        self.wake_in_us(ctx, ms * 100_000 / self.clock.percent.max(1), what);
    }

    /// Sets a timer, by the microsecond of true time.
    pub fn wake_in_us(&self, ctx: &mut Ctx<'_>, us: u64, what: u32) {
        ctx.world.after_us(us, Event::Wake(self.index, self.life, what));
    }

    /// Begins another life: connections break, timers are void.
    pub fn reborn(&mut self, ctx: &mut Ctx<'_>) {
        self.life += 1;
        for line in [Line::Data, Line::Group] {
            ctx.cut((self.index, line));
        }
    }
}

/// Whether a client sends a produce again after this.
pub fn is_passing(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::KafkaStorageError | ErrorCode::NotLeaderOrFollower | ErrorCode::OutOfOrderSequenceNumber
    )
}
