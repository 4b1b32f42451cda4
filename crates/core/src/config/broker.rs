//! Configuration keys of the broker, with Kafka 4.1's names; defaults are Kafka's but for the
//! timing and the size of groups.
//!
//! They come from the configuration the broker starts with ("static"), and the dynamic ones can be changed by
//! AlterConfigs, for this broker or for all ("cluster default").

use super::ConfigType::{Boolean, Double, Int, List, Long, Short, String};
use super::{Check, ConfigKey, elastic};

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;
const MAX: &str = "9223372036854775807";

/// All broker keys, in name order.
#[rustfmt::skip] // one key a paragraph reads better than one argument a line
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::new("advertised.listeners", List, Some(""), Check::Any,
        "The addresses that clients are told, as configured at the start. When it is empty, each client is \
         told the address it dialled.")
        .read_only(),
    ConfigKey::new("auto.create.topics.enable", Boolean, Some("true"), Check::Any,
        "Whether a Metadata request that names a missing topic, and allows it, creates the topic."),
    ConfigKey::new("auto.leader.rebalance.enable", Boolean, Some("true"), Check::Any,
        "Accepted without effect: a single node leads everything.")
        .accepted_only().read_only(),
    ConfigKey::new("background.threads", Int, Some("10"), Check::AtLeast(1),
        "Accepted without effect: the threads of the broker follow the cores of the machine.")
        .accepted_only().read_only(),
    ConfigKey::new("broker.id", Int, Some("1"), Check::AtLeast(0),
        "The id of this broker in Metadata; the older name of node.id.")
        .read_only(),
    ConfigKey::new("broker.rack", String, None, Check::Any,
        "The rack of the broker. A single node has no use for it.")
        .accepted_only().read_only(),
    ConfigKey::new("compression.type", String, Some("producer"), Check::Only("producer", "batches are stored as the producer sent them: set compression.type at the producer"),
        "The compression of stored batches: always the producer's own choice."),
    ConfigKey::new("connections.max.idle.ms", Long, Some("600000"), Check::AtLeast(-1),
        "A connection without requests is closed after so many milliseconds; -1: never.")
        .read_only(),
    ConfigKey::new("default.replication.factor", Int, Some("1"), Check::Only("1", "this is a single node"),
        "Replicas of a new topic. A single node holds one.")
        .read_only(),
    ConfigKey::new("delete.topic.enable", Boolean, Some("true"), Check::Any,
        "Whether topics can be deleted by request."),
    elastic::BROKER_BALANCE_COOLDOWN,
    elastic::COMMIT_EVIDENCE.broker,
    elastic::FENCE_TIMEOUT.broker,
    elastic::BROKER_INTERVAL,
    elastic::MERGE_DELAY.broker,
    elastic::MODE.broker,
    elastic::QUEUES_DRAIN_DELAY.broker,
    elastic::QUEUES_GROUP_TTL.broker,
    elastic::QUEUES_MAX.broker,
    elastic::QUEUES_MIN.broker,
    elastic::QUEUES_SHRINK_GRACE.broker,
    elastic::QUEUES_WRITE_DELAY.broker,
    elastic::SLICES_MAX.broker,
    elastic::SPLIT_COOLDOWN.broker,
    elastic::SPLIT_MIN_REMAINING.broker,
    elastic::STEAL_MIN_MS.broker,
    elastic::STEAL_MIN_REMAINING.broker,
    elastic::WATCHDOG_COMMIT.broker,
    elastic::WATCHDOG_FETCH.broker,
    ConfigKey::new("fetch.max.bytes", Int, Some("57671680"), Check::AtLeast(1024),
        "The most bytes of records in one Fetch answer, whatever the client asks for.")
        .read_only(),
    ConfigKey::new("group.consumer.assignors", List, Some("uniform,range"), Check::SomeOf(&["range", "uniform"]),
        "The assignors that members of KIP-848 groups can choose from; the first is the default.")
        .read_only(),
    ConfigKey::new("group.consumer.heartbeat.interval.ms", Int, Some("1000"), Check::AtLeast(1),
        "How often KIP-848 members send a heartbeat, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.consumer.max.heartbeat.interval.ms", Int, Some("15000"), Check::AtLeast(1),
        "The longest heartbeat interval that a group can be configured with, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.consumer.max.session.timeout.ms", Int, Some("1800000"), Check::AtLeast(1),
        "The longest session timeout that a group can be configured with, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.consumer.max.size", Int, Some("5000"), Check::AtLeast(1),
        "The most members of a KIP-848 group.")
        .read_only(),
    ConfigKey::new("group.consumer.min.heartbeat.interval.ms", Int, Some("100"), Check::AtLeast(1),
        "The shortest heartbeat interval that a group can be configured with, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.consumer.min.session.timeout.ms", Int, Some("5000"), Check::AtLeast(1),
        "The shortest session timeout that a group can be configured with, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.consumer.session.timeout.ms", Int, Some("45000"), Check::AtLeast(1),
        "A KIP-848 member that is silent for so long is expelled, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.coordinator.rebalance.protocols", List, Some("classic,consumer"), Check::SomeOf(&["classic", "consumer"]),
        "The group protocols that the broker offers.")
        .read_only(),
    ConfigKey::new("group.initial.rebalance.delay.ms", Int, Some("0"), Check::AtLeast(0),
        "How long a new group of a protocol that elects a leader among its members waits for further ones, in \
         milliseconds. Groups whose assignment the broker makes do not wait.")
        .read_only(),
    ConfigKey::new("group.max.session.timeout.ms", Int, Some("1800000"), Check::AtLeast(1),
        "The longest session timeout that a classic member may ask for, in milliseconds.")
        .read_only(),
    ConfigKey::new("group.max.size", Int, Some("5000"), Check::AtLeast(1),
        "The most members of a classic group.")
        .read_only(),
    ConfigKey::new("group.min.session.timeout.ms", Int, Some("6000"), Check::AtLeast(1),
        "The shortest session timeout that a classic member may ask for, in milliseconds.")
        .read_only(),
    ConfigKey::new("inter.broker.protocol.version", String, Some("4.1"), Check::Any,
        "The release of Apache Kafka whose protocol this broker speaks; administration tools choose their \
         features by it.")
        .read_only(),
    ConfigKey::new("listeners", List, Some(""), Check::Any,
        "The addresses the broker listens on, as configured at the start.")
        .read_only(),
    ConfigKey::new("log.cleaner.delete.retention.ms", Long, Some("86400000"), Check::AtLeast(0),
        "Accepted without effect: keys are not compacted yet.")
        .accepted_only(),
    ConfigKey::new("log.cleaner.enable", Boolean, Some("true"), Check::Any,
        "Accepted without effect: keys are not compacted yet.")
        .accepted_only().read_only(),
    ConfigKey::new("log.cleaner.max.compaction.lag.ms", Long, Some(MAX), Check::AtLeast(1),
        "Accepted without effect: keys are not compacted yet.")
        .accepted_only(),
    ConfigKey::new("log.cleaner.min.cleanable.ratio", Double, Some("0.5"), Check::Fraction,
        "Accepted without effect: keys are not compacted yet.")
        .accepted_only(),
    ConfigKey::new("log.cleaner.min.compaction.lag.ms", Long, Some("0"), Check::AtLeast(0),
        "Accepted without effect: keys are not compacted yet.")
        .accepted_only(),
    ConfigKey::new("log.cleanup.policy", List, Some("delete"), Check::SomeOf(&["compact", "delete"]),
        "What happens to old records; topics override it by cleanup.policy."),
    ConfigKey::new("log.dir", String, Some(""), Check::Any,
        "The data folder, as configured at the start.")
        .read_only(),
    ConfigKey::new("log.dirs", List, Some(""), Check::Any,
        "The data folder, as configured at the start.")
        .read_only(),
    ConfigKey::new("log.flush.interval.messages", Long, Some(MAX), Check::AtLeast(1),
        "Accepted without effect: in durable mode every acknowledgement follows a sync, which is stricter \
         than any value here.")
        .accepted_only(),
    ConfigKey::new("log.flush.interval.ms", Long, Some(MAX), Check::AtLeast(0),
        "Accepted without effect: in durable mode every acknowledgement follows a sync, which is stricter \
         than any value here.")
        .accepted_only(),
    ConfigKey::new("log.flush.scheduler.interval.ms", Long, Some(MAX), Check::AtLeast(0),
        "Accepted without effect: in durable mode every acknowledgement follows a sync, which is stricter \
         than any value here.")
        .accepted_only().read_only(),
    ConfigKey::new("log.index.interval.bytes", Int, Some("4096"), Check::AtLeast(0),
        "Accepted without effect: every batch is found through the index of the shared log.")
        .accepted_only(),
    ConfigKey::new("log.index.size.max.bytes", Int, Some("10485760"), Check::AtLeast(4),
        "Accepted without effect: the index of the shared log is sized by itself.")
        .accepted_only(),
    ConfigKey::new("log.message.timestamp.after.max.ms", Long, Some("3600000"), Check::AtLeast(0),
        "How far in the future a producer's timestamp may lie; topics override it by \
         message.timestamp.after.max.ms."),
    ConfigKey::new("log.message.timestamp.before.max.ms", Long, Some(MAX), Check::AtLeast(0),
        "How far in the past a producer's timestamp may lie; topics override it by \
         message.timestamp.before.max.ms."),
    ConfigKey::new("log.message.timestamp.type", String, Some("CreateTime"), Check::OneOf(&["CreateTime", "LogAppendTime"]),
        "Whose time records carry; topics override it by message.timestamp.type."),
    ConfigKey::new("log.preallocate", Boolean, Some("false"), Check::Any,
        "Accepted without effect: segments of the shared log are always prepared in advance.")
        .accepted_only(),
    ConfigKey::new("log.retention.bytes", Long, Some("-1"), Check::AtLeast(-1),
        "How many bytes each partition keeps; -1: no bound; topics override it by retention.bytes."),
    ConfigKey::new("log.retention.check.interval.ms", Long, Some("300000"), Check::AtLeast(1),
        "How often retention looks for records to delete, in milliseconds.")
        .read_only(),
    ConfigKey::new("log.retention.hours", Int, Some("168"), Check::AtLeast(-1),
        "How long records are kept, in hours; -1: for ever. log.retention.ms and log.retention.minutes are \
         stronger."),
    ConfigKey::new("log.retention.minutes", Int, None, Check::AtLeast(-1),
        "How long records are kept, in minutes; -1: for ever. When it is not set, log.retention.hours \
         decides."),
    ConfigKey::new("log.retention.ms", Long, None, Check::AtLeast(-1),
        "How long records are kept, in milliseconds; -1: for ever. When it is not set, log.retention.minutes \
         decides; topics override it by retention.ms.")
        .from(&[("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)]),
    ConfigKey::new("log.roll.hours", Int, Some("168"), Check::AtLeast(1),
        "Accepted without effect: all partitions share the segments of one log.")
        .accepted_only(),
    ConfigKey::new("log.roll.ms", Long, None, Check::AtLeast(1),
        "Accepted without effect: all partitions share the segments of one log.")
        .accepted_only().from(&[("log.roll.hours", HOUR_MS)]),
    ConfigKey::new("log.segment.bytes", Int, Some("1073741824"), Check::AtLeast(14),
        "Accepted without effect: all partitions share the segments of one log, whose size is set for the \
         whole broker.")
        .accepted_only(),
    ConfigKey::new("log.segment.delete.delay.ms", Long, Some("60000"), Check::AtLeast(0),
        "Accepted without effect: there are no files per topic to delete.")
        .accepted_only(),
    ConfigKey::new("max.connections", Int, Some("20000"), Check::AtLeast(1),
        "How many connections may be open.")
        .read_only(),
    ConfigKey::new("max.connections.per.ip", Int, Some("20000"), Check::AtLeast(0),
        "How many connections may be open from one address.")
        .read_only(),
    ConfigKey::new("message.max.bytes", Int, Some("1048588"), Check::AtLeast(0),
        "The largest record batch, compressed as it comes, in bytes; topics override it by max.message.bytes."),
    ConfigKey::new("min.insync.replicas", Int, Some("1"), Check::AtLeast(1),
        "Accepted without effect: a single node holds the only replica, and an acknowledgement follows its \
         sync to disk.")
        .accepted_only(),
    ConfigKey::new("node.id", Int, Some("1"), Check::AtLeast(0),
        "The id of this broker in Metadata.")
        .read_only(),
    ConfigKey::new("num.io.threads", Int, Some("8"), Check::AtLeast(1),
        "Accepted without effect: the threads of the broker follow the cores of the machine.")
        .accepted_only().read_only(),
    ConfigKey::new("num.network.threads", Int, Some("3"), Check::AtLeast(1),
        "Accepted without effect: the threads of the broker follow the cores of the machine.")
        .accepted_only().read_only(),
    ConfigKey::new("num.partitions", Int, Some("1"), Check::Between(1, 10000),
        "Partitions of a topic whose creator leaves the number to the broker, as auto-creation does."),
    ConfigKey::new("num.recovery.threads.per.data.dir", Int, Some("2"), Check::AtLeast(1),
        "Accepted without effect: the threads of the broker follow the cores of the machine.")
        .accepted_only().read_only(),
    ConfigKey::new("num.replica.fetchers", Int, Some("1"), Check::AtLeast(1),
        "Accepted without effect: the threads of the broker follow the cores of the machine.")
        .accepted_only().read_only(),
    ConfigKey::new("offset.metadata.max.bytes", Int, Some("4096"), Check::AtLeast(0),
        "The longest metadata string of a committed offset, in bytes.")
        .read_only(),
    ConfigKey::new("offsets.retention.check.interval.ms", Long, Some("600000"), Check::AtLeast(1),
        "How often such offsets are looked for, in milliseconds.")
        .read_only(),
    ConfigKey::new("offsets.retention.minutes", Int, Some("10080"), Check::AtLeast(1),
        "Committed offsets of a group without members are forgotten after so many minutes.")
        .read_only(),
    ConfigKey::new("offsets.topic.num.partitions", Int, Some("50"), Check::AtLeast(1),
        "Accepted without effect: committed offsets are kept in the journal of the broker, not in a topic.")
        .accepted_only().read_only(),
    ConfigKey::new("offsets.topic.replication.factor", Short, Some("1"), Check::AtLeast(1),
        "Accepted without effect: committed offsets are kept in the journal of the broker, not in a topic.")
        .accepted_only().read_only(),
    ConfigKey::new("producer.id.expiration.ms", Int, Some("86400000"), Check::AtLeast(1),
        "An idempotent producer that is idle for so long is forgotten, in milliseconds. It may go on \
         afterwards."),
    ConfigKey::new("queued.max.request.bytes", Long, Some("268435456"), Check::AtLeast(-1),
        "Memory for the bodies of all requests together, in bytes. When it is used up, reading pauses.")
        .read_only(),
    ConfigKey::new("queued.max.requests", Int, Some("500"), Check::AtLeast(1),
        "Accepted without effect: request memory is bounded in bytes, by queued.max.request.bytes.")
        .accepted_only().read_only(),
    ConfigKey::new("socket.receive.buffer.bytes", Int, Some("102400"), Check::AtLeast(-1),
        "Accepted without effect: the operating system sizes the buffers of connections.")
        .accepted_only().read_only(),
    ConfigKey::new("socket.request.max.bytes", Int, Some("104857600"), Check::AtLeast(1024),
        "The largest request in bytes. A connection that announces a larger one is closed.")
        .read_only(),
    ConfigKey::new("socket.send.buffer.bytes", Int, Some("102400"), Check::AtLeast(-1),
        "Accepted without effect: the operating system sizes the buffers of connections.")
        .accepted_only().read_only(),
    ConfigKey::new("transaction.max.timeout.ms", Int, Some("900000"), Check::AtLeast(1),
        "Accepted without effect: there are no transactions yet.")
        .accepted_only().read_only(),
    ConfigKey::new("transaction.state.log.min.isr", Int, Some("1"), Check::AtLeast(1),
        "Accepted without effect: there are no transactions yet.")
        .accepted_only().read_only(),
    ConfigKey::new("transaction.state.log.replication.factor", Short, Some("1"), Check::AtLeast(1),
        "Accepted without effect: there are no transactions yet.")
        .accepted_only().read_only(),
    ConfigKey::new("unclean.leader.election.enable", Boolean, Some("false"), Check::Any,
        "Accepted without effect: a single node elects nobody.")
        .accepted_only(),
];
