//! Counts what was acknowledged and what was not, on librdkafka's side of the queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use serde::Serialize;

use crate::client::Watch;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, human_bytes, plural};

/// After so many failures there is no point in reading on.
const FAILURES_MAX: u64 = 1000;

/// What became of the records so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    acknowledged: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicU64,
    first_error: Mutex<Option<KafkaError>>,
    watch: Watch,
}

impl Tally {
    /// A record failed before it was even sent.
    pub(crate) fn refused(&self, error: &KafkaError) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| error.clone());
    }

    /// Whether so much has failed that reading on is no use.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.failed.load(Ordering::Relaxed) >= FAILURES_MAX
    }

    /// `Ok` if every record was acknowledged.
    pub(crate) fn verdict(&self, topic: &str, broker: &str) -> Outcome {
        let failed = self.failed.load(Ordering::Relaxed);
        let error = self
            .first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(error) = error.filter(|_| failed > 0) else {
            return Ok(());
        };
        let what = format!("{} not acknowledged", plural(failed, "record"));
        Err(match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition) => {
                let failure = no_topic(topic);
                Failure {
                    message: format!("{what}: {}", failure.message),
                    ..failure
                }
            }
            Some(RDKafkaErrorCode::UnknownPartition) => {
                Failure::not_found(format!("{what}: topic \"{topic}\" has no such partition"))
                    .hint(format!("`anabranch topic describe {topic}` shows its partitions"))
            }
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
                Failure::failed(format!("{what}: larger than the broker takes")).hint(format!(
                    "`anabranch topic alter {topic} --set max.message.bytes=N` raises the limit"
                ))
            }
            Some(RDKafkaErrorCode::MessageTimedOut) => {
                let reason = self
                    .watch
                    .last_error()
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default();
                Failure::unreachable(format!("{what} in time by {broker}{reason}"))
            }
            Some(code) => Failure::failed(format!("{what}: {}", text_of(code))),
            None => Failure::failed(format!("{what}: {error}")),
        })
    }
}

/// There is no such topic.
pub(super) fn no_topic(topic: &str) -> Failure {
    Failure::not_found(format!("there is no topic \"{topic}\""))
        .hint(format!("`anabranch topic create {topic}` creates it"))
}

/// The text of an error code without librdkafka's "Broker: ", which says nothing to the reader.
fn text_of(code: RDKafkaErrorCode) -> String {
    let text = code.to_string();
    text.split_once(": ")
        .map_or(text.clone(), |(_, rest)| rest.to_lowercase())
}

impl ClientContext for Tally {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.watch.error(error, reason);
    }
}

impl ProducerContext for Tally {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _opaque: ()) {
        match result {
            Ok(message) => {
                let size = message.payload_len() + message.key_len();
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(size as u64, Ordering::Relaxed);
            }
            Err((error, _)) => self.refused(error),
        }
    }
}

/// What a run came to.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    topic: String,
    records: u64,
    bytes: u64,
    failed: u64,
    seconds: f64,
}

impl Summary {
    pub(crate) fn new(topic: &str, tally: &Tally, elapsed: Duration) -> Summary {
        Summary {
            topic: topic.to_owned(),
            records: tally.acknowledged.load(Ordering::Relaxed),
            bytes: tally.bytes.load(Ordering::Relaxed),
            failed: tally.failed.load(Ordering::Relaxed),
            seconds: (elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
        }
    }

    /// JSON goes to standard output; the sentence is for people and goes to standard error.
    pub(crate) fn print(&self, format: Format) -> Outcome {
        match format {
            Format::Json => output::print_json(self),
            Format::Text => {
                output::say(&format!(
                    "produced {} ({}) to {} in {:.2} s",
                    plural(self.records, "record"),
                    human_bytes(self.bytes),
                    self.topic,
                    self.seconds
                ));
                Ok(())
            }
        }
    }
}
