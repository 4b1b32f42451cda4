//! A member of a group that commits by hand and writes down each acknowledged commit.

use crate::TOPICS;
use crate::journal::{Journal, Place};
use anyhow::{Context, Result};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The group of all members of the run.
pub(crate) const GROUP: &str = "crash-readers";

/// Consumes until told to stop, committing about five times a second.
pub(crate) fn run(address: &str, journal: &Arc<Journal>, stop: &AtomicBool, number: u64) -> Result<()> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("group.id", GROUP)
        .set("client.id", format!("reader-{number}"))
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "300")
        .set("reconnect.backoff.max.ms", "100")
        .create()
        .context("cannot create a consumer")?;
    let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
    consumer.subscribe(&topics)?;
    let mut read: BTreeMap<Place, i64> = BTreeMap::new();
    let mut committed_at = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if let Some(Ok(message)) = consumer.poll(Duration::from_millis(50)) {
            let place = place(message.topic(), message.partition())?;
            read.insert(place, message.offset() + 1);
        }
        if committed_at.elapsed() > Duration::from_millis(200) && !read.is_empty() {
            commit(&consumer, journal, &read)?;
            read.clear();
            committed_at = Instant::now();
        }
    }
    Ok(())
}

fn place(topic: &str, partition: i32) -> Result<Place> {
    let known = TOPICS
        .iter()
        .find(|(name, _)| *name == topic)
        .context("a record of an unknown topic")?;
    Ok((known.0, partition))
}

/// Commits what was read; a commit that fails promises nothing (the broker is down, or the member was replaced).
fn commit(consumer: &BaseConsumer, journal: &Journal, read: &BTreeMap<Place, i64>) -> Result<()> {
    let mut list = TopicPartitionList::new();
    for ((topic, partition), offset) in read {
        list.add_partition_offset(topic, *partition, Offset::Offset(*offset))?;
    }
    if consumer.commit(&list, CommitMode::Sync).is_ok() {
        for (place, offset) in read {
            journal.committed(*place, *offset);
        }
    }
    Ok(())
}
