//! The table of results: which numbers are compared, and what was aimed at.

use crate::broker::Contender::{self, Durable, KafkaStock, KafkaSync, Relaxed};

/// What a row compares a number with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Against {
    /// Ratio to the same number of another contender, which should be at least the target.
    AtLeast(Contender, f64),
    /// Ratio to the same number of another contender, which should be at most the target.
    AtMost(Contender, f64),
    /// The number itself, which should be at most the target.
    Absolute(f64),
    /// The number itself, which should be at least the target.
    AbsoluteAtLeast(f64),
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) who: Contender,
    pub(crate) against: Against,
    /// Whether the project promises this one, or only reports it.
    pub(crate) promised: bool,
}

pub(crate) const fn row(
    id: &'static str,
    what: &'static str,
    metric: &'static str,
    who: Contender,
    against: Against,
) -> Row {
    Row {
        id,
        what,
        metric,
        who,
        against,
        promised: false,
    }
}

const fn promised(
    id: &'static str,
    what: &'static str,
    metric: &'static str,
    who: Contender,
    against: Against,
) -> Row {
    Row {
        id,
        what,
        metric,
        who,
        against,
        promised: true,
    }
}

/// Every row, in the order of the printed table.
pub(crate) const ROWS: &[Row] = &[
    promised(
        "P1",
        "produce 1 KB, 1 partition",
        "p1.mb_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.5),
    ),
    row(
        "P1",
        "produce 1 KB, 1 partition",
        "p1.mb_s",
        Relaxed,
        Against::AtLeast(KafkaStock, 2.0),
    ),
    promised(
        "P2",
        "produce 100 B, 1 partition",
        "p2.records_s",
        Durable,
        Against::AtLeast(KafkaStock, 2.0),
    ),
    row(
        "P2",
        "produce 100 B, 1 partition",
        "p2.records_s",
        Relaxed,
        Against::AtLeast(KafkaStock, 3.0),
    ),
    row(
        "P3",
        "produce 1 KB, 16 partitions",
        "p3_16.mb_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.5),
    ),
    row(
        "P3",
        "produce 1 KB, 256 partitions",
        "p3_256.mb_s",
        Durable,
        Against::AtLeast(KafkaStock, 3.0),
    ),
    promised(
        "P3",
        "256 partitions to 1",
        "p3_256.to_one",
        Durable,
        Against::AbsoluteAtLeast(0.9),
    ),
    promised(
        "P4",
        "sync each append, 64 KB, 1 partition",
        "p1.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 4.0),
    ),
    row(
        "P4",
        "sync each append, 64 KB, 16 partitions",
        "p3_16.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 6.0),
    ),
    row(
        "P4",
        "sync each append, 64 KB, 256 partitions",
        "p3_256.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 10.0),
    ),
    promised(
        "P4",
        "sync each append, 16 KB, 1 partition",
        "p4_usual.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 4.0),
    ),
    row(
        "P4",
        "sync each append, 16 KB, 16 partitions",
        "p4_usual_16.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 6.0),
    ),
    promised(
        "P4",
        "sync each append, 16 KB, 256 partitions",
        "p4_usual_256.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 10.0),
    ),
    row(
        "P4",
        "sync each append, 10 KB of 100 B, 1 partition",
        "p2.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 4.0),
    ),
    row(
        "P4",
        "sync each append, 10 KB of 100 B, 256 partitions",
        "p4_256.mb_s",
        Durable,
        Against::AtLeast(KafkaSync, 10.0),
    ),
    promised(
        "P5",
        "64 synchronous producers",
        "p5.records_s",
        Durable,
        Against::AtLeast(KafkaSync, 5.0),
    ),
    row(
        "P5",
        "64 synchronous producers, acks/s",
        "p5.records_s",
        Durable,
        Against::AbsoluteAtLeast(50_000.0),
    ),
    row(
        "P5",
        "64 synchronous producers",
        "p5.records_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.0),
    ),
    row(
        "P6",
        "Java producer, 100 B",
        "p6_java_100.records_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.15),
    ),
    row(
        "P6",
        "Java producer, 1 KB",
        "p6_java_1024.records_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.15),
    ),
    row(
        "P6",
        "librdkafka producer, 100 B",
        "p6_librdkafka_100.records_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.15),
    ),
    row(
        "P6",
        "librdkafka producer, 1 KB",
        "p6_librdkafka_1024.records_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.15),
    ),
    row(
        "P5",
        "a lone synchronous producer, acks/s",
        "p5_1.records_s",
        Durable,
        Against::AbsoluteAtLeast(8_000.0),
    ),
    row(
        "P5",
        "a lone synchronous producer",
        "p5_1.records_s",
        Durable,
        Against::AtLeast(KafkaSync, 1.0),
    ),
    row(
        "P8",
        "idempotent to plain",
        "p8.to_plain",
        Durable,
        Against::AbsoluteAtLeast(0.97),
    ),
    row(
        "C1",
        "1 tailing reader at 200 MB/s, CPU/GB",
        "c1_1.cpu_s_per_gb",
        Durable,
        Against::AtMost(KafkaStock, 0.7),
    ),
    row(
        "C1",
        "8 tailing readers, most MB/s read",
        "c1_8_max.read_mb_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.5),
    ),
    row(
        "C2",
        "catch-up, MB/s",
        "c2.mb_s",
        Durable,
        Against::AtLeast(KafkaStock, 1.2),
    ),
    row(
        "C2",
        "catch-up, CPU/GB",
        "c2.cpu_s_per_gb",
        Durable,
        Against::AtMost(KafkaStock, 0.8),
    ),
    row(
        "L1",
        "end to end 1k/s, p50",
        "l1.p50_us",
        Durable,
        Against::AtMost(KafkaStock, 1.0),
    ),
    row(
        "L1",
        "end to end 1k/s, p99",
        "l1.p99_us",
        Durable,
        Against::AtMost(KafkaStock, 0.8),
    ),
    row(
        "L1",
        "end to end 1k/s, p99",
        "l1.p99_us",
        Durable,
        Against::AtMost(KafkaSync, 0.3),
    ),
    row(
        "L1",
        "end to end 1k/s, p50",
        "l1.p50_us",
        Relaxed,
        Against::AtMost(KafkaStock, 0.5),
    ),
    row(
        "L1",
        "end to end 1k/s, p99.9",
        "l1.p999_us",
        Relaxed,
        Against::AtMost(KafkaStock, 0.3),
    ),
    row(
        "L2",
        "end to end 10k/s, p50",
        "l2.p50_us",
        Durable,
        Against::AtMost(KafkaStock, 1.0),
    ),
    row(
        "L2",
        "end to end 10k/s, p99",
        "l2.p99_us",
        Durable,
        Against::AtMost(KafkaStock, 0.8),
    ),
    row(
        "L2",
        "end to end 10k/s, p50",
        "l2.p50_us",
        Relaxed,
        Against::AtMost(KafkaStock, 0.5),
    ),
    row(
        "L2",
        "end to end 10k/s, p99",
        "l2.p99_us",
        Relaxed,
        Against::AtMost(KafkaStock, 0.5),
    ),
    row(
        "L3",
        "end to end 30k/s, p50",
        "l3.p50_us",
        Durable,
        Against::AtMost(KafkaStock, 1.0),
    ),
    row(
        "L3",
        "end to end 30k/s, p99",
        "l3.p99_us",
        Durable,
        Against::AtMost(KafkaStock, 0.8),
    ),
    promised(
        "S1",
        "exec to first acknowledgement, s",
        "s1.seconds",
        Durable,
        Against::Absolute(0.1),
    ),
    row(
        "S1",
        "exec to first acknowledgement",
        "s1.seconds",
        Durable,
        Against::AtMost(KafkaStock, 0.03),
    ),
    promised(
        "M1",
        "idle memory, MB",
        "m1.memory_mb",
        Durable,
        Against::Absolute(20.0),
    ),
    row(
        "M1",
        "idle memory",
        "m1.memory_mb",
        Durable,
        Against::AtMost(KafkaStock, 0.05),
    ),
    row(
        "M2",
        "10k partitions: memory",
        "m2.memory_mb",
        Durable,
        Against::AtMost(KafkaStock, 0.15),
    ),
    row(
        "M2",
        "10k partitions: KB each",
        "m2.kb_per_partition",
        Durable,
        Against::Absolute(1.5),
    ),
    row(
        "M2",
        "10k partitions: creation",
        "m2.create_seconds",
        Durable,
        Against::AtMost(KafkaStock, 0.05),
    ),
    row(
        "M2",
        "10k partitions: descriptors",
        "m2.descriptors",
        Durable,
        Against::AtMost(KafkaStock, 0.01),
    ),
    row(
        "M3",
        "idle connection, KB",
        "m3.kb_per_connection",
        Durable,
        Against::Absolute(16.0),
    ),
    row(
        "M3",
        "idle connection",
        "m3.kb_per_connection",
        Durable,
        Against::AtMost(KafkaStock, 0.3),
    ),
    row(
        "U1",
        "CPU-s per GB produced",
        "p1.cpu_s_per_gb",
        Durable,
        Against::AtMost(KafkaStock, 0.35),
    ),
    row(
        "U1",
        "CPU-s per GB produced",
        "p1.cpu_s_per_gb",
        Durable,
        Against::Absolute(0.55),
    ),
    promised(
        "R1",
        "restart after kill -9, s to first produce",
        "r1.produce_seconds",
        Durable,
        Against::Absolute(1.0),
    ),
    row(
        "R1",
        "restart after kill -9",
        "r1.produce_seconds",
        Durable,
        Against::AtMost(KafkaStock, 0.1),
    ),
    row(
        "R1",
        "restart, s to the last record",
        "r1.fetch_seconds",
        Durable,
        Against::Absolute(1.0),
    ),
    row(
        "R2",
        "SIGTERM under 100 MB/s, s",
        "r2.seconds",
        Durable,
        Against::Absolute(1.0),
    ),
];

/// Whether an id is one of the wanted ones; all are if none is named, and a letter stands for those that begin with it.
pub(crate) fn wanted(only: &[String], id: &str) -> bool {
    let is_it = |name: &String| {
        let letter = id
            .get(..1)
            .is_some_and(|letter| name.eq_ignore_ascii_case(letter));
        letter || name.eq_ignore_ascii_case(id)
    };
    only.is_empty() || only.iter().any(is_it)
}
