//! Reads everything back and holds it against the journal.

use crate::TOPICS;
use crate::consumer::GROUP;
use crate::journal::{Journal, Place, Promises, Record};
use anyhow::{Context, Result, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long the log may give nothing before reading counts as stuck.
const SILENCE_SECONDS_MAX: u64 = 20;

/// Verifies all promises; returns a line of counts.
pub(crate) fn verify(address: &str, journal: &Journal) -> Result<String> {
    let promises = journal.lock();
    let mut counts = Counts::default();
    for (topic, partitions) in TOPICS {
        for partition in 0..*partitions {
            let place = (*topic, partition);
            let log = read(address, place).with_context(|| format!("reading {place:?}"))?;
            check_log(&log, place, &promises, &mut counts).with_context(|| format!("{place:?}"))?;
        }
    }
    check_commits(address, &promises)?;
    check_topics(address, &promises)?;
    Ok(format!(
        "{} records stored, {} acknowledged, {} repeated by plain producers, {} commits held, {} topics made and {} deleted",
        counts.stored,
        counts.acknowledged,
        counts.repeated,
        promises.committed.len(),
        promises.topics.len(),
        promises.deleted.len(),
    ))
}

#[derive(Default)]
struct Counts {
    stored: usize,
    acknowledged: usize,
    repeated: usize,
}

fn consumer(address: &str, group: &str) -> Result<BaseConsumer> {
    ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("check.crcs", "true")
        .set("reconnect.backoff.max.ms", "100")
        .create()
        .context("cannot create a consumer")
}

/// All records of a partition, by offset.
fn read(address: &str, place: Place) -> Result<BTreeMap<i64, Record>> {
    let parse = |(offset, value): (i64, Vec<u8>)| {
        let record = Record::parse(&value);
        Ok((
            offset,
            record.with_context(|| format!("the value at offset {offset} was never sent"))?,
        ))
    };
    values(address, place)?.into_iter().map(parse).collect()
}

/// All values of a partition, by offset, as a reader without a group sees them.
pub(crate) fn values(address: &str, place: Place) -> Result<Vec<(i64, Vec<u8>)>> {
    let consumer = consumer(address, "verify")?;
    let (_, end) = consumer.fetch_watermarks(place.0, place.1, Duration::from_secs(10))?;
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(place.0, place.1, Offset::Beginning)?;
    consumer.assign(&list)?;
    let mut log = Vec::new();
    let mut next = 0;
    let mut heard = Instant::now();
    while next < end {
        let Some(message) = consumer.poll(Duration::from_millis(200)) else {
            ensure!(
                heard.elapsed() < Duration::from_secs(SILENCE_SECONDS_MAX),
                "stuck at offset {next} of {end}"
            );
            continue;
        };
        let message = message?;
        heard = Instant::now();
        ensure!(
            message.offset() == next,
            "offset {} follows {}",
            message.offset(),
            next - 1
        );
        log.push((next, message.payload().unwrap_or_default().to_vec()));
        next += 1;
    }
    Ok(log)
}

fn check_log(
    log: &BTreeMap<i64, Record>,
    place: Place,
    promises: &Promises,
    counts: &mut Counts,
) -> Result<()> {
    let mut seen: BTreeSet<Record> = BTreeSet::new();
    let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
    for (offset, record) in log {
        let sent = promises.sent.get(&(place, record.producer)).copied().unwrap_or(0);
        ensure!(record.number < sent, "offset {offset}: {record:?} was never sent");
        if !seen.insert(*record) {
            ensure!(
                !record.idempotent,
                "offset {offset}: {record:?} of an idempotent producer is there twice"
            );
            counts.repeated += 1;
            continue;
        }
        let expected = newest.entry(record.producer).or_insert(0);
        ensure!(
            record.number == *expected,
            "offset {offset}: {record:?} where number {expected} was to come"
        );
        *expected += 1;
    }
    let acknowledged = promises.acknowledged.get(&place);
    for (record, offset) in acknowledged.into_iter().flatten() {
        match log.get(offset) {
            Some(found) if found == record => {}
            Some(found) => bail!("{record:?} was acknowledged at offset {offset}, where {found:?} is"),
            None => bail!("{record:?} was acknowledged at offset {offset}, which is not there"),
        }
    }
    counts.stored += log.len();
    counts.acknowledged += acknowledged.map_or(0, BTreeMap::len);
    Ok(())
}

fn check_commits(address: &str, promises: &Promises) -> Result<()> {
    let mut list = TopicPartitionList::new();
    for (topic, partition) in promises.committed.keys() {
        list.add_partition(topic, *partition);
    }
    let found = consumer(address, GROUP)?.committed_offsets(list, Duration::from_secs(10))?;
    for (place, promised) in &promises.committed {
        let stored = found
            .find_partition(place.0, place.1)
            .map(|element| element.offset());
        let Some(Offset::Offset(stored)) = stored else {
            bail!("{place:?}: commit {promised} is gone")
        };
        ensure!(
            stored >= *promised,
            "{place:?}: commit {promised} was acknowledged, {stored} is stored"
        );
    }
    Ok(())
}

fn check_topics(address: &str, promises: &Promises) -> Result<()> {
    let metadata = consumer(address, "verify")?.fetch_metadata(None, Duration::from_secs(10))?;
    let there: BTreeSet<&str> = metadata
        .topics()
        .iter()
        .map(rdkafka::metadata::MetadataTopic::name)
        .collect();
    for topic in &promises.topics {
        ensure!(
            there.contains(topic.as_str()),
            "topic {topic} was created and is gone"
        );
    }
    for topic in &promises.deleted {
        ensure!(
            !there.contains(topic.as_str()),
            "topic {topic} was deleted and is back"
        );
    }
    Ok(())
}
