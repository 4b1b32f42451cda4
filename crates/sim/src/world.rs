//! Time, chance, and what happens next: the parts of a run that everybody shares.
//!
//! Time is virtual. It stands still while an event is handled and jumps to the next event after that, so an hour of
//! waiting costs nothing. Two clocks are derived from it, as in a computer: the monotonic one, and the wall clock, which
//! a fault may set. Events of one instant happen in the order in which they were scheduled.

use std::collections::BTreeMap;
use std::fmt;

use anabranch_core::ids::Now;

use crate::message::{Answer, Request};
use crate::net::{CallId, Lane};
use crate::rng::Rng;

/// Wall clock at the start of every run: some day in 2023.
const WALL_START_MS: i64 = 1_700_000_000_000;
/// Monotonic clock at the start of every run: not 0, as a computer has been up for a while.
const MONO_START_MS: u64 = 1_000_000;

/// Something that will happen.
#[derive(Debug)]
pub enum Event {
    /// A request reaches the broker.
    Arrive(Lane, CallId, Box<Request>),
    /// An answer reaches its client; `None` if the connection broke before.
    Answer(Lane, CallId, Option<Box<Answer>>),
    /// A timer of a client: the client's number, the life that set it, and what for.
    Wake(usize, u64, u32),
    /// Work of the broker's own, with the life of the process that asked for it.
    Broker(u64, Chore),
    /// The broker is started after a crash.
    Start,
    /// The fault driver has its turn.
    Fault,
}

/// What the broker does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// One step of the committer.
    Commit,
    /// Deadlines of the groups.
    Groups,
    /// A parked fetch has waited long enough.
    Fetches,
    /// Takes a snapshot, or writes the one that was taken.
    Snapshot,
    /// Frees and packs segments.
    Maintain,
    /// Retention of logs, expiry of offsets.
    Retention,
    /// The planner of elastic groups.
    Plan,
    /// The queue counts of topics.
    Queues,
}

/// The shared part of a run.
#[derive(Debug)]
pub struct World {
    /// Chance.
    pub rng: Rng,
    /// Microseconds since the start.
    now_us: u64,
    /// How far the wall clock was set off.
    wall_skew_ms: i64,
    queue: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    step: u64,
    /// A hash of when events came, and of the draws before them.
    course: u64,
    trace: Trace,
}

/// What is kept of what happens, as text. A run that nobody asks about is told to nobody: a run is its seed, and can be told
/// later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// No text.
    Nothing,
    /// A hash of it, to compare two runs.
    Hash,
    /// All of it.
    Whole,
}

/// What happened.
#[derive(Debug)]
struct Trace {
    keep: Keep,
    hash: u64,
    whole: String,
}

impl World {
    /// A world at its start.
    pub fn new(seed: u64, keep: Keep) -> Self {
        Self {
            rng: Rng::new(seed),
            now_us: 0,
            wall_skew_ms: 0,
            queue: BTreeMap::new(),
            scheduled: 0,
            step: 0,
            course: 0,
            trace: Trace {
                keep,
                hash: 0xcbf2_9ce4_8422_2325,
                whole: String::new(),
            },
        }
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        let ms = self.now_us / 1000;
        Now {
            mono_ms: MONO_START_MS + ms,
            wall_ms: WALL_START_MS
                .saturating_add_unsigned(ms)
                .saturating_add(self.wall_skew_ms),
        }
    }

    /// Milliseconds since the start.
    pub fn elapsed_ms(&self) -> u64 {
        self.now_us / 1000
    }

    /// Microseconds since the start.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// How many events have happened: the time by which oracles order what they were told.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Sets the wall clock forwards or backwards.
    pub fn jump_wall(&mut self, by_ms: i64) {
        self.wall_skew_ms = self.wall_skew_ms.saturating_add(by_ms);
    }

    /// How far the wall clock is off.
    pub fn wall_skew_ms(&self) -> i64 {
        self.wall_skew_ms
    }

    /// Lets something happen after a while.
    pub fn after_us(&mut self, delay_us: u64, event: Event) {
        self.at_us(self.now_us + delay_us, event);
    }

    /// Lets something happen after some milliseconds.
    pub fn after_ms(&mut self, delay_ms: u64, event: Event) {
        self.after_us(delay_ms * 1000, event);
    }

    /// Lets something happen at a moment, or now if that has passed.
    pub fn at_us(&mut self, at_us: u64, event: Event) {
        self.scheduled += 1;
        self.queue.insert((at_us.max(self.now_us), self.scheduled), event);
    }

    /// Lets something happen when the monotonic clock shows this, or now.
    pub fn at_mono_ms(&mut self, mono_ms: u64, event: Event) {
        self.at_us(mono_ms.saturating_sub(MONO_START_MS) * 1000, event);
    }

    /// Lets these requests arrive now, in their order.
    pub fn hasten(&mut self, calls: &[CallId]) {
        let is_one = |event: &Event| matches!(event, Event::Arrive(_, call, _) if calls.contains(call));
        let keys: Vec<_> = self
            .queue
            .iter()
            .filter(|(_, event)| is_one(event))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            if let Some(event) = self.queue.remove(&key) {
                self.at_us(self.now_us, event);
            }
        }
    }

    /// The next event; time moves on to it.
    pub fn advance(&mut self) -> Option<Event> {
        let ((at_us, _), event) = self.queue.pop_first()?;
        self.now_us = at_us;
        self.step += 1;
        self.course =
            (self.course.rotate_left(5) ^ at_us ^ self.rng.state()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Some(event)
    }

    /// Notes a line in the trace, if one is kept.
    pub fn trace(&mut self, line: fmt::Arguments<'_>) {
        if self.trace.keep == Keep::Nothing {
            return;
        }
        let text = format!("{:>7} {:>9.3} {line}\n", self.step, self.now_us as f64 / 1000.0);
        for byte in text.bytes() {
            self.trace.hash = (self.trace.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.trace.keep == Keep::Whole {
            self.trace.whole.push_str(&text);
        }
    }

    /// What is kept of the text.
    pub fn keep(&self) -> Keep {
        self.trace.keep
    }

    /// Hash of all lines, if any were kept.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash
    }

    /// Hash of the course of the run: two programs with the same have had the same events at the same times, and have
    /// drawn the same numbers between them.
    pub fn course(&self) -> u64 {
        self.course
    }

    /// All lines, if they were kept.
    pub fn trace_whole(&self) -> &str {
        &self.trace.whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_then_of_asking() {
        let mut world = World::new(1, Keep::Nothing);
        world.after_ms(5, Event::Start);
        world.after_ms(2, Event::Wake(1, 0, 0));
        world.after_ms(2, Event::Wake(2, 0, 0));
        let mut order = Vec::new();
        while let Some(event) = world.advance() {
            order.push(format!("{} {event:?}", world.elapsed_ms()));
        }
        assert_eq!(order, ["2 Wake(1, 0, 0)", "2 Wake(2, 0, 0)", "5 Start"]);
    }

    #[test]
    fn only_the_wall_clock_jumps() {
        let mut world = World::new(1, Keep::Nothing);
        let before = world.now();
        world.jump_wall(-3_600_000);
        let after = world.now();
        assert_eq!(after.mono_ms, before.mono_ms);
        assert_eq!(after.wall_ms, before.wall_ms - 3_600_000);
    }
}
