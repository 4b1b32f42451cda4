//! What is counted: plain atomics, incremented where things happen, read by whoever reports them.
//!
//! All counters only grow (except the gauges, named `*_now`), are relaxed, and say nothing about each other at one
//! instant. Units are in the names.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_wire::ErrorCode;

/// API keys that have a counter of their own; higher ones share the last.
const APIS: usize = 128;

/// Error codes that have a counter of their own, from -1.
const CODES: usize = 160;

/// Upper bounds of the histogram buckets, microseconds; beyond the last lies one more bucket.
pub const BUCKETS_US: [u64; 16] = [
    50, 75, 100, 150, 200, 300, 500, 750, 1_000, 2_000, 5_000, 10_000, 25_000, 100_000, 500_000, 2_000_000,
];

/// A number that grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Takes one away: gauges only.
    pub fn dec(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// The value now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations by bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Counter; BUCKETS_US.len() + 1],
    sum_us: Counter,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|bound| *bound < us);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.inc();
        }
        self.sum_us.add(us);
    }

    /// Count per bucket; the last one has no upper bound.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().map(Counter::get)
    }

    /// Sum of all durations, microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us.get()
    }
}

/// Everything the server counts.
#[derive(Debug)]
pub struct Metrics {
    requests: [Counter; APIS],
    /// Made when an API is first used: most never are.
    request_times: [OnceLock<Box<Histogram>>; APIS],
    errors: [Counter; CODES],
    /// Bytes read from clients.
    pub received_bytes: Counter,
    /// Bytes written to clients.
    pub sent_bytes: Counter,
    /// Connections that are open.
    pub connections_now: Counter,
    /// Connections ever accepted.
    pub connections_accepted: Counter,
    /// Connections refused by a limit.
    pub connections_refused: Counter,
    /// Connections closed for what they sent, or failed to send or take in time.
    pub connections_expelled: Counter,
    /// Records appended.
    pub produced_records: Counter,
    /// Bytes of batches appended.
    pub produced_bytes: Counter,
    /// Batches recognised as already appended.
    pub produced_duplicates: Counter,
    /// Bytes of batches handed out.
    pub fetched_bytes: Counter,
    /// Fetches that were parked.
    pub fetches_parked: Counter,
    /// Fetches that had to read from disk.
    pub fetches_from_disk: Counter,
    /// Groups that the commit thread wrote.
    pub commit_groups: Counter,
    /// Time that the disk took to make bytes durable.
    pub sync_time: Histogram,
    /// Topics created because a client asked for their metadata.
    pub topics_auto_created: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: std::array::from_fn(|_| Counter::default()),
            request_times: std::array::from_fn(|_| OnceLock::new()),
            errors: std::array::from_fn(|_| Counter::default()),
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
            connections_now: Counter::default(),
            connections_accepted: Counter::default(),
            connections_refused: Counter::default(),
            connections_expelled: Counter::default(),
            produced_records: Counter::default(),
            produced_bytes: Counter::default(),
            produced_duplicates: Counter::default(),
            fetched_bytes: Counter::default(),
            fetches_parked: Counter::default(),
            fetches_from_disk: Counter::default(),
            commit_groups: Counter::default(),
            sync_time: Histogram::default(),
            topics_auto_created: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts a request of the API with number `key`.
    pub(crate) fn request(&self, key: i16) {
        let index = usize::try_from(key).unwrap_or(APIS).min(APIS - 1);
        if let Some(counter) = self.requests.get(index) {
            counter.inc();
        }
    }

    /// Counts how long the API with number `key` took to answer a request.
    pub(crate) fn answered(&self, key: i16, took: Duration) {
        let index = usize::try_from(key).unwrap_or(APIS).min(APIS - 1);
        if let Some(times) = self.request_times.get(index) {
            times.get_or_init(Box::default).observe(took);
        }
    }

    /// How long the API with number `key` took to answer; `None` if it has answered nothing yet.
    pub fn request_time(&self, key: i16) -> Option<&Histogram> {
        let index = usize::try_from(key).ok()?;
        self.request_times.get(index)?.get().map(Box::as_ref)
    }

    /// Counts an answer with `code`.
    pub(crate) fn error(&self, code: ErrorCode) {
        let index = usize::try_from(code.code().saturating_add(1))
            .unwrap_or(0)
            .min(CODES - 1);
        if let Some(counter) = self.errors.get(index) {
            counter.inc();
        }
    }

    /// Requests of the API with number `key`.
    pub fn requests(&self, key: i16) -> u64 {
        usize::try_from(key)
            .ok()
            .and_then(|index| self.requests.get(index))
            .map_or(0, Counter::get)
    }

    /// Errors answered with `code`.
    pub fn errors(&self, code: ErrorCode) -> u64 {
        usize::try_from(code.code() + 1)
            .ok()
            .and_then(|index| self.errors.get(index))
            .map_or(0, Counter::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_codes_outside_the_tables_are_counted_somewhere() {
        let metrics = Metrics::default();
        for key in [-5, 0, 18, 500, i16::MAX] {
            metrics.request(key);
        }
        assert_eq!(metrics.requests(0), 1);
        assert_eq!(metrics.requests(18), 1);
        assert_eq!(metrics.requests(127), 3);
        metrics.error(ErrorCode::UnknownServerError);
        metrics.error(ErrorCode::RebootstrapRequired);
        assert_eq!(metrics.errors(ErrorCode::UnknownServerError), 1);
        assert_eq!(metrics.errors(ErrorCode::RebootstrapRequired), 1);
    }

    #[test]
    fn durations_fall_into_the_bucket_that_bounds_them() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(50));
        histogram.observe(Duration::from_micros(51));
        histogram.observe(Duration::from_secs(60));
        let counts: Vec<u64> = histogram.counts().collect();
        assert_eq!(counts[0], 1);
        assert_eq!(counts[1], 1);
        assert_eq!(counts[BUCKETS_US.len()], 1);
        assert_eq!(histogram.sum_us(), 60_000_101);
    }
}
