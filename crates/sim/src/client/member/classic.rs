//! The classic protocol, as the Java client's ConsumerCoordinator speaks it.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::group::{Heartbeat, JoinAnswer, JoinGroup, LeaveGroup, Leaver, SyncGroup};
use anabranch_core::ids::TopicId;
use anabranch_wire::ErrorCode;
use bytes::{BufMut, Bytes, BytesMut};

use super::{Call, JOIN, Member, Phase, REBALANCE_MS, SESSION_MS, Style, Then};
use crate::message::{Answer, Request, Tp};
use crate::net::Line;
use crate::run::Ctx;
use crate::sights::Sight;

fn put_string(out: &mut BytesMut, value: &str) {
    out.put_i16(value.len() as i16);
    out.put_slice(value.as_bytes());
}

/// A subscription of version 1: topics, no user data, owned partitions.
fn subscription(topics: &[String], owned: &BTreeMap<String, Vec<i32>>) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(1);
    out.put_i32(topics.len() as i32);
    topics.iter().for_each(|topic| put_string(&mut out, topic));
    out.put_i32(-1);
    out.put_i32(owned.len() as i32);
    for (topic, partitions) in owned {
        put_string(&mut out, topic);
        out.put_i32(partitions.len() as i32);
        partitions.iter().for_each(|partition| out.put_i32(*partition));
    }
    out.freeze()
}

/// Reads an assignment of version 0.
fn assignment(bytes: &[u8], ids: &BTreeMap<String, TopicId>) -> Option<BTreeSet<Tp>> {
    fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
        let (head, tail) = bytes.split_at_checked(len)?;
        *bytes = tail;
        Some(head)
    }
    fn int(bytes: &mut &[u8]) -> Option<i32> {
        Some(i32::from_be_bytes(take(bytes, 4)?.try_into().ok()?))
    }
    let mut rest = bytes;
    take(&mut rest, 2)?;
    let mut assigned = BTreeSet::new();
    for _ in 0..int(&mut rest)? {
        let len = u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?);
        let name = std::str::from_utf8(take(&mut rest, usize::from(len))?).ok()?;
        let id = ids.get(name);
        for _ in 0..int(&mut rest)? {
            let partition = int(&mut rest)?;
            assigned.extend(id.map(|id| (*id, partition)));
        }
    }
    Some(assigned)
}

impl Member {
    fn owned_by_name(&self, ctx: &Ctx<'_>) -> BTreeMap<String, Vec<i32>> {
        let mut owned: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for (id, partition) in self.owned.keys() {
            if let Some(topic) = ctx.oracle.replay.node().topic_by_id(*id) {
                owned.entry(topic.name.clone()).or_default().push(*partition);
            }
        }
        owned
    }

