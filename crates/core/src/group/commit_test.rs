//! OffsetCommit: who may commit what.

use anabranch_wire::ErrorCode;

use super::harness::{Bench, alive, at, classic, fetch, modern, simple, t};
use super::*;
use crate::ids::TopicId;

#[test]
fn whoever_assigns_itself_commits_to_a_group_without_members() {
    let mut bench = Bench::new(&[("t", 2)]);
    assert_eq!(bench.commit("", -1, "t", 1, 42), ErrorCode::None);
    assert_eq!((bench.committed("t", 1), bench.committed("t", 0)), (42, -1));
    let (a, _) = bench.enter("", "range", &["t"]);
    assert_eq!(bench.commit("", -1, "t", 1, 1), ErrorCode::UnknownMemberId);
    assert_eq!(bench.committed("t", 1), 42);
    bench.leave(&a.member_id, None);
    assert_eq!(
        bench.commit("", -1, "t", 1, 43),
        ErrorCode::None,
        "an operator resets offsets"
    );
    bench.check_fold();
}

#[test]
fn each_partition_has_its_own_error() {
    let mut bench = Bench::new(&[("t", 2)]);
    let note = |bytes: usize| CommitPartition {
        metadata: Some("x".repeat(bytes)),
        ..at(0, 1)
    };
    let mut request = simple(t(), at(0, 1));
    request.topics[0].1 = vec![
        note(4_096),
        CommitPartition {
            partition: 1,
            ..note(4_097)
        },
        at(2, 1),
        at(-1, 1),
        at(1, -2),
        at(1, -1),
    ];
    request
        .topics
        .push((TopicRef::Name("nowhere".into()), vec![at(0, 1)]));
    request
        .topics
        .push((TopicRef::Id(TopicId([9; 16])), vec![at(0, 1)]));
    let answer = bench.send_commit(&request);
    let errors: Vec<_> = answer
        .iter()
        .flat_map(|(_, partitions)| partitions)
        .map(|(_, error)| *error)
        .collect();
    use ErrorCode::{
        InvalidRequest, None as Fine, OffsetMetadataTooLarge, UnknownTopicId,
        UnknownTopicOrPartition as Unknown,
    };
    assert_eq!(
        errors,
        [
            Fine,
            OffsetMetadataTooLarge,
            Unknown,
            Unknown,
            InvalidRequest,
            Fine,
            Unknown,
            UnknownTopicId
        ]
    );
    assert_eq!(bench.committed("t", 0), 1);
    let by_id = simple(TopicRef::Id(bench.topics.id("t")), at(0, 5));
    assert_eq!(bench.send_commit(&by_id)[0].1[0].1, ErrorCode::None);
    assert_eq!(bench.committed("t", 0), 5);
}

#[test]
fn a_late_commit_of_an_expelled_member_changes_nothing() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 10),
        ErrorCode::None
    );
    bench.pass(10_000);
    let (b, _) = bench.enter("", "range", &["t"]);
    let groups = bench.coordinator.groups().clone();
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 11),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(bench.coordinator.groups(), &groups);
    assert_eq!(
        bench.heartbeat(&b.member_id, b.generation_id),
        ErrorCode::None,
        "nobody is disturbed by it"
    );
    bench.restart();
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 11),
        ErrorCode::UnknownMemberId
    );
    // Even under its old id it is somebody new, and its old generation is good for nothing.
    bench.enter(&a.member_id, "range", &["t"]);
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 11),
        ErrorCode::IllegalGeneration
    );
}

#[test]
fn the_former_generation_is_good_until_the_sync() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench.enter("", "range", &["t"]);
    let again = bench.join(&classic(&a.member_id, "range", &["t"]));
    assert!(again.generation_id > a.generation_id);
    // Released by the join, and nobody has it yet: what was done on it may be told.
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 3, 8),
        ErrorCode::None
    );
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 9),
        ErrorCode::None
    );
    bench.sync(&a.member_id, again.generation_id);
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 3, 9),
        ErrorCode::IllegalGeneration
    );
    // Kept over the rejoin, so held since then: KIP-1251.
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 0, 10),
        ErrorCode::None
    );
    assert_eq!(
        bench.commit(&a.member_id, again.generation_id + 1, "t", 0, 10),
        ErrorCode::IllegalGeneration
    );
    assert_eq!((bench.committed("t", 3), bench.committed("t", 0)), (8, 10));
}

