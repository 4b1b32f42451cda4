//! What goes wrong, and when.

use std::collections::BTreeMap;

use crate::broker::Broker;
use crate::client::Client;
use crate::disk::{End, Kind};
use crate::rng::Rng;
use crate::run::Ctx;
use crate::sights::Sight;

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The broker ends between two events.
    Crash,
    /// The broker ends at some operation of its disk.
    CrashAtOperation,
    /// The broker ends, and its next start, too, in the middle of recovery.
    CrashTwice,
    /// The broker is closed in good order.
    ShutDown,
    /// A sync fails.
    SyncError,
    /// A write fails.
    WriteError,
    /// The disk is full for a while.
    DiskFull,
    /// The wall clock is set wrong for a while.
    WallJump,
    /// A connection breaks.
    Cut,
    /// A client dies.
    Death,
    /// A client stands still.
    Pause,
    /// A client leaves in good order.
    Leave,
    /// All members of a group leave.
    Exodus,
}

const ALL: [(Fault, u64); 13] = [
    (Fault::Crash, 6),
    (Fault::CrashAtOperation, 10),
    (Fault::CrashTwice, 4),
    (Fault::ShutDown, 2),
    (Fault::SyncError, 3),
    (Fault::WriteError, 2),
    (Fault::DiskFull, 3),
    (Fault::WallJump, 3),
    (Fault::Cut, 30),
    (Fault::Death, 10),
    (Fault::Pause, 10),
    (Fault::Leave, 6),
    (Fault::Exodus, 4),
];

const DAY_MS: u64 = 86_400_000;

/// The fault driver.
#[derive(Debug, Default)]
pub struct Faults {
    chosen: Vec<(Fault, u64)>,
    /// Longest pause between two faults, milliseconds.
    pause_ms: u64,
    full_until_ms: Option<u64>,
    wall_until_ms: Option<u64>,
}

