//! Who may be divided, and if not, why: the reasons that status and the decision log show.
//!
//! A group is divided only if each of its members may be: a member that cannot live with shares would still see what
//! becomes of the others' partitions. A topic has conditions of its own.

use std::collections::BTreeMap;
use std::fmt;

use super::family::{Recognised, Since};
use super::identity::Indistinct;
use super::software::Version;
use crate::elastic::Mode;
use crate::group::assign::Assignor;
use crate::group::coordinator::Coordinator;
use crate::group::state::{Group, Kind, Member, MemberState};
use crate::group::topics::Topics;
use crate::ids::TopicId;

/// Why a group, a topic or a partition is not divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ineligible {
    /// The kind of reason, for whoever acts on it.
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
    /// The topic does not suit it: it is an internal one, or compacted.
    Topic,
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
    /// A member's client is known to do what cannot go well with shares.
    ClientUnfit,
    /// A member does not ask for committed offsets: it keeps its positions elsewhere.
    NeverAsks,
    /// The broker could take a member for another one of the group.
    Indistinct,
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
            Kind::Consumer(consumer) => consumer.members.values().try_for_each(MemberState::eligibility),
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

impl MemberState {
    /// Whether the member may hold a share, by its client and by what it has done with what it was given.
    pub fn eligibility(&self) -> Result<(), Ineligible> {
        self.member.eligibility()?;
        if !self.current.assigned.is_empty() && !self.member.client.asks_position {
            let text =
                "it has not asked for the group's committed offsets: it may keep its positions elsewhere";
            return Err(Ineligible::new(Reason::NeverAsks, text).of(&self.member));
        }
        Ok(())
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
        if let Some(unfit) = habits.unfit {
            return Err(Ineligible::new(
                Reason::ClientUnfit,
                format!("{} {unfit}", habits.title),
            ));
        }
        if !since.admits(recognised.version) {
            let text = refused_version(recognised, since, self.is_classic());
            return Err(Ineligible::new(Reason::ClientVersion, text));
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
    /// Whether a topic may be divided among the members of a group: the whole verdict, with the first reason against it.
    pub fn eligibility(&self, topics: &dyn Topics, group: &str, topic: TopicId) -> Result<(), Ineligible> {
        match topics.elastic_mode(group, topic) {
            Mode::Slices => {}
            Mode::Off => return Err(Ineligible::new(Reason::Mode, "elastic.mode is off")),
            Mode::Queues => {
                let text =
                    "elastic.mode is queues: the number of queues follows the group, and none is divided";
                return Err(Ineligible::new(Reason::Mode, text));
            }
        }
        if let Some(text) = topics.excluded_from_division(topic) {
            let text = format!("the topic is not divided: {text}");
            return Err(Ineligible::new(Reason::Topic, text));
        }
        let Some(found) = self.groups.get(group) else {
            return Err(Ineligible::new(Reason::NoMembers, "there is no such group"));
        };
        // First: one that is taken for another may seem not to have asked, too.
        match self.indistinct(group).pop_first() {
            Some((id, why)) => Err(why.refuses(id)),
            None => found.eligibility(),
        }
    }

    /// Whether a member may hold a share; `indistinct` are those of its group, by [`Coordinator::indistinct`].
    pub(super) fn member_eligibility(
        state: &MemberState,
        indistinct: &BTreeMap<String, Indistinct>,
    ) -> Result<(), Ineligible> {
        let id = &state.member.member_id;
        match indistinct.get(id) {
            Some(why) => Err(why.refuses(id.clone())),
            None => state.eligibility(),
        }
    }
}

impl Indistinct {
    fn refuses(self, member: String) -> Ineligible {
        let text = match self {
            Self::SameConnection => {
                "it speaks on one connection with another member, so that the broker cannot always tell them apart"
            }
            Self::SameMemory => {
                "another member has the same client id and address, and consumers of its library share what they \
                 remember of committed offsets: give each a client id of its own"
            }
        };
        Ineligible {
            member: Some(member),
            ..Ineligible::new(Reason::Indistinct, text)
        }
    }
}
