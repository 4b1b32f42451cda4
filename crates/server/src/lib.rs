//! The Anabranch server: sockets, time, threads. It decides nothing; decisions are `anabranch-core`'s.
//!
//! ```text
//! listener -> connection (reader | pipeline | writer, one task) -> dispatch -> api/* -> Node (one short lock) + Store
//!                             ^                                                            |
//!                             +---- durable: the answer leaves once its LSN is on disk <---+
//! ```

mod config;
pub mod metrics;
pub mod settings;

pub use config::{Advertised, Config, DEFAULT_HTTP, DEFAULT_LISTEN, Durability, Limits, Listener, Storage};
