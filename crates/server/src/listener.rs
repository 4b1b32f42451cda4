//! Sockets for clients: binding them, and admitting connections within the limits.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_core::group::Connection as ConnectionId;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::config::{Advertised, Limits, Listener};
use crate::connection::{Connection, Peer, Service, Shared};
use crate::log_limit::LogLimit;
use crate::shutdown::Phase;

/// Pause after a failure to accept (too many open files, mostly), so that it does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: TcpListener,
    advertise: Option<Advertised>,
}

impl Bound {
    /// Binds `listener`.
    pub(crate) async fn bind(listener: &Listener) -> io::Result<Self> {
        let socket = TcpListener::bind(listener.bind.as_str()).await?;
        Ok(Self {
            socket,
            advertise: listener.advertise.clone(),
        })
    }

    /// Where it listens, with the port that was taken.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What a client that dialled `local` is to connect to: as configured, or what it dialled. Never a wildcard, as
    /// the local address of an accepted socket is none.
    fn advertised(&self, local: SocketAddr) -> Advertised {
        self.advertise.clone().unwrap_or_else(|| Advertised {
            host: local.ip().to_canonical().to_string(),
            port: local.port(),
        })
    }
}

/// Accepts until the server drains.
pub(crate) fn spawn<S: Service>(bound: Bound, service: Arc<S>, door: Arc<Door>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let shutdown = Arc::clone(&door.shared.shutdown);
        tokio::select! {
            () = accept_all(&bound, &service, &door) => {}
            () = shutdown.reached(Phase::Draining) => {}
        }
    })
}

async fn accept_all<S: Service>(bound: &Bound, service: &Arc<S>, door: &Arc<Door>) {
    loop {
        match bound.socket.accept().await {
            Ok((stream, addr)) => admit(bound, stream, addr, service, door),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn admit<S: Service>(bound: &Bound, stream: TcpStream, addr: SocketAddr, service: &Arc<S>, door: &Arc<Door>) {
    let metrics = &door.shared.metrics;
    metrics.connections_accepted.inc();
    let visitor = match door.enter(addr.ip()) {
        Ok(visitor) => visitor,
        Err(reason) => {
            metrics.connections_refused.inc();
            door.report(addr, reason);
            return;
        }
    };
    // Either call fails only if the client is gone already.
    let (Ok(local), Ok(())) = (stream.local_addr(), stream.set_nodelay(true)) else {
        return;
    };
    let peer = Peer {
        connection: door.next_connection(),
        addr,
        advertised: bound.advertised(local),
        software: None,
    };
    let farewell = Farewell {
        service: Arc::clone(service),
        connection: peer.connection,
    };
    let connection = Connection::new(stream, peer, Arc::clone(service), Arc::clone(&door.shared));
    tokio::spawn(async move {
        let _farewell = farewell;
        let (peer, close) = connection.run().await;
        if close.is_expulsion() {
            visitor.door.shared.metrics.connections_expelled.inc();
            visitor.door.report(peer.addr, &close);
        } else {
            tracing::debug!(peer = %peer.addr, software = ?peer.software, reason = %close, "connection closed");
        }
    });
}

/// Tells the service that a connection has ended, however it did.
struct Farewell<S: Service> {
    service: Arc<S>,
    connection: ConnectionId,
}

impl<S: Service> Drop for Farewell<S> {
    fn drop(&mut self) {
        self.service.closed(self.connection);
    }
}

/// Counts who is inside.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) shared: Arc<Shared>,
    inside: Mutex<Inside>,
    emptied: tokio::sync::Notify,
    log: LogLimit,
    connections: AtomicU64,
}

#[derive(Debug, Default)]
struct Inside {
    total: usize,
    per_ip: HashMap<IpAddr, usize>,
}

impl Door {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            inside: Mutex::default(),
            emptied: tokio::sync::Notify::new(),
            log: LogLimit::default(),
            connections: AtomicU64::new(1),
        }
    }

    /// A name for a new connection.
    fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    fn enter(self: &Arc<Self>, ip: IpAddr) -> Result<Visitor, &'static str> {
        let limits: &Limits = &self.shared.limits;
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.total >= limits.connections_max {
            return Err("refused: max.connections is reached");
        }
        if inside.per_ip.get(&ip).copied().unwrap_or(0) >= limits.connections_per_ip_max {
            return Err("refused: max.connections.per.ip is reached");
        }
        inside.total += 1;
        *inside.per_ip.entry(ip).or_default() += 1;
        self.shared.metrics.connections_now.inc();
        Ok(Visitor {
            door: Arc::clone(self),
            ip,
        })
    }

    /// Resolves once nobody is inside.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.inside.lock().unwrap_or_else(PoisonError::into_inner).total == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn report(&self, peer: SocketAddr, reason: impl std::fmt::Display) {
        if let Some(suppressed) = self.log.admit(peer.ip(), std::time::Instant::now()) {
            tracing::warn!(%peer, %reason, suppressed, "connection closed");
        }
    }
}

/// A connection that is counted.
struct Visitor {
    door: Arc<Door>,
    ip: IpAddr,
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.door.shared.metrics.connections_now.dec();
        let mut inside = self.door.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.total -= 1;
        if let Some(count) = inside.per_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                inside.per_ip.remove(&self.ip);
            }
        }
        if inside.total == 0 {
            self.door.emptied.notify_waiters();
        }
    }
}
