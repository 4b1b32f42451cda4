//! Typed values of the keys that have an effect, computed once when a configuration changes.

use super::resolve::{Layers, Source, Values, effective};
use super::value::words_of;
use super::{ConfigKey, Scope, lookup};
use crate::limits;

/// Whose time the records of a topic carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    #[default]
    CreateTime,
    /// The broker's at the append.
    LogAppendTime,
}

/// What the log of a topic goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Largest batch in bytes.
    pub message_bytes_max: usize,
    /// Whose time records carry.
    pub timestamp_type: TimestampType,
    /// How far in the past a timestamp may lie, in milliseconds.
    pub timestamp_before_ms_max: i64,
    /// How far in the future a timestamp may lie, in milliseconds.
    pub timestamp_after_ms_max: i64,
    /// Whether old records are deleted (cleanup.policy has `delete`).
    pub delete: bool,
    /// Whether keys are to be compacted (cleanup.policy has `compact`).
    pub compact: bool,
    /// How long records are kept in milliseconds; `None`: for ever.
    pub retention_ms: Option<i64>,
    /// How many bytes are kept; `None`: all.
    pub retention_bytes: Option<u64>,
}

/// What the broker goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    /// Partitions of a topic whose creator does not say.
    pub num_partitions: i32,
    /// Whether Metadata requests may create topics.
    pub auto_create_topics: bool,
    /// Whether topics can be deleted.
    pub delete_topics: bool,
    /// After how many idle milliseconds a producer is forgotten.
    pub producer_expiration_ms: u64,
    /// Longest metadata string of a commit, in bytes.
    pub commit_metadata_bytes_max: usize,
    /// How long offsets of a group without members are kept, in milliseconds.
    pub offsets_retention_ms: u64,
    /// How often retention runs, in milliseconds.
    pub retention_check_ms: u64,
    /// Shortest session of a classic member, in milliseconds.
    pub session_timeout_ms_min: u64,
    /// Longest session of a classic member, in milliseconds.
    pub session_timeout_ms_max: u64,
    /// Most members of a classic group.
    pub group_members_max: usize,
    /// Most members of a KIP-848 group.
    pub consumer_group_members_max: usize,
    /// How long a new group with a client leader waits for members, in milliseconds.
    pub initial_rebalance_delay_ms: u64,
}

/// What a KIP-848 group goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerGroupSettings {
    /// After how long a silent member is expelled, in milliseconds.
    pub session_timeout_ms: u64,
    /// How often members send a heartbeat, in milliseconds.
    pub heartbeat_interval_ms: u64,
}

/// Reads one scope's values. A value that does not parse (it was checked when it was set, so an older version did that)
/// counts as the default of its key.
struct Reader<'a> {
    scope: Scope,
    own: Option<(&'a Values, Source)>,
    layers: Layers<'a>,
}

impl Reader<'_> {
    fn text(&self, name: &str) -> String {
        let Some(key) = lookup(self.scope, name) else {
            return String::new();
        };
        let value = effective(key, self.own, self.layers);
        if key.check(&value).is_ok() {
            value
        } else {
            default_of(key)
        }
    }

    fn number(&self, name: &str) -> i64 {
        self.text(name).trim().parse().unwrap_or(0)
    }

    /// A number that no check lets be negative.
    fn count(&self, name: &str) -> u64 {
        self.number(name).max(0).unsigned_abs()
    }

    fn flag(&self, name: &str) -> bool {
        self.text(name).trim().eq_ignore_ascii_case("true")
    }

    /// A number where -1 stands for "no bound".
    fn bound(&self, name: &str) -> Option<i64> {
        Some(self.number(name)).filter(|number| *number >= 0)
    }
}

fn default_of(key: &ConfigKey) -> String {
    key.default.unwrap_or_default().to_owned()
}

impl TopicSettings {
    /// The settings of a topic with these overrides.
    pub fn new(overrides: &Values, layers: Layers<'_>) -> Self {
        let read = Reader {
            scope: Scope::Topic,
            own: Some((overrides, Source::Topic)),
            layers,
        };
        let policy = read.text("cleanup.policy");
        let timestamp_type = match read.text("message.timestamp.type").trim() {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        };
        Self {
            message_bytes_max: read.count("max.message.bytes") as usize,
            timestamp_type,
            timestamp_before_ms_max: read.number("message.timestamp.before.max.ms"),
            timestamp_after_ms_max: read.number("message.timestamp.after.max.ms"),
            delete: words_of(&policy).contains(&"delete"),
            compact: words_of(&policy).contains(&"compact"),
            retention_ms: read.bound("retention.ms"),
            retention_bytes: read.bound("retention.bytes").map(i64::unsigned_abs),
        }
    }
}

impl BrokerSettings {
    /// The settings of the broker.
    pub fn new(layers: Layers<'_>) -> Self {
        let read = Reader {
            scope: Scope::Broker,
            own: None,
            layers,
        };
        Self {
            num_partitions: i32::try_from(read.number("num.partitions")).unwrap_or(1),
            auto_create_topics: read.flag("auto.create.topics.enable"),
            delete_topics: read.flag("delete.topic.enable"),
            producer_expiration_ms: read.count("producer.id.expiration.ms"),
            commit_metadata_bytes_max: read.count("offset.metadata.max.bytes") as usize,
            offsets_retention_ms: read.count("offsets.retention.minutes").saturating_mul(60_000),
            retention_check_ms: read.count("log.retention.check.interval.ms"),
            session_timeout_ms_min: read.count("group.min.session.timeout.ms"),
            session_timeout_ms_max: read.count("group.max.session.timeout.ms"),
            group_members_max: (read.count("group.max.size") as usize).min(limits::GROUP_MEMBERS_MAX),
            consumer_group_members_max: (read.count("group.consumer.max.size") as usize)
                .min(limits::GROUP_MEMBERS_MAX),
            initial_rebalance_delay_ms: read.count("group.initial.rebalance.delay.ms"),
        }
    }
}

impl ConsumerGroupSettings {
    /// The settings of a group with these overrides.
    pub fn new(overrides: &Values, layers: Layers<'_>) -> Self {
        let read = Reader {
            scope: Scope::Group,
            own: Some((overrides, Source::Group)),
            layers,
        };
        Self {
            session_timeout_ms: read.count("consumer.session.timeout.ms"),
            heartbeat_interval_ms: read.count("consumer.heartbeat.interval.ms"),
        }
    }
}
