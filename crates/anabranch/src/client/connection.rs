//! Which broker, how long to wait for it, and whether anybody is there.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anabranch_server::settings::parse_duration_ms;
use rdkafka::ClientConfig;

use super::{TopicPartition, log_dirs};
use crate::failure::{Failure, Outcome};

/// Kafka's port, for a broker named without one.
const DEFAULT_PORT: u16 = 9092;

/// Longest wait for one address to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The flags that say which broker to talk to; the same for all client commands.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The broker to start from; several may be separated by commas.
    #[arg(
        short = 'b',
        long,
        alias = "bootstrap-server",
        alias = "brokers",
        global = true,
        env = "ANABRANCH_BOOTSTRAP",
        hide_env_values = true,
        default_value = "127.0.0.1:9092",
        value_name = "HOST:PORT"
    )]
    bootstrap: String,
    /// How long to wait for the broker.
    #[arg(long, global = true, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    timeout: Duration,
    /// Set a property of librdkafka, the Kafka client inside these commands.
    #[arg(short = 'X', global = true, value_name = "KEY=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration_ms(text).map(Duration::from_millis)
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Connection {
    /// How long to wait for an answer of the broker.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The broker as the user named it, for messages.
    pub(crate) fn broker(&self) -> &str {
        &self.bootstrap
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

    /// Bytes on disk of each partition that the broker named first has; empty if it does not say.
    pub(crate) fn sizes(&self, partitions: &[TopicPartition]) -> BTreeMap<TopicPartition, i64> {
        let stream = self.bootstrap.split(',').find_map(|server| {
            let (host, port) = split_server(server).ok()?;
            connect(&host, port, self.timeout.min(CONNECT_TIMEOUT)).ok()
        });
        stream
            .and_then(|stream| log_dirs::sizes(stream, self.timeout, partitions))
            .unwrap_or_default()
    }

    /// The broker list with ports, if at least one of its addresses accepts a connection.
    fn reach(&self) -> Outcome<String> {
        let servers: Vec<(String, u16)> = self
            .bootstrap
            .split(',')
            .map(split_server)
            .collect::<Result<_, _>>()
            .map_err(|why| {
                Failure::usage(format!("--bootstrap {}: {why}", self.bootstrap))
                    .hint("write HOST:PORT, for example 127.0.0.1:9092")
            })?;
        let mut refusals = Vec::new();
        for (host, port) in &servers {
            match connect(host, *port, self.timeout.min(CONNECT_TIMEOUT)) {
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
        let local = |host: &str| host == "localhost" || host.starts_with("127.") || host == "[::1]";
        let hint = if servers.iter().all(|(host, _)| local(host)) {
            "is a broker running? start one with `anabranch serve`, or name another with --bootstrap HOST:PORT"
        } else {
            "is the address right and reachable from here? --bootstrap HOST:PORT names another"
        };
        Err(Failure::unreachable(refusals.join("; ")).hint(hint))
    }
}

/// Splits `HOST[:PORT]`; an IPv6 address stays in its brackets, as librdkafka wants it.
fn split_server(text: &str) -> Result<(String, u16), String> {
    let text = text.trim();
    let (host, port) = match text.rfind(']') {
        Some(end) => text.split_at(end + 1),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let port = match port.strip_prefix(':') {
        None => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| format!("\"{port}\" is not a port"))?,
    };
    Ok((host.to_owned(), port))
}

/// Opens a connection to the first address of the host that takes one.
fn connect(host: &str, port: u16, timeout: Duration) -> Result<TcpStream, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<SocketAddr> = (bare, port)
        .to_socket_addrs()
        .map_err(|_| "the host name cannot be resolved".to_owned())?
        .collect();
    let mut refusal = "the host name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => refusal = reason(&error, timeout),
        }
    }
    Err(refusal)
}

/// The reason of a failed connection without the number that only programmers know.
fn reason(error: &io::Error, timeout: Duration) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut => format!("no answer within {} s", timeout.as_secs_f32()),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connection(bootstrap: &str) -> Connection {
        Connection {
            bootstrap: bootstrap.to_owned(),
            timeout: Duration::from_secs(1),
            properties: Vec::new(),
        }
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
        assert!(split_server(":1").unwrap_err().contains("host is missing"));
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
