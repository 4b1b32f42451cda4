//! Each reason not to divide, and the sentence for it.

use super::room::{Client, Room, range};
use super::*;
use crate::elastic::Mode;
use crate::group::api::JoinGroup;
use crate::group::harness::{classic, subscription};

/// A group with one member that has asked and committed in partition 0.
fn good() -> (Room, String, Client) {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "rdkafka", 10);
    let id = room.enter(&client.on(0), range());
    room.fetch(&client.on(0), None, &[0, 1]);
    let epoch = room.state(&id).current.epoch;
    room.bench.commit(&id, epoch, "t", 0, 5);
    (room, id, client)
}

fn verdict(room: &Room) -> Result<(), Reason> {
    room.verdict().map_err(|ineligible| ineligible.reason)
}

#[test]
fn a_group_of_known_clients_with_a_position_may_be_divided() {
    let (room, ..) = good();
    assert_eq!(verdict(&room), Ok(()));
}

#[test]
fn the_topic_must_want_it_and_suit_it() {
    let (mut room, ..) = good();
    for (mode, text) in [
        (Mode::Off, "elastic.mode is off"),
        (Mode::Queues, "elastic.mode is queues"),
    ] {
        room.bench.topics.elastic.mode = mode;
        let refused = room.verdict().unwrap_err();
        assert_eq!(refused.reason, Reason::Mode);
        assert!(refused.to_string().starts_with(text), "{refused}");
    }
    room.bench.topics.elastic.mode = Mode::Slices;
    room.bench.topics.excluded = Some("it is compacted".to_owned());
    let refused = room.verdict().unwrap_err();
    assert_eq!(refused.reason, Reason::Topic);
    assert_eq!(refused.to_string(), "the topic is not divided: it is compacted");
}

#[test]
fn a_group_without_members_is_not_divided() {
    let (mut room, id, _) = good();
    room.bench.leave(&id, None);
    assert_eq!(verdict(&room), Err(Reason::NoMembers));
    let nowhere = room
        .bench
        .coordinator
        .eligibility(&room.bench.topics, "other", room.t);
    assert_eq!(nowhere.unwrap_err().reason, Reason::NoMembers);
}

/// One member that may not keeps the whole group plain, and is named.
#[test]
fn one_unknown_member_keeps_the_group_plain() {
    let (mut room, ..) = good();
    let stranger = Client::new("my-client 1.0", "app", 50);
    let id = room.enter(&stranger.on(0), range());
    room.fetch(&stranger.on(0), None, &[0, 1]);
    let refused = room.verdict().unwrap_err();
    assert_eq!(
        (refused.reason, refused.member.as_ref()),
        (Reason::UnknownClient, Some(&id))
    );
    assert!(
        refused
            .to_string()
            .ends_with("its client software, my-client 1.0, is not known to read shares")
    );
}

#[test]
fn clients_are_refused_for_what_they_are() {
    for (software, client_id, protocol, reason, text) in [
        (
            "",
            "app",
            "range",
            Reason::UnknownClient,
            "does not say what it is",
        ),
        (
            "apache-kafka-java 2.8.1",
            "c",
            "range",
            Reason::ClientVersion,
            "is version 2.8.1; it takes 2.8.2 or newer",
        ),
        (
            "sarama unknown",
            "c",
            "range",
            Reason::ClientVersion,
            "sarama does not tell its version; it takes 1.46.0",
        ),
        (
            "apache-kafka-java 4.3.1",
            "c",
            "mine",
            Reason::CustomAssignor,
            "\"mine\"",
        ),
        (
            "platformatic-kafka 2.12.1",
            "c",
            "range",
            Reason::ClientUnfit,
            "@platformatic/kafka hands out records of a partition after it has given it up",
        ),
        (
            "apache-kafka-java 4.3.1",
            "connector-consumer-sink-0",
            "range",
            Reason::Connect,
            "Kafka Connect",
        ),
    ] {
        let mut room = Room::new();
        let client = Client::new(software, client_id, 10);
        let id = room.enter(&client.on(0), classic("", protocol, &["t"]));
        room.fetch(&client.on(0), None, &[0, 1]);
        let refused = room.member(&id).eligibility().unwrap_err();
        assert_eq!(refused.reason, reason, "{software} {client_id}");
        assert!(refused.text.contains(text), "{}", refused.text);
    }
}

/// The preview of KIP-848 in Java 3.9, and sarama, which does not speak it: the row of the protocol counts.
#[test]
fn what_counts_is_the_row_of_the_protocol_that_is_spoken() {
    for (software, expected) in [
        ("apache-kafka-java 3.9.1", Err(Reason::ClientVersion)),
        ("apache-kafka-java 4.0.1", Ok(())),
        ("librdkafka 2.11.0", Err(Reason::ClientVersion)),
        ("librdkafka 2.12.0", Ok(())),
        ("sarama v1.99.0", Err(Reason::ClientVersion)),
    ] {
        let mut room = Room::new();
        let client = Client::new(software, "c", 10);
        room.join_consumer(&client.on(0), "m");
        room.fetch(&client.on(0), None, &[0]);
        let verdict = room.member("m").eligibility().map_err(|refused| refused.reason);
        assert_eq!(verdict, expected, "{software}");
    }
}

#[test]
fn members_that_lead_themselves_are_not_divided() {
    for (protocol_type, name, text) in [
        ("consumer", "stream", "Kafka Streams"),
        ("connect", "default", "Kafka Connect"),
        ("sr", "v0", "\"sr\""),
    ] {
        let mut room = Room::new();
        let client = Client::new("apache-kafka-java 4.3.1", "c", 10);
        let request = JoinGroup {
            protocol_type: protocol_type.to_owned(),
            protocols: vec![(name.to_owned(), subscription(&["t"], &[], Some(b"x")))],
            ..range()
        };
        let id = room.enter(&client.on(0), request);
        let refused = room.bench.coordinator.groups()["g"].eligibility().unwrap_err();
        assert_eq!(refused.reason, Reason::ClientLed, "{id}");
        assert!(refused.text.contains(text), "{}", refused.text);
    }
}

/// Programs that seek by themselves.
#[test]
fn a_member_that_never_asks_where_to_begin_is_not_divided() {
    let mut room = Room::new();
    let client = Client::new("librdkafka 2.16.0", "app", 10);
    let id = room.enter(&client.on(0), range());
    assert_eq!(
        room.state(&id).eligibility().unwrap_err().reason,
        Reason::NeverAsks
    );
    room.fetch(&client.on(0), None, &[0]);
    assert_eq!(room.state(&id).eligibility(), Ok(()));
}

/// It cannot have asked yet, and is the one that a share is cut for.
#[test]
fn a_member_without_partitions_may_get_a_share() {
    let (mut room, ..) = good();
    let other = Client::new("librdkafka 2.16.0", "other", 50);
    let ids: Vec<String> = (0..3)
        .map(|number| room.enter(&other.on(number), range()))
        .collect();
    let idle = ids
        .iter()
        .find(|id| room.state(id).current.assigned.is_empty())
        .unwrap();
    assert_eq!(room.state(idle).eligibility(), Ok(()));
    assert_eq!(verdict(&room), Ok(()));
}
