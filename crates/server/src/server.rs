//! From a configuration to a running server, and back down.
//!
//! ```text
//! start:    open the store (replays into the node) -> background tasks -> HTTP -> listeners
//! shutdown: no new connections -> parked fetches answered, clients drained -> commit what is queued -> close the store
//! ```

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anabranch_core::ids::Lsn;
use anabranch_core::limits::RECEIVE_BUFFERS_LARGE_MAX;
use anabranch_core::node::Options as NodeOptions;
use anabranch_engine::{Engine, Recovery};
use anabranch_store::{Disk, Event, OpenError, RealDisk, Store};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::admin::guard::{Guard, parse_token};
use crate::background;
use crate::broker::{Broker, Parts};
use crate::budget::{Budget, RequestBudget};
use crate::clock::{Clock, wall_ms};
use crate::config::{Config, Durability};
use crate::connection::Shared;
use crate::dispatch::Dispatch;
use crate::durable::Durable;
use crate::http;
use crate::listener::{self, Bound, Door};
use crate::metrics::Metrics;
use crate::shutdown::{Phase, Shutdown};
use crate::timed_disk::TimedDisk;

/// How long connections may take to end once they are cut.
const CUT_TIME: Duration = Duration::from_secs(1);

/// Why a server did not start. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket could not be bound.
    #[error("cannot listen on {address}: {}", listen_reason(error))]
    Listen {
        /// As configured.
        address: String,
        /// From the system.
        error: io::Error,
    },
    /// A broker setting is unknown, or its value is not possible.
    #[error("{0}")]
    Setting(#[from] anabranch_core::Refused),
    /// The data folder could not be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The thread that opened the data folder was lost.
    #[error("the data folder could not be opened: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
    /// The token of the HTTP listener cannot be had.
    #[error("cannot take the token from {} (admin.token.file): {why}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No address to listen on.
    #[error("no listener is configured: give at least one address as HOST:PORT")]
    NoListener,
}

/// Whether it is that a host name means no address. The standard library has no kind for that.
pub fn is_unresolved_name(error: &io::Error) -> bool {
    error.to_string().starts_with("failed to lookup address")
}

/// Why an address could not be listened on, and the cure.
fn listen_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there; stop it, or choose another address".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; 0.0.0.0 stands for all that it has".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "no permission; ports below 1024 are for privileged processes, choose a higher one".to_owned()
        }
        _ if is_unresolved_name(error) => {
            "the host name cannot be resolved; write an address of this machine, such as 0.0.0.0 for all that it has"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Why a server that ran has come to an end that it should not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; what was acknowledged is safe, start the broker again to recover")]
pub struct Failure {
    why: String,
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
        Self::start_on(config, Arc::new(RealDisk)).await
    }

    /// The same on a disk of the caller's, for tests and simulations.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub async fn start_on(config: Config, disk: Arc<dyn Disk>) -> Result<Running, StartError> {
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
        let clock = Clock::new();
        let metrics = Arc::new(Metrics::default());
        let disk = Arc::new(TimedDisk::new(disk, Arc::clone(&metrics)));
        let engine = open(&config, disk, clock.now()).await?;
        let shared = Arc::new(shared(&config, engine.store().committed(), metrics));
        let mut http_address = None;
        let mut tasks = Vec::new();
        let door = crate::admin::routes::Door::default();
        if let Some((address, task)) = serve_http(&config, &shared, &door).await? {
            http_address = Some(address);
            tasks.push(task);
        }
        let (log_effects, effects) = mpsc::unbounded_channel();
        let broker = Arc::new(Broker::new(Parts {
            cluster_id: engine.store().cluster_id(),
            engine,
            shared: Arc::clone(&shared),
            clock,
            data_dir: config.data_dir.clone(),
            log_effects,
        }));
        // Only set once: this is the one broker of this server.
        let _ = door.set(Arc::downgrade(&broker));
        let upkeep = Arc::new(Notify::new());
        listen_to_store(&broker, &upkeep);
        broker.chore(Engine::note_retention_clock);
        broker.chore(Engine::resume_slices);
        tasks.extend(background::spawn(&broker, effects, upkeep));
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

/// Starts to serve HTTP, if that is wanted and, where it is only the default, possible.
async fn serve_http(
    config: &Config,
    shared: &Arc<Shared>,
    door: &crate::admin::routes::Door,
) -> Result<Option<(SocketAddr, JoinHandle<()>)>, StartError> {
    let Some(bind) = &config.http else {
        return Ok(None);
    };
    let guard = guard(config)?;
    match http::spawn(bind, Arc::clone(shared), Arc::clone(door), guard).await {
        Ok(serving) => Ok(Some(serving)),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && !config.http_required => {
            tracing::warn!(
                "{bind} is in use, so nothing is served over HTTP; `http` names another address, or none"
            );
            Ok(None)
        }
        Err(error) => Err(StartError::Listen {
            address: bind.clone(),
            error,
        }),
    }
}

/// Who may ask and order over HTTP, with the token from its file.
fn guard(config: &Config) -> Result<Guard, StartError> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        text.and_then(|text| parse_token(&text))
            .map_err(|why| StartError::Token {
                path: path.clone(),
                why,
            })
    };
    Ok(Guard {
        hosts: config.admin_hosts.clone(),
        token: config.admin_token_file.as_ref().map(read).transpose()?,
    })
}

