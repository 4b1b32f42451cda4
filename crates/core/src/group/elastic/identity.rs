//! Which member speaks: the rules by which a request is laid to a member, or to nobody.
//!
//! ```text
//! OffsetFetch names a member ------------------------------------> that member, or one that is gone
//!   | no name
//! a member of the group is bound to the connection --------------> that member
//!   | none
//! members with the same client id and address have been given the
//! partition, and have not asked for it yet; or have asked, and have
//! fetched nothing of their share, since the answer may be lost ---> not yet: come again (the member will be bound)
//!   | none
//! an outsider: sees the plain log
//! ```
//!
//! A connection is bound by each request of the group protocols that the coordinator accepts from a member on it. All this
//! is volatile: after a restart of the broker a member is bound by its first heartbeat, and until then an OffsetFetch that
//! looks like its own is asked to come again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_wire::ErrorCode;

use super::handed::{Handed, Unasked};
use super::introduce::{Fingerprint, Introductions};
use super::seen::SlicesSeen;
use super::software::ClientSoftware;
use crate::cursor::{Cursor, IdUse, SliceId};
use crate::group::api::{Caller, Connection};
use crate::group::change::{GroupChange, Groups};
use crate::group::coordinator::Coordinator;
use crate::group::state::{Held, Member, MemberState};
use crate::ids::TopicId;
use crate::limits::{CONNECTION_MEMBERS_MAX, CONNECTIONS_KNOWN_MAX};

/// What is known of connections and of those who speak on them.
#[derive(Debug, Default)]
pub(in crate::group) struct Identities {
    lines: BTreeMap<Connection, Line>,
    /// On how many of these each member speaks: group, member.
    speakers: BTreeMap<(String, String), usize>,
    introductions: Introductions,
    handed: Handed,
}

/// One connection.
#[derive(Debug, Default)]
struct Line {
    /// Set once the client introduced itself here, with or without a name.
    introduced: bool,
    /// Under what that was noted, and what it said.
    noted: Option<(Fingerprint, Option<ClientSoftware>)>,
    /// Members that speak here, with their groups; the latest last.
    bound: Vec<(String, String)>,
    seen: SlicesSeen,
}

/// Who asks for the committed offsets of a group.
#[derive(Debug)]
pub enum Asker<'a> {
    /// A member.
    Member(&'a MemberState),
    /// One of several members that share the connection.
    Several(Vec<&'a MemberState>),
    /// Somebody who names a member that the group does not have (any more).
    Gone,
    /// Somebody without a name on a connection that no member is bound to, and the members it could be.
    Unbound(Vec<Lookalike<'a>>),
}

/// A member that an unbound request could come from.
#[derive(Debug)]
pub struct Lookalike<'a> {
    member: &'a Member,
    unasked: Unasked<'a>,
}

/// Who asks for one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// This member, by id.
    Member(&'a str),
    /// Nobody can tell yet. The error makes the client ask again.
    NotYet(ErrorCode),
    /// No member.
    Outsider,
}

/// Why a member could be taken for another one of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indistinct {
    /// Both speak on one connection.
    SameConnection,
    /// Consumers of their library share what they remember ([`super::Habits::shares_offsets`]), and both have the same
    /// client id and address.
    SameMemory,
}

/// In whose number space a request without an offset, such as ListOffsets, is to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Space<'a> {
    /// In that of the newest slice of the chain that this slice is in: the connection has fetched it.
    Slice(SliceId),
    /// In that of these members, by group and member id. If there are several it cannot be told which one asks: the
    /// lowest start and the highest end of theirs will do.
    Members(Vec<(&'a str, &'a str)>),
    /// Plain offsets.
    Plain,
    /// That cannot be told before one of those that it may be has spoken.
    NotYet,
}

impl Identities {
    /// What is known after a restart of the broker.
    pub(in crate::group) fn after_restart(groups: &Groups) -> Self {
        Self {
            handed: Handed::after_restart(groups),
            ..Self::default()
        }
    }

    /// Takes note of a change that is about to be made to `groups`.
    pub(in crate::group) fn observe(&mut self, groups: &Groups, change: &GroupChange) {
        self.handed.observe(groups, change);
    }

    fn line(&mut self, connection: Connection) -> &mut Line {
        if !self.lines.contains_key(&connection)
            && self.lines.len() >= CONNECTIONS_KNOWN_MAX
            && let Some((_, line)) = self.lines.pop_first()
        {
            self.part(line);
        }
        self.lines.entry(connection).or_default()
    }

