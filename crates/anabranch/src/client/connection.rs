//! Which broker, how long to wait for it, and whether anybody is there.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anabranch_server::settings::parse_duration_ms;
use rdkafka::ClientConfig;

use anabranch_server::settings::BOOTSTRAP_VARIABLE;

use super::{TopicPartition, log_dirs};
use crate::failure::{Failure, Outcome, reason};

/// Kafka's port, for a broker named without one.
const DEFAULT_PORT: u16 = 9092;

/// Longest wait for one address to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The broker if nobody names one.
const BOOTSTRAP_DEFAULT: &str = "127.0.0.1:9092";

/// Patience with the broker if nobody says more.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// The flags that say which broker to talk to; the same for all client commands.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The broker to start from; several may be separated by commas [env: ANABRANCH_BOOTSTRAP]
    /// [default: 127.0.0.1:9092].
    #[arg(
        short = 'b',
        long,
        alias = "bootstrap-server",
        alias = "brokers",
        global = true,
        value_name = "HOST:PORT"
    )]
    bootstrap: Option<String>,
    /// How long to wait for the broker [default: 10s].
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Set a property of librdkafka, the Kafka client inside these commands.
    #[arg(short = 'X', global = true, value_name = "KEY=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
}

/// The same flags before the command: `anabranch -b HOST:PORT topic list`. They are arguments of their own and not
/// clap's global ones, which would stand in the help of commands that talk to no broker, too.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Connection, for commands that talk to a broker")]
pub(crate) struct Early {
    /// The broker to start from; several may be separated by commas.
    #[arg(
        id = "early-bootstrap",
        short = 'b',
        long = "bootstrap",
        alias = "bootstrap-server",
        alias = "brokers",
        value_name = "HOST:PORT"
    )]
    bootstrap: Option<String>,
    /// How long to wait for the broker.
    #[arg(id = "early-timeout", long = "timeout", value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Set a property of librdkafka.
    #[arg(id = "early-properties", short = 'X', value_name = "KEY=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
}

