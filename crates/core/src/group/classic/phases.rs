//! From one generation to the next.

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::{Barrier, Hall, Phase, refused_sync};
use crate::group::api::Token;
use crate::group::coordinator::to_ms;
use crate::group::doors::refused_join;
use crate::group::timers::TimerKind;

impl Barrier {
    /// Starts over if the group is between two join phases; else looks whether the present one is complete.
    pub(super) fn rebalance_or_complete(&mut self, hall: &mut Hall<'_, '_>) {
        match self.phase {
            Phase::Empty | Phase::Syncing | Phase::Stable => self.prepare(hall),
            Phase::Joining => self.complete_if_all_joined(hall),
        }
    }

    /// Opens the join phase.
    pub(super) fn prepare(&mut self, hall: &mut Hall<'_, '_>) {
        if self.phase == Phase::Syncing {
            for player in self.members.values_mut() {
                player.seat.assignment = Bytes::new();
            }
            self.answer_syncs(hall, ErrorCode::RebalanceInProgress);
        }
        hall.cancel("", TimerKind::SyncPhase);
        self.unsynced.clear();
        self.is_first = self.phase == Phase::Empty;
        self.phase = Phase::Joining;
        let delay = to_ms(hall.settings.initial_rebalance_delay_ms);
        if self.is_first && delay > 0 {
            self.company = false;
            self.prolong_ms = self.rebalance_timeout_ms().saturating_sub(delay);
            hall.set("", TimerKind::JoinPhase, delay);
        } else if self.is_first || self.have_all_joined() {
            self.complete(hall);
        } else {
            hall.set("", TimerKind::JoinPhase, self.rebalance_timeout_ms());
        }
    }

    pub(super) fn complete_if_all_joined(&mut self, hall: &mut Hall<'_, '_>) {
        if self.phase == Phase::Joining && !self.is_first && self.have_all_joined() {
            self.complete(hall);
        }
    }

    fn have_all_joined(&self) -> bool {
        self.pending.is_empty() && self.members.values().all(|player| player.join.is_some())
    }