/// Opens the data folder, on a thread that may wait for the disk, and brings the state back.
async fn open(
    config: &Config,
    disk: Arc<dyn Disk>,
    started: anabranch_core::ids::Now,
) -> Result<Engine<Arc<Store>>, StartError> {
    let mut configs = config.broker.clone();
    configs
        .entry("log.retention.check.interval.ms".to_owned())
        .or_insert_with(|| config.storage.retention_interval.as_millis().to_string());
    let mut recovery = Recovery::new(NodeOptions {
        node_id: config.node_id,
        configs,
        started,
        ..NodeOptions::default()
    })?;
    let options = store_options(config);
    let folder = config.data_dir.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let store = Store::open(&folder, disk, options, &mut recovery)?;
        Ok::<_, OpenError>(recovery.finish(started, Arc::new(store)))
    });
    let engine = opened.await??;
    tracing::debug!(recovered = ?engine.store().recovered(), "data folder opened");
    Ok(engine)
}

fn store_options(config: &Config) -> anabranch_store::Options {
    let storage = &config.storage;
    anabranch_store::Options {
        segment_bytes: storage.segment_bytes,
        cache_bytes: storage.cache_bytes,
        durability: match config.durability {
            Durability::Durable => anabranch_store::Durability::Durable,
            Durability::Relaxed => anabranch_store::Durability::Relaxed,
        },
        direct_io: storage.direct_io,
        free_bytes_min: Some(storage.free_bytes_min),
        now_ms: wall_ms(),
        ..anabranch_store::Options::default()
    }
}

/// Has the store tell the broker what is durable, and what went wrong.
fn listen_to_store(broker: &Arc<Broker>, upkeep: &Arc<Notify>) {
    // Weak, since the broker owns the store.
    let weak: Weak<Broker> = Arc::downgrade(broker);
    broker.store.on_commit(Box::new(move |commit| {
        if let Some(broker) = weak.upgrade() {
            broker.committed(commit.upto, commit.tails);
        }
    }));
    let weak = Arc::downgrade(broker);
    let upkeep = Arc::clone(upkeep);
    broker.store.on_event(Box::new(move |event| match event {
        Event::SegmentSealed { .. } => upkeep.notify_one(),
        Event::Poisoned { message } => {
            if let Some(broker) = weak.upgrade() {
                broker.fail(format!("the store has failed: {message}"));
            }
        }
        Event::Damaged(damage) => {
            tracing::error!(%damage, "stored data is damaged; everything else can be read");
        }
        _ => {}
    }));
}

fn shared(config: &Config, committed: Lsn, metrics: Arc<Metrics>) -> Shared {
    let limits = config.limits.clone();
    Shared {
        requests: RequestBudget::new(limits.request_budget_bytes),
        read_ahead: Budget::new(
            limits
                .receive_buffer_bytes_max
                .saturating_mul(RECEIVE_BUFFERS_LARGE_MAX),
        ),
        durable: Durable::new(committed),
        shutdown: Arc::new(Shutdown::default()),
        metrics,
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
        self.broker.shared.metrics.as_ref()
    }

    /// The id of the cluster, as clients see it.
    pub fn cluster_id(&self) -> &str {
        &self.broker.cluster_id
    }

    /// Where the data lies.
    pub fn data_dir(&self) -> &Path {
        &self.broker.data_dir
    }

    /// Resolves if the broker cannot go on (the disk failed, say): then the process is to end, with an error.
    pub async fn failed(&self) -> Failure {
        Failure {
            why: self.broker.failed().await,
        }
    }

    /// Ends the server in good order: see the module's page. Takes well under a second when nothing is going on, and
    /// at most [`crate::Limits::shutdown_timeout`] and a few seconds.
    ///
    /// # Errors
    /// [`Failure`] if the broker had failed, or the store could not be closed in good order.
    pub async fn shutdown(self) -> Result<(), Failure> {
        let Self {
            broker, door, tasks, ..
        } = self;
        let shared = Arc::clone(&broker.shared);
        shared.shutdown.enter(Phase::Draining);
        broker.release_parked();
        if tokio::time::timeout(shared.limits.shutdown_timeout, door.empty())
            .await
            .is_err()
        {
            tracing::warn!("clients are still connected after the shutdown timeout; they are cut off");
        }
        shared.shutdown.enter(Phase::Cut);
        let cut = async {
            door.empty().await;
            for task in tasks {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(CUT_TIME, cut).await.is_err() {
            tracing::warn!("connections or tasks did not end in time");
        }
        drop(door);
        close(broker).await
    }
}

/// Commits what is queued and gives the data folder back.
async fn close(broker: Arc<Broker>) -> Result<(), Failure> {
    let closed = tokio::task::spawn_blocking(move || {
        if let Some(why) = broker.failure() {
            return Err(Failure { why });
        }
        broker.store.wait_committed(broker.store.last());
        background::write_snapshot(&broker);
        match into_store(broker) {
            Some(store) => match store.close() {
                true => Ok(()),
                false => Err(Failure {
                    why: "the store could not be closed in good order".to_owned(),
                }),
            },
            // Somebody holds on to the broker; the store ends with them, as after a crash, with all that is committed.
            None => Ok(()),
        }
    });
    let failed = |error| Failure {
        why: format!("the store could not be closed: {error}"),
    };
    closed.await.map_err(failed)?
}

/// Takes the store out of a broker that nobody else holds. The commit thread holds it for moments.
fn into_store(mut broker: Arc<Broker>) -> Option<Store> {
    let deadline = std::time::Instant::now() + CUT_TIME;
    loop {
        match Arc::try_unwrap(broker) {
            Ok(broker) => return broker.into_store(),
            Err(_) if std::time::Instant::now() > deadline => return None,
            Err(shared) => broker = shared,
        }
        std::thread::yield_now();
    }
}
