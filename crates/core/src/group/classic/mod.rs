//! Groups with a client leader: Connect, schema registries, Streams, assignors that only the clients know.
//!
//! The barrier of Kafka's classic protocol. Members join and are parked until everybody is there (`join`); then a
//! generation is complete, one of them is the leader and gets everybody's metadata; it makes the plan and hands it in
//! with its SyncGroup, which ends the waiting of the others' (`sync`). Leaving, expiry and new members start over
//! (`phases`). The plan is opaque to the broker.
//!
//! The working state is volatile, as in Kafka. Durable is each generation, at its beginning (unsettled) and with its
//! plan (settled): an unsettled one comes back as a join phase.

mod join;
mod phases;
#[cfg(test)]
mod static_test;
mod sync;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_wire::ErrorCode;

use super::api::{JoinAnswer, JoinGroup, JoinedMember, Reply, SyncAnswer, Token};
use super::change::GroupChange;
use super::coordinator::{Coordinator, Step};
use super::settings::GroupSettings;
use super::state::{Generation, Kind, Seat};
use super::timers::{TimerKey, TimerKind, Timers};

/// Where a group stands between two generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// No members.
    #[default]
    Empty,
    /// Waits for everybody to join.
    Joining,
    /// Waits for the leader's plan.
    Syncing,
    /// Everybody has an assignment.
    Stable,
}

/// The working state of one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    pub(super) phase: Phase,
    pub(super) generation: i32,
    pub(super) protocol_type: String,
    pub(super) protocol: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) members: BTreeMap<String, Player>,
    /// Ids handed out to members that have not come back with them.
    pending: BTreeSet<String>,
    /// Members of this generation that have not synced yet.
    unsynced: BTreeSet<String>,
    /// The join phase began with an empty group: wait a little for company.
    is_first: bool,
    /// Somebody came since the wait began, and how long it may still be prolonged.
    company: bool,
    prolong_ms: u64,
    /// The generation is to be made durable.
    save: bool,
}

/// A member with its parked requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Player {
    pub(super) seat: Seat,
    join: Option<Token>,
    sync: Option<Token>,
    /// It does not know its id yet, so it cannot heartbeat.
    is_new: bool,
    /// It joined without an id and was not asked to come again: only its parked request knows it.
    is_anonymous: bool,
}

/// What a step of a barrier needs from outside.
struct Hall<'a, 'b> {
    group: &'a str,
    step: &'a mut Step<'b>,
    timers: &'a mut Timers,
    settings: &'a GroupSettings,
}

impl Hall<'_, '_> {
    fn set(&mut self, member: &str, kind: TimerKind, after_ms: u64) {
        let at = self.step.now.mono_ms.saturating_add(after_ms);
        self.timers.set(TimerKey::new(self.group, member, kind), at);
    }

    fn cancel(&mut self, member: &str, kind: TimerKind) {
        self.timers.cancel(&TimerKey::new(self.group, member, kind));
    }
}

impl Barrier {
    /// The working state after a restart.
    pub(super) fn restored(generation: &Generation) -> Self {
        let member = |(id, seat): (&String, &Seat)| {
            (
                id.clone(),
                Player {
                    seat: seat.clone(),
                    ..Player::default()
                },
            )
        };
        let phase = match (generation.members.is_empty(), generation.settled) {
            (true, _) => Phase::Empty,
            (false, true) => Phase::Stable,
            (false, false) => Phase::Joining,
        };
        Self {
            phase,
            generation: generation.generation,
            protocol_type: generation.protocol_type.clone(),
            protocol: generation.protocol.clone(),
            leader: generation.leader.clone(),
            members: generation.members.iter().map(member).collect(),
            ..Self::default()
        }
    }

    /// Nobody is a member or about to be one.
    pub(super) fn is_deserted(&self) -> bool {
        self.members.is_empty() && self.pending.is_empty()
    }

    /// Longest rebalance timeout among the members, milliseconds.
    pub(super) fn rebalance_timeout_ms(&self) -> u64 {
        let longest = self
            .members
            .values()
            .map(|player| player.seat.rebalance_timeout_ms)
            .max();
        super::coordinator::to_ms(longest.unwrap_or(0))
    }

    fn to_generation(&self) -> Generation {
        Generation {
            generation: self.generation,
            settled: matches!(self.phase, Phase::Stable | Phase::Empty),
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            members: self
                .members
                .iter()
                .map(|(id, player)| (id.clone(), player.seat.clone()))
                .collect(),
        }
    }

    fn holder(&self, instance: &str) -> Option<&String> {
        let holds = |player: &Player| player.seat.instance_id.as_deref() == Some(instance);
        self.members
            .iter()
            .find(|(_, player)| holds(player))
            .map(|(id, _)| id)
    }

