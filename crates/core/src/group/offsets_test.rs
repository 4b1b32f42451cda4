//! Cursors: who may commit, what is given back, what expires; and what tools are shown.

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::harness::{Bench, alive, classic, modern, subscription};
use super::*;
use crate::ids::TopicId;

fn simple(topic: TopicRef, partition: CommitPartition) -> OffsetCommit {
    OffsetCommit {
        version: 9,
        group_id: "g".into(),
        generation_or_epoch: -1,
        retention_ms: -1,
        topics: vec![(topic, vec![partition])],
        ..OffsetCommit::default()
    }
}

fn at(partition: i32, offset: i64) -> CommitPartition {
    CommitPartition {
        partition,
        offset,
        leader_epoch: 3,
        metadata: None,
    }
}

fn t() -> TopicRef {
    TopicRef::Name("t".into())
}

fn fetch(member: Option<&str>, member_epoch: i32, topics: Option<Vec<(TopicRef, Vec<i32>)>>) -> OffsetFetch {
    OffsetFetch {
        group_id: "g".into(),
        member_id: member.map(str::to_owned),
        member_epoch,
        topics,
    }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

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
fn what_is_committed_comes_back_as_it_was() {
    let mut bench = Bench::new(&[("t", 2)]);
    let mut request = simple(t(), at(0, 7));
    request.topics[0].1[0].metadata = Some("note".into());
    bench.send_commit(&request);
    let answer = bench
        .coordinator
        .fetch(&bench.topics, &fetch(None, -1, Some(vec![(t(), vec![0, 1])])))
        .unwrap();
    let [known, unknown] = &answer[0].1[..] else {
        panic!()
    };
    assert_eq!(
        (known.offset, known.leader_epoch, known.metadata.as_str()),
        (7, 3, "note")
    );
    assert_eq!(
        (unknown.offset, unknown.leader_epoch, unknown.metadata.as_str()),
        (-1, -1, "")
    );
    bench.restart();
    assert_eq!(bench.committed("t", 0), 7);
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
    let all = bench.coordinator.fetch(&bench.topics, &fetch(None, -1, None));
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
fn fetching_all_and_by_id() {
    let mut bench = Bench::new(&[("t", 3), ("u", 1)]);
    for (topic, partition) in [("t", 2), ("u", 0), ("t", 0)] {
        bench.commit("", -1, topic, partition, 5);
    }
    let answer = bench
        .coordinator
        .fetch(&bench.topics, &fetch(None, -1, None))
        .unwrap();
    let named: Vec<_> = answer
        .iter()
        .map(|(t, p)| (t.clone(), p.iter().map(|p| p.partition).collect()))
        .collect();
    assert_eq!(named, [(t(), vec![0, 2]), (TopicRef::Name("u".into()), vec![0])]);
    let by_id = vec![
        (TopicRef::Id(bench.topics.id("u")), vec![0]),
        (TopicRef::Id(TopicId([7; 16])), vec![0]),
    ];
    let answer = bench
        .coordinator
        .fetch(&bench.topics, &fetch(None, -1, Some(by_id)))
        .unwrap();
    assert_eq!(
        (answer[0].1[0].offset, answer[0].1[0].error),
        (5, ErrorCode::None)
    );
    assert_eq!(answer[1].1[0].error, ErrorCode::UnknownTopicId);
}

#[test]
fn a_stale_member_of_the_consumer_protocol_must_heartbeat_before_it_fetches() {
    let mut bench = Bench::new(&[("t", 1)]);
    let a = bench.consumer(&modern("a", &["t"])).unwrap();
    let (c, _) = bench.enter("", "range", &["t"]);
    let ask = |bench: &Bench, member: Option<&str>, epoch| {
        bench
            .coordinator
            .fetch(&bench.topics, &fetch(member, epoch, None))
            .err()
    };
    assert_eq!(ask(&bench, Some("a"), a.member_epoch), None);
    assert_eq!(
        ask(&bench, Some("a"), a.member_epoch + 1),
        Some(ErrorCode::StaleMemberEpoch)
    );
    assert_eq!(ask(&bench, Some("x"), 1), Some(ErrorCode::StaleMemberEpoch));
    assert_eq!(ask(&bench, None, -1), None);
    assert_eq!(
        ask(&bench, Some(&c.member_id), -1),
        None,
        "classic clients may name themselves without an epoch"
    );
    assert_eq!(ask(&bench, Some(&c.member_id), c.generation_id + 5), None);
}

#[test]
fn a_topic_made_anew_inherits_nothing() {
    let mut bench = Bench::new(&[("t", 1), ("u", 1)]);
    bench.commit("", -1, "t", 0, 99);
    bench.commit("", -1, "u", 0, 98);
    bench.topics.delete("t");
    bench.topics.create("t", 1);
    assert_eq!(bench.committed("t", 0), -1, "at once");
    bench.topics_changed();
    assert_eq!(
        bench.coordinator.groups()["g"].cursors.len(),
        1,
        "and the old cursor is dropped"
    );
    assert_eq!(bench.committed("u", 0), 98);
}

#[test]
fn deleting_offsets_spares_what_is_subscribed() {
    let mut bench = Bench::new(&[("t", 2), ("u", 1), ("v", 1)]);
    let ask = |bench: &mut Bench, names: &[&str]| {
        let wanted: Vec<_> = names.iter().map(|name| ((*name).to_owned(), vec![0])).collect();
        let (answer, effects) = bench
            .coordinator
            .delete_offsets(bench.now, &bench.topics, "g", &wanted);
        bench.take(effects);
        answer.map(|topics| {
            topics
                .into_iter()
                .map(|(_, partitions)| partitions[0].1)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(ask(&mut bench, &["t"]), Err(ErrorCode::GroupIdNotFound));
    for topic in ["t", "u", "v"] {
        bench.commit("", -1, topic, 0, 1);
    }
    bench.enter("", "range", &["t"]);
    let pattern = ConsumerHeartbeat {
        topic_names: None,
        topic_regex: Some("u.*".into()),
        ..modern("m", &[])
    };
    bench.consumer(&pattern).unwrap();
    use ErrorCode::{GroupSubscribedToTopic as Subscribed, None as Fine, UnknownTopicOrPartition};
    assert_eq!(
        ask(&mut bench, &["t", "u", "v", "nowhere"]),
        Ok(vec![Subscribed, Subscribed, Fine, UnknownTopicOrPartition])
    );
    assert_eq!((bench.committed("t", 0), bench.committed("v", 0)), (1, -1));
    bench.check_fold();
}

#[test]
fn deleting_groups() {
    let mut bench = Bench::new(&[("t", 1)]);
    let delete = |bench: &mut Bench| {
        let (error, effects) = bench.coordinator.delete_group(bench.now, &bench.topics, "g");
        bench.take(effects);
        error
    };
    assert_eq!(delete(&mut bench), ErrorCode::GroupIdNotFound);
    let (a, _) = bench.enter("", "range", &["t"]);
    assert_eq!(delete(&mut bench), ErrorCode::NonEmptyGroup);
    bench.leave(&a.member_id, None);
    assert_eq!(
        delete(&mut bench),
        ErrorCode::None,
        "a group that never committed can be deleted"
    );
    bench.commit("", -1, "t", 0, 1);
    assert_eq!(delete(&mut bench), ErrorCode::None);
    assert_eq!(bench.committed("t", 0), -1);
    assert!(bench.coordinator.groups().is_empty());
    let leads = JoinGroup {
        protocol_type: "connect".into(),
        ..classic("", "x", &[])
    };
    let asked = bench.join(&JoinGroup { version: 4, ..leads });
    assert_eq!(asked.error, ErrorCode::MemberIdRequired);
    assert_eq!(
        delete(&mut bench),
        ErrorCode::NonEmptyGroup,
        "somebody is about to come"
    );
}

fn expire(bench: &mut Bench) {
    let effects = bench.coordinator.expire(bench.now, &bench.topics);
    bench.take(effects);
}

#[test]
fn cursors_of_an_empty_group_live_for_the_retention() {
    let mut bench = Bench::new(&[("t", 1)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench.commit(&a.member_id, a.generation_id, "t", 0, 5);
    bench.pass(3_000);
    bench.leave(&a.member_id, None);
    bench.pass(7 * DAY_MS - 1);
    bench.restart();
    expire(&mut bench);
    assert_eq!(bench.committed("t", 0), 5);
    bench.pass(1);
    expire(&mut bench);
    assert_eq!(bench.committed("t", 0), -1);
    assert!(
        bench.coordinator.groups().is_empty(),
        "and the group goes with the last of them"
    );
    bench.check_fold();
}

#[test]
fn with_members_only_what_nobody_subscribes_to_expires() {
    let mut bench = Bench::new(&[("t", 1), ("u", 1)]);
    bench.commit("", -1, "t", 0, 5);
    bench.commit("", -1, "u", 0, 6);
    let request = JoinGroup {
        session_timeout_ms: 1_800_000,
        ..classic("", "range", &["t"])
    };
    let a = bench.join(&request);
    bench.sync(&a.member_id, a.generation_id);
    for _ in 0..(7 * 96) {
        bench.pass(DAY_MS / 96);
        assert_eq!(bench.heartbeat(&a.member_id, a.generation_id), ErrorCode::None);
    }
    expire(&mut bench);
    assert_eq!((bench.committed("t", 0), bench.committed("u", 0)), (5, -1));
}

#[test]
fn a_retention_of_its_own_and_groups_without_members_ever() {
    let mut bench = Bench::new(&[("t", 2)]);
    let mut short = simple(t(), at(0, 5));
    short.retention_ms = 1_000;
    bench.send_commit(&short);
    bench.send_commit(&simple(t(), at(1, 6)));
    bench.pass(1_000);
    expire(&mut bench);
    assert_eq!((bench.committed("t", 0), bench.committed("t", 1)), (-1, 6));
    bench.pass(7 * DAY_MS - 1_000);
    expire(&mut bench);
    assert!(bench.coordinator.groups().is_empty());
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

#[test]
fn tools_see_groups_of_every_kind() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench
        .consumer(&ConsumerHeartbeat {
            group_id: "modern".into(),
            ..modern("m", &["t"])
        })
        .unwrap();
    bench.send_commit(&OffsetCommit {
        group_id: "simple".into(),
        ..simple(t(), at(0, 1))
    });
    let leads = JoinGroup {
        group_id: "workers".into(),
        protocol_type: "connect".into(),
        ..classic("", "x", &[])
    };
    bench.join(&leads);
    let rows = |states: &[&str], types: &[&str]| -> Vec<(String, String, &str, &str)> {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let rows = bench.coordinator.list(&owned(states), &owned(types));
        rows.into_iter()
            .map(|row| (row.group_id, row.protocol_type, row.state, row.group_type))
            .collect()
    };
    let row = |id: &str, protocol: &str, state: &'static str, kind: &'static str| {
        (id.to_owned(), protocol.to_owned(), state, kind)
    };
    let all = [
        row("g", "consumer", "Stable", "Classic"),
        row("modern", "consumer", "Stable", "Consumer"),
        row("simple", "", "Empty", "Classic"),
        row("workers", "connect", "CompletingRebalance", "Classic"),
    ];
    assert_eq!(rows(&[], &[]), all);
    assert_eq!(rows(&["sTABLE"], &[]), all[..2]);
    assert_eq!(rows(&[], &["consumer"]), all[1..2]);
    assert_eq!(rows(&["dead"], &[]), []);

    let shown = bench.coordinator.describe(&bench.topics, "g");
    assert_eq!(
        (shown.state, shown.protocol_type.as_str(), shown.protocol.as_str()),
        ("Stable", "consumer", "range")
    );
    let member = &shown.members[0];
    assert_eq!(
        (&member.member_id, member.client_host.as_str()),
        (&a.member_id, "/127.0.0.1")
    );
    assert_eq!(
        harness::read_assignment(&member.assignment),
        [("t".to_owned(), vec![0, 1])]
    );
    assert_eq!(
        protocol::Subscription::parse(&member.metadata).unwrap().topics,
        ["t"]
    );
    assert_eq!(
        bench.coordinator.describe(&bench.topics, "modern").members.len(),
        1,
        "older tools see it, too"
    );
    let nobody = bench.coordinator.describe(&bench.topics, "nobody");
    assert_eq!((nobody.state, nobody.exists), ("Dead", false));
    let workers = bench.coordinator.describe(&bench.topics, "workers");
    assert_eq!(
        (workers.state, workers.protocol.as_str()),
        ("CompletingRebalance", "")
    );

    let modern = bench
        .coordinator
        .describe_consumer(&bench.topics, "modern")
        .unwrap();
    assert_eq!(
        (modern.state, modern.assignor, modern.epoch),
        ("Stable", "uniform", 1)
    );
    assert_eq!(
        modern.members[0].assignment,
        [(bench.topics.id("t"), "t".to_owned(), vec![0, 1])]
    );
    assert_eq!(modern.members[0].target, modern.members[0].assignment);
    let refused = bench
        .coordinator
        .describe_consumer(&bench.topics, "g")
        .unwrap_err();
    assert_eq!(
        refused.code(),
        ErrorCode::GroupIdNotFound,
        "so that tools ask by DescribeGroups"
    );
}

#[test]
fn members_are_shown_with_their_silence() {
    let mut bench = Bench::new(&[("t", 2)]);
    let (a, _) = bench.enter("", "range", &["t"]);
    bench.enter("", "range", &["t"]);
    bench.pass(2_000);
    bench.heartbeat(&a.member_id, a.generation_id);
    bench.pass(500);
    let views = bench.coordinator.members(bench.now, "g");
    let seen: Vec<_> = views
        .iter()
        .map(|view| (view.partitions, view.state, view.silent_ms))
        .collect();
    assert_eq!(
        seen,
        [(Some(2), "waiting", Some(500)), (Some(0), "waiting", Some(2_500))]
    );
}

#[test]
fn unreadable_metadata_of_a_client_led_group_counts_as_subscribed() {
    let mut bench = Bench::new(&[("t", 1), ("u", 1)]);
    let with = |metadata: Bytes| JoinGroup {
        protocols: vec![("own".into(), metadata)],
        ..classic("", "", &[])
    };
    let a = bench.join(&with(subscription(&["t"], &[], Some(b"own data"))));
    assert_eq!(a.leader, a.member_id);
    let wanted = [("t".to_owned(), vec![0]), ("u".to_owned(), vec![0])];
    let answer = bench
        .coordinator
        .delete_offsets(bench.now, &bench.topics, "g", &wanted)
        .0
        .unwrap();
    assert_eq!(
        (answer[0].1[0].1, answer[1].1[0].1),
        (ErrorCode::GroupSubscribedToTopic, ErrorCode::None)
    );
    bench.leave(&a.member_id, None);
    bench.join(&with(Bytes::from_static(b"?")));
    let answer = bench
        .coordinator
        .delete_offsets(bench.now, &bench.topics, "g", &wanted)
        .0
        .unwrap();
    assert_eq!(answer[1].1[0].1, ErrorCode::GroupSubscribedToTopic);
}
