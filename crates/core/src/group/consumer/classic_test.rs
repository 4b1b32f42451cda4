//! Classic members without a leader: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use crate::group::harness::{Bench, classic, read_assignment, subscription};
use crate::group::{GroupSettings, JoinGroup, LeaveGroup, Leaver, SyncGroup};

fn parts(bytes: &Bytes) -> Vec<i32> {
    read_assignment(bytes)
        .into_iter()
        .flat_map(|(_, partitions)| partitions)
        .collect()
}

fn cooperative(member: &str, owned: &[i32]) -> JoinGroup {
    JoinGroup {
        protocols: vec![(
            "cooperative-sticky".into(),
            subscription(&["t"], &[("t", owned)], None),
        )],
        ..classic(member, "", &[])
    }
}

fn named(member: &str, instance: &str) -> JoinGroup {
    JoinGroup {
        version: 5,
        instance_id: Some(instance.into()),
        ..classic(member, "range", &["t"])
    }
}

#[test]
fn joining_needs_no_leader_and_no_barrier() {
    let mut bench = Bench::new(&[("t", 3)]);
    let (joined, synced) = bench.enter("", "range", &["t"]);
    assert_eq!((joined.error, joined.leader.as_str()), (ErrorCode::None, ""));
    assert!(joined.members.is_empty() && joined.generation_id > 0 && !joined.skip_assignment);
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    assert!(joined.member_id.starts_with("client-"));
    assert_eq!(parts(&synced.assignment), [0, 1, 2]);
    let (_, nobody) = bench.enter("", "range", &["nowhere"]);
    assert_eq!(nobody.error, ErrorCode::None);
    assert_eq!(nobody.assignment.len(), 10, "an empty assignment is well formed");
}

#[test]
fn a_new_dynamic_member_is_asked_to_come_again_from_version_4_on() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut request = JoinGroup {
        version: 4,
        ..classic("", "range", &["t"])
    };
    let asked = bench.join(&request);
    assert_eq!(
        (asked.error, asked.generation_id),
        (ErrorCode::MemberIdRequired, -1)
    );
    assert!(bench.journal.is_empty(), "an id that was handed out is no member");
    request.member_id = asked.member_id.clone();
    let joined = bench.join(&request);
    assert_eq!(
        (joined.error, joined.member_id),
        (ErrorCode::None, asked.member_id)
    );
    assert_eq!(
        bench.join(&named("", "i")).error,
        ErrorCode::None,
        "static members are not asked"
    );
}

