//! Retention: by size, by time, and what a wrong clock or a wrong timestamp must not do.

use super::*;
use crate::config::{Layers, Values};
use proptest::prelude::*;

const DAY: i64 = 86_400_000;
const YEAR: i64 = 365 * DAY;
const NOW: i64 = 1_800_000_000_000;

fn settings(ms: Option<i64>, bytes: Option<u64>) -> TopicSettings {
    let none = Values::new();
    let settings = TopicSettings::new(
        &none,
        Layers {
            broker: &none,
            cluster: &none,
            fixed: &none,
        },
    );
    TopicSettings {
        retention_ms: ms,
        retention_bytes: bytes,
        ..settings
    }
}

/// Runs of ten records and 100 bytes each, with these newest timestamps.
fn stats(timestamps: &[i64]) -> LogStats {
    let run = |(at, timestamp): (usize, &i64)| {
        let first_offset = at as i64 * 10;
        Run {
            first_offset,
            last_offset: first_offset + 9,
            bytes: 100,
            max_timestamp: *timestamp,
        }
    };
    let runs: Vec<_> = timestamps.iter().enumerate().map(run).collect();
    LogStats {
        log: LogId(1),
        bytes: runs.iter().map(|run| run.bytes).sum(),
        runs,
    }
}

fn all(stats: &LogStats) -> FetchBounds {
    FetchBounds {
        start: 0,
        high_watermark: stats.runs.last().map_or(0, |run| run.last_offset + 1),
    }
}

fn plan_once(settings: &TopicSettings, stats: &LogStats) -> Option<Offset> {
    plan(settings, all(stats), 0, NOW, &mut Sightings::default(), stats)
}

#[test]
fn time_takes_whole_old_runs_from_the_front() {
    let week = settings(Some(7 * DAY), None);
    assert_eq!(
        plan_once(&week, &stats(&[NOW - 9 * DAY, NOW - 8 * DAY, NOW - 6 * DAY])),
        Some(20)
    );
    assert_eq!(
        plan_once(&week, &stats(&[NOW - 9 * DAY, NOW - 8 * DAY])),
        Some(20),
        "the newest run, too"
    );
    assert_eq!(
        plan_once(&week, &stats(&[NOW - 6 * DAY, NOW - 9 * DAY])),
        None,
        "nothing out of the middle"
    );
    assert_eq!(
        plan_once(&week, &stats(&[NOW - 7 * DAY])),
        None,
        "exactly the bound is kept"
    );
    assert_eq!(plan_once(&settings(None, None), &stats(&[0, 1])), None);
    assert_eq!(plan_once(&week, &LogStats::default()), None);
}

#[test]
fn size_keeps_at_least_the_bound() {
    let four = stats(&[NOW; 4]);
    for (bytes, start) in [
        (400, None),
        (301, None),
        (300, Some(10)),
        (250, Some(10)),
        (1, Some(30)),
        (0, Some(40)),
    ] {
        assert_eq!(plan_once(&settings(None, Some(bytes)), &four), start, "{bytes}");
    }
}

#[test]
fn never_beyond_the_high_watermark_and_never_for_compacted_topics() {
    let old = stats(&[1, 2, 3]);
    let bounds = FetchBounds {
        start: 0,
        high_watermark: 25,
    };
    let week = settings(Some(DAY), None);
    assert_eq!(
        plan(&week, bounds, 0, NOW, &mut Sightings::default(), &old),
        Some(20)
    );
    let compacted = TopicSettings {
        delete: false,
        compact: true,
        ..week
    };
    assert_eq!(plan_once(&compacted, &old), None);
}

#[test]
fn runs_that_are_gone_already_are_not_counted() {
    let four = stats(&[NOW; 4]);
    let bounds = FetchBounds {
        start: 15,
        ..all(&four)
    };
    let plan = |bytes| {
        plan(
            &settings(None, Some(bytes)),
            bounds,
            0,
            NOW,
            &mut Sightings::default(),
            &four,
        )
    };
    assert_eq!(plan(250), None);
    assert_eq!(plan(200), Some(20));
}

#[test]
fn a_young_run_ahead_of_the_clock_stays_although_old_timestamps_were_written_behind_it() {
    let week = settings(Some(7 * DAY), None);
    // The clock is a little behind the producers', or catching up; then somebody copies old records.
    for ahead in [NOW + 1_000, i64::MAX, -1] {
        assert_eq!(
            plan_once(&week, &stats(&[ahead, NOW - 30 * DAY])),
            None,
            "{ahead}"
        );
        assert_eq!(
            plan_once(&week, &stats(&[ahead, NOW - 30 * DAY, NOW])),
            None,
            "{ahead}"
        );
    }
}

