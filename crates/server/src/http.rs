//! HTTP: `/healthz` says that the process lives, `/readyz` that it serves clients; the rest is [`crate::admin`],
//! [`crate::console`] and [`crate::exposition`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::admin::guard::{Guard, known_host};
use crate::admin::routes::Door;
use crate::admin::state::Admin;
use crate::connection::Shared;
use crate::shutdown::Phase;
use crate::{admin, console, exposition};

/// Binds `HOST:PORT` and serves until the server has shut down.
pub(crate) async fn spawn(
    bind: &str,
    shared: Arc<Shared>,
    door: Door,
    guard: Guard,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let socket = TcpListener::bind(bind).await?;
    let address = socket.local_addr()?;
    let task = tokio::spawn(async move {
        let ended = Arc::clone(&shared.shutdown);
        let end = async move { ended.reached(Phase::Cut).await };
        let service = routes(shared, door, guard).into_make_service_with_connect_info::<SocketAddr>();
        if let Err(error) = axum::serve(socket, service).with_graceful_shutdown(end).await {
            tracing::error!(%error, "the HTTP server has failed");
        }
    });
    Ok((address, task))
}

fn routes(shared: Arc<Shared>, door: Door, guard: Guard) -> Router {
    let ready = move || {
        let ready = readiness(&shared);
        async move { ready }
    };
    let metrics = get(exposition::handle).with_state(Arc::clone(&door));
    let admin = Admin::new(door, guard);
    let known_host = middleware::from_fn_with_state(admin.guard(), known_host);
    let pages = Router::new()
        .merge(console::routes())
        .merge(admin::routes::routes(admin))
        .layer(known_host);
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", metrics)
        .merge(pages)
}

fn readiness(shared: &Shared) -> (StatusCode, &'static str) {
    if shared.durable.has_failed() {
        (StatusCode::SERVICE_UNAVAILABLE, "the store has failed\n")
    } else if shared.shutdown.phase() > Phase::Running {
        (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
    } else {
        (StatusCode::OK, "ready\n")
    }
}