#[test]
fn requests_out_of_bounds_are_refused() {
    let mut bench = Bench::new(&[("t", 1)]);
    let good = classic("", "range", &["t"]);
    let bad_bytes = vec![("range".to_owned(), Bytes::from_static(b"\0\0\0"))];
    let huge = vec![("range".to_owned(), Bytes::from(vec![0; 2_000_000]))];
    let cases = [
        (
            "no group",
            JoinGroup {
                group_id: String::new(),
                ..good.clone()
            },
            ErrorCode::InvalidGroupId,
        ),
        (
            "long group",
            JoinGroup {
                group_id: "g".repeat(40_000),
                ..good.clone()
            },
            ErrorCode::InvalidGroupId,
        ),
        (
            "short session",
            JoinGroup {
                session_timeout_ms: 5_999,
                ..good.clone()
            },
            ErrorCode::InvalidSessionTimeout,
        ),
        (
            "long session",
            JoinGroup {
                session_timeout_ms: 1_800_001,
                ..good.clone()
            },
            ErrorCode::InvalidSessionTimeout,
        ),
        (
            "no protocols",
            JoinGroup {
                protocols: vec![],
                ..good.clone()
            },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            "no type",
            JoinGroup {
                protocol_type: String::new(),
                ..good.clone()
            },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            "bad metadata",
            JoinGroup {
                protocols: bad_bytes,
                ..good.clone()
            },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            "huge metadata",
            JoinGroup {
                protocols: huge,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "long id",
            JoinGroup {
                member_id: "m".repeat(5_000),
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "unnamed instance",
            JoinGroup {
                instance_id: Some(String::new()),
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
    ];
    for (what, request, error) in cases {
        assert_eq!(bench.join(&request).error, error, "{what}");
    }
    assert!(bench.journal.is_empty());
    for session_timeout_ms in [6_000, 1_800_000] {
        assert_eq!(
            bench
                .join(&JoinGroup {
                    session_timeout_ms,
                    ..good.clone()
                })
                .error,
            ErrorCode::None
        );
    }
}

#[test]
fn an_eager_member_releases_by_joining_again() {
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
    let (a, a_synced) = bench.enter(&a.member_id, "range", &["t"]);
    assert_eq!(parts(&a_synced.assignment), [0, 1]);
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (b, b_synced) = bench.enter(&b.member_id, "range", &["t"]);
    assert_eq!(parts(&b_synced.assignment), [2, 3]);
    for (id, generation) in [(&a.member_id, a.generation_id), (&b.member_id, b.generation_id)] {
        assert_eq!(bench.heartbeat(id, generation), ErrorCode::None);
    }
    bench.check_fold();
}

#[test]
fn only_the_member_concerned_is_told() {
    let mut bench = Bench::new(&[("t", 4), ("u", 1)]);
    let (a, _) = bench.enter("", "cooperative-sticky", &["t"]);
    let before = bench.coordinator.groups()["g"].consumer().unwrap().epoch;
    let (b, b_synced) = bench.enter("", "cooperative-sticky", &["u"]);
    assert_eq!(parts(&b_synced.assignment), [0]);
    assert!(bench.coordinator.groups()["g"].consumer().unwrap().epoch > before);
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::None,
        "a keeps what it has"
    );
    // B goes; a is subscribed to nothing of it, so it is not told either, however often the epoch grows.
    bench.leave(&b.member_id, None);
    assert_eq!(bench.heartbeat(&a.member_id, a.generation_id), ErrorCode::None);
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 5),
        ErrorCode::None
    );
}

#[test]
fn a_cooperative_member_goes_in_two_steps() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.join(&cooperative("", &[]));
    assert_eq!(
        parts(&bench.sync(&a.member_id, a.generation_id).assignment),
        [0, 1, 2, 3]
    );
    let b = bench.join(&cooperative("", &[]));
    assert_eq!(
        parts(&bench.sync(&b.member_id, b.generation_id).assignment),
        [0; 0]
    );
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );

    let again = bench.join(&cooperative(&a.member_id, &[0, 1, 2, 3]));
    assert_eq!(again.generation_id, a.generation_id, "it owns too much to go on");
    assert_eq!(
        parts(&bench.sync(&a.member_id, again.generation_id).assignment),
        [0, 1]
    );
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::None,
        "still not released"
    );
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );

    let done = bench.join(&cooperative(&a.member_id, &[0, 1]));
    assert!(done.generation_id > a.generation_id);
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let b = bench.join(&cooperative(&b.member_id, &[]));
    assert_eq!(
        parts(&bench.sync(&b.member_id, b.generation_id).assignment),
        [2, 3]
    );
}

#[test]
fn a_cooperative_member_that_never_releases_is_expelled() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.join(&cooperative("", &[]));
    bench.sync(&a.member_id, a.generation_id);
    bench.join(&cooperative("", &[]));
    let started = bench.now.mono_ms;
    loop {
        let answer = bench.join(&cooperative(&a.member_id, &[0, 1, 2, 3]));
        if answer.error == ErrorCode::UnknownMemberId {
            break;
        }
        assert!(
            bench.now.mono_ms < started + 20_000,
            "rejoining for ever must not help"
        );
        bench.sync(&a.member_id, answer.generation_id);
        bench.pass(1_000);
    }
    assert_eq!(bench.now.mono_ms, started + 20_000);
}

#[test]
fn an_expelled_member_that_still_works_must_start_anew() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.join(&cooperative("", &[]));
    bench.sync(&a.member_id, a.generation_id);
    bench.pass(10_000);
    assert_eq!(
        bench.join(&cooperative(&a.member_id, &[0, 1, 2, 3])).error,
        ErrorCode::UnknownMemberId
    );
    assert_eq!(bench.join(&cooperative("", &[])).error, ErrorCode::None);
}

