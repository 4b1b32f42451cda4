//! The world of the exploration: a setting, a cursor, a log of a few records, clients.

use std::sync::LazyLock;

use anabranch_wire::slot::Slot;

use super::super::super::live::HandedOut;
use super::client::Client;
use crate::cursor::*;
use crate::ids::{Now, Offset};
use crate::slots::SlotSet;

/// What is explored.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The slot of each record, from offset 0.
    pub(super) log: &'static [u16],
    /// How many of the records come later.
    pub(super) later: Offset,
    /// How many slots have records; the first ones, at most 3.
    pub(super) slots: u16,
    pub(super) clients: usize,
    /// Most records of one answer.
    pub(super) answer_max: usize,
    /// Most slices of a chain.
    pub(super) slices_max: usize,
    /// Most commits of a client under way.
    pub(super) commits_max: usize,
    /// Most fetches of a client under way.
    pub(super) fetches_max: usize,
    pub(super) evidence: Evidence,
    /// Records that a client takes at once, its commit running ahead of the work; 0: it commits after the work.
    pub(super) ahead: usize,
    /// Whether a client stands behind its last record rather than at the end of the answer.
    pub(super) last_plus_one: bool,
    /// Whether a client takes any answer that begins at or behind its position.
    pub(super) lenient: bool,
    /// Whether a release may take all slots of a tail.
    pub(super) empties: bool,
    /// Whether a transit may be returned.
    pub(super) returns: bool,
    pub(super) budget: Budget,
    /// The rule of the cursor that is broken.
    pub(super) fault: Option<Fault>,
    /// Whether a client that is taken to have given up keeps what it was handed (B7).
    pub(super) false_give_up: bool,
    /// Whether a client takes answers that were on their way when it was assigned anew (B17).
    pub(super) takes_late_answers: bool,
}

/// How often what may go wrong does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) give_ups: u8,
    pub(super) leaves: u8,
    /// Without a word; the group notices later.
    pub(super) deaths: u8,
    /// Of clients that are alive and go on.
    pub(super) expulsions: u8,
    /// Of the broker.
    pub(super) crashes: u8,
    /// Back to any offset of a slice of its own.
    pub(super) seeks: u8,
    /// The client begins anew at its committed position, as the same member.
    pub(super) restarts: u8,
    /// To the end of its slice: the application wants nothing of what lies before.
    pub(super) skips: u8,
    /// Fetches by somebody who knows the number.
    pub(super) foreign: u8,
    /// Commits that arrive and are sent once more.
    pub(super) resends: u8,
    /// Answers and commits that get lost.
    pub(super) lost: u8,
}

/// Sets of the slots that have records, by their bits.
static SETS: LazyLock<Vec<SlotSet>> = LazyLock::new(|| {
    let set = |bits: u16| (0..16).filter(|slot| bits & (1 << slot) != 0).map(slot).collect();
    (0..1 << SLOTS_MAX).map(set).collect()
});

/// Most slots that have records.
const SLOTS_MAX: u16 = 3;

pub(super) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

impl Setting {
    pub(super) fn base() -> Self {
        Self {
            log: &[0, 1, 0],
            later: 0,
            slots: 2,
            clients: 2,
            answer_max: 3,
            slices_max: 3,
            commits_max: 1,
            fetches_max: 1,
            evidence: Evidence::Latest,
            ahead: 0,
            last_plus_one: false,
            lenient: false,
            empties: false,
            returns: true,
            budget: Budget::default(),
            fault: None,
            false_give_up: false,
            takes_late_answers: false,
        }
    }

    pub(super) fn end(&self) -> Offset {
        self.log.len() as Offset
    }

    /// The slots whose bits are set.
    pub(super) fn set(bits: u16) -> &'static SlotSet {
        &SETS[usize::from(bits)]
    }

    /// All slots that have records.
    fn all(&self) -> &'static SlotSet {
        Self::set((1 << self.slots) - 1)
    }

    /// Records in `[from, to)`.
    pub(super) fn records(&self, from: Offset, to: Offset) -> impl Iterator<Item = Record> + '_ {
        let all = (0..).zip(self.log).map(|(offset, of)| Record {
            offset,
            slot: slot(*of),
        });
        all.filter(move |record| (from..to).contains(&record.offset))
    }

    /// Whether nothing goes wrong that would be a reason to process a record twice.
    pub(super) fn is_quiet(&self) -> bool {
        self.budget == Budget::default() && self.fetches_max == 1
    }
}

