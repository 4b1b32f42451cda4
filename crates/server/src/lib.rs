//! The Anabranch server: sockets, time, threads. It decides nothing; decisions are `anabranch-core`'s.
//!
//! ```text
//! listener -> connection (reader | pipeline | writer, one task) -> dispatch -> api/* -> Node (one short lock) + Store
//!                             ^                                                            |
//!                             +---- durable: the answer leaves once its LSN is on disk <---+
//! ```

#[expect(
    clippy::needless_pass_by_value,
    reason = "all handlers have one signature, and most consume their request"
)]
mod api;
mod background;
mod broker;
mod budget;
mod clock;
mod config;
mod connection;
mod dispatch;
mod durable;
mod fetch_wait;
mod fetching;
mod group_replies;
mod http;
mod listener;
mod log_limit;
pub mod metrics;
mod recovery;
mod server;
pub mod settings;
mod shutdown;
mod timed_disk;

pub use config::{Advertised, Config, DEFAULT_HTTP, DEFAULT_LISTEN, Durability, Limits, Listener, Storage};
pub use server::{Failure, Running, Server, StartError};
