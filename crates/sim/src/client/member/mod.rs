//! A member of a group: joins, reads what it is assigned, processes it, commits, gives up what it must.
//!
//! ```text
//! cast.rs      who is in a group
//! plots.rs     members whose habits fit each other
//! library.rs   what clients say of themselves, and the manners of each library
//! habits.rs    one member's habits: those of its library, of its program, and of its clock
//! classic.rs   JoinGroup, SyncGroup, Heartbeat: eager (gives up all before it joins) and cooperative
//! modern.rs    ConsumerGroupHeartbeat (KIP-848)
//! owning.rs    taking and giving up partitions, resuming at the committed offset
//! reading.rs   fetches, and what is held ahead of the work
//! work.rs      batches that the program takes, records one by one
//! commits.rs   what is committed, when, and what comes late or twice
//! whims.rs     seeks, rests, silence, requests sent twice
//! ```
//!
//! Records are processed one after the other, each taking its time. What a commit says depends on the library: what was
//! processed, or what was handed to the program. Before it gives a partition up, a member tries once to commit; records
//! that it has in hand are thrown away then.

pub mod cast;
mod classic;
mod commits;
mod habits;
mod library;
mod modern;
mod owning;
mod plots;
mod reading;
mod whims;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use habits::{Habits, Whim};
pub use library::{Ahead, Library, Stands};

use super::{Client, Clock, Seat};
use crate::message::{Answer, Request, Tp};
use crate::net::{CallId, Line};
use crate::run::Ctx;
use crate::sights::Sight;

const JOIN: u32 = 0;
const BEAT: u32 = 1;
const COMMIT: u32 = 2;
const POLL: u32 = 3;
const RESOLVE: u32 = 4;
const COME_BACK: u32 = 5;
const WORK: u32 = 6;
const WHIM: u32 = 7;
const TAKE: u32 = 8;

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
        why: Why,
    },
    Fetch {
        serials: BTreeMap<Tp, u64>,
    },
    /// One that was sent a second time: nobody looks at the answer.
    Again,
}

/// Why a member asks for an end of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// To begin there.
    Reset,
    /// To see whether it can begin at the position that it was told: not below the first end, not above the second.
    NotBelow(i64),
    NotAbove(i64),
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
    /// Distinguishes this ownership, and what was read since the last seek, from earlier ones.
    serial: u64,
    /// Where to read next; `None` until that is known.
    position: Option<i64>,
    /// It wants to begin at an end of the partition, and asks for that until it is told.
    resets: bool,
    /// Where it read before that.
    before: Option<i64>,
    /// What may be committed.
    done: i64,
    /// The last position that was sent to be committed.
    committed: i64,
    /// Offsets of some records that the program has had, the latest last.
    past: VecDeque<i64>,
    /// Where the records ended that could be read, when it read last.
    end: i64,
}

/// A record that is to be processed, or is in hand.
#[derive(Clone, Debug)]
struct Work {
    tp: Tp,
    /// Of its part: it is thrown away with it.
    serial: u64,
    /// Its offset, as the client sees it.
    offset: i64,
    /// The position behind it.
    next: i64,
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
    /// What it had done, in slices, when it was expelled.
    remembered: Vec<(Tp, i64)>,
    /// Where it was, and at which epoch, in what it gave up last.
    given_up: Option<(i32, Vec<(Tp, i64)>)>,
    /// What it keeps of its partitions while it joins again, if its library does that.
    kept: BTreeMap<Tp, Part>,
    /// The commits that were sent last: at which epoch, and what.
    sent: VecDeque<(i32, Vec<(Tp, i64)>)>,
    work: VecDeque<Work>,
    /// So many of these the program has taken.
    taken: usize,
    /// The first of these is in hand.
    in_hand: bool,
    /// A timer for the end of a record's processing is set.
    working: bool,
    /// A commit that the program waits for is under way.
    waits: bool,
    /// The program waits before it takes the next batch: a timer is set.
    lingers: bool,
    /// Until when it does not heartbeat, and until when it does not read, milliseconds since the start of the run.
    deaf_until_ms: u64,
    rests_until_ms: u64,
    /// Whims are over.
    settled: bool,
}

