//! Who may be divided, and if not, why: the reasons that status and the decision log show.
//!
//! A group is divided only if each of its members may be: a member that cannot live with shares would still see what
//! becomes of the others' partitions. A topic, and a partition, have conditions of their own.

use std::fmt;

use super::family::{Recognised, Since};
use super::software::Version;
use crate::elastic::Mode;
use crate::group::assign::Assignor;
use crate::group::coordinator::Coordinator;
use crate::group::state::{Group, Kind, Member};
use crate::ids::TopicId;

/// Why a group, a topic or a partition is not divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ineligible {
    /// The reason, for programs.
    pub reason: Reason,
    /// The member that it is about, if it is about one.
    pub member: Option<String>,
    /// The reason as a sentence, for people: without the member's name, without a full stop.
    pub text: String,
}

/// Reasons not to divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// `elastic.mode` is `off` or `queues`.
    Mode,
    /// The topic's name begins with two underscores.
    InternalTopic,
    /// The topic is compacted: a record is found by its key there, not by its place.
    CompactedTopic,
    /// There is no such group, or it has no members.
    NoMembers,
    /// A client leads the group: Kafka Streams, Connect, an assignor that only the clients know.
    ClientLed,
    /// A member asks for an assignor that the broker does not know.
    CustomAssignor,
    /// A member is a task of Kafka Connect, which keeps offsets of its own.
    Connect,
    /// A member's client is not on the list.
    UnknownClient,
    /// A member's client is on the list, but not in this version or not in this protocol.
    ClientVersion,
    /// A member does not ask for committed offsets: it keeps its positions elsewhere.
    NeverAsks,
    /// A member has not asked yet where to begin in this partition.
    NotAskedYet,
    /// The group has committed nothing in this partition: where its members begin is their own choice.
    NoPosition,
}

impl Reason {
    /// The reason's name in answers and logs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::InternalTopic => "internal-topic",
            Self::CompactedTopic => "compacted-topic",
            Self::NoMembers => "no-members",
            Self::ClientLed => "client-led",
            Self::CustomAssignor => "custom-assignor",
            Self::Connect => "connect",
            Self::UnknownClient => "unknown-client",
            Self::ClientVersion => "client-version",
            Self::NeverAsks => "never-asks",
            Self::NotAskedYet => "not-asked-yet",
            Self::NoPosition => "no-position",
        }
    }
}

impl Ineligible {
    fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self {
            reason,
            member: None,
            text: text.into(),
        }
    }

    fn of(self, member: &Member) -> Self {
        Self {
            member: Some(member.member_id.clone()),
            ..self
        }
    }
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.member {
            Some(member) => write!(f, "member {member:?}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// What is asked of a topic.
#[derive(Clone, Copy, Debug)]
pub struct TopicTraits<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether its `cleanup.policy` has `compact`.
    pub is_compacted: bool,
    /// Its `elastic.mode` in this group.
    pub mode: Mode,
}

impl TopicTraits<'_> {
    /// Whether the topic's partitions may be divided.
    pub fn eligibility(&self) -> Result<(), Ineligible> {
        match self.mode {
            Mode::Slices => {}
            Mode::Off => return Err(Ineligible::new(Reason::Mode, "elastic.mode is off")),
            Mode::Queues => {
                let text =
                    "elastic.mode is queues: the number of queues follows the group, and none is divided";
                return Err(Ineligible::new(Reason::Mode, text));
            }
        }
        if self.name.starts_with("__") {
            let text = format!(
                "{:?} is an internal topic: its name begins with \"__\"",
                self.name
            );
            return Err(Ineligible::new(Reason::InternalTopic, text));
        }
        if self.is_compacted {
            let text = format!("topic {:?} is compacted", self.name);
            return Err(Ineligible::new(Reason::CompactedTopic, text));
        }
        Ok(())
    }
}

impl Group {
    /// Whether all members may be divided, as far as their clients go; the first that may not is named.
    pub fn eligibility(&self) -> Result<(), Ineligible> {
        let none = || Err(Ineligible::new(Reason::NoMembers, "the group has no members"));
        match &self.kind {
            Kind::Simple => none(),
            Kind::Classic(generation) if generation.members.is_empty() => none(),
            Kind::Classic(generation) => Err(Ineligible::new(
                Reason::ClientLed,
                led_by(&generation.protocol_type),
            )),
            Kind::Consumer(consumer) if consumer.members.is_empty() => none(),
            Kind::Consumer(consumer) => consumer
                .members
                .values()
                .try_for_each(|state| state.member.eligibility()),
        }
    }
}

