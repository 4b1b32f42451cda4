//! Fetches: where, how far ahead of the work, and what is done with the answers.

use std::collections::BTreeMap;

use anabranch_wire::ErrorCode;

use super::{Call, Member, POLL, Phase, Why, Work};
use crate::message::{Answer, Got, Request, Tp, Want};
use crate::net::Line;
use crate::oracle::slices::{Found, Reader};
use crate::run::Ctx;
use crate::sights::Sight;

/// How long a fetch waits, milliseconds.
const FETCH_WAIT_MS: u64 = 1_000;
/// On the connection of the heartbeats it must not wait so long.
const FETCH_WAIT_SHARED_MS: u64 = 300;
/// How much a fetch takes.
const FETCH_BYTES: usize = 8_000;
/// How many fetches of a hundred of a library that fetches again what it has just had do so.
const AGAIN_PERCENT: u64 = 8;

impl Member {
    /// A turn of the program: fetches if little is held, works if something is.
    pub(super) fn poll(&mut self, ctx: &mut Ctx<'_>) {
        self.refill(ctx);
        self.work(ctx);
        self.refill(ctx);
    }

    fn refill(&mut self, ctx: &mut Ctx<'_>) {
        let is_ready = self.phase != Phase::Gone && !self.giving_up && !self.rests(ctx);
        if is_ready && !self.fetching && self.work.len() < self.habits.buffer_min {
            self.fetch(ctx);
        }
    }

    fn fetch(&mut self, ctx: &mut Ctx<'_>) {
        let mut wants = Vec::new();
        let mut serials = BTreeMap::new();
        for (tp, part) in &self.owned {
            let Some(position) = part.position else { continue };
            let below = part.before.filter(|before| *before < position);
            let again = self.habits.library.fetches_again && ctx.world.rng.percent(AGAIN_PERCENT);
            let offset = below.filter(|_| again).unwrap_or(position);
            if offset < position {
                ctx.saw(Sight::FetchedBelow);
            }
            wants.push(Want { tp: *tp, offset });
            serials.insert(*tp, part.serial);
        }
        if wants.is_empty() {
            return;
        }
        self.fetching = true;
        self.see_zombie(ctx, Sight::ZombieFetched);
        // Clients go round, so that no partition is starved.
        let first = ctx.world.rng.index(wants.len());
        wants.rotate_left(first);
        let request = Request::Fetch {
            wants,
            wait_ms: if self.habits.library.one_line {
                FETCH_WAIT_SHARED_MS
            } else {
                FETCH_WAIT_MS
            },
            bytes_max: FETCH_BYTES,
        };
        self.call(ctx, Line::Data, request, Call::Fetch { serials });
    }

    pub(super) fn fetched(&mut self, ctx: &mut Ctx<'_>, serials: &BTreeMap<Tp, u64>, answer: Option<Answer>) {
        self.fetching = false;
        let Some(Answer::Fetched(all)) = answer else {
            return self.seat.wake_in(ctx, 100, POLL);
        };
        let held = self.work.len();
        for got in all {
            let serial = serials.get(&got.tp).copied();
            self.take_in(ctx, &got, serial);
        }
        if self.work.len() > held {
            return self.poll(ctx);
        }
        let pause_ms = ctx.world.rng.between(0, 20);
        self.seat.wake_in(ctx, pause_ms, POLL);
    }

    /// Takes a partition's records in. Those of a partition that was given up meanwhile are thrown away, and so are those
    /// for another position.
    fn take_in(&mut self, ctx: &mut Ctx<'_>, got: &Got, serial: Option<u64>) {
        let who = format!("member {}", self.seat.index);
        let tp = got.tp;
        let part = self
            .owned
            .get_mut(&tp)
            .filter(|part| Some(part.serial) == serial && part.position == Some(got.asked));
        let Some(part) = part else { return };
        if got.error == ErrorCode::OffsetOutOfRange {
            ctx.saw(Sight::OffsetOutOfRange);
            part.position = None;
            let serial = part.serial;
            return self.find_edge(ctx, (tp, serial), Why::Reset);
        }
        if !got.error.is_ok() {
            return;
        }
        let reader = Reader {
            who: &who,
            group: &self.habits.group,
            member: &self.member_id,
            is_member: ctx.oracle.replay.is_member(&self.habits.group, &self.member_id),
        };
        part.end = got.high_watermark;
        let Found { records, end } = ctx.oracle.read_as_member(&reader, got);
        let Some((last, _)) = records.last() else { return };
        let (next, committed) = self.habits.behind(end, *last);
        part.before = part.position;
        part.position = Some(next);
        if next > last + 1 {
            ctx.saw(Sight::HeaderEndBehindRecord);
        }
        let serial = part.serial;
        let work = records.iter().map(|(offset, _)| Work {
            tp,
            serial,
            offset: *offset,
            next: if offset == last { committed } else { offset + 1 },
        });
        self.work.extend(work);
    }
}
