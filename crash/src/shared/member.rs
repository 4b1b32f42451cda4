//! A member that comes, works record by record, commits by hand, and leaves; again and again.

use super::ledger::Ledger;
use super::writer::Line;
use super::{GROUP, TOPIC};
use crate::rng::Rng;
use anyhow::{Context, Result};
use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The work on a record.
const RECORD_US: u64 = 800;
/// Between two commits.
const COMMIT_MS: u64 = 120;
/// How long a member waits for the broker before it leaves.
const GOODBYE_WAIT: Duration = Duration::from_secs(5);
/// How long leaving may take.
const LEAVE_WAIT: Duration = Duration::from_secs(2);
/// A slice offset: the slice's id above, the log's offset below.
const OFFSET_BITS: u32 = 46;

/// What was done and is not committed: the position, and the offsets in the log.
#[derive(Default)]
struct Undone {
    position: Option<i64>,
    offsets: Vec<i64>,
}

/// Commits what was done before a partition goes.
struct Giving {
    ledger: Arc<Ledger>,
    done: Mutex<Undone>,
}

impl ClientContext for Giving {}

impl ConsumerContext for Giving {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(_) = rebalance {
            self.commit(consumer);
            // What could not be committed comes again, to whoever gets it.
            *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Undone::default();
        }
    }
}

impl Giving {
    fn note(&self, at: i64, offset: i64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.position = Some(at + 1);
        done.offsets.push(offset);
    }

    /// Commits what was done. A commit that fails promises nothing: the broker is down.
    fn commit(&self, consumer: &BaseConsumer<Self>) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(position) = done.position else {
            return;
        };
        let mut list = TopicPartitionList::new();
        let is_listed = list
            .add_partition_offset(TOPIC, 0, Offset::Offset(position))
            .is_ok();
        if is_listed && consumer.commit(&list, CommitMode::Sync).is_ok() {
            self.ledger.committed(&done.offsets);
            *done = Undone::default();
        }
    }
}

/// Lives again and again until told to stop.
pub(crate) fn run(
    address: &str,
    ledger: &Arc<Ledger>,
    stop: &AtomicBool,
    number: u64,
    seed: u64,
) -> Result<()> {
    let mut rng = Rng::new(seed * 100 + number);
    let mut lives = 0;
    while !stop.load(Ordering::Relaxed) {
        let until = Instant::now() + Duration::from_millis(1_500 + rng.below(4_000));
        // No two members of one life have the same number.
        live(address, ledger, stop, (number + lives * 10, until))?;
        lives += 1;
        thread::sleep(Duration::from_millis(rng.below(700)));
    }
    Ok(())
}

fn live(
    address: &str,
    ledger: &Arc<Ledger>,
    stop: &AtomicBool,
    (member, until): (u64, Instant),
) -> Result<()> {
    let consumer = open(address, ledger, member)?;
    ledger.moved();
    let mut committed_at = Instant::now();
    while !stop.load(Ordering::Relaxed) && Instant::now() < until {
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(20)) {
            let line = message.payload().and_then(Line::parse);
            let line = line.with_context(|| format!("the value at {} was never sent", message.offset()))?;
            let (slice, offset) = (
                message.offset() >> OFFSET_BITS,
                message.offset() & ((1 << OFFSET_BITS) - 1),
            );
            ledger.taken(member, slice, offset, line);
            thread::sleep(Duration::from_micros(RECORD_US));
            ledger.done(member, offset, line);
            consumer.context().note(message.offset(), offset);
        }
        if committed_at.elapsed() > Duration::from_millis(COMMIT_MS) {
            consumer.context().commit(&consumer);
            committed_at = Instant::now();
        }
    }
    consumer.context().commit(&consumer);
    wait_for_the_broker(&consumer)?;
    ledger.moved();
    leave(&consumer)
}

/// Says goodbye. Dropping it alone does not, where partitions are taken away one by one.
fn leave(consumer: &BaseConsumer<Giving>) -> Result<()> {
    consumer.unsubscribe();
    let begun = Instant::now();
    while begun.elapsed() < LEAVE_WAIT && consumer.assignment()?.count() > 0 {
        // What is still in its hands was not worked on, and comes again.
        consumer.poll(Duration::from_millis(20));
    }
    consumer.poll(Duration::from_millis(50));
    Ok(())
}

/// Right after a restart a library does not yet know its coordinator again, and says no goodbye. The broker keeps such a member
/// for its session, which begins anew with each restart: the group would be full of members that are not there.
fn wait_for_the_broker(consumer: &BaseConsumer<Giving>) -> Result<()> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(TOPIC, 0, Offset::Invalid)?;
    let begun = Instant::now();
    while begun.elapsed() < GOODBYE_WAIT {
        if consumer
            .committed_offsets(list.clone(), Duration::from_millis(500))
            .is_ok()
        {
            break;
        }
    }
    Ok(())
}

fn open(address: &str, ledger: &Arc<Ledger>, member: u64) -> Result<BaseConsumer<Giving>> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", address)
        .set("group.id", GROUP)
        .set("client.id", format!("sharer-{member}"))
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("reconnect.backoff.max.ms", "100");
    match member % 3 {
        0 => config.set("group.protocol", "consumer"),
        1 => config.set("partition.assignment.strategy", "cooperative-sticky"),
        _ => config.set("partition.assignment.strategy", "range"),
    };
    if !member.is_multiple_of(3) {
        config
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "300");
    }
    let giving = Giving {
        ledger: Arc::clone(ledger),
        done: Mutex::default(),
    };
    let consumer: BaseConsumer<Giving> = config
        .create_with_context(giving)
        .context("cannot create a consumer")?;
    consumer.subscribe(&[TOPIC])?;
    Ok(consumer)
}
