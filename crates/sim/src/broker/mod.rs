//! The broker as the simulation runs it: the real engine, that is the node, the store and all between them, on a simulated
//! disk. What the server adds to it (sockets, the lock, threads, the clock) is played by events.
//!
//! ```text
//! request --> handle: the engine, in one step -----------> lane: answers in the order of requests
//!                                                               | front: entry it depends on committed?
//! chores: commit, maintain, snapshot, retention, deadlines      v
//!         at moments that chance chooses                       net --> client
//! ```

mod chores;
mod fetch;
mod groups;
mod handle;
mod journal;
mod life;
mod planning;
mod queueing;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

pub use life::node_options;

use fetch::Fetching;
use journal::Watched;
use planning::Planning;
use queueing::Queueing;

use anabranch_core::cursor::Fault;
use anabranch_core::group::{Connection, Notice, Reply, Token};
use anabranch_core::ids::{LogId, Lsn};
use anabranch_core::meta::Command;
use anabranch_core::node::{LogEffect, Node};
use anabranch_engine::slices::ScanCache;
use anabranch_engine::{Engine, Outcome};
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Event as StoreEvent, Store};

use crate::disk::FaultDisk;
use crate::message::Answer;
use crate::net::{CallId, Lane};
use crate::run::Ctx;
use crate::world::{Chore, Event};

/// What chance has chosen for a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Size of a segment.
    pub segment_bytes: u64,
    /// Memory for the newest groups; small, so that reads go to the disk as well.
    pub cache_bytes: usize,
    /// From which share of live bytes on segments are left alone.
    pub pack_live_percent: u32,
    /// Longest pause before a commit, microseconds: how full groups get.
    pub commit_pause_us: u64,
    /// Session timeout of members of the consumer protocol, milliseconds.
    pub session_ms: u64,
    /// The broker's values of `elastic.*`.
    pub elastic: Vec<(&'static str, String)>,
    /// The broker's values of `elastic.queues.*`; none if no topic is in queue mode.
    pub queues: Vec<(&'static str, String)>,
    /// A rule that is broken on purpose.
    pub fault: Option<Fault>,
}

impl Settings {
    /// Whether groups divide partitions.
    pub fn is_elastic(&self) -> bool {
        self.elastic.contains(&("elastic.mode", "slices".to_owned()))
    }
}

/// An answer on its way out.
#[derive(Debug)]
enum Slot {
    /// It leaves once the entry is committed.
    Ready(Box<Answer>, Lsn),
    /// The coordinator will answer.
    Parked(Token),
    /// A fetch, looked at when it is in front.
    Fetch(Box<Fetching>),
}

/// A broker process.
struct Process {
    engine: Engine<Watched>,
    /// Batches with their records found, for readers of slices.
    scans: ScanCache,
    disk: FaultDisk,
    lanes: BTreeMap<Lane, VecDeque<(CallId, Slot)>>,
    tokens: BTreeMap<Token, Lane>,
    /// The connections that clients have opened, and the number of the newest.
    connections: BTreeMap<Lane, Connection>,
    last_connection: u64,
    /// How often those that wait for records were woken.
    wakes: u64,
    planning: Planning,
    queueing: Queueing,
    fault: Option<Fault>,
    /// What the coordinator has told the operator, with the entry by which it is so; nobody has looked at it.
    notices: Vec<(Lsn, Notice)>,
    /// What the store is to be told.
    effects: VecDeque<LogEffect>,
    told: Arc<Mutex<Told>>,
    commit_scheduled: bool,
    /// The deadline that is scheduled, monotonic milliseconds.
    armed: Option<u64>,
    snapshot: Option<(Lsn, Vec<u8>)>,
    short_of_space: bool,
    /// Entries were left in the queue for want of space.
    starved: bool,
    /// Last entry at the start: what is older was there before.
    started_at: Lsn,
}

/// What the store's listeners were told and nobody has looked at.
#[derive(Debug, Default)]
struct Told {
    tails: Vec<(LogId, i64)>,
    sealed: usize,
    poisoned: bool,
}

/// The broker: a process, or none at the moment; and the disk, which stays.
pub struct Broker {
    /// The disk as it is.
    pub sim: Arc<SimDisk>,
    settings: Settings,
    process: Option<Process>,
    /// Counts processes: what one of them has scheduled does not concern the next.
    life: u64,
    /// For the next start: the process ends after so many operations of its recovery.
    doom: Option<(u64, crate::disk::End)>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker")
            .field("life", &self.life)
            .field("up", &self.is_up())
            .finish_non_exhaustive()
    }
}

