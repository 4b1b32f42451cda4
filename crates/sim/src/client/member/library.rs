//! Client libraries as the broker meets them: what each says of itself, and the manners that it does not share with all.
//!
//! From reading the libraries and running them; the broker's own table (`core::group::elastic::family`) is not looked at, so
//! that one checks the other.

use anabranch_core::group::elastic::ClientSoftware;
use anabranch_wire::ErrorCode;

use super::Style;
use crate::net::Introduction;

/// What a member's position behind an answer is, and what it commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// The end that the header of the last batch names, which may lie behind its last record. That is committed, too.
    HeaderEnd,
    /// The same; but the program commits the last record's offset plus one.
    HeaderEndByRecord,
    /// The last record's offset plus one.
    LastRecord,
}

/// Whether commits may say more than what was worked off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// They never do.
    Never,
    /// A record counts once it is handed to the program.
    Record,
    /// So do all records that are handed over at once.
    Batch,
}

/// A client library, at a version.
#[derive(Debug)]
pub struct Library {
    /// What it says in ApiVersions, if it says anything.
    software: Option<(&'static str, &'static str)>,
    /// The client id that it makes for itself, if the broker knows it by that.
    client_id: Option<&'static str>,
    /// Names of its assignors that give everything up at a rebalance; none if it does not speak so.
    pub eager: &'static [&'static str],
    /// Names of those that keep what stays.
    pub cooperative: &'static [&'static str],
    /// Whether it speaks the consumer protocol.
    pub modern: bool,
    /// Version of JoinGroup.
    pub join_version: i16,
    /// Whether OffsetFetch names the member, also in the classic protocol.
    pub names_itself: bool,
    /// An eager member goes on where it was in each partition that it gets back, and does not ask.
    pub keeps_positions: bool,
    /// What its commits mean.
    pub ahead: Ahead,
    /// Its positions.
    pub stands: Stands,
    /// Now and then it fetches at a position that it has just left, and drops the answer.
    pub fetches_again: bool,
    /// It asks for both ends of a partition before it begins, and believes no position outside.
    pub checks_start: bool,
    /// A member of a group can go to another position while it reads.
    pub seeks: bool,
    /// It has one connection for everything.
    pub one_line: bool,
    /// It commits its positions again at each interval, changed or not.
    pub repeats_commits: bool,
    /// An OffsetFetch that is answered so ends it, or is passed over in silence.
    pub dies_of: &'static [ErrorCode],
}

const PLAIN: Library = Library {
    software: None,
    client_id: None,
    eager: &["range", "roundrobin"],
    cooperative: &[],
    modern: false,
    join_version: 9,
    names_itself: false,
    keeps_positions: false,
    ahead: Ahead::Never,
    stands: Stands::HeaderEnd,
    fetches_again: false,
    checks_start: false,
    seeks: true,
    one_line: false,
    repeats_commits: false,
    dies_of: &[],
};

const COOPERATIVE: &[&str] = &["cooperative-sticky"];

