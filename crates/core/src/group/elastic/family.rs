//! Client libraries: how the broker tells them apart, and the habits that decide how members can share a partition.
//!
//! What stands here was found by reading the libraries and by running them. A library that is not here, or an older
//! version than its row asks for, is never divided.

use std::fmt;

use anabranch_wire::ErrorCode;

use super::software::{ClientFacts, ClientSoftware, Version};
use crate::group::state::Member;

/// A client library, and for Java the protocol as well, since its two consumers are two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Apache Kafka's Java consumer in the classic protocol.
    JavaClassic,
    /// Apache Kafka's Java consumer in the consumer protocol (KIP-848).
    JavaConsumer,
    /// librdkafka and what is built on it: confluent-kafka for Python, Go, .NET, JavaScript, rust-rdkafka.
    Librdkafka,
    /// franz-go (`kgo`).
    FranzGo,
    /// IBM/sarama.
    Sarama,
    /// segmentio/kafka-go.
    KafkaGo,
    /// kafkajs.
    KafkaJs,
    /// @platformatic/kafka.
    Platformatic,
    /// kafka-python before 3.0.
    KafkaPython2,
    /// kafka-python from 3.0 on.
    KafkaPython3,
    /// aiokafka.
    Aiokafka,
    /// Everything else.
    Unknown,
}

/// What a member that gives up all its partitions to rejoin (an eager one) does about their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// It forgets them and asks again.
    AsksAgain,
    /// It asks again, but a fetch that was on its way may put the old position back.
    AsksAgainLate,
    /// It keeps the position of each partition that it gets back, and does not ask.
    Keeps,
}

impl Rejoin {
    /// Whether a JoinGroup proves that a partition was given up. If not, there has to be a generation in which the
    /// member does not hold the partition, confirmed by a heartbeat of that generation.
    pub fn proves_release(self) -> bool {
        self == Self::AsksAgain
    }
}

/// Which versions of a library may be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// None: the library does not speak the protocol, or nobody has looked.
    Never,
    /// All, also one that does not tell its version.
    Always,
    /// This one and newer ones.
    From(Version),
}

impl Since {
    /// Whether `version` may be divided; `None` is one that is not told.
    pub fn admits(self, version: Option<Version>) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::From(since) => version.is_some_and(|version| version >= since),
        }
    }
}

/// The habits of a client library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Whose they are.
    pub family: Family,
    /// The library's name, for people.
    pub title: &'static str,
    /// Which versions may be divided as members of the classic protocol.
    pub classic: Since,
    /// Which versions may be divided as members of the consumer protocol (KIP-848).
    pub consumer: Since,
    /// Positions over an eager rejoin.
    pub rejoin: Rejoin,
    /// Which versions name the member in every OffsetFetch, so that one without a name is no member's. The others are
    /// known by their connection.
    pub names_itself: Since,
    /// Error that makes OffsetFetch come again for a partition, quietly. Always at the partition: aiokafka overlooks one
    /// at the group, franz-go starts its session anew.
    pub not_yet: ErrorCode,
    /// Whether offsets must stay below 2^53, so slice ids below 128: programs in JavaScript calculate with doubles.
    pub needs_small_ids: bool,
    /// Whether it checks the position that it starts from against ListOffsets, which therefore must answer in the number
    /// space of the slice on connections that never fetched: by client id and address, widened if several match.
    pub checks_start: bool,
    /// What rules the library out in every version, as the end of a sentence that begins with its name.
    pub unfit: Option<&'static str>,
    /// Whether consumers of one process may share what they remember of committed offsets. Two members with the same
    /// client id and address must not have shares of one partition then.
    pub shares_offsets: bool,
}

/// Where nothing special is known.
const PLAIN: Habits = Habits {
    family: Family::Unknown,
    title: "an unknown client",
    classic: Since::Never,
    consumer: Since::Never,
    rejoin: Rejoin::AsksAgain,
    names_itself: Since::Never,
    not_yet: ErrorCode::UnstableOffsetCommit,
    needs_small_ids: false,
    checks_start: false,
    unfit: None,
    shares_offsets: false,
};

/// Run from 2.8.2 to 4.3.1, eager and cooperative. Older ones were only read. Its commits never ran ahead of the work.
/// COORDINATOR_LOAD_IN_PROGRESS at a partition would reach the application.
const JAVA_CLASSIC: Habits = Habits {
    family: Family::JavaClassic,
    title: "the Java consumer (classic protocol)",
    classic: Since::From(Version(2, 8, 2)),
    ..PLAIN
};

/// Run from 4.0.1 to 4.3.1. The preview in 3.9 repeats and skips records around a change of its share. From 4.2 on its
/// automatic commits run ahead of the work, by up to one poll.
const JAVA_CONSUMER: Habits = Habits {
    family: Family::JavaConsumer,
    title: "the Java consumer (consumer protocol)",
    consumer: Since::From(Version(4, 0, 1)),
    names_itself: Since::Always,
    ..PLAIN
};

