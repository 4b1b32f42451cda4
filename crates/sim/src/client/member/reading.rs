//! What members of all protocols do with their partitions.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::group::{CommitPartition, OffsetCommit, OffsetFetch, TopicRef};
use anabranch_wire::ErrorCode;

use super::{Call, Member, POLL, Part, Phase, RESOLVE, Then};
use crate::message::{Answer, Edge, Got, Request, Tp, Want};
use crate::net::Line;
use crate::run::Ctx;
use crate::sights::Sight;

/// How long a fetch waits, milliseconds.
const FETCH_WAIT_MS: u64 = 1_000;
/// How much a fetch takes.
const FETCH_BYTES: usize = 8_000;
/// The version of OffsetCommit and OffsetFetch that names topics by id.
const BY_ID: i16 = 10;

impl Member {
    /// Takes what it does not own so far.
    pub(super) fn take(&mut self, ctx: &mut Ctx<'_>, parts: &BTreeSet<Tp>) {
        for tp in parts {
            if self.owned.contains_key(tp) {
                continue;
            }
            self.serials += 1;
            self.owned.insert(
                *tp,
                Part {
                    serial: self.serials,
                    position: None,
                    committed: -1,
                },
            );
            ctx.oracle
                .take(&self.habits.group, *tp, self.seat.index, &self.member_id);
        }
        self.resolve(ctx);
        self.poll(ctx);
    }

    pub(super) fn give_up(&mut self, ctx: &mut Ctx<'_>, parts: &BTreeSet<Tp>) {
        let position = |tp: &Tp| Some((*tp, self.owned.get(tp)?.position?));
        let positions: Vec<(Tp, i64)> = parts.iter().filter_map(position).collect();
        if !positions.is_empty() {
            self.given_up = Some((self.epoch, positions));
        }
        for tp in parts {
            self.owned.remove(tp);
            ctx.oracle
                .ownership
                .give_up(&self.habits.group, *tp, self.seat.index);
        }
    }

    /// Asks for the committed offsets of partitions whose position is not known.
    pub(super) fn resolve(&mut self, ctx: &mut Ctx<'_>) {
        let unknown = self.owned.iter().filter(|(_, part)| part.position.is_none());
        let parts: Vec<(Tp, u64)> = unknown.map(|(tp, part)| (*tp, part.serial)).collect();
        if parts.is_empty()
            || self
                .calls
                .values()
                .any(|call| matches!(call, Call::Offsets { .. }))
        {
            return;
        }
        let topics = parts
            .iter()
            .map(|((id, partition), _)| (TopicRef::Id(*id), vec![*partition]));
        let request = OffsetFetch {
            group_id: self.habits.group.clone(),
            member_id: self.is_modern().then(|| self.member_id.clone()),
            member_epoch: if self.is_modern() { self.epoch } else { -1 },
            topics: Some(topics.collect()),
        };
        let step = ctx.world.step();
        self.call(
            ctx,
            Line::Group,
            Request::OffsetFetch(request),
            Call::Offsets { step, parts },
        );
    }

    pub(super) fn resolved(
        &mut self,
        ctx: &mut Ctx<'_>,
        step: u64,
        parts: &[(Tp, u64)],
        answer: Option<Answer>,
    ) {
        if let Some(Answer::Offsets(topics)) = answer {
            for ((tp, serial), (_, found)) in parts.iter().zip(topics) {
                let Some(found) = found.first().filter(|found| found.error.is_ok()) else {
                    continue;
                };
                let key = (self.habits.group.clone(), *tp);
                let verdict = ctx.oracle.commits.read(&key, found.offset, step);
                ctx.oracle.judge(verdict);
                // It may have found another position meanwhile.
                let Some(part) = self
                    .owned
                    .get_mut(tp)
                    .filter(|part| part.serial == *serial && part.position.is_none())
                else {
                    continue;
                };
                if found.offset >= 0 {
                    part.position = Some(found.offset);
                    part.committed = found.offset;
                    ctx.oracle.resumed(&key, found.offset);
                } else {
                    self.find_edge(ctx, *tp, *serial);
                }
            }
        }
        if self.owned.values().any(|part| part.position.is_none()) {
            self.seat.wake_in(ctx, 300, RESOLVE);
        }
        self.poll(ctx);
    }

    /// Where a partition begins: `auto.offset.reset=earliest`.
    fn find_edge(&mut self, ctx: &mut Ctx<'_>, tp: Tp, serial: u64) {
        let request = Request::ListOffsets {
            tp,
            edge: Edge::Earliest,
        };
        self.call(ctx, Line::Data, request, Call::Edge { tp, serial });
    }

    pub(super) fn found_edge(&mut self, ctx: &mut Ctx<'_>, tp: Tp, serial: u64, answer: Option<&Answer>) {
        if let Some(Answer::Offset { offset }) = answer
            && let Some(part) = self
                .owned
                .get_mut(&tp)
                .filter(|part| part.serial == serial && part.position.is_none())
        {
            part.position = Some(*offset);
        }
        self.poll(ctx);
    }

