//! The broker: the engine behind its lock, and what connects it with connections, threads and the clock.
//!
//! ```text
//!                 with / update / group: one short lock
//! api/* ------------------------------------------------+--> Core { engine, parked fetches and joins }
//!                                                       |       | decisions become entries, in the same lock
//!                                                       v       v
//!                                                      Store (commit queue) --> commit thread
//!                                                                                   |
//!      connections <-- Durable::advance <-- high watermarks, parked fetches <-- committed()
//! ```
//!
//! Nothing blocks under the lock; what the store does about deleted records, once the deletion itself is durable, is
//! left to a task by `log_effects`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_core::cursor::Record;
use anabranch_core::elastic::Snapshot;
use anabranch_core::group::{
    Caller, Connection, Coordinator, CountWanted, Effects, Order, Ordered, Token, Topics,
};
use anabranch_core::ids::{LogId, Lsn, Now, Offset};
use anabranch_core::limits::SCAN_CACHE_BYTES_MAX;
use anabranch_core::node::{LogEffect, Node};
use anabranch_engine::counting::{CountTask, Counted, Counting};
use anabranch_engine::fetch::{Fetch, Look, Reads};
use anabranch_engine::recalling::RecallTask;
use anabranch_engine::slices::ScanCache;
use anabranch_engine::slices::SourceError;
use anabranch_engine::{Engine, Outcome};
use anabranch_store::Store;
use anabranch_wire::ErrorCode;
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use crate::budget::Budget;
use crate::clock::Clock;
use crate::connection::Shared;
use crate::exposition::Insight;
use crate::fetch_wait::FetchWaits;
use crate::group_clock::GroupClock;
use crate::group_replies::{GroupReplies, Waiting};

/// Requests that are worked on by threads of their own at a time. Each may hold one batch, decompressed.
const TURNS: usize = 4;

/// What all handlers share.
pub(crate) struct Broker {
    core: Mutex<Core>,
    /// To read from without the lock; appends go through the engine.
    pub(crate) store: Arc<Store>,
    /// Batches with their records found, for readers of slices.
    pub(crate) scans: ScanCache,
    pub(crate) shared: Arc<Shared>,
    /// Memory for fetch answers.
    pub(crate) responses: Budget,
    /// Turns of requests that are worked on by threads of their own.
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) clock: Clock,
    pub(crate) cluster_id: String,
    pub(crate) node_id: i32,
    pub(crate) data_dir: PathBuf,
    /// A deadline of the coordinator has moved nearer.
    pub(crate) deadline_moved: Notify,
    /// The planner of elastic groups is to be asked.
    pub(crate) plan_wanted: Notify,
    /// Queue counts may have to change: members came or went, or configurations changed.
    pub(crate) queues_wanted: Notify,
    /// Something was decided or refused.
    pub(crate) decided: Notify,
    counting: Mutex<Counting>,
    /// What the store is to do about logs now.
    pub(crate) log_effects: mpsc::UnboundedSender<Vec<LogEffect>>,
    short_of_space: AtomicBool,
    /// What scrapes of the metrics remember.
    pub(crate) insight: Insight,
    /// Why the broker must end, once it must.
    fatal: watch::Sender<Option<String>>,
}

/// What the lock guards.
pub(crate) struct Core {
    pub(crate) engine: Engine<Arc<Store>>,
    pub(crate) waits: FetchWaits,
    replies: GroupReplies,
    /// The time that sessions of members go by.
    pub(crate) group_clock: GroupClock,
    /// The deadline that the timer task sleeps until, milliseconds of group time.
    armed: Option<u64>,
}

impl Core {
    /// The state as it is by now.
    pub(crate) fn node(&self) -> &Node {
        self.engine.node()
    }
}

/// One change of the state under way, under the lock.
pub(crate) type Update<'a> = anabranch_engine::Update<'a, Arc<Store>>;

/// What a broker is made of.
pub(crate) struct Parts {
    pub(crate) engine: Engine<Arc<Store>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Clock,
    pub(crate) cluster_id: String,
    pub(crate) data_dir: PathBuf,
    pub(crate) log_effects: mpsc::UnboundedSender<Vec<LogEffect>>,
}

