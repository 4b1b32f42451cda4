//! Tests of the divided cursor.

mod bench;
mod codec;
mod commits;
mod expiry;
mod moves;
mod reads;
