//! Typed values of the keys that have an effect, computed once when a configuration changes.

use super::resolve::{Layers, Source, Values, effective};
use super::value::words_of;
use super::{ConfigKey, Scope, lookup};
use crate::group::GroupSettings;
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
    /// How often retention runs, in milliseconds.
    pub retention_check_ms: u64,
}

/// What one KIP-848 group goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerGroupSettings {
    /// After how long a silent member is expelled, in milliseconds.
    pub session_timeout_ms: i32,
    /// How often members send a heartbeat, in milliseconds.
    pub heartbeat_interval_ms: i32,
}

/// Reads one scope's values. A value that does not parse (it was checked when it was set, so an older version did that)
/// counts as the default of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) scope: Scope,
    pub(crate) own: Option<(&'a Values, Source)>,
    pub(crate) layers: Layers<'a>,
}

impl Reader<'_> {
    pub(crate) fn text(&self, name: &str) -> String {
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

    /// A number of a key with 32 bits.
    fn int(&self, name: &str) -> i32 {
        i32::try_from(self.number(name)).unwrap_or(i32::MAX)
    }

    /// A number that no check lets be negative.
    pub(crate) fn count(&self, name: &str) -> u64 {
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
            retention_check_ms: read.count("log.retention.check.interval.ms"),
        }
    }
}

impl GroupSettings {
    /// What the coordinator goes by; bounds that no configuration names keep their default.
    pub fn of_broker(layers: Layers<'_>) -> Self {
        let read = Reader {
            scope: Scope::Broker,
            own: None,
            layers,
        };
        let members_max = read
            .count("group.max.size")
            .min(read.count("group.consumer.max.size"));
        Self {
            session_timeout_ms_min: read.int("group.min.session.timeout.ms"),
            session_timeout_ms_max: read.int("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms: read.int("group.initial.rebalance.delay.ms"),
            heartbeat_interval_ms: read.int("group.consumer.heartbeat.interval.ms"),
            consumer_session_timeout_ms: read.int("group.consumer.session.timeout.ms"),
            size_max: usize::try_from(members_max)
                .unwrap_or(usize::MAX)
                .min(limits::GROUP_MEMBERS_MAX),
            offset_retention_ms: read.number("offsets.retention.minutes").saturating_mul(60_000),
            offset_metadata_bytes_max: read.count("offset.metadata.max.bytes") as usize,
            ..Self::default()
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
            session_timeout_ms: read.int("consumer.session.timeout.ms"),
            heartbeat_interval_ms: read.int("consumer.heartbeat.interval.ms"),
        }
    }
}
