//! [`Node`]: everything this broker knows and decides, behind typed methods. The only door for the server.
//!
//! ```text
//! topics.rs     create, delete, grow, auto-create        --+
//! configs.rs    alter, describe                            +--> Vec<Command>, nothing changed yet
//! records.rs    DeleteRecords, retention, producer ids   --+
//! queues.rs     queue mode: where batches go, changes that are due
//! here          apply (the only way state changes), append, commit, lookups
//! recovery.rs   snapshot, restore, replay
//! ```
//!
//! Groups have a coordinator of their own ([`crate::group`]), which the node owns and lends out together with the topics
//! it needs to see: [`Node::groups_mut`].
//!
//! The server holds one lock around the node. For a decision it does, without letting go of the lock:
//!
//! ```text
//! for command in node.create_topic(...)? {
//!     let effects = node.apply(&command);
//!     node.journaled(store.append_state(command.encode()), effects);
//! }
//! ```
//!
//! so that the order of the journal is the order of application. The answer leaves once the LSN that it depends on is
//! durable: [`Node::state_lsn`] for state, that of the append for a produce. [`Node::committed`] is told how far the
//! journal is durable: then high watermarks and log starts move, and the store hears which records are gone.

mod configs;
mod partitions;
mod queues;
mod records;
mod recovery;
mod topics;

pub use configs::{AlterConfig, AlterOp, ConfigEntry};
pub use partitions::Partitions;
pub use queues::{QueueGroup, QueueOrder, QueuesView};
pub use records::ProducerId;
pub use recovery::RestoreError;
pub use topics::{CreateTopic, TopicRef, check_name, duplicates};

use crate::Refused;
use crate::config::{BrokerSettings, ConsumerGroupSettings, Layers, Scope, Values, find};
use crate::group::{self, Coordinator, GroupSettings};
use crate::ids::{LogId, Lsn, Now, Offset, TopicId};
use crate::limits;
use crate::log::{Append, AppendError, BatchFacts, FetchBounds, Log, Place};
use crate::meta::{Command, Resource, State, Topic};
use crate::queues::Watch;
use anabranch_wire::ErrorCode;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What a node is given at its start.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The id of the broker in Metadata.
    pub node_id: i32,
    /// The id of the cluster: made once per data folder.
    pub cluster_id: String,
    /// Broker configurations from the file, the environment and the command line.
    pub configs: Values,
    /// The moment of the start.
    pub started: Now,
}

/// What a command means for the records of a log, once its entry is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEffect {
    /// Records below the offset are gone.
    Start {
        /// The log.
        log: LogId,
        /// The first offset that exists.
        offset: Offset,
    },
    /// The log is gone.
    Drop {
        /// The log.
        log: LogId,
    },
}

impl LogEffect {
    /// The log that it is about.
    pub fn log(&self) -> LogId {
        let (Self::Start { log, .. } | Self::Drop { log }) = self;
        *log
    }
}

/// The broker's state and decisions.
#[derive(Debug)]
pub struct Node {
    options: Options,
    state: State,
    logs: BTreeMap<LogId, Log>,
    groups: Coordinator,
    /// Derived from the configuration.
    settings: BrokerSettings,
    /// Producers remembered by all logs.
    producers_total: usize,
    /// Reserved producer ids that are not handed out yet; volatile.
    producer_ids: Range<i64>,
    state_lsn: Lsn,
    /// What follows for logs from entries that are not durable so far, in the order of the journal.
    uncommitted: VecDeque<(Lsn, LogEffect)>,
    auto_create: topics::Allowance,
    retention_clock: Option<records::RetentionClock>,
    /// Topics in queue mode, and how long they have been as they are; volatile.
    queue_watches: BTreeMap<TopicId, Watch>,
    /// Topics may have entered or left queue mode.
    modes_changed: bool,
    /// What the last entry of a replay said of the next one.
    addressed: Option<(LogId, i32)>,
}

impl Node {
    /// A node of an empty data folder. Refuses configurations that are unknown or not valid.
    pub fn new(options: Options) -> Result<Self, Refused> {
        Self::with_state(options, State::default(), BTreeMap::new(), Coordinator::default())
    }

