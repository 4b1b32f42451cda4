//! The broker's administration API over HTTP: what the Kafka protocol has no words for (slices, decisions).
//!
//! Commands work without it where they can: any Kafka broker has members and offsets, only Anabranch has slices. So
//! every failure here names the address, what is wrong with it, and the flag or setting that helps.

use std::time::Duration;

use anabranch_server::DEFAULT_HTTP;
use anabranch_server::admin::model::{Decisions, Group, Order, QueueWish, Queues, Refusal};
use anabranch_server::settings::ADMIN_VARIABLE;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::StatusCode;

use crate::failure::{Failure, Outcome, reason};

/// Longest wait for the listener to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Longest wait for an answer unless told otherwise.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

const EXAMPLE_OF_ADDRESS: &str = "write http://HOST:PORT, for example http://127.0.0.1:9099";

/// The largest answer that is read: a group of 1,000 divided partitions is about 10 MB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// The flag that says where the broker's HTTP listener is.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct AdminUrl {
    /// The broker's HTTP listener [default: http://127.0.0.1:9099].
    #[arg(
        long,
        global = true,
        env = ADMIN_VARIABLE,
        hide_env_values = true,
        value_name = "URL"
    )]
    admin: Option<String>,
}

impl AdminUrl {
    /// Whether somebody named the listener, so that not reaching it is worth a word.
    pub(crate) fn is_given(&self) -> bool {
        self.named().is_some()
    }

    /// What somebody named; an empty environment variable names nothing.
    fn named(&self) -> Option<&str> {
        self.admin.as_deref().filter(|url| !url.is_empty())
    }

    /// A client for the listener.
    ///
    /// # Errors
    /// What was given is no `http://` address.
    pub(crate) fn open(&self) -> Outcome<AdminApi> {
        AdminApi::at(self.named().unwrap_or(DEFAULT_HTTP))
    }
}

/// Which decisions to ask for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// Only those about this group.
    pub(crate) group: Option<&'a str>,
    /// The oldest behind this number; without it, the latest.
    pub(crate) after: Option<u64>,
    /// At most so many.
    pub(crate) limit: u32,
    /// How long the broker waits for the first one.
    pub(crate) wait: Duration,
}

/// A client of the administration API.
#[derive(Debug, Clone)]
pub(crate) struct AdminApi {
    /// `http://HOST:PORT`, without a slash at the end.
    base: String,
    agent: ureq::Agent,
    /// Longest wait for an answer, on top of the time that the broker was asked to wait.
    patience: Duration,
}

