//! Commits: what they say, and those that come late or a second time.

use std::collections::BTreeSet;

use anabranch_core::group::{CommitPartition, OffsetCommit, TopicRef};

use super::{Call, Member, Phase, Then};
use crate::message::{Answer, Request, Tp};
use crate::net::Line;
use crate::run::Ctx;
use crate::sights::Sight;

/// The version of OffsetCommit that names topics by id.
const BY_ID: i16 = 10;
/// So many commits are remembered, to be sent again.
const SENT_MAX: usize = 4;

impl Member {
    /// The interval of commits is over.
    pub(super) fn commit_on_time(&mut self, ctx: &mut Ctx<'_>) {
        if self.phase != Phase::In || self.giving_up {
            return;
        }
        if self.habits.library.repeats_commits && !self.habits.manual {
            self.owned.values_mut().for_each(|part| part.committed = -1);
        }
        // Those who commit by hand only make good here what has failed.
        self.commit(ctx, None, Then::Nothing);
        self.commit_late(ctx);
    }

    /// Commits what is done: of these partitions, or of all. Does what follows at once if there is nothing.
    pub(super) fn commit(&mut self, ctx: &mut Ctx<'_>, only: Option<&BTreeSet<Tp>>, then: Then) {
        let chosen = |tp: &Tp| only.is_none_or(|only| only.contains(tp));
        let mut offsets = Vec::new();
        for (tp, part) in self.owned.iter_mut().filter(|(tp, _)| chosen(tp)) {
            if part.done > part.committed {
                part.committed = part.done;
                offsets.push((*tp, part.done));
            }
        }
        if offsets.is_empty() {
            return self.after_commit(ctx, then);
        }
        self.note_ahead(ctx, &offsets.iter().copied().collect());
        self.see_zombie(ctx, Sight::ZombieCommitted);
        self.sent.push_back((self.epoch, offsets.clone()));
        self.sent.drain(..self.sent.len().saturating_sub(SENT_MAX));
        self.send_commit(ctx, self.epoch, offsets, then);
    }

    /// Now and then, once it has gone on to a later epoch, a commit for what it gave up before: one that a client sent
    /// without waiting for the answer, and that was held up on the way. Whoever owns the partitions now must not notice.
    fn commit_late(&mut self, ctx: &mut Ctx<'_>) {
        let now = self.epoch;
        let Some((epoch, mut offsets)) = self.given_up.take_if(|(epoch, _)| *epoch < now) else {
            return;
        };
        offsets.retain(|(tp, _)| !self.owned.contains_key(tp));
        if !offsets.is_empty() && ctx.world.rng.between(0, 3) == 0 {
            self.send_commit(ctx, epoch, offsets, Then::Nothing);
        }
    }

    pub(super) fn send_commit(&mut self, ctx: &mut Ctx<'_>, epoch: i32, offsets: Vec<(Tp, i64)>, then: Then) {
        let step = ctx.world.step();
        let topic = |((id, partition), offset): &(Tp, i64)| {
            let partition = CommitPartition {
                partition: *partition,
                offset: *offset,
                leader_epoch: -1,
                metadata: None,
            };
            (TopicRef::Id(*id), vec![partition])
        };
        let request = OffsetCommit {
            version: BY_ID,
            group_id: self.habits.group.clone(),
            generation_or_epoch: epoch,
            member_id: self.member_id.clone(),
            instance_id: self.habits.instance.clone(),
            retention_ms: -1,
            topics: offsets.iter().map(topic).collect(),
        };
        self.began_commit(ctx, &offsets, step);
        self.call(
            ctx,
            Line::Group,
            Request::OffsetCommit(request),
            Call::Commit { offsets, step, then },
        );
    }

    pub(super) fn began_commit(&self, ctx: &mut Ctx<'_>, offsets: &[(Tp, i64)], step: u64) {
        for (tp, offset) in offsets {
            ctx.oracle
                .commits
                .began((self.habits.group.clone(), *tp), *offset, step);
        }
    }

    pub(super) fn committed(
        &mut self,
        ctx: &mut Ctx<'_>,
        offsets: &[(Tp, i64)],
        step: u64,
        then: Then,
        answer: Option<Answer>,
    ) {
        if let Some(Answer::Committed(topics)) = answer {
            let errors = topics
                .iter()
                .flat_map(|(_, partitions)| partitions)
                .map(|(_, error)| *error);
            for ((tp, offset), error) in offsets.iter().zip(errors) {
                let key = (self.habits.group.clone(), *tp);
                if error.is_ok() {
                    ctx.oracle.committed_by(&key, &self.member_id, *offset);
                    ctx.oracle.commits.ended(&key, *offset, step, ctx.world.step());
                } else {
                    ctx.oracle.commits.refused(&key, *offset, step);
                    self.forget_commit(*tp);
                }
            }
        } else {
            offsets.iter().for_each(|(tp, _)| self.forget_commit(*tp));
        }
        self.after_commit(ctx, then);
    }

    /// The commit has failed, perhaps: the next one says it again.
    pub(super) fn forget_commit(&mut self, tp: Tp) {
        if let Some(part) = self.owned.get_mut(&tp) {
            part.committed = -1;
        }
    }
}
