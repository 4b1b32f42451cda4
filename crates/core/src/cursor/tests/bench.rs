//! One cursor with a log beside it, for tests: a reader that does what the server does.

use std::ops::RangeInclusive;

use anabranch_wire::slot::Slot;

use crate::cursor::*;
use crate::ids::{Now, Offset};
use crate::slots::SlotSet;

/// Two halves of all slots stand for two slots; a record of half 0 lies in slot 0, of half 1 in slot 2048.
pub(super) const HALF: u16 = 2048;

pub(super) fn slot(half: u16) -> Slot {
    Slot::new(half * HALF).unwrap()
}

pub(super) fn half(half: u16) -> SlotSet {
    (half * HALF..(half + 1) * HALF).filter_map(Slot::new).collect()
}

/// The one slot of a half that has records.
pub(super) fn one(half: u16) -> SlotSet {
    [slot(half)].into_iter().collect()
}

pub(super) fn id(number: u32) -> SliceId {
    SliceId::new(number).unwrap()
}

pub(super) fn at(slice: u32, offset: Offset) -> Position {
    Position {
        slice: id(slice),
        offset,
    }
}

pub(super) struct Bench {
    pub(super) cursor: Cursor,
    pub(super) live: Live,
    pub(super) ids: SliceIds,
    /// The half of each record.
    pub(super) log: Vec<u16>,
    pub(super) evidence: Evidence,
    pub(super) now: Now,
    pub(super) journal: Vec<CursorChange>,
}

impl Bench {
    /// A plain cursor at 0 before a log whose records lie in these halves.
    pub(super) fn new(log: &[u16]) -> Self {
        Self {
            cursor: Cursor::Plain(Plain::default()),
            live: Live::default(),
            ids: SliceIds::default(),
            log: log.to_vec(),
            evidence: Evidence::Latest,
            now: Now::default(),
            journal: Vec::new(),
        }
    }

    /// The same, divided, with all slots held by `a` in slice 1.
    pub(super) fn held(log: &[u16]) -> Self {
        let mut bench = Self::new(log);
        bench.step(|step| {
            step.divide().unwrap();
            step.grant("a", 1, &SlotSet::all()).unwrap()
        });
        bench
    }

    /// Somebody else's slices have these ids.
    pub(super) fn take_ids(&mut self, numbers: RangeInclusive<u32>) {
        for number in numbers {
            let group = String::new();
            self.ids.apply(&SliceIdsChange::Taken {
                id: id(number),
                group,
            });
        }
    }

    pub(super) fn step<T>(&mut self, act: impl FnOnce(&mut Step<'_>) -> T) -> T {
        let world = World {
            group: "g",
            now: self.now,
            log_end: self.log.len() as Offset,
            evidence: self.evidence,
            ids_up_to: SliceId::LAST,
        };
        let mut step = Step::new(&mut self.cursor, &mut self.live, &mut self.ids, world);
        let result = act(&mut step);
        self.journal.extend(step.finish().cursor);
        assert_eq!(self.divided_check(), Ok(()));
        result
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough in its lifetimes"
    )]
    pub(super) fn divide(&mut self) -> Result<(), Refusal> {
        self.step(|step| step.divide())
    }

    fn divided_check(&self) -> Result<(), String> {
        match &self.cursor {
            Cursor::Divided(divided) => divided.check(),
            Cursor::Plain(_) => Ok(()),
        }
    }

    pub(super) fn divided(&self) -> &Divided {
        match &self.cursor {
            Cursor::Divided(divided) => divided,
            Cursor::Plain(_) => panic!("the cursor is plain"),
        }
    }

    pub(super) fn chain(&self, member: &str) -> (SliceId, &Chain) {
        self.divided().chain_of(member).unwrap()
    }

    /// Ids of a member's slices.
    pub(super) fn slices(&self, member: &str) -> Vec<u32> {
        self.chain(member)
            .1
            .slices()
            .iter()
            .map(|slice| slice.id.get())
            .collect()
    }

    pub(super) fn position(&self, member: &str) -> Position {
        self.cursor.offset_fetch(&self.live, member).unwrap()
    }