impl Early {
    /// One of the flags that were given, by its name.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (self.bootstrap.is_some(), "--bootstrap"),
            (self.timeout.is_some(), "--timeout"),
            (!self.properties.is_empty(), "-X"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match parse_duration_ms(text)? {
        0 => Err("it must be longer than nothing".to_owned()),
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// Reads `KEY=VALUE`.
pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Connection {
    /// Fills in what was not said behind the command: from the flags before it, then from the environment's
    /// `bootstrap`.
    pub(crate) fn complete(&mut self, early: &Early, bootstrap: Option<String>) {
        let named = self.bootstrap.take().or_else(|| early.bootstrap.clone());
        self.bootstrap = named.or(bootstrap);
        self.timeout = self.timeout.or(early.timeout);
        // The last value of a property counts.
        self.properties.splice(0..0, early.properties.iter().cloned());
    }

    /// What the environment says about the broker.
    pub(crate) fn bootstrap_of_environment() -> Option<String> {
        let value = std::env::var_os(BOOTSTRAP_VARIABLE).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Flags that a command defines by itself.
    pub(crate) fn of(bootstrap: Option<String>, properties: Vec<(String, String)>) -> Connection {
        Connection {
            bootstrap,
            timeout: None,
            properties,
        }
    }

    /// The same with another broker.
    pub(crate) fn at(&self, bootstrap: String) -> Connection {
        Connection {
            bootstrap: Some(bootstrap),
            ..self.clone()
        }
    }

    /// Whether somebody named the broker.
    pub(crate) fn is_named(&self) -> bool {
        self.bootstrap.is_some()
    }

    /// How long to wait for an answer of the broker.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT_DEFAULT)
    }

    /// The broker as the user named it, for messages.
    pub(crate) fn broker(&self) -> &str {
        self.bootstrap.as_deref().unwrap_or(BOOTSTRAP_DEFAULT)
    }

    /// Whether the broker is named by an address of this machine.
    pub(crate) fn is_local(&self) -> bool {
        let mut servers = self.broker().split(',').map(split_server);
        servers.all(|server| server.is_ok_and(|(host, _)| is_loopback(&host)))
    }

    /// The configuration of a librdkafka client, after making sure that somebody listens at the address.
    ///
    /// # Errors
    /// Nobody does, or a name cannot be resolved: librdkafka would go on trying until the time is up and then report
    /// a timeout, which helps nobody.
    pub(crate) fn config(&self) -> Outcome<ClientConfig> {
        let servers = self.reach()?;
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", servers)
            .set("client.id", "anabranch")
            .set("allow.auto.create.topics", "false")
            .set("log_level", "0");
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        Ok(config)
    }

    /// Whether somebody wants the broker to create a topic that is asked for.
    pub(crate) fn may_create_topics(&self) -> bool {
        let mut last_first = self.properties.iter().rev();
        let found = last_first.find(|(name, _)| name == "allow.auto.create.topics");
        found.is_some_and(|(_, value)| value != "false")
    }

    /// Bytes on disk of each partition that the broker named first has; empty if it does not say.
    pub(crate) fn sizes(&self, partitions: &[TopicPartition]) -> BTreeMap<TopicPartition, i64> {
        let stream = self.broker().split(',').find_map(|server| {
            let (host, port) = split_server(server).ok()?;
            connect(&host, port, self.timeout().min(CONNECT_TIMEOUT)).ok()
        });
        stream
            .and_then(|stream| log_dirs::sizes(stream, self.timeout(), partitions))
            .unwrap_or_default()
    }

    /// The broker list with ports, if at least one of its addresses accepts a connection.
    fn reach(&self) -> Outcome<String> {
        let servers = servers_of(self.broker()).map_err(|why| {
            Failure::usage(format!("--bootstrap {}: {why}", self.broker()))
                .hint("write HOST:PORT, for example 127.0.0.1:9092")
        })?;
        let mut refusals = Vec::new();
        for (host, port) in &servers {
            match connect(host, *port, self.timeout().min(CONNECT_TIMEOUT)) {
                Ok(_) => {
                    let texts: Vec<String> = servers
                        .iter()
                        .map(|(host, port)| format!("{host}:{port}"))
                        .collect();
                    return Ok(texts.join(","));
                }
                Err(why) => refusals.push(format!("cannot reach {host}:{port}: {why}")),
            }
        }
        let hint = if servers.iter().all(|(host, _)| is_loopback(host)) {
            "is a broker running? start one with `anabranch serve`, or name another with --bootstrap HOST:PORT"
        } else {
            "is the address right and reachable from here? --bootstrap HOST:PORT names another"
        };
        Err(Failure::unreachable(refusals.join("; ")).hint(hint))
    }
}

/// Hosts and ports of a list that is separated by commas.
pub(super) fn servers_of(broker: &str) -> Result<Vec<(String, u16)>, String> {
    broker.split(',').map(split_server).collect()
}

/// Splits `HOST[:PORT]`; an IPv6 address stays in its brackets, as librdkafka wants it.
fn split_server(text: &str) -> Result<(String, u16), String> {
    let text = text.trim();
    if let Some((scheme, rest)) = text.split_once("://") {
        return Err(format!(
            "it is an address, not a URL: \"{rest}\" without \"{scheme}://\""
        ));
    }
    let (host, port) = match text.rfind(']') {
        Some(end) => text.split_at(end + 1),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let port = match port.strip_prefix(':') {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse()
            .map_err(|_| format!("\"{port}\" is not a port, which is a number from 1 to 65535"))?,
    };
    Ok((host.to_owned(), port))
}

/// Whether a host is this machine and nobody else's; an IPv6 address may stand in brackets.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = bare(host);
    bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// A host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Opens a connection to the first address of the host that takes one.
pub(super) fn connect(host: &str, port: u16, timeout: Duration) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = (bare(host), port)
        .to_socket_addrs()
        .map_err(|_| "the host name cannot be resolved".to_owned())?
        .collect();
    let mut why = "the host name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = refusal(&error, timeout),
        }
    }
    Err(why)
}

/// Why a connection failed.
fn refusal(error: &io::Error, timeout: Duration) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => format!("no answer within {} s", timeout.as_secs_f32()),
        _ => reason(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connection(bootstrap: &str) -> Connection {
        Connection {
            bootstrap: Some(bootstrap.to_owned()),
            timeout: Some(Duration::from_secs(1)),
            properties: Vec::new(),
        }
    }

    #[test]
    fn flags_behind_the_command_are_stronger_than_those_before_it() {
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let early = Early {
            bootstrap: Some("early:1".to_owned()),
            timeout: Some(Duration::from_secs(7)),
            properties: vec![property("a", "early"), property("b", "early")],
        };
        let environment = Some("environment:1".to_owned());
        let mut late = Connection {
            properties: vec![property("a", "late")],
            ..connection("late:1")
        };
        late.complete(&early, environment.clone());
        assert_eq!(
            (late.broker(), late.timeout()),
            ("late:1", Duration::from_secs(1))
        );
        assert_eq!(
            late.properties,
            [
                property("a", "early"),
                property("b", "early"),
                property("a", "late")
            ]
        );
        let mut silent = Connection::default();
        silent.complete(&early, environment.clone());
        assert_eq!(
            (silent.broker(), silent.timeout()),
            ("early:1", Duration::from_secs(7))
        );
        let mut silent = Connection::default();
        silent.complete(&Early::default(), environment);
        assert_eq!(silent.broker(), "environment:1");
        silent = Connection::default();
        silent.complete(&Early::default(), None);
        assert_eq!(
            (silent.broker(), silent.timeout()),
            (BOOTSTRAP_DEFAULT, TIMEOUT_DEFAULT)
        );
        assert_eq!(
            (early.given(), Early::default().given()),
            (Some("--bootstrap"), None)
        );
    }

    #[test]
    fn servers_may_leave_out_the_port() {
        assert_eq!(split_server(" localhost "), Ok(("localhost".to_owned(), 9092)));
        assert_eq!(split_server("[::1]:7"), Ok(("[::1]".to_owned(), 7)));
        assert_eq!(split_server("[::1]"), Ok(("[::1]".to_owned(), 9092)));
        assert!(
            split_server("host:kafka")
                .unwrap_err()
                .contains("\"kafka\" is not a port")
        );
        assert!(
            split_server("http://h:1")
                .unwrap_err()
                .contains("\"h:1\" without")
        );
        assert!(split_server(":1").unwrap_err().contains("host is missing"));
    }

    #[test]
    fn hosts_of_this_machine_are_known() {
        for host in ["localhost", "127.0.0.1", "127.9.8.7", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "127.example.org", "0.0.0.0", "[::]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn one_reachable_server_is_enough() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let live = listener.local_addr().unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let servers = format!("{dead},{live}");
        assert_eq!(connection(&servers).reach(), Ok(servers.clone()));

        let failure = connection(&dead.to_string()).reach().unwrap_err();
        assert_eq!(
            failure.message,
            format!("cannot reach {dead}: connection refused")
        );
        assert!(failure.hint.unwrap().contains("anabranch serve"));
    }
}
