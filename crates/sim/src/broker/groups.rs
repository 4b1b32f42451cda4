//! Requests about groups: from the model's messages to the coordinator and back.

use std::collections::BTreeSet;

use anabranch_core::group::{
    Answer as GroupAnswer, Caller, CommitAnswer, Connection, ConsumerHeartbeat, OffsetCommit, Token, TopicRef,
};
use anabranch_core::node::Node;
use anabranch_wire::ErrorCode;

use super::{Process, Slot};
use crate::message::{Answer, Request, Tp};
use crate::net::{CallId, Lane};
use crate::oracle::commits::Key;
use crate::oracle::ownership::Ownership;
use crate::run::Ctx;
use crate::sights::Sight;

/// An answer of the coordinator. Assignments name topics; the ids that the names have at this moment go with them.
pub(super) fn answer_of(node: &Node, answer: GroupAnswer) -> Answer {
    match answer {
        GroupAnswer::Join(answer) => Answer::Joined(answer),
        GroupAnswer::Sync(answer) => Answer::Synced(
            answer,
            node.topics()
                .map(|topic| (topic.name.clone(), topic.id))
                .collect(),
        ),
    }
}

impl Process {
    /// Who speaks: on the connection of the lane, which a client opens with its first request, or on one that has broken.
    pub(super) fn caller(&mut self, ctx: &Ctx<'_>, lane: Lane, call: CallId) -> Caller {
        let introduction = ctx.net.introduction(lane.0);
        let mut caller = Caller {
            client_id: introduction.client_id,
            host: introduction.host,
            connection: Connection(self.last_connection + 1),
            software: introduction.software,
        };
        if ctx.net.is_late(call) {
            self.last_connection += 1;
            return caller;
        }
        match self.connections.get(&lane) {
            Some(connection) => caller.connection = *connection,
            None => {
                self.last_connection += 1;
                self.connections.insert(lane, caller.connection);
                self.engine.introduced(&caller);
            }
        }
        caller
    }

    /// A request that the coordinator answers; others come back.
    pub(super) fn handle_group(
        &mut self,
        ctx: &mut Ctx<'_>,
        lane: Lane,
        call: CallId,
        request: Request,
    ) -> Option<Request> {
        let now = ctx.world.now();
        let fresh = ctx.world.rng.id();
        let caller = self.caller(ctx, lane, call);
        let (answer, outcome) = match request {
            Request::Join(request) => {
                let (token, outcome) = self.engine.group_reply(now, |groups, topics, now, token| {
                    groups.join(now, topics, fresh, token, &caller, &request)
                });
                self.park(lane, call, token);
                self.pass_on(outcome);
                return None;
            }
            Request::Sync(request) => {
                let (token, outcome) = self.engine.group_reply(now, |groups, topics, now, token| {
                    groups.sync(now, topics, token, &caller, &request)
                });
                self.park(lane, call, token);
                self.pass_on(outcome);
                return None;
            }
            Request::Heartbeat(request) => {
                let (error, outcome) = self.engine.group(now, |groups, topics, now| {
                    groups.heartbeat(now, topics, &caller, &request)
                });
                (Answer::Heartbeat(error), outcome)
            }
            Request::Leave(request) => {
                let (answer, outcome) = self
                    .engine
                    .group(now, |groups, topics, now| groups.leave(now, topics, &request));
                (Answer::Left(answer), outcome)
            }
            Request::ConsumerHeartbeat(request) => {
                let (answer, outcome) = self.engine.group(now, |groups, topics, now| {
                    groups.consumer_heartbeat(now, topics, fresh, &caller, &request)
                });
                self.watch_heartbeat(ctx, &request);
                let refused = |refused: anabranch_core::Refused| Answer::Refused(refused.code());
                (answer.map_or_else(refused, Answer::ConsumerHeartbeat), outcome)
            }
            Request::OffsetCommit(request) => {
                let slot = self.commit(ctx, &caller, &request);
                self.lanes.entry(lane).or_default().push_back((call, slot));
                return None;
            }
            Request::OffsetFetch(request) => {
                let (answer, outcome) = self.engine.group(now, |groups, topics, now| {
                    groups.fetch(now, topics, &caller, &request)
                });
                (answer.map_or_else(Answer::Refused, Answer::Offsets), outcome)
            }
            Request::OffsetDelete {
                group,
                topic,
                partitions,
            } => {
                let (answer, outcome) = self.engine.group(now, |groups, topics, now| {
                    groups.delete_offsets(now, topics, &group, &[(topic, partitions)])
                });
                let error = match answer {
                    Err(error) => error,
                    Ok(answer) => answer
                        .iter()
                        .flat_map(|(_, all)| all)
                        .map(|(_, e)| *e)
                        .max()
                        .unwrap_or_default(),
                };
                let done = Answer::Done { low_watermark: None };
                let answer = if error.is_ok() {
                    done
                } else {
                    Answer::Refused(error)
                };
                (answer, outcome)
            }
            other => return Some(other),
        };
        let after = self.pass_on(outcome);
        self.lanes
            .entry(lane)
            .or_default()
            .push_back((call, Slot::Ready(Box::new(answer), after)));
        None
    }

