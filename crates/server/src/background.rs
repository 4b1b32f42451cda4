//! What the broker does without being asked.
//!
//! | task | when | what |
//! |---|---|---|
//! | deadlines | at the coordinator's next deadline | expels silent members, ends join phases |
//! | planning | once what was handed out before is known again; then when something happened to an elastic group, and every `elastic.interval.ms` | counts records, asks the planner |
//! | queues | when members of a group come or go, when the state changes, when a delay is over, every second | changes the queue counts of topics in queue mode |
//! | logs | after a deletion is durable | tells the store what is dead |
//! | upkeep | when a segment is sealed or something was deleted, and every [`UPKEEP_INTERVAL`] | a snapshot if one is due; frees and packs segments |
//! | retention | every `log.retention.check.interval.ms` | deletes old records, forgets old cursors and producers |
//! | space | every [`SPACE_INTERVAL`] | refuses produces while the disk is almost full, and frees segments then |
//!
//! All of them end when the server drains. What may wait for the disk runs on threads that may wait.

use std::sync::Arc;
use std::time::Duration;

use anabranch_core::ids::LogId;
use anabranch_core::node::LogEffect;
use anabranch_engine::counting::Thought;
use anabranch_engine::slices::SourceError;
use anabranch_engine::{Engine, log_stats, tell_store};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::broker::Broker;
use crate::shutdown::Phase;

/// How often free space is looked at.
const SPACE_INTERVAL: Duration = Duration::from_secs(1);

/// Without an occasion the store is kept this often.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Sleep of the deadline task when there is no deadline.
const LONG: Duration = Duration::from_secs(3_600);

/// The planner is not asked again sooner than this, unless something happens.
const PLAN_PAUSE: Duration = Duration::from_millis(50);

/// Queue counts are not looked at again sooner than this, unless something happens.
const QUEUES_PAUSE: Duration = Duration::from_millis(10);

/// Rounds of maintenance in a row; more wait for the next occasion.
const ROUNDS_MAX: usize = 64;

/// What the store has to do about logs.
pub(crate) type LogEffects = mpsc::UnboundedReceiver<Vec<LogEffect>>;

/// Starts all tasks. `upkeep` is notified when there may be something to free.
pub(crate) fn spawn(broker: &Arc<Broker>, effects: LogEffects, upkeep: Arc<Notify>) -> Vec<JoinHandle<()>> {
    vec![
        until_drained(broker, deadlines(Arc::clone(broker))),
        until_drained(broker, planning(Arc::clone(broker))),
        until_drained(broker, queues(Arc::clone(broker))),
        until_drained(broker, logs(Arc::clone(broker), effects, Arc::clone(&upkeep))),
        until_drained(broker, keep_up(Arc::clone(broker), upkeep)),
        until_drained(broker, retention(Arc::clone(broker))),
        until_drained(broker, space(Arc::clone(broker))),
    ]
}

fn until_drained(broker: &Arc<Broker>, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let shutdown = Arc::clone(&broker.shared.shutdown);
    tokio::spawn(async move {
        tokio::select! {
            () = task => {}
            () = shutdown.reached(Phase::Draining) => {}
        }
    })
}

async fn deadlines(broker: Arc<Broker>) {
    loop {
        let next = broker.on_time();
        let at = next.map_or_else(|| Instant::now() + LONG, |next| broker.clock.instant(next));
        tokio::select! {
            () = tokio::time::sleep_until(at) => {}
            () = broker.deadline_moved.notified() => {}
        }
    }
}

/// Learns what members had been handed before the broker was started. A range that cannot be read stays unknown: then
/// nothing moves away from that member, which is safe.
async fn recall(broker: &Arc<Broker>) {
    for task in broker.with(|core| core.engine.recalls()) {
        let (reader, log) = (Arc::clone(broker), task.log());
        let read = move || {
            let records = task.read(&reader.store, &reader.scans)?;
            reader.recalled(&task, &records);
            Ok::<_, SourceError>(())
        };
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(%log, %error, "what members were handed before the start cannot be read; they keep it");
            }
            Err(_) => return,
        }
    }
}

