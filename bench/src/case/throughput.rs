//! Producers and readers at full speed: P1–P5, P8, C1, C2, U1.

use super::{Numbers, Scale};
use crate::broker::{Broker, Contender};
use crate::drive::admin::Admin;
use crate::drive::consume;
use crate::drive::produce::{self, Load};
use anyhow::{Context, Result};
use std::thread;
use std::time::Duration;

/// The load of P1: batches of 64 records of 1 KB from 16 connections with 5 requests under way each.
fn bulk(scale: Scale) -> Load {
    Load {
        connections: 16,
        in_flight: 5,
        partitions: 1,
        records_per_batch: 64,
        record_bytes: 1024,
        idempotent: false,
        warm_up: Duration::from_secs(1),
        measured: Duration::from_secs(scale.load_seconds),
        bytes_max: None,
        bytes_per_second: None,
    }
}

/// Load before anything counts: it fills a JVM's code cache and everyone's memory.
pub(crate) fn warm_up(broker: &Broker, scale: Scale) -> Result<()> {
    Admin::connect(&broker.address)?.create_topic("warm-up", 4, &[])?;
    let half = Duration::from_secs(scale.warm_up_seconds) / 2;
    let load = Load {
        partitions: 4,
        warm_up: Duration::ZERO,
        measured: half,
        ..bulk(scale)
    };
    produce::run(&broker.address, "warm-up", &load, || ())?;
    let load = Load {
        connections: 64,
        in_flight: 1,
        records_per_batch: 1,
        record_bytes: 100,
        ..load
    };
    produce::run(&broker.address, "warm-up", &load, || ())?;
    Ok(())
}

/// All producers' cases.
pub(crate) fn producers(
    broker: &Broker,
    scale: Scale,
    wanted: &dyn Fn(&str) -> bool,
    numbers: &mut Numbers,
) -> Result<()> {
    let one = bulk(scale);
    let small = Load {
        records_per_batch: 100,
        record_bytes: 100,
        ..one.clone()
    };
    let lone = Load {
        connections: 64,
        in_flight: 1,
        records_per_batch: 1,
        record_bytes: 100,
        ..one.clone()
    };
    let cases = [
        ("p1", "P1 P3 P4 P8 U1", one.clone()),
        ("p2", "P2", small),
        (
            "p3_16",
            "P3 P4",
            Load {
                partitions: 16,
                ..one.clone()
            },
        ),
        (
            "p3_256",
            "P3 P4",
            Load {
                partitions: 256,
                ..one.clone()
            },
        ),
        ("p5", "P5", lone),
        (
            "p8",
            "P8",
            Load {
                idempotent: true,
                ..one
            },
        ),
    ];
    for (name, ids, load) in cases {
        if ids.split(' ').any(wanted) {
            run(broker, name, &load, numbers).with_context(|| format!("load {name}"))?;
        }
    }
    Ok(())
}

fn run(broker: &Broker, name: &str, load: &Load, numbers: &mut Numbers) -> Result<()> {
    // Little is kept, so that a full disk decides no round.
    let keep = [("retention.bytes", "1073741824")];
    Admin::connect(&broker.address)?.create_topic(name, load.partitions, &keep)?;
    let mut before = 0.0;
    let achieved = produce::run(&broker.address, name, load, || before = broker.cpu_seconds())?;
    let cpu = broker.cpu_seconds() - before;
    numbers.insert(format!("{name}.mb_s"), achieved.megabytes_per_second());
    numbers.insert(format!("{name}.records_s"), achieved.records_per_second());
    numbers.insert(
        format!("{name}.cpu_s_per_gb"),
        cpu / (achieved.bytes as f64 / 1e9),
    );
    numbers.insert(
        format!("{name}.p50_us"),
        achieved.answer_us.value_at_quantile(0.5) as f64,
    );
    numbers.insert(
        format!("{name}.p99_us"),
        achieved.answer_us.value_at_quantile(0.99) as f64,
    );
    Ok(())
}

/// C1: readers that follow a producer of 200 MB/s, one group and eight.
pub(crate) fn tailing(broker: &Broker, scale: Scale, numbers: &mut Numbers) -> Result<()> {
    if broker.contender == Contender::KafkaSync {
        return Ok(());
    }
    for readers in [1, 8] {
        let topic = format!("c1-{readers}");
        Admin::connect(&broker.address)?.create_topic(&topic, 1, &[("retention.bytes", "1073741824")])?;
        let seconds = Duration::from_secs(scale.load_seconds);
        let load = Load {
            connections: 4,
            bytes_per_second: Some(200_000_000),
            warm_up: Duration::from_millis(500),
            measured: seconds,
            ..bulk(scale)
        };
        let (address, name) = (broker.address.clone(), topic.clone());
        let producer = thread::spawn(move || produce::run(&address, &name, &load, || ()));
        let before = broker.cpu_seconds();
        let read = consume::tail(&broker.address, &topic, readers, 0, seconds)?;
        let cpu = broker.cpu_seconds() - before;
        let produced = producer
            .join()
            .map_err(|_| anyhow::anyhow!("the producer panicked"))??;
        let moved = (read.bytes + produced.bytes) as f64 / 1e9;
        numbers.insert(format!("c1_{readers}.read_mb_s"), read.megabytes_per_second());
        numbers.insert(
            format!("c1_{readers}.produced_mb_s"),
            produced.megabytes_per_second(),
        );
        numbers.insert(format!("c1_{readers}.cpu_s_per_gb"), cpu / moved);
    }
    Ok(())
}

/// C2: one reader from the start of some gigabytes that were just written.
pub(crate) fn catch_up(broker: &Broker, scale: Scale, numbers: &mut Numbers) -> Result<()> {
    if broker.contender == Contender::KafkaSync {
        return Ok(());
    }
    let mut admin = Admin::connect(&broker.address)?;
    admin.create_topic("c2", 1, &[])?;
    let load = Load {
        bytes_max: Some(scale.catch_up_gb * 1_000_000_000),
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(600),
        ..bulk(scale)
    };
    produce::run(&broker.address, "c2", &load, || ())?;
    let end = admin.end_offset("c2", 0)?;
    let before = broker.cpu_seconds();
    let read = consume::catch_up(&broker.address, "c2", &[end], Duration::from_secs(600))?;
    numbers.insert("c2.mb_s".into(), read.megabytes_per_second());
    numbers.insert(
        "c2.cpu_s_per_gb".into(),
        (broker.cpu_seconds() - before) / (read.bytes as f64 / 1e9),
    );
    Ok(())
}
