//! Topics, configurations, counters: what commands have led to.

use super::command::{Command, Resource, get_logs, put_logs};
use crate::codec::{CodecError, Decoder, Encoder};
use crate::config::{Layers, TopicSettings, Values};
use crate::ids::{LogId, TopicId};
use crate::limits;
use crate::queues::{Decision, QueueLog, Queues};
use std::collections::BTreeMap;

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its identity: a topic that is deleted and created again gets another one.
    pub id: TopicId,
    /// The log of each partition, in partition order.
    pub logs: Vec<LogId>,
    /// What is set on it.
    pub configs: Values,
    /// When it was created, wall clock in milliseconds.
    pub created_ms: i64,
}

impl Topic {
    /// The log of a partition, if there is such a partition.
    pub fn log(&self, partition: i32) -> Option<LogId> {
        self.logs.get(usize::try_from(partition).ok()?).copied()
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> i32 {
        i32::try_from(self.logs.len()).unwrap_or(i32::MAX)
    }

    /// Its settings, given the broker's values.
    pub fn settings(&self, layers: Layers<'_>) -> TopicSettings {
        TopicSettings::new(&self.configs, layers)
    }
}

/// All of it. Fields behind methods are indexes that only `apply` may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    topics: BTreeMap<String, Topic>,
    names: BTreeMap<TopicId, String>,
    /// Names with `.` for `_`: two topics must not be equal so, since metric names would clash.
    folded: BTreeMap<String, String>,
    partition_count: usize,
    next_log: u32,
    next_producer_id: i64,
    cluster_configs: Values,
    broker_configs: Values,
    group_configs: BTreeMap<String, Values>,
    /// Deleted name -> wall clock of the deletion, for the few that count.
    deleted: BTreeMap<String, i64>,
    retention_clock_ms: Option<i64>,
    /// Topics in queue mode.
    queues: BTreeMap<TopicId, Queues>,
    /// Topics that are, or were, in queue mode.
    queue_logs: BTreeMap<TopicId, QueueLog>,
}

impl State {
    /// The topic of that name.
    pub fn topic_by_name(&self, name: &str) -> Option<&Topic> {
        self.topics.get(name)
    }

