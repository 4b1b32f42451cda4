//! What happens over time: expiry, restarts, topics that change, mixed groups, and cases from the field.

use anabranch_wire::ErrorCode;

use crate::group::harness::{Bench, alive, classic, modern, read_assignment};
use crate::group::{ConsumerHeartbeat, JoinAnswer, JoinGroup};

fn parts(bytes: &bytes::Bytes) -> Vec<i32> {
    read_assignment(bytes)
        .into_iter()
        .flat_map(|(_, partitions)| partitions)
        .collect()
}

fn members(bench: &Bench) -> usize {
    bench.coordinator.groups()["g"].consumer().unwrap().members.len()
}

#[test]
fn silence_expels_a_classic_member_after_its_own_session() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench.pass(9_999);
    assert_eq!(bench.heartbeat(&a.member_id, a.generation_id), ErrorCode::None);
    bench.pass(10_000);
    assert_eq!(members(&bench), 0);
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::UnknownMemberId
    );
}

#[test]
fn who_is_told_to_rejoin_has_its_rebalance_timeout() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    let (b, _) = bench.enter("", "range", &["t"]);
    // Nobody tells it yet: the time does not run.
    bench.pass(5_000);
    let told_at = bench.now.mono_ms;
    while bench.now.mono_ms < told_at + 20_000 {
        assert_eq!(
            bench.heartbeat(&a.member_id, a.generation_id),
            ErrorCode::RebalanceInProgress
        );
        let calm = bench.heartbeat(&b.member_id, b.generation_id);
        assert_eq!(calm, ErrorCode::None);
        bench.pass(2_500);
    }
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::UnknownMemberId
    );
    assert!(
        bench
            .notices
            .iter()
            .any(|notice| notice.text.contains("told to rejoin"))
    );
}

#[test]
fn a_reason_to_rejoin_that_went_away_stops_the_clock() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "sticky", &["t"]);
    let (b, _) = bench.enter("", "sticky", &["t"]);
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );
    bench.leave(&b.member_id, None);
    for _ in 0..10 {
        assert_eq!(bench.heartbeat(&a.member_id, a.generation_id), ErrorCode::None);
        bench.pass(5_000);
    }
}

#[test]
fn who_joins_and_does_not_sync_is_expelled() {
    let mut bench = Bench::new(&[("t", 2)]);
    let request = JoinGroup {
        session_timeout_ms: 60_000,
        ..classic("", "range", &["t"])
    };
    let a = bench.join(&request);
    bench.pass(19_999);
    assert_eq!(members(&bench), 1);
    bench.pass(1);
    assert_eq!(members(&bench), 0);
    assert_eq!(
        bench.sync(&a.member_id, a.generation_id).error,
        ErrorCode::UnknownMemberId
    );
}

#[test]
fn version_0_has_its_session_as_rebalance_timeout() {
    // Three members a second apart, sessions of 6 s; a missing timeout must not read as "no time at all".
    let mut bench = Bench::new(&[("t", 6)]);
    let ask = |member: &str| JoinGroup {
        version: 0,
        session_timeout_ms: 6_000,
        rebalance_timeout_ms: -1,
        ..classic(member, "range", &["t"])
    };
    // Told to rejoin, a client takes a second to do so, and another one to sync.
    let mut known: Vec<(JoinAnswer, bool, bool)> = Vec::new();
    let mut generations = Vec::new();
    for second in 0..22 {
        for (joined, must_join, must_sync) in &mut known {
            if std::mem::take(must_join) {
                *joined = bench.join(&ask(&joined.member_id));
                assert_eq!(joined.error, ErrorCode::None, "second {second}");
                *must_sync = true;
            } else if std::mem::take(must_sync) {
                *must_join = match bench.sync(&joined.member_id, joined.generation_id).error {
                    ErrorCode::None => false,
                    ErrorCode::RebalanceInProgress => true,
                    other => panic!("second {second}: {other}"),
                };
            } else {
                *must_join = match bench.heartbeat(&joined.member_id, joined.generation_id) {
                    ErrorCode::None => false,
                    ErrorCode::RebalanceInProgress => true,
                    other => panic!("second {second}: {other}"),
                };
            }
        }
        if second < 3 {
            known.push((bench.join(&ask("")), false, true));
        }
        if second >= 12 {
            generations.push(
                known
                    .iter()
                    .map(|(joined, ..)| joined.generation_id)
                    .collect::<Vec<_>>(),
            );
        }
        bench.pass(1_000);
    }
    assert_eq!(members(&bench), 3);
    assert!(
        generations.windows(2).all(|pair| pair[0] == pair[1]),
        "{generations:?}"
    );
}

