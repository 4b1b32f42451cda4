//! Administrative requests through librdkafka's C interface: the safe surface is [`Admin`].
//!
//! The `rdkafka` crate wraps only some of them, and drops the broker's error texts, so all of them go one way here:
//!
//! ```text
//! Admin::topics(..)  ->  build C objects, each in a Guard that frees it
//!                    ->  Admin::request: options, send to a queue, wait for the event (errors, timeout)
//!                    ->  copy what the event lends into plain Rust structs, free the event
//! ```
//!
//! Rules that keep it sound: no pointer outlives the function that got it; whatever an event lends is copied before the
//! event's guard drops; C strings are copied at once; error codes are read as integers, because a broker may send one
//! that the generated enum does not have.

#![expect(
    unsafe_code,
    reason = "librdkafka's admin interface is C; each call says why it is sound"
)]

mod configs;
mod groups;
mod memory;
mod offsets;
mod topics;

use std::ffi::{CString, c_int};
use std::time::{Duration, Instant};

use rdkafka::bindings as sys;
use rdkafka::client::Client;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaType;

use crate::client::probe::{FIRST_ATTEMPT, foreign};
use crate::client::{Connection, Watch, no_broker};
use crate::failure::{Failure, Outcome};
use memory::{Guard, copy_text};

pub(crate) use configs::{ConfigChange, ConfigEntry};
pub(crate) use groups::{GroupDescription, GroupMember};
pub(crate) use offsets::{OffsetSpec, PartitionOffset, TopicPartition};
pub(crate) use topics::{NewTopic, Node, PartitionDescription, TopicDescription};

/// How long one wait for an event lasts before connection errors are looked at.
const POLL: Duration = Duration::from_millis(50);

/// How much longer than librdkafka itself this side waits for it to report a timeout.
const PATIENCE: Duration = Duration::from_secs(2);

/// A refusal by the broker, or by librdkafka on its behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// Kafka's error code; negative for librdkafka's own.
    pub(crate) code: i32,
    /// The broker's message.
    pub(crate) text: String,
}

impl ApiError {
    /// Whether this is the given code.
    pub(crate) fn is(&self, code: RDKafkaErrorCode) -> bool {
        self.code == code as i32
    }

    /// Whether nobody answered.
    fn is_silence(&self) -> bool {
        let silent = [
            RDKafkaErrorCode::BrokerTransportFailure,
            RDKafkaErrorCode::AllBrokersDown,
            RDKafkaErrorCode::OperationTimedOut,
            RDKafkaErrorCode::RequestTimedOut,
        ];
        silent.into_iter().any(|code| self.is(code))
    }

    /// The failure of a command: `doing` is what it tried, for example `create topic orders`.
    pub(crate) fn failure(&self, doing: &str) -> Failure {
        let text = format!("cannot {doing}: {}", self.sentence());
        if self.is_silence() {
            return Failure::unreachable(text)
                .hint("does a Kafka broker listen at that address, without TLS? --timeout waits longer");
        }
        Failure::failed(text)
    }

    /// The broker's message as part of a sentence: without a full stop.
    pub(crate) fn sentence(&self) -> String {
        crate::client::as_clause(&self.text)
    }
}

/// A client for administrative requests.
pub(crate) struct Admin {
    client: Client<Watch>,
    broker: String,
    timeout: Duration,
}

impl Admin {
    /// Makes a client after checking that somebody listens.
    pub(crate) fn connect(connection: &Connection) -> Outcome<Admin> {
        let config = connection.config()?;
        let wrong = |error: rdkafka::error::KafkaError| Failure::usage(crate::client::setup_error(&error));
        let native = config.create_native_config().map_err(wrong)?;
        let client = Client::new(&config, native, RDKafkaType::RD_KAFKA_PRODUCER, Watch::default());
        Ok(Admin {
            client: client.map_err(wrong)?,
            broker: connection.broker().to_owned(),
            timeout: connection.timeout(),
        })
    }

    /// Sends one request and reads its answer.
    ///
    /// `send` hands the request to librdkafka; `read` copies what is needed out of the event.
    fn request<T>(
        &self,
        operation: sys::rd_kafka_admin_op_t,
        send: impl FnOnce(*mut sys::rd_kafka_t, *const sys::rd_kafka_AdminOptions_t, *mut sys::rd_kafka_queue_t),
        read: impl FnOnce(*mut sys::rd_kafka_event_t) -> T,
    ) -> Outcome<T> {
        let rk = self.client.native_ptr();
        // SAFETY: `rk` is a live client for as long as `self`; the three guards free what was made, in reverse order,
        // before `self` can be dropped. librdkafka copies options and request objects while it sends.
        let (queue, options) = unsafe {
            let queue = Guard::new(sys::rd_kafka_queue_new(rk), sys::rd_kafka_queue_destroy)?;
            let options = Guard::new(
                sys::rd_kafka_AdminOptions_new(rk, operation),
                sys::rd_kafka_AdminOptions_destroy,
            )?;
            (queue, options)
        };
        self.set_timeout(&options)?;
        send(rk, options.get(), queue.get());
        let event = self.wait(&queue)?;
        // SAFETY: `event` is live until its guard drops at the end of this function; both calls only read it.
        let (code, text) = unsafe {
            (
                memory::event_code(event.get()),
                copy_text(sys::rd_kafka_event_error_string(event.get())),
            )
        };
        if code != 0 {
            return Err(self.request_failed(&ApiError { code, text }));
        }
        Ok(read(event.get()))
    }

