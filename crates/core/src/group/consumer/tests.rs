//! Members of both protocols in a group that the broker assigns.

use anabranch_wire::ErrorCode;

use crate::group::harness::{Bench, alive, classic, modern, read_assignment};

fn parts(bytes: &bytes::Bytes) -> Vec<i32> {
    read_assignment(bytes)
        .into_iter()
        .flat_map(|(_, partitions)| partitions)
        .collect()
}

#[test]
fn a_classic_member_joins_alone_without_a_leader() {
    let mut bench = Bench::new(&[("t", 3)]);
    let (joined, synced) = bench.enter("", "range", &["t"]);
    assert_eq!(joined.error, ErrorCode::None);
    assert_eq!(joined.leader, "");
    assert!(joined.members.is_empty());
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    assert!(joined.generation_id > 0);
    assert_eq!(parts(&synced.assignment), [0, 1, 2]);
    bench.check_fold();
}

#[test]
fn a_modern_member_joins_alone() {
    let mut bench = Bench::new(&[("t", 3)]);
    let answer = bench.consumer(&modern("m", &["t"])).unwrap();
    assert_eq!(answer.heartbeat_interval_ms, 1_000);
    assert_eq!(
        answer.assignment,
        Some(vec![(bench.topics.id("t"), vec![0, 1, 2])])
    );
    assert!(answer.member_epoch > 0);
    let again = bench.consumer(&alive("m", answer.member_epoch, None)).unwrap();
    assert_eq!(again.assignment, None, "unchanged");
    bench.check_fold();
}

#[test]
fn an_eager_member_is_told_and_the_newcomer_waits_for_it() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    let (b, b_synced) = bench.enter("", "range", &["t"]);
    assert_eq!(parts(&b_synced.assignment), [0; 0], "a still holds everything");
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::None,
        "waiting is calm"
    );
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (_, a_synced) = bench.enter(&a.member_id, "range", &["t"]);
    assert_eq!(parts(&a_synced.assignment).len(), 2);
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (_, b_synced) = bench.enter(&b.member_id, "range", &["t"]);
    assert_eq!(parts(&b_synced.assignment).len(), 2);
    bench.check_fold();
    let _ = classic("", "range", &[]);
}