/// Introduces itself from 1.4 on; what is relied on in its handling of assignments is there from 1.6 on, and the consumer
/// protocol left its preview with 2.12. By default stores an offset when the record is handed over, so that its commits
/// run ahead of the work. Never names itself in OffsetFetch, not even in the consumer protocol.
const LIBRDKAFKA: Habits = Habits {
    family: Family::Librdkafka,
    title: "librdkafka",
    classic: Since::From(Version(1, 6, 0)),
    consumer: Since::From(Version(2, 12, 0)),
    ..PLAIN
};

/// Any version will do, which is well, as it often says "unknown" or "devel". OffsetFetch uses another connection than
/// JoinGroup; it names the member from 1.19 on.
const FRANZ_GO: Habits = Habits {
    family: Family::FranzGo,
    title: "franz-go",
    classic: Since::Always,
    consumer: Since::Always,
    names_itself: Since::From(Version(1, 19, 0)),
    ..PLAIN
};

/// Before 1.46 it stays where it is when an answer brings no record of its share. UNSTABLE_OFFSET_COMMIT ends its
/// session; COORDINATOR_LOAD_IN_PROGRESS is tried again. Asks ListOffsets for both ends at every start and rejects a
/// position outside, then reads everything anew.
const SARAMA: Habits = Habits {
    family: Family::Sarama,
    title: "sarama",
    classic: Since::From(Version(1, 46, 0)),
    not_yet: ErrorCode::CoordinatorLoadInProgress,
    checks_start: true,
    ..PLAIN
};

/// Does not introduce itself; known by the end of its default client id. Each generation and each partition has a
/// connection of its own, and asks ListOffsets before its first Fetch.
const KAFKA_GO: Habits = Habits {
    family: Family::KafkaGo,
    title: "segmentio/kafka-go",
    classic: Since::Always,
    not_yet: ErrorCode::CoordinatorLoadInProgress,
    checks_start: true,
    ..PLAIN
};

/// Does not introduce itself; known by the name of its assignor, which no other library has.
const KAFKA_JS: Habits = Habits {
    family: Family::KafkaJs,
    title: "kafkajs",
    classic: Since::Always,
    needs_small_ids: true,
    shares_offsets: true,
    ..PLAIN
};

/// Ruled out: its stream goes on handing out what it has buffered of a partition after giving it up, also when the partition comes
/// back at another position. On Kafka these are repeats at one member; with a share, two members would work on one key. Seen
/// with 2.12 in the consumer protocol; in the classic one only by luck not, as the pause between two assignments is longer.
///
/// What else is known of it holds from 1.35 on. Only its mode `committed` asks for committed offsets; in the others a member never asks where to
/// begin, and is not divided for that reason. A fetch in flight over a rejoin puts the old position back.
const PLATFORMATIC: Habits = Habits {
    family: Family::Platformatic,
    title: "@platformatic/kafka",
    classic: Since::From(Version(1, 35, 0)),
    consumer: Since::From(Version(1, 35, 0)),
    rejoin: Rejoin::AsksAgainLate,
    names_itself: Since::From(Version(1, 35, 0)),
    needs_small_ids: true,
    unfit: Some("hands out records of a partition after it has given it up"),
    ..PLAIN
};

/// 2.0 does not introduce itself and is known by its default client id, which tells the version; UNSTABLE_OFFSET_COMMIT
/// is fatal to it.
const KAFKA_PYTHON_2: Habits = Habits {
    family: Family::KafkaPython2,
    title: "kafka-python 2",
    classic: Since::From(Version(2, 0, 2)),
    not_yet: ErrorCode::CoordinatorLoadInProgress,
    ..PLAIN
};

/// From 3.0 on an eager member goes on at its old position in each partition that it gets back.
const KAFKA_PYTHON_3: Habits = Habits {
    family: Family::KafkaPython3,
    title: "kafka-python 3",
    classic: Since::From(Version(3, 0, 0)),
    rejoin: Rejoin::Keeps,
    ..PLAIN
};

/// Does not introduce itself; known by its default client id, which tells the version. UNSTABLE_OFFSET_COMMIT is fatal
/// to it. Reads batches of the second format, the only ones a share has, from 0.8 on.
const AIOKAFKA: Habits = Habits {
    family: Family::Aiokafka,
    title: "aiokafka",
    classic: Since::From(Version(0, 8, 0)),
    not_yet: ErrorCode::CoordinatorLoadInProgress,
    ..PLAIN
};

impl Family {
    /// All of them, for tests and tables.
    pub const ALL: [Self; 12] = [
        Self::JavaClassic,
        Self::JavaConsumer,
        Self::Librdkafka,
        Self::FranzGo,
        Self::Sarama,
        Self::KafkaGo,
        Self::KafkaJs,
        Self::Platformatic,
        Self::KafkaPython2,
        Self::KafkaPython3,
        Self::Aiokafka,
        Self::Unknown,
    ];

