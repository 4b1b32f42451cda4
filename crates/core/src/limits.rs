//! Every bound of the broker, in one place: name, default, unit, reason.
//!
//! Code uses the constant; `docs/limits.md` is made from the same rows, in [`ALL`]. A bound that an operator can change
//! is named by the configuration key in `key`, and the constant is then its default (a test of the server holds the keys
//! against the constants). Whatever is sized by a peer has a row here; memory that no row bounds is a defect.

/// One bound, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What it belongs to: a heading of the documentation.
    pub group: &'static str,
    /// Name in documentation and messages, for instance `request.bytes.max`.
    pub name: &'static str,
    /// The value in force unless configured otherwise.
    pub default: u64,
    /// What the value counts.
    pub unit: &'static str,
    /// The configuration key that changes it; `None` if it is fixed.
    pub key: Option<&'static str>,
    /// Why there is such a bound, and why of this size.
    pub reason: &'static str,
}

macro_rules! key {
    () => {
        None
    };
    ($key:literal) => {
        Some($key)
    };
}

macro_rules! limits {
    ($($group:literal {
        $($constant:ident: $type:ty = $value:expr, $name:literal, $unit:literal $(, key $key:literal)?, $reason:literal;)*
    })*) => {
        $($(
            #[doc = $reason]
            #[doc = concat!("\n\nUnit: ", $unit, ".")]
            pub const $constant: $type = $value;
        )*)*

        /// All bounds, in the order in which people read about them.
        pub const ALL: &[Limit] = &[
            $($(Limit {
                group: $group,
                name: $name,
                default: $constant as u64,
                unit: $unit,
                key: key!($($key)?),
                reason: $reason,
            },)*)*
        ];
    };
}

use anabranch_wire::prim::DECODE_MEMORY_MAX;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

