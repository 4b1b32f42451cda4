//! ConsumerGroupHeartbeat: members of the consumer protocol (KIP-848), version 0 and 1.

use std::collections::BTreeSet;

use anabranch_wire::ErrorCode;

use super::subscription::Regexes;
use crate::Refused;
use crate::group::api::{Caller, ConsumerHeartbeat, ConsumerHeartbeatAnswer};
use crate::group::assign::Assignor;
use crate::group::change::GroupChange;
use crate::group::coordinator::{Coordinator, Effects, Step, to_ms};
use crate::group::elastic::ClientFacts;
use crate::group::ids::member_id;
use crate::group::state::{Current, Held, Kind, Member, Partitions, Progress};
use crate::group::timers::{TimerKey, TimerKind};
use crate::group::topics::Topics;
use crate::ids::{Now, TopicId};

/// Joins, or joins again.
const JOIN: i32 = 0;
/// Leaves.
const LEAVE: i32 = -1;
/// A static member that means to come back under its instance id.
pub(in crate::group) const LEAVE_FOR_A_WHILE: i32 = -2;

impl Coordinator {
    /// Handles ConsumerGroupHeartbeat. `fresh` becomes the member id where the client has none (version 0).
    pub fn consumer_heartbeat(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        fresh: [u8; 16],
        caller: &Caller,
        request: &ConsumerHeartbeat,
    ) -> (Result<ConsumerHeartbeatAnswer, Refused>, Effects) {
        let mut step = Step::new(now, topics);
        let answer = self
            .check_heartbeat(request)
            .and_then(|()| match request.member_epoch {
                LEAVE | LEAVE_FOR_A_WHILE => self.leave_consumer(&mut step, request),
                _ => self.stay_in_consumer(&mut step, fresh, caller, request),
            });
        if let Ok(answer) = &answer
            && request.member_epoch >= JOIN
        {
            self.spoke_on(
                caller,
                &request.group_id,
                &answer.member_id,
                request.member_epoch == JOIN,
            );
        }
        (answer, step.effects)
    }

    /// The checks that need no state.
    fn check_heartbeat(&self, request: &ConsumerHeartbeat) -> Result<(), Refused> {
        let invalid = |text: &str| Err(Refused::new(ErrorCode::InvalidRequest, text));
        let is_empty = |value: &Option<String>| value.as_ref().is_some_and(String::is_empty);
        if request.group_id.is_empty() {
            return invalid("the group id is empty: name the group");
        }
        self.check_group_id(&request.group_id)
            .map_err(|code| Refused::new(code, "the group id is too long"))?;
        if request.member_id.is_empty() && (request.version >= 1 || request.member_epoch != JOIN) {
            return invalid("the member id is empty: only version 0 may join without one");
        }
        let longest = request
            .member_id
            .len()
            .max(request.instance_id.as_ref().map_or(0, String::len));
        if longest > self.settings.member_id_bytes_max {
            return invalid("the member id or instance id is too long");
        }
        if is_empty(&request.instance_id) || is_empty(&request.rack_id) {
            return invalid("the instance id or rack id is an empty string: leave it out instead");
        }
        match request.member_epoch {
            JOIN => {
                if request.rebalance_timeout_ms == -1 {
                    return invalid("the rebalance timeout is missing: a joining member must set it");
                }
                if request.owned.as_ref().is_none_or(|owned| !owned.is_empty()) {
                    return invalid("the owned partitions must be an empty list when joining");
                }
                if request.topic_names.is_none() && request.topic_regex.is_none() {
                    return invalid("neither topic names nor a regular expression are given when joining");
                }
            }
            LEAVE_FOR_A_WHILE if request.instance_id.is_none() => {
                return invalid("epoch -2 is for static members: set the instance id");
            }
            epoch if epoch < LEAVE_FOR_A_WHILE => return invalid("the member epoch is below -2"),
            _ => {}
        }
        if let Some(name) = &request.assignor
            && Assignor::of_server_name(name).is_none()
        {
            let text = format!("assignor {name:?} is not offered: use \"uniform\" or \"range\"");
            return Err(Refused::new(ErrorCode::UnsupportedAssignor, text));
        }
        match &request.topic_regex {
            Some(pattern) if !pattern.is_empty() => Regexes::check(pattern, &self.settings),
            _ => Ok(()),
        }
    }