    pub(super) fn poll(&mut self, ctx: &mut Ctx<'_>) {
        let is_ready = self.phase != Phase::Gone && !self.fetching && !self.giving_up;
        let known = self
            .owned
            .iter()
            .filter_map(|(tp, part)| Some((*tp, part.serial, part.position?)));
        let known: Vec<(Tp, u64, i64)> = known.collect();
        if !is_ready || known.is_empty() {
            return;
        }
        self.fetching = true;
        let mut wants: Vec<Want> = known
            .iter()
            .map(|(tp, _, offset)| Want {
                tp: *tp,
                offset: *offset,
            })
            .collect();
        // Clients go round, so that no partition is starved.
        let first = ctx.world.rng.index(wants.len());
        wants.rotate_left(first);
        let request = Request::Fetch {
            wants,
            wait_ms: FETCH_WAIT_MS,
            bytes_max: FETCH_BYTES,
        };
        let serials = known.into_iter().map(|(tp, serial, _)| (tp, serial)).collect();
        self.call(ctx, Line::Data, request, Call::Fetch { serials });
    }

    pub(super) fn fetched(&mut self, ctx: &mut Ctx<'_>, serials: &BTreeMap<Tp, u64>, answer: Option<Answer>) {
        self.fetching = false;
        let Some(Answer::Fetched(all)) = answer else {
            return self.seat.wake_in(ctx, 100, POLL);
        };
        let mut has_processed = false;
        for got in all {
            let serial = serials.get(&got.tp).copied();
            has_processed |= self.process(ctx, &got, serial);
        }
        if has_processed && self.habits.manual && !self.giving_up && self.phase == Phase::In {
            return self.commit(ctx, None, Then::Poll);
        }
        let pause_ms = ctx.world.rng.between(0, 20);
        self.seat.wake_in(ctx, pause_ms, POLL);
    }

    /// Works a partition's records off. Those of a partition that was given up meanwhile are thrown away.
    fn process(&mut self, ctx: &mut Ctx<'_>, got: &Got, serial: Option<u64>) -> bool {
        let who = format!("member {}", self.seat.index);
        let tp = got.tp;
        let part = self
            .owned
            .get_mut(&tp)
            .filter(|part| Some(part.serial) == serial && part.position == Some(got.asked));
        let Some(part) = part else { return false };
        if got.error == ErrorCode::OffsetOutOfRange {
            ctx.saw(Sight::OffsetOutOfRange);
            part.position = None;
            let serial = part.serial;
            self.find_edge(ctx, tp, serial);
            return false;
        }
        if !got.error.is_ok() {
            return false;
        }
        let next = ctx
            .oracle
            .read(&who, tp, got.asked, got.high_watermark, &got.batches);
        part.position = Some(next);
        ctx.oracle
            .delivery
            .processed(&(self.habits.group.clone(), tp), got.asked, next);
        next > got.asked
    }

    /// Commits what was processed: of these partitions, or of all. Does what follows at once if there is nothing.
    pub(super) fn commit(&mut self, ctx: &mut Ctx<'_>, only: Option<&BTreeSet<Tp>>, then: Then) {
        let chosen = |tp: &Tp| only.is_none_or(|only| only.contains(tp));
        let mut offsets = Vec::new();
        for (tp, part) in self.owned.iter_mut().filter(|(tp, _)| chosen(tp)) {
            if let Some(position) = part.position.filter(|position| *position > part.committed) {
                part.committed = position;
                offsets.push((*tp, position));
            }
        }
        if offsets.is_empty() {
            return self.after_commit(ctx, then);
        }
        self.send_commit(ctx, self.epoch, offsets, then);
    }

    /// Now and then, once it has gone on to a later epoch, a commit for what it gave up before: one that a client sent
    /// without waiting for the answer, and that was held up on the way. Whoever owns the partitions now must not notice.
    pub(super) fn commit_late(&mut self, ctx: &mut Ctx<'_>) {
        let now = self.epoch;
        let Some((epoch, mut offsets)) = self.given_up.take_if(|(epoch, _)| *epoch < now) else {
            return;
        };
        offsets.retain(|(tp, _)| !self.owned.contains_key(tp));
        if !offsets.is_empty() && ctx.world.rng.between(0, 3) == 0 {
            self.send_commit(ctx, epoch, offsets, Then::Nothing);
        }
    }

    fn send_commit(&mut self, ctx: &mut Ctx<'_>, epoch: i32, offsets: Vec<(Tp, i64)>, then: Then) {
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
        for (tp, offset) in &offsets {
            ctx.oracle
                .commits
                .began((self.habits.group.clone(), *tp), *offset, step);
        }
        self.call(
            ctx,
            Line::Group,
            Request::OffsetCommit(request),
            Call::Commit { offsets, step, then },
        );
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
    fn forget_commit(&mut self, tp: Tp) {
        if let Some(part) = self.owned.get_mut(&tp) {
            part.committed = -1;
        }
    }
}