    fn with_state(
        mut options: Options,
        state: State,
        logs: BTreeMap<LogId, Log>,
        groups: Coordinator,
    ) -> Result<Self, Refused> {
        for (name, value) in &options.configs {
            find(Scope::Broker, name)?.check(value)?;
        }
        let node_id = options.node_id.to_string();
        options.configs.insert("node.id".to_owned(), node_id.clone());
        options.configs.insert("broker.id".to_owned(), node_id);
        let settings = BrokerSettings::new(layers(&options, &state));
        let producers_total = logs.values().map(Log::producer_count).sum();
        let mut node = Self {
            auto_create: topics::Allowance::full(options.started),
            options,
            state,
            logs,
            groups,
            settings,
            producers_total,
            producer_ids: 0..0,
            state_lsn: Lsn(0),
            uncommitted: VecDeque::new(),
            retention_clock: None,
            queue_watches: BTreeMap::new(),
            modes_changed: true,
            addressed: None,
        };
        node.refresh(&Resource::Broker);
        let queued: Vec<TopicId> = node.state.queues().keys().copied().collect();
        queued.into_iter().for_each(|topic| node.refresh_homes(topic));
        Ok(node)
    }

    /// The id of the broker.
    pub fn node_id(&self) -> i32 {
        self.options.node_id
    }

    /// The id of the cluster.
    pub fn cluster_id(&self) -> &str {
        &self.options.cluster_id
    }

    /// What the broker goes by at present.
    pub fn settings(&self) -> &BrokerSettings {
        &self.settings
    }

    /// The durable state, read-only.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The topic of that name.
    pub fn topic_by_name(&self, name: &str) -> Option<&Topic> {
        self.state.topic_by_name(name)
    }

    /// The topic of that id.
    pub fn topic_by_id(&self, id: TopicId) -> Option<&Topic> {
        self.state.topic_by_id(id)
    }

