//! Who speaks on which connection, by the habits of the client libraries.

use anabranch_wire::ErrorCode;

use super::moves_test::World;
use super::room::{Client, Room, range};
use super::*;
use crate::group::api::{Caller, Connection, JoinGroup, OffsetFetch, TopicRef};
use crate::group::harness::{alive, at, classic};
use crate::group::{GroupChange, OffsetCommit};

/// One connection for the group, another for records: Java, librdkafka, kafka-python, aiokafka, kafkajs.
#[test]
fn a_classic_member_is_known_by_the_connection_of_its_group_requests() {
    for (software, client_id) in [
        ("apache-kafka-java 3.9.1", "consumer-g-1"),
        ("librdkafka 2.16.0", "rdkafka"),
        ("kafka-python 3.0.7", "app"),
        ("", "aiokafka-0.14.0"),
    ] {
        let mut room = Room::new();
        let client = Client::new(software, client_id, 10);
        let id = room.enter(&client.on(0), range());
        assert_eq!(room.who(&client.on(0), None), id);
        // A tool of somebody else's, and the same program's connection to another group.
        let tool = Client::new("apache-kafka-java 4.3.1", "adminclient-1", 50);
        assert_eq!(room.who(&tool.on(0), None), "outsider");
        assert!(matches!(
            room.bench
                .coordinator
                .asker("other", &client.on(0), None)
                .of(room.t, 0),
            Identity::Outsider
        ));
    }
}

/// The connection breaks between SyncGroup and OffsetFetch. A plain answer would be read as the member's own position.
#[test]
fn after_a_reconnect_a_member_asks_again_until_its_heartbeat_has_come() {
    for (software, client_id, error) in [
        ("apache-kafka-java 2.8.2", "c", "UnstableOffsetCommit"),
        ("", "aiokafka-0.14.0", "CoordinatorLoadInProgress"),
        ("sarama v1.60.1", "sarama", "CoordinatorLoadInProgress"),
    ] {
        let mut room = Room::new();
        let client = Client::new(software, client_id, 10);
        let id = room.enter(&client.on(0), range());
        room.bench.coordinator.connection_closed(Connection(10));
        assert_eq!(room.who(&client.on(1), None), error);
        assert_eq!(room.heartbeat(&client.on(1), &id), ErrorCode::None);
        assert_eq!(room.who(&client.on(1), None), id);
    }
}

#[test]
fn once_the_member_has_asked_its_look_alike_is_an_outsider() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "rdkafka", 10);
    let id = room.enter(&client.on(0), range());
    // kcat on the same machine, with librdkafka's default client id.
    assert_eq!(room.who(&client.on(9), None), "UnstableOffsetCommit");
    assert!(
        room.bench
            .coordinator
            .identities
            .may_still_ask("g", &id, (room.t, 0))
    );
    room.fetch(&client.on(0), None, &[0, 1]);
    assert!(
        !room
            .bench
            .coordinator
            .identities
            .may_still_ask("g", &id, (room.t, 0))
    );
    assert_eq!(room.who(&client.on(9), None), "outsider");
    let elsewhere = Client {
        host: "/10.0.0.2",
        ..client
    };
    assert_eq!(room.who(&elsewhere.on(9), None), "outsider");
}

/// The answer of an OffsetFetch is lost with its connection, and the member asks again on a new one, before a heartbeat: a
/// plain answer would let it read all of the partition.
#[test]
fn who_was_told_its_share_may_not_have_heard_it_until_it_fetches() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let key = world.key();
    for member in ["a", "b"] {
        let slice = world.position(member).slice().unwrap();
        let coordinator = &mut world.bench.coordinator;
        assert!(coordinator.identities.may_still_ask("g", member, key));
        coordinator.slice_fetched(Connection(7), key, slice, 0);
        assert!(!coordinator.identities.may_still_ask("g", member, key));
    }
    // After a restart that is forgotten, and a heartbeat does not say it.
    world.bench.restart();
    world.beat();
    let slice = world.position("a").slice().unwrap();
    let coordinator = &mut world.bench.coordinator;
    assert!(coordinator.identities.may_still_ask("g", "a", key));
    coordinator.slice_fetched(Connection(8), key, slice, 0);
    assert!(!coordinator.identities.may_still_ask("g", "a", key));
}

