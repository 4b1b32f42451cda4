//! The consumer protocol (KIP-848), as the Java client's membership manager speaks it: it is told its assignment, gives
//! up what is not in it, takes the rest, and says what it owns then.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::group::ConsumerHeartbeat;
use anabranch_core::ids::TopicId;
use anabranch_wire::ErrorCode;

use super::{Call, JOIN, Member, Phase, REBALANCE_MS, Then};
use crate::message::{Answer, Request, Tp};
use crate::net::Line;
use crate::run::Ctx;
use crate::sights::Sight;

/// The version in which clients make their member ids.
const VERSION: i16 = 1;

fn by_topic(parts: &BTreeSet<Tp>) -> Vec<(TopicId, Vec<i32>)> {
    let mut topics: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
    for (id, partition) in parts {
        topics.entry(*id).or_default().push(*partition);
    }
    topics.into_iter().collect()
}

impl Member {
    pub(super) fn join_modern(&mut self, ctx: &mut Ctx<'_>) {
        self.phase = Phase::In;
        self.epoch = 0;
        self.full = true;
        self.beat_modern(ctx);
    }

    pub(super) fn beat_modern(&mut self, ctx: &mut Ctx<'_>) {
        if self.calls.values().any(|call| matches!(call, Call::Beat { .. })) {
            return;
        }
        let owned: BTreeSet<Tp> = self.owned.keys().copied().collect();
        // While it is still giving something up it says nothing new.
        let says = self.full || (!self.giving_up && self.told.as_ref() != Some(&owned));
        let request = ConsumerHeartbeat {
            version: VERSION,
            group_id: self.habits.group.clone(),
            member_id: self.member_id.clone(),
            member_epoch: self.epoch,
            instance_id: self.habits.instance.clone(),
            rack_id: None,
            rebalance_timeout_ms: if self.full { REBALANCE_MS } else { -1 },
            topic_names: self.full.then(|| self.habits.topics.clone()),
            topic_regex: None,
            assignor: None,
            owned: says.then(|| by_topic(&owned)),
        };
        self.call(
            ctx,
            Line::Group,
            Request::ConsumerHeartbeat(request),
            Call::Beat {
                owned: says.then_some(owned),
            },
        );
    }

    pub(super) fn beaten_modern(
        &mut self,
        ctx: &mut Ctx<'_>,
        owned: Option<BTreeSet<Tp>>,
        answer: Option<Answer>,
    ) {
        if self.phase != Phase::In {
            return;
        }
        match answer {
            Some(Answer::ConsumerHeartbeat(answer)) => {
                if let Some(owned) = owned {
                    self.told = Some(owned);
                }
                self.full = false;
                self.epoch = answer.member_epoch;
                let verdict = ctx
                    .oracle
                    .epochs
                    .member(&self.habits.group, &self.member_id, self.epoch);
                ctx.oracle.judge(verdict);
                self.insist(ctx);
                if let Some(assigned) = answer.assignment {
                    let parts = assigned.into_iter();
                    let parts =
                        parts.flat_map(|(id, partitions)| partitions.into_iter().map(move |p| (id, p)));
                    self.target = Some(parts.collect());
                }
                if !self.giving_up {
                    self.reconcile(ctx);
                }
            }
            Some(Answer::Refused(ErrorCode::FencedMemberEpoch | ErrorCode::UnknownMemberId)) => {
                ctx.saw(Sight::EpochFenced);
                self.expelled(ctx);
                self.seat.wake_in(ctx, 50, JOIN);
            }
            Some(Answer::Refused(ErrorCode::GroupIdNotFound)) => {
                self.expelled(ctx);
                self.seat.wake_in(ctx, 200, JOIN);
            }
            Some(Answer::Refused(ErrorCode::UnreleasedInstanceId)) => {
                self.expelled(ctx);
                self.seat.wake_in(ctx, 1_000, JOIN);
            }
            Some(Answer::Refused(ErrorCode::FencedInstanceId)) => self.fenced(ctx),
            // Nobody knows what the broker has taken in: the next one says everything.
            _ => self.full = true,
        }
    }

    /// Moves towards the target: first gives up, then takes.
    fn reconcile(&mut self, ctx: &mut Ctx<'_>) {
        let Some(target) = &self.target else { return };
        let lost: BTreeSet<Tp> = self
            .owned
            .keys()
            .filter(|tp| !target.contains(tp))
            .copied()
            .collect();
        if lost.is_empty() {
            return self.take_target(ctx);
        }
        self.giving_up = true;
        self.commit(ctx, Some(&lost), Then::GiveUp(lost.clone()));
    }

    /// Nothing is left to be given up.
    pub(super) fn take_target(&mut self, ctx: &mut Ctx<'_>) {
        let target = self
            .target
            .take()
            .unwrap_or_else(|| self.owned.keys().copied().collect());
        let wanted: BTreeSet<Tp> = self
            .owned
            .keys()
            .filter(|tp| !target.contains(tp))
            .copied()
            .collect();
        if !wanted.is_empty() {
            // The target has changed meanwhile.
            self.target = Some(target);
            return self.reconcile(ctx);
        }
        self.take(ctx, &target);
        let owned: BTreeSet<Tp> = self.owned.keys().copied().collect();
        if self.told.as_ref() != Some(&owned) {
            self.beat_modern(ctx);
        }
    }

    pub(super) fn leave_modern(&mut self, ctx: &mut Ctx<'_>) {
        let request = ConsumerHeartbeat {
            version: VERSION,
            group_id: self.habits.group.clone(),
            member_id: self.member_id.clone(),
            member_epoch: if self.habits.instance.is_some() { -2 } else { -1 },
            instance_id: self.habits.instance.clone(),
            rebalance_timeout_ms: -1,
            ..ConsumerHeartbeat::default()
        };
        self.call(ctx, Line::Group, Request::ConsumerHeartbeat(request), Call::Leave);
    }
}
