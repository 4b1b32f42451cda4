//! Requests that carry no offset, and members that could be taken for one another.

use anabranch_wire::ErrorCode;

use super::identity::{Indistinct, Space};
use super::room::{Client, Room, range, slice};
use super::*;
use crate::group::api::{Connection, JoinGroup};
use crate::group::coordinator::Coordinator;
use crate::group::harness::classic;
use crate::limits::{CONNECTION_MEMBERS_MAX, CONNECTIONS_KNOWN_MAX};

/// sarama with two members on one Client.
#[test]
fn members_that_share_a_connection_are_told_apart_by_what_they_hold() {
    let mut room = Room::new();
    let client = Client::new("sarama v1.60.1", "sarama", 10);
    let a = room.enter(&client.on(0), range());
    let b = room.enter(&client.on(0), range());
    for _ in 0..3 {
        for id in [&a, &b] {
            if room.heartbeat(&client.on(0), id) == ErrorCode::RebalanceInProgress {
                let again = JoinGroup {
                    member_id: id.clone(),
                    ..range()
                };
                room.enter(&client.on(0), again);
            }
        }
    }
    let holder = |room: &Room, partition: i32| {
        let holds = |id: &&String| {
            room.state(id)
                .current
                .assigned
                .get(&room.t)
                .is_some_and(|h| h.contains_key(&partition))
        };
        [&a, &b].into_iter().find(holds).cloned().unwrap()
    };
    assert_ne!(holder(&room, 0), holder(&room, 1));
    for partition in [0, 1] {
        let asker = room.bench.coordinator.asker("g", &client.on(0), None);
        assert_eq!(
            asker.of(room.t, partition),
            Identity::Member(&holder(&room, partition))
        );
        assert_eq!(asker.of(room.t, 7), Identity::Outsider);
    }
    let indistinct = room.bench.coordinator.indistinct("g");
    assert_eq!(
        indistinct,
        [a, b].map(|id| (id, Indistinct::SameConnection)).into()
    );
    room.fetch(&client.on(0), None, &[0, 1]);
    assert_eq!(room.verdict().unwrap_err().reason, Reason::Indistinct);
}

#[test]
fn members_of_kafkajs_on_one_machine_are_not_given_shares_of_one_partition() {
    let mut room = Room::new();
    let join = || JoinGroup {
        version: 5,
        ..classic("", "RoundRobinAssigner", &["t"])
    };
    let js = |client_id, host, base| Client {
        host,
        ..Client::new("", client_id, base)
    };
    for (client_id, host, base) in [
        ("js", "/10.0.0.1", 10),
        ("js", "/10.0.0.2", 20),
        ("other", "/10.0.0.1", 30),
    ] {
        let caller = js(client_id, host, base).on(0);
        room.enter(&caller, join());
        room.fetch(&caller, None, &[0, 1]);
    }
    assert!(room.bench.coordinator.indistinct("g").is_empty());
    assert_eq!(room.verdict(), Ok(()));
    let twin = room.enter(&js("js", "/10.0.0.1", 40).on(0), join());
    let indistinct = room.bench.coordinator.indistinct("g");
    assert_eq!((indistinct.len(), indistinct[&twin]), (2, Indistinct::SameMemory));
    let refused = room.verdict().unwrap_err();
    assert!(
        refused.to_string().ends_with("give each a client id of its own"),
        "{refused}"
    );
}

/// Client by client: on which connection ListOffsets comes, and what it must be answered in.
#[test]
fn offsets_are_listed_in_the_space_of_the_slice_that_is_read() {
    let mut room = Room::new();
    let java = Client::new("apache-kafka-java 4.3.1", "c", 10);
    let id = room.enter(&java.on(0), range());
    let member = room.member(&id).clone();
    let (t, holders) = (room.t, [("g", &member)]);
    let coordinator = &mut room.bench.coordinator;
    // Before its first fetch of a slice: the only client of its name and address.
    assert_eq!(
        coordinator.space(&java.on(1), t, 0, &holders),
        Space::Members(vec![("g", id.as_str())])
    );
    coordinator.slice_fetched(Connection(11), (t, 0), slice(5), 0);
    assert_eq!(
        coordinator.space(&java.on(1), t, 0, &holders),
        Space::Slice(slice(5))
    );
    assert_eq!(coordinator.space(&java.on(1), t, 1, &[]), Space::Plain);
    // Another program on the machine, and one with the same client id that is another software.
    let other = Client::new("apache-kafka-java 4.3.1", "adminclient-1", 50);
    assert_eq!(coordinator.space(&other.on(0), t, 0, &holders), Space::Plain);
    let borrowed = Client::new("librdkafka 2.16.0", "c", 50);
    assert_eq!(coordinator.space(&borrowed.on(0), t, 0, &holders), Space::Plain);
    coordinator.connection_closed(Connection(11));
    assert_eq!(coordinator.space(&borrowed.on(0), t, 0, &holders), Space::Plain);
    // The connection of the group requests: kafkajs.
    assert_eq!(
        coordinator.space(&java.on(0), t, 0, &holders),
        Space::Members(vec![("g", id.as_str())])
    );
}