    /// The family's row.
    pub fn habits(self) -> &'static Habits {
        match self {
            Self::JavaClassic => &JAVA_CLASSIC,
            Self::JavaConsumer => &JAVA_CONSUMER,
            Self::Librdkafka => &LIBRDKAFKA,
            Self::FranzGo => &FRANZ_GO,
            Self::Sarama => &SARAMA,
            Self::KafkaGo => &KAFKA_GO,
            Self::KafkaJs => &KAFKA_JS,
            Self::Platformatic => &PLATFORMATIC,
            Self::KafkaPython2 => &KAFKA_PYTHON_2,
            Self::KafkaPython3 => &KAFKA_PYTHON_3,
            Self::Aiokafka => &AIOKAFKA,
            Self::Unknown => &PLAIN,
        }
    }
}

/// What a client was recognised as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The library.
    pub family: Family,
    /// Its version, if it tells one that can be read.
    pub version: Option<Version>,
}

impl Recognised {
    /// The family's row.
    pub fn habits(&self) -> &'static Habits {
        self.family.habits()
    }

    /// Whether every OffsetFetch of this client names the member.
    pub fn names_itself(&self) -> bool {
        self.habits().names_itself.admits(self.version)
    }
}

impl fmt::Display for Recognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.habits().title)?;
        match self.version {
            Some(version) => write!(f, " {version}"),
            None => Ok(()),
        }
    }
}

impl Member {
    /// What the member's client is.
    pub fn recognised(&self) -> Recognised {
        let protocols = self.classic.as_ref().map(|classic| classic.protocols.as_slice());
        recognise(&self.client, &self.client_id, protocols)
    }
}

/// Who has joined, and what its client was taken for: the first thing to look at when a group is not divided.
pub(in crate::group) fn introduction(member: &Member) -> String {
    let protocol = if member.is_classic() {
        "classic"
    } else {
        "consumer"
    };
    let software = member.client.software.as_ref();
    format!(
        "member {:?} joined from {} with client id {:?}: {} in the {protocol} protocol (client software {})",
        shortened(&member.member_id),
        member.client_host,
        shortened(&member.client_id),
        member.recognised(),
        software.map_or_else(|| "not told".to_owned(), ToString::to_string),
    )
}

/// The beginning of a text that somebody else has made, for a line in the log.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_SHOWN_BYTES_MAX)]
}

/// What a line in the log shows of a text that somebody else has made, bytes.
const TEXT_SHOWN_BYTES_MAX: usize = 120;

/// Recognises a member's client. `protocols` are the names of its assignors in the classic protocol, best first; `None`
/// stands for the consumer protocol.
///
/// A name that is told counts and nothing else. What does not introduce itself is known by the client id that it makes
/// for itself: if the program sets one of its own the client stays unknown, since a guess that fails would cost records.
pub fn recognise(client: &ClientFacts, client_id: &str, protocols: Option<&[String]>) -> Recognised {
    let (family, version) = match &client.software {
        Some(software) => by_name(software, protocols.is_none()),
        None => match protocols {
            Some(protocols) => by_manners(client, client_id, protocols),
            None => (Family::Unknown, None),
        },
    };
    Recognised { family, version }
}

fn by_name(software: &ClientSoftware, in_consumer_protocol: bool) -> (Family, Option<Version>) {
    let version = Version::parse(software.version());
    // Bindings of librdkafka give themselves a name and add the library's version to their own.
    if let Some((_, library)) = software.version().split_once("-rdkafka-") {
        return (Family::Librdkafka, Version::parse(library));
    }
    let family = match software.name() {
        "apache-kafka-java" if in_consumer_protocol => Family::JavaConsumer,
        "apache-kafka-java" => Family::JavaClassic,
        "librdkafka" => Family::Librdkafka,
        "kgo" => Family::FranzGo,
        "sarama" => Family::Sarama,
        "platformatic-kafka" => Family::Platformatic,
        "kafka-python" if version.is_some_and(|version| version < Version(3, 0, 0)) => Family::KafkaPython2,
        "kafka-python" => Family::KafkaPython3,
        _ => Family::Unknown,
    };
    (family, version)
}

/// Versions of JoinGroup that the libraries without a name send at most.
const JOIN_KAFKA_GO: i16 = 2;
const JOIN_KAFKA_PYTHON_2: i16 = 2;
const JOIN_AIOKAFKA: i16 = 5;
const JOIN_KAFKA_JS: i16 = 5;

fn by_manners(client: &ClientFacts, client_id: &str, protocols: &[String]) -> (Family, Option<Version>) {
    let join = client.join_version;
    let version_behind = |prefix| client_id.strip_prefix(prefix).and_then(Version::parse);
    if protocols.iter().any(|name| name == "RoundRobinAssigner") && join <= JOIN_KAFKA_JS {
        return (Family::KafkaJs, None);
    }
    if client_id.ends_with("(github.com/segmentio/kafka-go)") && join <= JOIN_KAFKA_GO {
        return (Family::KafkaGo, None);
    }
    if let Some(version) = version_behind("aiokafka-").filter(|_| join <= JOIN_AIOKAFKA) {
        return (Family::Aiokafka, Some(version));
    }
    // From 2.1 on it introduces itself.
    if let Some(version) = version_behind("kafka-python-").filter(|_| join <= JOIN_KAFKA_PYTHON_2) {
        return (Family::KafkaPython2, Some(version));
    }
    (Family::Unknown, None)
}
