//! The barrier: generations, leaders, parked requests, expiry, static members.

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use crate::group::harness::{Bench, classic, modern};
use crate::group::{GroupSettings, JoinAnswer, JoinGroup, Kind, SyncGroup, Token};

pub(super) fn connect(member: &str) -> JoinGroup {
    JoinGroup {
        protocol_type: "connect".into(),
        protocols: vec![("compat".into(), Bytes::from(format!("meta-{member}")))],
        ..classic(member, "", &[])
    }
}

pub(super) fn plan(bench: &mut Bench, leader: &JoinAnswer, assignments: &[(&str, &str)]) -> Token {
    bench.send_sync(&SyncGroup {
        group_id: "g".into(),
        generation_id: leader.generation_id,
        member_id: leader.member_id.clone(),
        assignments: assignments
            .iter()
            .map(|(id, bytes)| ((*id).to_owned(), Bytes::from((*bytes).to_owned())))
            .collect(),
        ..SyncGroup::default()
    })
}

fn follow(bench: &mut Bench, member: &JoinAnswer) -> Token {
    plan(bench, member, &[])
}

/// Two members in a stable group: leader and follower, as they were last answered.
fn pair(bench: &mut Bench) -> (JoinAnswer, JoinAnswer) {
    let first = bench.join(&connect(""));
    let b = bench.send_join(&connect(""));
    assert_eq!(bench.answer(b), None, "the join phase waits for the first member");
    let a = bench.join(&connect(&first.member_id));
    let b = bench.join_answer(b);
    let waiting = follow(bench, &b);
    assert_eq!(bench.answer(waiting), None, "the plan has not come");
    let led = plan(bench, &a, &[(&a.member_id, "for a"), (&b.member_id, "for b")]);
    assert_eq!(bench.sync_answer(led).assignment, "for a");
    assert_eq!(bench.sync_answer(waiting).assignment, "for b");
    (a, b)
}

#[test]
fn a_generation_has_one_leader_who_sees_all() {
    let mut bench = Bench::new(&[]);
    let alone = bench.join(&connect(""));
    assert_eq!(
        (alone.generation_id, &alone.leader),
        (1, &alone.member_id),
        "nobody is made to wait"
    );
    let (a, b) = {
        let mut bench = Bench::new(&[]);
        pair(&mut bench)
    };
    assert_eq!((a.generation_id, b.generation_id), (2, 2));
    assert_eq!((&a.leader, &b.leader), (&a.member_id, &a.member_id));
    assert_eq!(a.protocol_type.as_deref(), Some("connect"));
    assert_eq!(a.protocol_name.as_deref(), Some("compat"));
    let roll: Vec<_> = a
        .members
        .iter()
        .map(|member| (&member.member_id, &member.metadata[..]))
        .collect();
    assert_eq!(
        roll,
        [
            (&a.member_id, format!("meta-{}", a.member_id).as_bytes()),
            (&b.member_id, b"meta-")
        ]
    );
    assert!(b.members.is_empty(), "only the leader sees the others");
}

#[test]
fn stable_members_are_answered_at_once() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    assert_eq!(bench.heartbeat(&b.member_id, 2), ErrorCode::None);
    assert_eq!(
        bench.sync(&b.member_id, 2).assignment,
        "for b",
        "an answer that was lost"
    );
    let again = bench.join(&JoinGroup {
        protocols: vec![("compat".into(), Bytes::from_static(b"meta-"))],
        ..connect(&b.member_id)
    });
    assert_eq!(
        (again.generation_id, again.error),
        (2, ErrorCode::None),
        "nothing about it is new"
    );
    assert_eq!(bench.heartbeat(&b.member_id, 1), ErrorCode::IllegalGeneration);
    assert_eq!(bench.heartbeat("nobody", 2), ErrorCode::UnknownMemberId);
    assert_eq!(bench.sync(&a.member_id, 1).error, ErrorCode::IllegalGeneration);
    bench.check_fold();
}

