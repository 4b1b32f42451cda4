//! Tests of the divided cursor.

mod bench;
mod codec;
mod commits;
mod expiry;
mod explore;
mod moves;
mod reads;
mod regressions;
