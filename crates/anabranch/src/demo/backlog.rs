//! Writes the backlog: one producer that never writes twice, so that the log has the records in the order of the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rdkafka::util::Timeout;

use super::place::Place;
use super::workload::Workload;
use crate::client::setup_error;
use crate::failure::{Failure, Outcome};
use crate::produce::Tally;

/// The header that says which record of the list it is.
pub(crate) const HEADER: &str = "demo-record";

/// Writes all records and waits until they are acknowledged; stops early if interrupted.
pub(crate) fn write(place: &Place, workload: &Workload, interrupted: &Arc<AtomicBool>) -> Outcome {
    let mut config = place.client()?;
    for (name, value) in [("enable.idempotence", "true"), ("linger.ms", "5")] {
        config.set(name, value);
    }
    let producer: ThreadedProducer<Tally> = config
        .create_with_context(Tally::default())
        .map_err(|error| Failure::usage(setup_error(&error)))?;
    for record in 0..workload.len() {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        send(&producer, &place.topic, workload, record)?;
    }
    // Ends for certain: librdkafka gives a record up after its delivery timeout.
    let flushed = producer.flush(Timeout::Never);
    if let Err(error) = flushed {
        producer.context().refused(&error);
    }
    producer.context().verdict(&place.topic, place.address())
}

/// Hands one record to librdkafka; waits while its queue is full.
fn send(producer: &ThreadedProducer<Tally>, topic: &str, workload: &Workload, record: u32) -> Outcome {
    let number = record.to_string();
    let value = workload.value(record);
    let headers = OwnedHeaders::new_with_capacity(1).insert(Header {
        key: HEADER,
        value: Some(&number),
    });
    let mut message: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic)
        .partition(0)
        .key(workload.key(record))
        .payload(value.as_slice())
        .headers(headers);
    loop {
        match producer.send(message) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                message = back;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err((error, _)) => return Err(Failure::failed(format!("cannot write the backlog: {error}"))),
        }
    }
}
