//! A member of the group: an unmodified librdkafka consumer in a thread of its own, used as an ordinary program uses it.
//!
//! It polls, works on each record for a fixed time, stores the offset when the work is done, and leaves the commit to
//! librdkafka's timer. Sleeping is exact only to some tens of microseconds, so that short work is slept off in pieces of
//! a few milliseconds; what is in such a piece counts as in work from its beginning to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anabranch_wire::slot::{slot_of_batch, slot_of_key};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{BorrowedMessage, Headers};
use rdkafka::{ClientContext, Message, Offset, TopicPartitionList};

use super::backlog::HEADER;
use super::journal::{Came, Clock, Delivered, Journal};
use super::place::Place;
use crate::client::setup_error;
use crate::failure::{Failure, Outcome};

/// How long one wait for a record lasts.
const POLL: Duration = Duration::from_millis(50);

/// How much work is slept off at once.
const PIECE: Duration = Duration::from_millis(8);

/// Most records of a piece, for work that takes no time.
const PIECE_RECORDS_MAX: u128 = 64;

/// How much a piece that ended late is made up for by the next.
const CATCH_UP: Duration = Duration::from_millis(4);

/// How often librdkafka commits what is done.
const COMMIT_INTERVAL_MS: &str = "1000";

/// What all members have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) clock: Clock,
    pub(crate) cost: Duration,
    /// `classic` or `consumer`.
    pub(crate) protocol: &'static str,
    pub(crate) delivered: Arc<Delivered>,
    /// What happens to members, for people.
    pub(crate) tell: Sender<String>,
}

/// A member that was started.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) journal: Arc<Journal>,
    pub(crate) started_us: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Outcome>>,
}

