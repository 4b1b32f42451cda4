//! Remembers what librdkafka says about its connections, for the error message in case nothing comes of them.

use std::sync::{Mutex, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A client context that keeps the last connection error and prints nothing.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last: Mutex<Option<String>>,
}

impl Watch {
    /// The last thing that went wrong with a connection.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes an error event. That all brokers are down only sums up the errors before it.
    pub(crate) fn note(&self, code: Option<RDKafkaErrorCode>, reason: &str) {
        if code != Some(RDKafkaErrorCode::AllBrokersDown) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }
}

impl ClientContext for Watch {
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.note(error.rdkafka_error_code(), reason);
    }
}

impl ConsumerContext for Watch {}
