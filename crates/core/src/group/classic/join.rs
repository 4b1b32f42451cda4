//! JoinGroup at the barrier.

use std::collections::BTreeSet;

use anabranch_wire::ErrorCode;

use super::{Barrier, Hall, Phase, Player, rebalance_timeout_ms, replaced_join};
use crate::group::api::{Caller, JoinGroup, Token};
use crate::group::coordinator::{Coordinator, Step, to_ms};
use crate::group::doors::refused_join;
use crate::group::ids::member_id;
use crate::group::state::Seat;
use crate::group::timers::TimerKind;

/// From this version on, a new dynamic member must come again with the id it is given (KIP-394).
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;
/// From this version on, a leader may be told that it need not make a plan (KIP-814).
const SKIP_ASSIGNMENT_SINCE: i16 = 9;

impl Coordinator {
    /// JoinGroup.
    pub(in crate::group) fn join_barrier(
        &mut self,
        step: &mut Step<'_>,
        fresh: [u8; 16],
        token: Token,
        caller: &Caller,
        request: &JoinGroup,
    ) {
        self.at_barrier(step, &request.group_id, |barrier, hall| {
            if let Err(error) = barrier.join(hall, fresh, token, caller, request) {
                let id = if error == ErrorCode::GroupMaxSizeReached {
                    ""
                } else {
                    &request.member_id
                };
                hall.step.reply_join(token, refused_join(error, id));
            }
        });
    }
}

