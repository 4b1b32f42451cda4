//! The state and the store, kept in step. No thread, no clock, no chance, no waiting: the server and the simulator both run
//! this code, and what the simulator proves of it holds for the server.
//!
//! ```text
//!                  Engine (under the owner's lock)
//! request ------> | decide (core) -> apply -> append to the journal  | ----> what the owner passes on: the answer, the
//!                 |                                                  |       entry that it waits for, replies to others
//! commit -------> | high watermarks and log starts move              | ----> effects on logs, for the store
//! ```
//!
//! The order of calls that everything rests on is in here, and nowhere else:
//!
//! - a command is applied, and appended to the journal, before anything else is decided;
//! - a batch gets its offsets and enters the queue in one step;
//! - what the coordinator has changed is journaled before its answers leave the engine;
//! - the store hears of deletions once they are durable, and after an open where each log begins.
//!
//! | file | what it does |
//! |---|---|
//! | `engine` | [`Engine`]: changes of the state, groups, commits |
//! | `produce` | from a batch to its place in the queue |
//! | `fetch` | what a reader may see, and reading it; the reading without the lock |
//! | `slice_fetch` | the part of a Fetch that reads slices |
//! | `slices` | what members that share a partition read of it, and what is left for them |
//! | `counting` | records by slot, for the planner of elastic groups |
//! | `recalling` | which records were handed out before a restart |
//! | `chores` | what happens without being asked: retention, expiry, deadlines, snapshots |
//! | `recovery` | how the state comes back |
//!
//! What is left to the owner: sockets, the lock, when chores are due, and who waits for what.

mod chores;
pub mod counting;
mod engine;
pub mod fetch;
pub mod produce;
pub mod recalling;
mod recovery;
pub mod slice_fetch;
pub mod slices;

pub use chores::{Deleted, log_stats, tell_store};
pub use engine::{Engine, Journal, Outcome, Update};
pub use recovery::Recovery;

#[cfg(test)]
mod queues_test;
#[cfg(test)]
mod tests;
