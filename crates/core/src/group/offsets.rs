//! Cursors of a group, besides commits: fetch, delete, expire.

use std::collections::BTreeSet;

use anabranch_wire::ErrorCode;

use super::api::{Caller, FetchAnswer, FetchedOffset, OffsetDeleteAnswer, OffsetFetch, TopicRef};
use super::change::GroupChange;
use super::coordinator::{Coordinator, Effects, Step};
use super::doors::CONSUMER;
use super::elastic::{Asker, Identity, NotYet};
use super::protocol::Subscription;
use super::topics::{TopicView, Topics};
use crate::cursor::Cursor;
use crate::ids::{Now, TopicId};

impl Coordinator {
    /// Handles one group of an OffsetFetch. A group that does not exist has committed nothing, which is no error.
    pub fn fetch(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        caller: &Caller,
        request: &OffsetFetch,
    ) -> (Result<FetchAnswer, ErrorCode>, Effects) {
        let mut step = Step::new(now, topics);
        let answer = self.look_up(topics, caller, request);
        if answer.is_ok() {
            self.note_asked(&mut step, caller, request);
        }
        (answer, step.effects)
    }

    fn look_up(
        &self,
        topics: &dyn Topics,
        caller: &Caller,
        request: &OffsetFetch,
    ) -> Result<FetchAnswer, ErrorCode> {
        self.check_group_id(&request.group_id)?;
        self.check_fetch(request)?;
        let group = self.groups.get(&request.group_id);
        let asker = self.asker(&request.group_id, caller, request.member_id.as_deref());
        let fetched = |key: (TopicId, i32)| self.fetched(&request.group_id, &asker, key);
        if let Some(wanted) = &request.topics {
            let answer = wanted.iter().map(|(topic, partitions)| {
                let found = find(topics, topic);
                let error = match (found, topic) {
                    (None, TopicRef::Id(_)) => ErrorCode::UnknownTopicId,
                    _ => ErrorCode::None,
                };
                let partitions = partitions.iter();
                let answered = partitions.map(|&partition| match found {
                    Some(topic) => fetched((topic.id, partition)),
                    None => none_committed(partition, error),
                });
                (topic.clone(), answered.collect())
            });
            return Ok(answer.collect());
        }
        let mut answer = FetchAnswer::new();
        for key in group.into_iter().flat_map(|group| group.cursors.keys()) {
            let Some(topic) = topics.by_id(key.0) else {
                continue;
            };
            let fetched = fetched(*key);
            match answer.last_mut() {
                Some((TopicRef::Name(name), partitions)) if name == topic.name => partitions.push(fetched),
                _ => answer.push((TopicRef::Name(topic.name.to_owned()), vec![fetched])),
            }
        }
        Ok(answer)
    }

    /// What one partition's cursor is to whoever asks. A member that shares the partition gets a position in its slice;
    /// if it has none yet, or it cannot be told who asks, it is told to ask again. Everybody else sees one offset.
    fn fetched(&self, group: &str, asker: &Asker<'_>, key: (TopicId, i32)) -> FetchedOffset {
        let nothing = none_committed(key.1, ErrorCode::None);
        let Some(cursor) = self.cursor(group, key) else {
            return nothing;
        };
        if matches!(cursor, Cursor::Divided(_)) {
            match asker.of(key.0, key.1) {
                Identity::NotYet(error) => return none_committed(key.1, error),
                Identity::Member(member) if self.holds(group, member, key) => {
                    return match self.slice_position(group, key, member) {
                        Some(Ok(offset)) => FetchedOffset { offset, ..nothing },
                        Some(Err(NotYet)) | None => none_committed(key.1, self.not_yet(group, member)),
                    };
                }
                Identity::Member(_) | Identity::Outsider => {}
            }
        }
        let plain = self.with_live(group, key, |live| cursor.outside_view(Some(live)));
        FetchedOffset {
            offset: plain.offset,
            leader_epoch: plain.leader_epoch,
            metadata: plain.metadata,
            ..nothing
        }
    }

    /// The error that makes this member ask again.
    fn not_yet(&self, group: &str, member_id: &str) -> ErrorCode {
        let state = self.member(group, member_id);
        state.map_or(ErrorCode::UnstableOffsetCommit, |state| {
            state.member.recognised().habits().not_yet
        })
    }

    fn holds(&self, group: &str, member_id: &str, key: (TopicId, i32)) -> bool {
        let owners = self
            .consumer(group)
            .and_then(|consumer| consumer.owners.get(&key));
        owners.is_some_and(|owners| owners.contains(member_id))
    }

