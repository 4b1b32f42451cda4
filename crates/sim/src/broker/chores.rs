//! What the broker does by itself, at moments that chance chooses: the server's background tasks and commit thread.

use anabranch_core::ids::Lsn;
use anabranch_engine::{Deleted, log_stats};
use anabranch_store::Step;

use super::{Broker, Process};
use crate::run::Ctx;
use crate::sights::Sight;
use crate::world::{Chore, Event};

/// Entries in a group that count as many.
const MANY: u64 = 10;
/// After how many sealed segments of a hundred a snapshot is taken.
const SNAPSHOT_PERCENT: u64 = 40;
/// Pause after the disk was full, milliseconds.
const FULL_PAUSE_MS: u64 = 100;
/// How often retention is looked at, milliseconds.
pub(super) const RETENTION_MS: u64 = 3_000;
/// How often groups are looked at for what is too old: one in so many rounds of retention.
const EXPIRY_ROUNDS: u64 = 4;

impl Broker {
    /// Does a chore, if the process that asked for it still runs.
    pub fn chore(&mut self, ctx: &mut Ctx<'_>, life: u64, chore: Chore) {
        let Some(process) = self.process.as_mut().filter(|_| life == self.life) else {
            return;
        };
        match chore {
            Chore::Commit => process.commit_group(ctx, life),
            Chore::Groups => process.on_time(ctx),
            Chore::Fetches => {}
            Chore::Snapshot => process.snapshot(ctx, life),
            Chore::Maintain => process.maintain(ctx, life),
            Chore::Retention => process.retain(ctx, life),
            Chore::Plan if process.is_planned_later(ctx) => return,
            Chore::Plan => process.plan(ctx, life),
            Chore::Queues => process.count_queues(ctx, life),
        }
        process.follow_up(ctx, life, &self.settings);
        self.bury(ctx, Some(chore));
    }
}

impl Process {
    fn commit_group(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        self.commit_scheduled = false;
        let before = self.store().committed();
        let step = self.store().commit_once();
        let told = self.listen();
        if self.disk.ended().is_some() {
            // The process ended in there: nobody hears anything more from it.
            return;
        }
        let committed = self.store().committed();
        ctx.world.trace(format_args!(
            "commit {step:?} up to {committed} of {}",
            self.store().last()
        ));
        let effects = self.engine.committed(committed, &told.tails);
        self.wakes += u64::from(!told.tails.is_empty() || !effects.is_empty());
        self.effects.extend(effects);
        ctx.committed(committed.0, false);
        if committed.0 - before.0 >= MANY {
            ctx.saw(Sight::GroupOfMany);
        }
        match step {
            Step::Full => {
                ctx.saw(Sight::DiskFull);
                self.starved = true;
                self.commit_scheduled = true;
                ctx.world
                    .after_ms(FULL_PAUSE_MS, Event::Broker(life, Chore::Commit));
            }
            Step::Committed if self.starved => {
                self.starved = false;
                ctx.saw(Sight::DiskFreed);
            }
            _ => {}
        }
        for _ in 0..told.sealed {
            ctx.saw(Sight::SegmentSealed);
            if ctx.world.rng.percent(SNAPSHOT_PERCENT) {
                let pause_ms = ctx.world.rng.between(0, 400);
                ctx.world.after_ms(pause_ms, Event::Broker(life, Chore::Snapshot));
            }
        }
        if ctx.world.rng.percent(70) {
            self.tell_store();
        }
    }

    /// Takes a snapshot; or, if one was taken before, writes it.
    fn snapshot(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        match self.snapshot.take() {
            None => {
                self.snapshot = Some(self.engine.snapshot());
                let pause_ms = ctx.world.rng.between(0, 50);
                ctx.world.after_ms(pause_ms, Event::Broker(life, Chore::Snapshot));
            }
            Some((lsn, bytes)) if lsn > self.store().committed() => {
                // The server's thread waits for the entries; here the chore comes again.
                self.snapshot = Some((lsn, bytes));
                let pause_ms = ctx.world.rng.between(5, 100);
                ctx.world.after_ms(pause_ms, Event::Broker(life, Chore::Snapshot));
            }
            Some((lsn, bytes)) => self.write_snapshot(ctx, life, lsn, &bytes),
        }
    }

    fn write_snapshot(&mut self, ctx: &mut Ctx<'_>, life: u64, lsn: Lsn, bytes: &[u8]) {
        let written = self.store().write_snapshot(lsn, bytes);
        if self.disk.ended().is_none() {
            ctx.world.trace(format_args!(
                "snapshot at {lsn}: {}",
                written.map_or_else(|e| e.to_string(), |()| "written".into())
            ));
            let pause_ms = ctx.world.rng.between(0, 200);
            ctx.world.after_ms(pause_ms, Event::Broker(life, Chore::Maintain));
        }
    }

    /// Frees and packs; and looks at space.
    fn maintain(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        self.tell_store();
        let done = self.store().maintain();
        if self.disk.ended().is_some() {
            return;
        }
        self.short_of_space = self.store().space().low;
        let mut pause_ms = ctx.world.rng.between(300, 1_500);
        match done {
            Ok(done) => {
                for _ in 0..done.freed {
                    ctx.saw(Sight::SegmentFreed);
                }
                for _ in 0..done.packed {
                    ctx.saw(Sight::SegmentPacked);
                }
                if done.more {
                    pause_ms = ctx.world.rng.between(0, 20);
                }
                if done.freed + done.packed > 0 {
                    ctx.world.trace(format_args!("maintain: {done:?}"));
                }
            }
            Err(error) => ctx.world.trace(format_args!("maintain: {error}")),
        }
        ctx.world.after_ms(pause_ms, Event::Broker(life, Chore::Maintain));
    }

    fn retain(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        let logs = self.node().logs().map(anabranch_core::log::Log::id);
        let stats = log_stats(self.store(), logs);
        let now = ctx.world.now();
        let (deleted, outcome) = self.engine.retain(now, &stats);
        deleted
            .iter()
            .for_each(|deleted| self.watch_retention(ctx, deleted));
        self.pass_on(outcome);
        if ctx.world.rng.below(EXPIRY_ROUNDS) == 0 {
            let outcome = self.engine.expire_groups(now);
            self.pass_on(outcome);
        }
        ctx.world
            .after_ms(RETENTION_MS, Event::Broker(life, Chore::Retention));
    }

    /// Retention has decided that the records of a log below an offset go.
    fn watch_retention(&self, ctx: &mut Ctx<'_>, deleted: &Deleted) {
        let offset = deleted.upto;
        let Some(found) = self.node().log(deleted.log) else {
            return;
        };
        let tp = (found.topic(), found.partition());
        ctx.saw(Sight::RetentionDeleted);
        ctx.world.trace(format_args!("retention: {tp:?} up to {offset}"));
        ctx.oracle.log_start.allow(tp, offset);
        let configs = self.node().topic_by_id(tp.0).map(|topic| &topic.configs);
        let by_size = configs.is_some_and(|configs| configs.contains_key("retention.bytes"));
        let retention_ms = configs.and_then(|configs| configs.get("retention.ms")?.parse::<u64>().ok());
        if by_size {
            return;
        }
        // No name in the configuration: Kafka's seven days.
        let retention_ms = retention_ms.unwrap_or(7 * 86_400_000);
        ctx.check_age(tp, deleted.from, offset, retention_ms);
    }
}
