//! Puts the questions together: picks out of the snapshot what an answer depends on, and keeps in mind what earlier answers
//! of the same plan have changed.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::{Weights, weigh};
use super::decision::{Change, How};
use super::divide::obstacle;
use super::grant;
use super::inputs::{
    BALANCE_ITEMS_MAX, BALANCE_MEMBERS_MAX, BalanceInputs, CANDIDATES_MAX, Candidate, DivideInputs,
    FoldInputs, FoldShare, GrantInputs, Inputs, Item, ItemTopic, Load, NEEDY_MAX, Needy, PartitionRef,
    PlainInputs, RECEIVERS_MAX, Receiver, ReturnInputs,
};
use super::settings::Mode;
use super::snapshot::{DividedView, Loose, MemberId, MemberState, Reading, Snapshot, TopicView, Transit};
use crate::ids::TopicId;
use crate::slots::SlotSet;

mod candidates;

/// A partition, for the planner.
pub(super) type Place = (TopicId, i32);

/// The snapshot, and what the plan so far does to it.
pub(super) struct Gather<'a> {
    snapshot: &'a Snapshot,
    /// Records that each member has to process, and how many shares and partitions it holds.
    loads: BTreeMap<&'a str, (u64, u32)>,
    /// Members that this plan has given something.
    served: BTreeSet<MemberId>,
    /// Partitions that this plan changes, or that wait to be counted.
    held: BTreeSet<Place>,
    /// Whole partitions that this plan has assigned.
    assigned: BTreeMap<Place, MemberId>,
}