    fn part(&mut self, line: Line) {
        for member in line.bound {
            self.silent(member);
        }
        if let Some((key, software)) = line.noted {
            self.introductions.parted(key, software.as_ref());
        }
    }

    fn introduced(&mut self, caller: &Caller) {
        let noted = self.introductions.note(caller);
        let line = self.line(caller.connection);
        line.introduced = true;
        let before = line.noted.take();
        line.noted = noted.map(|key| (key, caller.software.clone()));
        if let Some((key, software)) = before {
            self.introductions.parted(key, software.as_ref());
        }
    }

    /// The software of the caller: what it said on this connection, or else what it must be.
    fn software(&self, caller: &Caller) -> Option<ClientSoftware> {
        let introduced = self
            .lines
            .get(&caller.connection)
            .is_some_and(|line| line.introduced);
        if introduced || caller.software.is_some() {
            return caller.software.clone();
        }
        self.introductions.guess(caller).cloned()
    }

    /// A member speaks on one connection less.
    fn silent(&mut self, member: (String, String)) {
        if let Entry::Occupied(mut lines) = self.speakers.entry(member) {
            *lines.get_mut() -= 1;
            if *lines.get() == 0 {
                lines.remove();
            }
        }
    }

    /// Whether a member speaks on a connection that is open. One that has died does not, and is a member all the same until
    /// its session is over.
    fn speaks(&self, group: &str, member: &str) -> bool {
        self.speakers.contains_key(&(group.to_owned(), member.to_owned()))
    }

    fn closed(&mut self, connection: Connection) {
        if let Some(line) = self.lines.remove(&connection) {
            self.part(line);
        }
    }

    /// A member has spoken on a connection. With a JoinGroup it takes the place of others of its group: a client that
    /// lost its member id comes back as a new member, while the old one is a ghost until its session ends.
    pub(in crate::group) fn bind(&mut self, caller: &Caller, group: &str, member: &str, joins: bool) {
        self.handed.heard(group, member);
        let bound = &mut self.line(caller.connection).bound;
        if bound.iter().any(|(g, m)| g == group && m == member) {
            return;
        }
        let mut gone = match joins {
            true => bound.extract_if(.., |(g, _)| g == group).collect(),
            false => Vec::new(),
        };
        if bound.len() >= CONNECTION_MEMBERS_MAX {
            gone.push(bound.remove(0));
        }
        let member = (group.to_owned(), member.to_owned());
        bound.push(member.clone());
        *self.speakers.entry(member).or_default() += 1;
        for member in gone {
            self.silent(member);
        }
    }

    /// The members of a group that have spoken on a connection. They may have left the group since.
    fn bound<'a>(&'a self, connection: Connection, group: &'a str) -> impl Iterator<Item = &'a str> {
        let line = self.lines.get(&connection).into_iter();
        line.flat_map(|line| &line.bound)
            .filter(move |(bound, _)| bound == group)
            .map(|(_, member)| member.as_str())
    }

    /// An eager member has joined.
    pub(in crate::group) fn forgot_positions(&mut self, group: &str, member: &str, assigned: &Held) {
        self.handed.forgot_positions(group, member, assigned);
    }

    /// A member has asked where to begin.
    pub(in crate::group) fn asked(
        &mut self,
        group: &str,
        member: &str,
        partitions: impl Iterator<Item = (TopicId, i32)>,
    ) {
        self.handed.asked(group, member, partitions);
    }
}

#[cfg(test)]
impl Identities {
    pub(super) fn connections_known(&self) -> usize {
        self.lines.len()
    }

    /// Whether members are counted on the lines that there are, and on no others.
    pub(super) fn is_consistent(&self) -> bool {
        let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
        for member in self.lines.values().flat_map(|line| &line.bound) {
            *counted.entry(member.clone()).or_default() += 1;
        }
        counted == self.speakers
    }

    pub(super) fn members_on(&self, connection: Connection) -> usize {
        self.lines.get(&connection).map_or(0, |line| line.bound.len())
    }

    /// Whether a member may still have to ask where to begin in a partition that it was given.
    pub(super) fn may_still_ask(&self, group: &str, member: &str, key: (TopicId, i32)) -> bool {
        self.handed.unasked(group, member).may_include(&key)
    }
}

impl Coordinator {
    /// The client has introduced itself on a connection (ApiVersions); without `software` it did so in a version that
    /// has no place for a name.
    pub fn introduced(&mut self, caller: &Caller) {
        self.identities.introduced(caller);
    }

