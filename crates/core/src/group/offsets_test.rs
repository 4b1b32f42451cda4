//! Cursors: what is given back, what can be deleted, what expires.

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::harness::{Bench, at, classic, fetch, modern, simple, subscription, t};
use super::*;
use crate::ids::TopicId;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[test]
fn what_is_committed_comes_back_as_it_was() {
    let mut bench = Bench::new(&[("t", 2)]);
    let mut request = simple(t(), at(0, 7));
    request.topics[0].1[0].metadata = Some("note".into());
    bench.send_commit(&request);
    let answer = bench
        .fetch(&fetch(None, -1, Some(vec![(t(), vec![0, 1])])))
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
fn fetching_all_and_by_id() {
    let mut bench = Bench::new(&[("t", 3), ("u", 1)]);
    for (topic, partition) in [("t", 2), ("u", 0), ("t", 0)] {
        bench.commit("", -1, topic, partition, 5);
    }
    let answer = bench.fetch(&fetch(None, -1, None)).unwrap();
    let named: Vec<_> = answer
        .iter()
        .map(|(t, p)| (t.clone(), p.iter().map(|p| p.partition).collect()))
        .collect();
    assert_eq!(named, [(t(), vec![0, 2]), (TopicRef::Name("u".into()), vec![0])]);
    let by_id = vec![
        (TopicRef::Id(bench.topics.id("u")), vec![0]),
        (TopicRef::Id(TopicId([7; 16])), vec![0]),
    ];
    let answer = bench.fetch(&fetch(None, -1, Some(by_id))).unwrap();
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
    let ask = |bench: &mut Bench, member: Option<&str>, epoch| bench.fetch(&fetch(member, epoch, None)).err();
    assert_eq!(ask(&mut bench, Some("a"), a.member_epoch), None);
    assert_eq!(
        ask(&mut bench, Some("a"), a.member_epoch + 1),
        Some(ErrorCode::StaleMemberEpoch)
    );
    assert_eq!(ask(&mut bench, Some("x"), 1), Some(ErrorCode::StaleMemberEpoch));
    assert_eq!(ask(&mut bench, None, -1), None);
    assert_eq!(
        ask(&mut bench, Some(&c.member_id), -1),
        None,
        "classic clients may name themselves without an epoch"
    );
    assert_eq!(ask(&mut bench, Some(&c.member_id), c.generation_id + 5), None);
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
