//! DeleteRecords, retention with its clock, producer ids.

use super::super::tests::{apply_all, at, batch, create, fresh, node, options, sequenced, wish};
use super::super::{LogEffect, Lsn};
use super::*;
use crate::cursor::{Cursor, Plain};
use crate::group::GroupChange;
use crate::log::{Log, Run};

const DAY: u64 = 86_400_000;

#[test]
fn records_are_deleted_up_to_the_high_watermark_and_no_further() {
    let mut node = node(&[]);
    let log = create(&mut node, "t", 1, 1)[0];
    node.append(at(0), log, &batch(10)).unwrap();
    assert!(node.committed(Lsn(1), &[(log, 8)]).is_empty());
    let code = |node: &Node, offset| node.delete_records(log, offset).unwrap_err().code();
    assert_eq!(code(&node, 9), ErrorCode::OffsetOutOfRange);
    assert_eq!(code(&node, -2), ErrorCode::OffsetOutOfRange);
    let (commands, low) = node.delete_records(log, 5).unwrap();
    assert_eq!(low, 5);
    assert_eq!(
        apply_all(&mut node, &commands),
        [LogEffect::Start { log, offset: 5 }]
    );
    assert_eq!(
        node.delete_records(log, 5).unwrap(),
        (Vec::new(), 5),
        "nothing to do"
    );
    assert_eq!(
        node.delete_records(log, 3).unwrap(),
        (Vec::new(), 5),
        "already gone"
    );
    let (commands, low) = node.delete_records(log, -1).unwrap();
    apply_all(&mut node, &commands);
    assert_eq!((low, node.log(log).map(Log::start)), (8, Some(8)));
    let unknown = node.delete_records(LogId(99), 0).unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn a_start_is_shown_once_its_deletion_is_durable_and_further_ones_go_by_what_is_decided() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let shown = |node: &Node| node.fetch_bounds(log, 20).map(|bounds| bounds.start);
    let starts = |node: &Node| node.log(log).map(|log| (log.start(), log.decided_start()));
    for (lsn, offset) in [(10, 5), (12, 9)] {
        let (commands, low) = node.delete_records(log, offset).unwrap();
        assert_eq!((commands.len(), low), (1, offset));
        let effects = node.apply(&commands[0]);
        node.journaled(Lsn(lsn), effects);
    }
    assert_eq!((shown(&node), starts(&node)), (Ok(0), Some((0, 9))));
    assert!(node.fetch_bounds(log, 0).is_ok(), "the records are still there");
    assert_eq!(
        node.delete_records(log, 7).unwrap(),
        (Vec::new(), 9),
        "decided already"
    );
    assert!(node.committed(Lsn(9), &[]).is_empty());
    assert_eq!(shown(&node), Ok(0));
    let start = |offset| LogEffect::Start { log, offset };
    assert_eq!(node.committed(Lsn(11), &[]), [start(5)]);
    assert_eq!((shown(&node), starts(&node)), (Ok(5), Some((5, 9))));
    let restored = Node::restore(options(&[]), &node.snapshot()).unwrap();
    assert_eq!(
        starts(&restored),
        Some((9, 9)),
        "a snapshot is used where all in it is durable"
    );
    assert_eq!(node.committed(Lsn(12), &[]), [start(9)]);
    assert_eq!(shown(&node), Ok(9));
}

#[test]
fn retention_does_not_decide_again_what_is_not_durable_so_far() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let stats = [stats(log, &[at(0).wall_ms, at(20 * DAY).wall_ms])];
    let mut moved = 0;
    for now in [at(9 * DAY), at(9 * DAY + 1)] {
        for command in node.retention(now, &stats) {
            let effects = node.apply(&command);
            moved += effects.len();
            node.journaled(Lsn(5), effects);
        }
    }
    assert_eq!((moved, node.log(log).map(Log::start)), (1, Some(0)));
}

