//! Members of the classic protocol in a group that the broker assigns: no client leader, no barrier.
//!
//! As Apache Kafka 4 treats classic members of a group of the consumer protocol, with each request mapped onto the
//! member state machine:
//! - JoinGroup is answered at once: no leader, no members, the member's own first protocol, and as generation the
//!   *member's* epoch. It also says what the member owns: an eager member nothing, a cooperative one what its
//!   subscription lists.
//! - SyncGroup answers with what the member holds.
//! - Heartbeat says REBALANCE_IN_PROGRESS only to a member that must give something up, or for which something has
//!   become free. (Kafka tells every member at each new epoch; telling only those concerned keeps the others at
//!   work.) Told, it has its rebalance timeout to rejoin; joined, the same time to sync.

use std::collections::BTreeSet;

use anabranch_wire::ErrorCode;

use crate::group::api::{
    Caller, Heartbeat, JoinAnswer, JoinGroup, LeaveAnswer, LeaveGroup, Leaver, SyncAnswer, SyncGroup,
};
use crate::group::assign::is_eager;
use crate::group::coordinator::{Coordinator, Step, to_ms};
use crate::group::doors::CONSUMER;
use crate::group::elastic::{ClientFacts, Rejoin};
use crate::group::ids::member_id;
use crate::group::protocol::{Subscription, encode_assignment};
use crate::group::state::{ClassicMember, Held, Member, MemberState, Partitions, Progress};
use crate::group::timers::{TimerKey, TimerKind};
use crate::group::topics::Topics;

/// From this version on, a new dynamic member must come again with the id it is given (KIP-394).
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;

impl Coordinator {
    /// JoinGroup.
    pub(in crate::group) fn join_consumer(
        &mut self,
        step: &mut Step<'_>,
        fresh: [u8; 16],
        caller: &Caller,
        request: &JoinGroup,
    ) -> Result<JoinAnswer, ErrorCode> {
        let group = request.group_id.as_str();
        let subscription = read_subscription(request)?;
        self.check_room(request)?;
        let is_new = request.member_id.is_empty();
        let id = if is_new {
            let prefix = request.instance_id.as_ref().unwrap_or(&caller.client_id);
            member_id(prefix, fresh)
        } else {
            request.member_id.clone()
        };
        if is_new && request.instance_id.is_none() && request.version >= MEMBER_ID_REQUIRED_SINCE {
            return Ok(JoinAnswer {
                error: ErrorCode::MemberIdRequired,
                generation_id: -1,
                member_id: id,
                ..JoinAnswer::default()
            });
        }
        self.check_static(group, &id, is_new, request.instance_id.as_deref())?;
        let owned = owned_by(request, &subscription, step.topics);
        if !is_new && !owned.is_empty() && self.member(group, &id).is_none() {
            // It was expelled, has not noticed, and still works on partitions that may be somebody else's by now.
            return Err(ErrorCode::UnknownMemberId);
        }
        self.ensure_consumer(step, group);
        self.take_over(step, group, &id, request.instance_id.as_deref());
        let modern = self
            .consumer(group)
            .is_some_and(|consumer| consumer.modern && !consumer.members.is_empty());
        let old = self.member(group, &id).map(|state| state.member.clone());
        let member = to_member(old.as_ref(), &id, caller, request, &subscription);
        let subscription_changed =
            old.is_none_or(|old| old.topics != member.topics || old.regex != member.regex);
        if self.put_member(step, group, member) {
            self.next_epoch(step, group, modern);
        }
        let chains = self.chains_of(group, &id);
        self.reconcile(step, group, &id, Some(&owned), subscription_changed);
        // A client that keeps its positions over a rejoin has given nothing up by it: it shows that it did when it
        // heartbeats in a generation without the partition.
        let released = self
            .member(group, &id)
            .is_some_and(|state| state.member.recognised().habits().rejoin.proves_release());
        if released {
            if owned.is_empty() {
                self.renew_chains(step, group, (&id, chains), &id);
            }
            if self.finish_yields(step, group, &id) {
                self.reconcile(step, group, &id, Some(&owned), false);
            }
        }
        self.joined(step.now.mono_ms, group, &id);
        self.joined_on(caller, group, &id);
        let generation_id = self.member(group, &id).map_or(-1, |state| state.current.epoch);
        Ok(JoinAnswer {
            generation_id,
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name: request.protocols.first().map(|(name, _)| name.clone()),
            member_id: id,
            ..JoinAnswer::default()
        })
    }

    /// Who speaks on the connection from now on, and what it will ask: an eager member for all that it gets, unless it is
    /// known to keep its positions.
    fn joined_on(&mut self, caller: &Caller, group: &str, id: &str) {
        self.identities.bind(caller, group, id, true);
        let Some(state) = self
            .groups
            .get(group)
            .and_then(|group| group.consumer()?.members.get(id))
        else {
            return;
        };
        let keeps = state.member.recognised().habits().rejoin == Rejoin::Keeps;
        if !state.member.is_cooperative() && !keeps {
            self.identities
                .forgot_positions(group, id, &state.current.assigned);
        }
    }

