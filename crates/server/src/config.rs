//! What a server is started with: one plain struct, every default in one place.
//!
//! Files, environment variables and flags are somebody else's concern (`settings`); this is what they end in. Tests
//! and tools fill it in directly:
//!
//! ```
//! use anabranch_server::Config;
//!
//! let config = Config { data_dir: "/tmp/anabranch".into(), ..Config::default() }.listen("127.0.0.1:0");
//! assert_eq!(config.listeners.len(), 1);
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_core::limits;

/// Where the broker listens unless told otherwise: this machine only.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:9092";

/// Where health is served unless told otherwise: this machine only.
pub const DEFAULT_HTTP: &str = "127.0.0.1:9099";

/// Everything a server needs to know before it starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Folder that holds all data; created if it is missing.
    pub data_dir: PathBuf,
    /// Sockets for Kafka clients. Port 0 takes a free one ([`crate::Running::addresses`] tells which).
    pub listeners: Vec<Listener>,
    /// `HOST:PORT` for the console, its API, metrics and health; `None` serves no HTTP.
    pub http: Option<String>,
    /// Names besides addresses, `localhost` and names without a dot that the console and its API answer to; `*` is every name.
    pub admin_hosts: Vec<String>,
    /// File with the token that lets orders in from other machines; `None` lets none in.
    pub admin_token_file: Option<PathBuf>,
    /// Whether the server is to start only if [`Config::http`] is free. An address that nobody chose need not be.
    pub http_required: bool,
    /// When a produce is acknowledged.
    pub durability: Durability,
    /// Node id shown to clients, 0 or more.
    pub node_id: i32,
    /// Broker settings under Kafka's names (`num.partitions`, `log.retention.ms`, ...) that differ from the default.
    pub broker: BTreeMap<String, String>,
    /// Bounds on what clients may cost.
    pub limits: Limits,
    /// Sizes of the store.
    pub storage: Storage,
}

/// One socket for Kafka clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// `HOST:PORT` to bind; names are resolved.
    pub bind: String,
    /// What clients are told to connect to. `None`: the address that the client itself dialled.
    pub advertise: Option<Advertised>,
}

/// A host and port that clients are told to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Advertised {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// When a produce is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the disk confirmed it: survives loss of power.
    #[default]
    Durable,
    /// After it was handed to the operating system: survives the end of the process only.
    Relaxed,
}

/// Sizes of the store.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Size of one write-ahead segment file, bytes.
    pub segment_bytes: u64,
    /// Memory for recently written data, from which tailing readers are served, bytes.
    pub cache_bytes: usize,
    /// Whether to go past the page cache where the file system allows it.
    pub direct_io: bool,
    /// Below this much free space produces are refused until there is more again, bytes.
    pub free_bytes_min: u64,
    /// How often retention is applied.
    pub retention_interval: Duration,
}

/// Bounds on what clients may cost. Each is enforced before memory or time is spent.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest request, bytes without the length prefix (`socket.request.max.bytes`).
    pub request_bytes_max: usize,
    /// Memory for request bodies of all connections together, bytes. Beyond it sockets are not read.
    pub request_budget_bytes: usize,
    /// Memory for fetch answers of all connections together that are on their way, bytes.
    pub response_budget_bytes: usize,
    /// Largest receive buffer of a connection while small requests are pipelined, bytes.
    pub receive_buffer_bytes_max: usize,
    /// Requests of one connection that may wait for their answer; beyond it the socket is not read.
    pub in_flight_requests_max: usize,
    /// Bytes of requests of one connection that may wait for their answer; one request is always admitted.
    pub in_flight_bytes_max: usize,
    /// Connections in total (`max.connections`).
    pub connections_max: usize,
    /// Connections from one address (`max.connections.per.ip`).
    pub connections_per_ip_max: usize,
    /// A connection without a request for this long is closed (`connections.max.idle.ms`).
    pub idle_timeout: Duration,
    /// A request whose bytes stop coming for this long costs the connection.
    pub stall_timeout: Duration,
    /// Slowest accepted delivery of a request body, bytes per second, after a first [`Limits::stall_timeout`].
    pub body_rate_min: usize,
    /// An answer that the client does not take for this long costs the connection.
    pub write_timeout: Duration,
    /// Longest time a fetch may be parked, whatever the client asks for.
    pub fetch_wait_max: Duration,
    /// Longest time a shutdown waits for clients and disk.
    pub shutdown_timeout: Duration,
    /// How long a shutdown keeps answering what idle connections still send.
    pub shutdown_grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("anabranch-data"),
            listeners: Vec::new(),
            http: None,
            admin_hosts: Vec::new(),
            admin_token_file: None,
            http_required: true,
            durability: Durability::Durable,
            node_id: 1,
            broker: BTreeMap::new(),
            limits: Limits::default(),
            storage: Storage::default(),
        }
    }
}

impl Config {
    /// Adds a listener at `HOST:PORT` that advertises whatever address the client dialled.
    #[must_use]
    pub fn listen(mut self, bind: impl Into<String>) -> Self {
        self.listeners.push(Listener {
            bind: bind.into(),
            advertise: None,
        });
        self
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            segment_bytes: 128 << 20,
            cache_bytes: 128 << 20,
            direct_io: true,
            free_bytes_min: 256 << 20,
            retention_interval: Duration::from_secs(5 * 60),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes_max: limits::REQUEST_BYTES_MAX,
            request_budget_bytes: limits::REQUEST_MEMORY_BYTES_MAX,
            response_budget_bytes: limits::RESPONSE_MEMORY_BYTES_MAX,
            receive_buffer_bytes_max: limits::RECEIVE_BUFFER_BYTES_MAX,
            in_flight_requests_max: limits::REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX,
            in_flight_bytes_max: limits::REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_ip_max: limits::CONNECTIONS_PER_ADDRESS_MAX,
            idle_timeout: Duration::from_millis(limits::CONNECTION_IDLE_MS_MAX),
            stall_timeout: Duration::from_millis(limits::REQUEST_STALL_MS_MAX),
            body_rate_min: limits::REQUEST_BYTES_PER_SECOND_MIN,
            write_timeout: Duration::from_millis(limits::RESPONSE_WRITE_MS_MAX),
            fetch_wait_max: Duration::from_millis(limits::FETCH_WAIT_MS_MAX),
            shutdown_timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_millis(200),
        }
    }
}
