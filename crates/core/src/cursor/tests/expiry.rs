//! When a cursor may be dropped.

use super::super::{Cursor, Plain};

fn committed_at(commit_ms: i64, expires_ms: Option<i64>) -> Cursor {
    Cursor::Plain(Plain {
        offset: 7,
        leader_epoch: -1,
        metadata: String::new(),
        commit_ms,
        expires_ms,
    })
}

#[test]
fn retention_counts_from_the_later_of_commit_and_idleness() {
    let cursor = committed_at(1_000, None);
    assert!(!cursor.is_expired(1_099, None, 100));
    assert!(cursor.is_expired(1_100, None, 100));
    assert!(!cursor.is_expired(1_100, Some(1_050), 100));
    assert!(cursor.is_expired(1_150, Some(1_050), 100));
    assert!(
        cursor.is_expired(1_100, Some(500), 100),
        "idle since before the commit: the commit counts"
    );
}

#[test]
fn a_clients_own_retention_replaces_the_groups() {
    let cursor = committed_at(1_000, Some(1_010));
    assert!(!cursor.is_expired(1_009, None, 1));
    assert!(cursor.is_expired(1_010, None, 1_000_000));
}

#[test]
fn a_clock_at_its_end_does_not_overflow() {
    assert!(committed_at(i64::MIN, None).is_expired(i64::MAX, None, 100));
}
