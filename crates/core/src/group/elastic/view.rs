//! The group as the planner sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Key;
use super::activity::Activity;
use super::identity::Indistinct;
use crate::cursor::{ChainState, ChainView, Cursor, Divided, Pieces, Rewound};
use crate::elastic::{
    DividedView, Eligibility, Loose, MemberState, MemberView, PartitionView, PlainView, Reading, ShareCounts,
    ShareView, SlotCounts, Snapshot, TopicView, Transit,
};
use crate::group::consumer::LEAVE_FOR_A_WHILE;
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::{ConsumerGroup, Sharing};
use crate::ids::{Offset, TopicId};
use crate::slots::SlotSet;

/// Who counts records by slot.
pub trait Counts {
    /// The records of a partition by slot, from an offset to the end of its log; `None` if they were not counted.
    fn records_from(&self, topic: TopicId, partition: i32, from: Offset) -> Option<SlotCounts>;
}

impl Coordinator {
    /// The group at this moment. Also takes note of what its members are doing.
    pub(super) fn snapshot_for_planner(
        &mut self,
        step: &Step<'_>,
        group: &str,
        counts: &dyn Counts,
    ) -> Option<Snapshot> {
        let wanted = self.wanted_topics(step, group)?;
        let mut snapshot = Snapshot {
            now: step.now,
            settings: step.topics.elastic_group(group),
            balanced_ms: self.elastic.group(group).and_then(|group| group.balanced_ms),
            dealt_by_number: !self.places_by_load(group),
            paused: self.groups.get(group).is_some_and(|group| group.paused),
            ..Snapshot::default()
        };
        let mut all: BTreeSet<TopicId> = wanted.values().flatten().copied().collect();
        let cursors = self
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| group.cursors.keys());
        all.extend(cursors.map(|(topic, _)| *topic));
        for topic in all {
            if let Some(view) = self.topic_view(step, group, topic, counts) {
                snapshot.topics.insert(topic, view);
            }
        }
        let indistinct = self.indistinct(group);
        for (id, topics) in wanted {
            let view = self.member_view(step, group, &id, topics, (&snapshot, &indistinct))?;
            snapshot.members.insert(id, view);
        }
        Some(snapshot)
    }

    fn wanted_topics(&mut self, step: &Step<'_>, group: &str) -> Option<BTreeMap<String, BTreeSet<TopicId>>> {
        let consumer = self.groups.get(group)?.consumer()?;
        let mut wanted = BTreeMap::new();
        for (id, state) in &consumer.members {
            let topics = self.regexes.resolve(&state.member, step.topics, &self.settings);
            wanted.insert(id.clone(), topics);
        }
        Some(wanted)
    }

    fn topic_view(
        &self,
        step: &Step<'_>,
        group: &str,
        topic: TopicId,
        counts: &dyn Counts,
    ) -> Option<TopicView> {
        let found = step.topics.by_id(topic)?;
        let mut partitions = BTreeMap::new();
        let closed = self.closed_queues(step.topics, group, topic);
        let ids_up_to = self.ids_up_to(group);
        let ids_left = |key| match self.slice_ids.get(&key) {
            Some(pool) => pool.left(ids_up_to, step.now.wall_ms),
            None => ids_up_to.get(),
        };
        // A queue that nobody is to be given is of no concern, but if it is divided: that is to end.
        let is_divided = |partition: i32| {
            let cursor = self.cursor(group, (topic, partition));
            matches!(cursor, Some(Cursor::Divided(_)))
        };
        let is_shown = |partition: &i32| !closed.contains(partition) || is_divided(*partition);
        for partition in (0..found.partitions).filter(is_shown) {
            let key = (topic, partition);
            let end = step.topics.log_end(topic, partition);
            let reading = match self.cursor(group, key) {
                Some(Cursor::Divided(divided)) => {
                    Reading::Divided(self.divided_view(group, key, divided, end, counts))
                }
                cursor => {
                    let start = step.topics.log_start(topic, partition);
                    let committed = cursor.map(|cursor| cursor.outside_view(None).offset);
                    Reading::Plain(self.plain_view(group, key, committed, start..end, counts))
                }
            };
            let sharers = self
                .consumer(group)
                .and_then(|consumer| consumer.shared.get(&key));
            let division = self.elastic.division(group, key);
            let yields =
                sharers.is_some_and(|sharers| sharers.values().any(|sharing| *sharing == Sharing::Yields));
            let is_whole = matches!(reading, Reading::Plain(_));
            let view = PartitionView {
                reading,
                ids_left: ids_left(key),
                quiet_since_ms: division.and_then(|division| division.quiet_since_ms),
                awaits_yield: yields || (is_whole && self.whole_holder(group, key).1),
            };
            partitions.insert(partition, view);
        }
        Some(TopicView {
            name: found.name.to_owned(),
            settings: step.topics.elastic(group, topic),
            excluded: step.topics.excluded_from_division(topic),
            divided_ms: self
                .elastic
                .group(group)
                .and_then(|group| group.divided_ms.get(&topic).copied()),
            partitions,
        })
    }

    fn plain_view(
        &self,
        group: &str,
        key: Key,
        committed: Option<Offset>,
        log: Range<Offset>,
        counts: &dyn Counts,
    ) -> PlainView {
        let (holder, _) = self.whole_holder(group, key);
        // Without a committed offset there is nothing to divide at.
        let Some(committed) = committed else {
            return PlainView {
                holder,
                without_position: log.start < log.end,
                ..PlainView::default()
            };
        };
        let from = committed.max(log.start);
        PlainView {
            holder,
            remaining: u64::try_from(log.end.saturating_sub(from)).unwrap_or(0),
            counts: counts.records_from(key.0, key.1, from),
            without_position: false,
        }
    }

    fn divided_view(
        &self,
        group: &str,
        key: Key,
        divided: &Divided,
        end: Offset,
        counts: &dyn Counts,
    ) -> DividedView {
        let chains = self.with_live(group, key, |live| divided.view(live));
        let count = |pieces: &Pieces| count_pieces(key, pieces, counts);
        let (lowest, highest) = self.with_live(group, key, |live| divided.plain_probe(live).range());
        let mut view = DividedView {
            one_position: lowest == highest,
            ..DividedView::default()
        };
        for chain in chains.iter().filter(|chain| chain.state == ChainState::Held) {
            let mut share = share_view(chain, end, &count);
            let division = self.elastic.division(group, key);
            share.returned_ms =
                division.and_then(|division| division.returned_ms.get(&chain.member).copied());
            view.shares.insert(chain.member.clone(), share);
            for transit in &chain.transits {
                let slots = transit.pieces.slots();
                view.transits.push(Transit {
                    target: self.promised_to(group, key, &slots),
                    slots,
                    source: chain.member.clone(),
                    since_ms: transit.since_ms,
                    remaining: estimate(&transit.pieces, end, &count),
                });
            }
        }
        let grantable = self.with_live(group, key, |live| divided.grantable(live));
        view.loose = self.loose_views(group, key, &grantable, end, &count);
        view
    }

    /// What can be granted, in parts: what is promised to each, and what is promised to nobody.
    fn loose_views(
        &self,
        group: &str,
        key: Key,
        grantable: &Pieces,
        end: Offset,
        count: &dyn Fn(&Pieces) -> Option<SlotCounts>,
    ) -> Vec<Loose> {
        let promises = self.elastic.promises(group, key);
        let mut left = grantable.clone();
        let mut parts: Vec<(Option<String>, Pieces)> = Vec::new();
        for (member, promised) in promises.into_iter().flatten() {
            parts.push((Some(member.clone()), left.restricted(promised)));
            left.remove(promised);
        }
        parts.push((None, left));
        let division = self.elastic.division(group, key);
        let since_ms = division.and_then(|division| division.loose_since_ms).unwrap_or(0);
        parts
            .into_iter()
            .filter(|(_, pieces)| !pieces.is_empty())
            .map(|(promised, pieces)| Loose {
                slots: pieces.slots(),
                promised,
                since_ms,
                remaining: estimate(&pieces, end, count),
                counts: count(&pieces),
            })
            .collect()
    }

    /// The member that most of these slots are promised to.
    fn promised_to(&self, group: &str, key: Key, slots: &SlotSet) -> Option<String> {
        let promises = self.elastic.promises(group, key)?;
        promises
            .iter()
            .map(|(member, promised)| (promised.intersection(slots).len(), member))
            .filter(|(common, _)| *common > 0)
            .max()
            .map(|(_, member)| member.clone())
    }

    fn member_view(
        &mut self,
        step: &Step<'_>,
        group: &str,
        id: &str,
        topics: BTreeSet<TopicId>,
        (snapshot, indistinct): (&Snapshot, &BTreeMap<String, Indistinct>),
    ) -> Option<MemberView> {
        let consumer = self.groups.get(group)?.consumer()?;
        let state = consumer.members.get(id)?;
        let load = self.load(group, consumer, id, snapshot);
        let doing = match () {
            () if state.current.epoch == LEAVE_FOR_A_WHILE => MemberState::Away,
            () if load.holdings == 0 => MemberState::Idle,
            () if load.remaining == 0 && !load.is_unknown => MemberState::Drained,
            () if load.reads_nothing() => MemberState::Paused,
            () => MemberState::Busy,
        };
        let is_static = state.member.instance_id.is_some();
        let eligibility = match Self::member_eligibility(state, indistinct) {
            Ok(()) => Eligibility::Yes,
            Err(why) => Eligibility::No(why.text),
        };
        let now_ms = step.now.mono_ms;
        let activity = self.activity(step, group, id);
        activity.look(now_ms, doing, load.handed_out > 0);
        let view = MemberView {
            state: activity.state,
            since_ms: activity.since_ms,
            is_static,
            eligibility,
            topics,
            rate: activity.rate,
            commits: activity.commits,
            uncommitted_ms: activity.uncommitted_ms,
        };
        Some(view)
    }

    fn load(&self, group: &str, consumer: &ConsumerGroup, id: &str, snapshot: &Snapshot) -> Load {
        let mut load = Load::default();
        for (topic, view) in &snapshot.topics {
            for (partition, view) in &view.partitions {
                let key = (*topic, *partition);
                match &view.reading {
                    Reading::Plain(plain) => {
                        let owners = consumer.owners.get(&key);
                        if owners.is_some_and(|owners| owners.contains(id)) {
                            load.holdings += 1;
                            load.with_work += usize::from(plain.remaining > 0);
                            load.remaining = load.remaining.saturating_add(plain.remaining);
                            load.is_unknown |= plain.without_position;
                        }
                    }
                    Reading::Divided(divided) => {
                        if let Some(share) = divided.shares.get(id) {
                            let has_work = share.remaining > 0;
                            let in_vain = has_work && self.elastic.waits_in_vain(group, key, id);
                            load.holdings += usize::from(!share.slots.is_empty() || has_work);
                            load.with_work += usize::from(has_work);
                            load.in_vain += usize::from(in_vain);
                            load.remaining = load.remaining.saturating_add(share.remaining);
                            load.handed_out = load.handed_out.saturating_add(share.handed_out);
                        }
                    }
                }
            }
        }
        load
    }

    pub(super) fn activity(&mut self, step: &Step<'_>, group: &str, id: &str) -> &mut Activity {
        self.elastic
            .group_mut(group)
            .activities
            .entry(id.to_owned())
            .or_insert_with(|| Activity::new(step.now.mono_ms))
    }
}

