//! One log: offsets, bounds, size and timestamp checks.

use super::*;
use crate::config::{Layers, Values};

const NOW: Now = Now {
    mono_ms: 1_000,
    wall_ms: 1_700_000_000_000,
};

fn settings(pairs: &[(&str, &str)]) -> TopicSettings {
    let own: Values = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let none = Values::new();
    TopicSettings::new(
        &own,
        Layers {
            broker: &none,
            cluster: &none,
            fixed: &none,
        },
    )
}

fn log(pairs: &[(&str, &str)]) -> Log {
    Log::new(LogId(3), TopicId([1; 16]), 0, settings(pairs))
}

fn plain(count: i32) -> BatchFacts {
    BatchFacts {
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count,
        last_offset_delta: count - 1,
        base_timestamp: NOW.wall_ms,
        max_timestamp: NOW.wall_ms,
        size: 100,
        is_transactional: false,
    }
}

fn new(base_offset: Offset) -> Result<Append, AppendError> {
    Ok(Append::New {
        log: LogId(3),
        base_offset,
        leader_epoch: 0,
        log_append_time_ms: None,
    })
}

#[test]
fn offsets_are_consecutive_and_visible_once_durable() {
    let mut log = log(&[]);
    assert_eq!(log.append(NOW, &plain(3), 10), new(0));
    assert_eq!(log.append(NOW, &plain(1), 10), new(3));
    assert_eq!((log.next_offset(), log.high_watermark()), (4, 0));
    assert!(log.committed(3));
    assert_eq!(
        log.fetch_bounds(0),
        Ok(FetchBounds {
            start: 0,
            high_watermark: 3
        })
    );
    assert!(!log.committed(2), "a watermark never goes back");
    assert_eq!(log.high_watermark(), 3);
}

#[test]
fn a_fetch_may_wait_at_the_end_but_not_beyond() {
    let mut log = log(&[]);
    assert_eq!(log.append(NOW, &plain(5), 10), new(0));
    log.committed(5);
    log.decide_start(2);
    assert!(log.fetch_bounds(0).is_ok(), "not before it is durable");
    log.commit_start(2);
    for (offset, ok) in [
        (1, false),
        (2, true),
        (4, true),
        (5, true),
        (6, false),
        (-1, false),
        (i64::MAX, false),
    ] {
        assert_eq!(log.fetch_bounds(offset).is_ok(), ok, "{offset}");
    }
    log.decide_start(1);
    log.commit_start(1);
    assert_eq!(
        (log.start(), log.decided_start()),
        (2, 2),
        "a start never goes back"
    );
    log.commit_start(4);
    assert_eq!(log.start(), 2, "nor beyond what was decided");
    log.decide_start(99);
    log.commit_start(99);
    assert_eq!((log.start(), log.decided_start()), (5, 5), "nor beyond the end");
}

#[test]
fn retries_wait_for_the_last_append() {
    let mut log = log(&[]);
    let batch = BatchFacts {
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: 0,
        ..plain(2)
    };
    assert_eq!(log.append(NOW, &batch, 10), new(0));
    log.appended(Lsn(5));
    assert_eq!(log.append(NOW, &plain(1), 10), new(2));
    log.appended(Lsn(9));
    let again = Append::Duplicate {
        base_offset: 0,
        log_append_time_ms: None,
        lsn: Lsn(9),
    };
    assert_eq!(log.append(NOW, &batch, 10), Ok(again));
    // A retry is acknowledged even if the batch would be refused by now.
    log.set_settings(settings(&[("max.message.bytes", "10")]));
    assert_eq!(log.append(NOW, &batch, 10), Ok(again));
    assert_eq!(log.next_offset(), 3);
}

