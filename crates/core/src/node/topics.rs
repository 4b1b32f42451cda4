//! Topics: what may be created, grown and deleted, with the error codes of Kafka's controller.

use super::Node;
use crate::Refused;
use crate::config::{Scope, Values, find};
use crate::ids::{LogId, Now, TopicId};
use crate::limits;
use crate::meta::{Command, Topic};
use anabranch_wire::ErrorCode;
use std::collections::BTreeSet;

/// Names that clients take for Kafka's own topics. They do not exist here, and nobody may put data under them.
const RESERVED: &[(&str, &str)] = &[
    ("__cluster_metadata", "the broker's state is in its journal"),
    (
        "__consumer_offsets",
        "committed offsets are in the broker's journal; read them through OffsetFetch",
    ),
    ("__share_group_state", "there are no share groups"),
    ("__transaction_state", "there are no transactions yet"),
];

/// A wish for a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; -1 leaves it to num.partitions (elastic.queues.max in queue mode), or to `assignments`.
    pub partitions: i32,
    /// How many replicas; -1 leaves it to the broker.
    pub replication_factor: i16,
    /// Partition -> replicas, if the client places them itself.
    pub assignments: Vec<(i32, Vec<i32>)>,
    /// What is set on it.
    pub configs: Vec<(String, Option<String>)>,
}

/// A topic, as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicRef<'a> {
    /// By name.
    Name(&'a str),
    /// By id.
    Id(TopicId),
}

/// Names that occur more than once: each of their occurrences in one request is answered with INVALID_REQUEST.
pub fn duplicates<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| !seen.insert(*name)).collect()
}

/// How many topics may still be created by Metadata requests; refills with monotonic time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    topics: u64,
    at_ms: u64,
}

impl Allowance {
    pub(super) fn full(now: Now) -> Self {
        Self {
            topics: limits::AUTO_CREATE_BURST,
            at_ms: now.mono_ms,
        }
    }

    fn take(&mut self, now: Now) -> bool {
        let earned = now
            .mono_ms
            .saturating_sub(self.at_ms)
            .saturating_mul(limits::AUTO_CREATE_PER_SECOND)
            / 1000;
        if earned > 0 {
            self.topics = self.topics.saturating_add(earned).min(limits::AUTO_CREATE_BURST);
            self.at_ms = now.mono_ms;
        }
        let allowed = self.topics > 0;
        self.topics = self.topics.saturating_sub(1);
        allowed
    }
}

impl Node {
    /// Decides about a new topic under the id `fresh`. For "validate only" the commands are simply not applied.
    ///
    /// INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    /// INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST.
    pub fn create_topic(
        &self,
        now: Now,
        wish: &CreateTopic,
        fresh: [u8; 16],
    ) -> Result<Vec<Command>, Refused> {
        check_name(&wish.name)?;
        if let Some((name, why)) = RESERVED.iter().find(|(name, _)| *name == wish.name) {
            let message = format!("the name `{name}` is reserved: {why}");
            return Err(Refused::new(ErrorCode::InvalidTopicException, message));
        }
        if self.topic_by_name(&wish.name).is_some() {
            let message = format!("topic `{}` exists", wish.name);
            return Err(Refused::new(ErrorCode::TopicAlreadyExists, message));
        }
        if let Some(other) = self.state.colliding(&wish.name) {
            let message = format!(
                "topic `{}` and the existing `{other}` differ only in dots and underscores; choose another name",
                wish.name
            );
            return Err(Refused::new(ErrorCode::InvalidTopicException, message));
        }
        let configs = checked_configs(&wish.configs)?;
        let partitions = self.wished_partitions(wish, &configs)?;
        let id = TopicId(fresh);
        if id == TopicId::default() || self.topic_by_id(id).is_some() {
            return Err(Refused::new(
                ErrorCode::UnknownServerError,
                "the new topic id is in use; try again",
            ));
        }
        let topic = Topic {
            name: wish.name.clone(),
            id,
            logs: self.fresh_logs(partitions, 0)?,
            configs,
            created_ms: now.wall_ms,
        };
        let queues = self.first_queues(now, &topic);
        let create = Command::CreateTopic {
            name: topic.name,
            id,
            logs: topic.logs,
            configs: topic.configs,
            created_ms: topic.created_ms,
        };
        Ok([create].into_iter().chain(queues).collect())
    }

