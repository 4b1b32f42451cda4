//! When the planner thinks about a group, and what it needs for that.
//!
//! The owner of the coordinator calls [`Coordinator::plan`] when an answer says so ([`Effects::plan_soon`]) and at
//! [`Coordinator::next_plan`]. It may be asked for counts: it counts, without holding anything up, and calls again.

use std::collections::BTreeSet;

use super::Key;
use super::view::Counts;
use crate::cursor::Cursor;
use crate::elastic::{self, Decision, DecisionLog, Entry, Mode, Reading, Refusal, Settled, Snapshot};
use crate::group::change::GroupChange;
use crate::group::coordinator::{Coordinator, Effects, Step};
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
            .filter(|(id, group)| {
                let consumer = group.consumer();
                consumer.is_some_and(|consumer| consumer.members.len() > 1 || self.is_divided(id))
            })
            .map(|(id, _)| id.clone())
            .collect();
        let mut next = None;
        for group in groups {
            if self.is_due(&group, now) {
                let asked = match self.concerns_planner(topics, &group) {
                    true => self.plan_group(&mut step, &group, counts),
                    false => BTreeSet::new(),
                };
                let wait_ms = match asked.is_empty() {
                    true => topics.elastic_group(&group).interval_ms,
                    false => 0,
                };
                wanted.extend(asked);
                let memory = self.elastic.group_mut(&group);
                memory.plan_ms = Some(now.mono_ms.saturating_add(wait_ms));
                memory.is_dirty = false;
            }
            let at = self.elastic.group(&group).and_then(|group| group.plan_ms);
            next = next.into_iter().chain(at).min();
        }
        self.elastic.next_plan_ms = next;
        (wanted, step.effects)
    }

    fn is_due(&self, group: &str, now: Now) -> bool {
        self.elastic
            .group(group)
            .is_none_or(|group| group.is_dirty || group.plan_ms.is_none_or(|at_ms| at_ms <= now.mono_ms))
    }

    /// Whether anything of the group is shared, or divided.
    fn is_divided(&self, group: &str) -> bool {
        let is_shared = self
            .consumer(group)
            .is_some_and(|consumer| !consumer.shared.is_empty());
        is_shared || self.elastic.has_divisions(group)
    }

    /// Whether there is, or could be, anything to decide about a group: something of it is divided, or a topic that its
    /// members read may be.
    pub(in crate::group) fn concerns_planner(&self, topics: &dyn Topics, group: &str) -> bool {
        if self.is_divided(group) {
            return true;
        }
        // What is not shared is in somebody's target.
        let members = self
            .consumer(group)
            .into_iter()
            .flat_map(|consumer| consumer.members.values());
        let read: BTreeSet<&TopicId> = members.flat_map(|state| state.target.keys()).collect();
        read.into_iter()
            .any(|topic| topics.elastic_mode(group, *topic) == Mode::Slices)
    }

    /// Something happened to a group that the planner is to think about.
    pub(in crate::group) fn plan_soon(&mut self, step: &mut Step<'_>, group: &str) {
        self.elastic.group_mut(group).is_dirty = true;
        step.effects.plan_soon = true;
    }

    fn plan_group(&mut self, step: &mut Step<'_>, group: &str, counts: &dyn Counts) -> BTreeSet<CountWanted> {
        self.tidy(step, group);
        self.look_at_flows(step, group);
        self.settle_decisions(step, group);
        let Some(snapshot) = self.snapshot_for_planner(step, group, counts) else {
            return BTreeSet::new();
        };
        self.watch_readers(step, group, &snapshot);
        self.note_quiet(step, group, &snapshot);
        self.forget_former(group, &snapshot);
        let plan = elastic::plan(&snapshot);
        for decision in plan.decisions {
            self.carry_out(step, group, decision);
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

    /// Notes a decision and does what it says.
    pub(super) fn carry_out(&mut self, step: &mut Step<'_>, group: &str, decision: Decision) {
        step.notice(group, decision.sentence());
        let change = decision.change.clone();
        let number = self.decisions.get(group).map_or(0, DecisionLog::next_number);
        let (group_id, decision) = (group.to_owned(), Box::new(decision));
        self.record(
            step,
            GroupChange::Decided {
                group: group_id,
                decision,
            },
        );
        self.act(step, group, &change);
        self.decision_opened(step, group, (number, &change));
    }

    /// A refusal is journalled when it is new; how often it came again is only counted.
    fn refuse(&mut self, step: &mut Step<'_>, group: &str, refusal: Refusal) {
        let repeated = self.decisions.get(group).and_then(|log| log.repeated(&refusal));
        if let Some(number) = repeated {
            self.totals.add_refusal(&refusal.why_not);
            let again = self.elastic.group_mut(group).repeated.entry(number).or_default();
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
        let repeated = self.elastic.group(group).map(|group| &group.repeated);
        entries.map(move |(number, entry)| {
            let again = repeated.and_then(|repeated| repeated.get(&number));
            (number, entry, again.copied().unwrap_or(0))
        })
    }

    /// What became of the decision of this number; `None`: it is on its way.
    pub fn settled(&self, group: &str, number: u64) -> Option<Settled> {
        self.decisions.get(group)?.settled(number)
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
        for (topic, view) in &snapshot.topics {
            for (partition, view) in &view.partitions {
                if let Reading::Divided(divided) = &view.reading {
                    let division = self.elastic.division_mut(group, (*topic, *partition));
                    note(
                        &mut division.quiet_since_ms,
                        view.remaining() == 0,
                        step.now.mono_ms,
                    );
                    note(
                        &mut division.loose_since_ms,
                        !divided.loose.is_empty(),
                        step.now.mono_ms,
                    );
                }
            }
        }
    }

    /// Forgets about topics and entries of the decision log that are gone.
    fn forget_former(&mut self, group: &str, snapshot: &Snapshot) {
        let log = self.decisions.get(group);
        let oldest = log.and_then(|log| log.entries().next()).map(|(number, _)| number);
        let memory = self.elastic.group_mut(group);
        memory
            .divided_ms
            .retain(|topic, _| snapshot.topics.contains_key(topic));
        memory
            .repeated
            .retain(|number, _| oldest.is_some_and(|oldest| *number >= oldest));
    }

    /// Stops, or lets go on, all changes of a group but those that keep records flowing. Says whether there is such a group.
    pub fn set_paused(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        group: &str,
        paused: bool,
    ) -> (bool, Effects) {
        let mut step = Step::new(now, topics);
        let found = self.groups.get(group).map(|group| group.paused);
        if found.is_some_and(|was| was != paused) {
            let change = GroupChange::Paused {
                group: group.to_owned(),
                paused,
            };
            self.record(&mut step, change);
            self.plan_soon(&mut step, group);
        }
        (found.is_some(), step.effects)
    }
}

/// Keeps the moment since when something has been so.
fn note(since_ms: &mut Option<u64>, is_so: bool, now_ms: u64) {
    *since_ms = is_so.then(|| since_ms.unwrap_or(now_ms));
}
