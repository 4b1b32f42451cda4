//! Configuration keys of topics, with Kafka 4.1's names and defaults.

use super::ConfigType::{Boolean, Double, Int, List, Long, String};
use super::{Check, ConfigKey, elastic};

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;
const MAX: &str = "9223372036854775807";

/// All topic keys, in name order.
#[rustfmt::skip] // one key a paragraph reads better than one argument a line
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::new("cleanup.policy", List, Some("delete"), Check::SomeOf(&["compact", "delete"]),
        "What happens to old records. delete: they go by retention.ms and retention.bytes. compact alone: everything is \
         kept; keys are not compacted yet, which readers of compacted topics cannot tell from a compaction that has not \
         run. compact,delete: as delete.")
        .from(&[("log.cleanup.policy", 1)]),
    ConfigKey::new("compression.gzip.level", Int, Some("-1"), Check::Between(-1, 9),
        "Accepted without effect: the broker does not compress, batches are stored as the producer sent them.")
        .accepted_only(),
    ConfigKey::new("compression.lz4.level", Int, Some("9"), Check::Between(1, 17),
        "Accepted without effect: the broker does not compress, batches are stored as the producer sent them.")
        .accepted_only(),
    ConfigKey::new("compression.type", String, Some("producer"),
        Check::Only("producer", "batches are stored as the producer sent them: set compression.type at the producer"),
        "The compression of stored batches: always the producer's own choice. Setting it at the producer saves network \
         and disk alike.")
        .from(&[("compression.type", 1)]),
    ConfigKey::new("compression.zstd.level", Int, Some("3"), Check::Between(-131_072, 22),
        "Accepted without effect: the broker does not compress, batches are stored as the producer sent them.")
        .accepted_only(),
    ConfigKey::new("delete.retention.ms", Long, Some("86400000"), Check::AtLeast(0),
        "How long compaction keeps markers of deleted keys. Accepted without effect: keys are not compacted yet, so \
         markers are kept with everything else.")
        .accepted_only().from(&[("log.cleaner.delete.retention.ms", 1)]),
    elastic::COMMIT_EVIDENCE.topic,
    elastic::FENCE_TIMEOUT.topic,
    elastic::MERGE_DELAY.topic,
    elastic::MODE.topic,
    elastic::QUEUES_DRAIN_DELAY.topic,
    elastic::QUEUES_GROUP_TTL.topic,
    elastic::QUEUES_MAX.topic,
    elastic::QUEUES_MIN.topic,
    elastic::QUEUES_SHRINK_GRACE.topic,
    elastic::QUEUES_WRITE_DELAY.topic,
    elastic::SLICES_MAX.topic,
    elastic::SPLIT_COOLDOWN.topic,
    elastic::SPLIT_MIN_REMAINING.topic,
    elastic::STEAL_MIN_MS.topic,
    elastic::STEAL_MIN_REMAINING.topic,
    elastic::WATCHDOG_COMMIT.topic,
    elastic::WATCHDOG_FETCH.topic,
    ConfigKey::new("file.delete.delay.ms", Long, Some("60000"), Check::AtLeast(0),
        "Accepted without effect: there are no files per topic to delete.")
        .accepted_only().from(&[("log.segment.delete.delay.ms", 1)]),
    ConfigKey::new("flush.messages", Long, Some(MAX), Check::AtLeast(1),
        "Accepted without effect: in durable mode every acknowledgement follows a sync, which is stricter than any \
         value here.")
        .accepted_only().from(&[("log.flush.interval.messages", 1)]),
    ConfigKey::new("flush.ms", Long, Some(MAX), Check::AtLeast(0),
        "Accepted without effect: in durable mode every acknowledgement follows a sync, which is stricter than any \
         value here.")
        .accepted_only().from(&[("log.flush.interval.ms", 1)]),
    ConfigKey::new("follower.replication.throttled.replicas", List, Some(""), Check::Any,
        "Accepted without effect: a single node has no followers.")
        .accepted_only(),
    ConfigKey::new("index.interval.bytes", Int, Some("4096"), Check::AtLeast(0),
        "Accepted without effect: every batch is found through the index of the shared log.")
        .accepted_only().from(&[("log.index.interval.bytes", 1)]),
    ConfigKey::new("leader.replication.throttled.replicas", List, Some(""), Check::Any,
        "Accepted without effect: a single node has no followers.")
        .accepted_only(),
    ConfigKey::new("local.retention.bytes", Long, Some("-2"), Check::AtLeast(-2),
        "Accepted without effect: there is no second storage tier; retention.bytes decides.")
        .accepted_only(),
    ConfigKey::new("local.retention.ms", Long, Some("-2"), Check::AtLeast(-2),
        "Accepted without effect: there is no second storage tier; retention.ms decides.")
        .accepted_only(),
    ConfigKey::new("max.compaction.lag.ms", Long, Some(MAX), Check::AtLeast(1),
        "How long a record may stay without being compacted. Accepted without effect: keys are not compacted yet.")
        .accepted_only().from(&[("log.cleaner.max.compaction.lag.ms", 1)]),
    ConfigKey::new("max.message.bytes", Int, Some("1048588"), Check::AtLeast(0),
        "The largest record batch, compressed as it comes, in bytes. A larger one is refused with MESSAGE_TOO_LARGE.")
        .from(&[("message.max.bytes", 1)]),
    ConfigKey::new("message.timestamp.after.max.ms", Long, Some("3600000"), Check::AtLeast(0),
        "How far in the future a producer's timestamp may lie, by the broker's clock, in milliseconds. Further ones are \
         refused with INVALID_TIMESTAMP. Only for CreateTime.")
        .from(&[("log.message.timestamp.after.max.ms", 1)]),
    ConfigKey::new("message.timestamp.before.max.ms", Long, Some(MAX), Check::AtLeast(0),
        "How far in the past a producer's timestamp may lie, by the broker's clock, in milliseconds. Of each batch the \
         first timestamp is looked at. Only for CreateTime.")
        .from(&[("log.message.timestamp.before.max.ms", 1)]),
    ConfigKey::new("message.timestamp.type", String, Some("CreateTime"), Check::OneOf(&["CreateTime", "LogAppendTime"]),
        "Whose time records carry: the producer's, or the broker's at the append.")
        .from(&[("log.message.timestamp.type", 1)]),
    ConfigKey::new("min.cleanable.dirty.ratio", Double, Some("0.5"), Check::Fraction,
        "When compaction is worth its work. Accepted without effect: keys are not compacted yet.")
        .accepted_only().from(&[("log.cleaner.min.cleanable.ratio", 1)]),
    ConfigKey::new("min.compaction.lag.ms", Long, Some("0"), Check::AtLeast(0),
        "How long a record is safe from compaction. Accepted without effect: keys are not compacted yet, so every record \
         is safe.")
        .accepted_only().from(&[("log.cleaner.min.compaction.lag.ms", 1)]),
    ConfigKey::new("min.insync.replicas", Int, Some("1"), Check::AtLeast(1),
        "Accepted without effect: a single node holds the only replica, and an acknowledgement follows its sync to disk.")
        .accepted_only().from(&[("min.insync.replicas", 1)]),
    ConfigKey::new("preallocate", Boolean, Some("false"), Check::Any,
        "Accepted without effect: segments of the shared log are always prepared in advance.")
        .accepted_only().from(&[("log.preallocate", 1)]),
    ConfigKey::new("remote.storage.enable", Boolean, Some("false"), Check::Only("false", "there is no second storage tier"),
        "Whether old records move to a second storage tier. There is none.")
        .accepted_only(),
    ConfigKey::new("retention.bytes", Long, Some("-1"), Check::AtLeast(-1),
        "How many bytes each partition keeps; -1: no bound. The oldest records go first, in whole pieces of the shared \
         log, so that somewhat more than this is kept, never less.")
        .from(&[("log.retention.bytes", 1)]),
    ConfigKey::new("retention.ms", Long, Some("604800000"), Check::AtLeast(-1),
        "How long records are kept after their timestamp, in milliseconds; -1: for ever. Records go in whole pieces of \
         the shared log, when the newest of a piece is old enough. After a jump of the wall clock deletion is slowed \
         down.")
        .from(&[("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)]),
    ConfigKey::new("segment.bytes", Int, Some("1073741824"), Check::AtLeast(14),
        "Accepted without effect: all partitions share the segments of one log, whose size is set for the whole broker.")
        .accepted_only().from(&[("log.segment.bytes", 1)]),
    ConfigKey::new("segment.index.bytes", Int, Some("10485760"), Check::AtLeast(4),
        "Accepted without effect: the index of the shared log is sized by itself.")
        .accepted_only().from(&[("log.index.size.max.bytes", 1)]),
    ConfigKey::new("segment.jitter.ms", Long, Some("0"), Check::AtLeast(0),
        "Accepted without effect: all partitions share the segments of one log.")
        .accepted_only(),
    ConfigKey::new("segment.ms", Long, Some("604800000"), Check::AtLeast(1),
        "Accepted without effect: all partitions share the segments of one log.")
        .accepted_only().from(&[("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)]),
    ConfigKey::new("unclean.leader.election.enable", Boolean, Some("false"), Check::Any,
        "Accepted without effect: a single node elects nobody.")
        .accepted_only().from(&[("unclean.leader.election.enable", 1)]),
];