#[test]
fn large_batches_are_refused_and_so_are_those_behind_them() {
    let mut log = log(&[("max.message.bytes", "100")]);
    let batch = |sequence, size| BatchFacts {
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: sequence,
        size,
        ..plain(1)
    };
    let refused = log.append(NOW, &batch(0, 101), 10).unwrap_err();
    assert_eq!(refused, AppendError::TooLarge { size: 101, max: 100 });
    assert_eq!(refused.code(), ErrorCode::MessageTooLarge);
    let behind = log.append(NOW, &batch(1, 50), 10).unwrap_err();
    assert_eq!(behind.code(), ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(log.append(NOW, &batch(0, 50), 10), new(0));
}

#[test]
fn timestamps_are_held_to_the_bounds_of_the_topic() {
    let mut log = log(&[
        ("message.timestamp.before.max.ms", "1000"),
        ("message.timestamp.after.max.ms", "500"),
    ]);
    let mut at = |base: i64, max: i64| {
        let batch = BatchFacts {
            base_timestamp: base,
            max_timestamp: max,
            ..plain(1)
        };
        log.append(NOW, &batch, 10).map_err(|error| error.code()).is_ok()
    };
    let now = NOW.wall_ms;
    assert!(at(now - 1000, now + 500));
    assert!(!at(now - 1001, now));
    assert!(!at(now, now + 501));
    assert!(!at(now, i64::MAX), "the year 292,278,994");
    assert!(!at(0, 0), "1970");
    assert!(at(-1, -1), "no timestamp at all");
    let error = AppendError::Timestamp {
        timestamp: 1,
        now_ms: 2,
        max_ms: 0,
        side: "behind",
    };
    assert_eq!(error.code(), ErrorCode::InvalidTimestamp);
}

#[test]
fn the_broker_can_be_the_one_who_sets_the_time() {
    let mut log = log(&[
        ("message.timestamp.type", "LogAppendTime"),
        ("message.timestamp.before.max.ms", "0"),
    ]);
    let batch = BatchFacts {
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: 0,
        base_timestamp: 1,
        ..plain(1)
    };
    let time = Some(NOW.wall_ms);
    let first = Append::New {
        log: LogId(3),
        base_offset: 0,
        leader_epoch: 0,
        log_append_time_ms: time,
    };
    assert_eq!(log.append(NOW, &batch, 10), Ok(first));
    let later = Now {
        wall_ms: NOW.wall_ms + 60_000,
        ..NOW
    };
    let again = Append::Duplicate {
        base_offset: 0,
        log_append_time_ms: time,
        lsn: Lsn(0),
    };
    assert_eq!(
        log.append(later, &batch, 10),
        Ok(again),
        "a retry is told the first time"
    );
}

#[test]
fn transactions_are_refused() {
    let batch = BatchFacts {
        is_transactional: true,
        producer_id: 1,
        producer_epoch: 0,
        base_sequence: 0,
        ..plain(1)
    };
    assert_eq!(
        log(&[]).append(NOW, &batch, 10).map_err(|e| e.code()),
        Err(ErrorCode::InvalidTxnState)
    );
}

#[test]
fn producers_are_bounded() {
    let mut log = log(&[]);
    for id in 0..20 {
        let batch = BatchFacts {
            producer_id: id,
            producer_epoch: 0,
            base_sequence: 0,
            ..plain(1)
        };
        assert!(log.append(NOW, &batch, 8).is_ok());
    }
    let known: Vec<i64> = log
        .producers()
        .iter()
        .map(|producer| producer.producer_id)
        .collect();
    assert_eq!(known, (12..20).collect::<Vec<_>>());
}

#[test]
fn replay_takes_what_was_accepted_and_nothing_out_of_place() {
    let mut log = log(&[("max.message.bytes", "10")]);
    log.replay_place(0, &plain(3)).unwrap();
    assert_eq!(
        (log.next_offset(), log.high_watermark(), log.last_append()),
        (3, 3, Lsn(0))
    );
    let gap = log.replay_place(4, &plain(1)).unwrap_err();
    assert_eq!(
        gap,
        ReplayError::Gap {
            log: LogId(3),
            expected: 3,
            found: 4
        }
    );
    assert_eq!(
        gap.to_string(),
        "the batch of log 3 starts at offset 4, the one before it ended at 3"
    );
}

#[test]
fn damaged_bounds_are_errors() {
    for (start, next) in [(5, 4), (-1, 3), (-2, -1), (0, i64::MAX)] {
        let mut e = Encoder::new();
        e.uvar(1);
        e.id(&[0; 16]);
        e.ivar(0);
        e.ivar(start);
        e.ivar(next);
        let bytes = e.into_bytes();
        assert!(Log::get(&mut Decoder::new(&bytes), settings(&[]), 2).is_err());
    }
}
