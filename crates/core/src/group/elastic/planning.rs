//! When the planner thinks about a group, and what it needs for that.
//!
//! The owner of the coordinator calls [`Coordinator::plan`] when an answer says so ([`Effects::plan_soon`]) and at
//! [`Coordinator::next_plan`]. It may be asked for counts: it counts, without holding anything up, and calls again.

use std::collections::{BTreeMap, BTreeSet};

use super::view::Counts;
use super::{Elastic, Key};
use crate::cursor::Cursor;
use crate::elastic::{self, Decision, DecisionLog, Entry, Reading, Refusal, Snapshot};
use crate::group::change::GroupChange;
use crate::group::coordinator::{Coordinator, Effects, Step};
use crate::group::state::Sharing;
use crate::group::topics::Topics;
use crate::ids::{Now, Offset, TopicId};

/// Records that must be counted before a group can be planned for: those of a partition, by slot, from an offset to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountWanted {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub from: Offset,
}

impl Coordinator {
    /// When [`Coordinator::plan`] wants to be called next, monotonic milliseconds; `None`: nobody shares anything and
    /// nobody could.
    pub fn next_plan(&self) -> Option<u64> {
        self.elastic.next_plan_ms
    }

    /// Thinks about all groups whose time has come. Returns what has to be counted first: count, and call again at once.
    pub fn plan(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        counts: &dyn Counts,
    ) -> (BTreeSet<CountWanted>, Effects) {
        let mut step = Step::new(now, topics);
        let mut wanted = BTreeSet::new();
        let groups: Vec<String> = self
            .groups
            .iter()
            .filter(|(_, group)| {
                let consumer = group.consumer();
                consumer.is_some_and(|consumer| consumer.members.len() > 1 || !consumer.shared.is_empty())
            })
            .map(|(id, _)| id.clone())
            .collect();
        let mut next = None;
        for group in groups {
            let interval_ms = topics.elastic_group(&group).interval_ms;
            if self.is_due(&group, now) {
                let asked = self.plan_group(&mut step, &group, counts);
                let again = !asked.is_empty();
                wanted.extend(asked);
                let at = now.mono_ms + if again { 0 } else { interval_ms };
                self.elastic.planned_ms.insert(group.clone(), at);
            }
            let at = self.elastic.planned_ms.get(&group).copied();
            next = next.into_iter().chain(at).min();
        }
        self.elastic.next_plan_ms = next;
        (wanted, step.effects)
    }

    fn is_due(&self, group: &str, now: Now) -> bool {
        let at = self.elastic.planned_ms.get(group);
        at.is_none_or(|at| *at <= now.mono_ms) || self.elastic.dirty.contains(group)
    }

    /// Something happened to a group that the planner is to think about.
    pub(in crate::group) fn plan_soon(&mut self, step: &mut Step<'_>, group: &str) {
        self.elastic.dirty.insert(group.to_owned());
        step.effects.plan_soon = true;
    }

    fn plan_group(&mut self, step: &mut Step<'_>, group: &str, counts: &dyn Counts) -> BTreeSet<CountWanted> {
        self.tidy(step, group);
        let Some(snapshot) = self.snapshot_for_planner(step, group, counts) else {
            return BTreeSet::new();
        };
        self.elastic.dirty.remove(group);
        self.note_quiet(step, group, &snapshot);
        let plan = elastic::plan(&snapshot);
        for decision in plan.decisions {
            if !self.is_under_way(group, &decision) {
                self.carry_out(step, group, decision);
            }
        }
        for refusal in plan.refusals {
            self.refuse(step, group, refusal);
        }
        let uncounted = plan.uncounted.iter();
        let keys: BTreeSet<Key> = uncounted.map(|one| (one.topic, one.partition)).collect();
        keys.into_iter()
            .flat_map(|key| self.counts_wanted(step, group, key))
            .collect()
    }

    /// All counts that are asked about a partition.
    pub(super) fn counts_wanted(&self, step: &Step<'_>, group: &str, key: Key) -> Vec<CountWanted> {
        let offsets = self.offsets_asked_about(step, group, key).into_iter();
        offsets
            .map(|from| CountWanted {
                topic: key.0,
                partition: key.1,
                from,
            })
            .collect()
    }

