//! Configuration keys of elastic groups: one text a key, for the broker, for topics and for groups.
//!
//! The broker's value holds for all, a topic's for all its readers, a group's for all its topics; the narrower one
//! wins. A group key has no default of its own: while it is not set, the topic decides. What the values lead to is
//! [`crate::elastic::ElasticSettings`].

use super::ConfigType::{Int, Long, String};
use super::{Check, ConfigKey};

/// A key in the scopes that have it.
pub(super) struct Row {
    pub(super) broker: ConfigKey,
    pub(super) topic: ConfigKey,
    pub(super) group: ConfigKey,
}

macro_rules! rows {
    ($($row:ident: $name:literal, $kind:expr, $default:literal, $check:expr, $doc:literal;)*) => {
        $(pub(super) const $row: Row = Row {
            broker: ConfigKey::new($name, $kind, Some($default), $check,
                concat!($doc, " Topics and groups can have values of their own.")),
            topic: ConfigKey::new($name, $kind, Some($default), $check,
                concat!($doc, " Groups can have values of their own.")).from(&[($name, 1)]),
            group: ConfigKey::new($name, $kind, None, $check,
                concat!($doc, " While a group has no value of its own, the topic's holds.")),
        };)*
    };
}

rows! {
    COMMIT_EVIDENCE: "elastic.commit.evidence", String, "previous", Check::OneOf(&["latest", "previous"]),
        "Which commit proves that records are done, so that slots whose records were already handed out can move. \
         previous: the commit before the newest one must cover them, since many clients commit what they are still \
         working on. latest: the newest commit is enough; only for applications that commit after the work.";
    FENCE_TIMEOUT: "elastic.fence.timeout.ms", Long, "30000", Check::AtLeast(100),
        "How long slots wait for the commits of the member that gives them up, in milliseconds; no longer than \
         elastic.split.cooldown.ms once that member has nothing left to do. After that they go back to it, and the next \
         attempt takes the whole share away and grants it anew.";
    MERGE_DELAY: "elastic.merge.delay.ms", Long, "300000", Check::AtLeast(0),
        "A divided partition without any record to read for so long, in milliseconds, flows together at one member and \
         becomes plain again. Shares of members that left do not wait for it.";
    MODE: "elastic.mode", String, "slices", Check::OneOf(&["off", "queues", "slices"]),
        "How a topic follows the size of its groups. slices: the unread records of a partition are divided by key among \
         the members, when some have nothing to do. off: as Apache Kafka; nothing is divided any more. \
         queues: the number of queues of the topic follows the largest group, and nothing is divided; on a group it is as off.";
    SLICES_MAX: "elastic.slices.max", Int, "64", Check::Between(1, 4096),
        "The most members that share one partition of a group.";
    SPLIT_COOLDOWN: "elastic.split.cooldown.ms", Long, "1000", Check::AtLeast(0),
        "The least time between two divisions of a topic in one group, in milliseconds.";
    SPLIT_MIN_REMAINING: "elastic.split.min.remaining", Long, "1000", Check::AtLeast(1),
        "A share is divided for members without work only if so many of its records are still to be processed.";
    STEAL_MIN_MS: "elastic.steal.min.ms", Long, "500", Check::AtLeast(0),
        "A member that has drained its own share takes from another only if that one has work for so long, in \
         milliseconds at its measured rate.";
    STEAL_MIN_REMAINING: "elastic.steal.min.remaining", Long, "1000", Check::AtLeast(1),
        "A member that has drained its own share takes from another only if so many of that one's records are still to \
         be processed.";
    WATCHDOG_COMMIT: "elastic.watchdog.commit.ms", Long, "60000", Check::AtLeast(1000),
        "A member that was handed records and has not committed anything for so long, in milliseconds, counts as one \
         that never commits: nothing is moved away from it until it does.";
    WATCHDOG_FETCH: "elastic.watchdog.fetch.ms", Long, "10000", Check::AtLeast(100),
        "A member that could have records of its share, has none in its hands, and asks for none for so long, in \
         milliseconds, gives the partition up once and gets it back. If it does not read after that it counts as paused: \
         it is given nothing more, and others may take what it does not read, until its next fetch.";
}