    pub(super) fn join_classic(&mut self, ctx: &mut Ctx<'_>) {
        self.phase = Phase::Joining;
        let eager = self.habits.style == Style::Eager;
        let owned = if eager {
            BTreeMap::new()
        } else {
            self.owned_by_name(ctx)
        };
        let metadata = subscription(&self.habits.topics, &owned);
        let library = self.habits.library;
        let names = if eager { library.eager } else { library.cooperative };
        let request = JoinGroup {
            version: library.join_version,
            group_id: self.habits.group.clone(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            member_id: self.member_id.clone(),
            instance_id: self.habits.instance.clone(),
            protocol_type: "consumer".to_owned(),
            protocols: names
                .iter()
                .map(|name| ((*name).to_owned(), metadata.clone()))
                .collect(),
        };
        self.call(ctx, Line::Group, Request::Join(request), Call::Join);
    }

    /// Joins again after a while.
    fn retry(&mut self, ctx: &mut Ctx<'_>) {
        self.phase = Phase::Out;
        let pause_ms = ctx.world.rng.between(50, 300);
        self.seat.wake_in(ctx, pause_ms, JOIN);
    }

    pub(super) fn joined(&mut self, ctx: &mut Ctx<'_>, answer: Option<Answer>) {
        let Some(Answer::Joined(answer)) = answer else {
            return self.retry(ctx);
        };
        match answer.error {
            ErrorCode::None => self.sync(ctx, answer),
            ErrorCode::MemberIdRequired => {
                self.member_id = answer.member_id;
                self.join_classic(ctx);
            }
            ErrorCode::UnknownMemberId => {
                self.expelled(ctx);
                self.member_id = String::new();
                self.retry(ctx);
            }
            ErrorCode::FencedInstanceId => self.fenced(ctx),
            _ => self.retry(ctx),
        }
    }

    fn sync(&mut self, ctx: &mut Ctx<'_>, joined: JoinAnswer) {
        self.phase = Phase::Syncing;
        self.member_id = joined.member_id;
        self.epoch = joined.generation_id;
        let verdict = ctx
            .oracle
            .epochs
            .member(&self.habits.group, &self.member_id, self.epoch);
        ctx.oracle.judge(verdict);
        let request = SyncGroup {
            group_id: self.habits.group.clone(),
            generation_id: self.epoch,
            member_id: self.member_id.clone(),
            instance_id: self.habits.instance.clone(),
            protocol_type: joined.protocol_type,
            protocol_name: joined.protocol_name,
            assignments: Vec::new(),
        };
        self.call(ctx, Line::Group, Request::Sync(request), Call::Sync);
    }

    pub(super) fn synced(&mut self, ctx: &mut Ctx<'_>, answer: Option<Answer>) {
        let Some(Answer::Synced(answer, ids)) = answer else {
            return self.retry(ctx);
        };
        match answer.error {
            ErrorCode::None => {
                let Some(assigned) = assignment(&answer.assignment, &ids.into_iter().collect()) else {
                    return self.retry(ctx);
                };
                self.phase = Phase::In;
                self.assigned(ctx, &assigned);
            }
            ErrorCode::UnknownMemberId => {
                self.expelled(ctx);
                self.member_id = String::new();
                self.retry(ctx);
            }
            ErrorCode::IllegalGeneration => {
                ctx.saw(Sight::EpochFenced);
                self.expelled(ctx);
                self.retry(ctx);
            }
            ErrorCode::FencedInstanceId => self.fenced(ctx),
            _ => self.retry(ctx),
        }
    }

    fn assigned(&mut self, ctx: &mut Ctx<'_>, assigned: &BTreeSet<Tp>) {
        let lost: BTreeSet<Tp> = self
            .owned
            .keys()
            .filter(|tp| !assigned.contains(tp))
            .copied()
            .collect();
        self.take(ctx, assigned);
        if !lost.is_empty() {
            self.giving_up = true;
            self.commit(ctx, Some(&lost), Then::GiveUp(lost.clone()));
        }
    }

    pub(super) fn beat(&mut self, ctx: &mut Ctx<'_>) {
        if self.is_modern() {
            return self.beat_modern(ctx);
        }
        if self.calls.values().any(|call| matches!(call, Call::Beat { .. })) {
            return;
        }
        let request = Heartbeat {
            group_id: self.habits.group.clone(),
            generation_id: self.epoch,
            member_id: self.member_id.clone(),
            instance_id: self.habits.instance.clone(),
        };
        self.call(
            ctx,
            Line::Group,
            Request::Heartbeat(request),
            Call::Beat { owned: None },
        );
    }

    pub(super) fn beaten_classic(&mut self, ctx: &mut Ctx<'_>, answer: Option<&Answer>) {
        let Some(Answer::Heartbeat(error)) = answer else {
            return;
        };
        if self.phase != Phase::In {
            return;
        }
        match error {
            ErrorCode::RebalanceInProgress if self.giving_up => {}
            ErrorCode::RebalanceInProgress if self.habits.style == Style::Eager => {
                self.giving_up = true;
                self.commit(ctx, None, Then::Rejoin);
            }
            ErrorCode::RebalanceInProgress => self.join_classic(ctx),
            ErrorCode::UnknownMemberId => {
                self.expelled(ctx);
                self.member_id = String::new();
                self.retry(ctx);
            }
            ErrorCode::IllegalGeneration => {
                ctx.saw(Sight::EpochFenced);
                self.expelled(ctx);
                self.retry(ctx);
            }
            ErrorCode::FencedInstanceId => self.fenced(ctx),
            _ => {}
        }
    }

    pub(super) fn leave_classic(&mut self, ctx: &mut Ctx<'_>) {
        // A static member says nothing: it is expected back.
        if self.habits.instance.is_some() {
            return;
        }
        let leaver = Leaver {
            member_id: self.member_id.clone(),
            instance_id: None,
        };
        let request = LeaveGroup {
            group_id: self.habits.group.clone(),
            members: vec![leaver],
        };
        self.call(ctx, Line::Group, Request::Leave(request), Call::Leave);
    }
}
