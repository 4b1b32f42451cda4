//! E8: a member of two leaves, or falls silent; the time until the other has the first record of its slots. And how long
//! a cursor's lineage grows when members come and go ten thousand times.
//!
//! Members never wait (`raw`), so that the time is the broker's. Silence is counted from the last heartbeat, less the
//! session timeout.

use super::api::{last_words, slots_of};
use super::backlog::{Backlog, Keys, key_name};
use super::join::{Owner, READ_BYTES};
use super::raw::{GROUP, RawMember, configure_group, topic_id};
use super::{Site, Stage, insert_times};
use crate::case::Numbers;
use anabranch_core::cursor::{
    Cursor, Divided, Evidence, Found, Live, Note, Plain, Position, Record, SliceId, SliceIds, Step, World,
};
use anabranch_core::ids::Now;
use anabranch_core::slots::SlotSet;
use anabranch_wire::slot::{SLOTS, Slot, slot_of_key};
use anyhow::{Context, Result, ensure};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest that the broker takes.
const SESSION: Duration = Duration::from_secs(5);

/// Longer than `elastic.split.cooldown.ms`.
const BETWEEN: Duration = Duration::from_millis(1200);

const LIMIT: Duration = Duration::from_secs(20);

/// Times that members come and go in the lineage's measurement.
const CYCLES: u64 = 10_000;

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    let (leaves, deaths) = if stage.quick { (8, 1) } else { (25, 3) };
    let small = Backlog {
        records_per_batch: 8,
        ..Backlog::new(if stage.quick { 50_000 } else { 150_000 }, Keys::Uniform)
    };
    site.topic("e8", small)?;
    configure_group(
        site.address(),
        "consumer.session.timeout.ms",
        &SESSION.as_millis().to_string(),
    )?;
    let owner = Owner::start(site.address(), "e8")?;
    let mut left_ms = Vec::new();
    for turn in 0..leaves {
        left_ms.push(end_of_a_member(&site, &owner, turn, true)?);
    }
    insert_times(numbers, "e8.leave", left_ms);
    let mut died_ms = Vec::new();
    for turn in leaves..leaves + deaths {
        died_ms.push(end_of_a_member(&site, &owner, turn, false)? - SESSION.as_secs_f64() * 1000.0);
    }
    insert_times(numbers, "e8.death", died_ms);
    owner.stop()?;
    let lineage = lineage(CYCLES)?;
    numbers.insert("e8.lineage_slices_max".into(), lineage.slices_max as f64);
    numbers.insert("e8.lineage_give_ups".into(), lineage.give_ups as f64);
    numbers.insert("e8.lineage_pieces_max".into(), lineage.pieces_max as f64);
    Ok(())
}