#[test]
fn a_leader_that_joins_again_starts_a_new_generation() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    let waiting = bench.send_join(&connect(&a.member_id));
    assert_eq!(bench.heartbeat(&b.member_id, 2), ErrorCode::RebalanceInProgress);
    assert_eq!(bench.sync(&b.member_id, 2).error, ErrorCode::RebalanceInProgress);
    let b = bench.join(&connect(&b.member_id));
    assert_eq!(
        (b.generation_id, bench.join_answer(waiting).generation_id),
        (3, 3)
    );
}

#[test]
fn changed_metadata_of_a_follower_starts_a_new_generation() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    let waiting = bench.send_join(&connect(&b.member_id));
    assert_eq!(bench.answer(waiting), None);
    let a = bench.join(&connect(&a.member_id));
    assert_eq!(a.generation_id, 3);
    assert_eq!(bench.join_answer(waiting).generation_id, 3);
    // While the plan is awaited, the same request is answered again; a changed one starts over.
    assert_eq!(bench.join(&connect(&b.member_id)).generation_id, 3);
    let parked = follow(
        &mut bench,
        &JoinAnswer {
            generation_id: 3,
            ..b.clone()
        },
    );
    let mut other = connect(&b.member_id);
    other.protocols[0].1 = Bytes::from_static(b"new");
    let waiting = bench.send_join(&other);
    assert_eq!(bench.sync_answer(parked).error, ErrorCode::RebalanceInProgress);
    assert_eq!(bench.answer(waiting), None);
}

#[test]
fn who_does_not_rejoin_in_time_is_out() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    let waiting = bench.send_join(&connect(&a.member_id));
    for _ in 0..4 {
        bench.pass(4_999);
        assert_eq!(bench.heartbeat(&b.member_id, 2), ErrorCode::RebalanceInProgress);
    }
    bench.pass(4);
    let a = bench.join_answer(waiting);
    assert_eq!((a.generation_id, a.members.len()), (3, 1));
    assert_eq!(bench.heartbeat(&b.member_id, 2), ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_that_dies_in_a_join_is_not_waited_for_longer_than_its_session() {
    let mut bench = Bench::new(&[]);
    let (a, _) = pair(&mut bench);
    let waiting = bench.send_join(&connect(&a.member_id));
    bench.pass(9_999);
    assert_eq!(bench.answer(waiting), None);
    bench.pass(1);
    assert_eq!(
        bench.join_answer(waiting).generation_id,
        3,
        "at once when its session ends"
    );
}

#[test]
fn a_request_whose_connection_is_gone_is_forgotten() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    // A newcomer that was never told its id cannot come back as the same: it goes.
    let lost = bench.send_join(&connect(""));
    let waiting = bench.send_join(&connect(&a.member_id));
    let effects = bench.coordinator.disconnected(bench.now, &bench.topics, lost);
    bench.take(effects);
    let b2 = bench.join(&connect(&b.member_id));
    assert_eq!(
        (b2.generation_id, bench.join_answer(waiting).members.len()),
        (3, 2)
    );
    assert_eq!(bench.answer(lost), None, "nobody is there to read it");
    // A member that knows its id may come back; until then it is waited for.
    plan(
        &mut bench,
        &JoinAnswer {
            generation_id: 3,
            ..a.clone()
        },
        &[],
    );
    let waiting = bench.send_join(&connect(&a.member_id));
    let effects = bench.coordinator.disconnected(bench.now, &bench.topics, waiting);
    bench.take(effects);
    let b3 = bench.send_join(&connect(&b.member_id));
    assert_eq!(bench.answer(b3), None);
    assert_eq!(bench.join(&connect(&a.member_id)).generation_id, 4);
}

