//! A small world for tests: members, partitions with records per slot, and plans carried out at once.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_wire::slot::{SLOTS, Slot};

use super::*;
use crate::ids::{Now, TopicId};
use crate::slots::SlotSet;

pub(super) const TOPIC: TopicId = TopicId([1; 16]);

/// Who holds a partition.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Plain(Option<MemberId>),
    /// Per slot; none: loose.
    Divided(Vec<Option<MemberId>>),
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) held: Held,
    /// Records not handed out, per slot.
    pub(super) records: Vec<u64>,
    /// Records handed out and not done, per slot, at whoever holds the slot.
    pub(super) handed_out: Vec<u64>,
    pub(super) quiet_since_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) snapshot: Snapshot,
    pub(super) parts: BTreeMap<(TopicId, i32), Part>,
    /// Whether counts are in the snapshot without being asked for.
    pub(super) counted: bool,
}

pub(super) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

pub(super) fn per_slot(counts: &SlotCounts) -> Vec<u64> {
    (0..SLOTS as u16).map(|number| counts.get(slot(number))).collect()
}

/// `records` spread evenly over all slots.
pub(super) fn even(records: u64) -> Vec<u64> {
    let per = records / SLOTS as u64;
    let more = (records % SLOTS as u64) as usize;
    (0..SLOTS).map(|at| per + u64::from(at < more)).collect()
}

fn counts_of(records: &[u64], slots: &SlotSet) -> SlotCounts {
    SlotCounts::exact(slots.iter().map(|slot| (slot, records[slot.index()])))
}

impl World {
    pub(super) fn new() -> Self {
        let topic = TopicView {
            name: "orders".into(),
            settings: ElasticSettings::default(),
            excluded: None,
            divided_ms: None,
            partitions: BTreeMap::new(),
        };
        Self {
            snapshot: Snapshot {
                now: Now {
                    mono_ms: 1_000_000,
                    wall_ms: 1_700_000_000_000,
                },
                topics: BTreeMap::from([(TOPIC, topic)]),
                ..Snapshot::default()
            },
            parts: BTreeMap::new(),
            counted: true,
        }
    }

    pub(super) fn part(mut self, number: i32, held: Held, records: Vec<u64>) -> Self {
        let part = Part {
            held,
            records,
            handed_out: vec![0; SLOTS],
            quiet_since_ms: None,
        };
        self.parts.insert((TOPIC, number), part);
        self
    }

    /// A plain partition that `holder` reads.
    pub(super) fn plain(self, number: i32, holder: &str, records: Vec<u64>) -> Self {
        self.part(number, Held::Plain(Some(holder.into())), records)
    }

    pub(super) fn member(mut self, id: &str) -> Self {
        self.join(id);
        self
    }

    pub(super) fn join(&mut self, id: &str) {
        let member = MemberView {
            state: MemberState::Idle,
            since_ms: self.snapshot.now.mono_ms,
            is_static: false,
            eligibility: Eligibility::Yes,
            topics: self.snapshot.topics.keys().copied().collect(),
            rate: None,
            commits: Commits {
                seen: 10,
                last_ms: Some(self.snapshot.now.mono_ms),
                interval_ms: Some(1000),
            },
            uncommitted_ms: None,
        };
        self.snapshot.members.insert(id.into(), member);
    }

    /// The member is gone: what it held is loose, or without a holder.
    pub(super) fn leave(&mut self, id: &str) {
        self.snapshot.members.remove(id);
        for part in self.parts.values_mut() {
            for at in 0..SLOTS {
                let loses = match &part.held {
                    Held::Plain(holder) => holder.as_deref() == Some(id),
                    Held::Divided(owners) => owners[at].as_deref() == Some(id),
                };
                if loses {
                    part.records[at] += std::mem::take(&mut part.handed_out[at]);
                }
            }
            match &mut part.held {
                Held::Plain(holder) => *holder = holder.take().filter(|holder| holder != id),
                Held::Divided(owners) => {
                    for owner in owners {
                        *owner = owner.take().filter(|owner| owner != id);
                    }
                }
            }
        }
    }

    pub(super) fn view(&mut self, id: &str) -> &mut MemberView {
        self.snapshot.members.get_mut(id).unwrap()
    }

    pub(super) fn topic(&mut self) -> &mut TopicView {
        self.snapshot.topics.get_mut(&TOPIC).unwrap()
    }

    pub(super) fn settings(&mut self) -> &mut ElasticSettings {
        &mut self.topic().settings
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.snapshot.now.mono_ms += ms;
        self.snapshot.now.wall_ms += ms as i64;
    }

    /// Records that a member has to process.
    pub(super) fn load(&self, id: &str) -> u64 {
        let parts = self.parts.values();
        parts
            .map(|part| {
                (0..SLOTS)
                    .filter(|at| part.owner(*at) == Some(id))
                    .map(|at| part.left(at))
                    .sum::<u64>()
            })
            .sum()
    }