limits! {
    "Connections and requests" {
        REQUEST_BYTES_MAX: usize = 100 * MIB, "request.bytes.max", "bytes", key "socket.request.max.bytes",
            "Largest request frame that is read. As in Kafka, so that a producer configured for Kafka fits.";
        REQUEST_MEMORY_BYTES_MAX: usize = 256 * MIB, "request.memory.bytes.max", "bytes", key "queued.max.request.bytes",
            "All request bodies held at one time, over all connections. Reading stops when it is used up, so memory is bounded whatever the clients do.";
        REQUEST_ELEMENTS_BYTES_MAX: usize = DECODE_MEMORY_MAX, "request.elements.bytes.max", "bytes",
            "Memory for the decoded elements of one request, strings and records aside: a frame full of one-byte elements would otherwise become gigabytes. A fetch for 10,000 partitions takes about 1 MiB.";
        RESPONSE_MEMORY_BYTES_MAX: usize = 256 * MIB, "response.memory.bytes.max", "bytes", key "queued.max.response.bytes",
            "Fetch answers that are on their way, over all connections. Further ones wait until clients have taken earlier ones.";
        CONNECTIONS_MAX: usize = 20_000, "connections.max", "connections", key "max.connections",
            "Open connections. Each costs a file descriptor and some ten kilobytes.";
        CONNECTIONS_PER_ADDRESS_MAX: usize = 20_000, "connections.per.address.max", "connections", key "max.connections.per.ip",
            "Open connections from one address. Not stricter than the total by default: a proxy may bring all clients.";
        CONNECTION_IDLE_MS_MAX: u64 = 600_000, "connection.idle.ms.max", "milliseconds", key "connections.max.idle.ms",
            "A connection without a request for so long is closed, as Kafka does, so that dead peers go away.";
        REQUEST_STALL_MS_MAX: u64 = 10_000, "request.stall.ms.max", "milliseconds", key "request.stall.timeout.ms",
            "Time without a further byte of a request that has begun to arrive. Longer is a peer that holds memory.";
        REQUEST_BYTES_PER_SECOND_MIN: usize = 64 * KIB, "request.bytes.per.second.min", "bytes per second",
            "Slowest delivery of a request, behind a first stall time. Slower is a peer that trickles bytes to hold memory.";
        RESPONSE_WRITE_MS_MAX: u64 = 30_000, "response.write.ms.max", "milliseconds", key "response.write.timeout.ms",
            "Time without progress while a response is written; then the peer does not read and the connection is closed.";
        REQUESTS_IN_FLIGHT_PER_CONNECTION_MAX: usize = 64, "requests.in.flight.per.connection.max", "requests",
            "Requests of one connection that wait for their answers. Clients keep 5; beyond 64 the broker stops reading.";
        REQUEST_BYTES_IN_FLIGHT_PER_CONNECTION_MAX: usize = 8 * MIB, "request.bytes.in.flight.per.connection.max", "bytes",
            "The same in bytes; one request is always admitted, whatever its size.";
        RECEIVE_BUFFER_BYTES_MAX: usize = 256 * KIB, "receive.buffer.bytes.max", "bytes",
            "Receive buffer of a connection whose small requests come one close behind the other; it begins with a few kilobytes.";
        RECEIVE_BUFFERS_LARGE_MAX: usize = 256, "receive.buffers.large.max", "buffers",
            "How many connections may have so large a buffer at one time; the others stay small and are served as well.";
    }

    "Topics and partitions" {
        TOPIC_NAME_BYTES_MAX: usize = 249, "topic.name.bytes.max", "bytes",
            "Kafka's bound on topic names, which clients check as well.";
        PARTITIONS_PER_TOPIC_MAX: usize = 10_000, "partitions.per.topic.max", "partitions",
            "Partitions of one topic: a typing error must not create a million logs. Kafka refuses more than this in one request, too.";
        PARTITIONS_TOTAL_MAX: usize = 100_000, "partitions.total.max", "partitions",
            "Partitions of the broker. Each costs about a kilobyte of memory and some bytes in every snapshot.";
        TOPICS_PER_REQUEST_MAX: usize = 10_000, "topics.per.request.max", "topics",
            "Topics that one administrative request may name; repeated names count once.";
        METADATA_TOPICS_MAX: usize = 20_000, "metadata.topics.max", "topics",
            "Topics that one Metadata request may name. A request for all topics is not bounded by it.";
        AUTO_CREATE_BURST: u64 = 500, "auto.create.burst", "topics",
            "Topics that Metadata requests may create at once. A test suite starts with some dozens.";
        AUTO_CREATE_PER_SECOND: u64 = 10, "auto.create.per.second", "topics per second",
            "Rate at which that allowance comes back, so that a client with random topic names cannot fill the broker; the refusal is a retriable error.";
        AUTO_CREATE_REFUSED_MS: u64 = 60_000, "auto.create.refused.ms", "milliseconds",
            "After an explicit deletion the name is not created by a Metadata request for so long: consumers and exporters that are still running would bring the topic back. An explicit creation works at once.";
        DELETED_NAMES_MAX: usize = 10_000, "deleted.names.max", "names",
            "Deleted names that are remembered for that purpose; the oldest are forgotten first.";
        CONFIG_VALUE_BYTES_MAX: usize = 8 * KIB, "config.value.bytes.max", "bytes",
            "Length of one configuration value; the longest real ones are lists of a few names.";
        GROUP_CONFIGS_MAX: usize = 10_000, "group.configs.max", "groups",
            "Groups that have configuration overrides of their own.";
    }

    "Appending" {
        MESSAGE_BYTES_MAX: usize = 1_048_588, "message.bytes.max", "bytes", key "message.max.bytes",
            "Largest batch, compressed as it comes: 1 MiB and the 12 bytes of Kafka's log overhead, as in Kafka.";
        PRODUCERS_PER_LOG_MAX: usize = 2_000, "producers.per.log.max", "producers",
            "Idempotent producers whose sequence numbers a partition remembers; the one whose last batch is oldest is forgotten first. A forgotten producer may go on: its next sequence number is accepted.";
        PRODUCERS_TOTAL_MAX: usize = 200_000, "producers.total.max", "producers",
            "The same over all partitions (about 200 bytes each). When it is reached, the partition that is written to makes room among its own.";
        PRODUCERS_PER_LOG_MIN: usize = 50, "producers.per.log.min", "producers",
            "What every partition may keep even when the total is used up.";
        PRODUCER_BATCHES_KEPT: usize = 5, "producer.batches.kept", "batches",
            "Batches per producer and partition that are recognised when they come again: as many as a client may have in flight.";
        PRODUCER_EXPIRATION_MS: u64 = 86_400_000, "producer.expiration.ms", "milliseconds", key "producer.id.expiration.ms",
            "An idle producer is forgotten after so long, as in Kafka.";
        PRODUCER_ID_BLOCK: i64 = 1_000, "producer.id.block", "ids",
            "Producer ids that one journal entry reserves. The rest of a block is skipped at a restart.";
        REFUSED_PRODUCERS_PER_LOG_MAX: usize = 64, "refused.producers.per.log.max", "producers",
            "Producers still unknown to a partition whose first batch was refused, remembered so that the batch behind it is refused as well.";
        REFUSED_PRODUCER_MS: u64 = 120_000, "refused.producer.ms", "milliseconds",
            "How long such a refusal is remembered: the usual delivery timeout of clients.";
    }

    "Decompression" {
        DECOMPRESSED_BATCH_BYTES_MAX: usize = 128 * MIB, "decompressed.batch.bytes.max", "bytes",
            "Largest batch after decompression, where the broker has to look inside: more is a bomb.";
        DECOMPRESSION_RATIO_MAX: usize = 1_000, "decompression.ratio.max", "times",
            "Largest factor by which a batch may grow when decompressed; text of one repeated line stays below it at realistic batch sizes.";
    }

    "Fetching" {
        FETCH_BYTES_MAX: usize = 55 * MIB, "fetch.bytes.max", "bytes", key "fetch.max.bytes",
            "Records in one Fetch answer, whatever the client asks for; the first batch is always sent whole.";
        FETCH_WAIT_MS_MAX: u64 = 300_000, "fetch.wait.ms.max", "milliseconds",
            "Longest wait of a Fetch for new records; a longer wish is shortened, not refused.";
        FETCH_PARTITIONS_MAX: usize = 100_000, "fetch.partitions.max", "partitions",
            "Partitions that one Fetch may name: all that can exist.";
    }

    "Reading slices of a divided partition" {
        SCAN_CACHE_BYTES_MAX: usize = 64 * MIB, "scan.cache.bytes.max", "bytes",
            "Batches that are kept with their records found, for all members that read slices of the same log: what they read is near together while a backlog is new, and drifts apart with their speed.";
        SLICE_SCAN_BYTES_MAX: usize = 8 * MIB, "slice.scan.bytes.max", "bytes",
            "Records, decompressed, that one read of a slice looks at. A slice whose records are rare is searched in several turns, so that nobody waits for it.";
        SLICE_ANSWER_BYTES_MAX: usize = 256 * KIB, "slice.answer.bytes.max", "bytes",
            "Most records of a slice in one answer: what is handed out to one member cannot move to another.";
        SURVEY_BYTES_MAX: usize = 2 * MIB, "survey.bytes.max", "bytes",
            "Records that are read to learn how a backlog is spread over the slots at the time of a decision: counted if it has no more, sampled if it has. A decision is to take milliseconds, however large the backlog.";
        TALLY_STEP_BYTES: usize = 8 * MIB, "tally.step.bytes", "bytes",
            "How much of a log one count of the planner reads on to know it exactly.";
        TALLIES_MAX: usize = 256, "tallies.max", "logs",
            "Logs whose records are known by slot at a time; each costs up to `tally.bytes.max`.";
        TALLY_BYTES_MAX: usize = MIB, "tally.bytes.max", "bytes",
            "Counts of records per slot along one log, kept ahead of decisions: 64 blocks, each twice as long whenever they do not suffice.";
    }

    "Groups" {
        GROUPS_MAX: usize = 50_000, "groups.max", "groups",
            "Groups of the broker, with or without members.";
        GROUP_ID_BYTES_MAX: usize = 32_767, "group.id.bytes.max", "bytes",
            "Length of a group id: what a short protocol string can hold.";
        GROUP_MEMBERS_MAX: usize = 5_000, "group.members.max", "members", key "group.max.size",
            "Members of one group. Each costs an assignment, and a change costs work for all of them.";
        MEMBER_METADATA_BYTES_MAX: usize = 1_000_000, "member.metadata.bytes.max", "bytes",
            "Subscription and user data of one member: it is kept in memory and in the journal.";
        MEMBER_ID_BYTES_MAX: usize = 4_096, "member.id.bytes.max", "bytes",
            "Length of a member id or an instance id: both are kept with every change of the member.";
        GROUP_ASSIGNMENT_BYTES_MAX: usize = 8 * MIB, "group.assignment.bytes.max", "bytes",
            "All assignments that the leader of a classic group may hand in at once: they are kept in memory and in the journal.";
        SUBSCRIPTION_REGEX_BYTES_MAX: usize = 4 * KIB, "subscription.regex.bytes.max", "bytes",
            "Length of a regular expression that a member subscribes with.";
        SUBSCRIPTION_REGEX_COMPILED_BYTES_MAX: usize = MIB, "subscription.regex.compiled.bytes.max", "bytes",
            "Memory that such an expression may take when compiled: nested repetitions make a small one large.";
        COMMIT_METADATA_BYTES_MAX: usize = 4_096, "commit.metadata.bytes.max", "bytes", key "offset.metadata.max.bytes",
            "Metadata string of a committed offset, as in Kafka.";
        SESSION_TIMEOUT_MS_MIN: u64 = 6_000, "session.timeout.ms.min", "milliseconds", key "group.min.session.timeout.ms",
            "Shortest session of a classic member, as in Kafka.";
        SESSION_TIMEOUT_MS_MAX: u64 = 1_800_000, "session.timeout.ms.max", "milliseconds", key "group.max.session.timeout.ms",
            "Longest session of a classic member, as in Kafka.";
        OFFSETS_RETENTION_MS: u64 = 604_800_000, "offsets.retention.ms", "milliseconds", key "offsets.retention.minutes",
            "Committed offsets of a group without members are forgotten after so long, as in Kafka.";
    }

    "Metrics" {
        METRIC_SERIES_MAX: usize = 20_000, "metric.series.max", "series",
            "Series that one metric by group and partition may have: more of them cost Prometheus dearly. Sums by topic are always there, and a metric says how many are left out.";
    }

    "Administration over HTTP" {
        ADMIN_STREAMS_MAX: usize = 64, "admin.streams.max", "streams",
            "Streams of events at a time, one for each page of the console: each looks at topics and groups every second, though they share what was seen.";
        ADMIN_ROWS_MAX: usize = 1_000, "admin.rows.max", "rows",
            "Topics, groups, partitions or decisions in one answer; what is left out is counted, and can be asked for by name.";
        ADMIN_PLACES_MAX: usize = 10_000, "admin.places.max", "rows",
            "Committed offsets of one group in one answer.";
        ADMIN_VIEWS_MAX: usize = 64, "admin.views.max", "groups",
            "Pictures of groups that are kept for a moment, so that many who look at one group cost as much as one.";
        ADMIN_SEARCH_RECORDS_MAX: u64 = 100_000, "admin.search.records.max", "records",
            "Records that one request for messages looks at; the answer says where to go on.";
        ADMIN_SEARCH_BYTES_MAX: usize = 16 * MIB, "admin.search.bytes.max", "bytes",
            "The same in bytes of batches as they are stored.";
        ADMIN_ANSWER_BYTES_MAX: usize = 4 * MIB, "admin.answer.bytes.max", "bytes",
            "Keys and values in one answer with messages; the last one may exceed it.";
    }

    "Decisions about elastic groups" {
        DECISIONS_PER_GROUP_MAX: usize = 512, "decisions.per.group.max", "entries",
            "Decisions and refusals that are kept of each group, the newest of them.";
        DECISIONS_PER_GROUP_BYTES_MAX: usize = MIB, "decisions.per.group.bytes.max", "bytes",
            "Size of the decisions and refusals that are kept of each group, with the inputs they were made from.";
        QUEUE_DECISIONS_PER_TOPIC_MAX: usize = 128, "queue.decisions.per.topic.max", "entries",
            "Decisions about the queues of a topic that are kept, the newest of them.";
    }

    "Divided cursors" {
        CHAIN_SLICES_MAX: usize = 8, "chain.slices.max", "slices",
            "Slices that a member's share of a partition may consist of before moves wait for its commits.";
        CHAIN_CLOSED_IDS_MAX: usize = 1_024, "chain.closed.ids.max", "ids",
            "Ids of finished slices that a member's share remembers, since a paused client may stand on any of them. Beyond half of it the member's next commit makes it forget the oldest; at the limit slots move from or to the member only after that.";
        HANDED_OUT_RECORDS_MAX: usize = 65_536, "handed.out.records.max", "records",
            "Records handed out to a member and not yet committed that are remembered one by one (16 bytes each). Beyond it the oldest half is remembered as a block: slots in it move later, never earlier.";
        HANDED_OUT_AHEAD_MS: u64 = 1_000, "handed.out.ahead.ms", "milliseconds of work",
            "What a member is handed beyond what it works off until its next commit. What was handed out cannot move to another member; less than this, and a member would wait for the broker.";
        HANDED_OUT_RECORDS_MIN: u64 = 100, "handed.out.records.min", "records",
            "What a member may have taken and not committed, however slow it is.";
        HANDED_OUT_RECORDS_START: u64 = 1_000, "handed.out.records.start", "records",
            "The same for a member of a group of which nobody's speed is known yet; it doubles every second until the first commit.";
        COMMIT_INTERVAL_ASSUMED_MS: u64 = 5_000, "commit.interval.assumed.ms", "milliseconds",
            "Time between two commits of a member that has not been seen to commit twice: the default of Kafka's clients.";
        SERVED_CEILING_STEP: u64 = 65_536, "served.ceiling.step", "offsets",
            "How far ahead the mark of what was handed out is made durable: one journal entry per so many offsets, and at most so many are read again after a restart.";
        SLICE_ID_QUARANTINE_MS: u64 = 604_800_000, "slice.id.quarantine.ms", "milliseconds",
            "How long a retired slice id rests before it names another slice: applications store offsets and come back to them.";
    }

    "Members and their connections" {
        CONNECTIONS_KNOWN_MAX: usize = 20_000, "connections.known.max", "connections",
            "Connections of which it is known which member speaks on them; the oldest is forgotten first. Twice the connections that can be open.";
        CONNECTION_MEMBERS_MAX: usize = 4, "connection.members.max", "members",
            "Members that are known by their connection, the latest of them. Client libraries have one on a connection.";
        SLICES_SEEN_MAX: usize = 512, "slices.seen.max", "partitions",
            "Partitions of which a connection's last fetched slice is remembered; for others the slice is found by the member.";
        INTRODUCTIONS_MAX: usize = 20_000, "introductions.max", "clients",
            "Pairs of client id and address whose client software is remembered for connections on which it is not told.";
        CLIENT_ID_BYTES_REMEMBERED_MAX: usize = 256, "client.id.bytes.remembered.max", "bytes",
            "Length of a client id that is remembered so; longer ones are not made by client libraries.";
    }

    "Retention" {
        RETENTION_CLOCK_SPEED: u64 = 24, "retention.clock.speed", "times real time",
            "How fast the clock that retention goes by may catch up with the wall clock. After a jump of a year nothing is deleted at once: the clock needs two weeks to get there; a weekend that the machine was off takes two hours.";
        RETENTION_CLOCK_NOTE_MS: u64 = 3_600_000, "retention.clock.note.ms", "milliseconds",
            "How often that clock is written to the journal: what a restart may cost in deferred deletion.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_complete_and_unique() {
        let names: BTreeSet<_> = ALL.iter().map(|limit| limit.name).collect();
        assert_eq!(names.len(), ALL.len());
        for limit in ALL {
            assert!(limit.default > 0, "{}", limit.name);
            assert!(
                !limit.unit.is_empty() && limit.reason.ends_with('.'),
                "{}",
                limit.name
            );
        }
    }
}
