//! Somebody who is no member of any group: assigns partitions to itself, reads here and there, again and again, and
//! looks at the committed offsets of groups, as tools do.

use anabranch_core::group::{OffsetFetch, TopicRef};

use super::{Client, Seat};
use crate::message::{Answer, Edge, Request, Tp, Want};
use crate::net::{CallId, Line};
use crate::oracle::commits::NONE;
use crate::run::Ctx;
use crate::sights::Sight;

const LOOK: u32 = 0;

#[derive(Clone, Debug)]
enum Stage {
    Topics,
    First { tp: Tp },
    Last { tp: Tp, first: i64 },
    Read { tp: Tp, left: u32 },
    Offsets { step: u64 },
}

/// The outsider.
#[derive(Debug)]
pub struct Outsider {
    seat: Seat,
    groups: Vec<String>,
    stage: Option<(CallId, Stage)>,
}

impl Outsider {
    /// An outsider that looks at these groups.
    pub fn new(index: usize, groups: Vec<String>) -> Self {
        Self {
            seat: Seat::new(index),
            groups,
            stage: None,
        }
    }

    fn go(&mut self, ctx: &mut Ctx<'_>, line: Line, request: Request, stage: Stage) {
        let call = self.seat.send(ctx, line, request);
        self.stage = Some((call, stage));
    }

    fn rest(&mut self, ctx: &mut Ctx<'_>) {
        self.stage = None;
        let pause_ms = ctx.world.rng.between(100, 1_500);
        self.seat.wake_in(ctx, pause_ms, LOOK);
    }

    fn read(&mut self, ctx: &mut Ctx<'_>, tp: Tp, offset: i64, left: u32) {
        let bytes_max = ctx.world.rng.between(1, 20_000) as usize;
        let request = Request::Fetch {
            wants: vec![Want { tp, offset }],
            wait_ms: 50,
            bytes_max,
        };
        self.go(ctx, Line::Data, request, Stage::Read { tp, left });
    }

    fn look_at_group(&mut self, ctx: &mut Ctx<'_>) {
        let Some(group_id) = ctx.world.rng.pick(&self.groups).cloned() else {
            return self.rest(ctx);
        };
        let topics = ctx.oracle.replay.node().topics();
        let topics = topics
            .map(|topic| (TopicRef::Id(topic.id), (0..topic.partitions()).collect()))
            .collect();
        let request = OffsetFetch {
            group_id,
            member_id: None,
            member_epoch: -1,
            topics: Some(topics),
        };
        let group = request.group_id.clone();
        let step = ctx.world.step();
        self.groups.retain(|other| *other != group);
        self.groups.push(group);
        self.go(
            ctx,
            Line::Data,
            Request::OffsetFetch(request),
            Stage::Offsets { step },
        );
    }

    fn found_offsets(&mut self, ctx: &mut Ctx<'_>, step: u64, answer: Answer) {
        let (Answer::Offsets(topics), Some(group)) = (answer, self.groups.last().cloned()) else {
            return;
        };
        for (topic, partitions) in topics {
            let TopicRef::Id(id) = topic else { continue };
            for found in partitions.iter().filter(|found| found.error.is_ok()) {
                let tp = (id, found.partition);
                // A topic that is being deleted takes its offsets with it.
                let is_gone = found.offset == NONE && ctx.oracle.replay.node().topic_by_id(id).is_none();
                if !is_gone {
                    ctx.oracle.found(&(group.clone(), tp), None, found.offset, step);
                }
            }
        }
    }
}

impl Client for Outsider {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.rest(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _what: u32) {
        if ctx.world.rng.percent(40) {
            self.look_at_group(ctx);
        } else {
            self.go(ctx, Line::Data, Request::Metadata, Stage::Topics);
        }
    }

    fn answer(&mut self, ctx: &mut Ctx<'_>, _line: Line, call: CallId, answer: Option<Answer>) {
        let Some((_, stage)) = self.stage.take_if(|(own, _)| *own == call) else {
            return;
        };
        match (stage, answer) {
            (Stage::Topics, Some(Answer::Metadata(topics))) if !topics.is_empty() => {
                let Some(topic) = ctx.world.rng.pick(&topics) else {
                    return;
                };
                let partition = ctx.world.rng.below(topic.partitions as u64) as i32;
                let tp = (topic.id, partition);
                self.go(
                    ctx,
                    Line::Data,
                    Request::ListOffsets {
                        tp,
                        edge: Edge::Earliest,
                    },
                    Stage::First { tp },
                );
            }
            (Stage::First { tp }, Some(Answer::Offset { offset: first })) => {
                let request = Request::ListOffsets {
                    tp,
                    edge: Edge::Latest,
                };
                self.go(ctx, Line::Data, request, Stage::Last { tp, first });
            }
            (Stage::Last { tp, first }, Some(Answer::Offset { offset: last })) => {
                let offset = ctx.world.rng.between(first as u64, last.max(first) as u64) as i64;
                self.read(ctx, tp, offset, 3);
            }
            (Stage::Read { tp, left }, Some(Answer::Fetched(all))) => {
                let Some(got) = all.into_iter().next().filter(|got| got.error.is_ok()) else {
                    return self.rest(ctx);
                };
                ctx.saw(Sight::OutsiderRead);
                let records = ctx
                    .oracle
                    .read("an outsider", tp, got.asked, got.high_watermark, &got.batches);
                let next = records.last().map_or(got.asked, |(offset, _)| offset + 1);
                if left > 0 && next < got.high_watermark {
                    return self.read(ctx, tp, next, left - 1);
                }
                self.rest(ctx);
            }
            (Stage::Offsets { step }, Some(answer)) => {
                self.found_offsets(ctx, step, answer);
                self.rest(ctx);
            }
            _ => self.rest(ctx),
        }
    }

    fn settle(&mut self, _ctx: &mut Ctx<'_>) {}

    fn die(&mut self, ctx: &mut Ctx<'_>) {
        self.seat.reborn(ctx);
        self.rest(ctx);
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }
}