impl Faults {
    /// Draws which faults there are, and how many.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut chosen: Vec<(Fault, u64)> = ALL.iter().copied().filter(|_| rng.percent(65)).collect();
        if chosen.is_empty() {
            chosen = ALL.to_vec();
        }
        Self {
            chosen,
            pause_ms: rng.between(200, 3_000),
            full_until_ms: None,
            wall_until_ms: None,
        }
    }

    /// Lets something go wrong. Returns how long it is until the next turn, in milliseconds.
    pub fn strike(
        &mut self,
        ctx: &mut Ctx<'_>,
        broker: &mut Broker,
        clients: &mut [Box<dyn Client>],
        paused: &mut BTreeMap<usize, u64>,
    ) -> u64 {
        let now_ms = ctx.world.elapsed_ms();
        if self.full_until_ms.is_some_and(|until| now_ms >= until) {
            self.full_until_ms = None;
            ctx.world.trace(format_args!("!! the disk has room again"));
            broker.set_full(false, 0);
        }
        if self.wall_until_ms.is_some_and(|until| now_ms >= until) {
            self.wall_until_ms = None;
            ctx.world.jump_wall(-ctx.world.wall_skew_ms());
            ctx.world.trace(format_args!("!! the wall clock is right again"));
        }
        let total: u64 = self.chosen.iter().map(|(_, weight)| weight).sum();
        let mut drawn = ctx.world.rng.below(total);
        for (fault, weight) in self.chosen.clone() {
            if drawn < weight {
                ctx.world.trace(format_args!("!! {fault:?}"));
                self.cause(fault, ctx, broker, clients, paused);
                break;
            }
            drawn -= weight;
        }
        ctx.world.rng.between(20, self.pause_ms)
    }

    fn cause(
        &mut self,
        fault: Fault,
        ctx: &mut Ctx<'_>,
        broker: &mut Broker,
        clients: &mut [Box<dyn Client>],
        paused: &mut BTreeMap<usize, u64>,
    ) {
        match fault {
            Fault::Crash => broker.kill(ctx),
            Fault::CrashAtOperation => {
                let (operations, end) = (ctx.world.rng.between(1, 40), draw_end(ctx));
                if let Some(disk) = broker.disk() {
                    disk.end_in(operations, end);
                }
            }
            Fault::CrashTwice => {
                let (operations, end) = (ctx.world.rng.between(1, 12), draw_end(ctx));
                broker.doom(operations, end);
                broker.kill(ctx);
            }
            Fault::ShutDown => broker.shut_down(ctx),
            Fault::SyncError | Fault::WriteError => {
                let kind = if fault == Fault::SyncError {
                    Kind::Sync
                } else {
                    Kind::Write
                };
                if let Some(disk) = broker.disk() {
                    disk.fail_next(kind);
                }
            }
            Fault::DiskFull => {
                let (left, lasts_ms) = (ctx.world.rng.below(150_000), ctx.world.rng.between(1_000, 6_000));
                self.full_until_ms = Some(ctx.world.elapsed_ms() + lasts_ms);
                broker.set_full(true, left);
            }
            Fault::WallJump => self.jump(ctx),
            Fault::Cut => {
                let lanes = ctx.net.lanes();
                if let Some(lane) = ctx.world.rng.pick(&lanes).copied() {
                    ctx.cut(lane);
                }
            }
            Fault::Death | Fault::Pause | Fault::Leave | Fault::Exodus => {
                trouble(fault, ctx, clients, paused);
            }
        }
    }

    fn jump(&mut self, ctx: &mut Ctx<'_>) {
        if self.wall_until_ms.is_some() {
            return;
        }
        let days = if ctx.world.rng.percent(50) { 1 } else { 400 };
        let by_ms = ctx.world.rng.between(1_000, days * DAY_MS) as i64;
        let ahead = ctx.world.rng.percent(50);
        ctx.saw(if ahead {
            Sight::WallJumpedAhead
        } else {
            Sight::WallJumpedBack
        });
        ctx.world.jump_wall(if ahead { by_ms } else { -by_ms });
        let lasts_ms = ctx.world.rng.between(500, 8_000);
        self.wall_until_ms = Some(ctx.world.elapsed_ms() + lasts_ms);
    }

    /// Nothing is wrong any more.
    pub fn heal(&mut self, ctx: &mut Ctx<'_>, broker: &mut Broker) {
        self.full_until_ms = None;
        self.wall_until_ms = None;
        broker.set_full(false, 0);
        broker.spare();
        ctx.world.jump_wall(-ctx.world.wall_skew_ms());
    }
}

fn draw_end(ctx: &mut Ctx<'_>) -> End {
    if ctx.world.rng.percent(60) {
        End::PowerCut
    } else {
        End::Kill
    }
}

fn trouble(
    fault: Fault,
    ctx: &mut Ctx<'_>,
    clients: &mut [Box<dyn Client>],
    paused: &mut BTreeMap<usize, u64>,
) {
    let index = ctx.world.rng.index(clients.len());
    if fault == Fault::Exodus {
        let group = clients
            .get(index)
            .and_then(|client| client.group().map(str::to_owned));
        let is_in = |client: &&mut Box<dyn Client>| group.is_some() && client.group() == group.as_deref();
        return clients
            .iter_mut()
            .filter(is_in)
            .for_each(|client| client.leave(ctx));
    }
    let Some(client) = clients.get_mut(index) else {
        return;
    };
    match fault {
        Fault::Death => {
            ctx.saw(Sight::ClientDied);
            client.die(ctx);
        }
        Fault::Pause => {
            ctx.saw(Sight::ClientPaused);
            let lasts_us = ctx.world.rng.between(500_000, 15_000_000);
            // What is held back by an earlier pause must not come behind what a shorter one holds back.
            let until_us = paused.entry(index).or_default();
            *until_us = (*until_us).max(ctx.world.now_us() + lasts_us);
        }
        _ => client.leave(ctx),
    }
}