impl AdminApi {
    /// A client for `http://HOST:PORT` or `HOST:PORT`. Nothing is sent yet.
    pub(crate) fn at(address: &str) -> Outcome<AdminApi> {
        let address = address.trim().trim_end_matches('/');
        if address.contains('@') {
            // Without the address, which may have a password.
            return Err(
                Failure::usage("--admin names a user, and the listener knows none").hint(EXAMPLE_OF_ADDRESS),
            );
        }
        let rest = match address.split_once("://") {
            None => address,
            Some(("http", rest)) => rest,
            Some((scheme, _)) => {
                let why = format!("--admin {address}: {scheme} is not spoken there, only http");
                return Err(
                    Failure::usage(why).hint("reach a distant broker through a tunnel, for example ssh -L")
                );
            }
        };
        if rest.is_empty() || rest.contains(['/', ' ', '?', '#']) {
            return Err(Failure::usage(format!(
                "--admin {address}: that is not the address of a listener"
            ))
            .hint(EXAMPLE_OF_ADDRESS));
        }
        // A broker is not reached through a proxy for the web, whatever the environment says.
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("anabranch/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(AdminApi {
            base: format!("http://{rest}"),
            agent: config.into(),
            patience: ANSWER_TIMEOUT,
        })
    }

    /// The same client with another longest wait for an answer.
    pub(crate) fn with_patience(self, patience: Duration) -> AdminApi {
        AdminApi { patience, ..self }
    }

    /// Where requests go.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The metrics in Prometheus's text format.
    pub(crate) fn metrics(&self) -> Outcome<String> {
        let (status, body) = self.page("metrics")?;
        match String::from_utf8(body) {
            Ok(text) if status.is_success() => Ok(text),
            _ => Err(self.foreign(status)),
        }
    }

    /// That the broker serves clients.
    ///
    /// # Errors
    /// It does not, with what it says about that; or there was no answer.
    pub(crate) fn ready(&self) -> Outcome {
        let (status, body) = self.page("readyz")?;
        if status.is_success() {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "the broker at {} does not serve clients: {} (HTTP status {})",
            self.base,
            String::from_utf8_lossy(&body).trim(),
            status.as_u16()
        )))
    }

    /// A group with its members and slices.
    pub(crate) fn group(&self, group: &str) -> Outcome<Group> {
        self.get(&format!("groups/{}", escape(group)), Duration::ZERO)
    }

    /// What the planner would decide now.
    pub(crate) fn plan(&self, group: &str) -> Outcome<Decisions> {
        self.get(&format!("groups/{}/plan", escape(group)), Duration::ZERO)
    }

    /// Decisions that were taken.
    pub(crate) fn decisions(&self, wanted: Wanted<'_>) -> Outcome<Decisions> {
        let mut path = format!("decisions?limit={}", wanted.limit);
        if let Some(group) = wanted.group {
            path.push_str(&format!("&group={}", escape(group)));
        }
        if let Some(after) = wanted.after {
            path.push_str(&format!("&after={after}"));
        }
        if !wanted.wait.is_zero() {
            path.push_str(&format!("&wait_ms={}", wanted.wait.as_millis()));
        }
        self.get(&path, wanted.wait)
    }

    /// Has slots of a partition moved: `verb` is `split` or `merge`.
    pub(crate) fn order(&self, group: &str, verb: &str, order: &Order) -> Outcome<Decisions> {
        self.post(&format!("groups/{}/{verb}", escape(group)), order)
    }

    /// Tells the planner to leave a group alone, or not to: `verb` is `pause` or `resume`.
    pub(crate) fn switch(&self, group: &str, verb: &str) -> Outcome<Decisions> {
        let nothing = serde_json::Map::new();
        self.post(&format!("groups/{}/{verb}", escape(group)), &nothing)
    }

    /// A topic in queue mode.
    pub(crate) fn queues(&self, topic: &str) -> Outcome<Queues> {
        self.get(&format!("topics/{}/queues", escape(topic)), Duration::ZERO)
    }

    /// Says how many queues a topic is to have; `None`: as many as its largest group has instances.
    pub(crate) fn wish_queues(&self, topic: &str, count: Option<u32>) -> Outcome<Queues> {
        let path = format!("topics/{}/queues/wish", escape(topic));
        self.post(&path, &QueueWish { count })
    }

    /// Has queues taken away without waiting until they are read.
    pub(crate) fn force_queues(&self, topic: &str) -> Outcome<Queues> {
        let nothing = serde_json::Map::new();
        self.post(&format!("topics/{}/queues/force", escape(topic)), &nothing)
    }

    /// What stands beside the API: a page of text, whatever its status.
    fn page(&self, name: &str) -> Outcome<(StatusCode, Vec<u8>)> {
        let request = self.agent.get(format!("{}/{name}", self.base)).config();
        self.body(request.timeout_global(Some(self.patience)).build().call())
    }

    fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Outcome<T> {
        let timeout = wait.saturating_add(self.patience);
        let request = self.agent.get(self.url(path)).config();
        self.answer(path, request.timeout_global(Some(timeout)).build().call())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Outcome<T> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Failure::failed(format!("cannot write the request as JSON: {error}")))?;
        let request = self.agent.post(self.url(path)).content_type("application/json");
        let request = request.config().timeout_global(Some(self.patience)).build();
        self.answer(path, request.send(&body))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.base)
    }

    fn answer<T: DeserializeOwned>(
        &self,
        path: &str,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Outcome<T> {
        let (status, body) = self.body(answer)?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| {
                Failure::failed(format!("the answer of {} is not understood: {error}", self.base))
                    .hint("is the broker of another version than this program? `anabranch version` shows this one's")
            });
        }
        let Ok(Refusal { error }) = serde_json::from_slice::<Refusal>(&body) else {
            return Err(self.foreign(status));
        };
        if status.as_u16() == 404 {
            Err(Failure::not_found(error.message).hint(what_there_is(path)))
        } else {
            Err(Failure::failed(error.message))
        }
    }

    fn body(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Outcome<(StatusCode, Vec<u8>)> {
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_vec();
        Ok((status, body.map_err(|error| self.unreachable(&error))?))
    }

    /// It answers, and is no broker of ours.
    fn foreign(&self, status: StatusCode) -> Failure {
        let (base, status) = (&self.base, status.as_u16());
        Failure::failed(format!("{base} has no administration API (HTTP status {status})"))
            .hint("is that the HTTP listener of an Anabranch broker? --admin URL names another")
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let why = match error {
            ureq::Error::Timeout(_) => "no answer in time".to_owned(),
            ureq::Error::HostNotFound => "the host name cannot be resolved".to_owned(),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                "it ends the connection without an answer, as the Kafka listener would".to_owned()
            }
            ureq::Error::Io(error) => reason(error),
            ureq::Error::BodyExceedsLimit(limit) => format!("the answer is longer than {limit} bytes"),
            other => other.to_string(),
        };
        Failure::unreachable(format!("cannot reach the broker's HTTP listener at {}: {why}", self.base)).hint(
            "the broker's setting `http` says where it listens, `none` means nowhere; --admin URL names another",
        )
    }
}

