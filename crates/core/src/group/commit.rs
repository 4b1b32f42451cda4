//! OffsetCommit: who may move a group's cursors.
//!
//! Who may commit depends on the group (behaviour of Kafka's `validateOffsetCommit` of each kind of group):
//! - no members: anybody without a generation (tools, consumers that assign themselves);
//! - broker assigns: a member at its present epoch for anything; at an older one for partitions that it already
//!   held then (KIP-1251). Between a classic member's JoinGroup and SyncGroup its clients still work in the former
//!   generation, so that one is good, too, as long as nobody else holds the partition;
//! - a client leads: a member at the group's generation, except between the join phase and the leader's plan.
//!
//! Whoever was expelled is unknown, and its late commit changes nothing.

use anabranch_wire::ErrorCode;

use super::api::{Caller, CommitAnswer, CommitPartition, OffsetCommit, TopicRef};
use super::change::GroupChange;
use super::classic::Phase;
use super::coordinator::{Coordinator, Effects, Step};
use super::offsets::find;
use super::state::{ConsumerGroup, Kind};
use super::timers::{TimerKey, TimerKind};
use super::topics::{TopicView, Topics};
use crate::cursor::{Cursor, Plain};
use crate::ids::Now;

/// Members of the consumer protocol may commit from this version on: the field then means a member epoch.
const MEMBER_EPOCH_SINCE: i16 = 9;

/// What a commit may touch.
#[derive(Clone, Copy, Debug)]
enum Right {
    /// Everything.
    All,
    /// What the member held at this older epoch already.
    HeldAt(i32),
}

impl Coordinator {
    /// Handles OffsetCommit. An error that concerns the sender stands at every partition, and nothing is stored;
    /// one that concerns a partition stands there alone.
    pub fn commit(
        &mut self,
        now: Now,
        topics: &dyn Topics,
        caller: &Caller,
        request: &OffsetCommit,
    ) -> (CommitAnswer, Effects) {
        let mut step = Step::new(now, topics);
        let right = self
            .check_group_id(&request.group_id)
            .and_then(|()| self.may_commit(request))
            .and_then(|right| self.check_held(topics, request, right));
        if let Err(error) = right {
            return (answer_all(request, error), step.effects);
        }
        self.commit_keeps_session(now, request);
        self.heard(caller, &request.group_id, &request.member_id);
        let mut cursors = Vec::new();
        let mut answer = Vec::with_capacity(request.topics.len().min(64));
        for (topic, partitions) in &request.topics {
            let found = find(topics, topic);
            let mut answered = Vec::with_capacity(partitions.len().min(64));
            for partition in partitions {
                let mut error = self.check_partition(found, topic, partition);
                if let (true, Some(found)) = (error.is_ok(), found) {
                    let key = (found.id, partition.partition);
                    let plain = to_plain(now, request, partition);
                    let sender = (request.member_id.as_str(), request.generation_or_epoch);
                    match self.commit_slice(&mut step, &request.group_id, sender, key, &plain) {
                        Some(done) => error = done,
                        None => {
                            let what = (request.member_id.as_str(), plain.offset);
                            self.note_plain_commit(&step, &request.group_id, key, what);
                            cursors.push((found.id, partition.partition, Cursor::Plain(plain)));
                        }
                    }
                }
                answered.push((partition.partition, error));
            }
            answer.push((topic.clone(), answered));
        }
        if !cursors.is_empty() {
            let group = request.group_id.clone();
            self.record(&mut step, GroupChange::Cursors { group, cursors });
        }
        (answer, step.effects)
    }

    /// Whether the sender may commit at all.
    fn may_commit(&self, request: &OffsetCommit) -> Result<Right, ErrorCode> {
        let group = request.group_id.as_str();
        let epoch = request.generation_or_epoch;
        if self.is_barrier_occupied(group) {
            return self.may_commit_at_barrier(request);
        }
        let Some(found) = self.groups.get(group) else {
            return match epoch {
                ..0 if self.has_room_for(group) => Ok(Right::All),
                ..0 => Err(ErrorCode::GroupMaxSizeReached),
                _ if request.version >= MEMBER_EPOCH_SINCE => Err(ErrorCode::GroupIdNotFound),
                _ => Err(ErrorCode::IllegalGeneration),
            };
        };
        if epoch < 0 && found.is_empty() {
            return Ok(Right::All);
        }
        match &found.kind {
            Kind::Consumer(consumer) => may_commit_to_consumer(consumer, request),
            Kind::Simple | Kind::Classic(_) => Err(ErrorCode::UnknownMemberId),
        }
    }