    /// A connection has ended. Call it for every one.
    pub fn connection_closed(&mut self, connection: Connection) {
        self.identities.closed(connection);
    }

    /// A slice that exists was fetched on a connection. Whose it is has heard where to begin. The fetch waits until
    /// `until_ms` for records, monotonic milliseconds.
    pub fn slice_fetched(
        &mut self,
        connection: Connection,
        (topic, partition): (TopicId, i32),
        slice: SliceId,
        until_ms: u64,
    ) {
        self.identities
            .line(connection)
            .seen
            .note(topic, partition, slice);
        let key = (topic, partition);
        let Some(IdUse::Taken { group }) = self.slice_ids.get(&key).and_then(|pool| pool.get(slice)) else {
            return;
        };
        let found = self.groups.get(group).and_then(|group| group.cursors.get(&key));
        if let Some(Cursor::Divided(divided)) = found
            && let Some((_, chain)) = divided.chain_with(slice)
        {
            let keys = std::iter::once(key);
            self.identities.handed.asked(group, chain.member(), keys);
            self.elastic.fetched(group, key, chain.member(), until_ms);
        }
    }

    /// A member of the consumer protocol has spoken on a connection. Whoever joins has no positions, also if it was a member
    /// before.
    pub(in crate::group) fn spoke_on(&mut self, caller: &Caller, group: &str, id: &str, joins: bool) {
        self.identities.bind(caller, group, id, joins);
        let consumer = self.groups.get(group).and_then(|group| group.consumer());
        let member = consumer.and_then(|consumer| consumer.members.get(id));
        if let Some(state) = member.filter(|_| joins) {
            self.identities
                .forgot_positions(group, id, &state.current.assigned);
        }
    }

    /// The caller with what else is known of its software.
    pub(in crate::group) fn with_software(&self, caller: &Caller) -> Caller {
        Caller {
            software: self.identities.software(caller),
            ..caller.clone()
        }
    }

    /// Who asks for committed offsets of a group; `named` is the member id in the request.
    pub fn asker(&self, group: &str, caller: &Caller, named: Option<&str>) -> Asker<'_> {
        let Some((group, consumer)) = self
            .groups
            .get_key_value(group)
            .and_then(|(id, group)| Some((id, group.consumer()?)))
        else {
            return Asker::Unbound(Vec::new());
        };
        if let Some(id) = named.filter(|id| !id.is_empty()) {
            return consumer.members.get(id).map_or(Asker::Gone, Asker::Member);
        }
        let bound = self.identities.bound(caller.connection, group);
        let mut bound: Vec<&MemberState> = bound.filter_map(|id| consumer.members.get(id)).collect();
        match (bound.pop(), bound.is_empty()) {
            (Some(state), true) => return Asker::Member(state),
            (Some(state), false) => {
                bound.push(state);
                return Asker::Several(bound);
            }
            (None, _) => {}
        }
        let lookalikes = consumer
            .members
            .values()
            .map(|state| &state.member)
            .filter(|member| is_same_client(member, caller) && !member.recognised().names_itself());
        Asker::Unbound(
            lookalikes
                .map(|member| Lookalike {
                    member,
                    unasked: self.identities.handed.unasked(group, &member.member_id),
                })
                .collect(),
        )
    }

    /// In whose number space a request without an offset is to be answered. `holders` are the members, of all groups,
    /// that hold a slice of the partition, by group id.
    pub(super) fn space<'a>(
        &self,
        caller: &Caller,
        topic: TopicId,
        partition: i32,
        holders: &[(&'a str, &'a Member)],
    ) -> Space<'a> {
        let line = self.identities.lines.get(&caller.connection);
        if let Some(slice) = line.and_then(|line| line.seen.last(topic, partition)) {
            return Space::Slice(slice);
        }
        match self.space_of_members(caller, holders) {
            None => Space::NotYet,
            Some(members) if members.is_empty() => Space::Plain,
            Some(members) => Space::Members(members),
        }
    }

    /// Which of the holders the caller is, or may be, by group and member id. Nobody if it is none of them, or if that
    /// cannot be told and its client cannot do with the range of all. `None` if that can be told soon: of those that it
    /// may be nobody has spoken since the broker was started, and one may be what is left of a client that died.
    pub(super) fn space_of_members<'a>(
        &self,
        caller: &Caller,
        holders: &[(&'a str, &'a Member)],
    ) -> Option<Vec<(&'a str, &'a str)>> {
        let line = self.identities.lines.get(&caller.connection);
        let speaks = |(group, member): &&(&str, &Member)| {
            let mut bound = line.into_iter().flat_map(|line| &line.bound);
            bound.any(|(g, m)| g == group && *m == member.member_id)
        };
        let named = |(group, member): &(&'a str, &'a Member)| (*group, member.member_id.as_str());
        if let Some(holder) = holders.iter().find(speaks) {
            return Some(vec![named(holder)]);
        }
        let caller = self.with_software(caller);
        let alike: Vec<_> = holders
            .iter()
            .filter(|(_, member)| is_same_client(member, &caller) && is_same_software(member, &caller))
            .collect();
        let widens = |(_, member): &&(&str, &Member)| member.recognised().habits().checks_start;
        if alike.len() > 1 && !alike.iter().all(widens) {
            let alive =
                |(group, member): &&&(&str, &Member)| self.identities.speaks(group, &member.member_id);
            let mut alive = alike.iter().filter(alive);
            return match (alive.next(), alive.next()) {
                (None, _) => None,
                (Some(only), None) => Some(vec![named(only)]),
                (Some(_), Some(_)) => Some(Vec::new()),
            };
        }
        Some(alike.into_iter().map(named).collect())
    }

    /// The members of a group that the broker could take for another, and why. Such members must not hold shares of one
    /// partition at the same time.
    pub(super) fn indistinct(&self, group: &str) -> BTreeMap<String, Indistinct> {
        let mut found = BTreeMap::new();
        let Some(consumer) = self.consumer(group) else {
            return found;
        };
        let mut places: BTreeMap<(&str, &str), Vec<&Member>> = BTreeMap::new();
        for member in consumer.members.values().map(|state| &state.member) {
            let place = (member.client_id.as_str(), member.client_host.as_str());
            places.entry(place).or_default().push(member);
        }
        let share_memory = |member: &&Member| member.recognised().habits().shares_offsets;
        let crowded = places.into_values().filter(|members| members.len() > 1);
        for member in crowded
            .filter(|members| members.iter().any(share_memory))
            .flatten()
        {
            found.insert(member.member_id.clone(), Indistinct::SameMemory);
        }
        for line in self.identities.lines.values() {
            let bound = line
                .bound
                .iter()
                .filter(|(of, member)| of == group && consumer.members.contains_key(member));
            let bound: Vec<&String> = bound.map(|(_, member)| member).collect();
            if bound.len() > 1 {
                found.extend(
                    bound
                        .into_iter()
                        .map(|id| (id.clone(), Indistinct::SameConnection)),
                );
            }
        }
        found
    }
}

