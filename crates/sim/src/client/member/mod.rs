//! A member of a group: joins, reads what it is assigned, processes it, commits, gives up what it must.
//!
//! ```text
//! classic.rs   JoinGroup, SyncGroup, Heartbeat: eager (gives up all before it joins) and cooperative
//! modern.rs    ConsumerGroupHeartbeat (KIP-848)
//! reading.rs   what all share: taking and giving up partitions, resuming at the committed offset, fetch, commit
//! ```
//!
//! A record counts as processed when the poll that got it has been worked off, which takes no time here; commits name
//! only what was processed. Before it gives a partition up, a member tries once to commit.

mod classic;
mod modern;
mod reading;

use std::collections::{BTreeMap, BTreeSet};

use super::{Client, Seat};
use crate::message::{Answer, Tp};
use crate::net::{CallId, Line};
use crate::run::Ctx;
use crate::sights::Sight;

const JOIN: u32 = 0;
const BEAT: u32 = 1;
const COMMIT: u32 = 2;
const POLL: u32 = 3;
const RESOLVE: u32 = 4;
const COME_BACK: u32 = 5;

/// Heartbeat interval of classic members, milliseconds.
const HEARTBEAT_MS: u64 = 1_000;
/// Session timeout of classic members: the smallest allowed.
const SESSION_MS: i32 = 6_000;
/// Time to give partitions up.
const REBALANCE_MS: i32 = 8_000;

/// Which protocol a member speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Classic, everything given up at each rebalance.
    Eager,
    /// Classic, only what moves is given up.
    Cooperative,
    /// KIP-848.
    Modern,
}

/// How a member behaves.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Its group.
    pub group: String,
    /// Topics it subscribes to.
    pub topics: Vec<String>,
    /// Protocol.
    pub style: Style,
    /// Instance id of a static member.
    pub instance: Option<String>,
    /// Commits after each poll instead of now and then.
    pub manual: bool,
    /// Interval of commits otherwise, milliseconds.
    pub commit_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No member, or on the way to become one.
    Out,
    /// A JoinGroup is under way.
    Joining,
    /// A SyncGroup is under way.
    Syncing,
    /// A member.
    In,
    /// Has left, or was told to stay away; comes back in another life.
    Gone,
}

/// What a call is about.
#[derive(Clone, Debug)]
enum Call {
    Join,
    Sync,
    Beat {
        owned: Option<BTreeSet<Tp>>,
    },
    Leave,
    /// What was committed, when, and what follows.
    Commit {
        offsets: Vec<(Tp, i64)>,
        step: u64,
        then: Then,
    },
    Offsets {
        step: u64,
        parts: Vec<(Tp, u64)>,
    },
    Edge {
        tp: Tp,
        serial: u64,
    },
    Fetch {
        serials: BTreeMap<Tp, u64>,
    },
}

/// What follows a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// The next poll: a manual commit is waited for.
    Poll,
    /// Everything is given up, and the member joins again.
    Rejoin,
    /// These are given up.
    GiveUp(BTreeSet<Tp>),
    /// The member leaves.
    Leave,
}

/// A partition that the member owns.
#[derive(Clone, Debug)]
struct Part {
    /// Distinguishes this ownership from an earlier one of the same partition.
    serial: u64,
    /// Where to read next; `None` until that is known.
    position: Option<i64>,
    /// The last position that was sent to be committed.
    committed: i64,
}

/// The member.
#[derive(Debug)]
pub struct Member {
    seat: Seat,
    habits: Habits,
    phase: Phase,
    member_id: String,
    epoch: i32,
    owned: BTreeMap<Tp, Part>,
    calls: BTreeMap<CallId, Call>,
    serials: u64,
    /// The assignment that a member of the consumer protocol was told last.
    target: Option<BTreeSet<Tp>>,
    /// The owned partitions that the broker knows of.
    told: Option<BTreeSet<Tp>>,
    /// The next heartbeat must say everything.
    full: bool,
    /// Partitions are being given up: a commit is under way.
    giving_up: bool,
    fetching: bool,
    /// Where it was, and at which epoch, in what it gave up last.
    given_up: Option<(i32, Vec<(Tp, i64)>)>,
}

impl Member {
    /// A member of a group.
    pub fn new(index: usize, habits: Habits) -> Self {
        Self {
            seat: Seat::new(index),
            habits,
            phase: Phase::Out,
            member_id: String::new(),
            epoch: 0,
            owned: BTreeMap::new(),
            calls: BTreeMap::new(),
            serials: 0,
            target: None,
            told: None,
            full: true,
            giving_up: false,
            fetching: false,
            given_up: None,
        }
    }

    fn call(&mut self, ctx: &mut Ctx<'_>, line: Line, request: crate::message::Request, call: Call) {
        let id = self.seat.send(ctx, line, request);
        self.calls.insert(id, call);
    }

    fn is_modern(&self) -> bool {
        self.habits.style == Style::Modern
    }

    fn begin(&mut self, ctx: &mut Ctx<'_>, pause_ms: u64) {
        // The clients of the consumer protocol make their own ids.
        if self.is_modern() {
            self.member_id = format!("m{}-{:08x}", self.seat.index, ctx.world.rng.bits() as u32);
        }
        self.seat.wake_in(ctx, pause_ms, JOIN);
        self.seat.wake_in(ctx, pause_ms + HEARTBEAT_MS, BEAT);
        self.seat.wake_in(ctx, pause_ms + self.habits.commit_ms, COMMIT);
    }