    fn may_commit_at_barrier(&self, request: &OffsetCommit) -> Result<Right, ErrorCode> {
        let Some(barrier) = self.barriers.get(&request.group_id) else {
            return Err(ErrorCode::UnknownMemberId);
        };
        if request.generation_or_epoch < 0 && barrier.phase == Phase::Empty {
            return Ok(Right::All);
        }
        if request.generation_or_epoch < 0 && request.member_id.is_empty() && request.instance_id.is_none() {
            return Err(ErrorCode::UnknownMemberId);
        }
        barrier.check_generation(
            &request.member_id,
            request.instance_id.as_deref(),
            request.generation_or_epoch,
        )?;
        if barrier.phase == Phase::Syncing {
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(Right::All)
    }

    /// An older epoch must have held every partition it commits to, or the whole request is refused, as in Kafka.
    fn check_held(&self, topics: &dyn Topics, request: &OffsetCommit, right: Right) -> Result<(), ErrorCode> {
        let Right::HeldAt(epoch) = right else {
            return Ok(());
        };
        let (group, id) = (request.group_id.as_str(), request.member_id.as_str());
        let Some(consumer) = self.consumer(group) else {
            return Err(ErrorCode::UnknownMemberId);
        };
        let Some(state) = consumer.members.get(id) else {
            return Err(ErrorCode::UnknownMemberId);
        };
        let refusal = if state.member.is_classic() {
            ErrorCode::IllegalGeneration
        } else {
            ErrorCode::StaleMemberEpoch
        };
        let joins = state.member.is_classic()
            && epoch == state.current.previous_epoch
            && self
                .timers
                .get(&TimerKey::new(group, id, TimerKind::Sync))
                .is_some();
        for (topic, partitions) in &request.topics {
            let Some(topic) = find(topics, topic) else {
                continue;
            };
            for partition in partitions.iter().map(|partition| partition.partition) {
                let held = consumer
                    .held_since(id, topic.id, partition)
                    .is_some_and(|since| since <= epoch);
                let unowned = !consumer.owners.contains_key(&(topic.id, partition));
                let accepted = held || (joins && unowned);
                if !accepted {
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    /// In groups with a client leader a commit counts as a sign of life, as in Kafka.
    fn commit_keeps_session(&mut self, now: Now, request: &OffsetCommit) {
        let Some(barrier) = self.barriers.get(&request.group_id) else {
            return;
        };
        if let Some(player) = barrier.members.get(&request.member_id) {
            let at = now
                .mono_ms
                .saturating_add(super::coordinator::to_ms(player.seat.session_timeout_ms));
            self.timers.set(
                TimerKey::new(&request.group_id, &request.member_id, TimerKind::Session),
                at,
            );
        }
    }

    fn check_partition(
        &self,
        found: Option<TopicView<'_>>,
        topic: &TopicRef,
        partition: &CommitPartition,
    ) -> ErrorCode {
        let Some(found) = found else {
            return match topic {
                TopicRef::Name(_) => ErrorCode::UnknownTopicOrPartition,
                TopicRef::Id(_) => ErrorCode::UnknownTopicId,
            };
        };
        let length = partition.metadata.as_ref().map_or(0, String::len);
        if !(0..found.partitions).contains(&partition.partition) {
            ErrorCode::UnknownTopicOrPartition
        } else if length > self.settings.offset_metadata_bytes_max {
            ErrorCode::OffsetMetadataTooLarge
        } else if partition.offset < -1 {
            ErrorCode::InvalidRequest
        } else {
            ErrorCode::None
        }
    }
}

/// The rules for members of a group that the broker assigns.
fn may_commit_to_consumer(consumer: &ConsumerGroup, request: &OffsetCommit) -> Result<Right, ErrorCode> {
    if let Some(instance) = &request.instance_id {
        let holder = consumer
            .instances
            .get(instance)
            .ok_or(ErrorCode::UnknownMemberId)?;
        let is_classic = consumer
            .members
            .get(holder)
            .is_some_and(|state| state.member.is_classic());
        if *holder != request.member_id {
            // Clients of the consumer protocol do not expect to be told that they are fenced here.
            return Err(if is_classic {
                ErrorCode::FencedInstanceId
            } else {
                ErrorCode::UnknownMemberId
            });
        }
    }
    let state = consumer
        .members
        .get(&request.member_id)
        .ok_or(ErrorCode::UnknownMemberId)?;
    let is_classic = state.member.is_classic();
    if !is_classic && request.version < MEMBER_EPOCH_SINCE {
        return Err(ErrorCode::UnsupportedVersion);
    }
    match request.generation_or_epoch.cmp(&state.current.epoch) {
        std::cmp::Ordering::Equal => Ok(Right::All),
        std::cmp::Ordering::Less => Ok(Right::HeldAt(request.generation_or_epoch)),
        std::cmp::Ordering::Greater if is_classic => Err(ErrorCode::IllegalGeneration),
        std::cmp::Ordering::Greater => Err(ErrorCode::StaleMemberEpoch),
    }
}

fn answer_all(request: &OffsetCommit, error: ErrorCode) -> CommitAnswer {
    let refused = |partition: &CommitPartition| (partition.partition, error);
    request
        .topics
        .iter()
        .map(|(t, partitions)| (t.clone(), partitions.iter().map(refused).collect()))
        .collect()
}

fn to_plain(now: Now, request: &OffsetCommit, partition: &CommitPartition) -> Plain {
    Plain {
        offset: partition.offset,
        leader_epoch: partition.leader_epoch,
        metadata: partition.metadata.clone().unwrap_or_default(),
        commit_ms: now.wall_ms,
        expires_ms: (request.retention_ms >= 0).then(|| now.wall_ms.saturating_add(request.retention_ms)),
    }
}
