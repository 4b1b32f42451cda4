//! The group as a whole: members come and go, the epoch grows, and with it the target assignment is made anew.
//!
//! Unlike in Kafka, the target never lags behind the group epoch: it is computed in the same step. So there is one
//! epoch, and a group is either reconciled or reconciling.

use std::collections::{BTreeMap, BTreeSet};

use crate::group::assign::{self, Assignor, Problem, Seeker, Topic};
use crate::group::change::{GroupChange, header};
use crate::group::coordinator::{Coordinator, Step};
use crate::group::elastic::introduction;
use crate::group::state::{
    ConsumerGroup, Current, Kind, Member, MemberState, Partitions, Progress, Sharing, same_partitions,
};
use crate::group::timers::{TimerKey, TimerKind};
use crate::ids::TopicId;

/// Compiled patterns kept before unused ones are looked for.
const REGEXES_KEPT: usize = 256;

impl Coordinator {
    /// The group, if it is one whose assignment the broker makes.
    pub(in crate::group) fn consumer(&self, group: &str) -> Option<&ConsumerGroup> {
        self.groups.get(group)?.consumer()
    }

    /// A member of such a group.
    pub(in crate::group) fn member(&self, group: &str, member_id: &str) -> Option<&MemberState> {
        self.consumer(group)?.members.get(member_id)
    }

    /// Makes the group one whose assignment the broker makes. It must be empty, or such a group already. Epochs go
    /// on where the group's former kind stopped, so that a number never means two things.
    pub(in crate::group) fn ensure_consumer(&mut self, step: &mut Step<'_>, group: &str) {
        if self.consumer(group).is_some() {
            return;
        }
        let existing = self.groups.get(group);
        let epoch = match existing.map(|group| &group.kind) {
            Some(Kind::Classic(generation)) => generation.generation.max(0),
            _ => 0,
        };
        let empty_since_ms = existing.and_then(|group| group.empty_since_ms);
        self.barriers.remove(group);
        self.timers.cancel_group(group);
        let fresh = ConsumerGroup {
            epoch,
            ..ConsumerGroup::default()
        };
        self.record(step, header(group, &fresh, empty_since_ms));
    }

    /// Puts a new or changed member down; returns whether it must be planned for anew.
    pub(in crate::group) fn put_member(&mut self, step: &mut Step<'_>, group: &str, member: Member) -> bool {
        let before = self.assignor(group);
        let old = self.member(group, &member.member_id).map(|state| &state.member);
        if old == Some(&member) {
            return false;
        }
        if old.is_none_or(|old| old.recognised() != member.recognised()) {
            step.notice(group, introduction(&member));
        }
        let wants_other = old.is_none_or(|old| old.topics != member.topics || old.regex != member.regex);
        self.record(
            step,
            GroupChange::Member {
                group: group.to_owned(),
                member,
            },
        );
        wants_other || self.assignor(group) != before
    }

    /// The next epoch: a new target for everybody.
    pub(in crate::group) fn next_epoch(&mut self, step: &mut Step<'_>, group: &str, modern: bool) {
        self.prune_sharers(step, group);
        let (problem, topics_hash) = self.problem(step, group);
        let mut plan = assign::assign(self.assignor(group), &problem);
        self.keep_places(group, &problem, &mut plan);
        let Some(consumer) = self.consumer(group) else {
            return;
        };
        add_shared(&mut plan, consumer);
        let epoch = consumer.epoch.saturating_add(1);
        let is_empty = consumer.members.is_empty();
        let targets: Vec<GroupChange> = plan
            .into_iter()
            .filter(|(id, partitions)| {
                consumer
                    .members
                    .get(id)
                    .is_some_and(|state| state.target != *partitions)
            })
            .map(|(member_id, partitions)| GroupChange::Target {
                group: group.to_owned(),
                member_id,
                partitions,
            })
            .collect();
        let empty_since_ms = is_empty.then_some(step.now.wall_ms);
        let fresh = ConsumerGroup {
            epoch,
            modern,
            topics_hash,
            ..ConsumerGroup::default()
        };
        self.record(step, header(group, &fresh, empty_since_ms));
        for target in targets {
            self.record(step, target);
        }
        self.plan_soon(step, group);
    }

    /// What there is to assign, and a hash of the topics it was made from.
    fn problem(&mut self, step: &Step<'_>, group: &str) -> (Problem, u64) {
        let mut problem = Problem {
            topics: self.subscribed(step, group),
            shared: self.shared_partitions(group),
            ..Problem::default()
        };
        let hash = hash_topics(&problem.topics, &problem.shared);
        let Some(consumer) = self.groups.get(group).and_then(|group| group.consumer()) else {
            return (problem, hash);
        };
        for (id, state) in &consumer.members {
            let seeker = Seeker {
                instance_id: state.member.instance_id.clone(),
                topics: self.regexes.resolve(&state.member, step.topics, &self.settings),
                previous: state.target.clone(),
            };
            problem.members.insert(id.clone(), seeker);
        }
        (problem, hash)
    }