/// Where to look for what is there, when something that a path names is not.
fn what_there_is(path: &str) -> &'static str {
    if path.starts_with("topics/") {
        "`anabranch topic list` shows all topics; `anabranch topic alter TOPIC --set elastic.mode=queues` switches queue mode on"
    } else {
        "`anabranch group list` shows all groups"
    }
}

/// Percent-encodes a name for a path or a query: everything but letters, digits and `-._~`.
fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn names_fit_into_a_path() {
        assert_eq!(escape("a/b c?ü-._~"), "a%2Fb%20c%3F%C3%BC-._~");
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(
            AdminApi::at("127.0.0.1:9099").unwrap().base(),
            "http://127.0.0.1:9099"
        );
        assert_eq!(AdminApi::at("http://[::1]:1/").unwrap().base(), "http://[::1]:1");
        for (address, why) in [
            ("https://host:1", "https is not spoken there"),
            ("", "not the address of a listener"),
            ("http://host/console", "not the address of a listener"),
            ("http://somebody:sesame@host:1", "names a user"),
        ] {
            let failure = AdminApi::at(address).unwrap_err();
            assert!(failure.message.contains(why), "{failure}");
            assert!(!failure.message.contains("sesame"), "{failure}");
        }
    }

    #[test]
    fn nobody_listening_is_said_with_what_to_do() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let failure = AdminApi::at(&free.to_string()).unwrap().group("g").unwrap_err();
        assert_eq!(
            failure.message,
            format!("cannot reach the broker's HTTP listener at http://{free}: connection refused")
        );
        assert!(failure.hint.unwrap().contains("setting `http`"));
    }

    #[test]
    fn a_listener_that_speaks_no_http_is_said_in_words() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        // As the Kafka listener does with a request for more bytes than it takes.
        let kafka = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            std::io::Read::read(&mut socket, &mut [0; 4096]).unwrap()
        });
        let failure = AdminApi::at(&address).unwrap().metrics().unwrap_err();
        assert!(
            failure.message.ends_with("as the Kafka listener would"),
            "{failure}"
        );
        kafka.join().unwrap();
    }
}