    /// The topic of that id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Topic> {
        self.topics.get(self.names.get(&id)?)
    }

    /// All topics in name order.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &Topic> {
        self.topics.values()
    }

    /// The topic whose name differs from this one in `.` and `_` only, or not at all.
    pub fn colliding(&self, name: &str) -> Option<&str> {
        self.folded.get(&folded(name)).map(String::as_str)
    }

    /// Partitions of all topics.
    pub fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// The first log id that was never used.
    pub fn next_log(&self) -> u32 {
        self.next_log
    }

    /// The first producer id that was never reserved.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }

    /// What is set for all brokers.
    pub fn cluster_configs(&self) -> &Values {
        &self.cluster_configs
    }

    /// What is set on this broker.
    pub fn broker_configs(&self) -> &Values {
        &self.broker_configs
    }

    /// What is set on a group.
    pub fn group_configs(&self, group: &str) -> Option<&Values> {
        self.group_configs.get(group)
    }

    /// All groups that have something set, in the order of their ids.
    pub fn all_group_configs(&self) -> &BTreeMap<String, Values> {
        &self.group_configs
    }

    /// The groups that have something set, in the order of their ids.
    pub fn groups_with_configs(&self) -> impl Iterator<Item = &str> {
        self.group_configs.keys().map(String::as_str)
    }

    /// How many groups have something set.
    pub fn configured_groups(&self) -> usize {
        self.group_configs.len()
    }

    /// When a topic of this name was deleted, wall clock in milliseconds, if that is not long ago.
    pub fn deleted_ms(&self, name: &str) -> Option<i64> {
        self.deleted.get(name).copied()
    }

    /// The clock that retention went by when it was last noted.
    pub fn retention_clock_ms(&self) -> Option<i64> {
        self.retention_clock_ms
    }

    /// The topics in queue mode, with their queues.
    pub fn queues(&self) -> &BTreeMap<TopicId, Queues> {
        &self.queues
    }

    /// What was decided about the queues of topics that are, or were, in queue mode.
    pub fn queue_logs(&self) -> &BTreeMap<TopicId, QueueLog> {
        &self.queue_logs
    }

    /// Makes a change. What it does not find it does nothing about.
    pub fn apply(&mut self, command: &Command) {
        match command {
            Command::CreateTopic {
                name,
                id,
                logs,
                configs,
                created_ms,
            } => {
                let topic = Topic {
                    name: name.clone(),
                    id: *id,
                    logs: logs.clone(),
                    configs: configs.clone(),
                    created_ms: *created_ms,
                };
                self.insert(topic);
            }
            Command::DeleteTopic { id, deleted_ms } => self.delete(*id, *deleted_ms),
            Command::CreatePartitions { id, logs } => {
                let name = self.names.get(id);
                if let Some(topic) = name.and_then(|name| self.topics.get_mut(name)) {
                    topic.logs.extend_from_slice(logs);
                    self.partition_count += logs.len();
                }
                self.use_logs(logs);
            }
            Command::SetConfigs { resource, configs } => self.set_configs(resource, configs),
            Command::AllocateProducerIds { upto } => self.next_producer_id = self.next_producer_id.max(*upto),
            Command::SetRetentionClock { clock_ms } => self.retention_clock_ms = Some(*clock_ms),
            Command::SetQueues { id, queues, decision } => self.set_queues(*id, queues.as_ref(), decision),
            // The start of a log is kept by the log, groups by their coordinator; what is said of a batch counts for that.
            Command::AdvanceLogStart { .. } | Command::Group(_) | Command::Addressed { .. } => {}
        }
    }

    fn set_queues(&mut self, id: TopicId, queues: Option<&Queues>, decision: &Decision) {
        if !self.names.contains_key(&id) {
            return;
        }
        match queues {
            Some(queues) => self.queues.insert(id, queues.clone()),
            None => self.queues.remove(&id),
        };
        self.queue_logs.entry(id).or_default().note(decision.clone());
    }

    fn insert(&mut self, topic: Topic) {
        self.use_logs(&topic.logs);
        self.deleted.remove(&topic.name);
        if self.topics.contains_key(&topic.name) || self.names.contains_key(&topic.id) {
            return;
        }
        self.partition_count += topic.logs.len();
        self.folded.insert(folded(&topic.name), topic.name.clone());
        self.names.insert(topic.id, topic.name.clone());
        self.topics.insert(topic.name.clone(), topic);
    }

    fn delete(&mut self, id: TopicId, deleted_ms: i64) {
        let Some(topic) = self.names.remove(&id).and_then(|name| self.topics.remove(&name)) else {
            return;
        };
        self.partition_count -= topic.logs.len();
        self.queues.remove(&id);
        self.queue_logs.remove(&id);
        self.folded.remove(&folded(&topic.name));
        let forgotten = i64::try_from(limits::AUTO_CREATE_REFUSED_MS).unwrap_or(i64::MAX);
        self.deleted
            .retain(|_, at_ms| deleted_ms.abs_diff(*at_ms) < forgotten.unsigned_abs());
        self.deleted.insert(topic.name, deleted_ms);
        while self.deleted.len() > limits::DELETED_NAMES_MAX {
            let oldest = self
                .deleted
                .iter()
                .min_by_key(|(_, at_ms)| **at_ms)
                .map(|(name, _)| name.clone());
            oldest.and_then(|name| self.deleted.remove(&name));
        }
    }

    fn use_logs(&mut self, logs: &[LogId]) {
        let used = logs.iter().map(|log| log.0.saturating_add(1)).max().unwrap_or(0);
        self.next_log = self.next_log.max(used);
    }

    fn set_configs(&mut self, resource: &Resource, configs: &Values) {
        match resource {
            Resource::Topic(name) => {
                if let Some(topic) = self.topics.get_mut(name) {
                    topic.configs.clone_from(configs);
                }
            }
            Resource::ClusterDefault => self.cluster_configs.clone_from(configs),
            Resource::Broker => self.broker_configs.clone_from(configs),
            Resource::Group(id) if configs.is_empty() => {
                self.group_configs.remove(id);
            }
            Resource::Group(id) => {
                self.group_configs.insert(id.clone(), configs.clone());
            }
        }
    }

    pub(crate) fn put(&self, e: &mut Encoder) {
        e.uvar(u64::from(self.next_log));
        e.ivar(self.next_producer_id);
        e.opt(self.retention_clock_ms, Encoder::ivar);
        e.list(self.topics.values(), |e, topic| {
            e.str(&topic.name);
            e.id(&topic.id.0);
            put_logs(e, &topic.logs);
            e.str_map(&topic.configs);
            e.ivar(topic.created_ms);
        });
        e.str_map(&self.cluster_configs);
        e.str_map(&self.broker_configs);
        e.list(&self.group_configs, |e, (group, configs)| {
            e.str(group);
            e.str_map(configs);
        });
        e.list(&self.deleted, |e, (name, at_ms)| {
            e.str(name);
            e.ivar(*at_ms);
        });
        e.list(&self.queues, |e, (id, queues)| {
            e.id(&id.0);
            queues.put(e);
        });
        e.list(&self.queue_logs, |e, (id, log)| {
            e.id(&id.0);
            log.put(e);
        });
    }

    /// Reads the state of a snapshot of this format version.
    pub(crate) fn get(d: &mut Decoder<'_>, version: u64) -> Result<Self, CodecError> {
        let mut state = Self {
            next_log: d.uvar32()?,
            next_producer_id: d.ivar()?,
            ..Self::default()
        };
        state.retention_clock_ms = d.opt(Decoder::ivar)?;
        let topics = d.list(|d| {
            let (name, id, logs) = (d.string()?, TopicId(d.id()?), get_logs(d)?);
            Ok::<_, CodecError>(Topic {
                name,
                id,
                logs,
                configs: d.str_map()?,
                created_ms: d.ivar()?,
            })
        })?;
        let count = topics.len();
        topics.into_iter().for_each(|topic| state.insert(topic));
        if state.topics.len() != count {
            return Err(d.invalid("two topics share a name or an id"));
        }
        state.cluster_configs = d.str_map()?;
        state.broker_configs = d.str_map()?;
        state.group_configs = d
            .list(|d| Ok::<_, CodecError>((d.string()?, d.str_map()?)))?
            .into_iter()
            .collect();
        state.deleted = d
            .list(|d| Ok::<_, CodecError>((d.string()?, d.ivar()?)))?
            .into_iter()
            .collect();
        if version > 1 {
            state.queues = d
                .list(|d| Ok::<_, CodecError>((TopicId(d.id()?), Queues::get(d)?)))?
                .into_iter()
                .collect();
            state.queue_logs = d
                .list(|d| Ok::<_, CodecError>((TopicId(d.id()?), QueueLog::get(d)?)))?
                .into_iter()
                .collect();
        }
        Ok(state)
    }
}

fn folded(name: &str) -> String {
    name.replace('.', "_")
}