    pub(super) fn loads(&self) -> Vec<u64> {
        self.snapshot.members.keys().map(|id| self.load(id)).collect()
    }

    pub(super) fn slots_of(&self, number: i32, id: &str) -> SlotSet {
        let part = &self.parts[&(TOPIC, number)];
        (0..SLOTS as u16)
            .filter(|at| part.owner(usize::from(*at)) == Some(id))
            .map(slot)
            .collect()
    }

    /// How many shares the partition has.
    pub(super) fn shares(&self, number: i32) -> usize {
        let part = &self.parts[&(TOPIC, number)];
        (0..SLOTS)
            .filter_map(|at| part.owner(at))
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Members process up to so many records of each thing that they hold.
    pub(super) fn process(&mut self, id: &str, records: u64) {
        let mut left = records;
        for part in self.parts.values_mut() {
            for at in 0..SLOTS {
                if part.owner(at) == Some(id) {
                    for count in [&mut part.handed_out[at], &mut part.records[at]] {
                        let done = left.min(*count);
                        *count -= done;
                        left -= done;
                    }
                }
            }
        }
    }

    /// The snapshot, with partitions and states as they are.
    pub(super) fn look(&mut self) -> Snapshot {
        let (now_ms, counted) = (self.snapshot.now.mono_ms, self.counted);
        for topic in self.snapshot.topics.values_mut() {
            topic.partitions.clear();
        }
        for ((topic, number), part) in &self.parts {
            let view = part.view(now_ms, counted);
            self.snapshot
                .topics
                .get_mut(topic)
                .unwrap()
                .partitions
                .insert(*number, view);
        }
        let holding: BTreeSet<MemberId> = self.parts.values().flat_map(Part::holders).collect();
        let loads: BTreeMap<MemberId, u64> = self
            .snapshot
            .members
            .keys()
            .map(|id| (id.clone(), self.load(id)))
            .collect();
        for (id, member) in &mut self.snapshot.members {
            if !matches!(
                member.state,
                MemberState::Paused | MemberState::Leaving | MemberState::Away
            ) {
                member.state = match (holding.contains(id), loads[id]) {
                    (false, _) => MemberState::Idle,
                    (true, 0) => MemberState::Drained,
                    (true, _) => MemberState::Busy,
                };
            }
        }
        self.snapshot.clone()
    }

    /// Plans, and holds the plan to what every plan must keep.
    pub(super) fn plan(&mut self) -> Plan {
        let snapshot = self.look();
        let plan = super::plan(&snapshot);
        assert_eq!(super::plan(&snapshot), plan, "not deterministic");
        let mut changed = BTreeSet::new();
        for decision in &plan.decisions {
            assert_eq!(
                decision.replay(),
                Outcome::Change(decision.change.clone()),
                "replay"
            );
            assert_eq!(
                Decision::decode(&decision.encode()).as_ref(),
                Ok(decision),
                "codec"
            );
            assert!(!decision.sentence().is_empty());
            let of: BTreeSet<_> = decision
                .change
                .moves
                .iter()
                .map(|moved| moved.of.clone())
                .collect();
            for of in of {
                assert!(changed.insert(of.clone()), "{of} changed twice");
            }
        }
        for refusal in &plan.refusals {
            let (why_not, about) = (refusal.why_not.clone(), refusal.about.clone());
            assert_eq!(refusal.replay(), Outcome::Refused { why_not, about }, "replay");
            assert_eq!(Refusal::decode(&refusal.encode()).as_ref(), Ok(refusal), "codec");
        }
        plan
    }

    /// Plans and carries it out; fences open at once.
    pub(super) fn step(&mut self) -> Plan {
        let plan = self.plan();
        for decision in &plan.decisions {
            self.carry_out(&decision.change);
        }
        plan
    }

    pub(super) fn carry_out(&mut self, change: &Change) {
        let now_ms = self.snapshot.now.mono_ms;
        for moved in &change.moves {
            let key = (moved.of.topic, moved.of.partition);
            self.parts.get_mut(&key).unwrap().carry_out(moved);
            if matches!(change.kind, Kind::Split | Kind::Steal | Kind::Isolate) {
                self.snapshot.topics.get_mut(&key.0).unwrap().divided_ms = Some(now_ms);
            }
        }
        if change.kind == Kind::Balance && change.why == Why::Uneven {
            self.snapshot.balanced_ms = Some(now_ms);
        }
    }
}

impl Part {
    pub(super) fn owner(&self, at: usize) -> Option<&str> {
        match &self.held {
            Held::Plain(holder) => holder.as_deref(),
            Held::Divided(owners) => owners[at].as_deref(),
        }
    }

    fn left(&self, at: usize) -> u64 {
        self.records[at] + self.handed_out[at]
    }

