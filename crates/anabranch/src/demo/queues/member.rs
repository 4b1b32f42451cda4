//! A consumer in a thread of its own, used as an ordinary program uses it: it writes down what came, stores the offset, and
//! leaves the commit to librdkafka's timer.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;

use super::super::place::Place;
use crate::client::{Watch, setup_error};
use crate::failure::{Failure, Outcome};

/// How long one wait for a record lasts.
const POLL: Duration = Duration::from_millis(50);

/// How often librdkafka commits what was taken.
const COMMIT_INTERVAL_MS: &str = "250";

/// A member that was started.
pub(super) struct Member {
    name: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Outcome>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// How many partitions it holds.
    share: AtomicUsize,
    /// The numbers of the records that came, in their order.
    came: Mutex<Vec<u64>>,
}

impl Member {
    pub(super) fn start(number: u32, place: &Place, protocol: &str) -> Outcome<Member> {
        let name = format!("member-{number}");
        let mut config = place.client()?;
        for (key, value) in [
            ("client.id", name.as_str()),
            ("group.id", &place.group),
            ("group.protocol", protocol),
            ("auto.offset.reset", "earliest"),
            // While it is closed the library still takes records, which nobody sees: they must not count as done.
            ("enable.auto.offset.store", "false"),
            ("auto.commit.interval.ms", COMMIT_INTERVAL_MS),
        ] {
            config.set(key, value);
        }
        let consumer: BaseConsumer<Watch> = config
            .create_with_context(Watch::default())
            .map_err(|error| Failure::usage(setup_error(&error)))?;
        consumer
            .subscribe(&[&place.topic])
            .map_err(|error| Failure::failed(format!("cannot subscribe: {error}")))?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || work(consumer, &of_thread))
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Member {
            name,
            shared,
            thread: Some(thread),
        })
    }

    /// How many partitions it holds.
    pub(super) fn share(&self) -> usize {
        self.shared.share.load(Ordering::Relaxed)
    }

    /// Adds what has come so far.
    pub(super) fn add_to(&self, all: &mut BTreeSet<u64>) {
        let came = self.shared.came.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(came.iter());
    }

    /// Has it leave; what came to it.
    pub(super) fn end(mut self) -> Outcome<Vec<u64>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended?,
            Some(Err(_)) | None => return Err(Failure::failed(format!("{} ended in a panic", self.name))),
        }
        let mut came = self.shared.came.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *came))
    }
}

/// A thread must not go on behind the broker's end.
impl Drop for Member {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The loop of an ordinary consumer.
fn work(consumer: BaseConsumer<Watch>, shared: &Shared) -> Outcome {
    while !shared.stop.load(Ordering::Relaxed) {
        match consumer.poll(POLL) {
            Some(Ok(message)) => {
                let text = message
                    .payload()
                    .and_then(|value| std::str::from_utf8(value).ok());
                let number = text.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
                let mut came = shared.came.lock().unwrap_or_else(PoisonError::into_inner);
                came.push(number);
                // Refused if the partition was taken away in the meantime; then the record comes again, which is the promise.
                let _ = consumer.store_offset_from_message(&message);
            }
            // librdkafka goes on by itself where it can.
            Some(Err(KafkaError::MessageConsumptionFatal(code))) => {
                return Err(Failure::failed(format!("a member cannot go on: {code}")));
            }
            Some(Err(_)) | None => {}
        }
        let share = consumer.assignment().map_or(0, |held| held.count());
        shared.share.store(share, Ordering::Relaxed);
    }
    // What came is done; without anything to commit this is an error that means nothing.
    let _ = consumer.commit_consumer_state(CommitMode::Sync);
    // Closing leaves the group.
    drop(consumer);
    Ok(())
}