#[test]
fn a_restart_forgets_nobody_and_expels_nobody() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a, synced) = bench.enter("", "range", &["t"]);
    bench.pass(9_000);
    let journal = bench.journal.len();
    bench.restart();
    bench.pass(9_000);
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::None,
        "a full session again"
    );
    assert_eq!(
        bench.sync(&a.member_id, a.generation_id).assignment,
        synced.assignment
    );
    assert_eq!(bench.journal.len(), journal, "a recovery changes nothing");
    bench.pass(10_000);
    assert_eq!(members(&bench), 0);
}

#[test]
fn a_restart_in_the_middle_of_a_hand_over_keeps_it_safe() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    let b = bench.consumer(&modern("b", &["t"])).unwrap();
    let told = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    bench.restart();
    let waits = bench.consumer(&alive("b", b.member_epoch, None)).unwrap();
    assert_eq!(waits.assignment, None, "a has not released");
    bench
        .consumer(&alive("a", a.member_epoch, told.assignment))
        .unwrap();
    let gets = bench.consumer(&alive("b", b.member_epoch, None)).unwrap();
    assert!(
        gets.assignment
            .is_some_and(|assignment| assignment[0].1.len() == 2)
    );
    // And one that never releases is still expelled, a full rebalance timeout after the restart.
    let c = bench.consumer(&modern("c", &["t"])).unwrap();
    let epoch = bench
        .consumer(&alive("b", gets.member_epoch, None))
        .unwrap()
        .member_epoch;
    bench.pass(15_000);
    bench.restart();
    for _ in 0..20 {
        assert!(bench.consumer(&alive("b", epoch, None)).is_ok());
        bench
            .consumer(&alive("c", c.member_epoch.max(current(&bench, "c")), None))
            .unwrap();
        bench.pass(1_000);
    }
    let refused = bench.consumer(&alive("b", epoch, None)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::UnknownMemberId);
}

#[test]
fn topics_that_grow_appear_or_vanish_are_assigned_anew() {
    let mut bench = Bench::new(&[("t", 1)]);
    let (a, _) = bench.enter("", "range", &["t", "later"]);
    bench.topics.grow("t", 3);
    bench.topics_changed();
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (a, synced) = bench.enter(&a.member_id, "range", &["t", "later"]);
    assert_eq!(parts(&synced.assignment), [0, 1, 2]);
    bench.topics.create("unrelated", 5);
    let journal = bench.journal.len();
    bench.topics_changed();
    assert_eq!(
        bench.journal.len(),
        journal,
        "a topic nobody asked for changes nothing"
    );
    bench.topics.create("later", 2);
    bench.topics_changed();
    let (a, synced) = bench.enter(&a.member_id, "range", &["t", "later"]);
    assert_eq!(read_assignment(&synced.assignment).len(), 2);
    bench.topics.delete("t");
    bench.topics_changed();
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (_, synced) = bench.enter(&a.member_id, "range", &["t", "later"]);
    assert_eq!(
        read_assignment(&synced.assignment),
        [("later".to_owned(), vec![0, 1])]
    );
    bench.check_fold();
}

#[test]
fn a_topic_change_that_the_crash_hid_is_found_afterwards() {
    let mut bench = Bench::new(&[("t", 1)]);
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    bench.topics.grow("t", 2);
    bench.restart();
    bench.topics_changed();
    let grown = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    assert_eq!(grown.assignment, Some(vec![(bench.topics.id("t"), vec![0, 1])]));
}

