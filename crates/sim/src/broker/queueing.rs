//! Topics in queue mode: their counts are looked at as the server's task does, when something has changed, and when a delay
//! is over; a little later than that, as chance has it.

use anabranch_core::ids::Lsn;

use super::Process;
use crate::run::Ctx;
use crate::world::{Chore, Event};

/// How long it takes until a change is looked at, milliseconds.
const LATE_MS_MAX: u64 = 30;

/// Where the task is.
#[derive(Debug, Default)]
pub(super) struct Queueing {
    /// The state that was looked at last.
    seen: Lsn,
    /// When it looks next, monotonic milliseconds, if that is scheduled.
    next_ms: Option<u64>,
}

impl Process {
    /// Changes the counts that are due, and looks again when the next may be.
    pub(super) fn count_queues(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        let now = ctx.world.now();
        if self.queueing.next_ms.is_none_or(|at_ms| at_ms > now.mono_ms) {
            // A wake that was overtaken by a nearer one.
            return;
        }
        self.queueing.next_ms = None;
        let (next_ms, outcome) = self.engine.adjust_queues(now);
        self.pass_on(outcome);
        self.queueing.seen = self.node().state_lsn();
        if let Some(next_ms) = next_ms {
            self.count_at(ctx, life, next_ms.max(now.mono_ms + 1));
        }
    }

    /// If something has changed it is looked at soon.
    pub(super) fn count_later(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        let now_ms = ctx.world.now().mono_ms;
        let is_near = self
            .queueing
            .next_ms
            .is_some_and(|at_ms| at_ms <= now_ms + LATE_MS_MAX);
        if self.node().state_lsn() > self.queueing.seen && !is_near {
            let late_ms = ctx.world.rng.between(0, LATE_MS_MAX);
            self.count_at(ctx, life, now_ms + late_ms);
        }
    }

    fn count_at(&mut self, ctx: &mut Ctx<'_>, life: u64, at_ms: u64) {
        self.queueing.next_ms = Some(at_ms);
        ctx.world.at_mono_ms(at_ms, Event::Broker(life, Chore::Queues));
    }
}
