//! ConsumerGroupHeartbeat: joining, epochs, releasing, static members.

use anabranch_wire::ErrorCode;

use crate::config::ConsumerGroupSettings;
use crate::group::harness::{Bench, alive, modern};
use crate::group::{ConsumerHeartbeat, GroupSettings};
use crate::ids::TopicId;

type Assignment = Option<Vec<(TopicId, Vec<i32>)>>;

fn code(bench: &mut Bench, request: &ConsumerHeartbeat) -> ErrorCode {
    bench
        .consumer(request)
        .map_or_else(|refused| refused.code(), |_| ErrorCode::None)
}

fn owns(bench: &Bench, partitions: &[i32]) -> Assignment {
    Some(vec![(bench.topics.id("t"), partitions.to_vec())])
}

/// Two members; `a` had everything and has been told to release, `b` waits. Returns their epochs.
fn a_releases_to_b(bench: &mut Bench) -> (i32, i32) {
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    assert_eq!(a.assignment, owns(bench, &[0, 1, 2, 3]));
    let b = bench.consumer(&modern("b", &["t"])).unwrap();
    assert_eq!(b.assignment, Some(vec![]), "nothing is free yet");
    let told = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    assert_eq!(
        told.member_epoch, a.member_epoch,
        "the epoch stays until it has released"
    );
    assert_eq!(told.assignment, owns(bench, &[0, 1]));
    (told.member_epoch, b.member_epoch)
}

