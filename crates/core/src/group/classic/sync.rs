//! SyncGroup, Heartbeat and LeaveGroup at the barrier.

use std::collections::BTreeMap;

use anabranch_wire::ErrorCode;
use bytes::Bytes;

use super::{Barrier, Hall, Phase, refused_sync};
use crate::group::api::{Heartbeat, LeaveAnswer, LeaveGroup, Leaver, SyncAnswer, SyncGroup, Token};
use crate::group::coordinator::{Coordinator, Step};
use crate::group::timers::TimerKind;

impl Coordinator {
    /// SyncGroup.
    pub(in crate::group) fn sync_barrier(&mut self, step: &mut Step<'_>, token: Token, request: &SyncGroup) {
        self.at_barrier(step, &request.group_id, |barrier, hall| {
            if let Err(error) = barrier.sync(hall, token, request) {
                hall.step.reply_sync(token, refused_sync(error));
            }
        });
    }

    /// Heartbeat.
    pub(in crate::group) fn heartbeat_barrier(
        &mut self,
        step: &mut Step<'_>,
        request: &Heartbeat,
    ) -> ErrorCode {
        self.at_barrier(step, &request.group_id, |barrier, hall| {
            let checked = barrier.check_generation(
                &request.member_id,
                request.instance_id.as_deref(),
                request.generation_id,
            );
            if let Err(error) = checked {
                return error;
            }
            barrier.restart_session(hall, &request.member_id);
            match barrier.phase {
                Phase::Empty => ErrorCode::UnknownMemberId,
                Phase::Joining => ErrorCode::RebalanceInProgress,
                Phase::Syncing | Phase::Stable => ErrorCode::None,
            }
        })
    }

    /// LeaveGroup.
    pub(in crate::group) fn leave_barrier(
        &mut self,
        step: &mut Step<'_>,
        request: &LeaveGroup,
    ) -> LeaveAnswer {
        self.at_barrier(step, &request.group_id, |barrier, hall| {
            let leave = |leaver: &Leaver| {
                let found = barrier.find_leaver(leaver);
                let error = found.as_ref().err().copied().unwrap_or_default();
                if let Ok(id) = found {
                    barrier.remove_member(hall, &id);
                }
                (leaver.clone(), error)
            };
            LeaveAnswer {
                error: ErrorCode::None,
                members: request.members.iter().map(leave).collect(),
            }
        })
    }
}

impl Barrier {
    fn sync(&mut self, hall: &mut Hall<'_, '_>, token: Token, request: &SyncGroup) -> Result<(), ErrorCode> {
        let id = request.member_id.as_str();
        self.check_generation(id, request.instance_id.as_deref(), request.generation_id)?;
        let other_type = request
            .protocol_type
            .as_ref()
            .is_some_and(|name| *name != self.protocol_type);
        let other_name = request.protocol_name.is_some() && request.protocol_name != self.protocol;
        if other_type || other_name {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        match self.phase {
            Phase::Empty => Err(ErrorCode::UnknownMemberId),
            Phase::Joining => Err(ErrorCode::RebalanceInProgress),
            Phase::Syncing => {
                self.take_plan(hall, token, request)?;
                self.has_synced(hall, id);
                Ok(())
            }
            Phase::Stable => {
                self.has_synced(hall, id);
                self.restart_session(hall, id);
                hall.step.reply_sync(token, self.assignment_for(id));
                Ok(())
            }
        }
    }

    /// Parks the request; the leader's brings the plan and ends all waiting.
    fn take_plan(
        &mut self,
        hall: &mut Hall<'_, '_>,
        token: Token,
        request: &SyncGroup,
    ) -> Result<(), ErrorCode> {
        let is_leader = self.leader.as_deref() == Some(request.member_id.as_str());
        let size: usize = request.assignments.iter().map(|(_, bytes)| bytes.len()).sum();
        if is_leader && size > hall.settings.assignment_bytes_max {
            return Err(ErrorCode::InvalidRequest);
        }
        if let Some(player) = self.members.get_mut(&request.member_id)
            && let Some(old) = player.sync.replace(token)
            && old != token
        {
            hall.step
                .reply_sync(old, refused_sync(ErrorCode::RebalanceInProgress));
        }
        if is_leader {
            let plan: BTreeMap<&str, &Bytes> = request
                .assignments
                .iter()
                .map(|(id, bytes)| (id.as_str(), bytes))
                .collect();
            for (id, player) in &mut self.members {
                player.seat.assignment = plan
                    .get(id.as_str())
                    .map(|bytes| (*bytes).clone())
                    .unwrap_or_default();
            }
            self.phase = Phase::Stable;
            self.save = true;
            self.answer_syncs(hall, ErrorCode::None);
        }
        Ok(())
    }

    fn has_synced(&mut self, hall: &mut Hall<'_, '_>, id: &str) {
        self.unsynced.remove(id);
        if self.unsynced.is_empty() {
            hall.cancel("", TimerKind::SyncPhase);
        }
    }

    pub(super) fn assignment_for(&self, id: &str) -> SyncAnswer {
        SyncAnswer {
            error: ErrorCode::None,
            protocol_type: Some(self.protocol_type.clone()),
            protocol_name: self.protocol.clone(),
            assignment: self
                .members
                .get(id)
                .map(|player| player.seat.assignment.clone())
                .unwrap_or_default(),
        }
    }

    pub(in crate::group) fn check_generation(
        &self,
        id: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> Result<(), ErrorCode> {
        self.check_member(id, instance)?;
        if generation == self.generation {
            Ok(())
        } else {
            Err(ErrorCode::IllegalGeneration)
        }
    }

    fn find_leaver(&self, leaver: &Leaver) -> Result<String, ErrorCode> {
        if leaver.member_id.is_empty() {
            let instance = leaver.instance_id.as_ref().ok_or(ErrorCode::UnknownMemberId)?;
            return self.holder(instance).cloned().ok_or(ErrorCode::UnknownMemberId);
        }
        if !self.pending.contains(&leaver.member_id) {
            self.check_member(&leaver.member_id, leaver.instance_id.as_deref())?;
        }
        Ok(leaver.member_id.clone())
    }
}