impl Member {
    /// Starts a consumer, which joins the group.
    pub(crate) fn start(number: u32, place: &Place, common: &Common) -> Outcome<Member> {
        let name = format!("member-{number}");
        let mut config = place.client()?;
        for (key, value) in [
            ("client.id", name.as_str()),
            ("group.id", &place.group),
            ("group.protocol", common.protocol),
            ("auto.offset.reset", "earliest"),
            ("enable.auto.offset.store", "false"),
            ("auto.commit.interval.ms", COMMIT_INTERVAL_MS),
        ] {
            config.set(key, value);
        }
        let journal = Arc::new(Journal::new());
        let worker = Worker {
            number,
            name: name.clone(),
            topic: place.topic.clone(),
            common: common.clone(),
            journal: Arc::clone(&journal),
            piece: Mutex::new(Piece::default()),
        };
        let consumer: BaseConsumer<Worker> = config
            .create_with_context(worker)
            .map_err(|error| Failure::usage(setup_error(&error)))?;
        consumer
            .subscribe(&[&place.topic])
            .map_err(|error| Failure::failed(format!("cannot subscribe: {error}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || work(consumer, &told))
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Member {
            name,
            journal,
            started_us: common.clock.now_us(),
            stop,
            thread: Some(thread),
        })
    }

    /// Tells it to finish what it is at, commit, and leave.
    pub(crate) fn leave(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to leave.
    pub(crate) fn is_leaving(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether its thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end; its failure if it had one.
    pub(crate) fn join(&mut self) -> Outcome {
        self.leave();
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(Failure::failed(format!("{} ended in a panic", self.name))),
        }
    }
}

/// A thread must not go on behind the broker's end.
impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// The loop of an ordinary consumer.
fn work(consumer: BaseConsumer<Worker>, stop: &AtomicBool) -> Outcome {
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
            // librdkafka goes on by itself where it can.
            Some(Err(KafkaError::MessageConsumptionFatal(code))) => {
                return Err(Failure::failed(format!(
                    "{} cannot go on: {code}",
                    consumer.context().name
                )));
            }
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
    came: Vec<Came>,
    /// When work on them began; `None` if there are none.
    began: Option<Instant>,
    /// Where the work on the piece before ended by the clock of exact sleeps.
    due: Option<Instant>,
    partition: i32,
}

/// The consumer's context: librdkafka reports rebalances and commits to it, within `poll`, on the member's thread.
struct Worker {
    number: u32,
    name: String,
    topic: String,
    common: Common,
    journal: Arc<Journal>,
    piece: Mutex<Piece>,
}

impl Worker {
    fn piece(&self) -> MutexGuard<'_, Piece> {
        self.piece.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins work on a record; sleeps once enough has come together.
    fn take(&self, consumer: &BaseConsumer<Self>, message: &BorrowedMessage<'_>) {
        let slot = match message.key() {
            Some(key) => slot_of_key(key),
            None => slot_of_batch(message.offset()),
        };
        let full = {
            let mut piece = self.piece();
            piece.began.get_or_insert_with(Instant::now);
            piece.partition = message.partition();
            piece.came.push(Came {
                record: number(message),
                offset: message.offset(),
                slot,
            });
            let records = PIECE.as_nanos() / self.common.cost.as_nanos().max(1);
            piece.came.len() as u128 >= records.clamp(1, PIECE_RECORDS_MAX)
        };
        if full {
            self.finish(consumer);
        }
    }

    /// Finishes the records that are in work: sleeps for them, writes them down, stores the offset behind them.
    fn finish(&self, consumer: &BaseConsumer<Self>) {
        let mut piece = self.piece();
        let Some(began) = piece.began.take() else { return };
        let from = piece.due.filter(|due| *due + CATCH_UP >= began).unwrap_or(began);
        let due = from + self.common.cost * u32::try_from(piece.came.len()).unwrap_or(u32::MAX);
        piece.due = Some(due);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let came = std::mem::take(&mut piece.came);
        let clock = self.common.clock;
        self.journal.worked(
            self.number,
            &came,
            clock.us(began),
            clock.now_us(),
            &self.common.delivered,
        );
        let Some(last) = came.last() else { return };
        // Refused if the partition was taken away in the meantime; then the records come again, which is the promise.
        let _ = consumer.store_offset(&self.topic, piece.partition, last.offset);
    }

    fn tell(&self, what: &str) {
        // Nobody listens any more once the demo is at its end.
        let _ = self.common.tell.send(format!("{} {what}", self.name));
    }
}

/// Which record of the list it is; a number that no record has if it does not say.
fn number(message: &BorrowedMessage<'_>) -> u32 {
    let headers = message.headers();
    let header = headers.and_then(|headers| headers.iter().find(|header| header.key == HEADER));
    let value = header.and_then(|header| header.value);
    let text = value.and_then(|value| std::str::from_utf8(value).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
}

impl ClientContext for Worker {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, _error: KafkaError, _reason: &str) {}
}

impl ConsumerContext for Worker {
    /// What is in work is finished before a partition goes to another member.
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let places = |list: &TopicPartitionList| {
            let elements = list.elements();
            let names: Vec<String> = elements
                .iter()
                .map(|one| format!("{}/{}", one.topic(), one.partition()))
                .collect();
            names.join(" ")
        };
        match rebalance {
            Rebalance::Assign(list) if list.count() == 0 => {
                self.tell("is in the group and has nothing to read");
            }
            Rebalance::Assign(list) => self.tell(&format!("reads {}", places(list))),
            Rebalance::Revoke(list) => {
                self.finish(consumer);
                if list.count() > 0 {
                    self.tell(&format!("gives up {}", places(list)));
                }
            }
            Rebalance::Error(_) => {}
        }
        self.journal.reassigned();
    }

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        if result.is_err() {
            return;
        }
        let now_us = self.common.clock.now_us();
        for one in offsets.elements() {
            if let (Ok(()), Offset::Offset(offset)) = (one.error(), one.offset()) {
                self.journal.committed(offset, now_us);
            }
        }
    }
}
