//! The rows of E1–E11, Q1 and Q2 in the table of results.

use crate::broker::Contender::{Durable, KafkaStock};
use crate::table::{Against, Row, row};

const fn most(id: &'static str, what: &'static str, metric: &'static str, target: f64) -> Row {
    row(id, what, metric, Durable, Against::Absolute(target))
}

const fn least(id: &'static str, what: &'static str, metric: &'static str, target: f64) -> Row {
    row(id, what, metric, Durable, Against::AbsoluteAtLeast(target))
}

const fn to_kafka(id: &'static str, what: &'static str, metric: &'static str, target: f64) -> Row {
    row(id, what, metric, Durable, Against::AtLeast(KafkaStock, target))
}

/// Every row, in the order of the printed table. The members' own waits in E1: a heartbeat and a commit, a second each.
pub(crate) const ROWS: &[Row] = &[
    most(
        "E1",
        "join to first record, the broker's part, p99, ms",
        "e1.broker_p99_ms",
        50.0,
    ),
    most(
        "E1",
        "join to first record, librdkafka, KIP-848, slowest, ms",
        "e1_consumer.join_max_ms",
        2100.0,
    ),
    most(
        "E1",
        "join to first record, librdkafka, classic eager, slowest, ms",
        "e1_eager.join_max_ms",
        2100.0,
    ),
    most(
        "E1",
        "join to first record, librdkafka, classic cooperative, slowest, ms",
        "e1_cooperative.join_max_ms",
        2100.0,
    ),
    least(
        "E2",
        "2 members, uniform keys, share of 2-fold",
        "e2_uniform_2.share_of_n",
        0.9,
    ),
    least(
        "E2",
        "4 members, uniform keys, share of 4-fold",
        "e2_uniform_4.share_of_n",
        0.9,
    ),
    least(
        "E2",
        "8 members, uniform keys, share of 8-fold",
        "e2_uniform_8.share_of_n",
        0.9,
    ),
    least("E2", "4 members, Zipf 1.0, speed-up", "e2_zipf_4.speed_up", 3.5),
    least("E2", "8 members, Zipf 1.0, speed-up", "e2_zipf_8.speed_up", 6.3),
    to_kafka(
        "E2",
        "8 members, Zipf 1.0, to Kafka with 1 partition",
        "e2_partitions_1.records_s",
        6.0,
    ),
    to_kafka(
        "E2",
        "8 members, Zipf 1.0, to Kafka with 8 partitions",
        "e2_partitions_8.records_s",
        1.3,
    ),
    to_kafka(
        "E2",
        "8 members, Zipf 1.0, to Kafka with 64 partitions",
        "e2_partitions_64.records_s",
        1.3,
    ),
    to_kafka(
        "E2",
        "8 members, Zipf 1.0, to Kafka's share group, which has no order",
        "e2_share_group.records_s",
        0.9,
    ),
    most("E2", "records out of order", "e2.order_breaks", 0.0),
    most(
        "E3",
        "decision to first record, p50, ms, worst backlog",
        "e3.decided_p50_ms",
        5.0,
    ),
    most("E3", "the same, largest to smallest backlog", "e3.slope", 1.5),
    most(
        "E3",
        "bytes written for a join and its split",
        "e3.state_bytes",
        4096.0,
    ),
    least(
        "E4",
        "halves even within 2 % or the hottest slot, share of 1,000 workloads",
        "e4.even_share",
        0.99,
    ),
    most(
        "E5",
        "gap of an unaffected member, KIP-848, p99, ms",
        "e5_consumer.unaffected_p99_ms",
        50.0,
    ),
    most(
        "E5",
        "gap of an unaffected member, classic eager, p99, ms",
        "e5_eager.unaffected_p99_ms",
        50.0,
    ),
    row(
        "E5",
        "gap of any member, classic eager, p99",
        "e5_eager.gap_p99_ms",
        Durable,
        Against::AtMost(KafkaStock, 1.0),
    ),
    row(
        "E5",
        "gap of any member, KIP-848, p99",
        "e5_consumer.gap_p99_ms",
        Durable,
        Against::AtMost(KafkaStock, 1.0),
    ),
    most("E6", "bytes read for each delivered, 2 members", "e6_2.read", 1.3),
    most(
        "E6",
        "bytes opened for each delivered, 2 members",
        "e6_2.opened",
        1.3,
    ),
    most("E6", "bytes read for each delivered, 8 members", "e6_8.read", 2.0),
    most(
        "E6",
        "bytes opened for each delivered, 8 members",
        "e6_8.opened",
        2.0,
    ),
    most(
        "E6",
        "CPU for each byte, 8 members to 1",
        "e6_8.cpu_to_alone",
        2.0,
    ),
    least("E7", "produce, slices to off, undivided", "e7.produce", 0.97),
    least(
        "E7",
        "group of one, slices to off, undivided",
        "e7.group_read",
        0.97,
    ),
    most(
        "E8",
        "leave to first record elsewhere, the broker's part, p99, ms",
        "e8.leave_p99_ms",
        100.0,
    ),
    most(
        "E8",
        "death to first record elsewhere, less the session timeout, p99, ms",
        "e8.death_p99_ms",
        100.0,
    ),
    most(
        "E8",
        "slices of a member after 10,000 splits and merges, most",
        "e8.lineage_slices_max",
        16.0,
    ),
    most(
        "E9",
        "splits for each join, worst of 8 half hours",
        "e9.splits_a_join",
        1.0,
    ),
    most(
        "E9",
        "merges for each leave, worst of 8 half hours",
        "e9.merges_a_leave",
        1.0,
    ),
    most(
        "E9",
        "shares beyond the number of members, most",
        "e9.shares_beyond_members",
        1.0,
    ),
    most(
        "E10",
        "rise of the producers' p99 in a second with a split, ms",
        "e10.rise_ms",
        10.0,
    ),
    most(
        "E10",
        "the same, 64 synchronous producers, ms",
        "e10_lone.rise_ms",
        10.0,
    ),
    most(
        "E11",
        "delivered again, automatic commits every 5 s",
        "e11_auto_5s.again",
        0.0,
    ),
    most(
        "E11",
        "delivered again, a commit after each piece of work",
        "e11_manual.again",
        0.0,
    ),
    least(
        "Q1",
        "produce, queue mode to plain, all queues in use",
        "q1.all_in_use",
        0.95,
    ),
    least(
        "Q1",
        "produce, queue mode to plain, one queue in use",
        "q1.one_in_use",
        0.95,
    ),
    most(
        "Q2",
        "errors of producers during 100 changes of the write queue count",
        "q2.errors",
        0.0,
    ),
];
