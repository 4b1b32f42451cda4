//! Who is at an address where no Kafka broker answers: asked once the first attempt has failed, so that nobody waits for the
//! whole `--timeout` to be told that it is the wrong port.
//!
//! librdkafka tells what it received ([`Foreign::of`]), but of a listener that speaks TLS it receives nothing: such a listener
//! ends the connection, as a broker may that is just going down. It is told apart by the beginning of a TLS handshake, which it
//! answers, and an HTTP server refuses; a Kafka broker takes it for a request that is too long, and ends the connection.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::client::Client;
use rdkafka::error::KafkaError;
use rdkafka::metadata::Metadata;

use super::connection::{connect, servers_of};
use super::foreign::Foreign;
use super::no_broker;
use crate::failure::Failure;

/// How long a broker has to answer before it is asked who it is. One that is only slow still has the rest of the time.
pub(super) const FIRST_ATTEMPT: Duration = Duration::from_millis(500);

/// Patience with the answer to a handshake.
const PATIENCE: Duration = Duration::from_secs(1);

/// A TLS 1.2 ClientHello that offers one cipher suite and no extensions: enough for a listener to answer, if only by an alert.
const CLIENT_HELLO: [u8; 50] = {
    let mut hello = [0; 50];
    // A record of a handshake, 45 bytes; a ClientHello of 41 bytes for TLS 1.2; 32 bytes of randomness, which nobody needs here.
    let head = [22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    let mut at = 0;
    while at < head.len() {
        hello[at] = head[at];
        at += 1;
    }
    // No session; one cipher suite, TLS_RSA_WITH_AES_128_CBC_SHA; no compression.
    let tail = [0, 0, 2, 0, 47, 1, 0];
    at = 0;
    while at < tail.len() {
        hello[43 + at] = tail[at];
        at += 1;
    }
    hello
};

/// Why there is no metadata.
pub(crate) enum Silence {
    /// Something else than a Kafka broker is there.
    Foreign(Failure),
    /// What librdkafka says of it.
    Failed(KafkaError),
}

/// Asks a broker for its metadata; `reason` is what was said about its connections last.
pub(crate) fn metadata<C: ClientContext>(
    client: &Client<C>,
    topic: Option<&str>,
    broker: &str,
    timeout: Duration,
    reason: impl Fn() -> Option<String>,
) -> Result<Metadata, Silence> {
    let begin = Instant::now();
    let error = match client.fetch_metadata(topic, timeout.min(FIRST_ATTEMPT)) {
        Ok(metadata) => return Ok(metadata),
        Err(error) => error,
    };
    if let Some(failure) = reason().and_then(|reason| no_broker(broker, &reason)) {
        return Err(Silence::Foreign(failure));
    }
    if let Some(failure) = foreign(broker) {
        return Err(Silence::Foreign(failure));
    }
    let left = timeout.saturating_sub(begin.elapsed());
    if left.is_zero() {
        return Err(Silence::Failed(error));
    }
    client.fetch_metadata(topic, left).map_err(Silence::Failed)
}

/// The failure if the first of the servers that takes a connection is something else than a Kafka broker.
pub(super) fn foreign(broker: &str) -> Option<Failure> {
    let servers = servers_of(broker).ok()?;
    let mut streams = servers
        .iter()
        .filter_map(|(host, port)| connect(host, *port, PATIENCE).ok());
    let mut stream = streams.next()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(&CLIENT_HELLO).ok()?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).ok()?;
    Some(Foreign::greeting(answer)?.failure(broker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Says who is at a listener that answers whatever comes with these bytes.
    fn told(answer: &'static [u8]) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; CLIENT_HELLO.len()];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(answer).unwrap();
            hello
        });
        let failure = foreign(&address);
        let hello = server.join().unwrap();
        assert_eq!((hello[0], hello[9], hello[10], hello[49]), (22, 3, 3, 0));
        failure.map(|failure| failure.message)
    }

    #[test]
    fn who_answers_a_handshake_is_told() {
        let alert = told(&[21, 3, 1, 0, 2, 2, 40]).unwrap();
        assert!(alert.contains("speaks TLS"), "{alert}");
        let hello = told(&[22, 3, 3, 0, 80, 2]).unwrap();
        assert!(hello.contains("speaks TLS"), "{hello}");
        let http = told(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        assert!(http.contains("an HTTP server answers"), "{http}");
        assert_eq!(told(b""), None, "a broker that ends the connection");
        assert_eq!(told(&[0, 0, 0, 4]), None);
    }

    #[test]
    fn nobody_there_is_nobody_foreign() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(foreign(&closed.to_string()), None);
        assert_eq!(foreign("http://x"), None);
    }
}