    /// All topics in name order.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &Topic> {
        self.state.topics()
    }

    /// A log.
    pub fn log(&self, log: LogId) -> Option<&Log> {
        self.logs.get(&log)
    }

    /// All logs in id order.
    pub fn logs(&self) -> impl ExactSizeIterator<Item = &Log> {
        self.logs.values()
    }

    /// The groups, to ask about them.
    pub fn groups(&self) -> &Coordinator {
        &self.groups
    }

    /// The groups for a request about them, and the topics that they look at. The changes in the effects have been made:
    /// each is to be journalled as a [`Command::Group`], in order and under the same lock, and not to be applied.
    pub fn groups_mut(&mut self) -> (&mut Coordinator, Partitions<'_>) {
        let partitions = Partitions {
            state: &self.state,
            logs: &self.logs,
            layers: layers(&self.options, &self.state),
        };
        (&mut self.groups, partitions)
    }

    /// The topics as groups see them.
    pub fn partitions(&self) -> Partitions<'_> {
        Partitions {
            state: &self.state,
            logs: &self.logs,
            layers: self.layers(),
        }
    }

    /// Lets groups take notice of topics that were created, deleted or grown; to be called after such commands.
    pub fn topics_changed(&mut self, now: Now) -> group::Effects {
        let (groups, partitions) = self.groups_mut();
        groups.topics_changed(now, &partitions)
    }

    /// Makes a change, and says what follows for logs once its entry is durable: see [`Self::journaled`]. Total: never
    /// fails.
    pub fn apply(&mut self, command: &Command) -> Vec<LogEffect> {
        let effects = match command {
            Command::DeleteTopic { id, .. } => self.drop_logs(*id),
            Command::AdvanceLogStart { log, offset } => self.decide_start(*log, *offset),
            _ => Vec::new(),
        };
        self.state.apply(command);
        match command {
            Command::CreateTopic { id, logs, .. } => {
                self.add_logs(*id, 0, logs);
                self.modes_changed = true;
            }
            Command::DeleteTopic { id, .. } => {
                self.queue_watches.remove(id);
            }
            Command::CreatePartitions { id, logs } => {
                let before = self
                    .state
                    .topic_by_id(*id)
                    .map_or(0, |topic| topic.logs.len() - logs.len());
                self.add_logs(*id, before, logs);
                self.refresh_homes(*id);
            }
            Command::SetQueues { id, queues, .. } => {
                if queues.is_none() {
                    self.queue_watches.remove(id);
                }
                self.refresh_homes(*id);
            }
            Command::SetConfigs { resource, .. } => {
                self.refresh(resource);
                self.modes_changed = true;
            }
            Command::Group(change) => self.groups.apply(change),
            _ => {}
        }
        effects
    }

    /// The LSN of the last state change: what an answer about state waits for.
    pub fn state_lsn(&self) -> Lsn {
        self.state_lsn
    }

    /// Notes the LSN that the store gave to a command, and what follows from the command when that is durable.
    pub fn journaled(&mut self, lsn: Lsn, effects: Vec<LogEffect>) {
        self.state_lsn = self.state_lsn.max(lsn);
        self.uncommitted
            .extend(effects.into_iter().map(|effect| (lsn, effect)));
    }

    /// Decides about a batch that is addressed to `log` and, if it is new, assigns its offsets in the log where it is to be
    /// stored: the server must then hand it to the store before it lets go of the lock, and call [`Node::appended`]. If that
    /// is another log, [`Node::appended`] is to be called for both, and, if the batch has a sequence number,
    /// [`Command::Addressed`] goes before it. See the table in [`crate::log::producers`].
    pub fn append(&mut self, now: Now, log: LogId, batch: &BatchFacts) -> Result<Append, AppendError> {
        let producers_max = self.producers_max();
        let found = self.logs.get_mut(&log).ok_or(AppendError::UnknownLog)?;
        if let Some(home) = found.home() {
            return self.append_elsewhere(now, log, home, batch);
        }
        let before = found.producer_count();
        let append = found.append(now, batch, producers_max);
        self.producers_total = self.producers_total + found.producer_count() - before;
        append
    }

    fn append_elsewhere(
        &mut self,
        now: Now,
        log: LogId,
        home: LogId,
        batch: &BatchFacts,
    ) -> Result<Append, AppendError> {
        let found = self.logs.get_mut(&log).ok_or(AppendError::UnknownLog)?;
        if let Some(duplicate) = found.admit(now, batch)? {
            return Ok(duplicate);
        }
        let home = self.logs.get_mut(&home).ok_or(AppendError::UnknownLog)?;
        let (append, place) = home.place(now, batch);
        self.remember(now.mono_ms, log, batch, place.elsewhere());
        Ok(append)
    }

    /// Has the log that a batch was addressed to remember where it is.
    fn remember(&mut self, mono_ms: u64, log: LogId, batch: &BatchFacts, place: Place) {
        let producers_max = self.producers_max();
        if let Some(found) = self.logs.get_mut(&log) {
            let before = found.producer_count();
            found.remember(mono_ms, batch, place, producers_max);
            self.producers_total = self.producers_total + found.producer_count() - before;
        }
    }

    /// The server refuses a batch before it comes to [`Node::append`], for a reason that may pass. Then what its producer
    /// has sent behind it must be refused as well. A batch that is here already must not be refused, and is returned as
    /// the duplicate that it is: while it is refused again and again others may be accepted, until it is no longer known.
    #[must_use = "a duplicate is to be acknowledged"]
    pub fn note_refused(&mut self, now: Now, log: LogId, batch: &BatchFacts) -> Option<Append> {
        self.logs.get_mut(&log)?.note_refused(now, batch)
    }

    fn producers_max(&self) -> usize {
        if self.producers_total >= limits::PRODUCERS_TOTAL_MAX {
            limits::PRODUCERS_PER_LOG_MIN
        } else {
            limits::PRODUCERS_PER_LOG_MAX
        }
    }

    /// Notes the LSN that the store gave to a batch.
    pub fn appended(&mut self, log: LogId, lsn: Lsn) {
        if let Some(log) = self.logs.get_mut(&log) {
            log.appended(lsn);
        }
    }

    /// The journal is durable up to `upto`, and with it the records up to these offsets (exclusive): high watermarks and
    /// log starts follow. Logs that are gone are passed over. Returns what the store may now do about logs.
    #[must_use = "the store does not know by itself which records are gone"]
    pub fn committed(&mut self, upto: Lsn, tails: &[(LogId, Offset)]) -> Vec<LogEffect> {
        for (log, next_offset) in tails {
            if let Some(log) = self.logs.get_mut(log) {
                log.committed(*next_offset);
            }
        }
        let due = self.uncommitted.partition_point(|(lsn, _)| *lsn <= upto);
        let effects: Vec<_> = self.uncommitted.drain(..due).map(|(_, effect)| effect).collect();
        self.commit_starts(&effects);
        effects
    }

    fn commit_starts(&mut self, effects: &[LogEffect]) {
        for effect in effects {
            if let LogEffect::Start { log, offset } = effect
                && let Some(log) = self.logs.get_mut(log)
            {
                log.commit_start(*offset);
            }
        }
    }

    /// What a fetch from `offset` may see. UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE.
    pub fn fetch_bounds(&self, log: LogId, offset: Offset) -> Result<FetchBounds, ErrorCode> {
        self.logs
            .get(&log)
            .ok_or(ErrorCode::UnknownTopicOrPartition)?
            .fetch_bounds(offset)
    }

    fn layers(&self) -> Layers<'_> {
        layers(&self.options, &self.state)
    }

    fn add_logs(&mut self, topic: TopicId, first_partition: usize, logs: &[LogId]) {
        let Some(found) = self.state.topic_by_id(topic) else {
            return;
        };
        let settings = found.settings(self.layers());
        for (partition, log) in (first_partition..).zip(logs) {
            // A command that was never decided here could name a log of another topic; it gets none then.
            let partition = i32::try_from(partition).unwrap_or(i32::MAX);
            if found.log(partition) == Some(*log) {
                self.logs
                    .entry(*log)
                    .or_insert_with(|| Log::new(*log, topic, partition, settings));
            }
        }
    }

    fn drop_logs(&mut self, topic: TopicId) -> Vec<LogEffect> {
        let Some(topic) = self.state.topic_by_id(topic) else {
            return Vec::new();
        };
        let gone = topic.logs.iter().filter_map(|log| self.logs.remove(log));
        let gone: Vec<Log> = gone.collect();
        self.producers_total -= gone.iter().map(Log::producer_count).sum::<usize>();
        gone.iter().map(|log| LogEffect::Drop { log: log.id() }).collect()
    }

    fn decide_start(&mut self, log: LogId, offset: Offset) -> Vec<LogEffect> {
        let Some(found) = self.logs.get_mut(&log) else {
            return Vec::new();
        };
        let before = found.decided_start();
        found.decide_start(offset);
        let offset = found.decided_start();
        if offset > before {
            vec![LogEffect::Start { log, offset }]
        } else {
            Vec::new()
        }
    }

    /// Settings are derived from configurations, so they follow each change.
    fn refresh(&mut self, resource: &Resource) {
        match resource {
            Resource::Topic(name) => {
                let id = self.state.topic_by_name(name).map(|topic| topic.id);
                self.refresh_logs(|topic| Some(topic.id) == id);
            }
            Resource::ClusterDefault | Resource::Broker => {
                self.settings = BrokerSettings::new(self.layers());
                let settings = GroupSettings::of_broker(self.layers());
                self.groups.set_settings(settings);
                let configured: Vec<String> = self.state.all_group_configs().keys().cloned().collect();
                configured.iter().for_each(|group| self.refresh_group(group));
                self.refresh_logs(|_| true);
            }
            Resource::Group(group) => self.refresh_group(group),
        }
    }

    fn refresh_group(&mut self, group: &str) {
        let configs = self.state.group_configs(group);
        let settings = configs.map(|configs| ConsumerGroupSettings::new(configs, self.layers()));
        self.groups.set_own_settings(group, settings);
    }

    fn refresh_logs(&mut self, concerns: impl Fn(&Topic) -> bool) {
        let layers = layers(&self.options, &self.state);
        for topic in self.state.topics().filter(|topic| concerns(topic)) {
            let settings = topic.settings(layers);
            for log in &topic.logs {
                if let Some(log) = self.logs.get_mut(log) {
                    log.set_settings(settings);
                }
            }
        }
    }
}

fn layers<'a>(options: &'a Options, state: &'a State) -> Layers<'a> {
    Layers {
        broker: state.broker_configs(),
        cluster: state.cluster_configs(),
        fixed: &options.configs,
    }
}

#[cfg(test)]
#[path = "node_test.rs"]
mod tests;

#[cfg(test)]
mod queues_bench;

#[cfg(test)]
#[path = "groups_test.rs"]
mod groups_tests;