#[test]
fn a_pattern_subscribes_to_whole_names_present_and_future() {
    let mut bench = Bench::new(&[("log.a", 1), ("log.b", 1), ("catalog.c", 1)]);
    let request = ConsumerHeartbeat {
        topic_names: None,
        topic_regex: Some("log\\..*".into()),
        ..modern("a", &[])
    };
    let a = bench.consumer(&request).unwrap();
    let names = |bench: &Bench, assignment: &[(crate::ids::TopicId, Vec<i32>)]| -> Vec<String> {
        use crate::group::Topics;
        assignment
            .iter()
            .map(|(id, _)| bench.topics.by_id(*id).unwrap().name.to_owned())
            .collect()
    };
    assert_eq!(names(&bench, &a.assignment.unwrap()), ["log.a", "log.b"]);
    bench.topics.create("log.z", 1);
    bench.topics_changed();
    let more = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    assert_eq!(
        names(&bench, &more.assignment.unwrap()),
        ["log.a", "log.b", "log.z"]
    );
    // An empty pattern means none; names are added.
    let other = ConsumerHeartbeat {
        topic_names: Some(vec!["catalog.c".into()]),
        topic_regex: Some(String::new()),
        ..alive("a", more.member_epoch, None)
    };
    let told = bench.consumer(&other).unwrap();
    assert_eq!(told.assignment, Some(vec![]), "release first");
    let told = bench
        .consumer(&alive("a", told.member_epoch, Some(vec![])))
        .unwrap();
    assert_eq!(names(&bench, &told.assignment.unwrap()), ["catalog.c"]);
}

#[test]
fn members_of_both_protocols_share_a_group() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a, synced) = bench.enter("", "range", &["t"]);
    assert_eq!(parts(&synced.assignment).len(), 4);
    let b = bench.consumer(&modern("b", &["t"])).unwrap();
    assert_eq!(b.assignment, Some(vec![]));
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (a, synced) = bench.enter(&a.member_id, "range", &["t"]);
    assert_eq!(
        parts(&synced.assignment),
        [2, 3],
        "range counts in the order of ids: b, then client-..."
    );
    let b = bench.consumer(&alive("b", b.member_epoch, None)).unwrap();
    assert_eq!(b.assignment, Some(vec![(bench.topics.id("t"), vec![0, 1])]));
    assert_eq!(
        bench.heartbeat("b", b.member_epoch),
        ErrorCode::UnknownMemberId,
        "b does not speak classic"
    );
    // A rolling upgrade: the same member id changes its protocol and keeps what it has.
    let upgraded = bench.consumer(&modern(&a.member_id, &["t"])).unwrap();
    assert_eq!(
        upgraded.assignment,
        Some(vec![(bench.topics.id("t"), vec![2, 3])])
    );
    // An operator may remove anybody by LeaveGroup.
    assert_eq!(bench.leave("b", None).members[0].1, ErrorCode::None);
    bench.check_fold();
}

#[test]
fn a_spare_member_stays_calm_and_takes_over() {
    // One partition, five members of different kinds: an empty assignment is a quiet state.
    let mut bench = Bench::new(&[("t", 1)]);
    let mut classics = Vec::new();
    for protocol in ["range", "roundrobin", "cooperative-sticky", "RoundRobinAssigner"] {
        classics.push(bench.enter("", protocol, &["t"]).0);
    }
    let m = bench.consumer(&modern("zz", &["t"])).unwrap();
    let mut told = 0;
    for _ in 0..40 {
        for member in &mut classics {
            match bench.heartbeat(&member.member_id, member.generation_id) {
                ErrorCode::None => {}
                _ => {
                    told += 1;
                    *member = bench.enter(&member.member_id.clone(), "range", &["t"]).0;
                }
            }
        }
        bench
            .consumer(&alive("zz", m.member_epoch.max(current(&bench, "zz")), None))
            .unwrap();
        bench.pass(1_000);
    }
    assert!(told <= 4, "{told} rebalances in a group with nothing to do");
}

fn current(bench: &Bench, id: &str) -> i32 {
    bench.coordinator.groups()["g"].consumer().unwrap().members[id]
        .current
        .epoch
}

