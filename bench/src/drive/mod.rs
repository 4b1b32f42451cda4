//! The raw load driver: prepared bytes over plain sockets in one thread, so that the broker is what is measured.

pub(crate) mod admin;
pub(crate) mod bytes;
pub(crate) mod consume;
pub(crate) mod latency;
pub(crate) mod payload;
pub(crate) mod produce;
pub(crate) mod socket;

/// Longest time that is told apart from longer ones, in microseconds.
pub(crate) const ANSWER_US_MAX: u64 = 60_000_000;
