//! Partitions: taken, given up, and where to begin in them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_core::group::{OffsetFetch, TopicRef};
use anabranch_wire::ErrorCode;

use super::{Call, Member, Part, RESOLVE, Style, Why};
use crate::message::{Answer, Edge, Request, Tp};
use crate::net::Line;
use crate::oracle::Violation;
use crate::run::Ctx;
use crate::sights::Sight;

/// The sentence about errors.
const UNDERSTOOD: &str = "a client is told to ask again in words that it understands";
/// The sentence about positions.
const WITHIN: &str = "the position that a member is told lies between the ends that it is told";

impl Member {
    /// Takes what it does not own so far.
    pub(super) fn take(&mut self, ctx: &mut Ctx<'_>, parts: &BTreeSet<Tp>) {
        // What does not come back is forgotten.
        let mut kept = std::mem::take(&mut self.kept);
        for tp in parts {
            if self.owned.contains_key(tp) {
                continue;
            }
            self.serials += 1;
            let new = Part {
                serial: self.serials,
                position: None,
                resets: false,
                before: None,
                done: -1,
                committed: -1,
                past: VecDeque::new(),
                end: -1,
            };
            let part = match kept.remove(tp) {
                Some(part) => {
                    ctx.saw(Sight::PositionKept);
                    part
                }
                None => new,
            };
            self.owned.insert(*tp, part);
            ctx.oracle
                .take(&self.habits.group, *tp, self.seat.index, &self.member_id);
        }
        let serials: BTreeMap<Tp, u64> = self.owned.iter().map(|(tp, part)| (*tp, part.serial)).collect();
        self.drop_work(ctx, |work| serials.get(&work.tp) != Some(&work.serial), |_| false);
        self.resolve(ctx);
        self.poll(ctx);
    }

    /// It is about to give everything up and to join again: some libraries keep their positions, and what they hold, of each
    /// partition that comes back.
    pub(super) fn keep_positions(&mut self) {
        if self.habits.library.keeps_positions && self.habits.style == Style::Eager {
            let known = self.owned.iter().filter(|(_, part)| part.position.is_some());
            self.kept = known.map(|(tp, part)| (*tp, part.clone())).collect();
        }
    }

    pub(super) fn give_up(&mut self, ctx: &mut Ctx<'_>, parts: &BTreeSet<Tp>) {
        let done = |tp: &Tp| Some((*tp, self.owned.get(tp)?.done)).filter(|(_, done)| *done >= 0);
        let positions: Vec<(Tp, i64)> = parts.iter().filter_map(done).collect();
        if !positions.is_empty() {
            self.given_up = Some((self.epoch, positions));
        }
        for tp in parts {
            self.owned.remove(tp);
            ctx.oracle
                .ownership
                .give_up(&self.habits.group, *tp, self.seat.index);
        }
        let kept: BTreeSet<Tp> = self.kept.keys().copied().collect();
        self.drop_work(
            ctx,
            |work| parts.contains(&work.tp),
            |work| kept.contains(&work.tp),
        );
    }