    /// The deadlines of a member that has joined: its session, and the time it has to sync.
    fn joined(&mut self, now_ms: u64, group: &str, id: &str) {
        let Some(state) = self.member(group, id) else {
            return;
        };
        let sync_at = now_ms.saturating_add(to_ms(state.member.rebalance_timeout_ms));
        self.restart_session(now_ms, group, id);
        // A cooperative member that keeps rejoining without releasing what it must has only this much time in all.
        let releases = self
            .member(group, id)
            .is_some_and(|state| state.current.progress == Progress::Unrevoked);
        let release = TimerKey::new(group, id, TimerKind::Release);
        if releases {
            self.timers.set_if_absent(release, sync_at);
        } else {
            self.timers.cancel(&release);
        }
        self.timers.cancel(&TimerKey::new(group, id, TimerKind::Rejoin));
        self.timers
            .set(TimerKey::new(group, id, TimerKind::Sync), sync_at);
    }

    fn check_room(&self, request: &JoinGroup) -> Result<(), ErrorCode> {
        let Some(consumer) = self.consumer(&request.group_id) else {
            return Ok(());
        };
        let known = consumer.members.contains_key(&request.member_id)
            || request
                .instance_id
                .as_ref()
                .is_some_and(|id| consumer.instances.contains_key(id));
        if !known && consumer.members.len() >= self.settings.size_max {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        Ok(())
    }

    /// KIP-345: a static member that names its member id must be the one who holds the instance id.
    fn check_static(
        &self,
        group: &str,
        id: &str,
        is_new: bool,
        instance: Option<&str>,
    ) -> Result<(), ErrorCode> {
        let Some(instance) = instance else { return Ok(()) };
        if is_new {
            return Ok(());
        }
        match self
            .consumer(group)
            .and_then(|consumer| consumer.instances.get(instance))
        {
            None => Err(ErrorCode::UnknownMemberId),
            Some(holder) if holder != id => Err(ErrorCode::FencedInstanceId),
            Some(_) => Ok(()),
        }
    }

    /// A static member that comes without a member id takes over what its instance id had; nobody else notices.
    fn take_over(&mut self, step: &mut Step<'_>, group: &str, id: &str, instance: Option<&str>) {
        let holder = instance.and_then(|instance| self.consumer(group)?.instances.get(instance).cloned());
        if let Some(holder) = holder
            && holder != id
        {
            self.replace_member(step, group, &holder, id);
        }
    }

    /// SyncGroup.
    pub(in crate::group) fn sync_consumer(
        &mut self,
        step: &Step<'_>,
        request: &SyncGroup,
    ) -> Result<SyncAnswer, ErrorCode> {
        let (group, id) = (request.group_id.as_str(), request.member_id.as_str());
        let state = self.classic_member(group, id, request.instance_id.as_deref(), request.generation_id)?;
        let first = state
            .member
            .classic
            .as_ref()
            .and_then(|classic| classic.protocols.first());
        let other_type = request
            .protocol_type
            .as_ref()
            .is_some_and(|name| name != CONSUMER);
        let other_name = request
            .protocol_name
            .as_ref()
            .is_some_and(|name| Some(name) != first);
        if other_type || other_name {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        // A member that is about to release something gets an answer: only with it can it release.
        let releases = state.current.progress == Progress::Unrevoked;
        let assignment = encode_assignment(&by_name(&state.current.assigned, step.topics));
        let must_rejoin = self.must_rejoin(group, id);
        if must_rejoin && !releases {
            self.tell_to_rejoin(step.now.mono_ms, group, id);
            return Err(ErrorCode::RebalanceInProgress);
        }
        self.timers.cancel(&TimerKey::new(group, id, TimerKind::Sync));
        self.restart_session(step.now.mono_ms, group, id);
        Ok(SyncAnswer {
            error: ErrorCode::None,
            protocol_type: request.protocol_type.clone(),
            protocol_name: request.protocol_name.clone(),
            assignment,
        })
    }

    /// Heartbeat.
    pub(in crate::group) fn heartbeat_consumer(
        &mut self,
        step: &mut Step<'_>,
        request: &Heartbeat,
    ) -> ErrorCode {
        let now = step.now;
        let (group, id) = (request.group_id.as_str(), request.member_id.as_str());
        let member = self.classic_member(group, id, request.instance_id.as_deref(), request.generation_id);
        if let Err(error) = member {
            return error;
        }
        self.restart_session(now.mono_ms, group, id);
        self.finish_yields(step, group, id);
        if self.must_rejoin(group, id) {
            self.tell_to_rejoin(now.mono_ms, group, id);
            return ErrorCode::RebalanceInProgress;
        }
        self.timers.cancel(&TimerKey::new(group, id, TimerKind::Rejoin));
        ErrorCode::None
    }

    /// From the first time it is told, a member has its rebalance timeout to rejoin.
    fn tell_to_rejoin(&mut self, now_ms: u64, group: &str, id: &str) {
        let Some(state) = self.member(group, id) else {
            return;
        };
        let at = now_ms.saturating_add(to_ms(state.member.rebalance_timeout_ms));
        self.timers
            .set_if_absent(TimerKey::new(group, id, TimerKind::Rejoin), at);
    }

    /// The member that a classic request names, if it may speak.
    fn classic_member(
        &self,
        group: &str,
        id: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> Result<&MemberState, ErrorCode> {
        let consumer = self.consumer(group).ok_or(ErrorCode::UnknownMemberId)?;
        if let Some(instance) = instance {
            let holder = consumer
                .instances
                .get(instance)
                .ok_or(ErrorCode::UnknownMemberId)?;
            if holder != id {
                return Err(ErrorCode::FencedInstanceId);
            }
        }
        let state = consumer.members.get(id).ok_or(ErrorCode::UnknownMemberId)?;
        if !state.member.is_classic() {
            return Err(ErrorCode::UnknownMemberId);
        }
        if state.current.epoch != generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        Ok(state)
    }

    /// LeaveGroup, for any members of a group that the broker assigns (operators remove members with it, too).
    pub(in crate::group) fn leave_as_classic(
        &mut self,
        step: &mut Step<'_>,
        request: &LeaveGroup,
    ) -> LeaveAnswer {
        let group = request.group_id.as_str();
        if self.consumer(group).is_none() {
            return LeaveAnswer {
                error: ErrorCode::UnknownMemberId,
                members: Vec::new(),
            };
        }
        let mut leaving = BTreeSet::new();
        let mut members = Vec::with_capacity(request.members.len().min(64));
        for leaver in &request.members {
            let error = match self.find_leaver(group, leaver) {
                Ok(id) => {
                    leaving.insert(id);
                    ErrorCode::None
                }
                Err(error) => error,
            };
            members.push((leaver.clone(), error));
        }
        self.remove_members(step, group, &leaving);
        LeaveAnswer {
            error: ErrorCode::None,
            members,
        }
    }

    fn find_leaver(&self, group: &str, leaver: &Leaver) -> Result<String, ErrorCode> {
        let consumer = self.consumer(group).ok_or(ErrorCode::UnknownMemberId)?;
        let id = match &leaver.instance_id {
            None => &leaver.member_id,
            Some(instance) => {
                let holder = consumer
                    .instances
                    .get(instance)
                    .ok_or(ErrorCode::UnknownMemberId)?;
                if !leaver.member_id.is_empty() && *holder != leaver.member_id {
                    return Err(ErrorCode::FencedInstanceId);
                }
                holder
            }
        };
        if consumer.members.contains_key(id) {
            Ok(id.clone())
        } else {
            Err(ErrorCode::UnknownMemberId)
        }
    }
}

/// The first protocol's metadata; Kafka, too, takes all protocols to carry the same subscription.
fn read_subscription(request: &JoinGroup) -> Result<Subscription, ErrorCode> {
    let (_, metadata) = request
        .protocols
        .first()
        .ok_or(ErrorCode::InconsistentGroupProtocol)?;
    Subscription::parse(metadata).map_err(|_| ErrorCode::InconsistentGroupProtocol)
}

fn to_member(
    old: Option<&Member>,
    id: &str,
    caller: &Caller,
    request: &JoinGroup,
    subscription: &Subscription,
) -> Member {
    // Version 0 has no rebalance timeout: the session timeout is used for both, as in Kafka.
    let rebalance_timeout_ms = match request.rebalance_timeout_ms {
        timeout if timeout > 0 => timeout,
        _ => request.session_timeout_ms,
    };
    Member {
        member_id: id.to_owned(),
        instance_id: request.instance_id.clone(),
        rack_id: subscription
            .rack_id
            .clone()
            .or_else(|| old.and_then(|old| old.rack_id.clone())),
        client_id: caller.client_id.clone(),
        client_host: caller.host.clone(),
        client: ClientFacts::of(old, caller, request.version),
        rebalance_timeout_ms,
        topics: subscription.topics.iter().cloned().collect(),
        regex: None,
        assignor: None,
        classic: Some(ClassicMember {
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.iter().map(|(name, _)| name.clone()).collect(),
        }),
    }
}

/// What the joining member still works on. With an eager protocol in its list a client gives up everything before
/// it joins, whatever its subscription lists.
fn owned_by(request: &JoinGroup, subscription: &Subscription, topics: &dyn Topics) -> Partitions {
    let mut owned = Partitions::new();
    if request.protocols.iter().any(|(name, _)| is_eager(name)) {
        return owned;
    }
    for (name, partitions) in &subscription.owned {
        if let Some(topic) = topics.by_name(name) {
            owned.entry(topic.id).or_default().extend(partitions);
        }
    }
    owned
}

/// Assigned partitions by topic name; a topic deleted meanwhile has none, and its partitions are left out.
pub(in crate::group) fn by_name(assigned: &Held, topics: &dyn Topics) -> Vec<(String, Vec<i32>)> {
    let named = |(id, held): (&crate::ids::TopicId, &std::collections::BTreeMap<i32, i32>)| {
        let topic = topics.by_id(*id)?;
        Some((topic.name.to_owned(), held.keys().copied().collect()))
    };
    let mut named: Vec<_> = assigned.iter().filter_map(named).collect();
    named.sort();
    named
}
