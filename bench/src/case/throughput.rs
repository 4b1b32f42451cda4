//! Producers and readers at full speed: P1–P5, P8, C1, C2, U1.

use super::{Numbers, Scale, median_ratio};
use crate::broker::{Broker, Contender};
use crate::drive::admin::Admin;
use crate::drive::consume;
use crate::drive::produce::{self, Load};
use anyhow::{Context, Result};
use std::thread;
use std::time::Duration;

/// How long a broker gets to remove the files of a deleted topic.
const DELETION: Duration = Duration::from_secs(1);

fn bulk(scale: Scale) -> Load {
    Load::bulk(Duration::from_secs(1), Duration::from_secs(scale.load_seconds))
}

/// Load before anything counts: it fills a JVM's code cache and everyone's memory.
pub(crate) fn warm_up(broker: &Broker, scale: Scale) -> Result<()> {
    Admin::connect(&broker.address)?.create_topic("warm-up", 4, &[])?;
    let half = Duration::from_secs(scale.warm_up_seconds) / 2;
    let load = Load {
        partitions: 4,
        ..Load::bulk(Duration::ZERO, half)
    };
    produce::run(&broker.address, "warm-up", &load, || ())?;
    produce::run(&broker.address, "warm-up", &load.lone(), || ())?;
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
    // What a Java producer puts in a batch as it comes: batch.size is 16 KiB.
    let usual = Load {
        records_per_batch: 15,
        ..one.clone()
    };
    let lone = one.clone().lone();
    let cases = [
        ("p1", "P1 P3 P4 U1", one.clone()),
        ("p2", "P2 P4", small.clone()),
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
        (
            "p4_256",
            "P4",
            Load {
                partitions: 256,
                ..small
            },
        ),
        ("p4_usual", "P4", usual.clone()),
        (
            "p4_usual_16",
            "P4",
            Load {
                partitions: 16,
                ..usual.clone()
            },
        ),
        (
            "p4_usual_256",
            "P4",
            Load {
                partitions: 256,
                ..usual
            },
        ),
        ("p5", "P5", lone.clone()),
        (
            "p5_1",
            "P5",
            Load {
                connections: 1,
                ..lone
            },
        ),
        (
            "p8",
            "P8",
            Load {
                idempotent: true,
                ..one.clone()
            },
        ),
    ];
    for (name, ids, load) in cases {
        if ids.split(' ').any(wanted) {
            run(broker, name, &load, numbers).with_context(|| format!("load {name}"))?;
        }
    }
    if broker.contender != Contender::Durable {
        return Ok(());
    }
    if wanted("P3") {
        let many = Load {
            partitions: 256,
            ..one.clone()
        };
        let ratio = paired(broker, "p3-pairs", &many, &one)?;
        numbers.insert("p3_256.to_one".into(), ratio);
    }
    if wanted("P8") {
        let idempotent = Load {
            idempotent: true,
            ..one.clone()
        };
        let plain = Load { sealed: true, ..one };
        let ratio = paired(broker, "p8-pairs", &idempotent, &plain)?;
        numbers.insert("p8.to_plain".into(), ratio);
    }
    Ok(())
}

/// Pairs of slices that one load is compared with another in.
const PAIRS: u32 = 7;

/// The median ratio of two loads on one broker, run in short slices.
fn paired(broker: &Broker, name: &str, load: &Load, base: &Load) -> Result<f64> {
    let slice = |(kind, load): (&str, &Load), pair| {
        let topic = format!("{name}-{kind}-{pair}");
        let load = Load {
            warm_up: load.warm_up / 4,
            measured: load.measured / 4,
            ..load.clone()
        };
        with_topic(broker, &topic, load.partitions, |_| {
            Ok(produce::run(&broker.address, &topic, &load, || ())?.megabytes_per_second())
        })
    };
    median_ratio(PAIRS, (("of", load), ("to", base)), slice)
}

/// Creates a topic for one load, lends it, and deletes it, so that the next load finds the disk as this one did.
fn with_topic<T>(
    broker: &Broker,
    name: &str,
    partitions: i32,
    work: impl FnOnce(&mut Admin) -> Result<T>,
) -> Result<T> {
    // Kafka keeps the files of a deleted topic for a minute unless it is told not to.
    let settings: &[(&str, &str)] = match broker.contender.is_kafka() {
        true => &[("file.delete.delay.ms", "500")],
        false => &[],
    };
    let mut admin = Admin::connect(&broker.address)?;
    admin.create_topic(name, partitions, settings)?;
    let done = work(&mut admin)?;
    admin.delete_topic(name)?;
    thread::sleep(DELETION);
    Ok(done)
}

fn run(broker: &Broker, name: &str, load: &Load, numbers: &mut Numbers) -> Result<()> {
    let mut before = 0.0;
    let achieved = with_topic(broker, name, load.partitions, |_| {
        let begun = || before = broker.cpu_seconds();
        let achieved = produce::run(&broker.address, name, load, begun)?;
        numbers.insert(
            format!("{name}.cpu_s_per_gb"),
            (broker.cpu_seconds() - before) / (achieved.bytes as f64 / 1e9),
        );
        Ok(achieved)
    })?;
    numbers.insert(format!("{name}.mb_s"), achieved.megabytes_per_second());
    numbers.insert(format!("{name}.records_s"), achieved.records_per_second());
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

/// The rates of C1: readers, and bytes that are produced each second: a steady rate for the cost, and more than eight
/// readers can be given for the most that they get.
const TAILING: [(&str, usize, u64); 3] = [
    ("c1_1", 1, 200_000_000),
    ("c1_8", 8, 200_000_000),
    ("c1_8_max", 8, 600_000_000),
];

/// C1: readers that follow a producer, one group and eight.
pub(crate) fn tailing(broker: &Broker, scale: Scale, numbers: &mut Numbers) -> Result<()> {
    if broker.contender == Contender::KafkaSync {
        return Ok(());
    }
    for (name, readers, rate) in TAILING {
        let topic = name.to_owned();
        let seconds = Duration::from_secs(scale.load_seconds);
        let load = Load {
            connections: 4,
            bytes_per_second: Some(rate),
            warm_up: Duration::from_millis(500),
            measured: seconds,
            ..bulk(scale)
        };
        let (address, to) = (broker.address.clone(), topic.clone());
        let before = broker.cpu_seconds();
        let (read, produced, cpu) = with_topic(broker, &topic, 1, |_| {
            let producer = thread::spawn(move || produce::run(&address, &to, &load, || ()));
            let read = consume::tail(&broker.address, &topic, readers, 0, seconds)?;
            let cpu = broker.cpu_seconds() - before;
            let produced = producer
                .join()
                .map_err(|_| anyhow::anyhow!("the producer panicked"))??;
            Ok((read, produced, cpu))
        })?;
        let moved = (read.bytes + produced.bytes) as f64 / 1e9;
        numbers.insert(format!("{name}.read_mb_s"), read.megabytes_per_second());
        numbers.insert(format!("{name}.produced_mb_s"), produced.megabytes_per_second());
        numbers.insert(format!("{name}.cpu_s_per_gb"), cpu / moved);
    }
    Ok(())
}

/// C2: one reader from the start of some gigabytes that were just written.
pub(crate) fn catch_up(broker: &Broker, scale: Scale, numbers: &mut Numbers) -> Result<()> {
    if broker.contender == Contender::KafkaSync {
        return Ok(());
    }
    let load = Load {
        bytes_max: Some(scale.catch_up_gb * 1_000_000_000),
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(600),
        ..bulk(scale)
    };
    with_topic(broker, "c2", 1, |admin| {
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
    })
}
