//! The raw load driver: prepared bytes over plain sockets in one thread, so that the broker is what is measured.

pub(crate) mod admin;
pub(crate) mod bytes;
pub(crate) mod consume;
pub(crate) mod latency;
pub(crate) mod payload;
pub(crate) mod produce;
pub(crate) mod socket;

/// The time in milliseconds since 1970. Records must carry the present one: what retention counts as old is deleted under
/// those who read it, which Kafka does half a minute after its start.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Longest time that is told apart from longer ones, in microseconds.
pub(crate) const ANSWER_US_MAX: u64 = 60_000_000;
