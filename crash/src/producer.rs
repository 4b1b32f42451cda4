//! A producer that numbers its records per partition and writes down each acknowledgement.

use crate::TOPICS;
use crate::journal::{Journal, Place, Record};
use anyhow::{Context, Result, bail};
use rdkafka::ClientConfig;
use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Who produces.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub(crate) id: u64,
    pub(crate) idempotent: bool,
}

/// Receives the delivery reports; a fatal error of an idempotent producer is a fault of the broker.
struct Acknowledgements(Arc<Journal>, Arc<std::sync::Mutex<Option<String>>>);

impl ClientContext for Acknowledgements {
    fn error(&self, error: KafkaError, reason: &str) {
        if matches!(error, KafkaError::Global(RDKafkaErrorCode::Fatal)) {
            self.report(format!("fatal producer error: {reason}"));
        }
    }
}

impl Acknowledgements {
    fn report(&self, fault: String) {
        let mut slot = self.1.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.get_or_insert(fault);
    }
}

impl ProducerContext for Acknowledgements {
    type DeliveryOpaque = Box<(Place, Record)>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Self::DeliveryOpaque) {
        let (place, record) = *sent;
        match result {
            Ok(message) => self.0.acknowledged(place, record, message.offset()),
            Err((error, _)) => self.report(format!("{record:?} to {place:?} failed: {error}")),
        }
    }
}

/// Produces to all partitions in turn until told to stop, then waits for every outstanding acknowledgement.
pub(crate) fn run(address: &str, journal: &Arc<Journal>, stop: &AtomicBool, name: Name) -> Result<()> {
    let fault = Arc::new(std::sync::Mutex::new(None));
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", address)
        .set("acks", "all")
        .set("linger.ms", if name.id.is_multiple_of(3) { "0" } else { "5" })
        .set(
            "enable.idempotence",
            if name.idempotent { "true" } else { "false" },
        )
        // Only an idempotent producer keeps its order over retries with several requests under way.
        .set(
            "max.in.flight.requests.per.connection",
            if name.idempotent { "5" } else { "1" },
        )
        .set(
            "compression.type",
            if name.id.is_multiple_of(2) { "none" } else { "lz4" },
        )
        .set("message.timeout.ms", "300000")
        .set("reconnect.backoff.max.ms", "100")
        .set("retry.backoff.ms", "20");
    let producer: BaseProducer<Acknowledgements> = config
        .create_with_context(Acknowledgements(journal.clone(), fault.clone()))
        .context("cannot create a producer")?;
    let places: Vec<Place> = TOPICS
        .iter()
        .flat_map(|(topic, count)| (0..*count).map(|partition| (*topic, partition)))
        .collect();
    let mut next: BTreeMap<Place, u64> = BTreeMap::new();
    'load: loop {
        for place in &places {
            if stop.load(Ordering::Relaxed) {
                break 'load;
            }
            let number = next.entry(*place).or_default();
            send(&producer, journal, name, *place, *number)?;
            *number += 1;
        }
        // About 1,300 records a second and producer: enough for a segment a second, and the machine stays calm.
        producer.poll(Duration::from_millis(15));
    }
    producer
        .flush(Duration::from_secs(60))
        .context("records stayed unacknowledged for 60 s after the last restart")?;
    let fault = fault
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .take();
    match fault {
        Some(fault) => bail!("producer {}: {fault}", name.id),
        None => Ok(()),
    }
}

fn send(
    producer: &BaseProducer<Acknowledgements>,
    journal: &Journal,
    name: Name,
    place: Place,
    number: u64,
) -> Result<()> {
    let record = Record {
        producer: name.id,
        idempotent: name.idempotent,
        number,
    };
    let value = record.value();
    let key = format!("{}", name.id);
    // Written down before the client has it: what is found later and was never sent is invented.
    journal.sent(place, record);
    let mut message = BaseRecord::with_opaque_to(place.0, Box::new((place, record)))
        .partition(place.1)
        .key(&key)
        .payload(&value);
    loop {
        match producer.send(message) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                message = back;
                producer.poll(Duration::from_millis(10));
            }
            Err((error, _)) => bail!("producer {}: cannot enqueue: {error}", name.id),
        }
    }
}