/// A key of queue mode, in the scopes that have it: a topic's queues are the same for all its groups.
pub(super) struct QueueRow {
    pub(super) broker: ConfigKey,
    pub(super) topic: ConfigKey,
}

macro_rules! queue_rows {
    ($($row:ident: $name:literal, $kind:expr, $default:literal, $check:expr, $doc:literal;)*) => {
        $(pub(super) const $row: QueueRow = QueueRow {
            broker: ConfigKey::new($name, $kind, Some($default), $check,
                concat!($doc, " Topics can have values of their own.")),
            topic: ConfigKey::new($name, $kind, Some($default), $check, $doc).from(&[($name, 1)]),
        };)*
    };
}

queue_rows! {
    QUEUES_DRAIN_DELAY: "elastic.queues.drain.delay.ms", Long, "300000", Check::AtLeast(0),
        "With elastic.mode=queues: how long after the write queue count the read queue count may go down, in milliseconds; \
         it does if everything in the queues that go has been read, else later.";
    QUEUES_GROUP_TTL: "elastic.queues.group.ttl.ms", Long, "3600000", Check::AtLeast(0),
        "With elastic.mode=queues: how long after its last commit a group without members still counts among those that must \
         have read a queue before it goes, in milliseconds.";
    QUEUES_MAX: "elastic.queues.max", Int, "64", Check::Between(1, 10_000),
        "With elastic.mode=queues: the most queues, however many instances a group has; and the partitions of a topic that is \
         created in this mode without a number of them. Clients see all partitions at all times.";
    QUEUES_MIN: "elastic.queues.min", Int, "1", Check::Between(1, 10_000),
        "With elastic.mode=queues: the fewest queues. If the maximum is lower, that wins.";
    QUEUES_SHRINK_GRACE: "elastic.queues.shrink.grace.ms", Long, "60000", Check::AtLeast(0),
        "With elastic.mode=queues: how long there must be fewer instances before the write queue count goes down, in \
         milliseconds: an instance that is back within that time changes nothing.";
    QUEUES_WRITE_DELAY: "elastic.queues.write.delay.ms", Long, "10000", Check::AtLeast(0),
        "With elastic.mode=queues: how long after the read queue count the write queue count goes up, in milliseconds: so \
         long consumers have to come before producers do.";
}

/// Keys about a group as a whole: topics have none.
pub(super) const BALANCE_COOLDOWN: &str = "elastic.balance.cooldown.ms";
/// The same.
pub(super) const INTERVAL: &str = "elastic.interval.ms";

const BALANCE_COOLDOWN_DOC: &str = "The least time between two moves of whole partitions between members that all have work, in milliseconds. \
     Members without work do not wait for it.";
const INTERVAL_DOC: &str =
    "How often a group is looked at when nothing happens to its members, in milliseconds.";

pub(super) const BROKER_BALANCE_COOLDOWN: ConfigKey = ConfigKey::new(
    BALANCE_COOLDOWN,
    Long,
    Some("30000"),
    Check::AtLeast(0),
    BALANCE_COOLDOWN_DOC,
);
pub(super) const GROUP_BALANCE_COOLDOWN: ConfigKey = BROKER_BALANCE_COOLDOWN.from(&[(BALANCE_COOLDOWN, 1)]);
pub(super) const BROKER_INTERVAL: ConfigKey = ConfigKey::new(
    INTERVAL,
    Long,
    Some("1000"),
    Check::Between(10, 3_600_000),
    INTERVAL_DOC,
);
pub(super) const GROUP_INTERVAL: ConfigKey = BROKER_INTERVAL.from(&[(INTERVAL, 1)]);
