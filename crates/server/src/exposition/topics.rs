//! Topics and their partitions, as `kafka_exporter` shows them.

use super::row::{Family, Row, Value, level, rows};
use super::scrape::Scrape;

rows! {
    BROKERS: Gauge "kafka_brokers" [] "Brokers of the cluster";
    PARTITIONS: Gauge "kafka_topic_partitions" ["topic"] "Partitions of the topic";
    END: Gauge "kafka_topic_partition_current_offset" ["topic", "partition"] "Offset that the next record will get";
    START: Gauge "kafka_topic_partition_oldest_offset" ["topic", "partition"] "Offset of the first record that is still there";
    LEADER: Gauge "kafka_topic_partition_leader" ["topic", "partition"] "Id of the broker that leads the partition";
    PREFERRED: Gauge "kafka_topic_partition_leader_is_preferred" ["topic", "partition"] "1 if the partition is led by its preferred broker: always, with one broker";
    REPLICAS: Gauge "kafka_topic_partition_replicas" ["topic", "partition"] "Copies of the partition: 1, with one broker";
    IN_SYNC: Gauge "kafka_topic_partition_in_sync_replica" ["topic", "partition"] "Copies of the partition that are complete: 1, with one broker";
    UNDER: Gauge "kafka_topic_partition_under_replicated_partition" ["topic", "partition"] "1 if copies of the partition are missing: never, with one broker";
    WRITE_QUEUES: Gauge "anabranch_topic_write_queues" ["topic"] "Partitions that are written, of a topic in queue mode";
    READ_QUEUES: Gauge "anabranch_topic_read_queues" ["topic"] "Partitions that are assigned to groups, of a topic in queue mode";
}

pub(super) fn families(scrape: &Scrape) -> Vec<Family> {
    let node = i64::from(scrape.node_id);
    let counts = scrape.topics.iter();
    let counts = counts.map(|topic| (vec![topic.name.clone()], level(topic.logs.len())));
    vec![
        BROKERS.alone(1_i64),
        PARTITIONS.with(counts),
        each(&END, scrape, |(_, end)| end),
        each(&START, scrape, |(start, _)| start),
        each(&LEADER, scrape, |_| node),
        each(&PREFERRED, scrape, |_| 1),
        each(&REPLICAS, scrape, |_| 1),
        each(&IN_SYNC, scrape, |_| 1),
        each(&UNDER, scrape, |_| 0),
        queues(&WRITE_QUEUES, scrape, |(write, _)| write),
        queues(&READ_QUEUES, scrape, |(_, read)| read),
    ]
}

/// A value for each topic in queue mode, from its counts.
fn queues(row: &'static Row, scrape: &Scrape, value: impl Fn((u32, u32)) -> u32) -> Family {
    row.with(scrape.topics.iter().filter_map(|topic| {
        let count = value(topic.queues?);
        Some((vec![topic.name.clone()], Value::Level(i64::from(count))))
    }))
}

/// A value for each partition, from the bounds of its log.
fn each(row: &'static Row, scrape: &Scrape, value: impl Fn((i64, i64)) -> i64) -> Family {
    row.with(scrape.topics.iter().flat_map(|topic| {
        let value = &value;
        let logs = topic.logs.iter().enumerate();
        logs.map(move |(partition, bounds)| {
            let labels = vec![topic.name.clone(), partition.to_string()];
            (labels, Value::Level(value(*bounds)))
        })
    }))
}