#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) cursor: Cursor,
    pub(super) live: Live,
    pub(super) ids: SliceIds,
    pub(super) clients: Vec<Client>,
    pub(super) budget: Budget,
    /// End of the log.
    pub(super) end: Offset,
    /// Which records somebody of the group has processed; a bit each.
    pub(super) processed: u16,
    /// Which need not be: lost with a client that had committed ahead of its work, or skipped.
    pub(super) excused: u16,
}

pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

impl Scene {
    /// Client 0 holds all slots in one slice; nothing was read. Client 1 is a member without any, others are not there.
    pub(super) fn new(setting: &Setting) -> Self {
        let mut scene = Self {
            cursor: Cursor::Plain(Plain::default()),
            live: Live::default(),
            ids: SliceIds::default(),
            clients: vec![Client::new(); setting.clients],
            budget: setting.budget,
            end: setting.end() - setting.later,
            processed: 0,
            excused: 0,
        };
        // Small ids are left free, for the fault that takes one.
        scene.ids.apply(&SliceIdsChange::Taken {
            id: SliceId::new(20).unwrap(),
            group: "other".to_owned(),
        });
        scene.clients[0].be_member(1);
        scene.clients[1].be_member(0);
        scene.divide(setting);
        scene
            .step(setting, |step| step.grant(NAMES[0], 1, setting.all()))
            .unwrap();
        scene.live.planted = Planted::new(setting.fault);
        scene
    }

    /// Divides the plain cursor. The slots without records go to somebody who has read all of them and is gone: so
    /// they are in nobody's way, and hold nobody up.
    pub(super) fn divide(&mut self, setting: &Setting) {
        let others = SlotSet::all().difference(setting.all());
        let end = self.end;
        self.live.planted = Planted::default();
        self.step(setting, |step| {
            step.divide().unwrap();
            let id = step.grant("z", 0, &others).unwrap();
            let Found::Read(plan) = step.cursor.locate(step.live, id, 0) else {
                panic!("z was just granted this")
            };
            step.memo(&plan, end);
            step.dead("z");
        });
        self.live.planted = Planted::new(setting.fault);
    }

    pub(super) fn step<T>(&mut self, setting: &Setting, act: impl FnOnce(&mut Step<'_>) -> T) -> T {
        let world = World {
            group: "g",
            now: Now::default(),
            log_end: self.end,
            evidence: setting.evidence,
            ids_up_to: SliceId::LAST,
        };
        let mut step = Step::new(&mut self.cursor, &mut self.live, &mut self.ids, world);
        let result = act(&mut step);
        let _ = step.finish();
        result
    }

    pub(super) fn divided(&self) -> &Divided {
        match &self.cursor {
            Cursor::Divided(divided) => divided,
            Cursor::Plain(_) => panic!("the cursor is divided in every world"),
        }
    }

    /// The chain that the client holds.
    pub(super) fn held(&self, client: usize) -> Option<(SliceId, &Chain)> {
        let found = self.divided().chain_of(NAMES[client])?;
        (found.1.state() == ChainState::Held).then_some(found)
    }

    /// Whoever reads has searched as far as there is nothing: that some have not yet makes no difference. Tables for
    /// readers are made when they are wanted: worlds that wait in a queue should be small.
    pub(super) fn search_ahead(&mut self, setting: &Setting) {
        let Cursor::Divided(divided) = &self.cursor else {
            return;
        };
        for (name, chain) in divided.chains() {
            let Some(live) = self.live.chains.get_mut(&name) else {
                continue;
            };
            live.slices.values_mut().for_each(HandedOut::drop_sieve);
            for slice in chain.slices() {
                let Some(found) = live.slices.get_mut(&slice.id).filter(|found| found.is_known) else {
                    continue;
                };
                let end = slice.to.unwrap_or(self.end).min(self.end);
                let is_mine = |record: &Record| {
                    let from = slice.pieces.from_of(record.slot);
                    from.is_some_and(|from| from <= record.offset)
                };
                let next = setting.records(found.known, end).find(is_mine);
                found.known = found.known.max(next.map_or(end, |record| record.offset));
            }
        }
    }
}