impl Broker {
    /// A broker that has not been started, with an empty disk.
    pub fn new(seed: u64, settings: Settings) -> Self {
        Self {
            sim: Arc::new(SimDisk::new(seed)),
            settings,
            process: None,
            life: 0,
            doom: None,
        }
    }

    /// Whether a process is running.
    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Whether groups divide partitions.
    pub fn is_elastic(&self) -> bool {
        self.settings.is_elastic()
    }

    /// The least and the most queues of a topic in queue mode; `None` if none is in this run.
    pub fn queue_bounds(&self) -> Option<(u32, u32)> {
        let value = |key| {
            let found = self.settings.queues.iter().find(|(other, _)| *other == key);
            found.and_then(|(_, value)| value.parse().ok())
        };
        Some((value("elastic.queues.min")?, value("elastic.queues.max")?))
    }

    /// How many processes there have been.
    pub fn lives(&self) -> u64 {
        self.life
    }

    /// The disk as the running process sees it.
    pub fn disk(&self) -> Option<&FaultDisk> {
        self.process.as_ref().map(|process| &process.disk)
    }

    /// How many entries are queued and not committed.
    pub fn queued(&self) -> u64 {
        self.process.as_ref().map_or(0, |process| {
            process.store().last().0 - process.store().committed().0
        })
    }

    /// The state, while a process is running.
    pub fn node(&self) -> Option<&Node> {
        self.process.as_ref().map(Process::node)
    }
}

impl Process {
    fn store(&self) -> &Store {
        self.engine.store()
    }

    fn node(&self) -> &Node {
        self.engine.node()
    }

    /// Applies and journals what was decided.
    fn run(&mut self, ctx: &Ctx<'_>, commands: Vec<Command>) {
        let ((), outcome) = self.engine.update(ctx.world.now(), |update| update.run(commands));
        self.pass_on(outcome);
    }

    /// Hands out the answers that came of a change. Returns the entry that its own answer waits for.
    fn pass_on(&mut self, outcome: Outcome) -> Lsn {
        let after = outcome.after;
        self.wakes += u64::from(!outcome.look_again.is_empty());
        self.planning.is_wanted |= outcome.plan_soon;
        let noticed = outcome.notices.into_iter().map(|notice| (after, notice));
        self.notices.extend(noticed);
        for Reply { token, answer } in outcome.replies {
            let answer = groups::answer_of(self.node(), answer);
            self.deliver(token, answer, after);
        }
        after
    }

    fn deliver(&mut self, token: Token, answer: Answer, after: Lsn) {
        let Some(lane) = self.tokens.remove(&token) else {
            return;
        };
        for (_, slot) in self.lanes.entry(lane).or_default() {
            if matches!(slot, Slot::Parked(parked) if *parked == token) {
                *slot = Slot::Ready(Box::new(answer), after);
                return;
            }
        }
    }

    /// After anything has happened: the oracles hear of new entries, answers that may leave do, and what must happen later
    /// is scheduled.
    fn follow_up(&mut self, ctx: &mut Ctx<'_>, life: u64, settings: &Settings) {
        self.tell_news(ctx);
        self.flush(ctx, life);
        // What fetches hand out may be noted in the journal.
        self.tell_news(ctx);
        self.think_later(ctx, life);
        if !settings.queues.is_empty() {
            self.count_later(ctx, life);
        }
        if !self.commit_scheduled && self.store().last() > self.store().committed() {
            self.commit_scheduled = true;
            let pause_us = match ctx.world.rng.below(4) {
                0 => ctx.world.rng.between(0, settings.commit_pause_us),
                _ => ctx.world.rng.between(0, 2_000),
            };
            ctx.world.after_us(pause_us, Event::Broker(life, Chore::Commit));
        }
        let next = self.engine.next_deadline();
        if let Some(next) = next
            && self.armed.is_none_or(|armed| next < armed)
        {
            self.armed = Some(next);
            ctx.world.at_mono_ms(next, Event::Broker(life, Chore::Groups));
        }
    }