/// franz-go: JoinGroup and SyncGroup on one connection, OffsetFetch and Heartbeat on another. From 1.19 on it says who it
/// is; before, the heartbeat does.
#[test]
fn franz_go_is_known_by_its_name_or_else_by_its_heartbeat() {
    let mut room = Room::new();
    let client = Client::new("kgo v1.21.0", "kgo", 10);
    let id = room.enter(&client.on(0), range());
    assert_eq!(room.who(&client.on(1), Some(&id)), id);
    // It always names itself, so this is another program: kadm.
    assert_eq!(room.who(&client.on(2), None), "outsider");

    let mut room = Room::new();
    let old = Client::new("kgo unknown", "kgo", 10);
    let id = room.enter(&old.on(0), range());
    assert_eq!(room.who(&old.on(1), None), "UnstableOffsetCommit");
    room.heartbeat(&old.on(1), &id);
    assert_eq!(room.who(&old.on(1), None), id);
}

/// franz-go sends ApiVersions on its first connection only, librdkafka on each.
#[test]
fn a_connection_without_introduction_belongs_to_the_client_that_introduced_itself() {
    let mut room = Room::new();
    let client = Client::new("kgo v1.21.0", "kgo", 10);
    room.bench.coordinator.introduced(&client.on(0));
    let silent = Client {
        software: None,
        ..client.clone()
    };
    let id = room.enter(&silent.on(1), range());
    assert_eq!(room.member(&id).recognised().family, Family::FranzGo);
    // What came with an old ApiVersions did introduce itself: as nobody.
    let unnamed = Client::new("", "kgo", 20);
    room.bench.coordinator.introduced(&unnamed.on(0));
    let id = room.enter(&unnamed.on(0), range());
    assert_eq!(room.member(&id).recognised().family, Family::Unknown);
}

/// KIP-848: Java names itself, librdkafka does not and uses the connection of its heartbeats.
#[test]
fn members_of_the_consumer_protocol_are_known_by_name_or_connection() {
    let mut room = Room::new();
    let java = Client::new("apache-kafka-java 4.3.1", "c", 10);
    room.join_consumer(&java.on(0), "java");
    assert_eq!(room.who(&java.on(0), Some("java")), "java");
    // Without its name it is no member of its own, but a tool.
    assert_eq!(room.who(&java.on(1), None), "outsider");

    let mut room = Room::new();
    let rdkafka = Client::new("librdkafka 2.16.0", "rdkafka", 20);
    room.join_consumer(&rdkafka.on(0), "rdkafka");
    assert_eq!(room.who(&rdkafka.on(0), None), "rdkafka");
    assert_eq!(room.who(&rdkafka.on(1), None), "UnstableOffsetCommit");
}

#[test]
fn a_member_that_is_gone_is_told_to_come_again_and_never_gets_a_plain_answer() {
    let mut room = Room::new();
    let client = Client::new("kgo v1.21.0", "kgo", 10);
    let id = room.enter(&client.on(0), range());
    room.bench.leave(&id, None);
    assert_eq!(room.who(&client.on(0), Some(&id)), "UnstableOffsetCommit");
    // Its connection is bound to nobody any more.
    assert_eq!(room.who(&client.on(0), None), "outsider");
}