    /// Decides about a topic that a Metadata request named, does not exist, and may be created on the way (the request
    /// allows it). What is not created looks as if it did not exist: UNKNOWN_TOPIC_OR_PARTITION if auto-creation is
    /// off, the name is reserved or was deleted shortly before; LEADER_NOT_AVAILABLE, which clients retry, if too many
    /// were created just now; INVALID_TOPIC_EXCEPTION for a bad name.
    pub fn auto_create_topic(
        &mut self,
        now: Now,
        name: &str,
        fresh: [u8; 16],
    ) -> Result<Vec<Command>, Refused> {
        check_name(name)?;
        let unknown = |why: &str| {
            let message = format!("topic `{name}` does not exist, and is not created on demand: {why}");
            Err(Refused::new(ErrorCode::UnknownTopicOrPartition, message))
        };
        if !self.settings.auto_create_topics {
            return unknown("auto.create.topics.enable is false");
        }
        if RESERVED.iter().any(|(reserved, _)| *reserved == name) {
            return unknown("the name is reserved");
        }
        let deleted_ms = self.state.deleted_ms(name);
        if deleted_ms.is_some_and(|at_ms| now.wall_ms.abs_diff(at_ms) < limits::AUTO_CREATE_REFUSED_MS) {
            return unknown("it was deleted a moment ago");
        }
        let wish = CreateTopic {
            name: name.to_owned(),
            partitions: -1,
            replication_factor: -1,
            ..CreateTopic::default()
        };
        let commands = self.create_topic(now, &wish, fresh)?;
        if !self.auto_create.take(now) {
            let message = "too many topics are being created by Metadata requests; try again later";
            return Err(Refused::new(ErrorCode::LeaderNotAvailable, message));
        }
        Ok(commands)
    }

    /// Decides about deleting a topic. UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, TOPIC_DELETION_DISABLED.
    pub fn delete_topic(&self, now: Now, topic: TopicRef<'_>) -> Result<Vec<Command>, Refused> {
        let id = match topic {
            TopicRef::Name(name) => self.existing(name)?.id,
            TopicRef::Id(id) => match self.topic_by_id(id) {
                Some(topic) => topic.id,
                None => {
                    return Err(Refused::new(
                        ErrorCode::UnknownTopicId,
                        format!("no topic has the id {id:?}"),
                    ));
                }
            },
        };
        if !self.settings.delete_topics {
            let message = "topics cannot be deleted: delete.topic.enable is false";
            return Err(Refused::new(ErrorCode::TopicDeletionDisabled, message));
        }
        Ok(vec![Command::DeleteTopic {
            id,
            deleted_ms: now.wall_ms,
        }])
    }

    /// Decides about growing a topic to `count` partitions; `assignments` are the replicas of each new one, if the client
    /// places them itself. UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT.
    pub fn create_partitions(
        &self,
        name: &str,
        count: i32,
        assignments: Option<&[Vec<i32>]>,
    ) -> Result<Vec<Command>, Refused> {
        let topic = self.existing(name)?;
        let current = topic.logs.len();
        let wanted = usize::try_from(count).unwrap_or(0);
        if wanted <= current {
            let message =
                format!("topic `{name}` has {current} partitions; the new count must be larger, not {count}");
            return Err(Refused::new(ErrorCode::InvalidPartitions, message));
        }
        if let Some(assignments) = assignments {
            if assignments.len() != wanted - current {
                let message = format!(
                    "{} assignments are given for {} new partitions",
                    assignments.len(),
                    wanted - current
                );
                return Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
            }
            assignments
                .iter()
                .try_for_each(|replicas| self.check_replicas(replicas))?;
        }
        let logs = self.fresh_logs(wanted - current, current)?;
        Ok(vec![Command::CreatePartitions { id: topic.id, logs }])
    }

    /// The topic that a request names. UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID for an id.
    pub fn find_topic(&self, topic: TopicRef<'_>) -> Result<&Topic, ErrorCode> {
        match topic {
            TopicRef::Name(name) => self.topic_by_name(name).ok_or(ErrorCode::UnknownTopicOrPartition),
            TopicRef::Id(id) => self.topic_by_id(id).ok_or(ErrorCode::UnknownTopicId),
        }
    }

    pub(super) fn existing(&self, name: &str) -> Result<&Topic, Refused> {
        self.topic_by_name(name).ok_or_else(|| {
            Refused::new(
                ErrorCode::UnknownTopicOrPartition,
                format!("topic `{name}` does not exist"),
            )
        })
    }