impl<'a> Gather<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let mut loads: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
        let mut add = |member: &'a str, records: u64, items: u32| {
            let load = loads.entry(member).or_default();
            load.0 = load.0.saturating_add(records);
            load.1 = load.1.saturating_add(items);
        };
        for partition in snapshot
            .topics
            .values()
            .flat_map(|topic| topic.partitions.values())
        {
            match &partition.reading {
                Reading::Plain(plain) => {
                    if let Some(holder) = &plain.holder {
                        add(holder, plain.remaining, 1);
                    }
                }
                Reading::Divided(divided) => {
                    for (member, share) in &divided.shares {
                        add(member, share.remaining, 1);
                    }
                    let coming = divided
                        .transits
                        .iter()
                        .map(|transit| (&transit.target, transit.remaining));
                    let promised = divided
                        .loose
                        .iter()
                        .map(|loose| (&loose.promised, loose.remaining));
                    for (target, remaining) in coming.chain(promised) {
                        if let Some(target) = target {
                            add(target, remaining, 0);
                        }
                    }
                }
            }
        }
        Self {
            snapshot,
            loads,
            served: BTreeSet::new(),
            held: BTreeSet::new(),
            assigned: BTreeMap::new(),
        }
    }

    /// Keeps a change in mind.
    pub(super) fn changed(&mut self, change: &Change) {
        for moved in &change.moves {
            self.held.insert((moved.of.topic, moved.of.partition));
            if moved.how == How::Assign {
                let place = (moved.of.topic, moved.of.partition);
                self.assigned.insert(place, moved.to.clone());
            }
        }
        let whole = change.moves.iter().any(|moved| moved.how == How::Assign);
        for share in &change.shares {
            let gained = change
                .moves
                .iter()
                .filter(|moved| moved.to == share.member)
                .count() as u32;
            let lost = change
                .moves
                .iter()
                .filter(|moved| moved.from.as_ref() == Some(&share.member))
                .count() as u32;
            if let Some((member, _)) = self.snapshot.members.get_key_value(&share.member) {
                let load = self.loads.entry(member).or_default();
                load.0 = load.0.saturating_add(share.after).saturating_sub(share.before);
                if whole {
                    load.1 = load.1.saturating_add(gained).saturating_sub(lost);
                }
            }
            if share.after > share.before {
                self.served.insert(share.member.clone());
            }
        }
    }

    /// Nobody else is to be served by this member's wait.
    pub(super) fn served(&mut self, member: &str) {
        self.served.insert(member.to_owned());
    }

    pub(super) fn hold(&mut self, place: Place) {
        self.held.insert(place);
    }

    pub(super) fn is_held(&self, place: Place) -> bool {
        self.held.contains(&place)
    }

    /// Whether loose slots are about to go to somebody by an earlier decision.
    pub(super) fn is_promised(&self, loose: &Loose) -> bool {
        let promised = loose
            .promised
            .as_ref()
            .and_then(|to| self.snapshot.members.get(to));
        promised.is_some_and(super::snapshot::MemberView::takes)
    }

    fn load(&self, member: &str) -> (u64, u32) {
        self.loads.get(member).copied().unwrap_or_default()
    }

    fn age(&self, since_ms: u64) -> u64 {
        self.snapshot.now.mono_ms.saturating_sub(since_ms)
    }

    /// Members without work that nothing is on its way to, longest without it first.
    fn needy(&self) -> Vec<Needy> {
        let mut needy: Vec<Needy> = self
            .snapshot
            .members
            .iter()
            .filter(|(id, member)| member.is_needy() && self.load(id).0 == 0 && !self.served.contains(*id))
            .map(|(id, member)| Needy {
                id: id.clone(),
                drained: member.state == MemberState::Drained,
                for_ms: self.age(member.since_ms),
            })
            .collect();
        needy.sort_by(|a, b| b.for_ms.cmp(&a.for_ms).then_with(|| a.id.cmp(&b.id)));
        needy
    }

    pub(super) fn give_back(
        &self,
        topic: TopicId,
        view: &TopicView,
        partition: i32,
        transit: &Transit,
    ) -> ReturnInputs {
        let settings = &view.settings;
        // A source that has nothing left to do will commit nothing more, so that the last of its commits never has a successor
        // that would prove it.
        let source = self.snapshot.members.get(&transit.source);
        let done = source.filter(|source| source.is_needy());
        let is_silent = done.is_some_and(|source| self.age(source.since_ms) >= settings.split_cooldown_ms);
        let timeout_ms = if is_silent {
            settings.fence_timeout_ms.min(settings.split_cooldown_ms)
        } else {
            settings.fence_timeout_ms
        };
        ReturnInputs {
            of: of(topic, view, partition),
            slots: transit.slots.clone(),
            source: transit.source.clone(),
            target: transit.target.clone(),
            remaining: transit.remaining,
            for_ms: self.age(transit.since_ms),
            fence_timeout_ms: timeout_ms,
        }
    }

    pub(super) fn grant(
        &self,
        topic: TopicId,
        view: &TopicView,
        partition: i32,
        divided: &DividedView,
        loose: &Loose,
    ) -> GrantInputs {
        let takers = self.snapshot.members.iter();
        let takers = takers.filter(|(_, member)| member.takes() && member.may_share(topic));
        let mut receivers: Vec<Receiver> = takers
            .map(|(id, _)| Receiver {
                id: id.clone(),
                load: self.load(id).0,
                slots: divided.shares.get(id).map_or(0, |share| share.slots.len() as u32),
            })
            .collect();
        receivers.sort_by(|a, b| (a.load, a.slots, &a.id).cmp(&(b.load, b.slots, &b.id)));
        receivers.truncate(RECEIVERS_MAX);
        let mut inputs = GrantInputs {
            of: of(topic, view, partition),
            slots: loose.slots.clone(),
            remaining: loose.remaining,
            weights: None,
            for_ms: self.age(loose.since_ms),
            receivers,
            sharers: sharers(divided),
            slices_max: view.settings.slices_max,
            split_min_remaining: view.settings.split_min_remaining,
        };
        let sides = grant::takers(&inputs).len();
        if sides > 1 {
            inputs.weights = loose
                .counts
                .as_ref()
                .map(|counts| weigh(&loose.slots, counts, sides));
        }
        inputs
    }

    /// The next question about dividing; none: there is nobody to divide for.
    pub(super) fn divide(&self, snapshot: &Snapshot) -> Option<DivideInputs> {
        let mut needy = self.needy();
        needy.truncate(NEEDY_MAX);
        if needy.is_empty() {
            return None;
        }
        let all = self.holdings(|of| !self.held.contains(&of));
        // A group that has read everything, each member its part, is not asked why nobody has work.
        if needy.iter().all(|needy| needy.drained) && all.first().is_none_or(|largest| largest.remaining == 0)
        {
            return None;
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut blocked = 0;
        for holding in &all {
            if candidates.len() == CANDIDATES_MAX {
                break;
            }
            let candidate = self.candidate(holding, &needy);
            if candidate.takers.is_empty() {
                continue;
            }
            // Shares that cannot be divided are there to be named; they must not crowd out one that can.
            if obstacle(&candidate).is_some() {
                blocked += 1;
                if blocked > CANDIDATES_MAX / 2 {
                    continue;
                }
            }
            candidates.push(candidate);
        }
        Some(DivideInputs {
            paused: snapshot.paused,
            more_candidates: all.len().saturating_sub(candidates.len()) as u32,
            needy,
            candidates,
            victim: None,
        })
    }

    /// Weighs the victim: what a release can move, or, if the owner gives everything up, all of it.
    pub(super) fn weigh(
        &self,
        snapshot: &Snapshot,
        inputs: &DivideInputs,
        number: usize,
        how: How,
        sides: usize,
    ) -> Option<Weights> {
        let candidate = inputs.candidates.get(number)?;
        let topic = snapshot.topics.get(&candidate.of.topic)?;
        match &topic.partitions.get(&candidate.of.partition)?.reading {
            Reading::Plain(plain) => {
                let counts = plain.counts.as_ref()?;
                Some(weigh(&SlotSet::all(), counts, sides))
            }
            Reading::Divided(divided) => {
                let share = divided.shares.get(&candidate.owner)?;
                let counts = share.counts.as_ref()?;
                Some(match how {
                    How::Release => weigh(&share.slots, &counts.movable, sides),
                    _ => weigh(&share.slots, &counts.movable.plus(&counts.handed_out), sides),
                })
            }
        }
    }

    /// The question whether a divided partition flows together, or becomes plain; none: it is in motion, or has no need to.
    pub(super) fn fold(
        &self,
        topic: TopicId,
        view: &TopicView,
        partition: i32,
        divided: &DividedView,
    ) -> Option<Inputs> {
        let settled = divided.transits.is_empty() && divided.loose.is_empty();
        // Who has gone back to read again is waited for until its commits tell where it is. Where nothing is left to read no
        // commit will come any more, so that a division which is to end would never do.
        let is_over = |share: &super::ShareView| view.settings.mode != Mode::Slices && share.remaining == 0;
        let steady = |share: &super::ShareView| {
            (!share.rewound || is_over(share)) && !share.blind && !share.chain_full
        };
        if !settled || !divided.shares.values().all(steady) {
            return None;
        }
        let quiet_since = view.partitions.get(&partition)?.quiet_since_ms;
        let quiet_for_ms = quiet_since.map(|since| self.age(since));
        let (mode, merge_delay_ms) = (view.settings.mode, view.settings.merge_delay_ms);
        let of = of(topic, view, partition);
        let takes = |id: &MemberId| {
            self.snapshot
                .members
                .get(id)
                .is_some_and(super::MemberView::takes)
        };
        if divided.shares.len() > 1 {
            let shares = divided.shares.iter().map(|(id, share)| FoldShare {
                member: id.clone(),
                slots: share.slots.clone(),
                remaining: share.remaining,
                takes: takes(id),
            });
            let shares: Vec<FoldShare> = shares.collect();
            // A member that is away keeps what it has.
            let away = shares.iter().any(|share| !share.takes);
            return (!away && shares.iter().filter(|share| !share.slots.is_empty()).count() > 1).then(|| {
                Inputs::Fold(Box::new(FoldInputs {
                    of,
                    shares,
                    quiet_for_ms,
                    merge_delay_ms,
                    mode,
                }))
            });
        }
        let (member, share) = divided.shares.first_key_value()?;
        if !share.slots.is_all() || !divided.one_position || !takes(member) {
            return None;
        }
        Some(Inputs::Plain(Box::new(PlainInputs {
            of,
            member: member.clone(),
            quiet_for_ms,
            merge_delay_ms,
            mode,
        })))
    }
}

fn of(topic: TopicId, view: &TopicView, partition: i32) -> PartitionRef {
    PartitionRef {
        topic,
        name: view.name.clone(),
        partition,
    }
}

/// How many members share a partition, those that slots are on their way to included.
fn sharers(divided: &DividedView) -> u32 {
    let holders = divided.shares.keys();
    let coming = divided
        .transits
        .iter()
        .filter_map(|transit| transit.target.as_ref());
    let promised = divided.loose.iter().filter_map(|loose| loose.promised.as_ref());
    let all: BTreeSet<&MemberId> = holders.chain(coming).chain(promised).collect();
    all.len() as u32
}