/// Those that read shares.
pub(super) static KNOWN: [Library; 12] = [
    // Java, classic.
    Library {
        software: Some(("apache-kafka-java", "3.9.1")),
        cooperative: COOPERATIVE,
        repeats_commits: true,
        dies_of: &[ErrorCode::CoordinatorLoadInProgress],
        ..PLAIN
    },
    // Java, classic, with commits made by the program for each record. On the way from one kind of assignor to the other it
    // gives everything up.
    Library {
        software: Some(("apache-kafka-java", "2.8.2")),
        eager: &["cooperative-sticky", "range"],
        cooperative: COOPERATIVE,
        join_version: 7,
        stands: Stands::HeaderEndByRecord,
        dies_of: &[ErrorCode::CoordinatorLoadInProgress],
        ..PLAIN
    },
    // Java in the consumer protocol, before its polls became asynchronous.
    Library {
        software: Some(("apache-kafka-java", "4.1.0")),
        eager: &[],
        modern: true,
        names_itself: true,
        repeats_commits: true,
        dies_of: &[ErrorCode::CoordinatorLoadInProgress],
        ..PLAIN
    },
    // And after that.
    Library {
        software: Some(("apache-kafka-java", "4.3.1")),
        eager: &[],
        modern: true,
        names_itself: true,
        ahead: Ahead::Batch,
        fetches_again: true,
        repeats_commits: true,
        dies_of: &[ErrorCode::CoordinatorLoadInProgress],
        ..PLAIN
    },
    // librdkafka, which does not name itself in the consumer protocol either.
    Library {
        software: Some(("librdkafka", "2.16.0")),
        cooperative: COOPERATIVE,
        modern: true,
        ahead: Ahead::Record,
        stands: Stands::HeaderEndByRecord,
        dies_of: &[ErrorCode::CoordinatorLoadInProgress],
        ..PLAIN
    },
    // franz-go.
    Library {
        software: Some(("kgo", "v1.21.6")),
        eager: &["sticky", "range"],
        cooperative: COOPERATIVE,
        modern: true,
        names_itself: true,
        ahead: Ahead::Batch,
        dies_of: &[ErrorCode::CoordinatorLoadInProgress],
        ..PLAIN
    },
    // sarama.
    Library {
        software: Some(("sarama", "v1.60.1")),
        eager: &["range"],
        join_version: 5,
        stands: Stands::LastRecord,
        checks_start: true,
        // A session's ResetOffset sets what is committed; its claims go on where they are.
        seeks: false,
        one_line: true,
        dies_of: &[ErrorCode::UnstableOffsetCommit],
        ..PLAIN
    },
    // segmentio/kafka-go.
    Library {
        client_id: Some("reader@host (github.com/segmentio/kafka-go)"),
        join_version: 2,
        checks_start: true,
        // SetOffset is refused while there is a group.
        seeks: false,
        dies_of: &[ErrorCode::UnstableOffsetCommit],
        ..PLAIN
    },
    // kafkajs.
    Library {
        eager: &["RoundRobinAssigner"],
        join_version: 5,
        stands: Stands::LastRecord,
        ..PLAIN
    },
    // kafka-python 2.
    Library {
        client_id: Some("kafka-python-2.0.2"),
        join_version: 2,
        dies_of: &[ErrorCode::UnstableOffsetCommit],
        ..PLAIN
    },
    // kafka-python 3.
    Library {
        software: Some(("kafka-python", "3.0.12")),
        join_version: 7,
        keeps_positions: true,
        ..PLAIN
    },
    // aiokafka.
    Library {
        client_id: Some("aiokafka-0.14.0"),
        join_version: 5,
        dies_of: &[ErrorCode::UnstableOffsetCommit],
        ..PLAIN
    },
];

/// Those that the broker must leave alone: nobody knows what they do, or what they do is known to go wrong.
pub(super) static STRANGE: [Library; 4] = [
    Library {
        software: Some(("homegrown", "1.0")),
        cooperative: COOPERATIVE,
        modern: true,
        ..PLAIN
    },
    // Says nothing.
    Library { ..PLAIN },
    // @platformatic/kafka, which may put back an old position after a rebalance.
    Library {
        software: Some(("platformatic-kafka", "1.35.0")),
        eager: &["roundrobin"],
        modern: true,
        names_itself: true,
        ..PLAIN
    },
    // A preview.
    Library {
        software: Some(("apache-kafka-java", "3.9.1")),
        eager: &[],
        modern: true,
        names_itself: true,
        fetches_again: true,
        ..PLAIN
    },
];

/// kafkajs: two of its consumers in one process cannot be told apart.
pub(super) fn kafkajs() -> &'static Library {
    &KNOWN[8]
}

impl Library {
    /// How it can be a member.
    pub fn styles(&self) -> Vec<Style> {
        let all = [
            (Style::Eager, !self.eager.is_empty()),
            (Style::Cooperative, !self.cooperative.is_empty()),
            (Style::Modern, self.modern),
        ];
        let spoken = all.into_iter().filter(|(_, speaks)| *speaks);
        spoken.map(|(style, _)| style).collect()
    }

    /// What the client says of itself, being the one of this number.
    pub fn introduction(&self, index: usize) -> Introduction {
        let own = || format!("client-{index}");
        Introduction {
            client_id: self.client_id.map_or_else(own, str::to_owned),
            software: self
                .software
                .and_then(|(name, version)| ClientSoftware::new(name, version)),
            ..Introduction::of(index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_says_something_that_can_be_said_and_speaks_some_protocol() {
        for library in KNOWN.iter().chain(&STRANGE) {
            assert!(!library.styles().is_empty(), "{library:?}");
            let said = library.introduction(3).software.is_some();
            assert_eq!(said, library.software.is_some(), "{library:?}");
        }
        assert_eq!(kafkajs().eager, ["RoundRobinAssigner"]);
    }
}
