//! Members of a group: unmodified librdkafka consumers, each in a thread of its own, as an ordinary program uses them.
//!
//! A member polls, works on each record for a fixed time, stores the offset when the work is done, and leaves the commit
//! to librdkafka's timer. The work is a sleep; as sleeping is exact only to some tens of microseconds, it is done in
//! pieces of some records, and what is in a piece counts as in work from its beginning to its end.

use super::backlog::identity;
use super::verdict::Delivery;
use anyhow::{Context, Result, anyhow, ensure};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{ClientConfig, ClientContext, Message};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long one wait for a record lasts.
const POLL: Duration = Duration::from_millis(20);

/// How much work is slept off at once.
const PIECE: Duration = Duration::from_millis(8);

/// Most records of a piece, for work that takes next to no time.
const PIECE_RECORDS_MAX: u128 = 256;

/// How much a piece that ended late is made up for by the next.
const CATCH_UP: Duration = Duration::from_millis(4);

/// How a group is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// KIP-848.
    Consumer,
    /// The classic protocol, in which all members stop at each change.
    Eager,
    /// The classic protocol in two steps (KIP-429).
    Cooperative,
}

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Self::Consumer, Self::Eager, Self::Cooperative];

    /// A word for the names of numbers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Eager => "eager",
            Self::Cooperative => "cooperative",
        }
    }
}

/// How members work.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) address: String,
    pub(crate) group: String,
    pub(crate) topic: String,
    pub(crate) protocol: Protocol,
    /// Time that a record takes.
    pub(crate) cost: Duration,
    /// How often librdkafka commits what is done; none: the member commits itself, after each piece.
    pub(crate) commit_interval: Option<Duration>,
}

/// The clock of a run: microseconds since it began, and what that is since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begin: Instant,
    begin_wall: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            begin: Instant::now(),
            begin_wall: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    pub(crate) fn us(self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begin).as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn now_us(self) -> u64 {
        self.us(Instant::now())
    }

    /// A moment of the wall clock, in microseconds of this run.
    pub(crate) fn of_wall_ms(self, wall_ms: i64) -> i64 {
        wall_ms.saturating_mul(1000) - i64::try_from(self.begin_wall.as_micros()).unwrap_or(i64::MAX)
    }
}

/// What a member did.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    deliveries: Mutex<Vec<Delivery>>,
    /// When it was given partitions, or had to give some up.
    changes_us: Mutex<Vec<u64>>,
}

impl Journal {
    fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
        of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        Self::lock(&self.deliveries).clone()
    }

    pub(crate) fn first_us(&self) -> Option<u64> {
        Self::lock(&self.deliveries).first().map(|one| one.start_us)
    }

    pub(crate) fn changes_us(&self) -> Vec<u64> {
        Self::lock(&self.changes_us).clone()
    }
}

/// A member that was started.
pub(crate) struct Member {
    pub(crate) number: u32,
    pub(crate) journal: Arc<Journal>,
    /// It was told to join at this moment.
    pub(crate) started_us: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

/// All members of a group that there are or were.
pub(crate) struct Crew {
    job: Job,
    pub(crate) clock: Clock,
    pub(crate) members: Vec<Member>,
    /// Deliveries so far, those of records that came again included.
    delivered: Arc<AtomicU64>,
}

impl Crew {
    pub(crate) fn new(job: Job) -> Self {
        Self {
            job,
            clock: Clock::start(),
            members: Vec::new(),
            delivered: Arc::default(),
        }
    }