#[test]
fn records_of_compacted_topics_stay() {
    let mut node = node(&[]);
    let compact = wish("t", 1, &[("cleanup.policy", "compact")]);
    let commands = node.create_topic(at(0), &compact, fresh(1)).unwrap();
    apply_all(&mut node, &commands);
    let refused = node.delete_records(LogId(0), 0).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::PolicyViolation);
    // Where delete is part of the policy, too, it is allowed: the rule of Kafka's `Partition.deleteRecordsOnLeader`.
    let both = wish("both", 1, &[("cleanup.policy", "compact,delete")]);
    let commands = node.create_topic(at(0), &both, fresh(2)).unwrap();
    apply_all(&mut node, &commands);
    assert_eq!(node.delete_records(LogId(1), 0), Ok((Vec::new(), 0)));
}

fn stats(log: LogId, timestamps: &[i64]) -> LogStats {
    let run = |(at, timestamp): (i64, &i64)| Run {
        first_offset: at * 10,
        last_offset: at * 10 + 9,
        bytes: 1,
        max_timestamp: *timestamp,
    };
    let runs: Vec<_> = (0..).zip(timestamps).map(run).collect();
    LogStats {
        log,
        bytes: runs.len() as u64,
        runs,
    }
}

fn filled(node: &mut Node) -> LogId {
    let log = create(node, "t", 1, 1)[0];
    node.append(at(0), log, &batch(20)).unwrap();
    assert!(node.committed(Lsn(1), &[(log, 20)]).is_empty());
    log
}

/// Runs retention, applies what it decides, and tells the starts that moved.
fn retain(node: &mut Node, now: Now, stats: &[LogStats]) -> Vec<LogEffect> {
    let commands = node.retention(now, stats);
    apply_all(node, &commands)
}

#[test]
fn retention_moves_starts_and_notes_its_clock() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let stats = [
        stats(log, &[at(0).wall_ms, at(DAY).wall_ms]),
        stats(LogId(77), &[0]),
    ];
    let commands = node.retention(at(0), &stats);
    assert_eq!(
        commands,
        [Command::SetRetentionClock {
            clock_ms: at(0).wall_ms
        }]
    );
    apply_all(&mut node, &commands);
    assert!(retain(&mut node, at(7 * DAY), &stats).is_empty(), "just in time");
    let start = LogEffect::Start { log, offset: 10 };
    assert_eq!(retain(&mut node, at(7 * DAY + 1), &stats), [start]);
    assert!(retain(&mut node, at(7 * DAY + 2), &stats).is_empty(), "once");
    assert!(
        node.retention(at(7 * DAY + 3), &stats).is_empty(),
        "the clock is noted once an hour"
    );
}

#[test]
fn a_wall_clock_that_jumps_deletes_nothing_at_once_not_even_over_a_restart() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let stats = [stats(log, &[at(0).wall_ms, at(0).wall_ms])];
    retain(&mut node, at(0), &stats);
    let year_later = |ms| Now {
        wall_ms: at(365 * DAY).wall_ms,
        mono_ms: at(ms).mono_ms,
    };
    assert!(retain(&mut node, year_later(300_000), &stats).is_empty());
    assert!(node.retention_lag_ms(year_later(300_000)) > 364 * DAY as i64);
    let started = Now {
        mono_ms: 5,
        wall_ms: year_later(0).wall_ms,
    };
    let options = crate::node::Options {
        started,
        ..options(&[])
    };
    let mut node = Node::restore(options, &node.snapshot()).unwrap();
    assert!(retain(&mut node, started, &stats).is_empty());
    let seven_hours = Now {
        mono_ms: 5 + 7 * 3_600_000 + 1,
        ..started
    };
    assert_eq!(
        retain(&mut node, seven_hours, &stats).len(),
        1,
        "but the clock does get there"
    );
}

