//! Keeps a backlog in the shared partition.

use super::TOPIC;
use super::ledger::Ledger;
use anyhow::{Context, Result, bail};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Keys that are written in turn.
const KEYS: u64 = 50;
/// Records that are there to be read, if the members let it come to that.
const BACKLOG_MAX: usize = 3_000;

/// A record: its key, and its number among the records of that key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) key: u64,
    pub(crate) number: u64,
}

impl Line {
    pub(crate) fn value(self) -> String {
        format!("{} {}", self.key, self.number)
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (key, number) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        Some(Self {
            key: key.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

struct Told(Arc<Ledger>);

impl ClientContext for Told {}

impl ProducerContext for Told {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        // What fails shows as a number that members never see.
        if let Ok(message) = result {
            self.0.written(message.offset());
        }
    }
}

/// Writes until told to stop, then waits for every outstanding acknowledgement.
pub(crate) fn run(address: &str, ledger: &Arc<Ledger>, stop: &AtomicBool) -> Result<()> {
    // Nobody else writes there, and all from before was acknowledged.
    let mut written = ledger.end();
    let producer: BaseProducer<Told> = ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("enable.idempotence", "true")
        .set("message.timeout.ms", "300000")
        .set("linger.ms", "2")
        // Several batches in a backlog.
        .set("batch.num.messages", "200")
        .set("reconnect.backoff.max.ms", "100")
        .set("retry.backoff.ms", "20")
        .create_with_context(Told(Arc::clone(ledger)))
        .context("cannot create a producer")?;
    while !stop.load(Ordering::Relaxed) {
        let under_way = usize::try_from(producer.in_flight_count()).unwrap_or(0);
        if ledger.backlog() + under_way < BACKLOG_MAX {
            for _ in 0..100 {
                send(&producer, written)?;
                written += 1;
            }
        }
        producer.poll(Duration::from_millis(10));
    }
    producer
        .flush(Duration::from_secs(60))
        .context("records stayed unacknowledged for 60 s after the last restart")
}

fn send(producer: &BaseProducer<Told>, written: u64) -> Result<()> {
    let line = Line {
        key: written % KEYS,
        number: written / KEYS,
    };
    let (key, value) = (format!("k{}", line.key), line.value());
    let mut message = BaseRecord::to(TOPIC).partition(0).key(&key).payload(&value);
    loop {
        match producer.send(message) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                message = back;
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => bail!("the writer of the shared partition cannot enqueue: {error}"),
        }
    }
}
