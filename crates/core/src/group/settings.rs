//! Every bound and timing of the group coordinator; the defaults of the bounds are rows of [`limits`].

use crate::limits;

/// Settings of the group coordinator. All times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Smallest session timeout a classic member may ask for (`group.min.session.timeout.ms`).
    pub session_timeout_ms_min: i32,
    /// Largest session timeout a classic member may ask for (`group.max.session.timeout.ms`).
    pub session_timeout_ms_max: i32,
    /// How long a barrier group waits for company after its first member
    /// (`group.initial.rebalance.delay.ms`). Kafka's default is 3000; here nobody is made to wait.
    pub initial_rebalance_delay_ms: i32,
    /// Session of a new member whose parked JoinGroup is all we have from it: it has no heartbeat yet.
    pub new_member_join_timeout_ms: i32,
    /// Heartbeat interval handed to members of the consumer protocol (`group.consumer.heartbeat.interval.ms`).
    /// Kafka's default is 5000; a shorter one makes every hand-over faster.
    pub heartbeat_interval_ms: i32,
    /// Session timeout of members of the consumer protocol (`group.consumer.session.timeout.ms`).
    pub consumer_session_timeout_ms: i32,
    /// Most members of one group (`group.max.size`).
    pub size_max: usize,
    /// How long a cursor that nobody needs is kept (`offsets.retention.minutes`, here in milliseconds).
    pub offset_retention_ms: i64,
    /// Longest note of a commit, bytes (`offset.metadata.max.bytes`).
    pub offset_metadata_bytes_max: usize,
    /// Most groups of the broker.
    pub groups_max: usize,
    /// Longest group id, bytes.
    pub group_id_bytes_max: usize,
    /// Longest member id and instance id, bytes.
    pub member_id_bytes_max: usize,
    /// Most bytes of subscription metadata in one JoinGroup, all protocols together.
    pub member_metadata_bytes_max: usize,
    /// Most bytes of assignments that a leader may send in one SyncGroup.
    pub assignment_bytes_max: usize,
    /// Longest regular expression of a subscription, bytes.
    pub regex_bytes_max: usize,
    /// Most memory a compiled regular expression may take, bytes.
    pub regex_compiled_bytes_max: usize,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            session_timeout_ms_min: ms(limits::SESSION_TIMEOUT_MS_MIN),
            session_timeout_ms_max: ms(limits::SESSION_TIMEOUT_MS_MAX),
            initial_rebalance_delay_ms: 0,
            new_member_join_timeout_ms: 300_000,
            heartbeat_interval_ms: 1_000,
            consumer_session_timeout_ms: 45_000,
            size_max: limits::GROUP_MEMBERS_MAX,
            groups_max: limits::GROUPS_MAX,
            group_id_bytes_max: limits::GROUP_ID_BYTES_MAX,
            member_id_bytes_max: limits::MEMBER_ID_BYTES_MAX,
            offset_retention_ms: i64::try_from(limits::OFFSETS_RETENTION_MS).unwrap_or(i64::MAX),
            offset_metadata_bytes_max: limits::COMMIT_METADATA_BYTES_MAX,
            member_metadata_bytes_max: limits::MEMBER_METADATA_BYTES_MAX,
            assignment_bytes_max: limits::GROUP_ASSIGNMENT_BYTES_MAX,
            regex_bytes_max: limits::SUBSCRIPTION_REGEX_BYTES_MAX,
            regex_compiled_bytes_max: limits::SUBSCRIPTION_REGEX_COMPILED_BYTES_MAX,
        }
    }
}

fn ms(limit: u64) -> i32 {
    i32::try_from(limit).unwrap_or(i32::MAX)
}
