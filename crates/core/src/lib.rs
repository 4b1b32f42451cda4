//! Every decision of the broker, as pure state machines: time and chance are arguments, and nothing here does IO.
//!
//! [`node::Node`] is the only door for the server. It owns the durable [`meta::State`] (topics, configurations,
//! counters) and one [`log::Log`] per partition (bounds, sequence numbers of idempotent producers). A method that
//! decides a change returns [`meta::Command`]s and changes nothing; [`node::Node::apply`] makes the change, and cannot
//! fail. The server applies a command and journals its bytes under one lock, so that replaying the journal in order
//! gives the same state again.

pub mod codec;
pub mod config;
pub mod cursor;
pub mod elastic;
pub mod group;
pub mod ids;
pub mod limits;
pub mod log;
pub mod meta;
pub mod node;
pub mod queues;
mod refused;
pub mod sieve;
pub mod slots;

pub use refused::Refused;
