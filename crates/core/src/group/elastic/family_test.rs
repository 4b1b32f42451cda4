//! Each client library is recognised, and nothing else is.

use anabranch_wire::ErrorCode;

use super::*;
use crate::group::state::{ClassicMember, Member};

/// A member as its client introduces itself: "name version" or nothing, its client id, the version of its join, its
/// assignors ("" for the consumer protocol).
fn member(software: &str, client_id: &str, join_version: i16, protocols: &str) -> Member {
    let software = software
        .split_once(' ')
        .map(|(name, version)| ClientSoftware::new(name, version).unwrap());
    Member {
        client_id: client_id.to_owned(),
        client: ClientFacts {
            software,
            join_version,
            asks_position: true,
        },
        classic: (!protocols.is_empty()).then(|| ClassicMember {
            session_timeout_ms: 45_000,
            protocols: protocols.split(',').map(str::to_owned).collect(),
        }),
        ..Member::default()
    }
}

/// The rows of the evidence: how each library, run or read, shows itself, and what it is.
#[test]
fn each_library_is_recognised_with_its_version() {
    use Family as F;
    let none = None;
    for (software, client_id, join, protocols, family, version) in [
        (
            "apache-kafka-java 2.8.2",
            "c",
            7,
            "range,cooperative-sticky",
            F::JavaClassic,
            Some(Version(2, 8, 2)),
        ),
        (
            "apache-kafka-java 3.9.1-ccs",
            "c",
            9,
            "sticky",
            F::JavaClassic,
            Some(Version(3, 9, 1)),
        ),
        (
            "apache-kafka-java 4.3.1",
            "c",
            1,
            "",
            F::JavaConsumer,
            Some(Version(4, 3, 1)),
        ),
        (
            "librdkafka 2.16.0",
            "rdkafka",
            5,
            "range,roundrobin",
            F::Librdkafka,
            Some(Version(2, 16, 0)),
        ),
        (
            "confluent-kafka-python 2.9.0-rdkafka-2.16.0",
            "app",
            5,
            "range",
            F::Librdkafka,
            Some(Version(2, 16, 0)),
        ),
        (
            "rust-rdkafka 0.38.0-rdkafka-2.3.0",
            "app",
            1,
            "",
            F::Librdkafka,
            Some(Version(2, 3, 0)),
        ),
        ("kgo unknown", "kgo", 9, "cooperative-sticky", F::FranzGo, none),
        (
            "kgo v1.21.6",
            "kgo",
            9,
            "range",
            F::FranzGo,
            Some(Version(1, 21, 6)),
        ),
        (
            "sarama v1.60.1",
            "sarama",
            5,
            "range",
            F::Sarama,
            Some(Version(1, 60, 1)),
        ),
        (
            "platformatic-kafka 1.35.0",
            "app",
            9,
            "roundrobin",
            F::Platformatic,
            Some(Version(1, 35, 0)),
        ),
        (
            "kafka-python 3.0.7",
            "app",
            7,
            "range,roundrobin",
            F::KafkaPython3,
            Some(Version(3, 0, 7)),
        ),
        (
            "kafka-python 2.2.15",
            "app",
            5,
            "range,roundrobin",
            F::KafkaPython2,
            Some(Version(2, 2, 15)),
        ),
        (
            "",
            "kafka-python-2.0.2",
            2,
            "range,roundrobin",
            F::KafkaPython2,
            Some(Version(2, 0, 2)),
        ),
        (
            "",
            "aiokafka-0.14.0",
            5,
            "roundrobin",
            F::Aiokafka,
            Some(Version(0, 14, 0)),
        ),
        ("", "kafkajs", 5, "RoundRobinAssigner", F::KafkaJs, none),
        (
            "",
            "app@host (github.com/segmentio/kafka-go)",
            2,
            "range,roundrobin",
            F::KafkaGo,
            none,
        ),
    ] {
        let recognised = member(software, client_id, join, protocols).recognised();
        assert_eq!(
            recognised,
            Recognised { family, version },
            "{software:?} {client_id:?}"
        );
    }
}