impl<'a> Asker<'a> {
    /// Who asks for one partition.
    pub fn of(&self, topic: TopicId, partition: i32) -> Identity<'_> {
        match self {
            Self::Member(state) => Identity::Member(&state.member.member_id),
            Self::Several(states) => one_that_holds(states, topic, partition),
            // Only families that take this error well name themselves.
            Self::Gone => Identity::NotYet(ErrorCode::UnstableOffsetCommit),
            Self::Unbound(lookalikes) => lookalikes
                .iter()
                .find(|one| one.unasked.may_include(&(topic, partition)))
                .map_or(Identity::Outsider, |one| {
                    Identity::NotYet(one.member.recognised().habits().not_yet)
                }),
        }
    }

    /// The member, if there is no doubt.
    pub fn member(&self) -> Option<&'a MemberState> {
        match self {
            Self::Member(state) => Some(state),
            Self::Several(_) | Self::Gone | Self::Unbound(_) => None,
        }
    }
}

/// Members on one connection are never given shares of one partition, so at most one of them holds it.
fn one_that_holds<'a>(states: &[&'a MemberState], topic: TopicId, partition: i32) -> Identity<'a> {
    let holds = |held: &Held| held.get(&topic).is_some_and(|held| held.contains_key(&partition));
    let mut holders = states
        .iter()
        .filter(|state| holds(&state.current.assigned) || holds(&state.current.revoking));
    match (holders.next(), holders.next()) {
        (None, _) => Identity::Outsider,
        (Some(state), None) => Identity::Member(&state.member.member_id),
        (Some(state), Some(_)) => Identity::NotYet(state.member.recognised().habits().not_yet),
    }
}

fn is_same_client(member: &Member, caller: &Caller) -> bool {
    member.client_id == caller.client_id && member.client_host == caller.host
}

/// Whether both say the same about their software. A tool that was given a member's client id says something else.
fn is_same_software(member: &Member, caller: &Caller) -> bool {
    member.client.software == caller.software
}
