//! What tools and metrics are shown of groups.
//!
//! A group that the broker assigns counts as *modern* for tools ("Consumer", ConsumerGroupDescribe) once a member of
//! the consumer protocol has joined; else it looks like a classic group. DescribeGroups answers for both, so that
//! older tools see something.

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::classic::Phase;
use super::consumer::by_name;
use super::coordinator::Coordinator;
use super::doors::CONSUMER;
use super::protocol::{encode_assignment, encode_subscription};
use super::state::{ConsumerGroup, Group, Kind, MemberState, Partitions, without_epochs};
use super::timers::{TimerKey, TimerKind};
use super::topics::Topics;
use crate::Refused;
use crate::ids::{Now, TopicId};

/// A row of ListGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Group id.
    pub group_id: String,
    /// Protocol type; empty for a group that only commits offsets.
    pub protocol_type: String,
    /// State, as the group's type names it.
    pub state: &'static str,
    /// "Consumer" or "Classic".
    pub group_type: &'static str,
}

/// An answer of DescribeGroups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// State in classic words; "Dead" for a group that does not exist.
    pub state: &'static str,
    /// Whether the group exists (version 6 answers GROUP_ID_NOT_FOUND otherwise).
    pub exists: bool,
    /// Protocol type.
    pub protocol_type: String,
    /// Name of the assignor or protocol; empty unless stable.
    pub protocol: String,
    /// Members in the order of their ids.
    pub members: Vec<DescribedMember>,
}

/// A member in an answer of DescribeGroups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedMember {
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Client id.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// Its subscription, as bytes.
    pub metadata: Bytes,
    /// Its assignment, as bytes.
    pub assignment: Bytes,
}

/// An answer of ConsumerGroupDescribe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerDescribed {
    /// "Empty", "Reconciling" or "Stable".
    pub state: &'static str,
    /// Group epoch; the target assignment always is this epoch's.
    pub epoch: i32,
    /// Assignor in use.
    pub assignor: &'static str,
    /// Members in the order of their ids.
    pub members: Vec<ConsumerMember>,
}

/// A member in an answer of ConsumerGroupDescribe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerMember {
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Rack.
    pub rack_id: Option<String>,
    /// Member epoch.
    pub epoch: i32,
    /// Client id.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// Subscribed names.
    pub topics: Vec<String>,
    /// Subscribed regular expression.
    pub regex: Option<String>,
    /// What it may work on: topic id, name, partitions.
    pub assignment: Vec<(TopicId, String, Vec<i32>)>,
    /// What it shall get.
    pub target: Vec<(TopicId, String, Vec<i32>)>,
    /// Whether it speaks the classic protocol.
    pub is_classic: bool,
}

/// A member, for metrics and consoles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Member id.
    pub member_id: String,
    /// Instance id of a static member.
    pub instance_id: Option<String>,
    /// Client id.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// Member epoch or generation.
    pub epoch: i32,
    /// "stable", "releasing", "waiting" or, with a client leader, the phase of the group.
    pub state: &'static str,
    /// How many partitions it may work on; `None` where a client leads and the broker does not know.
    pub partitions: Option<usize>,
    /// Milliseconds since it was last heard of; `None` while its session is not running.
    pub silent_ms: Option<u64>,
}

