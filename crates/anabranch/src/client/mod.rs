//! How commands reach a broker.
//!
//! ```text
//! Connection (flags)  ->  reach(): does anybody listen there? a clear answer within milliseconds
//!                     ->  config(): librdkafka's configuration, for produce and consume
//!                     ->  native::Admin: administrative requests, typed and safe
//!                     ->  sizes(): the one request that librdkafka lacks
//! retried, foreign        what librdkafka tries again without a word; who it is that answers
//! probe                   asks who that is, once the first attempt has failed
//! AdminUrl (flag)     ->  http::AdminApi: slices and decisions, from the broker's HTTP listener
//! ```

mod connection;
mod foreign;
mod http;
mod log_dirs;
mod message;
mod native;
mod probe;
mod retried;
mod watch;

pub(crate) use connection::{Connection, Early, is_loopback, property};
pub(crate) use http::{AdminApi, AdminUrl, Wanted};
pub(crate) use message::received;
pub(crate) use native::{
    Admin, ApiError, ConfigChange, ConfigEntry, GroupDescription, GroupMember, NewTopic, Node, OffsetSpec,
    PartitionDescription, PartitionOffset, TopicDescription, TopicPartition,
};
pub(crate) use probe::{Silence, metadata};
pub(crate) use retried::{DEBUG_FETCH, DEBUG_PRODUCE, FetchRefusal, produce_refusal};
pub(crate) use watch::Watch;

use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use self::foreign::Foreign;
use crate::failure::{Failure, uncapitalised};

/// The failure of a client that got no answer: with what librdkafka said last, and what may be the matter.
pub(crate) fn no_answer(broker: &str, timeout: Duration, last_error: Option<String>) -> Failure {
    let seconds = timeout.as_secs_f32();
    let Some(reason) = last_error else {
        return Failure::unreachable(format!("no answer from {broker} within {seconds} s"))
            .hint("does a Kafka broker listen there, without TLS? --timeout waits longer");
    };
    if let Some(failure) = no_broker(broker, &reason) {
        return failure;
    }
    let is_bootstrap = reason.contains("/bootstrap");
    // What librdkafka knows of its own states is for its developers.
    let reason = reason.split(" (after ").next().unwrap_or_default();
    let failure = Failure::unreachable(format!("no answer from {broker} within {seconds} s: {reason}"));
    if is_bootstrap {
        failure.hint("does a Kafka broker listen there, without TLS?")
    } else {
        failure.hint(
            "the broker told this client to connect to that address; its setting `advertise` is the cause",
        )
    }
}

/// The failure if it is something else than a Kafka broker that answers, by what was said about a connection last: trying again
/// is no use.
pub(crate) fn no_broker(broker: &str, reason: &str) -> Option<Failure> {
    Some(Foreign::of(reason)?.failure(broker))
}

/// What librdkafka says of an error code.
pub(crate) fn text_of(code: RDKafkaErrorCode) -> String {
    let named = code.to_string();
    let text = named
        .split_once(" (")
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    text.map_or_else(|| named.clone(), str::to_owned)
}

/// A text of librdkafka as part of a sentence: without whose error it is, and without a full stop.
pub(crate) fn as_clause(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let bare = text
        .strip_prefix("Broker: ")
        .or_else(|| text.strip_prefix("Local: "));
    bare.map_or_else(|| text.to_owned(), uncapitalised)
}

/// What is wrong with a client's configuration, in a sentence.
pub(crate) fn setup_error(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, reason, name, _) if reason.contains("OpenSSL not available") => {
            format!("-X {name}: this program speaks no TLS; leave it out, and name a listener without TLS")
        }
        // Without the value, which may be a secret; where it matters, the reason has it.
        KafkaError::ClientConfig(_, reason, name, _) => {
            format!("-X {name}: {}", reason.trim().trim_end_matches('.'))
        }
        other => format!("cannot set up the Kafka client: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_clauses() {
        let text = text_of(RDKafkaErrorCode::KafkaStorageError);
        assert_eq!(text, "Broker: Disk error when trying to access log file on disk");
        assert_eq!(
            as_clause(&text),
            "disk error when trying to access log file on disk"
        );
        assert_eq!(as_clause("Topic 'x' is not there. "), "Topic 'x' is not there");
    }
}
