//! The administration API over HTTP, as its clients see it: [`model`] has the documents, this page the resources.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/v1/groups/{group}` | [`model::Group`] |
//! | `GET /api/v1/groups/{group}/plan` | [`model::Decisions`]: what the planner would decide now; nothing happens |
//! | `GET /api/v1/decisions?group=G&after=SEQ&limit=N&wait_ms=M` | [`model::Decisions`], waiting for the first up to `M` ms |
//! | `POST /api/v1/groups/{group}/split`, `.../merge` with a [`model::Order`] | [`model::Decisions`] |
//! | `POST /api/v1/groups/{group}/pause`, `.../resume` | [`model::Decisions`] |
//!
//! With `after`, decisions are the oldest behind that number; without it, the latest `limit` ones. Either way they stand
//! in the order of their numbers, and `next` is the `after` that continues behind them. `group` leaves out the others.
//!
//! An answer that is no success carries a [`model::Refusal`].

pub mod model;
pub(crate) mod routes;
mod view;