    /// Asks for the committed offsets of partitions whose position is not known.
    pub(super) fn resolve(&mut self, ctx: &mut Ctx<'_>) {
        let unknown = self.owned.iter().filter(|(_, part)| part.position.is_none());
        let (resets, others): (Vec<_>, Vec<_>) = unknown.partition(|(_, part)| part.resets);
        let parts: Vec<(Tp, u64)> = others.into_iter().map(|(tp, part)| (*tp, part.serial)).collect();
        let resets: Vec<(Tp, u64)> = resets.into_iter().map(|(tp, part)| (*tp, part.serial)).collect();
        for (tp, serial) in resets {
            let is_asked = |call: &Call| matches!(call, Call::Edge { tp: of, serial: s, .. } if (*of, *s) == (tp, serial));
            if !self.calls.values().any(is_asked) {
                self.find_edge(ctx, (tp, serial), Why::Reset);
            }
        }
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
        let names_itself = self.habits.library.names_itself;
        let request = OffsetFetch {
            group_id: self.habits.group.clone(),
            member_id: names_itself.then(|| self.member_id.clone()),
            member_epoch: if names_itself && self.is_modern() {
                self.epoch
            } else {
                -1
            },
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
                let Some(found) = found.first() else { continue };
                if !found.error.is_ok() {
                    self.put_off(ctx, found.error);
                    continue;
                }
                let key = (self.habits.group.clone(), *tp);
                ctx.oracle.found(&key, Some(&self.member_id), found.offset, step);
                // It may have found another position meanwhile.
                let is_open = |part: &&Part| part.serial == *serial && part.position.is_none();
                if self.owned.get(tp).filter(is_open).is_none() {
                    continue;
                }
                if found.offset < 0 {
                    self.find_edge(ctx, (*tp, *serial), Why::Reset);
                } else if self.habits.library.checks_start {
                    self.find_edge(ctx, (*tp, *serial), Why::NotBelow(found.offset));
                } else {
                    self.begin_at(ctx, *tp, found.offset);
                }
            }
        }
        if self.owned.values().any(|part| part.position.is_none()) {
            self.seat.wake_in(ctx, 300, RESOLVE);
        }
        self.poll(ctx);
    }

    fn put_off(&self, ctx: &mut Ctx<'_>, error: ErrorCode) {
        if self.habits.library.dies_of.contains(&error) {
            let detail = format!(
                "member {} ({:?}) asked where to begin and was told {error:?}",
                self.seat.index, self.habits.library
            );
            ctx.oracle.judge(Err(Violation::new(UNDERSTOOD, detail)));
        }
        ctx.saw(Sight::PositionPutOff);
    }

    fn begin_at(&mut self, ctx: &mut Ctx<'_>, tp: Tp, offset: i64) {
        if let Some(part) = self.owned.get_mut(&tp) {
            part.position = Some(offset);
            part.done = offset;
            part.committed = offset;
            let key = (self.habits.group.clone(), tp);
            ctx.oracle.resumed(&key, offset);
        }
    }

    /// Where a partition begins or ends: for `auto.offset.reset=earliest`, or since the library wants to know.
    pub(super) fn find_edge(&mut self, ctx: &mut Ctx<'_>, (tp, serial): (Tp, u64), why: Why) {
        let edge = match why {
            Why::Reset | Why::NotBelow(_) => Edge::Earliest,
            Why::NotAbove(_) => Edge::Latest,
        };
        if let Some(part) = self.owned.get_mut(&tp) {
            part.resets |= why == Why::Reset;
        }
        let request = Request::ListOffsets { tp, edge };
        self.call(ctx, Line::Data, request, Call::Edge { tp, serial, why });
    }

    pub(super) fn found_edge(
        &mut self,
        ctx: &mut Ctx<'_>,
        (tp, serial): (Tp, u64),
        why: Why,
        answer: Option<&Answer>,
    ) {
        let is_open = |part: &&mut Part| part.serial == serial && part.position.is_none();
        if let Some(Answer::Offset { offset }) = answer
            && let Some(part) = self.owned.get_mut(&tp).filter(is_open)
        {
            match why {
                Why::NotBelow(told) if told >= *offset => {
                    return self.find_edge(ctx, (tp, serial), Why::NotAbove(told));
                }
                Why::NotAbove(told) if told <= *offset => {
                    ctx.saw(Sight::StartChecked);
                    self.begin_at(ctx, tp, told);
                }
                Why::Reset | Why::NotBelow(_) | Why::NotAbove(_) => {
                    part.position = Some(*offset);
                    part.resets = false;
                    part.done = *offset;
                    self.drop_held(tp);
                    self.began_anew(ctx, tp, why, *offset);
                }
            }
        } else {
            // No answer: it asks once more.
            self.seat.wake_in(ctx, 300, RESOLVE);
        }
        self.poll(ctx);
    }

    /// It begins at an end of the partition. If that is not since its position is gone, something is wrong.
    fn began_anew(&self, ctx: &mut Ctx<'_>, tp: Tp, why: Why, offset: i64) {
        let (Why::NotBelow(told) | Why::NotAbove(told)) = why else {
            return;
        };
        let key = (self.habits.group.clone(), tp);
        ctx.oracle.commits.may_return(key, offset, told);
        if ctx
            .oracle
            .is_begun_anew(&self.habits.group, tp, &self.member_id, told)
        {
            return;
        }
        let detail = format!(
            "member {} of {} was told {told} of {tp:?}, and {offset} is an end ({why:?})",
            self.seat.index, self.habits.group
        );
        ctx.oracle.judge(Err(Violation::new(WITHIN, detail)));
    }
}