    fn tell_news(&mut self, ctx: &mut Ctx<'_>) {
        for (lsn, notice) in std::mem::take(&mut self.notices) {
            if notice.text.contains("expelled") {
                ctx.saw(crate::sights::Sight::MemberExpelled);
            }
            ctx.world
                .trace(format_args!("group {}: {}", notice.group, notice.text));
            ctx.oracle.replay.noticed(lsn.0, &notice);
        }
        for (lsn, entry) in self.engine.journal().news() {
            ctx.oracle.replay.appended(lsn.0, entry);
        }
    }

    /// Lets the answers go that may.
    fn flush(&mut self, ctx: &mut Ctx<'_>, life: u64) {
        let waiting = self.lanes.iter().filter(|(_, slots)| !slots.is_empty());
        let lanes: Vec<Lane> = waiting.map(|(lane, _)| *lane).collect();
        for lane in lanes {
            while self.flush_front(ctx, life, lane) {}
        }
    }

    fn flush_front(&mut self, ctx: &mut Ctx<'_>, life: u64, lane: Lane) -> bool {
        let Some((call, slot)) = self.lanes.get_mut(&lane).and_then(VecDeque::pop_front) else {
            return false;
        };
        let answer = match slot {
            Slot::Ready(answer, after) if self.may_leave(after) => *answer,
            Slot::Fetch(fetching) if !fetching.looks(ctx, self.wakes) => {
                self.unflush(lane, call, Slot::Fetch(fetching));
                return false;
            }
            Slot::Fetch(mut fetching) => match self.fetch(ctx, life, &mut fetching) {
                Some((got, after)) => {
                    let answer = Box::new(Answer::Fetched(got));
                    self.unflush(lane, call, Slot::Ready(answer, after));
                    return self.may_leave(after);
                }
                None => {
                    if !fetching.is_parked {
                        fetching.is_parked = true;
                        ctx.saw(crate::sights::Sight::FetchParked);
                        ctx.world
                            .at_mono_ms(fetching.until_ms, Event::Broker(life, Chore::Fetches));
                    }
                    self.unflush(lane, call, Slot::Fetch(fetching));
                    return false;
                }
            },
            waiting => {
                self.unflush(lane, call, waiting);
                return false;
            }
        };
        ctx.net.answer(ctx.world, lane, call, answer);
        true
    }

    /// Whether what an answer tells is durable.
    fn may_leave(&self, after: Lsn) -> bool {
        after <= self.store().committed() || self.fault == Some(Fault::AnswersBeforeDurable)
    }

    fn unflush(&mut self, lane: Lane, call: CallId, slot: Slot) {
        self.lanes.entry(lane).or_default().push_front((call, slot));
    }

    /// Takes in what the store's listeners were told.
    fn listen(&mut self) -> Told {
        std::mem::take(
            &mut *self
                .told
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }
}

/// What the store tells, for [`Process::listen`].
fn listen_to(store: &Store) -> Arc<Mutex<Told>> {
    let told = Arc::new(Mutex::new(Told::default()));
    let listener = Arc::clone(&told);
    store.on_commit(Box::new(move |commit| {
        let mut told = listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        told.tails.extend_from_slice(commit.tails);
    }));
    let listener = Arc::clone(&told);
    store.on_event(Box::new(move |event| {
        let mut told = listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            StoreEvent::SegmentSealed { .. } => told.sealed += 1,
            StoreEvent::Poisoned { .. } => told.poisoned = true,
            _ => {}
        }
    }));
    told
}