#[test]
fn what_could_be_anything_is_unknown() {
    for (software, client_id, join, protocols) in [
        // A program that names itself, so that nothing tells the library.
        ("", "app", 5, "roundrobin"),
        ("", "app", 2, "range,roundrobin"),
        // Old clients without introduction.
        ("", "rdkafka", 5, "range,roundrobin"),
        ("", "consumer-g-1", 5, "range"),
        ("", "", 0, "range"),
        // A client that imitates a default client id, but is too modern for it.
        ("", "aiokafka-0.14.0", 9, "roundrobin"),
        ("", "kafka-python-2.0.2", 5, "range"),
        ("", "x (github.com/segmentio/kafka-go)", 5, "range"),
        ("", "aiokafka-", 5, "roundrobin"),
        // The consumer protocol is spoken by libraries that introduce themselves.
        ("", "kafkajs", 1, ""),
        // A name that is told counts, whatever the rest looks like.
        ("my-client 1.0", "aiokafka-0.14.0", 5, "RoundRobinAssigner"),
        ("Apache-Kafka-Java 4.0.0", "c", 9, "range"),
    ] {
        let family = member(software, client_id, join, protocols).recognised().family;
        assert_eq!(family, Family::Unknown, "{software:?} {client_id:?} {join}");
    }
}

#[test]
fn versions_before_the_row_are_not_admitted() {
    for (family, classic, consumer) in [
        (Family::JavaClassic, Some("2.8.2"), None),
        (Family::JavaConsumer, None, Some("4.0.1")),
        (Family::Librdkafka, Some("1.6.0"), Some("2.12.0")),
        (Family::Sarama, Some("1.46.0"), None),
        (Family::Platformatic, Some("1.35.0"), Some("1.35.0")),
        (Family::KafkaPython2, Some("2.0.2"), None),
        (Family::KafkaPython3, Some("3.0.0"), None),
        (Family::Aiokafka, Some("0.8.0"), None),
        (Family::Unknown, None, None),
    ] {
        for (since, first) in [
            (family.habits().classic, classic),
            (family.habits().consumer, consumer),
        ] {
            let first = first.and_then(Version::parse);
            assert!(!since.admits(None), "{family:?}");
            assert!(!since.admits(Some(Version(0, 0, 1))), "{family:?}");
            match first {
                Some(Version(a, b, c)) => {
                    assert!(since.admits(Some(Version(a, b, c))) && since.admits(Some(Version(a + 1, 0, 0))));
                    let before = if c > 0 {
                        Version(a, b, c - 1)
                    } else if b > 0 {
                        Version(a, b - 1, 9)
                    } else {
                        Version(a - 1, 9, 9)
                    };
                    assert!(!since.admits(Some(before)), "{family:?} {before}");
                }
                None => assert!(!since.admits(Some(Version(99, 0, 0))), "{family:?}"),
            }
        }
    }
    for family in [Family::FranzGo, Family::KafkaGo, Family::KafkaJs] {
        assert!(family.habits().classic.admits(None), "{family:?}");
    }
}

/// UNSTABLE_OFFSET_COMMIT kills the consumers of aiokafka and kafka-python 2.0; COORDINATOR_LOAD_IN_PROGRESS reaches
/// the application with Java and stops the partition with librdkafka.
#[test]
fn the_error_that_makes_a_client_ask_again_is_its_own() {
    let patient = [
        Family::Aiokafka,
        Family::Sarama,
        Family::KafkaGo,
        Family::KafkaPython2,
    ];
    for family in Family::ALL {
        let expected = if patient.contains(&family) {
            ErrorCode::CoordinatorLoadInProgress
        } else {
            ErrorCode::UnstableOffsetCommit
        };
        assert_eq!(family.habits().not_yet, expected, "{family:?}");
        assert_eq!(family.habits().family, family);
    }
}

#[test]
fn only_some_rejoins_prove_that_a_partition_was_given_up() {
    for family in Family::ALL {
        let expected = !matches!(family, Family::KafkaPython3 | Family::Platformatic);
        assert_eq!(family.habits().rejoin.proves_release(), expected, "{family:?}");
    }
}

#[test]
fn who_names_itself_depends_on_the_version() {
    let names =
        |software: &str, protocols: &str| member(software, "c", 9, protocols).recognised().names_itself();
    assert!(
        names("kgo v1.19.0", "range") && !names("kgo v1.18.1", "range") && !names("kgo unknown", "range")
    );
    assert!(names("apache-kafka-java 4.1.0", "") && !names("apache-kafka-java 4.1.0", "range"));
    assert!(!names("librdkafka 2.16.0", "") && !names("librdkafka 2.16.0", "range"));
}
