//! Configuration keys of groups (KIP-848), resource type GROUP.

use super::ConfigType::Int;
use super::{Check, ConfigKey, elastic};

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
    elastic::GROUP_BALANCE_COOLDOWN,
    elastic::COMMIT_EVIDENCE.group,
    elastic::FENCE_TIMEOUT.group,
    elastic::GROUP_INTERVAL,
    elastic::MERGE_DELAY.group,
    elastic::MODE.group,
    elastic::SLICES_MAX.group,
    elastic::SPLIT_COOLDOWN.group,
    elastic::SPLIT_MIN_REMAINING.group,
    elastic::STEAL_MIN_MS.group,
    elastic::STEAL_MIN_REMAINING.group,
    elastic::WATCHDOG_COMMIT.group,
    elastic::WATCHDOG_FETCH.group,
];
