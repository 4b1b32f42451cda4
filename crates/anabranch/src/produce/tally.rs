//! Counts what was acknowledged and what was not, on librdkafka's side of the queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use serde::Serialize;

use crate::client::{Watch, as_clause, no_broker, produce_refusal, text_of};
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
    /// Why the broker refused a batch last, in librdkafka's words: it may be tried again without a word.
    refusal: Mutex<Option<String>>,
    /// Reading ended before the input did.
    gave_up: AtomicBool,
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

    /// What went wrong with a connection last.
    pub(super) fn last_connection_error(&self) -> Option<String> {
        self.watch.last_error()
    }

    /// The rest of the input is not read.
    pub(crate) fn give_up(&self) {
        self.gave_up.store(true, Ordering::Relaxed);
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
        let what = self.what_is_missing(failed);
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
            Some(RDKafkaErrorCode::InvalidRequiredAcks) => {
                Failure::usage(format!("{what}: the broker knows no such acks"))
                    .hint("acks is 0, 1 or all: --acks, or -X acks=all")
            }
            Some(RDKafkaErrorCode::MessageTimedOut) => self.timed_out(&what, broker),
            Some(code) => Failure::failed(format!("{what}: {}", as_clause(&text_of(code)))),
            None => Failure::failed(format!("{what}: {error}")),
        })
    }

    /// How much of the input the broker does not have for certain.
    fn what_is_missing(&self, failed: u64) -> String {
        let sent = failed + self.acknowledged.load(Ordering::Relaxed);
        let what = if failed < sent {
            format!("{failed} of {} not acknowledged", plural(sent, "record"))
        } else {
            format!("{} not acknowledged", plural(failed, "record"))
        };
        if self.gave_up.load(Ordering::Relaxed) {
            format!("{what}, and the rest of the input not read")
        } else {
            what
        }
    }

    /// Records whose time was up: because nobody answered, or because every answer was a refusal.
    fn timed_out(&self, what: &str, broker: &str) -> Failure {
        let refusal = self
            .refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match refusal {
            Some(refusal) if is_of_the_disk(&refusal) => Failure::failed(format!(
                "{what}: the disk of the broker {broker} is full, or fails (KAFKA_STORAGE_ERROR)"
            ))
            .hint(
                "what was acknowledged is safe, send the rest again when there is space: shorten the retention of a topic or delete one, see `anabranch help trouble`; the broker's log says if the disk fails",
            ),
            Some(refusal) => Failure::failed(format!(
                "{what}: the broker {broker} refused them each time: {}",
                as_clause(&refusal)
            )),
            None => {
                let reason = self.watch.last_error();
                if let Some(failure) = reason.as_deref().and_then(|reason| no_broker(broker, reason)) {
                    return Failure {
                        message: format!("{what}: {}", failure.message),
                        ..failure
                    };
                }
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                Failure::unreachable(format!("{what} in time by {broker}{reason}"))
                    .hint("is the broker running, and reachable from here? what was acknowledged is safe, send the rest again")
            }
        }
    }

    /// Takes note of a refusal, and says the first time that there is no space: a person waits meanwhile.
    fn note_refusal(&self, refusal: &str) {
        let mut last = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = last.as_deref() != Some(refusal);
        *last = Some(refusal.to_owned());
        if is_news && is_of_the_disk(refusal) {
            output::say("the broker's disk is full, or fails: trying again");
        }
    }
}

/// Whether a refusal is the broker's disk.
fn is_of_the_disk(refusal: &str) -> bool {
    refusal == text_of(RDKafkaErrorCode::KafkaStorageError)
}

/// There is no such topic.
pub(super) fn no_topic(topic: &str) -> Failure {
    Failure::not_found(format!("there is no topic \"{topic}\""))
        .hint(format!("`anabranch topic create {topic}` creates it"))
}

impl ClientContext for Tally {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        if let Some(refusal) = produce_refusal(facility, message) {
            self.note_refusal(refusal);
        }
    }

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
