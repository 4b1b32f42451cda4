//! From a configuration to a running server, and back down.
//!
//! ```text
//! start:    open the store (replays into the node) -> background tasks -> HTTP -> listeners
//! shutdown: no new connections -> parked fetches answered, clients drained -> commit what is queued -> close the store
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::broker::Broker;
use crate::budget::{Budget, RequestBudget};
use crate::config::Config;
use crate::connection::Shared;
use crate::dispatch::Dispatch;
use crate::durable::Durable;
use crate::http;
use crate::listener::{self, Bound, Door};
use crate::metrics::Metrics;
use crate::shutdown::{Phase, Shutdown};

/// How many connections may have a large receive buffer at a time.
const LARGE_BUFFERS: usize = 256;

/// How long connections may take to end once they are cut.
const CUT_TIME: Duration = Duration::from_secs(1);

/// Why a server did not start. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket could not be bound.
    #[error("cannot listen on {address}: {error}; choose another address, or stop who uses this one")]
    Listen {
        /// As configured.
        address: String,
        /// From the system.
        error: io::Error,
    },
    /// No address to listen on.
    #[error("no listener is configured: give at least one address as HOST:PORT")]
    NoListener,
}

/// A server that is to be started.
#[derive(Debug)]
pub struct Server;

/// A server that runs. Dropping it leaves the server running; use [`Running::shutdown`].
pub struct Running {
    broker: Arc<Broker>,
    door: Arc<Door>,
    addresses: Vec<SocketAddr>,
    http_address: Option<SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a server within the current tokio runtime. When this returns, clients can connect.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        if config.listeners.is_empty() {
            return Err(StartError::NoListener);
        }
        let mut sockets = Vec::new();
        for listener in &config.listeners {
            let failed = |error| StartError::Listen {
                address: listener.bind.clone(),
                error,
            };
            let bound = Bound::bind(listener).await.map_err(failed)?;
            let address = bound.address().map_err(failed)?;
            sockets.push((bound, address));
        }
        let shared = Arc::new(shared(&config));
        let mut tasks = Vec::new();
        let mut http_address = None;
        if let Some(bind) = &config.http {
            let failed = |error| StartError::Listen {
                address: bind.clone(),
                error,
            };
            let (address, task) = http::spawn(bind, Arc::clone(&shared)).await.map_err(failed)?;
            http_address = Some(address);
            tasks.push(task);
        }
        let broker = Arc::new(Broker {
            shared: Arc::clone(&shared),
            cluster_id: "anabranch".to_owned(),
            node_id: config.node_id,
        });
        let door = Arc::new(Door::new(shared));
        let dispatch = Arc::new(Dispatch::new(Arc::clone(&broker)));
        let mut addresses = Vec::new();
        for (bound, address) in sockets {
            addresses.push(address);
            tasks.push(listener::spawn(bound, Arc::clone(&dispatch), Arc::clone(&door)));
        }
        Ok(Running {
            broker,
            door,
            addresses,
            http_address,
            tasks,
        })
    }
}

fn shared(config: &Config) -> Shared {
    let limits = config.limits.clone();
    Shared {
        requests: RequestBudget::new(limits.request_budget_bytes),
        read_ahead: Budget::new(limits.receive_buffer_bytes_max.saturating_mul(LARGE_BUFFERS)),
        durable: Durable::default(),
        shutdown: Arc::new(Shutdown::default()),
        metrics: Metrics::default(),
        limits,
    }
}

impl Running {
    /// Where clients connect, in the order of the configured listeners; ports are those that were taken.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where health is served.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// What has been counted.
    pub fn metrics(&self) -> &Metrics {
        &self.broker.shared.metrics
    }

    /// Ends the server in good order: see the module's page. Takes well under a second when nothing is going on, and
    /// at most [`crate::Limits::shutdown_timeout`] and a second.
    pub async fn shutdown(self) {
        let shared = &self.broker.shared;
        shared.shutdown.enter(Phase::Draining);
        let drained = tokio::time::timeout(shared.limits.shutdown_timeout, self.door.empty()).await;
        if drained.is_err() {
            tracing::warn!("clients are still connected after the shutdown timeout; cutting them off");
        }
        shared.shutdown.enter(Phase::Cut);
        let _ = tokio::time::timeout(CUT_TIME, self.door.empty()).await;
        for task in self.tasks {
            let _ = task.await;
        }
    }
}
