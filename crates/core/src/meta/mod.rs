//! The durable state of the broker apart from logs and groups, and the commands that change it.
//!
//! ```text
//! a request -> Node decides -> Command --encode--> journal (store)
//!                                 |                    |
//!                                 +--> apply           | after a restart
//!                                        |             v
//!                                      State <-- apply <- decode
//! ```
//!
//! A [`Command`] says what is, not what is wanted: ids, times and log numbers are in it. Everything was checked before it
//! was made, so applying it is total and deterministic: two nodes that apply the same commands are equal, byte for byte
//! in their snapshots. What a command cannot find it does nothing about.
//!
//! The bytes are described in `docs/format/state.md` and pinned by tests.

mod command;
mod state;

pub use command::{Command, Resource};
pub use state::{State, Topic};

#[cfg(test)]
pub(crate) mod samples;