#[test]
fn sync_and_heartbeat_check_who_asks() {
    let mut bench = Bench::new(&[("t", 1)]);
    assert_eq!(bench.heartbeat("m", 1), ErrorCode::UnknownMemberId);
    assert_eq!(bench.sync("m", 1).error, ErrorCode::UnknownMemberId);
    let a = bench.join(&named("", "i"));
    assert_eq!(bench.heartbeat("m", 1), ErrorCode::UnknownMemberId);
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id + 1),
        ErrorCode::IllegalGeneration
    );
    assert_eq!(
        bench.sync(&a.member_id, a.generation_id - 1).error,
        ErrorCode::IllegalGeneration
    );
    let good = SyncGroup {
        group_id: "g".into(),
        generation_id: a.generation_id,
        member_id: a.member_id.clone(),
        instance_id: Some("i".into()),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: vec![],
    };
    let cases = [
        (
            SyncGroup {
                instance_id: Some("j".into()),
                ..good.clone()
            },
            ErrorCode::UnknownMemberId,
        ),
        (
            SyncGroup {
                member_id: "other".into(),
                ..good.clone()
            },
            ErrorCode::FencedInstanceId,
        ),
        (
            SyncGroup {
                protocol_type: Some("connect".into()),
                ..good.clone()
            },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (
            SyncGroup {
                protocol_name: Some("sticky".into()),
                ..good.clone()
            },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (good, ErrorCode::None),
    ];
    for (request, error) in cases {
        let token = bench.send_sync(&request);
        assert_eq!(bench.sync_answer(token).error, error);
    }
}

#[test]
fn many_leave_with_one_request() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    let b = bench.join(&named("", "i"));
    let c = bench.join(&named("", "j"));
    let leaver = |member: &str, instance: Option<&str>| Leaver {
        member_id: member.into(),
        instance_id: instance.map(str::to_owned),
    };
    let request = LeaveGroup {
        group_id: "g".into(),
        members: vec![
            leaver(&a.member_id, None),
            leaver("", Some("i")),
            leaver(&b.member_id, Some("j")),
            leaver("", Some("k")),
            leaver("nobody", None),
        ],
    };
    let epoch = bench.coordinator.groups()["g"].consumer().unwrap().epoch;
    let (answer, effects) = bench.coordinator.leave(bench.now, &bench.topics, &request);
    bench.take(effects);
    let errors: Vec<_> = answer.members.iter().map(|(_, error)| *error).collect();
    use ErrorCode::{FencedInstanceId, None as Fine, UnknownMemberId};
    assert_eq!(
        errors,
        [Fine, Fine, FencedInstanceId, UnknownMemberId, UnknownMemberId]
    );
    let group = bench.coordinator.groups()["g"].consumer().unwrap();
    assert_eq!(group.members.keys().collect::<Vec<_>>(), [&c.member_id]);
    assert_eq!(group.epoch, epoch + 1, "one epoch for all of them");
    let nowhere = LeaveGroup {
        group_id: "h".into(),
        ..request
    };
    assert_eq!(
        bench
            .coordinator
            .leave(bench.now, &bench.topics, &nowhere)
            .0
            .error,
        UnknownMemberId
    );
}

#[test]
fn a_group_has_a_size() {
    let mut bench = Bench::with(
        GroupSettings {
            size_max: 2,
            ..GroupSettings::default()
        },
        &[("t", 4)],
    );
    let (a, _) = bench.enter("", "range", &["t"]);
    bench.join(&named("", "i"));
    assert_eq!(
        bench.join(&classic("", "range", &["t"])).error,
        ErrorCode::GroupMaxSizeReached
    );
    assert_eq!(
        bench.join(&classic(&a.member_id, "range", &["t"])).error,
        ErrorCode::None
    );
    assert_eq!(
        bench.join(&named("", "i")).error,
        ErrorCode::None,
        "a static member comes back"
    );
}