    /// A heartbeat that joins or stays.
    fn stay_in_consumer(
        &mut self,
        step: &mut Step<'_>,
        fresh: [u8; 16],
        caller: &Caller,
        request: &ConsumerHeartbeat,
    ) -> Result<ConsumerHeartbeatAnswer, Refused> {
        let group = request.group_id.as_str();
        if self.is_keep_alive(caller, request) {
            self.restart_session(step.now.mono_ms, group, &request.member_id);
            return self.answer(step.topics, (group, &request.member_id), false, request);
        }
        self.open_to_consumers(step, request)?;
        let caller = &self.with_software(caller);
        let id = if request.member_id.is_empty() {
            member_id("", fresh)
        } else {
            request.member_id.clone()
        };
        self.identify(step, &id, request)?;
        let before = self.member(group, &id).cloned();
        let member = updated(before.as_ref().map(|state| &state.member), &id, caller, request);
        let subscription_changed = before
            .as_ref()
            .is_none_or(|old| old.member.topics != member.topics || old.member.regex != member.regex);
        let modern = self.consumer(group).is_some_and(|consumer| consumer.modern);
        if self.put_member(step, group, member) || !modern {
            self.next_epoch(step, group, true);
        }
        let owned = request.owned.as_ref().map(|owned| to_partitions(owned));
        self.reconcile(step, group, &id, owned.as_ref(), subscription_changed);
        if self.finish_yields(step, group, &id) {
            self.reconcile(step, group, &id, owned.as_ref(), false);
        }
        self.restart_session(step.now.mono_ms, group, &id);
        for kind in [TimerKind::Rejoin, TimerKind::Sync] {
            self.timers.cancel(&TimerKey::new(group, &id, kind));
        }
        let released_before = before.as_ref().map(|state| &state.current);
        self.watch_release_after(step.now.mono_ms, group, &id, released_before);
        let now = self.member(group, &id).map(|state| &state.current.assigned);
        let changed = before.as_ref().map(|old| &old.current.assigned) != now;
        self.answer(step.topics, (group, &id), changed, request)
    }

    /// The usual heartbeat: a settled member says that it is alive and nothing else.
    fn is_keep_alive(&self, caller: &Caller, request: &ConsumerHeartbeat) -> bool {
        let Some(consumer) = self.consumer(&request.group_id) else {
            return false;
        };
        let Some(state) = consumer.members.get(&request.member_id) else {
            return false;
        };
        let says_nothing = request.rebalance_timeout_ms == -1
            && request.topic_names.is_none()
            && request.topic_regex.is_none()
            && request.assignor.is_none()
            && request.rack_id.is_none()
            && request.owned.is_none();
        let (member, current) = (&state.member, &state.current);
        says_nothing
            && request.member_epoch > JOIN
            && request.member_epoch == current.epoch
            && current.epoch == consumer.epoch
            && current.progress == Progress::Stable
            && !member.is_classic()
            && (&member.client_id, &member.client_host) == (&caller.client_id, &caller.host)
            && (caller.software.is_none() || member.client.software == caller.software)
            && member.instance_id == request.instance_id
    }

    /// The group must be one for the broker to assign; only a joining member makes it one.
    fn open_to_consumers(&mut self, step: &mut Step<'_>, request: &ConsumerHeartbeat) -> Result<(), Refused> {
        let group = request.group_id.as_str();
        let not_found = |text: String| Err(Refused::new(ErrorCode::GroupIdNotFound, text));
        if self.is_barrier_occupied(group) {
            return not_found(format!(
                "group {group:?} has members whose own leader assigns partitions"
            ));
        }
        if request.member_epoch == JOIN {
            if !self.has_room_for(group) {
                let text = "the broker has its maximum of groups: delete some, or raise groups.max";
                return Err(Refused::new(ErrorCode::GroupMaxSizeReached, text));
            }
            self.check_size(request)?;
            self.ensure_consumer(step, group);
        } else if self.consumer(group).is_none() {
            return not_found(format!("there is no group {group:?}: join with epoch 0"));
        }
        Ok(())
    }

    fn check_size(&self, request: &ConsumerHeartbeat) -> Result<(), Refused> {
        let Some(consumer) = self.consumer(&request.group_id) else {
            return Ok(());
        };
        let known = consumer.members.contains_key(&request.member_id)
            || request
                .instance_id
                .as_ref()
                .is_some_and(|id| consumer.instances.contains_key(id));
        if !known && consumer.members.len() >= self.settings.size_max {
            let text = format!("the group has its maximum of {} members", self.settings.size_max);
            return Err(Refused::new(ErrorCode::GroupMaxSizeReached, text));
        }
        Ok(())
    }