/// kafka-go has a new connection for each generation.
#[test]
fn a_connection_for_each_generation_is_bound_by_its_join() {
    let mut room = Room::new();
    let client = Client::new("", "app@host (github.com/segmentio/kafka-go)", 10);
    let id = room.enter(&client.on(0), range());
    room.fetch(&client.on(0), None, &[0, 1]);
    let again = JoinGroup {
        member_id: id.clone(),
        ..range()
    };
    assert_eq!(room.enter(&client.on(1), again), id);
    room.bench.coordinator.connection_closed(Connection(10));
    assert_eq!(room.who(&client.on(1), None), id);
    // Eager: it has forgotten its positions, and on a connection that is not its own yet it would ask again.
    assert_eq!(room.who(&client.on(2), None), "CoordinatorLoadInProgress");
}

#[test]
fn what_an_eager_member_asks_again_depends_on_its_library() {
    for (software, asks) in [
        ("apache-kafka-java 3.9.1", true),
        ("kafka-python 2.2.15", true),
        ("kafka-python 3.0.7", false),
    ] {
        let mut room = Room::new();
        let client = Client::new(software, "app", 10);
        let id = room.enter(&client.on(0), range());
        room.fetch(&client.on(0), None, &[0, 1]);
        let again = JoinGroup {
            member_id: id.clone(),
            ..range()
        };
        room.enter(&client.on(0), again);
        assert_eq!(
            room.bench
                .coordinator
                .identities
                .may_still_ask("g", &id, (room.t, 0)),
            asks,
            "{software}"
        );
    }
}

#[test]
fn a_member_of_the_consumer_protocol_asks_for_what_is_new_to_it() {
    let mut room = Room::new();
    let (a, b) = (
        Client::new("librdkafka 2.16.0", "a", 10),
        Client::new("librdkafka 2.16.0", "b", 20),
    );
    room.join_consumer(&a.on(0), "a");
    room.fetch(&a.on(0), None, &[0, 1]);
    let may_ask = |room: &Room, member: &str| {
        [0, 1].map(|partition| {
            room.bench
                .coordinator
                .identities
                .may_still_ask("g", member, (room.t, partition))
        })
    };
    assert_eq!(may_ask(&room, "a"), [false, false]);
    // Partition 1 goes to b, and comes back when b leaves.
    room.join_consumer(&b.on(0), "b");
    let epoch = |room: &Room, member: &str| room.state(member).current.epoch;
    let (t, at) = (room.t, epoch(&room, "a"));
    room.bench
        .consumer(&alive("a", at, Some(vec![(t, vec![0, 1])])))
        .unwrap();
    room.bench
        .consumer(&alive("a", at, Some(vec![(t, vec![0])])))
        .unwrap();
    let at = epoch(&room, "b");
    room.bench.consumer(&alive("b", at, Some(vec![]))).unwrap();
    assert_eq!(
        (may_ask(&room, "a"), may_ask(&room, "b")),
        ([false, false], [false, true])
    );
    room.bench.consumer(&alive("b", -1, None)).unwrap();
    let at = epoch(&room, "a");
    room.bench
        .consumer(&alive("a", at, Some(vec![(t, vec![0])])))
        .unwrap();
    assert_eq!(may_ask(&room, "a"), [false, true]);
}

/// A client that lost its member id (Java 2.8 after ILLEGAL_GENERATION) leaves a ghost behind.
#[test]
fn a_newcomer_takes_over_the_connection_from_its_own_ghost() {
    let mut room = Room::new();
    let client = Client::new("apache-kafka-java 2.8.2", "c", 10);
    let ghost = room.enter(&client.on(0), range());
    let id = room.enter(&client.on(0), range());
    assert_ne!(ghost, id);
    assert_eq!(room.who(&client.on(0), None), id);
}