    /// Another member joins; its position in [`Self::members`].
    pub(crate) fn join(&mut self) -> Result<usize> {
        let number = u32::try_from(self.members.len())?;
        let started_us = self.clock.now_us();
        let journal = Arc::new(Journal::default());
        let worker = Worker {
            number,
            job: self.job.clone(),
            clock: self.clock,
            journal: Arc::clone(&journal),
            delivered: Arc::clone(&self.delivered),
            piece: Mutex::default(),
        };
        let consumer: BaseConsumer<Worker> = config(&self.job, number)
            .create_with_context(worker)
            .context("cannot make a consumer")?;
        consumer.subscribe(&[&self.job.topic])?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        self.members.push(Member {
            number,
            journal,
            started_us,
            stop,
            thread: Some(std::thread::spawn(move || work(consumer, &told))),
        });
        Ok(self.members.len() - 1)
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Waits until something holds, looking every few milliseconds.
    pub(crate) fn wait(&self, limit: Duration, mut holds: impl FnMut(&Self) -> bool) -> Result<bool> {
        let begin = Instant::now();
        loop {
            if holds(self) {
                return Ok(true);
            }
            if begin.elapsed() > limit {
                return Ok(false);
            }
            let ended = |member: &Member| {
                !member.stop.load(Ordering::Relaxed)
                    && member.thread.as_ref().is_some_and(JoinHandle::is_finished)
            };
            if let Some(member) = self.members.iter().find(|member| ended(member)) {
                return Err(anyhow!("member {} ended by itself", member.number));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Some members join at once; returns when each has had a record.
    pub(crate) fn join_and_work(&mut self, members: usize, limit: Duration) -> Result<()> {
        for _ in 0..members {
            self.join()?;
        }
        let has_begun = |member: &Member| member.journal.first_us().is_some();
        ensure!(
            self.wait(limit, |crew| crew.members.iter().all(has_begun))?,
            "not all {members} members were at work within {} s",
            limit.as_secs()
        );
        Ok(())
    }

    /// A member finishes its piece, commits and leaves.
    pub(crate) fn leave(&mut self, at: usize) -> Result<()> {
        self.members.get_mut(at).map_or(Ok(()), Member::leave)
    }

    /// All members leave, at once; returns everything that was delivered.
    pub(crate) fn finish(mut self) -> Result<Vec<Delivery>> {
        for member in &self.members {
            member.stop.store(true, Ordering::Relaxed);
        }
        for member in &mut self.members {
            member.leave()?;
        }
        Ok(self
            .members
            .iter()
            .flat_map(|member| member.journal.deliveries())
            .collect())
    }
}

impl Member {
    fn leave(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(ended) => ended.map_err(|_| anyhow!("a member panicked"))?,
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            // On the way out of an error; what a member says then is of no use.
            let _ = member.leave();
        }
    }
}

/// What all have in common beside librdkafka's own defaults: the classic protocol beats as often as the other.
fn config(job: &Job, number: u32) -> ClientConfig {
    let mut config = ClientConfig::new();
    let commits = job.commit_interval.is_some();
    let interval_ms = job
        .commit_interval
        .unwrap_or_default()
        .as_millis()
        .max(1)
        .to_string();
    for (key, value) in [
        ("bootstrap.servers", job.address.as_str()),
        ("client.id", &format!("member-{number}")),
        ("group.id", &job.group),
        ("auto.offset.reset", "earliest"),
        ("enable.auto.offset.store", "false"),
        ("enable.auto.commit", if commits { "true" } else { "false" }),
        ("auto.commit.interval.ms", &interval_ms),
    ] {
        config.set(key, value);
    }
    let assignor = match job.protocol {
        Protocol::Consumer => return config.set("group.protocol", "consumer").clone(),
        Protocol::Eager => "range",
        Protocol::Cooperative => "cooperative-sticky",
    };
    config.set("partition.assignment.strategy", assignor);
    config.set("heartbeat.interval.ms", "1000");
    config
}

/// The loop of an ordinary consumer.
fn work(consumer: BaseConsumer<Worker>, stop: &AtomicBool) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let polled = match consumer.poll(Duration::ZERO) {
            Some(polled) => Some(polled),
            None => {
                consumer.context().finish(&consumer);
                consumer.poll(POLL)
            }
        };
        match polled {
            Some(Ok(message)) => consumer.context().take(&consumer, &message),
            Some(Err(error @ KafkaError::MessageConsumptionFatal(_))) => return Err(error.into()),
            // librdkafka goes on by itself where it can.
            Some(Err(_)) | None => {}
        }
    }
    consumer.context().finish(&consumer);
    // Closing commits what is stored and leaves the group.
    drop(consumer);
    Ok(())
}

/// The records that are in work.
#[derive(Default)]
struct Piece {
    came: Vec<(u32, u32)>,
    began: Option<Instant>,
    /// When the work on the piece before should have ended.
    due: Option<Instant>,
    /// Partition and offset of the last record.
    last: (i32, i64),
}

/// The consumer's context: librdkafka reports rebalances to it, within `poll`, on the member's thread.
struct Worker {
    number: u32,
    job: Job,
    clock: Clock,
    journal: Arc<Journal>,
    delivered: Arc<AtomicU64>,
    piece: Mutex<Piece>,
}

impl Worker {
    /// Begins work on a record; sleeps once enough has come together.
    fn take(&self, consumer: &BaseConsumer<Self>, message: &BorrowedMessage<'_>) {
        let Some(identity) = message.payload().and_then(identity) else {
            return;
        };
        if Journal::lock(&self.piece).last.0 != message.partition() {
            self.finish(consumer);
        }
        let full = {
            let mut piece = Journal::lock(&self.piece);
            piece.began.get_or_insert_with(Instant::now);
            piece.last = (message.partition(), message.offset());
            piece.came.push(identity);
            let records = PIECE.as_nanos() / self.job.cost.as_nanos().max(1);
            piece.came.len() as u128 >= records.clamp(1, PIECE_RECORDS_MAX)
        };
        if full {
            self.finish(consumer);
        }
    }

    /// Finishes the records that are in work: sleeps for them, writes them down, stores the offset behind them.
    fn finish(&self, consumer: &BaseConsumer<Self>) {
        let mut piece = Journal::lock(&self.piece);
        let Some(began) = piece.began.take() else { return };
        let from = piece.due.filter(|due| *due + CATCH_UP >= began).unwrap_or(began);
        let due = from + self.job.cost * u32::try_from(piece.came.len()).unwrap_or(u32::MAX);
        piece.due = Some(due);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let came = std::mem::take(&mut piece.came);
        let (start_us, done_us) = (self.clock.us(began), self.clock.now_us());
        self.delivered.fetch_add(came.len() as u64, Ordering::Relaxed);
        Journal::lock(&self.journal.deliveries).extend(came.into_iter().map(|(key, seq)| Delivery {
            member: self.number,
            key,
            seq,
            start_us,
            done_us,
        }));
        // Refused if the partition was taken away in the meantime; then the records come again, which is the promise.
        let _ = consumer.store_offset(&self.job.topic, piece.last.0, piece.last.1);
        if self.job.commit_interval.is_none() {
            let _ = consumer.commit_consumer_state(CommitMode::Sync);
        }
    }
}

impl ClientContext for Worker {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ConsumerContext for Worker {
    /// What is in work is finished before a partition goes to another member.
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if matches!(rebalance, Rebalance::Revoke(_)) {
            self.finish(consumer);
            if self.job.commit_interval.is_none() {
                let _ = consumer.commit_consumer_state(CommitMode::Sync);
            }
        }
        Journal::lock(&self.journal.changes_us).push(self.clock.now_us());
    }
}