#[test]
fn malformed_requests_are_refused() {
    let mut bench = Bench::new(&[("t", 1)]);
    let long = "x".repeat(bench.coordinator.settings().member_id_bytes_max + 1);
    let good = modern("m", &["t"]);
    let cases: Vec<(&str, ConsumerHeartbeat, ErrorCode)> = vec![
        (
            "no group",
            ConsumerHeartbeat {
                group_id: String::new(),
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "no id in v1",
            ConsumerHeartbeat {
                member_id: String::new(),
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "no id in v0, not joining",
            ConsumerHeartbeat {
                version: 0,
                member_id: String::new(),
                member_epoch: 3,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "long id",
            ConsumerHeartbeat {
                member_id: long,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "no timeout",
            ConsumerHeartbeat {
                rebalance_timeout_ms: -1,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "owned is null",
            ConsumerHeartbeat {
                owned: None,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "owns when joining",
            ConsumerHeartbeat {
                owned: owns(&bench, &[0]),
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "no subscription",
            ConsumerHeartbeat {
                topic_names: None,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "empty instance",
            ConsumerHeartbeat {
                instance_id: Some(String::new()),
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "-2, dynamic",
            ConsumerHeartbeat {
                member_epoch: -2,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "-3",
            ConsumerHeartbeat {
                member_epoch: -3,
                ..good.clone()
            },
            ErrorCode::InvalidRequest,
        ),
        (
            "assignor",
            ConsumerHeartbeat {
                assignor: Some("sticky".into()),
                ..good.clone()
            },
            ErrorCode::UnsupportedAssignor,
        ),
        (
            "pattern",
            ConsumerHeartbeat {
                topic_regex: Some("a(".into()),
                ..good.clone()
            },
            ErrorCode::InvalidRegularExpression,
        ),
        (
            "pattern that breaks out of its frame",
            ConsumerHeartbeat {
                topic_regex: Some("a)|(?:b".into()),
                ..good.clone()
            },
            ErrorCode::InvalidRegularExpression,
        ),
        (
            "pattern that explodes",
            ConsumerHeartbeat {
                topic_regex: Some("((a{500}){500}){500}".into()),
                ..good.clone()
            },
            ErrorCode::InvalidRegularExpression,
        ),
        (
            "long pattern",
            ConsumerHeartbeat {
                topic_regex: Some("a".repeat(100_000)),
                ..good.clone()
            },
            ErrorCode::InvalidRegularExpression,
        ),
    ];
    for (what, request, error) in cases {
        assert_eq!(code(&mut bench, &request), error, "{what}");
    }
    assert!(bench.journal.is_empty(), "nothing of it left a trace");
    assert_eq!(code(&mut bench, &good), ErrorCode::None);
}

#[test]
fn version_0_is_given_an_id() {
    let mut bench = Bench::new(&[("t", 1)]);
    let request = ConsumerHeartbeat {
        version: 0,
        ..modern("", &["t"])
    };
    let answer = bench.consumer(&request).unwrap();
    assert_eq!(answer.member_id.len(), 36);
    assert_eq!(answer.assignment, owns(&bench, &[0]));
}

#[test]
fn strangers_are_told_who_they_are_not() {
    let mut bench = Bench::new(&[("t", 1)]);
    assert_eq!(code(&mut bench, &alive("m", 1, None)), ErrorCode::GroupIdNotFound);
    assert_eq!(
        code(&mut bench, &alive("m", -1, None)),
        ErrorCode::GroupIdNotFound
    );
    bench.consumer(&modern("m", &["t"])).unwrap();
    assert_eq!(code(&mut bench, &alive("x", 1, None)), ErrorCode::UnknownMemberId);
    assert_eq!(
        code(&mut bench, &alive("x", -1, None)),
        ErrorCode::UnknownMemberId
    );
}

#[test]
fn a_partition_passes_only_after_its_owner_said_so() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a_epoch, b_epoch) = a_releases_to_b(&mut bench);
    // A keep-alive without an owned list proves nothing, nor does one that still lists everything.
    for owned in [None, owns(&bench, &[0, 1, 2, 3])] {
        let a = bench.consumer(&alive("a", a_epoch, owned)).unwrap();
        assert_eq!(a.member_epoch, a_epoch);
        let b = bench.consumer(&alive("b", b_epoch, None)).unwrap();
        assert_eq!(b.assignment, None);
    }
    let released = owns(&bench, &[0, 1]);
    let a = bench.consumer(&alive("a", a_epoch, released)).unwrap();
    assert!(a.member_epoch > a_epoch);
    let b = bench.consumer(&alive("b", b_epoch, None)).unwrap();
    assert_eq!(b.assignment, owns(&bench, &[2, 3]));
    bench.check_fold();
}

#[test]
fn a_lost_answer_is_made_good() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a_epoch, _) = a_releases_to_b(&mut bench);
    let released = owns(&bench, &[0, 1]);
    let once = bench.consumer(&alive("a", a_epoch, released.clone())).unwrap();
    // The answer with the new epoch was lost; the client repeats itself at the old one.
    let again = bench.consumer(&alive("a", a_epoch, released.clone())).unwrap();
    assert_eq!(again.member_epoch, once.member_epoch);
    // But not with partitions it does not hold, and not without saying what it owns.
    let too_much = owns(&bench, &[0, 1, 2]);
    assert_eq!(
        code(&mut bench, &alive("a", a_epoch, too_much)),
        ErrorCode::FencedMemberEpoch
    );
    assert_eq!(
        code(&mut bench, &alive("a", a_epoch, None)),
        ErrorCode::FencedMemberEpoch
    );
    assert_eq!(
        code(&mut bench, &alive("a", once.member_epoch + 1, None)),
        ErrorCode::FencedMemberEpoch
    );
    // It starts over at epoch 0 and is given what it still holds.
    let back = bench.consumer(&modern("a", &["t"])).unwrap();
    assert_eq!(back.assignment, released);
}

#[test]
fn a_full_request_is_answered_in_full() {
    let mut bench = Bench::new(&[("t", 2)]);
    let joined = bench.consumer(&modern("m", &["t"])).unwrap();
    let keep_alive = bench.consumer(&alive("m", joined.member_epoch, None)).unwrap();
    assert_eq!(keep_alive.assignment, None);
    let full = ConsumerHeartbeat {
        member_epoch: joined.member_epoch,
        owned: owns(&bench, &[0, 1]),
        ..modern("m", &["t"])
    };
    assert_eq!(bench.consumer(&full).unwrap().assignment, owns(&bench, &[0, 1]));
}

#[test]
fn who_does_not_release_in_time_is_expelled() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a_epoch, mut b_epoch) = a_releases_to_b(&mut bench);
    let started = bench.now.mono_ms;
    while bench.now.mono_ms < started + 20_000 {
        assert_eq!(
            code(&mut bench, &alive("a", a_epoch, None)),
            ErrorCode::None,
            "until the very end"
        );
        b_epoch = bench.consumer(&alive("b", b_epoch, None)).unwrap().member_epoch;
        bench.pass(1_000);
    }
    assert_eq!(
        code(&mut bench, &alive("a", a_epoch, None)),
        ErrorCode::UnknownMemberId
    );
    assert!(
        bench
            .notices
            .iter()
            .any(|notice| notice.text.contains("did not release"))
    );
    let b = bench.consumer(&alive("b", b_epoch, None)).unwrap();
    assert_eq!(b.assignment, owns(&bench, &[0, 1, 2, 3]));
}

#[test]
fn who_is_not_heard_of_is_expelled() {
    let mut bench = Bench::new(&[("t", 2)]);
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    bench.pass(44_999);
    assert_eq!(
        code(&mut bench, &alive("a", a.member_epoch, None)),
        ErrorCode::None
    );
    bench.pass(44_999);
    assert_eq!(
        code(&mut bench, &alive("a", a.member_epoch, None)),
        ErrorCode::None
    );
    bench.pass(45_000);
    assert_eq!(
        code(&mut bench, &alive("a", a.member_epoch, None)),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(
        bench.coordinator.next_deadline(),
        None,
        "an empty group waits for nothing"
    );
}

#[test]
fn who_leaves_frees_its_partitions_at_once() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (_, b_epoch) = a_releases_to_b(&mut bench);
    assert_eq!(bench.consumer(&alive("a", -1, None)).unwrap().member_epoch, -1);
    let b = bench.consumer(&alive("b", b_epoch, None)).unwrap();
    assert_eq!(b.assignment, owns(&bench, &[0, 1, 2, 3]));
}

#[test]
fn what_a_member_no_longer_wants_goes_at_once() {
    let mut bench = Bench::new(&[("t", 2), ("u", 2)]);
    let a = bench.consumer(&modern("a", &["t", "u"])).unwrap();
    let narrower = ConsumerHeartbeat {
        topic_names: Some(vec!["t".into()]),
        ..alive("a", a.member_epoch, None)
    };
    let told = bench.consumer(&narrower).unwrap();
    assert_eq!(told.assignment, owns(&bench, &[0, 1]));
    assert_eq!(told.member_epoch, a.member_epoch);
    let told = bench
        .consumer(&alive("a", a.member_epoch, told.assignment))
        .unwrap();
    assert!(told.member_epoch > a.member_epoch);
}

#[test]
fn what_a_member_no_longer_wants_goes_at_once_even_while_it_releases() {
    let mut bench = Bench::new(&[("t", 4), ("u", 2)]);
    let a = bench.consumer(&modern("a", &["t", "u"])).unwrap();
    bench.consumer(&modern("b", &["t"])).unwrap();
    let told = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    assert_eq!(
        told.member_epoch, a.member_epoch,
        "it has partitions of t to release"
    );
    let narrower = ConsumerHeartbeat {
        topic_names: Some(vec!["t".into()]),
        ..alive("a", a.member_epoch, None)
    };
    let left = bench.consumer(&narrower).unwrap().assignment.unwrap();
    assert_eq!(
        left.iter().map(|(topic, _)| *topic).collect::<Vec<_>>(),
        [bench.topics.id("t")]
    );
    let done = bench.consumer(&alive("a", a.member_epoch, Some(left))).unwrap();
    assert!(done.member_epoch > a.member_epoch);
    bench.check_fold();
}

#[test]
fn a_group_has_a_size() {
    let settings = GroupSettings {
        size_max: 2,
        groups_max: 1,
        ..GroupSettings::default()
    };
    let mut bench = Bench::with(settings, &[("t", 4)]);
    bench.consumer(&modern("a", &["t"])).unwrap();
    bench
        .consumer(&ConsumerHeartbeat {
            instance_id: Some("i".into()),
            ..modern("b", &["t"])
        })
        .unwrap();
    assert_eq!(
        code(&mut bench, &modern("c", &["t"])),
        ErrorCode::GroupMaxSizeReached
    );
    assert_eq!(
        code(&mut bench, &modern("a", &["t"])),
        ErrorCode::None,
        "who is in may join again"
    );
    let bye = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..alive("b", -2, None)
    };
    bench.consumer(&bye).unwrap();
    let back = ConsumerHeartbeat {
        instance_id: Some("i".into()),
        ..modern("b2", &["t"])
    };
    assert_eq!(
        code(&mut bench, &back),
        ErrorCode::None,
        "and so may a static member under a new id"
    );
    let elsewhere = ConsumerHeartbeat {
        group_id: "h".into(),
        ..modern("a", &["t"])
    };
    assert_eq!(
        code(&mut bench, &elsewhere),
        ErrorCode::GroupMaxSizeReached,
        "groups.max"
    );
}

#[test]
fn a_group_may_have_times_of_its_own() {
    let mut bench = Bench::new(&[("t", 1)]);
    let times = ConsumerGroupSettings {
        session_timeout_ms: 7_000,
        heartbeat_interval_ms: 300,
    };
    bench.coordinator.set_own_settings("g", Some(times));
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    assert_eq!(a.heartbeat_interval_ms, 300);
    let other = ConsumerHeartbeat {
        group_id: "h".into(),
        ..modern("a", &["t"])
    };
    assert_eq!(bench.consumer(&other).unwrap().heartbeat_interval_ms, 1_000);
    bench.pass(6_999);
    assert_eq!(
        code(&mut bench, &alive("a", a.member_epoch, None)),
        ErrorCode::None
    );
    bench.pass(7_000);
    assert_eq!(
        code(&mut bench, &alive("a", a.member_epoch, None)),
        ErrorCode::UnknownMemberId
    );
    bench.coordinator.set_own_settings("g", None);
    assert_eq!(
        bench
            .consumer(&modern("a", &["t"]))
            .unwrap()
            .heartbeat_interval_ms,
        1_000
    );
}
