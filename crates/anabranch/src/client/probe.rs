//! Who is at an address where no Kafka broker answers: asked once the first attempt has failed, so that nobody waits for the
//! whole `--timeout` to be told that it is the wrong port.
//!
//! librdkafka tells what it received ([`Foreign::of`]), but of a listener that speaks TLS it receives nothing: such a listener
//! ends the connection, as a rule without a word. So it is asked twice:
//!
//! ```text
//! ApiVersions          -> a length: a Kafka broker, be it slow | HTTP | a TLS alert | silence: nothing is known
//!       \-> the end of the connection -> ClientHello -> a TLS record | HTTP | the end: nothing is known
//! ```
//!
//! A broker that is only slow never sees the beginning of a handshake, which would look like a mistake in its log.

use std::io::{self, Read, Write};
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

/// A request for the versions that a broker speaks: 19 bytes; ApiVersions, which is 18, in version 0; number 1; a client id of
/// nine letters.
const API_VERSIONS: [u8; 23] = *b"\0\0\0\x13\0\x12\0\0\0\0\0\x01\0\x09anabranch";

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
    let mut reached = servers
        .iter()
        .filter(|(host, port)| connect(host, *port, PATIENCE).is_ok());
    let (host, port) = reached.next()?;
    let answer = match greeting(host, *port, &API_VERSIONS) {
        Err(error) if is_end(&error) => greeting(host, *port, &CLIENT_HELLO),
        answer => answer,
    };
    Some(Foreign::greeting(answer.ok()?)?.failure(broker))
}

/// The first bytes of what somebody says to `words`.
fn greeting(host: &str, port: u16, words: &[u8]) -> io::Result<[u8; 4]> {
    let mut stream = connect(host, port, PATIENCE).map_err(io::Error::other)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(words)?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// Whether the other side has ended the connection.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Says who is at a listener that answers its second and third connection so, and ends each; the first is only opened.
    fn told(answers: &'static [&[u8]]) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            drop(listener.accept().unwrap());
            for (answer, begins) in answers
                .iter()
                .zip([b"\0\0\0\x13\0\x12", b"\x16\x03\x01\0\x2d\x01"])
            {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 64];
                let length = stream.read(&mut question).unwrap();
                assert!(question[..length].starts_with(begins), "{question:?}");
                stream.write_all(answer).unwrap();
            }
        });
        let failure = foreign(&address);
        server.join().unwrap();
        failure.map(|failure| failure.message)
    }

    #[test]
    fn who_answers_is_told() {
        let tls = told(&[b"", &[22, 3, 3, 0, 80, 2]]).unwrap();
        assert!(tls.contains("speaks TLS"), "{tls}");
        let alert = told(&[b"", &[21, 3, 1, 0, 2, 2, 40]]).unwrap();
        assert!(alert.contains("speaks TLS"), "{alert}");
        let alert = told(&[&[21, 3, 3, 0, 2, 2, 22]]).unwrap();
        assert!(alert.contains("speaks TLS"), "{alert}");
        let http = told(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"]).unwrap();
        assert!(http.contains("an HTTP server answers"), "{http}");
        assert_eq!(
            told(&[b"", b""]),
            None,
            "whoever ends all connections may be a broker"
        );
    }

    #[test]
    fn a_slow_broker_is_not_taken_for_anything_else() {
        assert_eq!(
            told(&[&[0, 0, 1, 0, 0, 0, 0, 1]]),
            None,
            "and it gets no handshake"
        );
    }

    #[test]
    fn nobody_there_is_nobody_foreign() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(foreign(&closed.to_string()), None);
        assert_eq!(foreign("http://x"), None);
    }
}