fn led_by(protocol_type: &str) -> String {
    match protocol_type {
        "consumer" => {
            "a client leads the group: Kafka Streams, or an assignor that only the clients know".to_owned()
        }
        "connect" => "a client leads the group: Kafka Connect".to_owned(),
        other => format!("a client leads the group: its protocol type is {other:?}, not \"consumer\""),
    }
}

impl Member {
    /// Whether the member may hold a share, as far as its client goes. Static members and subscriptions by regular
    /// expression are as good as others: who holds what is the broker's decision in any case.
    pub fn eligibility(&self) -> Result<(), Ineligible> {
        self.check_client().map_err(|ineligible| ineligible.of(self))
    }

    fn check_client(&self) -> Result<(), Ineligible> {
        // What a sink connector's consumers are called unless somebody overrides it.
        if self.client_id.starts_with("connector-consumer-") {
            let text = "its client id is that of a Kafka Connect task, which keeps offsets of its own";
            return Err(Ineligible::new(Reason::Connect, text));
        }
        let protocols = self.classic.iter().flat_map(|classic| &classic.protocols);
        for name in protocols {
            if Assignor::of_protocol(name).is_none() {
                let text = format!("it brings assignor {name:?}, which the broker does not know");
                return Err(Ineligible::new(Reason::CustomAssignor, text));
            }
        }
        let recognised = self.recognised();
        let habits = recognised.habits();
        let since = if self.is_classic() {
            habits.classic
        } else {
            habits.consumer
        };
        if habits.family == super::Family::Unknown {
            return Err(Ineligible::new(Reason::UnknownClient, self.unknown()));
        }
        if !since.admits(recognised.version) {
            let text = refused_version(recognised, since, self.is_classic());
            return Err(Ineligible::new(Reason::ClientVersion, text));
        }
        if !self.client.asks_position {
            let text =
                "it has not asked for the group's committed offsets: it may keep its positions elsewhere";
            return Err(Ineligible::new(Reason::NeverAsks, text));
        }
        Ok(())
    }

    fn unknown(&self) -> String {
        match &self.client.software {
            Some(software) => format!("its client software, {software}, is not known to read shares"),
            None => {
                "its client does not say what it is, and has a client id that does not tell either".to_owned()
            }
        }
    }
}

fn refused_version(recognised: Recognised, since: Since, is_classic: bool) -> String {
    let title = recognised.habits().title;
    let told = |version: Option<Version>| match version {
        Some(version) => format!("is version {version}"),
        None => "does not tell its version".to_owned(),
    };
    match since {
        Since::From(oldest) => format!("{title} {}; it takes {oldest} or newer", told(recognised.version)),
        Since::Always | Since::Never => {
            let protocol = if is_classic { "classic" } else { "consumer" };
            format!("{title} is not known to read shares in the {protocol} protocol")
        }
    }
}

impl Coordinator {
    /// Whether a partition of a topic may be divided among the members of a group: the whole verdict, with the first
    /// reason against it.
    pub fn eligibility(
        &self,
        group: &str,
        topic: &TopicTraits<'_>,
        key: (TopicId, i32),
    ) -> Result<(), Ineligible> {
        topic.eligibility()?;
        let Some(found) = self.groups.get(group) else {
            return Err(Ineligible::new(Reason::NoMembers, "there is no such group"));
        };
        found.eligibility()?;
        if !found.cursors.contains_key(&key) {
            let text = "the group has committed nothing in this partition yet";
            return Err(Ineligible::new(Reason::NoPosition, text));
        }
        let Some(consumer) = found.consumer() else {
            return Ok(());
        };
        for state in consumer.members.values() {
            let held = state.current.assigned.get(&key.0);
            let holds = held.is_some_and(|held| held.contains_key(&key.1));
            if holds && self.may_still_ask(group, &state.member.member_id, key) {
                let text = "it holds the partition and has not asked yet where to begin";
                return Err(Ineligible::new(Reason::NotAskedYet, text).of(&state.member));
            }
        }
        Ok(())
    }
}
