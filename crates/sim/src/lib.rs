//! Brokers, clients and faults in one thread, from a seed, against one oracle per invariant.
//!
//! ```text
//!            plan (from the seed)
//!              |
//!   world: time, chance, queue of events, trace
//!     |              |                 |
//!   client/*  <---  net  --->  broker: the engine, planner included, on store's SimDisk
//!     |                                |
//!     +-----------> oracle/* <---------+          faults: crashes, disk, clock, connections, clients
//! ```
//!
//! What is real: every decision (`core`), every byte on disk (`store`). What is a model: time, network, disk, clients,
//! and the glue that the server is otherwise. Nothing here reads a clock, starts a thread, or iterates over a hash
//! map; so a seed is a run, and the same seed twice is the same run, byte for byte of its trace. What nobody asks for is not told:
//! a run keeps a hash of its course, and makes words of itself only to be compared or shown ([`world::Keep`]).
//!
//! A violation is reported with its seed, and with its story: what concerned the partition that it is about.
//! `cargo xtask sim --first SEED --seeds 1` runs it again.
//!
//! In two runs of three, groups divide partitions among their members, with thresholds so low and times so short that
//! splits, steals, merges, fences and ways back come many times in each. `mutants` breaks the rules of that one by one, to
//! see that the oracles notice.

pub mod broker;
mod calm;
pub mod client;
pub mod disk;
pub mod faults;
pub mod message;
#[cfg(feature = "planted-faults")]
pub mod mutants;
pub mod net;
pub mod oracle;
pub mod plan;
pub mod record;
pub mod rng;
pub mod run;
pub mod sights;
pub mod world;

pub use run::{Outcome, Run};
