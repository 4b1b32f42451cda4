//! Writes numbered records as long as it is let, each with a key of its own, so that they are spread over all partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rdkafka::util::Timeout;

use super::super::place::Place;
use crate::client::setup_error;
use crate::failure::{Failure, Outcome};
use crate::produce::Tally;

/// Records are written in bursts of so many ...
const BURST: u64 = 20;

/// ... with a pause of so long: about a thousand a second.
const PAUSE: Duration = Duration::from_millis(20);

/// A producer that is at work.
pub(super) struct Feeder {
    producer: Arc<ThreadedProducer<Tally>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Outcome<u64>>>,
}

impl Feeder {
    pub(super) fn start(place: &Place) -> Outcome<Feeder> {
        let mut config = place.client()?;
        config.set("enable.idempotence", "true").set("linger.ms", "5");
        let producer: ThreadedProducer<Tally> = config
            .create_with_context(Tally::default())
            .map_err(|error| Failure::usage(setup_error(&error)))?;
        let (producer, stop) = (Arc::new(producer), Arc::new(AtomicBool::new(false)));
        let (sender, told, topic) = (Arc::clone(&producer), Arc::clone(&stop), place.topic.clone());
        let thread = std::thread::Builder::new()
            .name("feeder".to_owned())
            .spawn(move || feed(&sender, &topic, &told))
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Feeder {
            producer,
            stop,
            thread: Some(thread),
        })
    }

    /// Ends, and gives the number of records, all of which are acknowledged.
    pub(super) fn end(mut self, place: &Place) -> Outcome<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        let written = match ended {
            Some(Ok(written)) => written?,
            Some(Err(_)) | None => return Err(Failure::failed("the producer ended in a panic")),
        };
        // Ends for certain: librdkafka gives a record up after its delivery timeout.
        if let Err(error) = self.producer.flush(Timeout::Never) {
            self.producer.context().refused(&error);
        }
        self.producer.context().verdict(&place.topic, place.address())?;
        Ok(written)
    }
}

/// A thread must not go on behind the broker's end.
impl Drop for Feeder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn feed(producer: &ThreadedProducer<Tally>, topic: &str, stop: &AtomicBool) -> Outcome<u64> {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..BURST {
            send(producer, topic, number)?;
            number += 1;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(number)
}

/// Hands one record to librdkafka; waits while its queue is full.
fn send(producer: &ThreadedProducer<Tally>, topic: &str, number: u64) -> Outcome {
    let text = number.to_string();
    let mut record = BaseRecord::to(topic).key(&text).payload(&text);
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                record = back;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err((error, _)) => return Err(Failure::failed(format!("cannot write a record: {error}"))),
        }
    }
}