impl Member {
    /// A member of a group.
    pub fn new(index: usize, habits: Habits) -> Self {
        Self {
            seat: Seat::with_clock(
                index,
                Clock {
                    percent: habits.clock_percent,
                    ..Clock::default()
                },
            ),
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
            remembered: Vec::new(),
            given_up: None,
            kept: BTreeMap::new(),
            sent: VecDeque::new(),
            work: VecDeque::new(),
            taken: 0,
            in_hand: false,
            working: false,
            waits: false,
            lingers: false,
            deaf_until_ms: 0,
            rests_until_ms: 0,
            settled: false,
        }
    }

    fn call(&mut self, ctx: &mut Ctx<'_>, line: Line, request: Request, call: Call) {
        let line = if self.habits.library.one_line {
            Line::Group
        } else {
            line
        };
        let again = self.again(ctx, &request, &call);
        let id = self.seat.send(ctx, line, request);
        self.calls.insert(id, call);
        if let Some((request, call)) = again {
            let id = self.seat.send(ctx, line, request);
            self.calls.insert(id, call);
        }
    }

    fn is_modern(&self) -> bool {
        self.habits.style == Style::Modern
    }

    fn begin(&mut self, ctx: &mut Ctx<'_>, pause_ms: u64) {
        if self.habits.clock_percent != 100 {
            ctx.saw(Sight::ClientClockWrong);
        }
        if self.habits.is_twin(self.seat.index) {
            ctx.saw(Sight::Twins);
            ctx.oracle.strangers.twins(&self.habits.introduction.host);
        }
        if self.habits.is_strange() {
            ctx.saw(Sight::StrangeClient);
            ctx.oracle.strangers.strange(&self.habits.introduction.host);
        }
        ctx.net
            .introduce(self.seat.index, self.habits.introduction.clone());
        // The clients of the consumer protocol make their own ids.
        if self.is_modern() {
            self.member_id = format!("m{}-{:08x}", self.seat.index, ctx.world.rng.bits() as u32);
        }
        self.seat.wake_in(ctx, pause_ms, JOIN);
        self.seat.wake_in(ctx, pause_ms + HEARTBEAT_MS, BEAT);
        self.seat.wake_in(ctx, pause_ms + self.habits.commit_ms, COMMIT);
        self.seat.wake_in(ctx, pause_ms + self.habits.whim_ms, WHIM);
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
            Then::Poll => {
                self.waits = false;
                self.poll(ctx);
            }
            Then::Rejoin => {
                self.giving_up = false;
                self.keep_positions();
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
        self.remember();
        let all: BTreeSet<Tp> = self.owned.keys().copied().collect();
        self.give_up(ctx, &all);
        self.giving_up = false;
        self.target = None;
        self.told = None;
        self.full = true;
        self.epoch = 0;
        self.given_up = None;
        self.sent.clear();
        self.kept.clear();
        self.drop_work(ctx, |_| true, |_| false);
        self.waits = false;
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
                if self.phase == Phase::In && !self.is_deaf(ctx) {
                    self.beat(ctx);
                }
            }
            WHIM => {
                self.seat.wake_in(ctx, self.habits.whim_ms, WHIM);
                self.indulge(ctx);
            }
            COMMIT => {
                self.seat.wake_in(ctx, self.habits.commit_ms, COMMIT);
                self.commit_on_time(ctx);
            }
            POLL => self.poll(ctx),
            WORK => self.worked(ctx),
            TAKE => self.take_up(ctx),
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
            // Perhaps it never was away, and what it had done since counts.
            Call::Leave if answer.is_none() => self.remembered.clear(),
            Call::Leave | Call::Again => {}
            Call::Commit { offsets, step, then } => self.committed(ctx, &offsets, step, then, answer),
            Call::Offsets { step, parts } => self.resolved(ctx, step, &parts, answer),
            Call::Edge { tp, serial, why } => self.found_edge(ctx, (tp, serial), why, answer.as_ref()),
            Call::Fetch { serials } => self.fetched(ctx, &serials, answer),
        }
    }

    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        self.settled = true;
        if self.phase == Phase::Gone {
            self.die(ctx);
        }
    }

    fn die(&mut self, ctx: &mut Ctx<'_>) {
        self.seat.reborn(ctx);
        ctx.oracle.ownership.died(self.seat.index);
        ctx.oracle.work.dropped(self.seat.index);
        if self.habits.instance.is_some() {
            ctx.saw(Sight::StaticReplaced);
        }
        *self = Self {
            seat: self.seat.clone(),
            settled: self.settled,
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