    /// Finds out whether the sender is who it says, and lets a returning static member take over its place.
    fn identify(
        &mut self,
        step: &mut Step<'_>,
        id: &str,
        request: &ConsumerHeartbeat,
    ) -> Result<(), Refused> {
        let group = request.group_id.as_str();
        let joins = request.member_epoch == JOIN;
        let holder = request
            .instance_id
            .as_ref()
            .and_then(|instance| self.consumer(group)?.instances.get(instance).cloned());
        match (&request.instance_id, holder) {
            (Some(_), Some(holder)) if joins && holder != id => {
                let released = self.member(group, &holder).is_some_and(|state| {
                    state.member.is_classic() || state.current.epoch == LEAVE_FOR_A_WHILE
                });
                if !released {
                    let text = format!("member {holder} still holds the instance id");
                    return Err(Refused::new(ErrorCode::UnreleasedInstanceId, text));
                }
                self.replace_member(step, group, &holder, id);
                Ok(())
            }
            (Some(_), Some(holder)) if joins => self.rejoin_same(step, group, &holder),
            (Some(_), None) if joins => Ok(()),
            (Some(instance), None) => Err(Refused::new(
                ErrorCode::UnknownMemberId,
                format!("instance id {instance:?} is not known"),
            )),
            (Some(_), Some(holder)) if holder != id => {
                let text = format!("member {holder} has taken over the instance id");
                Err(Refused::new(ErrorCode::FencedInstanceId, text))
            }
            _ => self.check_epoch(group, id, request),
        }
    }

    /// A static member joins again under the id it had. If it had left for a while it starts at epoch 0.
    fn rejoin_same(&mut self, step: &mut Step<'_>, group: &str, id: &str) -> Result<(), Refused> {
        let Some(state) = self.member(group, id) else {
            return Ok(());
        };
        if state.current.epoch == LEAVE_FOR_A_WHILE || state.member.is_classic() {
            self.replace_member(step, group, id, id);
        }
        Ok(())
    }

    /// KIP-848: the epoch must be the member's, or the one before while the answer may have been lost.
    fn check_epoch(&self, group: &str, id: &str, request: &ConsumerHeartbeat) -> Result<(), Refused> {
        let epoch = request.member_epoch;
        if epoch == JOIN {
            return Ok(());
        }
        let Some(state) = self.member(group, id) else {
            let text = format!("member {id} is not in group {group:?}: join with epoch 0");
            return Err(Refused::new(ErrorCode::UnknownMemberId, text));
        };
        let current = &state.current;
        let answer_lost = epoch == current.previous_epoch
            && request
                .owned
                .as_ref()
                .is_some_and(|owned| is_subset(owned, &current.assigned));
        if epoch == current.epoch || (epoch < current.epoch && answer_lost) {
            return Ok(());
        }
        let text = format!(
            "member epoch {epoch} is not {}, the one the coordinator knows: give up all partitions and join with epoch 0",
            current.epoch
        );
        Err(Refused::new(ErrorCode::FencedMemberEpoch, text))
    }

    /// The answer names the assignment if the member asks for it by a full request, or if it has changed.
    fn answer(
        &self,
        topics: &dyn Topics,
        (group, id): (&str, &str),
        changed: bool,
        request: &ConsumerHeartbeat,
    ) -> Result<ConsumerHeartbeatAnswer, Refused> {
        let Some(state) = self.member(group, id) else {
            return Err(Refused::new(
                ErrorCode::UnknownMemberId,
                "the member is not in the group",
            ));
        };
        let is_full = request.rebalance_timeout_ms != -1
            && (request.topic_names.is_some() || request.topic_regex.is_some())
            && request.owned.is_some();
        let assignment = (request.member_epoch == JOIN || is_full || changed).then(|| {
            let assigned = state.current.assigned.iter();
            assigned
                .map(|(topic, held)| (*topic, held.keys().copied().collect()))
                .collect()
        });
        Ok(ConsumerHeartbeatAnswer {
            member_id: id.to_owned(),
            member_epoch: state.current.epoch,
            heartbeat_interval_ms: self.heartbeat_interval_ms(topics, group),
            assignment,
        })
    }