    /// Joins, or joins again.
    fn join(&mut self, ctx: &mut Ctx<'_>) {
        if self.phase == Phase::Gone {
            return;
        }
        if self.is_modern() {
            self.join_modern(ctx);
        } else {
            self.join_classic(ctx);
        }
    }

    /// After what must be given up was committed, or could not be.
    fn after_commit(&mut self, ctx: &mut Ctx<'_>, then: Then) {
        if !self.giving_up && !matches!(then, Then::Nothing | Then::Poll) {
            // It was expelled meanwhile, and has lost everything.
            return;
        }
        match then {
            Then::Nothing => {}
            Then::Poll => self.poll(ctx),
            Then::Rejoin => {
                self.giving_up = false;
                let all: BTreeSet<Tp> = self.owned.keys().copied().collect();
                self.give_up(ctx, &all);
                self.join(ctx);
            }
            Then::GiveUp(parts) => {
                self.giving_up = false;
                self.give_up(ctx, &parts);
                if self.is_modern() {
                    self.take_target(ctx);
                } else {
                    self.join(ctx);
                }
            }
            Then::Leave => self.say_farewell(ctx),
        }
    }

    fn say_farewell(&mut self, ctx: &mut Ctx<'_>) {
        let all: BTreeSet<Tp> = self.owned.keys().copied().collect();
        self.give_up(ctx, &all);
        if self.is_modern() {
            self.leave_modern(ctx);
        } else {
            self.leave_classic(ctx);
        }
        ctx.saw(Sight::MemberLeft);
        self.stay_away(ctx);
    }

    fn stay_away(&mut self, ctx: &mut Ctx<'_>) {
        self.phase = Phase::Gone;
        let pause_ms = ctx.world.rng.between(1_000, 10_000);
        self.seat.wake_in(ctx, pause_ms, COME_BACK);
    }

    /// All that it owned is lost; it is no member any more.
    fn expelled(&mut self, ctx: &mut Ctx<'_>) {
        let all: BTreeSet<Tp> = self.owned.keys().copied().collect();
        self.give_up(ctx, &all);
        self.giving_up = false;
        self.target = None;
        self.told = None;
        self.full = true;
        self.epoch = 0;
        self.given_up = None;
        self.phase = Phase::Out;
    }

    /// Another instance has taken its place: an application would end here.
    fn fenced(&mut self, ctx: &mut Ctx<'_>) {
        ctx.saw(Sight::EpochFenced);
        self.expelled(ctx);
        self.stay_away(ctx);
    }
}

impl Client for Member {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.begin(ctx, 1);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, what: u32) {
        match what {
            JOIN if self.phase == Phase::Out => self.join(ctx),
            BEAT => {
                self.seat.wake_in(ctx, HEARTBEAT_MS, BEAT);
                if self.phase == Phase::In {
                    self.beat(ctx);
                }
            }
            COMMIT => {
                self.seat.wake_in(ctx, self.habits.commit_ms, COMMIT);
                // Those who commit by hand only make good here what has failed.
                if self.phase == Phase::In && !self.giving_up {
                    self.commit(ctx, None, Then::Nothing);
                    self.commit_late(ctx);
                }
            }
            POLL => self.poll(ctx),
            RESOLVE => self.resolve(ctx),
            COME_BACK => self.die(ctx),
            _ => {}
        }
    }

    fn answer(&mut self, ctx: &mut Ctx<'_>, _line: Line, call: CallId, answer: Option<Answer>) {
        let Some(call) = self.calls.remove(&call) else {
            return;
        };
        match call {
            Call::Join => self.joined(ctx, answer),
            Call::Sync => self.synced(ctx, answer),
            Call::Beat { owned } if self.is_modern() => self.beaten_modern(ctx, owned, answer),
            Call::Beat { .. } => self.beaten_classic(ctx, answer.as_ref()),
            Call::Leave => {}
            Call::Commit { offsets, step, then } => self.committed(ctx, &offsets, step, then, answer),
            Call::Offsets { step, parts } => self.resolved(ctx, step, &parts, answer),
            Call::Edge { tp, serial } => self.found_edge(ctx, tp, serial, answer.as_ref()),
            Call::Fetch { serials } => self.fetched(ctx, &serials, answer),
        }
    }

    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        if self.phase == Phase::Gone {
            self.die(ctx);
        }
    }

    fn die(&mut self, ctx: &mut Ctx<'_>) {
        self.seat.reborn(ctx);
        ctx.oracle.ownership.died(self.seat.index);
        if self.habits.instance.is_some() {
            ctx.saw(Sight::StaticReplaced);
        }
        *self = Self {
            seat: self.seat.clone(),
            ..Self::new(0, self.habits.clone())
        };
        // Some come back at once, some after everybody has noticed.
        let pause_ms = if ctx.world.rng.percent(50) {
            200
        } else {
            ctx.world.rng.between(3_000, 12_000)
        };
        self.begin(ctx, pause_ms);
    }

    fn leave(&mut self, ctx: &mut Ctx<'_>) {
        if self.phase == Phase::In && !self.giving_up {
            self.giving_up = true;
            self.commit(ctx, None, Then::Leave);
        }
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }

    fn group(&self) -> Option<&str> {
        Some(&self.habits.group)
    }
}