/// A member joins, reads for a while and ends; milliseconds until the owner has a record of its slots.
fn end_of_a_member(site: &Site<'_>, owner: &Owner, turn: u32, leaves: bool) -> Result<f64> {
    thread::sleep(BETWEEN);
    let name = format!("newcomer-{turn}");
    let id = topic_id(site.address(), "e8")?;
    let mut member = RawMember::join(site.address(), "e8", id, &name)?;
    let (begin, mut read) = (Instant::now(), 0);
    while read < 64 {
        member.beat()?;
        read += member.read(READ_BYTES)?.len();
        member.commit()?;
        owner.check()?;
        ensure!(
            begin.elapsed() < LIMIT,
            "the newcomer got nothing: {}",
            last_words(&site.broker.http()?, GROUP)
        );
        thread::sleep(Duration::from_millis(4));
    }
    let runs = slots_of(&site.broker.http()?, GROUP, &name)?;
    ensure!(!runs.is_empty(), "the newcomer has no slots");
    let is_its = |key: u32| {
        let slot = slot_of_key(&key_name(key)).get();
        runs.iter().any(|[first, last]| (*first..=*last).contains(&slot))
    };
    member.beat()?;
    let since = Instant::now();
    if leaves {
        member.leave()?;
    } else {
        drop(member);
    }
    loop {
        if let Some(at) = owner.first_of(since, is_its) {
            return Ok((at - since).as_secs_f64() * 1000.0);
        }
        owner.check()?;
        ensure!(since.elapsed() < SESSION + LIMIT, "nobody reads on");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The longest that lineage became.
#[derive(Debug, Default)]
struct Lineage {
    /// Slices of one member.
    slices_max: usize,
    /// Pieces of one slice.
    pieces_max: usize,
    /// Times that the member that stays had to give its share up and take it back, since its chain was full.
    give_ups: u64,
}

impl Lineage {
    fn note(&mut self, divided: &Divided) {
        for (_, chain) in divided.chains() {
            self.slices_max = chain.slices().len().max(self.slices_max);
            let pieces = chain.slices().iter().map(|slice| slice.pieces.len()).max();
            self.pieces_max = pieces.unwrap_or(0).max(self.pieces_max);
        }
    }
}

/// Splits and merges a cursor between two members, one of whom comes and goes, while both have records in work.
fn lineage(cycles: u64) -> Result<Lineage> {
    let mut play = Play::new();
    play.step(|step| {
        step.divide()?;
        step.grant("stays", 1, &SlotSet::all())
    })?;
    for cycle in 0..cycles {
        // Slots leave while records are in work; the fence opens when these are committed.
        let in_work = play.read("stays")?;
        play.make_room("stays")?;
        // Other slots each time, so that they differ in where they go on.
        let slots = play.divided()?.slots_of("stays")?;
        let moving: SlotSet = slots
            .iter()
            .filter(|slot| (u64::from(slot.get()) + cycle * 977) % SLOTS as u64 >= SLOTS as u64 / 2)
            .collect();
        let name = play.divided()?.name_of("stays")?;
        play.step(|step| step.release(name, &moving))?;
        play.commit("stays", in_work)?;
        let epoch = play.epoch;
        play.step(|step| step.grant("comes", epoch, &moving))?;
        let its = play.read("comes")?;
        play.commit("comes", its)?;
        // It dies with records in work, and so has the other.
        play.read("comes")?;
        let in_work = play.read("stays")?;
        play.step(|step| {
            step.dead("comes");
            Ok(())
        })?;
        // If it had to give up, it took the loose slots as well when it got its own back.
        if !play.make_room("stays")? {
            let loose = play.divided()?.grantable(&play.live).slots();
            let name = play.divided()?.name_of("stays")?;
            play.step(|step| step.jump_grant(name, &loose))?;
        }
        play.commit("stays", in_work)?;
        play.now.wall_ms += 60_000;
        play.now.mono_ms += 60_000;
    }
    Ok(play.longest)
}

/// A cursor in front of a log in which record n has slot n · 193 + 1, modulo the number of slots.
struct Play {
    cursor: Cursor,
    live: Live,
    ids: SliceIds,
    now: Now,
    log_end: i64,
    /// Epoch of the latest assignment.
    epoch: i32,
    longest: Lineage,
}

impl Play {
    fn new() -> Self {
        Self {
            cursor: Cursor::Plain(Plain::default()),
            live: Live::default(),
            ids: SliceIds::default(),
            now: Now::default(),
            log_end: 0,
            epoch: 1,
            longest: Lineage::default(),
        }
    }

    fn step<T>(
        &mut self,
        act: impl FnOnce(&mut Step<'_>) -> Result<T, anabranch_core::cursor::Refusal>,
    ) -> Result<T> {
        let world = World {
            group: "g",
            now: self.now,
            log_end: self.log_end,
            evidence: Evidence::Latest,
            ids_up_to: SliceId::LAST,
        };
        let mut step = Step::new(&mut self.cursor, &mut self.live, &mut self.ids, world);
        let done = act(&mut step);
        // Nothing is journalled here: the changes are made already.
        drop(step.finish());
        if let Cursor::Divided(divided) = &self.cursor {
            self.longest.note(divided);
        }
        Ok(done?)
    }

    fn divided(&self) -> Result<&Divided> {
        match &self.cursor {
            Cursor::Divided(divided) => Ok(divided),
            Cursor::Plain(_) => anyhow::bail!("the cursor is plain"),
        }
    }

    /// If a member's chain has no room for another slice, the member gives it up and gets it back, with all loose slots.
    fn make_room(&mut self, member: &str) -> Result<bool> {
        let name = self.divided()?.name_of(member)?;
        if self.divided()?.has_room(name, &self.live) {
            return Ok(false);
        }
        self.step(|step| {
            step.give_up(member);
            Ok(())
        })?;
        let slots = self.divided()?.grantable(&self.live).slots();
        self.epoch += 1;
        self.longest.give_ups += 1;
        let epoch = self.epoch;
        self.step(|step| step.grant(member, epoch, &slots))?;
        Ok(true)
    }

    /// The log grows by some records, and a member reads to its end. Where it stands then.
    fn read(&mut self, member: &str) -> Result<Position> {
        self.log_end += 64;
        let mut at = self
            .cursor
            .offset_fetch(&self.live, member)
            .context("no position")?;
        loop {
            let Found::Read(plan) = self.cursor.locate(&self.live, at.slice, at.offset) else {
                anyhow::bail!("{member} reads what it does not have");
            };
            let end = self.log_end.min(plan.sieve.to()).max(plan.from);
            let records: Vec<Record> = (plan.scan_from..end)
                .filter_map(|offset| {
                    let number = (offset.unsigned_abs() * 193 + 1) % SLOTS as u64;
                    let slot = Slot::new(u16::try_from(number).ok()?)?;
                    plan.sieve.keeps(slot, offset).then_some(Record { offset, slot })
                })
                .collect();
            if !records.is_empty() {
                let reserved = self.step(|step| step.reserve(&plan, &records, end))?;
                at = Position {
                    slice: plan.slice,
                    offset: reserved.end,
                };
            } else if let Some(next) = plan.next {
                at = next;
            } else {
                return Ok(at);
            }
        }
    }

    fn commit(&mut self, member: &str, at: Position) -> Result<()> {
        let epoch = self.epoch;
        self.step(|step| {
            step.commit(member, epoch, at.slice, at.offset, Note::default());
            Ok(())
        })
    }
}

/// Short ways to what a member holds.
trait Holds {
    fn name_of(&self, member: &str) -> Result<SliceId>;
    fn slots_of(&self, member: &str) -> Result<SlotSet>;
}

impl Holds for Divided {
    fn name_of(&self, member: &str) -> Result<SliceId> {
        Ok(self.chain_of(member).context("the member holds nothing")?.0)
    }

    fn slots_of(&self, member: &str) -> Result<SlotSet> {
        let (_, chain) = self.chain_of(member).context("the member holds nothing")?;
        Ok(chain.tail().pieces.slots())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lineage_stays_short_however_often_members_come_and_go() {
        let lineage = lineage(500).unwrap();
        assert!(
            lineage.slices_max <= 16 && lineage.pieces_max <= 16,
            "{lineage:?}"
        );
        assert!(lineage.give_ups <= 50, "{lineage:?}");
    }
}
