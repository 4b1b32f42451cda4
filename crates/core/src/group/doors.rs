//! The classic requests on their way in: what is checked for every group, and which kind of group answers.
//!
//! A group is of the kind of its members. An empty or new one takes the kind of whoever joins first: consumers whose
//! first protocol is known here get a group that the broker assigns; everybody else gets one with a client leader.

use anabranch_wire::ErrorCode;

use super::api::{
    Caller, Heartbeat, JoinAnswer, JoinGroup, LeaveAnswer, LeaveGroup, SyncAnswer, SyncGroup, Token,
};
use super::assign::Assignor;
use super::coordinator::{Coordinator, Effects, Step};
use super::protocol::Subscription;
use super::topics::Topics;
use crate::ids::Now;

/// The protocol type of consumers.
pub(super) const CONSUMER: &str = "consumer";

/// Who answers a JoinGroup.
enum Host {
    /// The broker assigns.
    Broker,
    /// A client leads.
    Leader,
}

impl Coordinator {
    /// Handles JoinGroup. The answer comes as a reply under `token`: at once where the broker assigns, else when the
    /// join phase ends. `fresh` becomes the id of a new member.
    pub fn join(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        fresh: [u8; 16],
        token: Token,
        caller: &Caller,
        request: &JoinGroup,
    ) -> Effects {
        let mut step = Step::new(now, topics);
        let done = self
            .check_join(request)
            .and_then(|()| self.host(&mut step, request));
        match done {
            Err(error) => step.reply_join(token, refused_join(error, &request.member_id)),
            Ok(Host::Broker) => {
                let answer = self
                    .join_consumer(&mut step, fresh, &self.with_software(caller), request)
                    .unwrap_or_else(|error| refused_join(error, &request.member_id));
                step.reply_join(token, answer);
            }
            Ok(Host::Leader) => {
                self.end_divisions(&mut step, &request.group_id, "a client leads the group now");
                self.join_barrier(&mut step, fresh, token, caller, request);
            }
        }
        step.effects
    }

    /// Handles SyncGroup. The answer comes as a reply under `token`: at once, or when the leader has sent its plan.
    pub fn sync(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        token: Token,
        caller: &Caller,
        request: &SyncGroup,
    ) -> Effects {
        let mut step = Step::new(now, topics);
        let group = request.group_id.as_str();
        if self.is_barrier_occupied(group) {
            self.sync_barrier(&mut step, token, request);
        } else {
            let answer = match self.check_group_id(group) {
                Err(error) => Err(error),
                Ok(()) => self.sync_consumer(&step, request),
            };
            self.heard(caller, group, &request.member_id);
            let refused = |error| SyncAnswer {
                error,
                ..SyncAnswer::default()
            };
            step.reply_sync(token, answer.unwrap_or_else(refused));
        }
        step.effects
    }

    /// Handles Heartbeat.
    pub fn heartbeat(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        caller: &Caller,
        request: &Heartbeat,
    ) -> (ErrorCode, Effects) {
        let mut step = Step::new(now, topics);
        let error = match self.check_group_id(&request.group_id) {
            Err(error) => error,
            Ok(()) if self.is_barrier_occupied(&request.group_id) => {
                self.heartbeat_barrier(&mut step, request)
            }
            Ok(()) => {
                self.heard(caller, &request.group_id, &request.member_id);
                self.heartbeat_consumer(&mut step, request)
            }
        };
        (error, step.effects)
    }

    /// Handles LeaveGroup. Others' parked requests may be answered by it.
    pub fn leave(&mut self, now: Now, topics: &dyn Topics, request: &LeaveGroup) -> (LeaveAnswer, Effects) {
        let mut step = Step::new(now, topics);
        let answer = match self.check_group_id(&request.group_id) {
            Err(error) => LeaveAnswer {
                error,
                members: Vec::new(),
            },
            Ok(()) if self.is_barrier_occupied(&request.group_id) => self.leave_barrier(&mut step, request),
            Ok(()) => self.leave_as_classic(&mut step, request),
        };
        (answer, step.effects)
    }