    fn park(&mut self, lane: Lane, call: CallId, token: Token) {
        self.tokens.insert(token, lane);
        self.lanes
            .entry(lane)
            .or_default()
            .push_back((call, Slot::Parked(token)));
    }

    fn watch_heartbeat(&self, ctx: &mut Ctx<'_>, request: &ConsumerHeartbeat) {
        use anabranch_core::group::state::Progress;
        let group = self
            .node()
            .groups()
            .groups()
            .get(&request.group_id)
            .and_then(|group| group.consumer());
        let Some(group) = group else { return };
        let member = group.members.get(&request.member_id);
        if member.is_some_and(|member| member.current.progress == Progress::Unreleased) {
            ctx.saw(Sight::WaitedForRelease);
        }
        if group.members.values().any(|state| state.member.is_classic()) && member.is_some() {
            ctx.saw(Sight::MixedProtocols);
        }
    }

    fn position(&self, key: &Key) -> Option<i64> {
        let cursor = self.node().groups().groups().get(&key.0)?.cursors.get(&key.1)?;
        Some(cursor.outside_view(None).offset)
    }

    /// The partitions that a commit names, as far as they exist.
    fn keys(&self, request: &OffsetCommit) -> Vec<(Key, i64)> {
        let mut keys = Vec::new();
        for (topic, partitions) in &request.topics {
            let topic = match topic {
                TopicRef::Name(name) => self.node().topic_by_name(name),
                TopicRef::Id(id) => self.node().topic_by_id(*id),
            };
            let Some(topic) = topic else { continue };
            for partition in partitions {
                let tp: Tp = (topic.id, partition.partition);
                keys.push(((request.group_id.clone(), tp), partition.offset));
            }
        }
        keys
    }

    fn commit(&mut self, ctx: &mut Ctx<'_>, caller: &Caller, request: &OffsetCommit) -> Slot {
        let now = ctx.world.now();
        let keys = self.keys(request);
        let before: Vec<Option<i64>> = keys.iter().map(|(key, _)| self.position(key)).collect();
        let group = self
            .node()
            .groups()
            .groups()
            .get(&request.group_id)
            .and_then(|group| group.consumer());
        let member = group
            .and_then(|group| group.members.get(&request.member_id))
            .map(|state| state.current.epoch);
        let owners_of = |(key, _): &(Key, i64)| group.and_then(|group| group.owners.get(&key.1).cloned());
        let owners: Vec<BTreeSet<String>> = keys
            .iter()
            .map(|key| owners_of(key).unwrap_or_default())
            .collect();
        let ((answer, accepted), outcome) = self.engine.group(now, |groups, topics, now| {
            let (answer, effects) = groups.commit(now, topics, caller, request);
            let accepted = !effects.changes.is_empty();
            ((answer, accepted), effects)
        });
        let after = self.pass_on(outcome);
        let is_member = !request.member_id.is_empty();
        if is_member && accepted && member.is_some_and(|epoch| epoch > request.generation_or_epoch) {
            ctx.saw(Sight::OldEpochCommitted);
            for ((key, _), owners) in keys.iter().zip(&owners) {
                let verdict = Ownership::late_commit(&key.0, key.1, &request.member_id, owners);
                ctx.oracle.judge(verdict);
            }
        }
        if is_member && refused(&answer) && member.is_some_and(|epoch| epoch > request.generation_or_epoch) {
            ctx.saw(Sight::OldEpochRefused);
        }
        if is_member && refused(&answer) && member.is_none() {
            ctx.saw(Sight::LateCommitRefused);
        }
        for ((key, _), before) in keys.iter().zip(before) {
            if let (true, Some(before), Some(now)) = (is_member, before, self.position(key)) {
                let verdict = ctx.oracle.commits.forward(key, before, now);
                ctx.oracle.judge(verdict);
            }
        }
        Slot::Ready(Box::new(Answer::Committed(answer)), after)
    }

    /// Lets the coordinator act on what is due.
    pub(super) fn on_time(&mut self, ctx: &mut Ctx<'_>) {
        let outcome = self.engine.on_time(ctx.world.now());
        self.pass_on(outcome);
        self.armed = None;
    }

    /// A connection is gone: nobody waits for what is parked on it.
    pub(super) fn disconnected(&mut self, ctx: &mut Ctx<'_>, lane: Lane) {
        self.lanes.remove(&lane);
        if let Some(connection) = self.connections.remove(&lane) {
            self.engine.connection_closed(connection);
        }
        let tokens: Vec<_> = self
            .tokens
            .iter()
            .filter(|(_, of)| **of == lane)
            .map(|(token, _)| *token)
            .collect();
        for token in tokens {
            self.tokens.remove(&token);
            let outcome = self.engine.disconnected(ctx.world.now(), token);
            self.pass_on(outcome);
        }
    }
}

/// Whether every partition of a commit was refused.
fn refused(answer: &CommitAnswer) -> bool {
    let errors = answer
        .iter()
        .flat_map(|(_, partitions)| partitions)
        .map(|(_, error)| *error);
    errors.clone().all(|error| error != ErrorCode::None) && errors.count() > 0
}