#[test]
fn the_former_generation_is_not_good_for_what_somebody_else_has() {
    let mut bench = Bench::new(&[("t", 4)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    let (b, _) = bench.enter("", "range", &["t"]);
    bench.join(&classic(&a.member_id, "range", &["t"]));
    bench.enter(&b.member_id, "range", &["t"]);
    assert_eq!(
        bench.commit(&a.member_id, a.generation_id, "t", 3, 8),
        ErrorCode::IllegalGeneration
    );
    assert_eq!(bench.committed("t", 3), -1);
}

#[test]
fn members_of_the_consumer_protocol_commit_at_their_epoch() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    bench.consumer(&modern("b", &["t"])).unwrap();
    let told = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    let done = bench
        .consumer(&alive("a", a.member_epoch, told.assignment))
        .unwrap();
    assert!(done.member_epoch > a.member_epoch);
    assert_eq!(bench.commit("a", done.member_epoch, "t", 0, 1), ErrorCode::None);
    assert_eq!(
        bench.commit("a", a.member_epoch, "t", 0, 2),
        ErrorCode::None,
        "it held that then"
    );
    assert_eq!(
        bench.commit("a", a.member_epoch, "t", 3, 2),
        ErrorCode::StaleMemberEpoch,
        "gave that up"
    );
    assert_eq!(
        bench.commit("a", done.member_epoch + 1, "t", 0, 3),
        ErrorCode::StaleMemberEpoch
    );
    assert_eq!(bench.commit("x", 1, "t", 0, 3), ErrorCode::UnknownMemberId);
    let mut old = simple(t(), at(0, 3));
    old.version = 8;
    old.member_id = "a".into();
    old.generation_or_epoch = done.member_epoch;
    assert_eq!(bench.send_commit(&old)[0].1[0].1, ErrorCode::UnsupportedVersion);
    assert_eq!(bench.committed("t", 0), 2);
}

#[test]
fn an_older_epoch_is_not_good_for_what_came_later() {
    let mut bench = Bench::new(&[("t", 4)]);
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    bench.consumer(&modern("b", &["t"])).unwrap();
    let told = bench.consumer(&alive("a", a.member_epoch, None)).unwrap();
    let half = bench
        .consumer(&alive("a", a.member_epoch, told.assignment))
        .unwrap();
    bench.consumer(&alive("b", -1, None)).unwrap();
    let all = bench.consumer(&alive("a", half.member_epoch, None)).unwrap();
    assert_eq!(all.assignment.unwrap()[0].1, [0, 1, 2, 3]);
    assert_eq!(bench.commit("a", half.member_epoch, "t", 0, 1), ErrorCode::None);
    assert_eq!(
        bench.commit("a", half.member_epoch, "t", 3, 1),
        ErrorCode::StaleMemberEpoch
    );
    assert_eq!(bench.commit("a", all.member_epoch, "t", 3, 1), ErrorCode::None);
}

#[test]
fn instances_are_checked_on_commit() {
    let mut bench = Bench::new(&[("t", 1)]);
    let joins = JoinGroup {
        version: 5,
        instance_id: Some("i".into()),
        ..classic("", "range", &["t"])
    };
    let old = bench.join(&joins);
    let new = bench.join(&joins);
    let commit = |member: &str, generation: i32, instance: &str| OffsetCommit {
        member_id: member.into(),
        generation_or_epoch: generation,
        instance_id: Some(instance.into()),
        ..simple(t(), at(0, 1))
    };
    let mut error = |request: &OffsetCommit| bench.send_commit(request)[0].1[0].1;
    assert_eq!(
        error(&commit(&old.member_id, old.generation_id, "i")),
        ErrorCode::FencedInstanceId
    );
    assert_eq!(
        error(&commit(&new.member_id, new.generation_id, "j")),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(
        error(&commit(&new.member_id, new.generation_id, "i")),
        ErrorCode::None
    );
}

#[test]
fn a_group_that_does_not_exist_has_its_codes() {
    let mut bench = Bench::with(
        GroupSettings {
            groups_max: 1,
            ..GroupSettings::default()
        },
        &[("t", 1)],
    );
    assert_eq!(bench.commit("m", 3, "t", 0, 1), ErrorCode::GroupIdNotFound);
    let old = OffsetCommit {
        version: 8,
        generation_or_epoch: 3,
        member_id: "m".into(),
        ..simple(t(), at(0, 1))
    };
    assert_eq!(bench.send_commit(&old)[0].1[0].1, ErrorCode::IllegalGeneration);
    let nameless = OffsetCommit {
        group_id: String::new(),
        ..simple(t(), at(0, 1))
    };
    assert_eq!(bench.send_commit(&nameless)[0].1[0].1, ErrorCode::InvalidGroupId);
    let all = bench.fetch(&fetch(None, -1, None));
    assert_eq!(all, Ok(vec![]), "nothing committed is no error");
    assert_eq!(
        bench.send_commit(&simple(t(), at(0, 1)))[0].1[0].1,
        ErrorCode::None
    );
    let other = OffsetCommit {
        group_id: "h".into(),
        ..simple(t(), at(0, 1))
    };
    assert_eq!(
        bench.send_commit(&other)[0].1[0].1,
        ErrorCode::GroupMaxSizeReached
    );
}

#[test]
fn commits_in_a_group_with_a_leader() {
    let mut bench = Bench::new(&[("t", 1)]);
    let request = JoinGroup {
        protocol_type: "connect".into(),
        ..classic("", "x", &[])
    };
    let a = bench.join(&request);
    assert_eq!(bench.commit("", -1, "t", 0, 1), ErrorCode::UnknownMemberId);
    assert_eq!(
        bench.commit(&a.member_id, 1, "t", 0, 1),
        ErrorCode::RebalanceInProgress,
        "before the plan"
    );
    bench.sync(&a.member_id, 1);
    assert_eq!(
        bench.commit(&a.member_id, 2, "t", 0, 1),
        ErrorCode::IllegalGeneration
    );
    assert_eq!(bench.commit("x", 1, "t", 0, 1), ErrorCode::UnknownMemberId);
    for _ in 0..4 {
        bench.pass(9_000);
        assert_eq!(
            bench.commit(&a.member_id, 1, "t", 0, 1),
            ErrorCode::None,
            "commits keep the session alive"
        );
    }
    let wanted = [("t".to_owned(), vec![0])];
    let deleted = bench
        .coordinator
        .delete_offsets(bench.now, &bench.topics, "g", &wanted)
        .0;
    assert_eq!(deleted, Err(ErrorCode::NonEmptyGroup));
    bench.leave(&a.member_id, None);
    assert_eq!(bench.commit("", -1, "t", 0, 2), ErrorCode::None);
    assert_eq!(bench.committed("t", 0), 2);
}
