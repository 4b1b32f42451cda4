//! Which records are old or many enough to go: a pure function of sizes and times.
//!
//! The store tells, per log, its *runs*: the consecutive records that lie in one segment of the shared log. Records go
//! in whole runs, oldest first, and never beyond the high watermark:
//!
//! - **by size** (retention.bytes): while what is left without the oldest run is still at least the bound. So at
//!   least the bound is kept;
//! - **by time** (retention.ms): while the newest timestamp of the oldest run is older than the bound. The first run
//!   that is not stops it, as in Kafka: nothing is deleted out of the middle.
//!
//! Time is not the wall clock itself but the [`clock`], which follows it downwards at once and upwards with limited
//! speed: a wall clock that jumps by a year must not delete what is not old.
//!
//! A timestamp from the future would keep its run, and all behind it, for ever; and a record without a timestamp would
//! go at once. So the age of a run whose newest timestamp is missing or ahead of the clock is taken from what else is
//! known: it has been here unchanged for at least as long as this process has seen it so, counted on the monotonic clock
//! ([`Sightings`]; volatile, so that after a restart such a run is kept longer, never shorter). Timestamps of newer runs
//! say nothing about it: they are the producers' choice, and somebody may copy old records.

use super::FetchBounds;
use crate::config::TopicSettings;
use crate::ids::{LogId, Offset};
use crate::limits;
use std::collections::BTreeMap;

/// What the store knows about one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// The log.
    pub log: LogId,
    /// Bytes of all its batches that still exist.
    pub bytes: u64,
    /// Its runs in offset order.
    pub runs: Vec<Run>,
}

/// Consecutive records of one log within one segment of the shared log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first record.
    pub first_offset: Offset,
    /// Offset of the last record.
    pub last_offset: Offset,
    /// Bytes of the batches.
    pub bytes: u64,
    /// Newest timestamp in milliseconds, -1 if no record has one.
    pub max_timestamp: i64,
}

/// Since when runs of unknown age have been here unchanged: offset of their last record -> monotonic milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sightings(BTreeMap<Offset, u64>);

impl Sightings {
    /// Takes in what the store says now. A run that has grown counts from now on.
    fn update(&mut self, mono_ms: u64, clock_ms: i64, stats: &LogStats) {
        let unknown = stats
            .runs
            .iter()
            .filter(|run| !run.is_dated(clock_ms))
            .map(|run| run.last_offset);
        self.0 = unknown
            .map(|last| (last, self.0.get(&last).copied().unwrap_or(mono_ms)))
            .collect();
    }

    fn unchanged_ms(&self, run: &Run, mono_ms: u64) -> i64 {
        let since = self.0.get(&run.last_offset).copied().unwrap_or(mono_ms);
        i64::try_from(mono_ms.saturating_sub(since)).unwrap_or(i64::MAX)
    }
}

impl Run {
    /// Whether its newest timestamp can be believed.
    fn is_dated(&self, clock_ms: i64) -> bool {
        (0..=clock_ms).contains(&self.max_timestamp)
    }
}

/// The retention clock, in wall milliseconds, `elapsed_ms` of monotonic time after it showed `clock_ms`: the wall clock
/// if that is behind, else at most [`limits::RETENTION_CLOCK_SPEED`] times as fast as real time.
pub(crate) fn clock(clock_ms: i64, elapsed_ms: u64, wall_ms: i64) -> i64 {
    let step = i64::try_from(elapsed_ms.saturating_mul(limits::RETENTION_CLOCK_SPEED)).unwrap_or(i64::MAX);
    wall_ms.min(clock_ms.saturating_add(step))
}

/// The new start of the log, if retention moves it.
pub(super) fn plan(
    settings: &TopicSettings,
    bounds: FetchBounds,
    mono_ms: u64,
    clock_ms: i64,
    sightings: &mut Sightings,
    stats: &LogStats,
) -> Option<Offset> {
    if !settings.delete {
        return None;
    }
    sightings.update(mono_ms, clock_ms, stats);
    let mut left = stats.bytes;
    let mut start = bounds.start;
    for run in &stats.runs {
        if run.last_offset >= bounds.high_watermark {
            break;
        }
        left = left.saturating_sub(run.bytes);
        if run.last_offset < bounds.start {
            continue;
        }
        let age_ms = age_ms(run, clock_ms).max(sightings.unchanged_ms(run, mono_ms));
        let too_many = settings.retention_bytes.is_some_and(|bytes| left >= bytes);
        let too_old = settings.retention_ms.is_some_and(|ms| age_ms > ms);
        if !too_many && !too_old {
            break;
        }
        start = run.last_offset + 1;
    }
    (start > bounds.start).then_some(start)
}

/// How old the newest record of a run is by its timestamp; 0 if that does not tell.
fn age_ms(run: &Run, clock_ms: i64) -> i64 {
    if run.is_dated(clock_ms) {
        clock_ms.saturating_sub(run.max_timestamp)
    } else {
        0
    }
}

#[cfg(test)]
#[path = "retention_test.rs"]
mod tests;