/// What a member has to do.
#[derive(Default)]
struct Load {
    holdings: usize,
    /// Partitions and shares with something to do, and how many of them wait for it in vain.
    with_work: usize,
    in_vain: usize,
    remaining: u64,
    handed_out: u64,
    /// It may have more to do than `remaining` says.
    is_unknown: bool,
}

impl Load {
    /// Whether everything that it could read waits for it in vain.
    fn reads_nothing(&self) -> bool {
        self.with_work > 0 && self.in_vain == self.with_work
    }
}

fn share_view(chain: &ChainView, end: Offset, count: &dyn Fn(&Pieces) -> Option<SlotCounts>) -> ShareView {
    let by_slot = chain.undone.by_slot.iter();
    let handed_out = SlotCounts::exact(by_slot.map(|(slot, records)| (*slot, u64::from(*records))));
    let undone = handed_out.total().saturating_add(chain.undone.unlisted);
    let is_done = undone == 0 && !chain.undone.and_more && chain.undone_from.is_none_or(|from| from >= end);
    let movable = match is_done {
        true => 0,
        false => estimate(&chain.movable, end, count),
    };
    ShareView {
        slots: chain.movable.slots(),
        remaining: movable.saturating_add(undone),
        handed_out: undone,
        counts: count(&chain.movable).map(|movable| ShareCounts { movable, handed_out }),
        chain_full: !chain.has_room,
        rewound: chain.rewound != Rewound::No,
        blind: chain.is_blind,
        returned_ms: None,
    }
}

/// Records of the pieces, if they were counted.
fn count_pieces(key: Key, pieces: &Pieces, counts: &dyn Counts) -> Option<SlotCounts> {
    let mut sum = SlotCounts::none();
    for (from, slots) in pieces.iter() {
        let counted = counts.records_from(key.0, key.1, from)?;
        sum = sum.plus(&counted.only(slots));
    }
    Some(sum)
}

/// The same as one number; where nothing was counted, as if the records of all slots were equally many.
fn estimate(pieces: &Pieces, end: Offset, count: &dyn Fn(&Pieces) -> Option<SlotCounts>) -> u64 {
    if let Some(counted) = count(pieces) {
        return counted.total();
    }
    let of_all = anabranch_wire::slot::SLOTS as u64;
    pieces.iter().fold(0, |sum, (from, slots)| {
        let records = u64::try_from(end.saturating_sub(from)).unwrap_or(0);
        sum.saturating_add(records.saturating_mul(slots.len() as u64).div_ceil(of_all))
    })
}