    fn holders(&self) -> BTreeSet<MemberId> {
        (0..SLOTS)
            .filter_map(|at| self.owner(at))
            .map(str::to_owned)
            .collect()
    }

    fn carry_out(&mut self, moved: &Move) {
        let from = moved.from.as_deref();
        for slot in moved.slots.iter() {
            assert_eq!(self.owner(slot.index()), from, "{moved:?}");
        }
        match moved.how {
            How::Assign => self.held = Held::Plain(Some(moved.to.clone())),
            How::Plain => {
                assert!(moved.slots.is_all());
                self.held = Held::Plain(Some(moved.to.clone()));
            }
            _ => {
                if let Held::Plain(holder) = &self.held {
                    assert_eq!(moved.how, How::Divide);
                    self.held = Held::Divided(vec![holder.clone(); SLOTS]);
                }
                let Held::Divided(owners) = &mut self.held else {
                    unreachable!()
                };
                for slot in moved.slots.iter() {
                    owners[slot.index()] = Some(moved.to.clone());
                }
            }
        }
    }

    fn view(&self, now_ms: u64, counted: bool) -> PartitionView {
        let total = |slots: &SlotSet| slots.iter().map(|slot| self.left(slot.index())).sum();
        let reading = match &self.held {
            Held::Plain(holder) => Reading::Plain(PlainView {
                without_position: false,
                holder: holder.clone(),
                remaining: total(&SlotSet::all()),
                counts: counted.then(|| counts_of(&self.records, &SlotSet::all())),
            }),
            Held::Divided(owners) => {
                let of = |id: Option<&str>| -> SlotSet {
                    (0..SLOTS as u16)
                        .filter(|at| owners[usize::from(*at)].as_deref() == id)
                        .map(slot)
                        .collect()
                };
                let share = |id: &MemberId| {
                    let slots = of(Some(id));
                    ShareView {
                        remaining: total(&slots),
                        handed_out: slots.iter().map(|slot| self.handed_out[slot.index()]).sum(),
                        counts: counted.then(|| ShareCounts {
                            movable: counts_of(&self.records, &slots),
                            handed_out: counts_of(&self.handed_out, &slots),
                        }),
                        slots,
                        ..ShareView::default()
                    }
                };
                let shares: BTreeMap<MemberId, ShareView> = self
                    .holders()
                    .into_iter()
                    .map(|id| (id.clone(), share(&id)))
                    .collect();
                let loose = of(None);
                let loose = (!loose.is_empty()).then(|| Loose {
                    remaining: total(&loose),
                    counts: counted.then(|| counts_of(&self.records, &loose)),
                    slots: loose,
                    promised: None,
                    since_ms: now_ms,
                });
                Reading::Divided(DividedView {
                    one_position: shares.len() == 1 && loose.is_none(),
                    shares,
                    transits: Vec::new(),
                    loose: loose.into_iter().collect(),
                })
            }
        };
        PartitionView {
            reading,
            ids_left: 100_000,
            quiet_since_ms: self.quiet_since_ms,
            awaits_yield: false,
        }
    }
}

/// The kinds of a plan's changes.
pub(super) fn kinds(plan: &Plan) -> Vec<Kind> {
    plan.decisions
        .iter()
        .map(|decision| decision.change.kind)
        .collect()
}

/// The reasons of its refusals.
pub(super) fn refusals(plan: &Plan) -> Vec<&'static str> {
    plan.refusals
        .iter()
        .map(|refusal| refusal.why_not.code())
        .collect()
}

/// `n` members that share one partition evenly, all at work.
pub(super) fn shared_by(n: usize, records: u64) -> World {
    let owners = (0..SLOTS)
        .map(|at| Some(format!("m{}", at * n / SLOTS)))
        .collect();
    let mut world = World::new().part(0, Held::Divided(owners), even(records));
    for number in 0..n {
        world.join(&format!("m{number}"));
    }
    world
}

/// The plan when one more member has joined, with the snapshot changed in some way first.
pub(super) fn joined(mut world: World, change: impl FnOnce(&mut Snapshot)) -> Plan {
    world.join("new");
    let mut snapshot = world.look();
    change(&mut snapshot);
    let plan = super::plan(&snapshot);
    for decision in &plan.decisions {
        assert_eq!(decision.replay(), Outcome::Change(decision.change.clone()));
        assert_eq!(Decision::decode(&decision.encode()).as_ref(), Ok(decision));
    }
    plan
}

pub(super) fn divided(snapshot: &mut Snapshot) -> &mut DividedView {
    match &mut snapshot
        .topics
        .get_mut(&TOPIC)
        .unwrap()
        .partitions
        .get_mut(&0)
        .unwrap()
        .reading
    {
        Reading::Divided(divided) => divided,
        Reading::Plain(_) => panic!("plain"),
    }
}

pub(super) fn shares(snapshot: &mut Snapshot) -> impl Iterator<Item = &mut ShareView> {
    divided(snapshot).shares.values_mut()
}