    /// Remembers that a member asks where to begin in partitions of its assignment: in memory which, durably that it
    /// does so at all.
    fn note_asked(&mut self, step: &mut Step<'_>, caller: &Caller, request: &OffsetFetch) {
        let group = request.group_id.as_str();
        let Some(state) = self.asker(group, caller, request.member_id.as_deref()).member() else {
            return;
        };
        let assigned = &state.current.assigned;
        let mut asked = Vec::new();
        for (topic, partitions) in request.topics.iter().flatten() {
            let Some(topic) = find(step.topics, topic) else {
                continue;
            };
            let Some(held) = assigned.get(&topic.id) else {
                continue;
            };
            let own = partitions.iter().filter(|partition| held.contains_key(partition));
            asked.extend(own.map(|partition| (topic.id, *partition)));
        }
        if asked.is_empty() {
            return;
        }
        let mut member = state.member.clone();
        // The answer may be lost: who shares a partition has heard it once it fetches what it was told.
        asked.retain(|key| !matches!(self.cursor(group, *key), Some(Cursor::Divided(_))));
        self.identities.asked(group, &member.member_id, asked.into_iter());
        if !member.client.asks_position {
            member.client.asks_position = true;
            let group = group.to_owned();
            self.record(step, GroupChange::Member { group, member });
        }
    }

    /// Members of the consumer protocol name themselves; a stale one is told to heartbeat first. An unknown one gets
    /// the same answer: clients retry quietly and learn the truth from their heartbeat, while UNKNOWN_MEMBER_ID
    /// would reach the application. Classic members are not checked, as in Kafka's classic groups.
    fn check_fetch(&self, request: &OffsetFetch) -> Result<(), ErrorCode> {
        let named = request.member_id.as_ref().filter(|id| !id.is_empty());
        let (Some(id), Some(consumer)) = (named, self.consumer(&request.group_id)) else {
            return Ok(());
        };
        if request.member_epoch < 0 || !consumer.modern {
            return Ok(());
        }
        match consumer.members.get(id) {
            Some(state) if state.member.is_classic() || state.current.epoch == request.member_epoch => Ok(()),
            Some(_) | None => Err(ErrorCode::StaleMemberEpoch),
        }
    }

    /// Handles OffsetDelete: only what nobody in the group subscribes to can be deleted.
    pub fn delete_offsets(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        group: &str,
        wanted: &[(String, Vec<i32>)],
    ) -> (Result<OffsetDeleteAnswer, ErrorCode>, Effects) {
        let mut step = Step::new(now, topics);
        let checked = self
            .check_group_id(group)
            .and_then(|()| self.may_delete_offsets(group));
        if let Err(error) = checked {
            return (Err(error), step.effects);
        }
        let mut gone = Vec::new();
        let mut answer = OffsetDeleteAnswer::new();
        for (name, partitions) in wanted {
            let found = topics.by_name(name);
            let error = match found {
                None => ErrorCode::UnknownTopicOrPartition,
                Some(topic) if self.is_subscribed(topics, group, topic) => ErrorCode::GroupSubscribedToTopic,
                Some(_) => ErrorCode::None,
            };
            if let (Some(topic), true) = (found, error.is_ok()) {
                let cursors = self.groups.get(group).map(|group| &group.cursors);
                let has = |partition: &i32| cursors.is_some_and(|c| c.contains_key(&(topic.id, *partition)));
                gone.extend(partitions.iter().filter(|p| has(p)).map(|p| (topic.id, *p)));
            }
            answer.push((
                name.clone(),
                partitions.iter().map(|partition| (*partition, error)).collect(),
            ));
        }
        if !gone.is_empty() {
            self.drop_cursors(&mut step, group, gone);
        }
        (Ok(answer), step.effects)
    }

    fn may_delete_offsets(&self, group: &str) -> Result<(), ErrorCode> {
        if self.is_barrier_occupied(group) {
            let of_consumers = self
                .barriers
                .get(group)
                .is_some_and(|barrier| barrier.protocol_type == CONSUMER);
            return if of_consumers {
                Ok(())
            } else {
                Err(ErrorCode::NonEmptyGroup)
            };
        }
        if self.groups.contains_key(group) {
            Ok(())
        } else {
            Err(ErrorCode::GroupIdNotFound)
        }
    }

    /// Whether a member subscribes to the topic. Of a client-led group of consumers the metadata is looked at; what
    /// cannot be read counts as subscribed to everything.
    fn is_subscribed(&mut self, topics: &dyn Topics, group: &str, topic: TopicView<'_>) -> bool {
        if let Some(barrier) = self.barriers.get(group) {
            return barrier.members.values().any(|player| {
                let first = player.seat.protocols.first();
                first.is_none_or(|(_, metadata)| {
                    Subscription::parse(metadata).map_or(true, |subscription| {
                        subscription.topics.iter().any(|name| name == topic.name)
                    })
                })
            });
        }
        let Some(consumer) = self.groups.get(group).and_then(|group| group.consumer()) else {
            return false;
        };
        consumer.members.values().any(|state| {
            self.regexes
                .resolve(&state.member, topics, &self.settings)
                .contains(&topic.id)
        })
    }

