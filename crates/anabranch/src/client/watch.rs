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

    /// Notes an error event. That all brokers are down only sums up the errors before it, and the end of a partition is
    /// no error.
    pub(crate) fn note(&self, code: Option<RDKafkaErrorCode>, reason: &str) {
        if !matches!(
            code,
            Some(RDKafkaErrorCode::AllBrokersDown | RDKafkaErrorCode::PartitionEOF)
        ) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_real_error_is_kept() {
        let watch = Watch::default();
        assert_eq!(watch.last_error(), None);
        watch.error(
            KafkaError::Global(RDKafkaErrorCode::BrokerTransportFailure),
            "connection refused",
        );
        watch.error(
            KafkaError::Global(RDKafkaErrorCode::AllBrokersDown),
            "1/1 brokers are down",
        );
        watch.error(
            KafkaError::Global(RDKafkaErrorCode::PartitionEOF),
            "end of partition at offset 7",
        );
        assert_eq!(watch.last_error().as_deref(), Some("connection refused"));
    }
}