impl Coordinator {
    /// Handles ListGroups. Empty filters let everything through; names are compared without regard to case.
    pub fn list(&self, states: &[String], types: &[String]) -> Vec<Listed> {
        let passes = |filter: &[String], value: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(value))
        };
        let mut rows: Vec<Listed> = self
            .groups
            .iter()
            .map(|(id, group)| self.listed(id, group))
            .collect();
        // Groups whose first generation is still being joined are not durable yet.
        for id in self.barriers.keys().filter(|id| !self.groups.contains_key(*id)) {
            rows.push(self.listed(id, &Group::default()));
        }
        rows.retain(|row| passes(states, row.state) && passes(types, row.group_type));
        rows.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        rows
    }

    fn listed(&self, id: &str, group: &Group) -> Listed {
        let barrier = self.barriers.get(id);
        let (protocol_type, state, group_type) = match (&group.kind, barrier) {
            (_, Some(barrier)) => (barrier.protocol_type.as_str(), barrier.phase.name(), "Classic"),
            (Kind::Simple, None) => ("", "Empty", "Classic"),
            (Kind::Consumer(consumer), None) if consumer.modern => (CONSUMER, consumer.state(), "Consumer"),
            (Kind::Consumer(consumer), None) => (CONSUMER, consumer.classic_state(), "Classic"),
            (Kind::Classic(generation), None) => (generation.protocol_type.as_str(), "Empty", "Classic"),
        };
        Listed {
            group_id: id.to_owned(),
            protocol_type: protocol_type.to_owned(),
            state,
            group_type,
        }
    }

    /// Handles DescribeGroups for one group.
    pub fn describe(&self, topics: &dyn Topics, group: &str) -> Described {
        if let Some(barrier) = self.barriers.get(group) {
            return barrier.described();
        }
        match self.groups.get(group).map(|group| &group.kind) {
            None => Described {
                state: "Dead",
                ..Described::default()
            },
            Some(Kind::Simple) => Described {
                state: "Empty",
                exists: true,
                ..Described::default()
            },
            Some(Kind::Classic(generation)) => Described {
                state: "Empty",
                exists: true,
                protocol_type: generation.protocol_type.clone(),
                ..Described::default()
            },
            Some(Kind::Consumer(consumer)) => {
                let state = consumer.classic_state();
                let first = consumer
                    .members
                    .values()
                    .find_map(|m| m.member.classic.as_ref()?.protocols.first());
                let protocol = match (consumer.members.is_empty(), first) {
                    (true, _) => String::new(),
                    (false, Some(first)) => first.clone(),
                    (false, None) => self.assignor(group).name().to_owned(),
                };
                Described {
                    state,
                    exists: true,
                    protocol_type: CONSUMER.to_owned(),
                    protocol,
                    members: consumer
                        .members
                        .values()
                        .map(|m| classic_view(m, topics))
                        .collect(),
                }
            }
        }
    }

    /// Handles ConsumerGroupDescribe for one group. Groups of classic members only are not found, so that tools ask
    /// by DescribeGroups.
    pub fn describe_consumer(&self, topics: &dyn Topics, group: &str) -> Result<ConsumerDescribed, Refused> {
        let Some(consumer) = self.consumer(group).filter(|consumer| consumer.modern) else {
            let text = format!("group {group:?} is not a group of the consumer protocol");
            return Err(Refused::new(ErrorCode::GroupIdNotFound, text));
        };
        Ok(ConsumerDescribed {
            state: consumer.state(),
            epoch: consumer.epoch,
            assignor: self.assignor(group).name(),
            members: consumer
                .members
                .values()
                .map(|state| consumer_view(state, topics))
                .collect(),
        })
    }

    /// The members of a group, for metrics and consoles.
    pub fn members(&self, now: Now, group: &str) -> Vec<MemberView> {
        let silent = |id: &str, session_ms: u64| {
            let ends = self.timers.get(&TimerKey::new(group, id, TimerKind::Session))?;
            Some(now.mono_ms.saturating_sub(ends.saturating_sub(session_ms)))
        };
        if let Some(barrier) = self.barriers.get(group) {
            let view = |(id, player): (&String, &super::classic::Player)| MemberView {
                member_id: id.clone(),
                instance_id: player.seat.instance_id.clone(),
                client_id: player.seat.client_id.clone(),
                client_host: player.seat.client_host.clone(),
                epoch: barrier.generation,
                state: barrier.phase.name(),
                partitions: None,
                silent_ms: silent(id, super::coordinator::to_ms(player.seat.session_timeout_ms)),
            };
            return barrier.members.iter().map(view).collect();
        }
        let members = self
            .consumer(group)
            .into_iter()
            .flat_map(|consumer| &consumer.members);
        let view = |(id, state): (&String, &MemberState)| MemberView {
            member_id: id.clone(),
            instance_id: state.member.instance_id.clone(),
            client_id: state.member.client_id.clone(),
            client_host: state.member.client_host.clone(),
            epoch: state.current.epoch,
            state: state.word(),
            partitions: Some(
                state
                    .current
                    .assigned
                    .values()
                    .map(std::collections::BTreeMap::len)
                    .sum(),
            ),
            silent_ms: silent(id, self.session_timeout_ms(group, &state.member)),
        };
        members.map(view).collect()
    }
}

impl MemberState {
    fn word(&self) -> &'static str {
        if !self.current.revoking.is_empty() {
            "releasing"
        } else if self.is_reconciled() {
            "stable"
        } else {
            "waiting"
        }
    }
}

impl ConsumerGroup {
    /// State in the words of the consumer protocol.
    fn state(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.members.values().all(MemberState::is_reconciled) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// State in the words of the classic protocol.
    fn classic_state(&self) -> &'static str {
        match self.state() {
            "Reconciling" => "PreparingRebalance",
            state => state,
        }
    }
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Joining => "PreparingRebalance",
            Self::Syncing => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

impl super::classic::Barrier {
    /// Metadata and protocol are shown once the group is stable, as in Kafka.
    fn described(&self) -> Described {
        let stable = self.phase == Phase::Stable;
        let chosen = self.protocol.clone().filter(|_| stable);
        let members = self.members.iter().map(|(id, player)| {
            let metadata = player
                .seat
                .protocols
                .iter()
                .find(|(name, _)| Some(name) == chosen.as_ref());
            DescribedMember {
                member_id: id.clone(),
                instance_id: player.seat.instance_id.clone(),
                client_id: player.seat.client_id.clone(),
                client_host: player.seat.client_host.clone(),
                metadata: metadata.map(|(_, bytes)| bytes.clone()).unwrap_or_default(),
                assignment: if stable {
                    player.seat.assignment.clone()
                } else {
                    Bytes::new()
                },
            }
        });
        Described {
            state: self.phase.name(),
            exists: true,
            protocol_type: self.protocol_type.clone(),
            protocol: chosen.clone().unwrap_or_default(),
            members: members.collect(),
        }
    }
}

fn classic_view(state: &MemberState, topics: &dyn Topics) -> DescribedMember {
    let member = &state.member;
    DescribedMember {
        member_id: member.member_id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: encode_subscription(member.topics.iter().map(String::as_str)),
        assignment: encode_assignment(&by_name(&state.current.assigned, topics)),
    }
}

fn consumer_view(state: &MemberState, topics: &dyn Topics) -> ConsumerMember {
    let member = &state.member;
    let named = |partitions: &Partitions| {
        let named = partitions.iter().filter_map(|(id, set)| {
            let topic = topics.by_id(*id)?;
            Some((*id, topic.name.to_owned(), set.iter().copied().collect()))
        });
        named.collect()
    };
    ConsumerMember {
        member_id: member.member_id.clone(),
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        epoch: state.current.epoch,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        topics: member.topics.iter().cloned().collect(),
        regex: member.regex.clone(),
        assignment: named(&without_epochs(&state.current.assigned)),
        target: named(&state.target),
        is_classic: member.is_classic(),
    }
}
