//! Everything volatile about divided cursors and their readers, by group.
//!
//! It goes with what it is about: with a member, when that leaves; with a division, when the cursor is plain again; with
//! the group, when that is deleted. What no event takes away is pruned at each thought of the planner.

use std::collections::BTreeMap;

use super::activity::Activity;
use super::flow::Flow;
use super::place::Places;
use super::settled::OpenDecisions;
use super::watch::Watched;
use super::{Key, Promises};
use crate::cursor::{Fault, Live, Planted};
use crate::ids::TopicId;

/// What is volatile about all groups.
#[derive(Debug, Default)]
pub(in crate::group) struct Elastic {
    /// A rule that is broken on purpose, in every cursor.
    pub(in crate::group) planted: Planted,
    groups: BTreeMap<String, OfGroup>,
    /// When to think of the first of the groups, monotonic milliseconds.
    pub(super) next_plan_ms: Option<u64>,
}

/// What is volatile about one group.
#[derive(Debug, Default)]
pub(super) struct OfGroup {
    partitions: BTreeMap<Key, OfPartition>,
    /// What its members are doing.
    pub(super) activities: BTreeMap<String, Activity>,
    /// When a topic was last divided, monotonic milliseconds.
    pub(super) divided_ms: BTreeMap<TopicId, u64>,
    /// How often refusals of the decision log came again, by their numbers.
    pub(super) repeated: BTreeMap<u64, u64>,
    /// When to think of the group again, monotonic milliseconds.
    pub(super) plan_ms: Option<u64>,
    /// Something happened to it since the planner thought of it.
    pub(super) is_dirty: bool,
    /// Whole partitions that the planner has placed.
    pub(super) placed: Places,
    /// When it last did so, monotonic milliseconds.
    pub(super) balanced_ms: Option<u64>,
    /// Decisions that are not done yet.
    pub(super) open: OpenDecisions,
}

/// What is volatile about a group in one partition.
#[derive(Debug, Default)]
struct OfPartition {
    /// There while the cursor is divided.
    division: Option<Division>,
    promises: Promises,
}

/// What is volatile about a divided cursor.
#[derive(Debug, Default)]
pub(super) struct Division {
    /// What was handed out.
    pub(super) live: Live,
    /// How much of it each member may be handed.
    pub(super) flows: BTreeMap<String, Flow>,
    /// When slots last came back to a member since their fence had not opened, monotonic milliseconds.
    pub(super) returned_ms: BTreeMap<String, u64>,
    /// Members as readers of their shares.
    pub(super) watched: BTreeMap<String, Watched>,
    /// Since when there has been nothing to read, monotonic milliseconds.
    pub(super) quiet_since_ms: Option<u64>,
    /// Since when slots have been without a member, monotonic milliseconds.
    pub(super) loose_since_ms: Option<u64>,
}

impl Elastic {
    /// Whether this fault is planted. Always false in the shipped program.
    #[inline]
    pub(super) fn is_broken(&self, fault: Fault) -> bool {
        self.planted.is(fault)
    }

    /// Forgets everything, as a restart does.
    pub(super) fn forget(&mut self) {
        self.groups.clear();
        self.next_plan_ms = None;
    }

    pub(super) fn group(&self, group: &str) -> Option<&OfGroup> {
        self.groups.get(group)
    }

    /// The same, if decisions about the group are open.
    pub(super) fn open_group(&mut self, group: &str) -> Option<&mut OfGroup> {
        self.groups.get_mut(group).filter(|group| !group.open.is_empty())
    }

    /// The same, if whole partitions of the group were placed.
    pub(super) fn placing_group(&mut self, group: &str) -> Option<&mut OfGroup> {
        self.groups
            .get_mut(group)
            .filter(|group| !group.placed.is_empty())
    }

    pub(super) fn group_mut(&mut self, group: &str) -> &mut OfGroup {
        self.groups.entry(group.to_owned()).or_default()
    }