    pub(super) fn records(&self, from: Offset, to: Offset) -> impl Iterator<Item = Record> + '_ {
        let numbered = (0..).zip(&self.log).map(|(offset, half)| Record {
            offset,
            slot: slot(*half),
        });
        numbered.filter(move |record| (from..to).contains(&record.offset))
    }

    pub(super) fn locate(&self, slice: u32, offset: Offset) -> Found {
        self.cursor.locate(&self.live, id(slice), offset)
    }

    /// A fetch of at most `most` log offsets: slice, offsets, end. `None`: no data, or nobody reads this.
    pub(super) fn fetch(
        &mut self,
        slice: u32,
        offset: Offset,
        most: Offset,
    ) -> Option<(u32, Vec<Offset>, Offset)> {
        let mut at = Position {
            slice: id(slice),
            offset,
        };
        loop {
            let Found::Read(plan) = self.cursor.locate(&self.live, at.slice, at.offset) else {
                return None;
            };
            let end = (self.log.len() as Offset).min(plan.sieve.to()).max(plan.from);
            let all = self.records(plan.scan_from, end);
            let mut found: Vec<Record> = all.filter(|r| plan.sieve.keeps(r.slot, r.offset)).collect();
            if found.is_empty() {
                self.step(|step| step.memo(&plan, end));
                at = plan.next?;
                continue;
            }
            let stop = end.min(found[0].offset + most);
            found.retain(|record| record.offset < stop);
            let reserved = self.step(|step| step.reserve(&plan, &found, stop)).unwrap();
            found.retain(|record| record.offset < reserved.end);
            let offsets = found.iter().map(|record| record.offset).collect();
            return Some((plan.slice.get(), offsets, reserved.end));
        }
    }

    pub(super) fn commit(&mut self, member: &str, slice: u32, offset: Offset) -> Committed {
        self.commit_at(member, 1, slice, offset)
    }

    pub(super) fn commit_at(&mut self, member: &str, epoch: i32, slice: u32, offset: Offset) -> Committed {
        self.step(|step| step.commit(member, epoch, id(slice), offset, Note::default()))
    }

    pub(super) fn release(&mut self, member: &str, slots: &SlotSet) -> Result<u32, Refusal> {
        let (name, _) = self.chain(member);
        self.step(|step| step.release(name, slots)).map(SliceId::get)
    }

    pub(super) fn jump_grant(&mut self, member: &str, slots: &SlotSet) -> Result<u32, Refusal> {
        let (name, _) = self.chain(member);
        self.step(|step| step.jump_grant(name, slots)).map(SliceId::get)
    }

    pub(super) fn grant(&mut self, member: &str, epoch: i32, slots: &SlotSet) -> Result<u32, Refusal> {
        self.step(|step| step.grant(member, epoch, slots))
            .map(SliceId::get)
    }

    /// What can be granted, as the offset of each half.
    pub(super) fn grantable(&self) -> [Option<Offset>; 2] {
        let grantable = self.divided().grantable(&self.live);
        [grantable.from_of(slot(0)), grantable.from_of(slot(1))]
    }

    /// The program ends and starts again; nothing is read again yet.
    pub(super) fn crash(&mut self) {
        self.live = Live::default();
        if let Cursor::Divided(divided) = &self.cursor {
            self.live
                .recover(divided, self.log.len() as Offset, self.now.mono_ms);
        }
    }

    /// Reads again what has to be.
    pub(super) fn recall(&mut self) {
        for wanted in self.divided().recall_wanted(&self.live) {
            let all = self.records(wanted.from, wanted.to);
            let found: Vec<Record> = all.filter(|r| wanted.sieve.keeps(r.slot, r.offset)).collect();
            self.step(|step| step.recall(&wanted, &found)).unwrap();
        }
    }

    pub(super) fn outside(&self) -> Offset {
        self.cursor.outside_view(Some(&self.live)).offset
    }

    /// The exact plain offset, if there is one.
    pub(super) fn probe(&self) -> (PlainProbe, Option<Offset>) {
        let mut probe = self.divided().plain_probe(&self.live);
        let (from, to) = probe.range();
        self.records(from, to).for_each(|record| probe.feed(record));
        let offset = probe.finish();
        (probe, offset)
    }
}