    /// What members share: nobody is to be given it whole.
    fn shared_partitions(&self, group: &str) -> BTreeSet<(TopicId, i32)> {
        let shared = self.consumer(group).map(|consumer| consumer.shared.keys());
        shared.into_iter().flatten().copied().collect()
    }

    /// The existing topics that somebody in the group subscribes to, in the order of their names.
    fn subscribed(&mut self, step: &Step<'_>, group: &str) -> Vec<Topic> {
        let mut found: BTreeMap<&str, Topic> = BTreeMap::new();
        let consumer = self.groups.get(group).and_then(|group| group.consumer());
        for state in consumer
            .into_iter()
            .flat_map(|consumer| consumer.members.values())
        {
            for id in self.regexes.resolve(&state.member, step.topics, &self.settings) {
                if let Some(topic) = step.topics.by_id(id) {
                    found.entry(topic.name).or_insert_with(|| Topic {
                        id,
                        partitions: topic.partitions,
                        closed: BTreeSet::new(),
                        is_queued: step.topics.read_queues(id).is_some(),
                    });
                }
            }
        }
        let mut topics: Vec<Topic> = found.into_values().collect();
        for topic in &mut topics {
            topic.closed = self.closed_queues(step.topics, group, topic.id);
        }
        topics
    }

    /// The assignor most members ask for; those who ask for none do not count.
    pub(in crate::group) fn assignor(&self, group: &str) -> Assignor {
        let mut wishes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for state in self
            .consumer(group)
            .into_iter()
            .flat_map(|consumer| consumer.members.values())
        {
            if let Some(wish) = wish(&state.member) {
                *wishes.entry(wish).or_default() += 1;
            }
        }
        let most = wishes.values().max().copied();
        wishes
            .into_iter()
            .find(|(_, count)| Some(*count) == most)
            .map_or_else(Assignor::default, |(a, _)| a)
    }

    /// Removes members at once, with one new epoch for those who stay.
    pub(in crate::group) fn remove_members(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        ids: &BTreeSet<String>,
    ) {
        let Some(consumer) = self.consumer(group) else {
            return;
        };
        let modern = consumer.modern;
        let leaving: Vec<_> = ids
            .iter()
            .filter(|id| consumer.members.contains_key(*id))
            .cloned()
            .collect();
        if leaving.is_empty() {
            return;
        }
        for member_id in leaving {
            self.timers.cancel_member(group, &member_id);
            let held = self.member(group, &member_id).map(|state| state.current.clone());
            self.record(
                step,
                GroupChange::MemberGone {
                    group: group.to_owned(),
                    member_id: member_id.clone(),
                },
            );
            self.member_gone(step, group, &member_id, &held.unwrap_or_default());
        }
        self.next_epoch(step, group, modern);
        self.prune_regexes();
    }

    /// A static member came back under a new id: the new one has all that the old one had, at epoch 0.
    pub(in crate::group) fn replace_member(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        old: &str,
        new: &str,
    ) {
        let Some(state) = self.member(group, old).cloned() else {
            return;
        };
        let chains = self.chains_of(group, old);
        self.timers.cancel_member(group, old);
        self.record(
            step,
            GroupChange::MemberGone {
                group: group.to_owned(),
                member_id: old.to_owned(),
            },
        );
        let member = Member {
            member_id: new.to_owned(),
            ..state.member
        };
        let current = Current {
            epoch: 0,
            previous_epoch: 0,
            ..state.current
        };
        self.rename_sharer(step, group, old, new);
        let (group, member_id) = (group.to_owned(), new.to_owned());
        self.record(
            step,
            GroupChange::Member {
                group: group.clone(),
                member,
            },
        );
        self.record(
            step,
            GroupChange::Target {
                group: group.clone(),
                member_id: member_id.clone(),
                partitions: state.target,
            },
        );
        self.record(
            step,
            GroupChange::Current {
                group: group.clone(),
                member_id,
                current,
            },
        );
        self.renew_chains(step, &group, (old, chains), new);
    }

    /// One step of a member towards its target, given what it says it owns.
    pub(in crate::group) fn reconcile(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        member_id: &str,
        owned: Option<&Partitions>,
        subscription_changed: bool,
    ) {
        let Some(consumer) = self.groups.get(group).and_then(|group| group.consumer()) else {
            return;
        };
        let Some(state) = consumer.members.get(member_id) else {
            return;
        };
        let is_settled = state.current.progress == Progress::Stable && state.current.epoch == consumer.epoch;
        if is_settled {
            return;
        }
        let subscribed = self.regexes.resolve(&state.member, step.topics, &self.settings);
        let around = super::reconcile::Surroundings {
            epoch: consumer.epoch,
            target: &state.target,
            subscribed: &subscribed,
            owned,
            taken: &|topic, partition| !self.may_take(group, (topic, partition), member_id),
            subscription_changed,
        };
        let current = super::reconcile::step(&state.current, &around);
        if current != state.current {
            let before = state.current.clone();
            self.record(
                step,
                GroupChange::Current {
                    group: group.to_owned(),
                    member_id: member_id.to_owned(),
                    current,
                },
            );
            self.held_changed(step, group, member_id, &before);
        }
    }

