//! What members do now and then: seeks, rests, silence, requests sent twice. None of it once faults have healed.

use std::collections::BTreeMap;

use super::{Call, JOIN, Member, Phase, Then, Whim, Why};
use crate::message::{Request, Tp};
use crate::oracle::slice_of;
use crate::run::Ctx;
use crate::sights::Sight;

/// How many requests of a hundred are sent twice by those who do so.
const DOUBLE_PERCENT: u64 = 4;
/// How long silence lasts, at least and at most: longer than a session, milliseconds.
const DEAF_MS: (u64, u64) = (5_500, 12_000);
/// How long a rest lasts, milliseconds.
const REST_MS: (u64, u64) = (1_000, 9_000);
/// How many of a hundred steps back go as far as possible.
const FAR_PERCENT: u64 = 50;
/// So far ahead members seek, at most.
const AHEAD_MAX: u64 = 6;

/// How long it has no subscription, at least and at most, milliseconds.
const AWAY_MS: (u64, u64) = (1, 60);

impl Member {
    /// Whether its heartbeats have stopped.
    pub(super) fn is_deaf(&self, ctx: &Ctx<'_>) -> bool {
        ctx.world.elapsed_ms() < self.deaf_until_ms && !self.settled
    }

    /// Whether it reads nothing at present.
    pub(super) fn rests(&self, ctx: &Ctx<'_>) -> bool {
        ctx.world.elapsed_ms() < self.rests_until_ms && !self.settled
    }

    /// It acts on what it had as a member, and has been expelled meanwhile.
    pub(super) fn see_zombie(&self, ctx: &mut Ctx<'_>, sight: Sight) {
        let is_member = ctx.oracle.replay.is_member(&self.habits.group, &self.member_id);
        if self.phase == Phase::In && self.epoch > 0 && !is_member {
            ctx.saw(sight);
        }
    }

    /// The moment for a whim.
    pub(super) fn indulge(&mut self, ctx: &mut Ctx<'_>) {
        // After a rest it reads on.
        self.poll(ctx);
        if self.settled
            || self.phase != Phase::In
            || self.giving_up
            || !ctx.world.rng.percent(self.habits.whim_percent)
        {
            return;
        }
        let Some(whim) = ctx.world.rng.pick(&self.habits.whims).copied() else {
            return;
        };
        let now_ms = ctx.world.elapsed_ms();
        match whim {
            Whim::Resend => self.resend(ctx),
            Whim::Double | Whim::Insist => {}
            Whim::Resubscribe => self.resubscribe(ctx),
            Whim::SeekBack | Whim::SeekToBeginning | Whim::SeekAhead => self.seek(ctx, whim),
            Whim::Deaf => self.deaf_until_ms = now_ms + ctx.world.rng.between(DEAF_MS.0, DEAF_MS.1),
            Whim::Rest => {
                ctx.saw(Sight::MemberRested);
                self.rests_until_ms = now_ms + ctx.world.rng.between(REST_MS.0, REST_MS.1);
            }
        }
    }

    /// An old commit, once more: its answer was lost, and the client does not look whether it has sent a newer one.
    fn resend(&mut self, ctx: &mut Ctx<'_>) {
        let which = ctx.world.rng.index(self.sent.len());
        let Some((epoch, offsets)) = self.sent.remove(which) else {
            return;
        };
        for (tp, offset) in &offsets {
            let key = (self.habits.group.clone(), *tp);
            // It may lie before what was committed since, or behind: its first answer was lost, and the client has begun again
            // before it. Then its next commit is a step back.
            let stands = self.owned.get(tp).map_or(*offset, |part| part.done.max(0));
            let (low, high) = (stands.min(*offset), stands.max(*offset));
            ctx.oracle.commits.may_return(key, low, high);
            self.forget_commit(*tp);
        }
        ctx.saw(Sight::CommitResent);
        self.send_commit(ctx, epoch, offsets, Then::Nothing);
    }

    /// It is expelled: what it has done in slices is remembered by a program that insists on it.
    pub(super) fn remember(&mut self) {
        if self.habits.has(Whim::Insist) && self.is_modern() && !self.owned.is_empty() {
            let done = self.owned.iter().map(|(tp, part)| (*tp, part.done));
            self.remembered = done.filter(|(_, done)| slice_of(*done).is_some()).collect();
        }
    }

    /// Its program has threads of its own: what they have in work they finish meanwhile, and that is committed when it is a
    /// member again.
    fn resubscribe(&mut self, ctx: &mut Ctx<'_>) {
        if !self.is_modern() || self.habits.instance.is_some() {
            return;
        }
        ctx.saw(Sight::Resubscribed);
        let mut done: BTreeMap<Tp, i64> = self.owned.iter().map(|(tp, part)| (*tp, part.done)).collect();
        for work in self.work.iter().take(self.taken) {
            let done = done.entry(work.tp).or_default();
            *done = (*done).max(work.next);
        }
        self.leave_modern(ctx);
        self.expelled(ctx);
        // Whoever waits for an answer to an older heartbeat does not wait any more.
        self.calls.retain(|_, call| !matches!(call, Call::Beat { .. }));
        self.remembered = done
            .into_iter()
            .filter(|(_, done)| slice_of(*done).is_some())
            .collect();
        let pause_ms = ctx.world.rng.between(AWAY_MS.0, AWAY_MS.1);
        self.seat.wake_in(ctx, pause_ms, JOIN);
    }