#[test]
fn a_member_whose_partitions_went_while_it_joined_joins_again() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.join(&classic("", "range", &["t"]));
    bench.join(&classic("", "range", &["t"]));
    let synced = bench.sync(&a.member_id, a.generation_id);
    assert_eq!(
        synced.error,
        ErrorCode::RebalanceInProgress,
        "rather than be given what it must give back"
    );
    assert_eq!(synced.assignment.len(), 0);
    let (_, synced) = bench.enter(&a.member_id, "range", &["t"]);
    assert_eq!(parts(&synced.assignment), [0, 1]);
}

#[test]
fn an_eager_member_at_work_is_stopped_once_not_for_every_piece() {
    let mut bench = Bench::new(&[("t", 3), ("u", 3)]);
    let (a, synced) = bench.enter("", "sticky", &["t", "u"]);
    assert_eq!(parts(&synced.assignment).len(), 6);
    // Two members of the consumer protocol take two thirds, and leave one by one.
    let b = bench.consumer(&modern("b", &["t", "u"])).unwrap();
    let c = bench.consumer(&modern("c", &["t", "u"])).unwrap();
    let (a, synced) = bench.enter(&a.member_id, "sticky", &["t", "u"]);
    assert_eq!(parts(&synced.assignment).len(), 2);
    let b = bench.consumer(&alive("b", b.member_epoch, None)).unwrap();
    let c = bench.consumer(&alive("c", c.member_epoch, None)).unwrap();
    assert_eq!((b.assignment.is_some(), c.assignment.is_some()), (true, true));
    // They lose interest in t and u: all goes to a, but they let go of it one after the other.
    for (id, epoch) in [("b", b.member_epoch), ("c", c.member_epoch)] {
        let other = ConsumerHeartbeat {
            topic_names: Some(vec![]),
            ..alive(id, epoch, None)
        };
        bench.consumer(&other).unwrap();
    }
    assert_eq!(bench.heartbeat(&a.member_id, a.generation_id), ErrorCode::None);
    bench.consumer(&alive("b", b.member_epoch, Some(vec![]))).unwrap();
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::None,
        "half of it is free: not yet"
    );
    bench.consumer(&alive("c", c.member_epoch, Some(vec![]))).unwrap();
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::RebalanceInProgress
    );
    let (_, synced) = bench.enter(&a.member_id, "sticky", &["t", "u"]);
    assert_eq!(parts(&synced.assignment).len(), 6);
}

#[test]
fn who_has_nothing_to_lose_takes_every_piece_as_it_comes() {
    for protocol in ["sticky", "cooperative-sticky"] {
        let mut bench = Bench::new(&[("t", 9)]);
        let mut slow = Vec::new();
        for id in ["m1", "m2"] {
            let joined = bench.consumer(&modern(id, &["t"])).unwrap();
            slow.push((id, joined.member_epoch));
        }
        for (id, epoch) in &mut slow {
            let told = bench.consumer(&alive(id, *epoch, None)).unwrap();
            *epoch = bench
                .consumer(&alive(id, *epoch, told.assignment))
                .unwrap()
                .member_epoch;
        }
        // The newcomer shall have three of nine, from both of them.
        let (c, synced) = bench.enter("", protocol, &["t"]);
        assert_eq!(parts(&synced.assignment).len(), 0);
        let (id, epoch) = slow[0];
        let told = bench.consumer(&alive(id, epoch, None)).unwrap();
        bench.consumer(&alive(id, epoch, told.assignment)).unwrap();
        assert_eq!(
            bench.heartbeat(&c.member_id, c.generation_id),
            ErrorCode::RebalanceInProgress,
            "{protocol}"
        );
        let (_, synced) = bench.enter(&c.member_id, protocol, &["t"]);
        let first = parts(&synced.assignment).len();
        assert!(
            (1..3).contains(&first),
            "{protocol}: {first} of 3, the other owner is slow"
        );
    }
}

#[test]
fn a_classic_member_that_speaks_the_other_protocol_has_changed_over() {
    let mut bench = Bench::new(&[("t", 1)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench
        .consumer(&alive(&a.member_id, a.generation_id, None))
        .unwrap();
    assert_eq!(
        bench.heartbeat(&a.member_id, a.generation_id),
        ErrorCode::UnknownMemberId
    );
}