    /// Topics came, went or grew: groups that subscribe to them plan anew, and cursors of deleted topics go.
    pub(in crate::group) fn replan_after_topics(&mut self, step: &mut Step<'_>) {
        self.regexes.refresh();
        let groups: Vec<String> = self
            .groups
            .iter()
            .filter(|(_, group)| {
                group
                    .consumer()
                    .is_some_and(|consumer| !consumer.members.is_empty())
            })
            .map(|(id, _)| id.clone())
            .collect();
        for group in groups {
            self.replan_if_topics_differ(step, &group);
        }
    }

    /// Plans anew if what the group can be given is not what its plan was made from.
    pub(in crate::group) fn replan_if_topics_differ(&mut self, step: &mut Step<'_>, group: &str) {
        let hash = hash_topics(&self.subscribed(step, group), &self.shared_partitions(group));
        if let Some(consumer) = self.consumer(group)
            && consumer.topics_hash != hash
        {
            let modern = consumer.modern;
            self.next_epoch(step, group, modern);
        }
    }

    /// Restarts the session of a member.
    pub(in crate::group) fn restart_session(&mut self, now_ms: u64, group: &str, member_id: &str) {
        let Some(state) = self.member(group, member_id) else {
            return;
        };
        let timeout = self.session_timeout_ms(group, &state.member);
        self.timers.set(
            TimerKey::new(group, member_id, TimerKind::Session),
            now_ms.saturating_add(timeout),
        );
    }

    /// Session timeout of a member, milliseconds: a classic one chooses, the others have the group's.
    pub(in crate::group) fn session_timeout_ms(&self, group: &str, member: &Member) -> u64 {
        let timeout = member
            .classic
            .as_ref()
            .map_or(self.timings(group).session_timeout_ms, |classic| {
                classic.session_timeout_ms
            });
        u64::try_from(timeout).unwrap_or(0)
    }

    fn prune_regexes(&mut self) {
        if self.regexes.len() <= REGEXES_KEPT {
            return;
        }
        let used: BTreeSet<&str> = self
            .groups
            .values()
            .filter_map(|group| group.consumer())
            .flat_map(|consumer| consumer.members.values())
            .filter_map(|state| state.member.regex.as_deref())
            .collect();
        self.regexes.prune(&used);
    }
}

/// Adds to the plan who is to hold what is shared.
fn add_shared(plan: &mut assign::Plan, consumer: &ConsumerGroup) {
    for ((topic, partition), sharers) in &consumer.shared {
        for (member_id, sharing) in sharers {
            if let (Sharing::Holds, Some(has)) = (sharing, plan.get_mut(member_id)) {
                has.entry(*topic).or_default().insert(*partition);
            }
        }
    }
}

/// What a member asks for: a server assignor by name, else the first of its classic protocols that is known here.
fn wish(member: &Member) -> Option<Assignor> {
    if let Some(name) = &member.assignor {
        return Assignor::of_server_name(name);
    }
    member
        .classic
        .as_ref()?
        .protocols
        .iter()
        .find_map(|name| Assignor::of_protocol(name))
}

/// FNV-1a over ids, partition counts, closed partitions and the mode: tells whether the topics are those the target was made
/// from. Of a topic in queue mode also over what is shared of it, which is from the time before: once it is not shared any more
/// it is a queue like the others, and they are to be dealt evenly.
fn hash_topics(topics: &[Topic], shared: &BTreeSet<(TopicId, i32)>) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut sorted: Vec<_> = topics.iter().collect();
    sorted.sort_unstable_by_key(|topic| topic.id);
    for topic in sorted {
        let bytes = |partition: &i32| partition.to_be_bytes();
        let closed = topic.closed.iter().flat_map(bytes);
        let shared = shared.range((topic.id, i32::MIN)..=(topic.id, i32::MAX));
        let shared = shared.flat_map(|(_, partition)| bytes(partition));
        let queued = topic.is_queued.then(|| std::iter::once(1).chain(shared));
        let all = topic.id.0.into_iter().chain(topic.partitions.to_be_bytes());
        for byte in all.chain(closed).chain(queued.into_iter().flatten()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

impl MemberState {
    /// Whether the member holds exactly what it shall, as far as anybody has told.
    pub(in crate::group) fn is_reconciled(&self) -> bool {
        self.current.revoking.is_empty() && same_partitions(&self.current.assigned, &self.target)
    }
}
