//! The work: the program takes a batch of what is held, and processes its records one after the other.

use std::collections::BTreeMap;

use super::{Ahead, Member, Part, Phase, TAKE, Then, WORK, Work};
use crate::message::Tp;
use crate::oracle::work::Worker;
use crate::run::Ctx;
use crate::sights::Sight;

/// So many offsets of the past are remembered, to go back to.
const PAST_MAX: usize = 64;

/// How long a record takes at most once faults have healed, microseconds: what was left is to be done in bounded time, by a
/// single member if need be, and how long programs take is no matter of the broker's.
const CALM_WORK_US_MAX: u64 = 5_000;

impl Member {
    pub(super) fn worker(&self) -> Worker<'_> {
        Worker {
            group: &self.habits.group,
            client: self.seat.index,
            member: &self.member_id,
        }
    }

    pub(super) fn part_of(&mut self, work: &Work) -> Option<&mut Part> {
        let part = self.owned.get_mut(&work.tp);
        part.filter(|part| part.serial == work.serial)
    }

    /// Throws work away, but for what is kept; of that, the program takes nothing back that it has not had.
    pub(super) fn drop_work(
        &mut self,
        ctx: &mut Ctx<'_>,
        is_gone: impl Fn(&Work) -> bool,
        is_kept: impl Fn(&Work) -> bool,
    ) {
        if self.in_hand && self.work.front().is_some_and(&is_gone) {
            self.in_hand = false;
            ctx.oracle.work.dropped(self.seat.index);
        }
        let mut taken = 0;
        let mut index = 0;
        let had = self.taken;
        self.work.retain(|work| {
            let stays = !is_gone(work) || is_kept(work);
            taken += usize::from(stays && index < had);
            index += 1;
            stays
        });
        self.taken = taken;
    }

    /// The position of a partition is another one: what is held of it and was not handed to the program is thrown away, as
    /// fetched records are that do not begin at the position.
    pub(super) fn drop_held(&mut self, tp: Tp) {
        let taken = self.taken.max(usize::from(self.in_hand));
        let mut index = 0;
        self.work.retain(|work| {
            index += 1;
            index <= taken || work.tp != tp
        });
    }

    /// The program takes the next batch, if there is one.
    fn take_batch(&mut self, ctx: &mut Ctx<'_>) -> bool {
        self.taken = self.work.len().min(self.habits.batch_max);
        if self.habits.ahead != Ahead::Batch {
            return self.taken > 0;
        }
        let batch: Vec<Work> = self.work.iter().take(self.taken).cloned().collect();
        for work in &batch {
            ctx.oracle.handed(&self.worker(), work.tp, work.offset);
            if let Some(part) = self.part_of(work) {
                part.done = part.done.max(work.next);
            }
        }
        self.taken > 0
    }

    /// Whether the program waits before it takes a batch of what there is. It does so once for each.
    fn lingers(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if self.habits.linger_ms == 0 || self.settled || self.work.is_empty() {
            return false;
        }
        if !self.lingers {
            self.lingers = true;
            self.seat.wake_in(ctx, self.habits.linger_ms, TAKE);
        }
        true
    }

    /// It has waited.
    pub(super) fn take_up(&mut self, ctx: &mut Ctx<'_>) {
        self.lingers = false;
        let is_free = !self.working && !self.waits && self.kept.is_empty();
        if is_free && self.taken == 0 && !self.rests(ctx) {
            self.take_batch(ctx);
        }
        self.poll(ctx);
    }

    /// Takes the next record in hand; those that take no time are done at once.
    pub(super) fn work(&mut self, ctx: &mut Ctx<'_>) {
        // While it joins again, it does nothing with what it keeps.
        while !self.working && !self.waits && self.kept.is_empty() {
            if self.taken == 0 && (self.rests(ctx) || self.lingers(ctx) || !self.take_batch(ctx)) {
                return;
            }
            let Some(work) = self.work.front().cloned() else {
                return;
            };
            ctx.oracle.begins(&self.worker(), work.tp, work.offset);
            self.in_hand = true;
            let runs_ahead = self.habits.ahead == Ahead::Record;
            if let Some(part) = self.part_of(&work) {
                part.past.push_back(work.offset);
                part.past.drain(..part.past.len().saturating_sub(PAST_MAX));
                if runs_ahead {
                    part.done = part.done.max(work.next);
                }
            }
            if self.habits.work_us == 0 {
                self.done(ctx);
                continue;
            }
            self.working = true;
            let mean_us = match self.settled {
                true => self.habits.work_us.min(CALM_WORK_US_MAX),
                false => self.habits.work_us,
            };
            let work_us = ctx.world.rng.between(mean_us / 2, mean_us * 3 / 2);
            self.seat.wake_in_us(ctx, work_us, WORK);
        }
    }

    /// What was in hand is done.
    fn done(&mut self, ctx: &mut Ctx<'_>) {
        self.in_hand = false;
        ctx.oracle.work.dropped(self.seat.index);
        let Some(work) = self.work.pop_front() else { return };
        self.taken = self.taken.saturating_sub(1);
        if self.habits.ahead == Ahead::Never
            && let Some(part) = self.part_of(&work)
        {
            // Behind an end of the partition at which it has begun anew meanwhile, it does not go back.
            part.done = part.done.max(work.next);
        }
        if self.taken == 0 {
            self.worked_off(ctx);
        }
    }

    /// A batch is worked off.
    fn worked_off(&mut self, ctx: &mut Ctx<'_>) {
        if self.habits.manual && !self.giving_up && self.phase == Phase::In {
            self.waits = true;
            self.commit(ctx, None, Then::Poll);
        }
    }

    pub(super) fn worked(&mut self, ctx: &mut Ctx<'_>) {
        self.working = false;
        if self.in_hand {
            self.done(ctx);
        }
        self.poll(ctx);
    }

    /// Notes that the work in hand is covered by a commit that is about to leave.
    pub(super) fn note_ahead(&self, ctx: &mut Ctx<'_>, offsets: &BTreeMap<Tp, i64>) {
        let open = self.work.iter().take(self.taken.max(usize::from(self.in_hand)));
        let is_covered = |work: &Work| offsets.get(&work.tp).is_some_and(|offset| work.offset < *offset);
        let ahead = open.filter(|work| is_covered(work)).count();
        match (ahead, self.habits.ahead) {
            (0, _) | (_, Ahead::Never) => {}
            (_, Ahead::Record) => ctx.saw(Sight::RecordCommittedAhead),
            (_, Ahead::Batch) => ctx.saw(Sight::BatchCommittedAhead),
        }
    }
}