    /// A group is deleted.
    pub(in crate::group) fn group_gone(&mut self, group: &str) {
        self.groups.remove(group);
    }

    pub(super) fn division(&self, group: &str, key: Key) -> Option<&Division> {
        self.groups.get(group)?.partitions.get(&key)?.division.as_ref()
    }

    /// Of a cursor that is divided, or about to be.
    pub(super) fn division_mut(&mut self, group: &str, key: Key) -> &mut Division {
        let planted = self.planted;
        let partition = self.group_mut(group).partitions.entry(key).or_default();
        let division = partition.division.get_or_insert_default();
        division.live.planted = planted;
        division
    }

    /// A member fetches its share, and waits until then if it finds nothing.
    pub(super) fn fetched(&mut self, group: &str, key: Key, member: &str, until_ms: u64) {
        let partition = self
            .groups
            .get_mut(group)
            .and_then(|group| group.partitions.get_mut(&key));
        let division = partition.and_then(|partition| partition.division.as_mut());
        // Who is new here is entered by the planner's next look.
        if let Some(watched) = division.and_then(|division| division.watched.get_mut(member)) {
            watched.fetched(until_ms);
        }
    }

    /// The cursor is plain.
    pub(super) fn division_ended(&mut self, group: &str, key: Key) {
        self.edit(group, key, |partition| partition.division = None);
    }

    /// All divided cursors.
    pub(super) fn divisions(&self) -> impl Iterator<Item = (&str, Key, &Division)> {
        self.groups.iter().flat_map(|(id, group)| {
            let divisions = group
                .partitions
                .iter()
                .filter_map(|(key, partition)| Some((*key, partition.division.as_ref()?)));
            divisions.map(|(key, division)| (id.as_str(), key, division))
        })
    }

    /// The partitions of a group whose cursors are divided.
    pub(super) fn divided_keys(&self, group: &str) -> impl Iterator<Item = Key> {
        let partitions = self
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| &group.partitions);
        partitions
            .filter(|(_, partition)| partition.division.is_some())
            .map(|(key, _)| *key)
    }

    /// What a member that the planner has looked at is doing.
    pub(super) fn known_activity(&mut self, group: &str, member: &str) -> Option<&mut Activity> {
        self.groups.get_mut(group)?.activities.get_mut(member)
    }

    /// A member is gone.
    pub(super) fn member_gone(&mut self, group: &str, member: &str) {
        if let Some(group) = self.groups.get_mut(group) {
            group.activities.remove(member);
        }
    }

    /// Whether a cursor of the group is divided.
    pub(super) fn has_divisions(&self, group: &str) -> bool {
        self.divided_keys(group).next().is_some()
    }

    /// What is promised of a partition, if anything is.
    pub(super) fn promises(&self, group: &str, key: Key) -> Option<&Promises> {
        let promises = &self.groups.get(group)?.partitions.get(&key)?.promises;
        (!promises.is_empty()).then_some(promises)
    }

    pub(super) fn edit_promises(&mut self, group: &str, key: Key, edit: impl FnOnce(&mut Promises)) {
        self.edit(group, key, |partition| edit(&mut partition.promises));
    }

    /// The same for all partitions of a group.
    pub(super) fn edit_all_promises(&mut self, group: &str, mut edit: impl FnMut(&mut Promises)) {
        if let Some(group) = self.groups.get_mut(group) {
            group.partitions.retain(|_, partition| {
                edit(&mut partition.promises);
                partition.is_used()
            });
        }
    }

    fn edit(&mut self, group: &str, key: Key, edit: impl FnOnce(&mut OfPartition)) {
        let partitions = &mut self.group_mut(group).partitions;
        let partition = partitions.entry(key).or_default();
        edit(partition);
        if !partition.is_used() {
            partitions.remove(&key);
        }
    }
}

impl OfPartition {
    fn is_used(&self) -> bool {
        self.division.is_some() || !self.promises.is_empty()
    }
}