    fn set_timeout(&self, options: &Guard<sys::rd_kafka_AdminOptions_t>) -> Outcome {
        let timeout_ms = c_int::try_from(self.timeout.as_millis())
            .unwrap_or(c_int::MAX)
            .clamp(1, 3_600_000);
        let mut reason = [0; 256];
        // SAFETY: `options` is live, and the buffer is writable for the length that is passed.
        let code = unsafe {
            sys::rd_kafka_AdminOptions_set_request_timeout(
                options.get(),
                timeout_ms,
                reason.as_mut_ptr(),
                reason.len(),
            ) as i32
        };
        if code == 0 {
            Ok(())
        } else {
            Err(Failure::usage(format!(
                "--timeout {timeout_ms} ms is not possible"
            )))
        }
    }

    /// Waits for the answer, and meanwhile notes what librdkafka says about its connections.
    fn wait(&self, queue: &Guard<sys::rd_kafka_queue_t>) -> Outcome<Guard<sys::rd_kafka_event_t>> {
        let begin = Instant::now();
        let deadline = begin + self.timeout + PATIENCE;
        let mut is_probed = false;
        while Instant::now() < deadline {
            // SAFETY: the queue is live; an event that is returned is ours to destroy, which its guard does.
            let event = unsafe { sys::rd_kafka_queue_poll(queue.get(), POLL.as_millis() as c_int) };
            self.note_connection_errors();
            if !event.is_null() {
                // SAFETY: the event is live and owned; nothing else destroys it.
                return unsafe { Guard::new(event, sys::rd_kafka_event_destroy) };
            }
            let reason = self.client.context().last_error();
            if let Some(failure) = reason.and_then(|reason| no_broker(&self.broker, &reason)) {
                return Err(failure);
            }
            if !is_probed && begin.elapsed() >= FIRST_ATTEMPT {
                is_probed = true;
                if let Some(failure) = foreign(&self.broker) {
                    return Err(failure);
                }
            }
        }
        Err(self.no_answer())
    }

    /// Empties the client's main queue of log lines and errors.
    fn note_connection_errors(&self) {
        // SAFETY: the main queue of a live client; the guard gives back the reference that this call took.
        let main = unsafe {
            Guard::new(
                sys::rd_kafka_queue_get_main(self.client.native_ptr()),
                sys::rd_kafka_queue_destroy,
            )
        };
        let Ok(main) = main else { return };
        loop {
            // SAFETY: as in `wait`: the queue is live, a returned event is ours until the guard drops.
            let polled = unsafe { sys::rd_kafka_queue_poll(main.get(), 0) };
            // SAFETY: the guard is made of an owned event or refuses null.
            let Ok(event) = (unsafe { Guard::new(polled, sys::rd_kafka_event_destroy) }) else {
                return;
            };
            // SAFETY: the event is live; the string it lends is copied at once.
            let (kind, code, text) = unsafe {
                let text = copy_text(sys::rd_kafka_event_error_string(event.get()));
                (
                    sys::rd_kafka_event_type(event.get()),
                    memory::event_code(event.get()),
                    text,
                )
            };
            if kind == sys::RD_KAFKA_EVENT_ERROR {
                let all_down = code == RDKafkaErrorCode::AllBrokersDown as i32;
                self.client
                    .context()
                    .note(all_down.then_some(RDKafkaErrorCode::AllBrokersDown), &text);
            }
        }
    }

    /// A request as a whole failed: mostly because the broker does not answer.
    fn request_failed(&self, error: &ApiError) -> Failure {
        if error.is_silence() {
            return self.no_answer();
        }
        Failure::failed(format!(
            "the broker {} refused: {}",
            self.broker,
            error.sentence()
        ))
    }

    fn no_answer(&self) -> Failure {
        crate::client::no_answer(&self.broker, self.timeout, self.client.context().last_error())
    }
}

/// A C string of a name that a user gave.
fn c_text(text: &str) -> Outcome<CString> {
    CString::new(text)
        .map_err(|_| Failure::usage(format!("{text:?} contains a zero byte, which no name may")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn silence_about_one_name_is_silence_too() {
        let error = |code: RDKafkaErrorCode| ApiError {
            code: code as i32,
            text: "Timed out".to_owned(),
        };
        let silent = error(RDKafkaErrorCode::OperationTimedOut).failure("list groups");
        assert_eq!(silent.exit, Exit::Unreachable);
        assert!(
            silent
                .hint
                .is_some_and(|hint| hint.contains("--timeout waits longer"))
        );
        let refused = error(RDKafkaErrorCode::InvalidTopic).failure("create topic");
        assert_eq!((refused.exit, refused.hint), (Exit::Failed, None));
    }
}