#[test]
fn runs_of_unknown_age_go_once_they_were_seen_unchanged_for_long_enough() {
    let week = settings(Some(7 * DAY), None);
    let mut seen = Sightings::default();
    let mut at = |day: i64, stats: &LogStats| {
        plan(
            &week,
            all(stats),
            (day * DAY) as u64,
            NOW + day * DAY,
            &mut seen,
            stats,
        )
    };
    let mut growing = stats(&[i64::MAX, -1]);
    assert_eq!(at(0, &growing), None);
    assert_eq!(at(7, &growing), None);
    if let Some(last) = growing.runs.last_mut() {
        last.last_offset += 1;
    }
    assert_eq!(
        at(8, &growing),
        Some(10),
        "the second one has grown: young records may be in it"
    );
    assert_eq!(at(16, &growing), Some(21));
}

#[test]
fn the_clock_follows_down_at_once_and_up_slowly() {
    assert_eq!(clock(NOW, 1_000, NOW + 1_000), NOW + 1_000);
    assert_eq!(clock(NOW, 1_000, NOW + YEAR), NOW + 24_000);
    assert_eq!(clock(NOW, 0, NOW + YEAR), NOW, "after a restart as well");
    assert_eq!(clock(NOW, 1_000, NOW - YEAR), NOW - YEAR);
    assert_eq!(clock(i64::MAX, u64::MAX, NOW), NOW);
}

#[test]
fn a_jump_of_a_year_deletes_nothing_within_a_day() {
    let week = settings(Some(7 * DAY), None);
    let fresh = stats(&[NOW - 3_600_000, NOW]);
    let (mut time, mut mono) = (NOW, 0u64);
    // 6.9 hours of the clock at 24 times its speed are 6.9 days.
    while mono < 6 * 3_600_000 + 54 * 60_000 {
        mono += 300_000;
        time = clock(time, 300_000, NOW + YEAR + mono as i64);
        assert_eq!(
            plan(&week, all(&fresh), mono, time, &mut Sightings::default(), &fresh),
            None,
            "{mono}"
        );
    }
}

fn runs() -> impl Strategy<Value = LogStats> {
    let run = (
        1i64..50,
        0u64..1000,
        prop_oneof![Just(-1), Just(i64::MAX), NOW - 20 * DAY..NOW + DAY],
    );
    prop::collection::vec(run, 0..12).prop_map(|rows| {
        let mut next = 0;
        let runs: Vec<_> = rows
            .into_iter()
            .map(|(count, bytes, max_timestamp)| {
                let first_offset = next;
                next += count;
                Run {
                    first_offset,
                    last_offset: next - 1,
                    bytes,
                    max_timestamp,
                }
            })
            .collect();
        LogStats {
            log: LogId(1),
            bytes: runs.iter().map(|run| run.bytes).sum(),
            runs,
        }
    })
}

proptest! {
    #[test]
    fn what_goes_is_old_or_too_much(stats in runs(), ms in prop::option::of(0..20 * DAY), bytes in prop::option::of(0u64..5000), watermark in 0i64..300) {
        let settings = settings(ms, bytes);
        let bounds = FetchBounds { start: 0, high_watermark: watermark };
        let Some(start) = plan(&settings, bounds, 0, NOW, &mut Sightings::default(), &stats) else { return Ok(()) };
        prop_assert!(start > 0 && start <= watermark);
        let mut left = stats.bytes;
        let mut end = 0;
        for run in stats.runs.iter().filter(|run| run.last_offset < start) {
            left -= run.bytes;
            let by_size = bytes.is_some_and(|bytes| left >= bytes);
            let by_time = ms.is_some_and(|ms| !run.is_dated(NOW) || NOW - run.max_timestamp > ms);
            prop_assert!(by_size || by_time);
            end = run.last_offset + 1;
        }
        prop_assert_eq!(end, start, "whole runs");
    }

    #[test]
    fn a_later_clock_never_keeps_more(stats in runs(), ms in 0..20 * DAY, later in 0..DAY) {
        let settings = settings(Some(ms), None);
        // Without timestamps between the two clocks, which turn from "future" to dated.
        prop_assume!(stats.runs.iter().all(|run| run.max_timestamp <= NOW || run.max_timestamp == i64::MAX));
        let at = |clock| plan(&settings, all(&stats), 0, clock, &mut Sightings::default(), &stats).unwrap_or(0);
        prop_assert!(at(NOW + later) >= at(NOW));
    }
}
