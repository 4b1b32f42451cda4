//! E9: members come and go at random for half an hour of the planner's time; how many splits and merges that leads to.
//!
//! The planner is a pure function, so the half hour takes a moment: a small world with one partition, which is written and
//! read evenly, is shown to it once a second and at each change, and its decisions are carried out at once.

use crate::case::Numbers;
use anabranch_core::elastic::{
    Change, Commits, DividedView, Eligibility, How, Kind, Loose, MemberId, MemberState, MemberView,
    PartitionView, PlainView, Reading, ShareCounts, ShareView, SlotCounts, Snapshot, TopicView, plan,
};
use anabranch_core::elastic::{ElasticSettings, Why};
use anabranch_core::ids::{Now, TopicId};
use anabranch_core::slots::SlotSet;
use anabranch_wire::slot::{SLOTS, Slot};
use anyhow::{Result, ensure};
use std::collections::{BTreeMap, BTreeSet};

const HALF_AN_HOUR_S: u64 = 1_800;

/// Runs, each with other chances.
const RUNS: u64 = 8;

/// Records that are written in a second, and those that a member reads: five members keep up.
const WRITTEN: u64 = 5_000;
const READ: u64 = 1_000;

const TOPIC: TopicId = TopicId([1; 16]);

/// What came of a run.
#[derive(Debug, Default)]
struct Tally {
    joins: u64,
    leaves: u64,
    splits: u64,
    merges: u64,
    /// Shares of the partition, less the members, at most.
    excess: i64,
}

pub(super) fn run(numbers: &mut Numbers) -> Result<()> {
    let mut worst_split = 0.0_f64;
    let mut worst_merge = 0.0_f64;
    let mut excess = i64::MIN;
    for seed in 1..=RUNS {
        let tally = World::new(seed).run()?;
        ensure!(tally.joins > 0 && tally.leaves > 0, "nobody came or went");
        worst_split = worst_split.max(tally.splits as f64 / tally.joins as f64);
        worst_merge = worst_merge.max(tally.merges as f64 / tally.leaves as f64);
        excess = excess.max(tally.excess);
    }
    numbers.insert("e9.splits_a_join".into(), worst_split);
    numbers.insert("e9.merges_a_leave".into(), worst_merge);
    numbers.insert("e9.shares_beyond_members".into(), excess as f64);
    Ok(())
}