/// sarama and kafka-go reject a start outside of what ListOffsets says, so with several of them the answer is widened;
/// for others a plain answer is the honest one.
#[test]
fn several_look_alikes_get_the_widened_range_only_if_they_check_their_start() {
    for (software, client_id, widens) in [
        ("sarama v1.60.1", "sarama", true),
        ("", "app@host (github.com/segmentio/kafka-go)", true),
        ("librdkafka 2.16.0", "rdkafka", false),
    ] {
        let mut room = Room::new();
        let client = Client::new(software, client_id, 10);
        let a = room.enter(&client.on(0), range());
        let b = room.enter(&client.on(1), range());
        let (a, b) = (room.member(&a).clone(), room.member(&b).clone());
        let holders = [("g", &a), ("g", &b)];
        let expected = if widens {
            Space::Members(vec![("g", a.member_id.as_str()), ("g", b.member_id.as_str())])
        } else {
            Space::Plain
        };
        assert_eq!(
            room.bench.coordinator.space(&client.on(5), room.t, 0, &holders),
            expected,
            "{client_id}"
        );
        // On the connection of its group requests there is no doubt.
        let sure = Space::Members(vec![("g", b.member_id.as_str())]);
        assert_eq!(
            room.bench.coordinator.space(&client.on(1), room.t, 0, &holders),
            sure
        );
    }
}

/// A consumer was killed and started again: until its session is over the old one is a member, too, with a share and the same
/// name. The new one must not be told plain offsets: it would read everybody's records, and leave its own share.
#[test]
fn one_that_is_alive_is_not_taken_for_what_is_left_of_itself() {
    let mut room = Room::new();
    let client = Client::new("apache-kafka-java 3.9.1", "c", 10);
    let old = room.enter(&client.on(0), range());
    let new = room.enter(&client.on(1), range());
    let (old, new) = (room.member(&old).clone(), room.member(&new).clone());
    let (t, holders) = (room.t, [("g", &old), ("g", &new)]);
    let coordinator = &mut room.bench.coordinator;
    let asked = |coordinator: &Coordinator| match coordinator.space(&client.on(5), t, 0, &holders) {
        Space::Members(members) => Ok(members[0].1 == new.member_id && members.len() == 1),
        other => Err(format!("{other:?}")),
    };
    assert_eq!(asked(coordinator), Err("Plain".to_owned()), "two that are alive");
    coordinator.connection_closed(client.on(0).connection);
    assert_eq!(asked(coordinator), Ok(true));
    // After a restart of the broker, before the first heartbeat.
    coordinator.connection_closed(client.on(1).connection);
    assert_eq!(asked(coordinator), Err("NotYet".to_owned()));
    coordinator.spoke_on(&client.on(2), "g", &new.member_id, false);
    assert_eq!(asked(coordinator), Ok(true));
}

#[test]
fn what_is_known_of_connections_is_bounded() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "rdkafka", 0);
    for number in 0..(CONNECTIONS_KNOWN_MAX as u64 + 100) {
        room.bench.coordinator.introduced(&client.on(number));
        room.bench
            .coordinator
            .slice_fetched(Connection(number), (room.t, 0), slice(1), 0);
    }
    let known = &room.bench.coordinator.identities;
    assert_eq!(known.connections_known(), CONNECTIONS_KNOWN_MAX);
    for number in 0..(CONNECTIONS_KNOWN_MAX as u64 + 100) {
        room.bench.coordinator.connection_closed(Connection(number));
    }
    assert_eq!(room.bench.coordinator.identities.connections_known(), 0);
    let members: Vec<String> = (0..CONNECTION_MEMBERS_MAX + 2)
        .map(|_| room.enter(&client.on(1), range()))
        .collect();
    for id in &members {
        room.heartbeat(&client.on(1), id);
        room.heartbeat(&client.on(2), id);
    }
    let known = &room.bench.coordinator.identities;
    assert_eq!(known.members_on(Connection(1)), CONNECTION_MEMBERS_MAX);
    assert!(known.is_consistent());
    // One that joins anew on a connection takes the place of the others there; then both end.
    room.enter(&client.on(1), range());
    let known = &room.bench.coordinator.identities;
    assert_eq!(known.members_on(Connection(1)), 1);
    assert!(known.is_consistent());
    for number in [1, 2] {
        room.bench.coordinator.connection_closed(Connection(number));
        assert!(room.bench.coordinator.identities.is_consistent());
    }
}