    /// It is a member again.
    pub(super) fn insist(&mut self, ctx: &mut Ctx<'_>) {
        let offsets = std::mem::take(&mut self.remembered);
        if !offsets.is_empty() && !self.settled {
            ctx.saw(Sight::CommitInsisted);
            self.send_commit(ctx, self.epoch, offsets, Then::Nothing);
        }
    }

    /// Where to; nothing for the beginning, which the client has to ask for.
    fn target(&self, ctx: &mut Ctx<'_>, tp: Tp, whim: Whim) -> Option<Option<i64>> {
        let part = self.owned.get(&tp)?;
        let position = part.position?;
        let ahead = 1 + ctx.world.rng.below(AHEAD_MAX) as i64;
        let candidates: Vec<i64> = match whim {
            // As far as it remembers, or anywhere.
            Whim::SeekBack if ctx.world.rng.percent(FAR_PERCENT) => {
                part.past.iter().take(1).copied().collect()
            }
            Whim::SeekBack => part.past.iter().copied().collect(),
            Whim::SeekAhead => {
                // Within what it holds, or behind it.
                let held = self.work.iter().filter(|work| work.tp == tp);
                let ends = held.map(|work| work.next).chain([part.end.min(position + ahead)]);
                ends.filter(|to| *to > part.done).collect()
            }
            _ => return Some(None),
        };
        ctx.world.rng.pick(&candidates).copied().map(Some)
    }

    fn seek(&mut self, ctx: &mut Ctx<'_>, whim: Whim) {
        let owned: Vec<Tp> = self.owned.keys().copied().collect();
        let Some(tp) = ctx.world.rng.pick(&owned).copied() else {
            return;
        };
        let Some(to) = self.target(ctx, tp, whim) else {
            return;
        };
        self.note_seek(ctx, tp, whim, to);
        self.drop_work(ctx, |work| work.tp == tp, |_| false);
        self.serials += 1;
        let serial = self.serials;
        if let Some(part) = self.owned.get_mut(&tp) {
            part.serial = serial;
            part.before = None;
            part.committed = -1;
            part.position = to;
            part.done = to.unwrap_or(part.done);
        }
        match to {
            Some(_) => self.poll(ctx),
            None => self.find_edge(ctx, (tp, serial), Why::Reset),
        }
    }

    /// The oracles hear what the program wants: to have records again, or not to have some.
    fn note_seek(&self, ctx: &mut Ctx<'_>, tp: Tp, whim: Whim, to: Option<i64>) {
        ctx.saw(match whim {
            Whim::SeekAhead => Sight::SoughtAhead,
            Whim::SeekBack => Sight::SoughtBack,
            _ => Sight::SoughtBeginning,
        });
        let Some(part) = self.owned.get(&tp) else { return };
        let position = part.position.unwrap_or(part.done);
        let Some(to) = to.filter(|_| whim == Whim::SeekAhead) else {
            let key = (self.habits.group.clone(), tp);
            return ctx
                .oracle
                .commits
                .may_return(key, to.unwrap_or(0), part.done.max(position));
        };
        let held = self.work.iter();
        for work in held.filter(|work| work.tp == tp && work.offset < to) {
            ctx.oracle.handed(&self.worker(), tp, work.offset);
        }
        ctx.oracle.passed_over(&self.worker(), tp, position, to);
    }

    /// A request that is sent a second time at once, and what its answer is good for.
    pub(super) fn again(&self, ctx: &mut Ctx<'_>, request: &Request, call: &Call) -> Option<(Request, Call)> {
        let is_due = self.habits.has(Whim::Double) && !self.settled && ctx.world.rng.percent(DOUBLE_PERCENT);
        if !is_due {
            return None;
        }
        let call = match call {
            Call::Fetch { .. } | Call::Offsets { .. } | Call::Edge { .. } => Call::Again,
            // What it brings is not said twice. Who joins says that it has nothing: no library does so again and then takes
            // what the first answer brings.
            Call::Beat { .. } if self.epoch > 0 => call.clone(),
            Call::Commit { offsets, step, .. } => {
                self.began_commit(ctx, offsets, *step);
                Call::Commit {
                    offsets: offsets.clone(),
                    step: *step,
                    then: Then::Nothing,
                }
            }
            Call::Beat { .. } | Call::Join | Call::Sync | Call::Leave | Call::Again => return None,
        };
        ctx.saw(Sight::RequestDoubled);
        Some((request.clone(), call))
    }
}
