//! Who shall hold which partition: pure functions from subscriptions and the previous plan to a plan.
//!
//! The server assigns for both protocols. What members ask for chooses the [`Assignor`]: a member of the consumer
//! protocol by name, a classic member by the first of its protocols that is known here. Three plans exist: *range*
//! (equal partitions of several topics meet at one member), *round robin*, and *sticky* (balanced, and moves as
//! little as possible; it also serves "uniform" and "cooperative-sticky"). All three give every member as many queues of a
//! topic in queue mode as any other, one at most excepted.

mod range;
mod round_robin;
mod sticky;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::state::Partitions;
use crate::ids::TopicId;

/// A way to assign. The order decides ties between equally many wishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Balanced, and moves as little as possible.
    #[default]
    Sticky,
    /// Per topic, consecutive partitions to members in order.
    Range,
    /// All partitions in order, one to each member in turn.
    RoundRobin,
}

impl Assignor {
    /// Name shown to tools: Kafka's own names for assignors on the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sticky => "uniform",
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
        }
    }

    /// The assignor that a member of the consumer protocol asks for: Kafka offers `uniform` and `range`.
    pub fn of_server_name(name: &str) -> Option<Self> {
        match name {
            "uniform" => Some(Self::Sticky),
            "range" => Some(Self::Range),
            _ => None,
        }
    }

    /// The assignor behind the protocol name of a classic client.
    pub fn of_protocol(name: &str) -> Option<Self> {
        KNOWN_PROTOCOLS
            .iter()
            .find(|known| known.name == name)
            .map(|known| known.assignor)
    }
}

/// A protocol name that clients send, and what it stands for.
struct KnownProtocol {
    name: &'static str,
    assignor: Assignor,
    /// Members keep their partitions while they rejoin.
    cooperative: bool,
}

/// The built-in assignors of the client libraries.
const KNOWN_PROTOCOLS: &[KnownProtocol] = &[
    // Java, librdkafka, franz-go, sarama, kafka-python, aiokafka, segmentio/kafka-go
    KnownProtocol {
        name: "range",
        assignor: Assignor::Range,
        cooperative: false,
    },
    // the same, and @platformatic/kafka
    KnownProtocol {
        name: "roundrobin",
        assignor: Assignor::RoundRobin,
        cooperative: false,
    },
    // Java, sarama, kafka-python, aiokafka
    KnownProtocol {
        name: "sticky",
        assignor: Assignor::Sticky,
        cooperative: false,
    },
    // Java, librdkafka, franz-go, kafka-python
    KnownProtocol {
        name: "cooperative-sticky",
        assignor: Assignor::Sticky,
        cooperative: true,
    },
    // kafkajs
    KnownProtocol {
        name: "RoundRobinAssigner",
        assignor: Assignor::RoundRobin,
        cooperative: false,
    },
    // brod
    KnownProtocol {
        name: "roundrobin_v2",
        assignor: Assignor::RoundRobin,
        cooperative: false,
    },
];

/// Whether members of this protocol give up everything before they join. An unknown protocol says by itself what
/// its member still owns, so it is taken at its word.
pub(super) fn is_eager(protocol: &str) -> bool {
    KNOWN_PROTOCOLS
        .iter()
        .any(|known| known.name == protocol && !known.cooperative)
}

/// A topic that somebody subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) id: TopicId,
    pub(crate) partitions: i32,
    /// Partitions that nobody is to be given: queues without anything to read.
    pub(crate) closed: BTreeSet<i32>,
    /// Whether the topic is in queue mode: each member is to have as many of its queues as any other, whatever it has of
    /// other topics.
    pub(crate) is_queued: bool,
}

/// A member to assign to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seeker {
    /// Orders static members by their instance, so that a restart changes nothing.
    pub(crate) instance_id: Option<String>,
    /// Subscribed topics that exist.
    pub(crate) topics: BTreeSet<TopicId>,
    /// The plan before.
    pub(crate) previous: Partitions,
}

/// What there is to assign: topics in the order of their names, and members by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) topics: Vec<Topic>,
    pub(crate) members: BTreeMap<String, Seeker>,
    /// Partitions that are not for the plan: several members share each, and who does is decided elsewhere.
    pub(crate) shared: BTreeSet<(TopicId, i32)>,
}

/// A partition set for each member of the problem.
pub(crate) type Plan = BTreeMap<String, Partitions>;

/// Makes the plan. Every partition of a topic with at least one subscriber goes to exactly one subscriber, but for
/// those that are shared or closed.
pub(crate) fn assign(assignor: Assignor, problem: &Problem) -> Plan {
    match assignor {
        Assignor::Sticky => sticky::assign(problem),
        Assignor::Range => range::assign(problem),
        Assignor::RoundRobin => round_robin::assign(problem),
    }
}

impl Problem {
    /// The partitions of a topic that are to be given to somebody, in rising order.
    fn open(&self, topic: &Topic) -> Vec<i32> {
        (0..topic.partitions)
            .filter(|partition| !topic.closed.contains(partition))
            .filter(|partition| !self.shared.contains(&(topic.id, *partition)))
            .collect()
    }

    /// Members in the order that range and round robin count in: by instance id, else by member id.
    fn in_order(&self) -> Vec<(&String, &Seeker)> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_by_key(|(id, seeker)| {
            let instance = seeker.instance_id.as_ref();
            (instance.is_none(), instance.unwrap_or(id).clone(), (*id).clone())
        });
        members
    }

    fn empty_plan(&self) -> Plan {
        self.members
            .keys()
            .map(|id| (id.clone(), Partitions::new()))
            .collect()
    }
}

fn give(plan: &mut Plan, member: &str, topic: TopicId, partition: i32) {
    if let Some(partitions) = plan.get_mut(member) {
        partitions.entry(topic).or_default().insert(partition);
    }
}