    /// Whether a request may speak for a member (KIP-345).
    pub(super) fn check_member(&self, id: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.holder(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(holder) if holder != id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(id) {
            Ok(())
        } else {
            Err(ErrorCode::UnknownMemberId)
        }
    }

    fn restart_session(&self, hall: &mut Hall<'_, '_>, id: &str) {
        if let Some(player) = self.members.get(id) {
            hall.set(
                id,
                TimerKind::Session,
                super::coordinator::to_ms(player.seat.session_timeout_ms),
            );
        }
    }

    /// Protocols that every member supports.
    fn common_protocols(&self) -> BTreeSet<&str> {
        let mut all = self.members.values().map(|player| names(&player.seat));
        let Some(first) = all.next() else {
            return BTreeSet::new();
        };
        all.fold(first, |common, names| {
            common.intersection(&names).copied().collect()
        })
    }

    /// The protocol that most members prefer among the common ones; the first by name if votes are equal.
    fn elect_protocol(&self) -> Option<String> {
        let common = self.common_protocols();
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for player in self.members.values() {
            let vote = player
                .seat
                .protocols
                .iter()
                .map(|(name, _)| name.as_str())
                .find(|n| common.contains(n));
            if let Some(name) = vote {
                *votes.entry(name).or_default() += 1;
            }
        }
        let most = votes.values().max().copied()?;
        votes
            .into_iter()
            .find(|(_, count)| *count == most)
            .map(|(name, _)| name.to_owned())
    }

    /// What a member is told about the generation; the leader also sees everybody's metadata.
    fn generation_for(&self, id: &str) -> JoinAnswer {
        let is_leader = self.leader.as_deref() == Some(id);
        JoinAnswer {
            error: ErrorCode::None,
            generation_id: self.generation,
            protocol_type: Some(self.protocol_type.clone()),
            protocol_name: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: id.to_owned(),
            members: if is_leader { self.roll() } else { Vec::new() },
        }
    }

    fn roll(&self) -> Vec<JoinedMember> {
        let chosen = self.protocol.as_deref();
        let joined = |(id, player): (&String, &Player)| JoinedMember {
            member_id: id.clone(),
            instance_id: player.seat.instance_id.clone(),
            metadata: player
                .seat
                .protocols
                .iter()
                .find(|(name, _)| Some(name.as_str()) == chosen)
                .map(|(_, metadata)| metadata.clone())
                .unwrap_or_default(),
        };
        self.members.iter().map(joined).collect()
    }
}

fn names(seat: &Seat) -> BTreeSet<&str> {
    seat.protocols.iter().map(|(name, _)| name.as_str()).collect()
}

impl Coordinator {
    /// Runs one step of a group's barrier, and makes durable what it wants to be.
    fn at_barrier<T>(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        act: impl FnOnce(&mut Barrier, &mut Hall<'_, '_>) -> T,
    ) -> T {
        let mut barrier = self.take_barrier(group);
        let mut hall = Hall {
            group,
            step,
            timers: &mut self.timers,
            settings: &self.settings,
        };
        let result = act(&mut barrier, &mut hall);
        if std::mem::take(&mut barrier.save) {
            let change = GroupChange::Generation {
                group: group.to_owned(),
                generation: barrier.to_generation(),
                empty_since_ms: barrier.members.is_empty().then_some(step.now.wall_ms),
            };
            self.record(step, change);
        }
        if !barrier.is_deserted() {
            self.barriers.insert(group.to_owned(), barrier);
        }
        result
    }

    /// The working state of a group; one without a former generation goes on from the epoch it has.
    fn take_barrier(&mut self, group: &str) -> Barrier {
        if let Some(barrier) = self.barriers.remove(group) {
            return barrier;
        }
        match self.groups.get(group).map(|group| &group.kind) {
            Some(Kind::Classic(generation)) => Barrier::restored(generation),
            Some(Kind::Consumer(consumer)) => Barrier {
                generation: consumer.epoch,
                ..Barrier::default()
            },
            Some(Kind::Simple) | None => Barrier::default(),
        }
    }

    /// The client of a parked request has disconnected. Its request is forgotten; a member that was never told its
    /// id can not come back as the same, so it goes, and the others do not wait for it.
    pub fn disconnected(
        &mut self,
        now: crate::ids::Now,
        topics: &dyn super::topics::Topics,
        token: Token,
    ) -> super::coordinator::Effects {
        let mut step = Step::new(now, topics);
        let parked = |player: &Player| player.join == Some(token) || player.sync == Some(token);
        let found = self.barriers.iter().find_map(|(group, barrier)| {
            let (id, _) = barrier.members.iter().find(|(_, player)| parked(player))?;
            Some((group.clone(), id.clone()))
        });
        if let Some((group, id)) = found {
            self.at_barrier(&mut step, &group, |barrier, hall| {
                barrier.forget_request(hall, &id, token);
            });
        }
        step.effects
    }

    /// A deadline of a group with a client leader.
    pub(super) fn barrier_timer(&mut self, step: &mut Step<'_>, key: &TimerKey) {
        self.at_barrier(step, &key.group, |barrier, hall| match key.kind {
            TimerKind::Session => barrier.session_over(hall, &key.member),
            TimerKind::Pending => barrier.pending_over(hall, &key.member),
            TimerKind::JoinPhase => barrier.join_phase_over(hall),
            TimerKind::SyncPhase => barrier.sync_phase_over(hall),
            TimerKind::Release | TimerKind::Rejoin | TimerKind::Sync => {}
        });
    }
}

/// Answers a parked request that another one of the same member has replaced.
fn replaced_join(token: Token, id: &str) -> Reply {
    let answer = super::doors::refused_join(ErrorCode::RebalanceInProgress, id);
    Reply {
        token,
        answer: super::api::Answer::Join(answer),
    }
}

fn refused_sync(error: ErrorCode) -> SyncAnswer {
    SyncAnswer {
        error,
        ..SyncAnswer::default()
    }
}

/// The rebalance timeout of a request; version 0 has none, and the session timeout is used.
fn rebalance_timeout_ms(request: &JoinGroup) -> i32 {
    match request.rebalance_timeout_ms {
        timeout if timeout > 0 => timeout,
        _ => request.session_timeout_ms,
    }
}