    fn wished_partitions(&self, wish: &CreateTopic, configs: &Values) -> Result<usize, Refused> {
        if !wish.assignments.is_empty() {
            if wish.partitions != -1 || wish.replication_factor != -1 {
                let message =
                    "with a manual assignment the partition count and the replication factor must be -1";
                return Err(Refused::new(ErrorCode::InvalidRequest, message));
            }
            return self.assigned_partitions(&wish.assignments);
        }
        if wish.replication_factor != -1 && wish.replication_factor != 1 {
            let message = format!(
                "replication factor {} is not possible: this is a single node, use 1 or -1",
                wish.replication_factor
            );
            return Err(Refused::new(ErrorCode::InvalidReplicationFactor, message));
        }
        let partitions = if wish.partitions == -1 {
            self.default_partitions(configs)
        } else {
            wish.partitions
        };
        match usize::try_from(partitions) {
            Ok(count) if count > 0 => Ok(count),
            _ => {
                let message =
                    format!("{partitions} partitions are not possible: use 1 or more, or -1 for the default");
                Err(Refused::new(ErrorCode::InvalidPartitions, message))
            }
        }
    }

    fn assigned_partitions(&self, assignments: &[(i32, Vec<i32>)]) -> Result<usize, Refused> {
        let mut partitions: Vec<i32> = assignments.iter().map(|(partition, _)| *partition).collect();
        partitions.sort_unstable();
        if !(0..)
            .zip(&partitions)
            .all(|(expected, partition)| expected == *partition)
        {
            let message = "the partitions of a manual assignment must be 0, 1, 2 and so on, each once";
            return Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        assignments
            .iter()
            .try_for_each(|(_, replicas)| self.check_replicas(replicas))?;
        Ok(partitions.len())
    }

    fn check_replicas(&self, replicas: &[i32]) -> Result<(), Refused> {
        let node_id = self.node_id();
        if replicas == [node_id] {
            return Ok(());
        }
        let message = format!("replicas {replicas:?} are not possible: broker {node_id} is the only one");
        Err(Refused::new(ErrorCode::InvalidReplicaAssignment, message))
    }

    /// Ids for `count` further logs of a topic that has `current`.
    fn fresh_logs(&self, count: usize, current: usize) -> Result<Vec<LogId>, Refused> {
        let per_topic = limits::PARTITIONS_PER_TOPIC_MAX;
        if current.saturating_add(count) > per_topic {
            let message = format!("a topic can have {per_topic} partitions at most");
            return Err(Refused::new(ErrorCode::InvalidPartitions, message));
        }
        let (total, used) = (limits::PARTITIONS_TOTAL_MAX, self.state.partition_count());
        if used.saturating_add(count) > total {
            let message =
                format!("the broker has {used} partitions of {total} at most; {count} more do not fit");
            return Err(Refused::new(ErrorCode::InvalidPartitions, message));
        }
        let first = self.state.next_log();
        let end = u32::try_from(count)
            .ok()
            .and_then(|count| first.checked_add(count));
        let end = end.ok_or_else(|| {
            Refused::new(
                ErrorCode::InvalidPartitions,
                "the broker has used up its log ids; start a new data folder",
            )
        })?;
        Ok((first..end).map(LogId).collect())
    }
}

/// Kafka's rules for topic names: 1 to 249 letters, digits, dots, underscores and hyphens, not only one or two dots.
/// Otherwise INVALID_TOPIC_EXCEPTION.
pub fn check_name(name: &str) -> Result<(), Refused> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let max = limits::TOPIC_NAME_BYTES_MAX;
    let problem = if name.is_empty() {
        "a topic name must not be empty".to_owned()
    } else if name.len() > max {
        format!(
            "a topic name can have {max} characters, this one has {}",
            name.chars().count()
        )
    } else if name == "." || name == ".." {
        "a topic cannot be called `.` or `..`".to_owned()
    } else if let Some(bad) = name.chars().find(|c| !legal(*c)) {
        format!("a topic name has letters, digits, `.`, `_` and `-` only, not {bad:?}")
    } else {
        return Ok(());
    };
    Err(Refused::new(ErrorCode::InvalidTopicException, problem))
}

fn checked_configs(configs: &[(String, Option<String>)]) -> Result<Values, Refused> {
    let mut values = Values::new();
    for (name, value) in configs {
        let key = find(Scope::Topic, name)?;
        let Some(value) = value else {
            return Err(Refused::new(
                ErrorCode::InvalidConfig,
                format!("`{name}` has no value"),
            ));
        };
        key.check(value)?;
        if values.insert(name.clone(), value.clone()).is_some() {
            return Err(Refused::new(
                ErrorCode::InvalidConfig,
                format!("`{name}` is set twice"),
            ));
        }
    }
    Ok(values)
}

#[cfg(test)]
#[path = "topics_test.rs"]
mod tests;