#[test]
fn leaving_starts_over_or_completes() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    let waiting = bench.send_join(&connect(&a.member_id));
    bench.leave(&b.member_id, None);
    let a = bench.join_answer(waiting);
    assert_eq!((a.generation_id, a.members.len()), (3, 1));
    assert_eq!(
        bench.leave("nobody", None).members[0].1,
        ErrorCode::UnknownMemberId
    );
    bench.leave(&a.member_id, None);
    let Kind::Classic(generation) = &bench.coordinator.groups()["g"].kind else {
        panic!()
    };
    assert_eq!(
        (
            generation.generation,
            generation.members.len(),
            generation.settled
        ),
        (4, 0, true)
    );
    assert_eq!(bench.coordinator.next_deadline(), None);
    bench.check_fold();
}

#[test]
fn who_joins_and_does_not_sync_is_out() {
    let mut bench = Bench::new(&[]);
    let first = bench.join(&connect(""));
    let b = bench.send_join(&connect(""));
    let a = bench.join(&connect(&first.member_id));
    let b = bench.join_answer(b);
    plan(&mut bench, &a, &[]);
    for _ in 0..4 {
        bench.pass(5_000);
        bench.heartbeat(&a.member_id, 2);
        bench.heartbeat(&b.member_id, 2);
    }
    assert_eq!(bench.heartbeat(&b.member_id, 2), ErrorCode::UnknownMemberId);
    assert_eq!(bench.heartbeat(&a.member_id, 2), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_restart_before_the_plan_goes_back_to_joining() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    let waiting = bench.send_join(&connect(&a.member_id));
    let b = bench.join(&connect(&b.member_id));
    let a = bench.join_answer(waiting);
    bench.restart();
    // Nobody may take the former assignment for this generation's.
    assert_eq!(bench.sync(&b.member_id, 3).error, ErrorCode::RebalanceInProgress);
    assert_eq!(bench.heartbeat(&a.member_id, 3), ErrorCode::RebalanceInProgress);
    let waiting = bench.send_join(&connect(&a.member_id));
    assert_eq!(bench.join(&connect(&b.member_id)).generation_id, 4);
    assert_eq!(bench.join_answer(waiting).generation_id, 4);
}

#[test]
fn a_restart_keeps_a_stable_group() {
    let mut bench = Bench::new(&[]);
    let (a, b) = pair(&mut bench);
    bench.pass(9_000);
    let journal = bench.journal.len();
    bench.restart();
    bench.pass(9_000);
    assert_eq!(bench.heartbeat(&a.member_id, 2), ErrorCode::None);
    assert_eq!(bench.sync(&b.member_id, 2).assignment, "for b");
    assert_eq!(bench.journal.len(), journal);
    bench.pass(10_000);
    assert_eq!(
        bench.heartbeat(&a.member_id, 2),
        ErrorCode::UnknownMemberId,
        "sessions run again"
    );
}

#[test]
fn member_ids_are_handed_out_and_expire() {
    let mut bench = Bench::new(&[]);
    let asked = bench.join(&JoinGroup {
        version: 4,
        ..connect("")
    });
    assert_eq!(asked.error, ErrorCode::MemberIdRequired);
    bench.pass(9_999);
    let joined = bench.join(&JoinGroup {
        version: 4,
        ..connect(&asked.member_id)
    });
    assert_eq!(
        (joined.error, joined.member_id),
        (ErrorCode::None, asked.member_id.clone())
    );
    let late = bench.join(&JoinGroup {
        version: 4,
        ..connect("")
    });
    bench.pass(10_000);
    assert_eq!(
        bench
            .join(&JoinGroup {
                version: 4,
                ..connect(&late.member_id)
            })
            .error,
        ErrorCode::UnknownMemberId
    );
    assert_eq!(bench.join(&connect("made up")).error, ErrorCode::UnknownMemberId);
}

#[test]
fn members_must_share_type_and_protocol() {
    let mut bench = Bench::new(&[]);
    let with = |names: &[&str]| JoinGroup {
        protocols: names
            .iter()
            .map(|name| ((*name).to_owned(), Bytes::new()))
            .collect(),
        ..connect("")
    };
    let a = bench.join(&with(&["x", "y"]));
    assert_eq!(a.protocol_name.as_deref(), Some("x"));
    assert_eq!(
        bench.join(&with(&["z"])).error,
        ErrorCode::InconsistentGroupProtocol
    );
    let other = JoinGroup {
        protocol_type: "sr".into(),
        ..with(&["x"])
    };
    assert_eq!(bench.join(&other).error, ErrorCode::InconsistentGroupProtocol);
    let waiting = bench.send_join(&with(&["z", "y"]));
    let a = bench.join(&JoinGroup {
        member_id: a.member_id,
        ..with(&["x", "y"])
    });
    assert_eq!(a.protocol_name.as_deref(), Some("y"), "the one both have");
    assert_eq!(bench.join_answer(waiting).protocol_name.as_deref(), Some("y"));
    let sync = SyncGroup {
        group_id: "g".into(),
        generation_id: a.generation_id,
        member_id: a.member_id.clone(),
        protocol_name: Some("x".into()),
        ..SyncGroup::default()
    };
    let token = bench.send_sync(&sync);
    assert_eq!(
        bench.sync_answer(token).error,
        ErrorCode::InconsistentGroupProtocol
    );
    let request = modern("m", &["t"]);
    assert_eq!(
        bench.consumer(&request).unwrap_err().code(),
        ErrorCode::GroupIdNotFound,
        "a client leads here"
    );
}

#[test]
fn the_first_generation_may_wait_for_company() {
    let settings = GroupSettings {
        initial_rebalance_delay_ms: 3_000,
        ..GroupSettings::default()
    };
    let mut bench = Bench::with(settings, &[]);
    let a = bench.send_join(&connect(""));
    bench.pass(2_000);
    let b = bench.send_join(&connect(""));
    bench.pass(1_000);
    assert_eq!(bench.answer(a), None, "somebody came: wait a little longer");
    bench.pass(3_000);
    assert_eq!(
        (
            bench.join_answer(a).generation_id,
            bench.join_answer(b).generation_id
        ),
        (1, 1)
    );
}

#[test]
fn sizes_are_bounded() {
    let settings = GroupSettings {
        size_max: 2,
        assignment_bytes_max: 8,
        ..GroupSettings::default()
    };
    let mut bench = Bench::with(settings, &[]);
    let a = bench.join(&connect(""));
    let big = plan(&mut bench, &a, &[(&a.member_id, "123456789")]);
    assert_eq!(bench.sync_answer(big).error, ErrorCode::InvalidRequest);
    let good = plan(&mut bench, &a, &[(&a.member_id, "12345678")]);
    assert_eq!(bench.sync_answer(good).error, ErrorCode::None);
    let asked = bench.join(&JoinGroup {
        version: 4,
        ..connect("")
    });
    assert_eq!(asked.error, ErrorCode::MemberIdRequired);
    let third = bench.join(&JoinGroup {
        version: 4,
        ..connect("")
    });
    assert_eq!(
        third.error,
        ErrorCode::GroupMaxSizeReached,
        "ids handed out count"
    );
    assert_eq!(third.member_id, "");
}

#[test]
fn a_group_that_is_empty_takes_the_kind_of_who_comes_next() {
    let mut bench = Bench::new(&[("t", 1)]);
    let a = bench.join(&connect(""));
    bench.leave(&a.member_id, None);
    let (joined, _) = bench.enter("", "range", &["t"]);
    assert_eq!(joined.leader, "");
    assert!(joined.generation_id > a.generation_id, "generations go on");
    bench.leave(&joined.member_id, None);
    let back = bench.join(&connect(""));
    assert_eq!(back.leader, back.member_id);
    assert!(back.generation_id > joined.generation_id);
    bench.check_fold();
}
