//! The Anabranch server: sockets, time, threads. It decides nothing; decisions are `anabranch-core`'s, and how they become
//! durable is `anabranch-engine`'s.
//!
//! ```text
//! listener -> connection (reader | pipeline | writer, one task) -> dispatch -> api/* -> Engine (one short lock) + Store
//!                             ^                                                            |
//!                             +---- durable: the answer leaves once its LSN is on disk <---+
//! ```
//!
//! | file | what it knows |
//! |---|---|
//! | `server` | the way up and down; the library's door ([`Server`], [`Running`]) |
//! | `listener`, `connection`, `budget` | clients: who may come in, and what each may cost |
//! | `dispatch`, `api` | from bytes to the core's methods and back, one file per family of APIs |
//! | `broker` | the lock around the engine, and who is told what comes out of it |
//! | `durable`, `fetch_wait`, `group_replies` | who waits for what: the disk, records, other members |
//! | `fetching` | a fetch that may wait: memory, threads, parking |
//! | `queues` | the counts of topics in queue mode, for tasks and operators |
//! | `background` | when what happens by itself is due |
//! | `metrics`, `timed_disk`, `http`, `admin`, `console`, `exposition`, `log_limit` | what is told to operators |
//! | `progress` | how far groups have read, for all of these |
//! | `shutdown`, `clock` | the phases of the end; the only reader of clocks |
//!
//! Memory is bounded by what [`Limits`] says, whatever clients send; time under the lock by what a request may name.

pub mod admin;
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
mod console;
mod dispatch;
mod durable;
mod exposition;
mod fetch_wait;
mod fetching;
mod group_clock;
mod group_replies;
mod http;
mod listener;
mod log_limit;
pub mod metrics;
mod progress;
mod queues;
mod server;
pub mod settings;
mod shutdown;
mod timed_disk;

pub use config::{Advertised, Config, DEFAULT_HTTP, DEFAULT_LISTEN, Durability, Limits, Listener, Storage};
pub use exposition::metrics_page;
pub use server::{Failure, Running, Server, StartError, is_unresolved_name};