    /// A request of the group protocol came over a connection: if it names a member, that is who speaks there.
    pub(super) fn heard(&mut self, caller: &Caller, group: &str, member_id: &str) {
        if self.member(group, member_id).is_some() {
            self.identities.bind(caller, group, member_id, false);
        }
    }

    /// The checks of JoinGroup that need no state.
    fn check_join(&self, request: &JoinGroup) -> Result<(), ErrorCode> {
        let settings = &self.settings;
        self.check_group_id(&request.group_id)?;
        let bounds = settings.session_timeout_ms_min..=settings.session_timeout_ms_max;
        if !bounds.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        if request.protocol_type.is_empty() || request.protocols.is_empty() {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let longest = request
            .member_id
            .len()
            .max(request.instance_id.as_ref().map_or(0, String::len));
        let metadata: usize = request
            .protocols
            .iter()
            .map(|(name, bytes)| name.len() + bytes.len())
            .sum();
        let is_unnamed = request.instance_id.as_ref().is_some_and(String::is_empty);
        if longest > settings.member_id_bytes_max
            || metadata > settings.member_metadata_bytes_max
            || is_unnamed
        {
            return Err(ErrorCode::InvalidRequest);
        }
        if !self.has_room_for(&request.group_id) {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        Ok(())
    }

    /// Which kind of group answers; an answer that surprises gets a notice.
    fn host(&mut self, step: &mut Step<'_>, request: &JoinGroup) -> Result<Host, ErrorCode> {
        let group = request.group_id.as_str();
        if self.is_barrier_occupied(group) {
            return Ok(Host::Leader);
        }
        let is_consumer = request.protocol_type == CONSUMER;
        let known = |name: &str| Assignor::of_protocol(name).is_some();
        let first = request.protocols.first().map_or("", |(name, _)| name.as_str());
        if self
            .consumer(group)
            .is_some_and(|consumer| !consumer.members.is_empty())
        {
            if !is_consumer {
                return Err(ErrorCode::InconsistentGroupProtocol);
            }
            let any_known = request.protocols.iter().any(|(name, _)| known(name));
            if !any_known && has_user_data(request) {
                return Err(ErrorCode::InconsistentGroupProtocol);
            }
            if !known(first) {
                let text = format!(
                    "assignor {first:?} is not known; {:?} assigns, since the group's other members let the broker assign",
                    self.assignor(group).name()
                );
                self.notice_once(step, group, text);
            }
            return Ok(Host::Broker);
        }
        if is_consumer && known(first) {
            return Ok(Host::Broker);
        }
        if is_consumer && !has_user_data(request) && first != STREAMS {
            let text =
                format!("assignor {first:?} is not known and sends no data of its own; \"uniform\" assigns");
            self.notice_once(step, group, text);
            return Ok(Host::Broker);
        }
        if is_consumer {
            let text = format!("assignor {first:?} is not known here, so a client leads the group");
            self.notice_once(step, group, text);
        }
        Ok(Host::Leader)
    }
}

/// Kafka Streams' protocol name: its assignment carries tasks, so only its own leader can make it.
const STREAMS: &str = "stream";

/// Whether the member's first protocol carries data for a leader of its own; unreadable metadata counts as such.
fn has_user_data(request: &JoinGroup) -> bool {
    let Some((_, metadata)) = request.protocols.first() else {
        return false;
    };
    Subscription::parse(metadata).map_or(true, |subscription| {
        subscription.user_data.is_some_and(|data| !data.is_empty())
    })
}

pub(super) fn refused_join(error: ErrorCode, member_id: &str) -> JoinAnswer {
    JoinAnswer {
        error,
        generation_id: -1,
        member_id: member_id.to_owned(),
        ..JoinAnswer::default()
    }
}