    /// Ends the join phase: whoever has not come is out, unless it is a static member.
    fn complete(&mut self, hall: &mut Hall<'_, '_>) {
        hall.cancel("", TimerKind::JoinPhase);
        let late: Vec<String> = self
            .members
            .iter()
            .filter(|(_, player)| player.join.is_none() && player.seat.instance_id.is_none())
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.drop_member(hall, &id);
        }
        let present = |id: &String| self.members.get(id).is_some_and(|player| player.join.is_some());
        if !self.leader.as_ref().is_some_and(present) {
            self.leader = self
                .members
                .iter()
                .find(|(_, player)| player.join.is_some())
                .map(|(id, _)| id.clone());
        }
        if self.leader.is_none() && !self.members.is_empty() {
            // Only static members, and none has come: their sessions decide.
            hall.set("", TimerKind::JoinPhase, self.rebalance_timeout_ms());
            return;
        }
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.is_first = false;
        self.save = true;
        if self.members.is_empty() {
            self.phase = Phase::Empty;
            self.protocol = None;
            return;
        }
        self.phase = Phase::Syncing;
        self.protocol = self.elect_protocol();
        self.unsynced = self.members.keys().cloned().collect();
        let waiting: Vec<(String, Token)> = self
            .members
            .iter_mut()
            .filter_map(|(id, p)| Some((id.clone(), p.join.take()?)))
            .collect();
        for (id, token) in waiting {
            hall.step.reply_join(token, self.generation_for(&id));
            self.restart_session(hall, &id);
        }
        for player in self.members.values_mut() {
            player.is_new = false;
            player.is_anonymous = false;
        }
        hall.set("", TimerKind::SyncPhase, self.rebalance_timeout_ms());
    }

    /// Answers everybody who waits for the plan.
    pub(super) fn answer_syncs(&mut self, hall: &mut Hall<'_, '_>, error: ErrorCode) {
        let waiting: Vec<(String, Token)> = self
            .members
            .iter_mut()
            .filter_map(|(id, p)| Some((id.clone(), p.sync.take()?)))
            .collect();
        for (id, token) in waiting {
            let answer = if error.is_ok() {
                self.assignment_for(&id)
            } else {
                refused_sync(error)
            };
            hall.step.reply_sync(token, answer);
            self.restart_session(hall, &id);
        }
    }

    /// Takes a member out; its parked requests are refused.
    fn drop_member(&mut self, hall: &mut Hall<'_, '_>, id: &str) {
        let Some(player) = self.members.remove(id) else {
            return;
        };
        hall.timers.cancel_member(hall.group, id);
        self.unsynced.remove(id);
        if let Some(token) = player.join {
            hall.step
                .reply_join(token, refused_join(ErrorCode::UnknownMemberId, ""));
        }
        if let Some(token) = player.sync {
            hall.step
                .reply_sync(token, refused_sync(ErrorCode::UnknownMemberId));
        }
        if self.leader.as_deref() == Some(id) {
            self.leader = None;
        }
    }

    /// A member is gone: the others start over, or need wait for it no longer.
    pub(super) fn remove_member(&mut self, hall: &mut Hall<'_, '_>, id: &str) {
        let was_pending = self.pending.remove(id);
        if was_pending {
            hall.cancel(id, TimerKind::Pending);
        } else if self.members.contains_key(id) {
            self.drop_member(hall, id);
        } else {
            return;
        }
        match self.phase {
            Phase::Stable | Phase::Syncing if !was_pending => self.prepare(hall),
            Phase::Joining if self.have_all_joined() => self.complete(hall),
            _ => {}
        }
    }

    pub(super) fn session_over(&mut self, hall: &mut Hall<'_, '_>, id: &str) {
        let Some(player) = self.members.get(id) else {
            return;
        };
        // Whoever waits for the others cannot heartbeat and need not; a new member must not wait for ever.
        if !player.is_new && (player.join.is_some() || player.sync.is_some()) {
            self.restart_session(hall, id);
            return;
        }
        let text = format!("member {id} is expelled: it was not heard of for its session timeout");
        hall.step.notice(hall.group, text);
        self.remove_member(hall, id);
    }

    pub(super) fn pending_over(&mut self, hall: &mut Hall<'_, '_>, id: &str) {
        self.remove_member(hall, id);
    }

    pub(super) fn join_phase_over(&mut self, hall: &mut Hall<'_, '_>) {
        if self.phase != Phase::Joining {
            return;
        }
        if self.is_first && self.company && self.prolong_ms > 0 {
            let delay = to_ms(hall.settings.initial_rebalance_delay_ms).min(self.prolong_ms);
            self.company = false;
            self.prolong_ms -= delay;
            hall.set("", TimerKind::JoinPhase, delay);
        } else {
            self.complete(hall);
        }
    }

    pub(super) fn sync_phase_over(&mut self, hall: &mut Hall<'_, '_>) {
        if !matches!(self.phase, Phase::Syncing | Phase::Stable) || self.unsynced.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.unsynced) {
            hall.step.notice(
                hall.group,
                format!("member {id} is expelled: it joined and did not sync"),
            );
            self.drop_member(hall, &id);
        }
        self.prepare(hall);
    }

    /// The connection of a parked request is gone.
    pub(super) fn forget_request(&mut self, hall: &mut Hall<'_, '_>, id: &str, token: Token) {
        let Some(player) = self.members.get_mut(id) else {
            return;
        };
        if player.sync == Some(token) {
            player.sync = None;
        }
        if player.join == Some(token) {
            player.join = None;
            if player.is_anonymous {
                self.remove_member(hall, id);
            } else {
                player.is_new = false;
                self.restart_session(hall, id);
            }
        }
    }
}