#[test]
fn groups_date_by_the_wall_clock_or_by_the_clock_of_retention_if_that_is_ahead() {
    let mut node = node(&[]);
    let wall = |wall_ms| Now { wall_ms, ..at(5) };
    assert_eq!(node.dated(wall(7)), wall(7), "no clock so far");
    assert_eq!(node.by_retention_clock(at(0)), at(0));
    assert_eq!(node.dated(wall(7)), wall(at(0).wall_ms));
    let later = wall(at(DAY).wall_ms);
    assert_eq!(node.dated(later), later);
    assert_eq!(node.by_retention_clock(wall(7)), wall(7));
    assert_eq!(
        node.dated(wall(8)),
        wall(8),
        "it has followed the wall clock back"
    );
}

#[test]
fn a_jump_before_the_first_look_deletes_nothing_either() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let stats = [stats(log, &[at(0).wall_ms, at(0).wall_ms])];
    let year_later = Now {
        wall_ms: at(365 * DAY).wall_ms,
        mono_ms: at(300_000).mono_ms,
    };
    assert!(retain(&mut node, year_later, &stats).is_empty());
    assert!(node.retention_lag_ms(year_later) > 364 * DAY as i64);
}

#[test]
fn committed_offsets_outlive_a_jump_of_the_wall_clock() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let topic = node.log(log).map(|log| (log.topic(), log.partition())).unwrap();
    let cursor = Cursor::Plain(Plain {
        offset: 3,
        commit_ms: at(0).wall_ms,
        ..Plain::default()
    });
    let change = GroupChange::Cursors {
        group: "g".to_owned(),
        cursors: vec![(topic.0, topic.1, cursor)],
    };
    node.apply(&Command::Group(change));
    let year_later = Now {
        wall_ms: at(365 * DAY).wall_ms,
        mono_ms: at(300_000).mono_ms,
    };
    let now = node.by_retention_clock(year_later);
    let (groups, topics) = node.groups_mut();
    assert!(groups.expire(now, &topics).changes.is_empty());
}

#[test]
fn a_wall_clock_behind_is_believed_at_once() {
    let mut node = node(&[]);
    let log = filled(&mut node);
    let old = [stats(log, &[at(0).wall_ms])];
    retain(&mut node, at(0), &old);
    let now = Now {
        wall_ms: at(0).wall_ms - 1,
        mono_ms: at(30 * DAY).mono_ms,
    };
    assert!(retain(&mut node, now, &old).is_empty());
    assert_eq!(node.retention_lag_ms(now), 0);
}

#[test]
fn retention_forgets_idle_producers() {
    let mut node = node(&[("producer.id.expiration.ms", "5000")]);
    let log = create(&mut node, "t", 1, 1)[0];
    node.append(at(0), log, &sequenced(1, 0)).unwrap();
    retain(&mut node, at(4_999), &[]);
    assert_eq!(node.log(log).map(Log::producer_count), Some(1));
    retain(&mut node, at(5_000), &[]);
    assert_eq!(node.log(log).map(Log::producer_count), Some(0));
    assert!(
        node.append(at(5_000), log, &sequenced(1, 7)).is_ok(),
        "it may go on"
    );
}

#[test]
fn producer_ids_come_in_blocks_and_never_twice() {
    let mut node = node(&[]);
    let block = limits::PRODUCER_ID_BLOCK;
    let mut commands_seen = 0;
    for expected in 0..block + 1 {
        let (producer, commands) = node.init_producer_id(None).unwrap();
        assert_eq!(
            producer,
            ProducerId {
                id: expected,
                epoch: 0
            }
        );
        commands_seen += commands.len();
        apply_all(&mut node, &commands);
    }
    assert_eq!(commands_seen, 2);
    let mut node = Node::restore(options(&[]), &node.snapshot()).unwrap();
    let (producer, commands) = node.init_producer_id(None).unwrap();
    assert_eq!(producer.id, 2 * block, "the rest of the block is skipped");
    assert_eq!(commands, [Command::AllocateProducerIds { upto: 3 * block }]);
}

#[test]
fn transactions_are_refused_in_a_way_that_clients_take_as_final() {
    let refused = node(&[]).init_producer_id(Some("tx-1")).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TransactionalIdAuthorizationFailed);
    assert!(refused.message().contains("`tx-1`"));
}