    /// Epochs -1 and -2.
    fn leave_consumer(
        &mut self,
        step: &mut Step<'_>,
        request: &ConsumerHeartbeat,
    ) -> Result<ConsumerHeartbeatAnswer, Refused> {
        let (group, id) = (request.group_id.as_str(), request.member_id.as_str());
        let Some(consumer) = self.consumer(group) else {
            return Err(Refused::new(
                ErrorCode::GroupIdNotFound,
                format!("there is no group {group:?}"),
            ));
        };
        if let Some(instance) = &request.instance_id {
            match consumer.instances.get(instance) {
                None => {
                    let text = format!("instance id {instance:?} is not known");
                    return Err(Refused::new(ErrorCode::UnknownMemberId, text));
                }
                Some(holder) if holder != id => {
                    let text = format!("member {holder} has taken over the instance id");
                    return Err(Refused::new(ErrorCode::FencedInstanceId, text));
                }
                Some(_) => {}
            }
        }
        let Some(state) = consumer.members.get(id) else {
            return Err(Refused::new(
                ErrorCode::UnknownMemberId,
                format!("member {id} is not in the group"),
            ));
        };
        if request.member_epoch == LEAVE_FOR_A_WHILE {
            let before = state.current.clone();
            self.timers.cancel(&TimerKey::new(group, id, TimerKind::Release));
            self.record(
                step,
                GroupChange::Current {
                    group: group.to_owned(),
                    member_id: id.to_owned(),
                    current: resting(&before),
                },
            );
            // What it was asked to release it has released by that.
            self.held_changed(step, group, id, &before);
        } else {
            self.remove_members(step, group, &BTreeSet::from([id.to_owned()]));
        }
        Ok(ConsumerHeartbeatAnswer {
            member_id: id.to_owned(),
            member_epoch: request.member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        })
    }

    /// Starts or stops the time that a member of the consumer protocol has for releasing partitions, if its last
    /// step changed that; the time runs from the moment at which there was something new to release.
    fn watch_release_after(&mut self, now_ms: u64, group: &str, id: &str, before: Option<&Current>) {
        let now = self.member(group, id).map(|state| &state.current);
        if before != now {
            self.watch_release(now_ms, group, id);
        }
    }

    /// The same, from now on.
    pub(in crate::group) fn watch_release(&mut self, now_ms: u64, group: &str, id: &str) {
        let Some(state) = self.member(group, id) else {
            return;
        };
        let key = TimerKey::new(group, id, TimerKind::Release);
        if state.current.progress == Progress::Unrevoked {
            let at = now_ms.saturating_add(to_ms(state.member.rebalance_timeout_ms));
            self.timers.set(key, at);
        } else {
            self.timers.cancel(&key);
        }
    }

    /// Whether the group has members with a leader of their own.
    pub(in crate::group) fn is_barrier_occupied(&self, group: &str) -> bool {
        match self.barriers.get(group) {
            Some(barrier) => !barrier.is_deserted(),
            None => self.groups.get(group).is_some_and(
                |group| matches!(&group.kind, Kind::Classic(generation) if !generation.members.is_empty()),
            ),
        }
    }
}

/// A static member that left for a while keeps its partitions; epochs start anew when it comes back.
fn resting(current: &Current) -> Current {
    let mut assigned = current.assigned.clone();
    for epoch in assigned.values_mut().flat_map(|held| held.values_mut()) {
        *epoch = 0;
    }
    Current {
        epoch: LEAVE_FOR_A_WHILE,
        previous_epoch: current.epoch,
        progress: current.progress,
        assigned,
        revoking: Held::new(),
    }
}

/// The member as the request leaves it: a missing field means unchanged.
fn updated(old: Option<&Member>, id: &str, caller: &Caller, request: &ConsumerHeartbeat) -> Member {
    let mut member = old.cloned().unwrap_or_default();
    id.clone_into(&mut member.member_id);
    member.client = ClientFacts::of(old, caller, request.version);
    member.client_id.clone_from(&caller.client_id);
    member.client_host.clone_from(&caller.host);
    member.classic = None;
    if request.instance_id.is_some() {
        member.instance_id.clone_from(&request.instance_id);
    }
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if request.assignor.is_some() {
        member.assignor.clone_from(&request.assignor);
    }
    if let Some(names) = &request.topic_names {
        member.topics = names.iter().cloned().collect();
    }
    if let Some(pattern) = &request.topic_regex {
        member.regex = Some(pattern.clone()).filter(|pattern| !pattern.is_empty());
    }
    member
}

fn to_partitions(owned: &[(TopicId, Vec<i32>)]) -> Partitions {
    let mut partitions = Partitions::new();
    for (topic, owned) in owned {
        partitions.entry(*topic).or_default().extend(owned);
    }
    partitions
}

fn is_subset(owned: &[(TopicId, Vec<i32>)], assigned: &Held) -> bool {
    owned.iter().all(|(topic, partitions)| {
        partitions.is_empty()
            || assigned
                .get(topic)
                .is_some_and(|held| partitions.iter().all(|partition| held.contains_key(partition)))
    })
}