    /// Whether an earlier decision about the same partition still waits for a member to give it up.
    fn is_under_way(&self, group: &str, decision: &Decision) -> bool {
        decision.change.moves.iter().any(|one| {
            let sharers = self.sharers(group, (one.of.topic, one.of.partition));
            let mut all = sharers.iter().flat_map(BTreeMap::values);
            all.any(|sharing| *sharing == Sharing::Yields)
        })
    }

    /// Notes a decision and does what it says.
    pub(super) fn carry_out(&mut self, step: &mut Step<'_>, group: &str, decision: Decision) {
        step.notice(group, decision.sentence());
        let change = decision.change.clone();
        let (group_id, decision) = (group.to_owned(), Box::new(decision));
        self.record(
            step,
            GroupChange::Decided {
                group: group_id,
                decision,
            },
        );
        self.act(step, group, &change);
    }

    /// A refusal is journalled when it is new; how often it came again is only counted.
    fn refuse(&mut self, step: &mut Step<'_>, group: &str, refusal: Refusal) {
        let repeated = self.decisions.get(group).and_then(|log| log.repeated(&refusal));
        if let Some(number) = repeated {
            let again = self
                .elastic
                .repeated
                .entry((group.to_owned(), number))
                .or_default();
            *again = again.saturating_add(1);
            return;
        }
        let (group, refusal) = (group.to_owned(), Box::new(refusal));
        self.record(step, GroupChange::Refused { group, refusal });
    }

    /// What was decided and refused about a group, oldest first: number, entry, and how often a refusal came again since.
    pub fn decisions_of(&self, group: &str) -> impl DoubleEndedIterator<Item = (u64, &Entry, u64)> {
        let log = self.decisions.get(group);
        let entries = log.map(DecisionLog::entries).into_iter().flatten();
        entries.map(move |(number, entry)| {
            let again = self.elastic.repeated.get(&(group.to_owned(), number));
            (number, entry, again.copied().unwrap_or(0))
        })
    }

    /// The groups that anything was decided or refused about.
    pub fn groups_with_decisions(&self) -> impl Iterator<Item = &str> {
        self.decisions.keys().map(String::as_str)
    }

    /// All offsets at which some part of a partition goes on.
    fn offsets_asked_about(&self, step: &Step<'_>, group: &str, key: Key) -> BTreeSet<Offset> {
        match self.cursor(group, key) {
            None => BTreeSet::new(),
            Some(Cursor::Plain(plain)) => [plain.offset.max(step.topics.log_start(key.0, key.1))].into(),
            Some(Cursor::Divided(divided)) => self.with_live(group, key, |live| {
                let chains = divided.view(live);
                let moving = chains.iter().flat_map(|chain| {
                    let transits = chain.transits.iter().map(|transit| &transit.pieces);
                    transits.chain([&chain.movable])
                });
                let grantable = divided.grantable(live);
                let all = moving.chain([&grantable]);
                all.flat_map(|pieces| pieces.iter().map(|(from, _)| from).collect::<Vec<_>>())
                    .collect()
            }),
        }
    }

    /// Notes since when divided partitions have had nothing to read, and since when slots of them wait for a member.
    fn note_quiet(&mut self, step: &Step<'_>, group: &str, snapshot: &Snapshot) {
        let Elastic {
            quiet_since,
            loose_since,
            ..
        } = &mut self.elastic;
        for (topic, view) in &snapshot.topics {
            for (partition, view) in &view.partitions {
                let at = (group.to_owned(), (*topic, *partition));
                let Reading::Divided(divided) = &view.reading else {
                    quiet_since.remove(&at);
                    loose_since.remove(&at);
                    continue;
                };
                note(quiet_since, &at, view.remaining() == 0, step.now.mono_ms);
                note(loose_since, &at, !divided.loose.is_empty(), step.now.mono_ms);
            }
        }
    }

    /// Stops, or lets go on, all changes of a group but those that keep records flowing.
    pub fn set_paused(&mut self, group: &str, paused: bool) {
        if paused {
            self.elastic.paused.insert(group.to_owned());
        } else {
            self.elastic.paused.remove(group);
        }
    }
}

/// Keeps the moment since when something has been so.
fn note(since: &mut BTreeMap<(String, Key), u64>, at: &(String, Key), is_so: bool, now_ms: u64) {
    if is_so {
        since.entry(at.clone()).or_insert(now_ms);
    } else {
        since.remove(at);
    }
}