/// Lets the planner think, counting for it what it asks for.
async fn planning(broker: Arc<Broker>) {
    recall(&broker).await;
    loop {
        let mut thought = Thought::default();
        while let Some(tasks) = thought.to_count(broker.plan(thought.counted())) {
            let counter = Arc::clone(&broker);
            match tokio::task::spawn_blocking(move || counter.count(&tasks)).await {
                Ok(Ok(more)) => thought.learn(more),
                Ok(Err((log, error))) => {
                    tracing::error!(%log, %error, "records cannot be counted, so nothing is decided about their group");
                    break;
                }
                Err(_) => return,
            }
        }
        let next = broker.next_plan();
        let at = next.map_or_else(|| Instant::now() + LONG, |next| broker.clock.instant(next));
        tokio::select! {
            () = tokio::time::sleep_until(at.max(Instant::now() + PLAN_PAUSE)) => {}
            () = broker.plan_wanted.notified() => {}
        }
    }
}

/// Lets the queue counts of topics follow their groups.
async fn queues(broker: Arc<Broker>) {
    loop {
        let next = broker.adjust_queues();
        let at = next.map_or_else(|| Instant::now() + LONG, |next| broker.clock.instant(next));
        tokio::select! {
            () = tokio::time::sleep_until(at.max(Instant::now() + QUEUES_PAUSE)) => {}
            () = broker.queues_wanted.notified() => {}
        }
    }
}

async fn logs(broker: Arc<Broker>, mut effects: LogEffects, upkeep: Arc<Notify>) {
    while let Some(effects) = effects.recv().await {
        let store = Arc::clone(&broker.store);
        on_thread(move || tell_store(&store, &effects)).await;
        upkeep.notify_one();
    }
}

async fn keep_up(broker: Arc<Broker>, upkeep: Arc<Notify>) {
    let mut written = Instant::now();
    loop {
        // At times without an occasion too: what came too early for a snapshot is to be covered by one in the end.
        let _ = tokio::time::timeout(UPKEEP_INTERVAL, upkeep.notified()).await;
        let store = Arc::clone(&broker);
        let is_due = broker.store.is_snapshot_due(written.elapsed());
        on_thread(move || {
            if is_due {
                write_snapshot(&store);
            }
            maintain(&store);
        })
        .await;
        if is_due {
            written = Instant::now();
        }
    }
}

/// Writes the whole state, so that a restart need not replay what came before.
pub(crate) fn write_snapshot(broker: &Broker) {
    let (lsn, snapshot) = broker.with(|core| core.engine.snapshot());
    if let Err(error) = broker.store.write_snapshot(lsn, &snapshot) {
        tracing::warn!(%error, "no snapshot was written; the next start replays more of the log");
    }
}

fn maintain(broker: &Broker) {
    for _ in 0..ROUNDS_MAX {
        match broker.store.maintain() {
            Ok(done) if done.more => {}
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "segments could not be freed; trying again later");
                return;
            }
        }
    }
}

async fn retention(broker: Arc<Broker>) {
    loop {
        let interval = broker.with(|core| core.node().settings().retention_check_ms);
        tokio::time::sleep(Duration::from_millis(interval.max(1))).await;
        let store = Arc::clone(&broker);
        on_thread(move || retain(&store)).await;
    }
}

/// Deletes what is older or more than the topics keep.
fn retain(broker: &Broker) {
    let logs: Vec<LogId> = broker.with(|core| core.node().logs().map(anabranch_core::log::Log::id).collect());
    let stats = log_stats(&broker.store, logs);
    broker.chore(|engine, now| engine.retain(now, &stats).1);
    broker.chore(Engine::expire_groups);
}

async fn space(broker: Arc<Broker>) {
    let mut interval = tokio::time::interval(SPACE_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let low = broker.store.space().low;
        broker.set_short_of_space(low);
        // The store looks at the disk when it is kept; while space is short that must not wait for an occasion.
        if low {
            let store = Arc::clone(&broker);
            on_thread(move || maintain(&store)).await;
        }
    }
}

/// Runs what may block where it harms nobody. A panic is logged; one under the broker's lock ends the broker as well.
async fn on_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = tokio::task::spawn_blocking(work).await
        && error.is_panic()
    {
        tracing::error!(%error, "a background task of the broker has failed");
    }
}
