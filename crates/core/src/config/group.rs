//! Configuration keys of groups (KIP-848), resource type GROUP.

use super::ConfigType::Int;
use super::{Check, ConfigKey};

/// All group keys, in name order.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::new("consumer.heartbeat.interval.ms", Int, Some("1000"), Check::AtLeast(1),
        "How often members of the group send a heartbeat, in milliseconds; the broker tells them in every answer. It \
         must lie between group.consumer.min.heartbeat.interval.ms and group.consumer.max.heartbeat.interval.ms.")
        .from(&[("group.consumer.heartbeat.interval.ms", 1)]),
    ConfigKey::new("consumer.session.timeout.ms", Int, Some("45000"), Check::AtLeast(1),
        "A member that is silent for so long is expelled, in milliseconds. It must lie between \
         group.consumer.min.session.timeout.ms and group.consumer.max.session.timeout.ms.")
        .from(&[("group.consumer.session.timeout.ms", 1)]),
];