impl Barrier {
    fn join(
        &mut self,
        hall: &mut Hall<'_, '_>,
        fresh: [u8; 16],
        token: Token,
        caller: &Caller,
        request: &JoinGroup,
    ) -> Result<(), ErrorCode> {
        let id = request.member_id.as_str();
        if !self.accepts(id, hall.settings.size_max) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        if !self.supports(request) {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        if id.is_empty() {
            self.join_new(hall, fresh, token, caller, request);
            return Ok(());
        }
        if self.pending.contains(id) {
            if request.instance_id.is_some() {
                return Err(ErrorCode::InvalidRequest);
            }
            self.pending.remove(id);
            hall.cancel(id, TimerKind::Pending);
            self.add(hall, id, token, caller, request);
            return Ok(());
        }
        self.check_member(id, request.instance_id.as_deref())?;
        self.join_again(hall, token, request)
    }

    /// Somebody without a member id.
    fn join_new(
        &mut self,
        hall: &mut Hall<'_, '_>,
        fresh: [u8; 16],
        token: Token,
        caller: &Caller,
        request: &JoinGroup,
    ) {
        let prefix = request.instance_id.as_ref().unwrap_or(&caller.client_id);
        let id = member_id(prefix, fresh);
        let holder = request
            .instance_id
            .as_ref()
            .and_then(|instance| self.holder(instance).cloned());
        if let Some(holder) = holder {
            self.replace(hall, &holder, &id, token, caller, request);
        } else if request.instance_id.is_none() && request.version >= MEMBER_ID_REQUIRED_SINCE {
            self.pending.insert(id.clone());
            hall.set(&id, TimerKind::Pending, to_ms(request.session_timeout_ms));
            hall.step
                .reply_join(token, refused_join(ErrorCode::MemberIdRequired, &id));
        } else {
            self.add(hall, &id, token, caller, request);
            if let Some(player) = self.members.get_mut(&id) {
                player.is_anonymous = request.instance_id.is_none();
            }
        }
    }

    /// A member that the group knows.
    fn join_again(
        &mut self,
        hall: &mut Hall<'_, '_>,
        token: Token,
        request: &JoinGroup,
    ) -> Result<(), ErrorCode> {
        let id = request.member_id.as_str();
        let Some(player) = self.members.get(id) else {
            return Err(ErrorCode::UnknownMemberId);
        };
        let same = player.seat.protocols == request.protocols;
        let is_leader = self.leader.as_deref() == Some(id);
        match self.phase {
            Phase::Empty => return Err(ErrorCode::UnknownMemberId),
            // It did not get the answer to its first try, or nothing of it has changed.
            Phase::Syncing if same => hall.step.reply_join(token, self.generation_for(id)),
            Phase::Stable if same && !is_leader => hall.step.reply_join(token, self.generation_for(id)),
            // A leader joins again to have everything assigned anew.
            Phase::Joining | Phase::Syncing | Phase::Stable => {
                self.update(hall, id, token, request);
                self.rebalance_or_complete(hall);
            }
        }
        Ok(())
    }

    fn add(&mut self, hall: &mut Hall<'_, '_>, id: &str, token: Token, caller: &Caller, request: &JoinGroup) {
        if self.members.is_empty() {
            self.protocol_type.clone_from(&request.protocol_type);
        }
        if self.phase == Phase::Joining && self.is_first {
            self.company = true;
        }
        let seat = Seat {
            instance_id: request.instance_id.clone(),
            client_id: caller.client_id.clone(),
            client_host: caller.host.clone(),
            rebalance_timeout_ms: rebalance_timeout_ms(request),
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.clone(),
            assignment: bytes::Bytes::new(),
        };
        let player = Player {
            seat,
            join: Some(token),
            is_new: true,
            ..Player::default()
        };
        if self.leader.is_none() {
            self.leader = Some(id.to_owned());
        }
        self.members.insert(id.to_owned(), player);
        // It cannot heartbeat while its request is parked, and may have gone away meanwhile.
        hall.set(
            id,
            TimerKind::Session,
            to_ms(hall.settings.new_member_join_timeout_ms),
        );
        self.rebalance_or_complete(hall);
    }

    /// Takes over what a known member now says, and parks its request.
    fn update(&mut self, hall: &mut Hall<'_, '_>, id: &str, token: Token, request: &JoinGroup) {
        let Some(player) = self.members.get_mut(id) else {
            return;
        };
        player.seat.protocols.clone_from(&request.protocols);
        player.seat.rebalance_timeout_ms = rebalance_timeout_ms(request);
        player.seat.session_timeout_ms = request.session_timeout_ms;
        if let Some(old) = player.join.replace(token)
            && old != token
        {
            hall.step.effects.replies.push(replaced_join(old, id));
        }
    }

    /// A static member is back under a new id (KIP-345). In a stable group nobody else need notice.
    fn replace(
        &mut self,
        hall: &mut Hall<'_, '_>,
        old: &str,
        new: &str,
        token: Token,
        caller: &Caller,
        request: &JoinGroup,
    ) {
        let Some(mut player) = self.members.remove(old) else {
            return;
        };
        for kind in [TimerKind::Session, TimerKind::Pending] {
            hall.cancel(old, kind);
        }
        if let Some(parked) = player.join.take() {
            hall.step
                .reply_join(parked, refused_join(ErrorCode::FencedInstanceId, old));
        }
        if let Some(parked) = player.sync.take() {
            hall.step
                .reply_sync(parked, super::refused_sync(ErrorCode::FencedInstanceId));
        }
        player.seat.client_id.clone_from(&caller.client_id);
        player.seat.client_host.clone_from(&caller.host);
        self.members.insert(new.to_owned(), player);
        if self.unsynced.remove(old) {
            self.unsynced.insert(new.to_owned());
        }
        let was_leader = self.leader.as_deref() == Some(old);
        if was_leader {
            self.leader = Some(new.to_owned());
        }
        self.update(hall, new, token, request);
        self.restart_session(hall, new);
        match self.phase {
            Phase::Stable if self.elect_protocol() == self.protocol => {
                if let Some(player) = self.members.get_mut(new) {
                    player.join = None;
                }
                self.save = true;
                let mut answer = self.generation_for(new);
                if was_leader && request.version >= SKIP_ASSIGNMENT_SINCE {
                    answer.skip_assignment = true;
                } else if was_leader {
                    // It must not make a plan that nobody waits for: name the leader it was.
                    answer.leader = old.to_owned();
                    answer.members.clear();
                }
                hall.step.reply_join(token, answer);
            }
            Phase::Stable | Phase::Syncing => self.prepare(hall),
            Phase::Joining | Phase::Empty => self.complete_if_all_joined(hall),
        }
    }

    /// Whether there is room for the sender.
    fn accepts(&self, id: &str, size_max: usize) -> bool {
        let waiting = self
            .members
            .values()
            .filter(|player| player.join.is_some())
            .count();
        let room = |taken: usize| taken + self.pending.len() < size_max || self.pending.contains(id);
        match self.phase {
            Phase::Empty => room(0),
            Phase::Joining => {
                self.members.get(id).is_some_and(|player| player.join.is_some()) || room(waiting)
            }
            Phase::Syncing | Phase::Stable => self.members.contains_key(id) || room(self.members.len()),
        }
    }

    /// Whether the sender has the group's protocol type, and a protocol that all members have.
    fn supports(&self, request: &JoinGroup) -> bool {
        if self.members.is_empty() {
            return true;
        }
        let common: BTreeSet<&str> = self.common_protocols();
        self.protocol_type == request.protocol_type
            && request
                .protocols
                .iter()
                .any(|(name, _)| common.contains(name.as_str()))
    }
}