struct World {
    state: u64,
    now: Now,
    members: BTreeMap<MemberId, u64>,
    next_member: u32,
    /// Who has each slot.
    owners: Vec<Option<MemberId>>,
    plain: bool,
    /// Records to be read of each slot.
    records: Vec<u64>,
    divided_ms: Option<u64>,
    balanced_ms: Option<u64>,
    tally: Tally,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: Now {
                mono_ms: 1_000_000,
                wall_ms: 1_700_000_000_000,
            },
            members: BTreeMap::new(),
            next_member: 0,
            owners: vec![None; SLOTS],
            plain: true,
            records: vec![50; SLOTS],
            divided_ms: None,
            balanced_ms: None,
            tally: Tally::default(),
        };
        world.come();
        world.tally.joins = 0;
        world
    }

    fn run(mut self) -> Result<Tally> {
        for _ in 0..HALF_AN_HOUR_S {
            self.now.mono_ms += 1000;
            self.now.wall_ms += 1000;
            self.pass();
            // Somebody comes or goes every ten seconds, in bursts and pauses as chance has it.
            match self.below(20) {
                0 if self.members.len() < 12 => self.come(),
                1 if self.members.len() > 1 => self.go(),
                _ => {}
            }
            self.decide()?;
            let shares: BTreeSet<&MemberId> = self.owners.iter().flatten().collect();
            let excess = shares.len() as i64 - self.members.len() as i64;
            self.tally.excess = self.tally.excess.max(excess);
        }
        Ok(self.tally)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % bound
    }

    fn come(&mut self) {
        self.members
            .insert(format!("m{:03}", self.next_member), self.now.mono_ms);
        self.next_member += 1;
        self.tally.joins += 1;
    }

    fn go(&mut self) {
        let at = self.below(self.members.len() as u64) as usize;
        let Some(id) = self.members.keys().nth(at).cloned() else {
            return;
        };
        self.members.remove(&id);
        for owner in &mut self.owners {
            *owner = owner.take().filter(|owner| *owner != id);
        }
        self.tally.leaves += 1;
    }

    /// A second of writing and reading.
    fn pass(&mut self) {
        for _ in 0..WRITTEN {
            let slot = self.below(SLOTS as u64) as usize;
            self.records[slot] += 1;
        }
        let mut left: BTreeMap<MemberId, u64> = self.members.keys().map(|id| (id.clone(), READ)).collect();
        for (records, owner) in self.records.iter_mut().zip(&self.owners) {
            let left = owner.as_ref().and_then(|owner| left.get_mut(owner));
            if let Some(left) = left {
                let read = (*left).min(*records);
                *records -= read;
                *left -= read;
            }
        }
    }

    /// Plans until there is nothing more to decide now.
    fn decide(&mut self) -> Result<()> {
        for _ in 0..16 {
            let plan = plan(&self.snapshot());
            if plan.decisions.is_empty() {
                return Ok(());
            }
            for decision in &plan.decisions {
                self.carry_out(&decision.change);
            }
        }
        anyhow::bail!("planning does not come to an end")
    }

    fn carry_out(&mut self, change: &Change) {
        for moved in &change.moves {
            self.plain = matches!(moved.how, How::Assign | How::Plain);
            for slot in moved.slots.iter() {
                self.owners[slot.index()] = Some(moved.to.clone());
            }
        }
        match change.kind {
            Kind::Split | Kind::Isolate => self.tally.splits += 1,
            Kind::Merge => self.tally.merges += 1,
            _ => {}
        }
        if matches!(change.kind, Kind::Split | Kind::Steal | Kind::Isolate) {
            self.divided_ms = Some(self.now.mono_ms);
        }
        if change.kind == Kind::Balance && change.why == Why::Uneven {
            self.balanced_ms = Some(self.now.mono_ms);
        }
    }

    fn snapshot(&self) -> Snapshot {
        let topic = TopicView {
            name: "orders".into(),
            settings: ElasticSettings::default(),
            excluded: None,
            divided_ms: self.divided_ms,
            partitions: BTreeMap::from([(
                0,
                PartitionView {
                    reading: self.reading(),
                    ids_left: 100_000,
                    quiet_since_ms: None,
                    awaits_yield: false,
                },
            )]),
        };
        Snapshot {
            now: self.now,
            balanced_ms: self.balanced_ms,
            members: self
                .members
                .iter()
                .map(|(id, since_ms)| (id.clone(), self.member(id, *since_ms)))
                .collect(),
            topics: BTreeMap::from([(TOPIC, topic)]),
            ..Snapshot::default()
        }
    }

    fn member(&self, id: &MemberId, since_ms: u64) -> MemberView {
        let slots = self.slots_of(Some(id));
        let state = match (slots.is_empty(), self.counts(&slots).total()) {
            (true, _) => MemberState::Idle,
            (false, 0) => MemberState::Drained,
            (false, _) => MemberState::Busy,
        };
        MemberView {
            state,
            since_ms,
            is_static: false,
            eligibility: Eligibility::Yes,
            topics: BTreeSet::from([TOPIC]),
            rate: Some(READ),
            commits: Commits {
                seen: 10,
                last_ms: Some(self.now.mono_ms),
                interval_ms: Some(1000),
            },
            uncommitted_ms: None,
        }
    }

    fn slots_of(&self, id: Option<&MemberId>) -> SlotSet {
        let own = |at: &u16| {
            self.owners
                .get(usize::from(*at))
                .is_some_and(|owner| owner.as_ref() == id)
        };
        (0..SLOTS as u16).filter(own).filter_map(Slot::new).collect()
    }

    fn counts(&self, slots: &SlotSet) -> SlotCounts {
        SlotCounts::exact(slots.iter().map(|slot| (slot, self.records[slot.index()])))
    }

    fn reading(&self) -> Reading {
        let loose = self.slots_of(None);
        if self.plain && (loose.is_all() || loose.is_empty()) {
            let counts = self.counts(&SlotSet::all());
            return Reading::Plain(PlainView {
                holder: self.owners.first().cloned().flatten(),
                remaining: counts.total(),
                without_position: false,
                counts: Some(counts),
            });
        }
        let holders: BTreeSet<MemberId> = self.owners.iter().flatten().cloned().collect();
        let share = |id: &MemberId| {
            let slots = self.slots_of(Some(id));
            let movable = self.counts(&slots);
            ShareView {
                remaining: movable.total(),
                counts: Some(ShareCounts {
                    movable,
                    handed_out: SlotCounts::none(),
                }),
                slots,
                ..ShareView::default()
            }
        };
        let shares: BTreeMap<MemberId, ShareView> =
            holders.iter().map(|id| (id.clone(), share(id))).collect();
        let loose = (!loose.is_empty()).then(|| {
            let counts = self.counts(&loose);
            Loose {
                promised: None,
                since_ms: self.now.mono_ms,
                remaining: counts.total(),
                counts: Some(counts),
                slots: loose,
            }
        });
        Reading::Divided(DividedView {
            one_position: false,
            shares,
            transits: Vec::new(),
            loose: loose.into_iter().collect(),
        })
    }
}
