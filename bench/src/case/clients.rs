//! P6: what a user of ordinary clients sees: Kafka's own Java tool, and librdkafka.

use super::Numbers;
use crate::broker::{Broker, Places};
use crate::drive::admin::Admin;
use crate::drive::payload::payloads;
use anyhow::{Context, Result, ensure};
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::process::Command;
use std::time::{Duration, Instant};

/// Records sent by each client, per size.
const RECORDS: [(usize, u64); 2] = [(100, 4_000_000), (1024, 800_000)];

pub(crate) fn run(broker: &Broker, places: &Places, share: f64, numbers: &mut Numbers) -> Result<()> {
    for (size, records) in RECORDS {
        let records = (records as f64 * share) as u64;
        let topic = format!("p6-{size}");
        Admin::connect(&broker.address)?.create_topic(&topic, 1, &[("retention.bytes", "1073741824")])?;
        let java = java(broker, places, &topic, size, records).context("ProducerPerformance")?;
        numbers.insert(format!("p6_java_{size}.records_s"), java);
        let librdkafka = librdkafka(broker, &topic, size, records).context("librdkafka")?;
        numbers.insert(format!("p6_librdkafka_{size}.records_s"), librdkafka);
    }
    Ok(())
}

/// Kafka's ProducerPerformance with its own defaults but for acks and batch size; returns records a second.
fn java(broker: &Broker, places: &Places, topic: &str, size: usize, records: u64) -> Result<f64> {
    let output = Command::new("java")
        .arg("-cp")
        .arg(places.jars.join("*"))
        .arg("org.apache.kafka.tools.ProducerPerformance")
        .args(["--topic", topic, "--throughput", "-1"])
        .args([
            "--num-records",
            &records.to_string(),
            "--record-size",
            &size.to_string(),
        ])
        .args([
            "--producer-props",
            &format!("bootstrap.servers={}", broker.address),
            "acks=all",
            "linger.ms=5",
        ])
        .args(["batch.size=131072"])
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text
        .lines()
        .rev()
        .find(|line| line.contains("records/sec"))
        .context("no summary")?;
    let rate = last
        .split(", ")
        .nth(1)
        .and_then(|part| part.split(' ').next())
        .context("no rate in the summary")?;
    Ok(rate.parse()?)
}

fn librdkafka(broker: &Broker, topic: &str, size: usize, records: u64) -> Result<f64> {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", &broker.address)
        .set("acks", "all")
        .set("linger.ms", "5")
        .set("batch.size", "1000000")
        .set("queue.buffering.max.messages", "1000000")
        .create()?;
    let payloads = payloads(1000, size);
    let begin = Instant::now();
    for number in 0..records {
        let payload = &payloads[usize::try_from(number % 1000)?];
        let mut record = BaseRecord::<(), [u8]>::to(topic).payload(payload);
        while let Err((error, back)) = producer.send(record) {
            ensure!(
                matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)),
                "{error}"
            );
            producer.poll(Duration::from_millis(1));
            record = back;
        }
        if number % 1000 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(Duration::from_secs(60))?;
    Ok(records as f64 / begin.elapsed().as_secs_f64())
}