/// After a restart nobody knows what members had asked for: until a member is heard of, whatever looks like it has to
/// come again.
#[test]
fn after_a_restart_of_the_broker_a_member_is_known_once_it_was_heard_of() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "rdkafka", 10);
    let id = room.enter(&client.on(0), range());
    room.fetch(&client.on(0), None, &[0, 1]);
    assert!(room.member(&id).client.asks_position);
    room.restart();
    assert_eq!(room.member(&id).recognised().family, Family::Librdkafka);
    assert!(room.member(&id).client.asks_position);
    let silent = Client {
        software: None,
        base: 20,
        ..client
    };
    assert_eq!(room.who(&silent.on(0), None), "UnstableOffsetCommit");
    room.heartbeat(&silent.on(0), &id);
    assert_eq!(room.who(&silent.on(0), None), id);
    assert_eq!(room.who(&silent.on(5), None), "outsider");
    // A member that rejoins without a word about its software is still the same client.
    let again = JoinGroup {
        member_id: id.clone(),
        ..range()
    };
    room.enter(&silent.on(0), again);
    assert_eq!(room.member(&id).recognised().family, Family::Librdkafka);
}

#[test]
fn a_commit_tells_who_speaks() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "rdkafka", 10);
    let id = room.enter(&client.on(0), range());
    let request = OffsetCommit {
        version: 8,
        group_id: "g".to_owned(),
        generation_or_epoch: room.state(&id).current.epoch,
        member_id: id.clone(),
        retention_ms: -1,
        topics: vec![(TopicRef::Name("t".to_owned()), vec![at(0, 5)])],
        ..OffsetCommit::default()
    };
    let bench = &mut room.bench;
    let (_, effects) = bench
        .coordinator
        .commit(bench.now, &bench.topics, &client.on(3), &request);
    bench.take(effects);
    assert_eq!(room.who(&client.on(3), None), id);
}

#[test]
fn that_a_member_asks_where_to_begin_is_written_once_and_only_for_its_own_partitions() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "rdkafka", 10);
    let id = room.enter(&client.on(0), range());
    let ask = |room: &mut Room, caller: &Caller, partition: i32| -> Vec<GroupChange> {
        let request = OffsetFetch {
            group_id: "g".to_owned(),
            member_epoch: -1,
            topics: Some(vec![(TopicRef::Name("t".to_owned()), vec![partition])]),
            ..OffsetFetch::default()
        };
        let bench = &mut room.bench;
        let (_, effects) = bench
            .coordinator
            .fetch(bench.now, &bench.topics, caller, &request);
        let changes = effects.changes.clone();
        bench.take(effects);
        changes
    };
    assert!(ask(&mut room, &client.on(5), 0).is_empty(), "an outsider");
    assert!(ask(&mut room, &client.on(0), 9).is_empty(), "not its partition");
    assert!(!room.member(&id).client.asks_position);
    let epoch = room.state(&id).current.epoch;
    assert!(matches!(
        ask(&mut room, &client.on(0), 0).as_slice(),
        [GroupChange::Member { .. }]
    ));
    assert!(room.member(&id).client.asks_position);
    assert_eq!(room.state(&id).current.epoch, epoch);
    assert!(ask(&mut room, &client.on(0), 0).is_empty(), "known already");
}

#[test]
fn who_has_joined_is_said_once_and_names_from_outside_cannot_break_the_line() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "evil\nmember g joined from /1.2.3.4", 10);
    let id = room.enter(&client.on(0), range());
    let again = JoinGroup {
        member_id: id,
        ..range()
    };
    room.enter(&client.on(0), again);
    let said: Vec<&str> = room
        .bench
        .notices
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    let [said] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert!(!said.contains('\n'), "{said}");
    assert!(
        said.ends_with("librdkafka 2.16.0 in the classic protocol (client software librdkafka 2.16.0)"),
        "{said}"
    );
    let long = "x".repeat(10_000);
    let request = JoinGroup {
        version: 2,
        ..classic("", "range", &["t"])
    };
    let caller = Caller {
        client_id: long,
        connection: Connection(99),
        ..Caller::default()
    };
    room.enter(&caller, request);
    assert!(room.bench.notices.last().unwrap().text.len() < 500);
}
