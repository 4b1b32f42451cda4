//! What can be divided or moved: shares and plain partitions with their facts, and the loads of members.

use std::cmp::Reverse;

use super::{
    BALANCE_ITEMS_MAX, BALANCE_MEMBERS_MAX, BTreeMap, BTreeSet, BalanceInputs, Candidate, Gather, Item,
    ItemTopic, Load, Needy, Place, Snapshot, TopicId, of, sharers,
};
use crate::elastic::counts::{Precision, SlotCounts};
use crate::elastic::cut::{Hottest, weigh};
use crate::elastic::divide::obstacle;
use crate::elastic::inputs::{DivideRules, Facts};
use crate::elastic::settings::{ElasticSettings, Mode};
use crate::elastic::snapshot::{Eligibility, MemberId, MemberState, Reading, ShareView, TopicView};
use crate::slots::SlotSet;

/// Something that one member holds: a share, or a plain partition.
pub(super) struct Holding<'a> {
    topic: TopicId,
    view: &'a TopicView,
    partition: i32,
    owner: &'a MemberId,
    /// None: a plain partition.
    share: Option<&'a ShareView>,
    /// Records still to be processed.
    pub(super) remaining: u64,
}

impl<'a> Gather<'a> {
    /// Everything that members hold of the partitions that `wanted` picks, most records first.
    pub(super) fn holdings(&self, wanted: impl Fn(Place) -> bool) -> Vec<Holding<'a>> {
        let mut all = Vec::new();
        for (topic, view) in &self.snapshot.topics {
            for (partition, state) in &view.partitions {
                if !wanted((*topic, *partition)) {
                    continue;
                }
                let holding = |owner, share, remaining| Holding {
                    topic: *topic,
                    view,
                    partition: *partition,
                    owner,
                    share,
                    remaining,
                };
                match &state.reading {
                    Reading::Plain(plain) => {
                        all.extend(
                            plain
                                .holder
                                .as_ref()
                                .map(|holder| holding(holder, None, plain.remaining)),
                        );
                    }
                    Reading::Divided(divided) => {
                        let shares = divided.shares.iter();
                        all.extend(shares.map(|(owner, share)| holding(owner, Some(share), share.remaining)));
                    }
                }
            }
        }
        all.retain(|holding| self.snapshot.members.contains_key(holding.owner));
        all.sort_by_key(|holding| {
            (
                Reverse(holding.remaining),
                holding.topic,
                holding.partition,
                holding.owner,
            )
        });
        all
    }

    /// A holding with all that matters for dividing it.
    pub(super) fn candidate(&self, holding: &Holding<'a>, needy: &[Needy]) -> Candidate {
        let partition = holding.view.partitions.get(&holding.partition);
        let owner = self.snapshot.members.get(holding.owner);
        let mut in_transit = partition.is_some_and(|partition| partition.awaits_yield);
        let (mut has, mut now_sharing) = (BTreeSet::from([holding.owner]), 1);
        if let Some(Reading::Divided(divided)) = partition.map(|partition| &partition.reading) {
            has.extend(divided.shares.keys());
            in_transit |= !divided.transits.is_empty() || !divided.loose.is_empty();
            now_sharing = sharers(divided);
        }
        let subscribes = |needy: &Needy| {
            let member = self.snapshot.members.get(&needy.id);
            needy.id != *holding.owner && member.is_some_and(|member| member.topics.contains(&holding.topic))
        };
        let takers = needy.iter().enumerate().filter(|(_, needy)| subscribes(needy));
        let (hottest, precision) = self.hottest(holding);
        let commits = owner.map(|owner| owner.commits).unwrap_or_default();
        let uncommitted = owner.and_then(|owner| owner.uncommitted_ms);
        Candidate {
            of: of(holding.topic, holding.view, holding.partition),
            owner: holding.owner.clone(),
            plain: holding.share.is_none(),
            remaining: holding.remaining,
            handed_out: holding.share.map_or(0, |share| share.handed_out),
            slots: holding
                .share
                .map_or(SlotSet::all().len(), |share| share.slots.len()) as u32,
            hottest,
            precision,
            takers: takers
                .map(|(at, needy)| (at as u16, !has.contains(&needy.id)))
                .collect(),
            sharers: now_sharing,
            ids_left: partition.map_or(0, |partition| partition.ids_left),
            facts: self.facts(holding, in_transit),
            divided_ago_ms: holding.view.divided_ms.map(|since| self.age(since)),
            returned_ago_ms: holding
                .share
                .and_then(|share| share.returned_ms)
                .map(|since| self.age(since)),
            rate: owner.and_then(|owner| owner.rate),
            commits: commits.seen,
            commit_interval_ms: commits.interval_ms,
            uncommitted_for_ms: uncommitted.map(|since| self.age(commits.last_ms.unwrap_or(0).max(since))),
            rules: rules(&holding.view.settings),
        }
    }

    fn facts(&self, holding: &Holding<'a>, in_transit: bool) -> Facts {
        let owner = self.snapshot.members.get(holding.owner).map(|owner| owner.state);
        let ineligible = self
            .snapshot
            .members
            .iter()
            .find_map(|(id, member)| match &member.eligibility {
                Eligibility::No(text) if member.topics.contains(&holding.topic) => {
                    Some((id.clone(), text.clone()))
                }
                _ => None,
            });
        let share = holding.share;
        Facts {
            excluded: holding.view.excluded.clone(),
            ineligible,
            owner_absent: !matches!(
                owner,
                Some(MemberState::Busy | MemberState::Paused | MemberState::Drained | MemberState::Idle)
            ),
            in_transit,
            chain_full: share.is_some_and(|share| share.chain_full),
            rewound: share.is_some_and(|share| share.rewound),
            blind: share.is_some_and(|share| share.blind),
        }
    }

    /// The hottest slot of a holding, and how its records were counted.
    fn hottest(&self, holding: &Holding<'a>) -> (Option<Hottest>, Precision) {
        let hottest =
            |slots: &SlotSet, counts: &SlotCounts| (weigh(slots, counts, 2).hottest(), counts.precision());
        let partition = holding.view.partitions.get(&holding.partition);
        match (holding.share, partition.map(|partition| &partition.reading)) {
            (
                Some(ShareView {
                    slots,
                    counts: Some(counts),
                    ..
                }),
                _,
            ) => hottest(slots, &counts.movable.plus(&counts.handed_out)),
            // Its one slot needs no counting.
            (Some(ShareView { slots, remaining, .. }), _) if slots.len() == 1 => {
                let only = slots.iter().next().map(|slot| Hottest {
                    slot,
                    records: *remaining,
                    others: 0,
                });
                (only, Precision::Exact)
            }
            (None, Some(Reading::Plain(plain))) => match &plain.counts {
                Some(counts) => hottest(&SlotSet::all(), counts),
                None => (None, Precision::Exact),
            },
            _ => (None, Precision::Exact),
        }
    }

    /// The next question about whole partitions; none: there are none that could move.
    pub(crate) fn balance(&self, snapshot: &Snapshot) -> Option<BalanceInputs> {
        let plain = self.plain();
        if plain.is_empty() || snapshot.dealt_by_number {
            return None;
        }
        let members = self.balance_members(&plain);
        let at: BTreeMap<&str, u16> = members
            .iter()
            .zip(0..)
            .map(|(load, at)| (load.id.as_str(), at))
            .collect();
        let mut topics: Vec<ItemTopic> = Vec::new();
        let mut items = Vec::new();
        for item in &plain {
            let owner = item.owner.map(|owner| at.get(owner).copied());
            if items.len() == BALANCE_ITEMS_MAX || owner == Some(None) {
                continue;
            }
            if topics.last().is_none_or(|topic| topic.topic != item.topic) {
                let may = members.iter().zip(0..).filter(|(load, _)| {
                    let member = snapshot.members.get(&load.id);
                    member.is_some_and(|member| member.topics.contains(&item.topic))
                });
                topics.push(ItemTopic {
                    topic: item.topic,
                    name: item.view.name.clone(),
                    takers: may.map(|(_, at)| at).collect(),
                });
            }
            items.push(Item {
                topic: (topics.len() - 1) as u16,
                partition: item.partition,
                owner: owner.flatten(),
                remaining: item.remaining,
            });
        }
        let least = snapshot
            .topics
            .values()
            .map(|topic| topic.settings.split_min_remaining)
            .min();
        Some(BalanceInputs {
            paused: snapshot.paused,
            members,
            topics,
            items,
            balanced_ago_ms: snapshot.balanced_ms.map(|since| self.age(since)),
            cooldown_ms: snapshot.settings.balance_cooldown_ms,
            cut_gives: self.cut_gives(),
            min_remaining: least.unwrap_or(0),
        })
    }

    /// Plain partitions that can be placed: those that nobody has first, by topic within each.
    fn plain(&self) -> Vec<PlainItem<'a>> {
        let mut plain = Vec::new();
        // Where nothing is elastic, partitions are dealt as in Kafka.
        let elastic = self.snapshot.topics.iter();
        let elastic = elastic.filter(|(_, view)| view.settings.mode == Mode::Slices);
        for (topic, view) in elastic {
            for (partition, state) in &view.partitions {
                let Reading::Plain(reading) = &state.reading else {
                    continue;
                };
                let place = (*topic, *partition);
                // What this plan has assigned stays there; what it holds back waits, as does what is about to be shared.
                if state.awaits_yield || self.assigned.contains_key(&place) || self.held.contains(&place) {
                    continue;
                }
                let holder = reading
                    .holder
                    .as_ref()
                    .and_then(|holder| self.snapshot.members.get_key_value(holder));
                let owner = match holder {
                    Some((_, member)) if matches!(member.state, MemberState::Away | MemberState::Leaving) => {
                        continue;
                    }
                    Some((id, _)) => Some(id.as_str()),
                    None => None,
                };
                plain.push(PlainItem {
                    topic: *topic,
                    view,
                    partition: *partition,
                    owner,
                    remaining: reading.remaining,
                });
            }
        }
        plain.sort_by_key(|item| (item.owner.is_some(), item.topic, item.partition));
        plain
    }

    /// Half of the members with the most to give, half with the least to do.
    fn balance_members(&self, plain: &[PlainItem<'a>]) -> Vec<Load> {
        let owners: BTreeSet<&str> = plain.iter().filter_map(|item| item.owner).collect();
        let needy: BTreeSet<MemberId> = self.needy().into_iter().map(|needy| needy.id).collect();
        let mut all: Vec<Load> = self
            .snapshot
            .members
            .iter()
            .map(|(id, member)| Load {
                id: id.clone(),
                records: self.load(id).0,
                items: self.load(id).1,
                needy: needy.contains(id),
                takes: member.takes(),
            })
            .collect();
        all.sort_by(|a, b| (a.records, a.items, &a.id).cmp(&(b.records, b.items, &b.id)));
        let takers = all.iter().filter(|load| load.takes).take(BALANCE_MEMBERS_MAX / 2);
        let givers = all.iter().rev().filter(|load| owners.contains(load.id.as_str()));
        let chosen: BTreeMap<&str, &Load> = takers
            .chain(givers.take(BALANCE_MEMBERS_MAX / 2))
            .map(|load| (load.id.as_str(), load))
            .collect();
        chosen.into_values().cloned().collect()
    }

    /// The most records that dividing one share could give to a member without work.
    fn cut_gives(&self) -> u64 {
        let needy = self.needy();
        let all = self.holdings(|of| !self.held.contains(&of));
        let divisible = all.iter().find(|holding| {
            let candidate = self.candidate(holding, &needy);
            !candidate.takers.is_empty() && obstacle(&candidate).is_none()
        });
        divisible.map_or(0, |holding| holding.remaining / 2)
    }
}

/// A plain partition that can be placed.
struct PlainItem<'a> {
    topic: TopicId,
    view: &'a TopicView,
    partition: i32,
    /// Who has it; none: nobody that is there.
    owner: Option<&'a str>,
    remaining: u64,
}

fn rules(settings: &ElasticSettings) -> DivideRules {
    DivideRules {
        mode: settings.mode,
        evidence: settings.evidence,
        split_min_remaining: settings.split_min_remaining,
        steal_min_remaining: settings.steal_min_remaining,
        steal_min_ms: settings.steal_min_ms,
        cooldown_ms: settings.split_cooldown_ms,
        fence_timeout_ms: settings.fence_timeout_ms,
        watchdog_commit_ms: settings.watchdog_commit_ms,
        slices_max: settings.slices_max,
    }
}