impl Broker {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            engine,
            shared,
            clock,
            cluster_id,
            data_dir,
            log_effects,
        } = parts;
        let store = Arc::clone(engine.journal());
        let group_clock = GroupClock::starting_at(store.last());
        let responses = Budget::new(shared.limits.response_budget_bytes);
        let node_id = engine.node().node_id();
        let (waits, replies) = (FetchWaits::default(), GroupReplies::default());
        Self {
            core: Mutex::new(Core {
                engine,
                waits,
                replies,
                group_clock,
                armed: None,
            }),
            store,
            scans: ScanCache::new(SCAN_CACHE_BYTES_MAX),
            shared,
            responses,
            turns: Arc::new(Semaphore::new(TURNS)),
            clock,
            cluster_id,
            node_id,
            data_dir,
            deadline_moved: Notify::new(),
            plan_wanted: Notify::new(),
            queues_wanted: Notify::new(),
            decided: Notify::new(),
            counting: Mutex::new(Counting::default()),
            log_effects,
            short_of_space: AtomicBool::new(false),
            insight: Insight::default(),
            fatal: watch::Sender::new(None),
        }
    }

    /// Counts an error and gives its number.
    pub(crate) fn code(&self, code: ErrorCode) -> i16 {
        if code != ErrorCode::None {
            self.shared.metrics.error(code);
        }
        code.code()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poisoned| {
            // A handler panicked in the middle of a change: the state in memory may not be what the journal says.
            self.fail("a request was interrupted by a fault in the broker itself".to_owned());
            poisoned.into_inner()
        })
    }

    /// Looks, or changes what is volatile.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Core) -> T) -> T {
        work(&mut self.lock())
    }

    /// Looks at the state and perhaps changes it. Returns with the entry that the answer must wait for.
    pub(crate) fn update<T>(&self, work: impl FnOnce(&mut Update<'_>) -> T) -> (T, Lsn) {
        let now = self.clock.now();
        let mut core = self.lock();
        let before = core.node().state_lsn();
        let (result, outcome) = core.engine.update(now, work);
        if outcome.after > before {
            self.queues_wanted.notify_one();
        }
        (result, self.pass_on(&mut core, outcome))
    }

    /// Hands a request to the coordinator. Returns with the entry that the answer must wait for.
    pub(crate) fn group<T>(
        &self,
        work: impl FnOnce(&mut Coordinator, &dyn Topics, Now) -> (T, Effects),
    ) -> (T, Lsn) {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let (result, outcome) = core.engine.group(now, work);
        (result, self.pass_on(&mut core, outcome))
    }

    /// The same for a request whose answer comes under a token, perhaps later.
    pub(crate) fn group_reply(
        &self,
        work: impl FnOnce(&mut Coordinator, &dyn Topics, Now, Token) -> Effects,
    ) -> Waiting {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let (token, outcome) = core.engine.group_reply(now, work);
        let waiting = core.replies.wait(token);
        self.pass_on(&mut core, outcome);
        waiting
    }

    /// Nobody waits for the answer to `token` any more.
    pub(crate) fn group_reply_unwanted(&self, token: Token) {
        let mut core = self.lock();
        if core.replies.forget(token) {
            let now = core.group_clock.now(self.clock.now());
            let outcome = core.engine.disconnected(now, token);
            self.pass_on(&mut core, outcome);
        }
    }

    /// A client has introduced itself on its connection.
    pub(crate) fn introduced(&self, caller: &Caller) {
        self.lock().engine.introduced(caller);
    }

    /// A connection has ended.
    pub(crate) fn connection_closed(&self, connection: Connection) {
        self.lock().engine.connection_closed(connection);
    }

    /// Looks at the groups. Returns with the entry that the answer must wait for.
    pub(crate) fn group_read<T>(&self, work: impl FnOnce(&Coordinator, &dyn Topics) -> T) -> (T, Lsn) {
        let core = self.lock();
        let node = core.engine.node();
        (work(node.groups(), &node.partitions()), node.state_lsn())
    }

    /// Notes what a fetch has searched in vain; whether it should look again at once.
    pub(crate) fn note_searches(&self, look: &Look, reads: &Reads) -> bool {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        core.engine.note_searches(now, look, reads)
    }

    /// Notes which slices are fetched on a connection; see [`Engine::slices_fetched`].
    pub(crate) fn slices_fetched(&self, connection: Connection, look: &Look, wait_ms: u64) {
        if Fetch::has_slices(look) {
            let mut core = self.lock();
            let now = core.group_clock.now(self.clock.now());
            core.engine.slices_fetched(now, connection, look, wait_ms);
        }
    }

    /// Reserves what a fetch is about to hand out; see [`Engine::reserve`]. Returns with the entry that its answer waits for.
    pub(crate) fn reserve(&self, look: &Look, reads: &Reads) -> Option<Lsn> {
        if !Fetch::has_slices(look) {
            return Some(Lsn(0));
        }
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let outcome = core.engine.reserve(now, look, reads)?;
        Some(self.pass_on(&mut core, outcome))
    }

    /// Asks the planner; returns what is to be counted before it can say more.
    pub(crate) fn plan(&self, counted: &Counted) -> Vec<CountTask> {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let before = core.node().state_lsn();
        let (tasks, outcome) = core.engine.plan(now, counted);
        self.pass_on_decisions(&mut core, before, outcome);
        tasks
    }

    /// Counts records for the planner; reads from the disk.
    pub(crate) fn count(&self, tasks: &[CountTask]) -> Result<Counted, (LogId, SourceError)> {
        let mut counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        counting.count(&self.store, &self.scans, tasks)
    }

    /// Gives the planner an operator's order. With what came of it: what it wants counted first, and the entry that the answer
    /// must wait for. `None`: no such group.
    pub(crate) fn order(
        &self,
        group: &str,
        counted: &Counted,
        order: (Order, bool),
    ) -> Option<(Ordered, Vec<CountTask>, Lsn)> {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let before = core.node().state_lsn();
        let (ordered, outcome) = core.engine.order(now, group, counted, order);
        let after = self.pass_on_decisions(&mut core, before, outcome);
        let (ordered, tasks) = ordered?;
        Some((ordered, tasks, after))
    }

    /// The group as the planner sees it, and the moment.
    pub(crate) fn look_at(&self, group: &str, counted: &Counted) -> Option<(Snapshot, Now)> {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        Some((core.engine.look_at(now, group, counted)?, now))
    }

    /// What is to be counted for an exact look at a group.
    pub(crate) fn count_tasks_of(&self, group: &str) -> Vec<CountTask> {
        let core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        core.engine.count_tasks_of(now, group)
    }

    /// The tasks of counting that.
    pub(crate) fn count_tasks(&self, wanted: impl Iterator<Item = CountWanted>) -> Vec<CountTask> {
        self.lock().engine.count_tasks(wanted)
    }

    /// Stops the planner for a group, or lets it go on, and the entry to wait for. `None`: there is no such group.
    pub(crate) fn set_paused(&self, group: &str, paused: bool) -> Option<Lsn> {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let (exists, outcome) = core.engine.set_paused(now, group, paused);
        let after = self.pass_on(&mut core, outcome);
        exists.then_some(after)
    }

    /// Takes what a member had been handed before the broker was started.
    pub(crate) fn recalled(&self, task: &RecallTask, records: &[Record]) {
        let mut core = self.lock();
        let now = core.group_clock.now(self.clock.now());
        let outcome = core.engine.recalled(now, task, records);
        self.pass_on(&mut core, outcome);
    }

    /// When the planner wants to be asked next, real time; `None` if only something that happens can bring it on.
    pub(crate) fn next_plan(&self) -> Option<u64> {
        let core = self.lock();
        core.group_clock
            .real(core.engine.next_plan()?, self.clock.now().mono_ms)
    }

    /// Does a chore of the engine.
    pub(crate) fn chore(&self, work: impl FnOnce(&mut Engine<Arc<Store>>, Now) -> Outcome) {
        let now = self.clock.now();
        let mut core = self.lock();
        let outcome = work(&mut core.engine, now);
        self.pass_on(&mut core, outcome);
    }

    /// Tells everybody what has come of a change. Returns the entry that its answer must wait for.
    pub(crate) fn pass_on(&self, core: &mut Core, outcome: Outcome) -> Lsn {
        let Outcome {
            after,
            replies,
            notices,
            look_again,
            plan_soon,
        } = outcome;
        core.group_clock.queued(after, self.clock.now().mono_ms);
        core.replies.deliver(replies, after);
        for notice in notices {
            tracing::info!(group = notice.group, "{}", notice.text);
        }
        look_again.into_iter().for_each(|log| core.waits.wake(log));
        if plan_soon {
            self.plan_wanted.notify_one();
            self.queues_wanted.notify_one();
        }
        let next = core.engine.next_deadline();
        if next.is_some_and(|next| core.armed.is_none_or(|armed| next < armed)) {
            core.armed = next;
            self.deadline_moved.notify_one();
        }
        after
    }

    /// The same after the planner or the machine of queue mode was asked. Who waits for decisions looks through the logs of all
    /// groups under the lock, and most thoughts decide nothing: he is woken only if there is an entry since `before`.
    pub(crate) fn pass_on_decisions(&self, core: &mut Core, before: Lsn, outcome: Outcome) -> Lsn {
        let after = self.pass_on(core, outcome);
        if after > before {
            self.decided.notify_waiters();
        }
        after
    }

    /// Lets the coordinator act on what is due, and says when it wants to be called again: at a monotonic time, or only
    /// when `deadline_moved` says so.
    pub(crate) fn on_time(&self) -> Option<u64> {
        let mut core = self.lock();
        let real = self.clock.now();
        let now = core.group_clock.now(real);
        // The caller will sleep until whatever comes out of this, so nobody needs to wake it meanwhile.
        core.armed = Some(0);
        let outcome = core.engine.on_time(now);
        self.pass_on(&mut core, outcome);
        core.armed = core.engine.next_deadline();
        let deadline = core.armed?;
        core.group_clock.real(deadline, real.mono_ms)
    }

    /// A group of entries is durable.
    pub(crate) fn committed(&self, upto: Lsn, tails: &[(LogId, Offset)]) {
        let effects = {
            let mut core = self.lock();
            if core.group_clock.committed(upto, self.clock.now().mono_ms) {
                self.deadline_moved.notify_one();
            }
            let effects = core.engine.committed(upto, tails);
            tails.iter().for_each(|(log, _)| core.waits.wake(*log));
            // A fetch below a log's new start is answered with an error.
            effects.iter().for_each(|effect| core.waits.wake(effect.log()));
            effects
        };
        if !effects.is_empty() {
            // The receiver is gone only when the server has ended; then the next start does it.
            let _ = self.log_effects.send(effects);
        }
        self.shared.metrics.commit_groups.inc();
        self.shared.durable.advance(upto);
    }

    /// A topic came into being because somebody asked for it.
    pub(crate) fn auto_created(&self, name: &str) {
        self.shared.metrics.topics_auto_created.inc();
        tracing::info!(topic = name, "topic created on demand");
    }

    /// Takes the store out, for it to be closed; `None` if somebody else still uses it.
    pub(crate) fn into_store(self) -> Option<Store> {
        drop(self.core);
        Arc::into_inner(self.store)
    }

    /// The broker cannot go on: nothing more is acknowledged, and the process is to end.
    pub(crate) fn fail(&self, why: String) {
        self.shared.durable.fail();
        self.fatal.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                tracing::error!(why, "the broker cannot go on and acknowledges nothing any more");
                *known = Some(why);
            }
            is_first
        });
    }

    /// Why the broker must end; waits until it must.
    pub(crate) async fn failed(&self) -> String {
        let mut fatal = self.fatal.subscribe();
        match fatal.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // Unreachable while `self` lives.
            Err(_) => String::new(),
        }
    }

    /// Why the broker must end, if it must.
    pub(crate) fn failure(&self) -> Option<String> {
        self.fatal.borrow().clone()
    }

    /// Answers all that is parked, since the server ends.
    pub(crate) fn release_parked(&self) {
        self.with(|core| {
            core.waits.wake_all();
            core.replies.abandon();
        });
    }

    /// Size of the file system that holds the data, and what of it is free for us, bytes; `None` if that cannot be told.
    pub(crate) fn disk_space(&self) -> Option<(i64, i64)> {
        let found = rustix::fs::statvfs(&self.data_dir).ok()?;
        let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX);
        Some((bytes(found.f_blocks), bytes(found.f_bavail)))
    }

    /// Whether produces are refused for want of disk space.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.short_of_space.load(Ordering::Relaxed)
    }

    /// Notes whether the disk is almost full.
    pub(crate) fn set_short_of_space(&self, short: bool) {
        let before = self.short_of_space.swap(short, Ordering::Relaxed);
        match (before, short) {
            (false, true) => tracing::error!(
                folder = %self.data_dir.display(),
                "the disk is almost full: produces are refused until there is space again; shorten retention or add space"
            ),
            (true, false) => tracing::info!("there is disk space again: produces are accepted"),
            _ => {}
        }
    }
}