    /// Handles DeleteGroups for one group.
    pub fn delete_group(&mut self, now: Now, topics: &dyn Topics, group: &str) -> (ErrorCode, Effects) {
        let mut step = Step::new(now, topics);
        let error = match self.check_group_id(group) {
            Err(error) => error,
            Ok(()) if self.has_members(group) => ErrorCode::NonEmptyGroup,
            Ok(()) if !self.groups.contains_key(group) => ErrorCode::GroupIdNotFound,
            Ok(()) => {
                self.timers.cancel_group(group);
                let all: Vec<_> = self
                    .groups
                    .get(group)
                    .into_iter()
                    .flat_map(|g| g.cursors.keys())
                    .copied()
                    .collect();
                self.forget_cursors(&mut step, group, &all);
                self.record(
                    &mut step,
                    GroupChange::Gone {
                        group: group.to_owned(),
                    },
                );
                ErrorCode::None
            }
        };
        (error, step.effects)
    }

    pub(super) fn has_members(&self, group: &str) -> bool {
        self.is_barrier_occupied(group)
            || self
                .consumer(group)
                .is_some_and(|consumer| !consumer.members.is_empty())
    }

    /// Drops cursors that nobody needs any more, and groups that have neither members nor cursors. Call it every
    /// few minutes.
    pub fn expire(&mut self, now: Now, topics: &dyn Topics) -> Effects {
        let mut step = Step::new(now, topics);
        let ids: Vec<String> = self.groups.keys().cloned().collect();
        for id in ids {
            let expired = self.expired_cursors(now, topics, &id);
            if !expired.is_empty() {
                self.drop_cursors(&mut step, &id, expired);
            }
            let is_bare = self.groups.get(&id).is_some_and(|group| group.cursors.is_empty());
            if is_bare && !self.has_members(&id) {
                self.timers.cancel_group(&id);
                self.record(&mut step, GroupChange::Gone { group: id });
            }
        }
        step.effects
    }

    /// With members, only what they do not subscribe to can expire, counted from its commit; without, everything,
    /// counted from the later of its commit and the last member's leaving. A client-led group that is not made of
    /// consumers keeps all while it has members.
    fn expired_cursors(&mut self, now: Now, topics: &dyn Topics, id: &str) -> Vec<(TopicId, i32)> {
        let occupied = self.has_members(id);
        let retention = self.settings.offset_retention_ms;
        let Some(group) = self.groups.get(id) else {
            return Vec::new();
        };
        let idle_since = if occupied { None } else { group.empty_since_ms };
        let mut expired: Vec<(TopicId, i32)> = group
            .cursors
            .iter()
            .filter(|(_, cursor)| cursor.is_expired(now.wall_ms, idle_since, retention))
            .map(|(key, _)| *key)
            .collect();
        if occupied {
            if self
                .barriers
                .get(id)
                .is_some_and(|barrier| barrier.protocol_type != CONSUMER)
            {
                return Vec::new();
            }
            expired.retain(|(topic, _)| {
                topics
                    .by_id(*topic)
                    .is_none_or(|topic| !self.is_subscribed(topics, id, topic))
            });
        }
        expired
    }

    /// Cursors of deleted topics go at once: the id never comes back.
    pub(super) fn drop_cursors_of_deleted_topics(&mut self, step: &mut Step<'_>) {
        let mut gone = Vec::new();
        for (id, group) in &self.groups {
            let deleted: BTreeSet<TopicId> = group
                .cursors
                .keys()
                .map(|(topic, _)| *topic)
                .filter(|topic| step.topics.by_id(*topic).is_none())
                .collect();
            let partitions: Vec<_> = group
                .cursors
                .keys()
                .filter(|(topic, _)| deleted.contains(topic))
                .copied()
                .collect();
            if !partitions.is_empty() {
                gone.push((id.clone(), partitions));
            }
        }
        for (group, partitions) in gone {
            self.drop_cursors(step, &group, partitions);
        }
    }

    fn drop_cursors(&mut self, step: &mut Step<'_>, group: &str, partitions: Vec<(TopicId, i32)>) {
        self.forget_cursors(step, group, &partitions);
        let group = group.to_owned();
        self.record(step, GroupChange::CursorsGone { group, partitions });
    }
}

pub(super) fn find<'a>(topics: &'a dyn Topics, topic: &TopicRef) -> Option<TopicView<'a>> {
    match topic {
        TopicRef::Name(name) => topics.by_name(name),
        TopicRef::Id(id) => topics.by_id(*id),
    }
}

fn none_committed(partition: i32, error: ErrorCode) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: -1,
        leader_epoch: -1,
        metadata: String::new(),
        error,
    }
}
