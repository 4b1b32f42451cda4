//! The administration API over HTTP, as its clients see it: [`model`] has the documents, `docs/openapi.json` the paths.
//!
//! ```text
//! request -> guard: is it meant for this server, may it order -> routes -> groups, topics, messages, offsets, overview, events
//!                                                                            |  look under the lock, count and read without it
//!                                                                            v
//!                                                                          model: the document
//! ```
//!
//! | file | what it knows |
//! |---|---|
//! | `routes` | which path is answered by whom; orders to the planner |
//! | `guard` | who may ask and order |
//! | `overview`, `rates` | everything in a few numbers, and how fast they grow |
//! | `groups`, `view`, `bands` | one group: who holds which slots, what is left where |
//! | `decisions` | what was decided and refused |
//! | `topics`, `messages`, `offsets` | one topic, its records, what groups have committed |
//! | `events` | all of it as it changes |
//! | `state` | what the handlers share |
//!
//! Of decisions: with `after`, they are the oldest behind that number; without it, the latest `limit` ones. Either way they
//! stand in the order of their numbers, and `next` is the `after` that continues behind them. `group` leaves out the others.
//!
//! Every answer is bounded: rows have a most, and what is left out is counted. An answer that is no success carries a
//! [`model::Refusal`].

mod bands;
mod decisions;
mod events;
mod groups;
pub(crate) mod guard;
mod messages;
pub mod model;
mod offsets;
#[cfg(test)]
mod openapi;
mod overview;
mod rates;
pub(crate) mod routes;
pub(crate) mod state;
mod topics;
mod view;
