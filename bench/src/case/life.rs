//! Starting, idling, holding many things, dying: S1, M1–M3, R1, R2.

use super::{Numbers, Scale};
use crate::broker::{Broker, Contender, Places};
use crate::drive::admin::Admin;
use crate::drive::bytes::{Frame, Produce, batch, fetch, fetched, produced};
use crate::drive::payload::payloads;
use crate::drive::produce::{self, Load};
use anyhow::{Context, Result, ensure};
use std::thread;
use std::time::{Duration, Instant};

/// How long a starting broker may take to its first acknowledgement.
const START_MAX: Duration = Duration::from_secs(120);

/// Connections of M3.
const IDLE_CONNECTIONS: usize = 5_000;

/// Topics of M2, of 1,000 partitions each: Kafka refuses 10,000 partitions in one request.
const MANY_TOPICS: i32 = 10;

/// S1 and M1: from exec to the first acknowledged produce on a new topic; memory when idle.
pub(crate) fn start_and_idle(
    contender: Contender,
    places: &Places,
    scale: Scale,
    numbers: &mut Numbers,
) -> Result<()> {
    let broker = Broker::fresh(contender, places, None)?;
    let address = broker.address.clone();
    // A second, clean start: the first one of a contender pays for reading its program from disk.
    broker.terminate()?;
    let data = places.work.join("data");
    if !contender.is_kafka() {
        std::fs::remove_dir_all(&data)?;
    }
    let begin = Instant::now();
    let broker = Broker::spawn(contender, places, &address, None)?;
    first_produce(&address, "first", begin)?;
    numbers.insert("s1.seconds".into(), begin.elapsed().as_secs_f64());
    drop(broker);

    let broker = Broker::fresh(contender, places, None)?;
    thread::sleep(Duration::from_secs(scale.idle_seconds));
    numbers.insert("m1.memory_mb".into(), broker.memory_mb());
    Ok(())
}

/// Tries until a produce to a topic, made by a metadata request or found, is acknowledged; returns its offset.
fn first_produce(address: &str, topic: &str, begin: Instant) -> Result<i64> {
    let request = Produce::new(topic, &batch(&payloads(1, 100)), -1);
    loop {
        ensure!(
            begin.elapsed() < START_MAX,
            "no acknowledged produce within {START_MAX:?}"
        );
        if let Ok(mut admin) = Admin::connect(address) {
            let mut metadata = Frame::request(3, 4);
            metadata.i32(1);
            metadata.string(topic);
            metadata.i8(1);
            let asked = admin.call(metadata.finish());
            if asked.is_ok()
                && let Ok(answer) = admin.call(request.frame.clone())
            {
                // `produced` expects the length and the correlation id in front.
                let framed = [&[0; 8], answer.as_slice()].concat();
                if let Some((0, offset)) = produced(&framed) {
                    return Ok(offset);
                }
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// M2: 10,000 partitions in ten topics: creation, memory, file descriptors.
pub(crate) fn many_partitions(contender: Contender, places: &Places, numbers: &mut Numbers) -> Result<()> {
    let broker = Broker::fresh(contender, places, None)?;
    let (memory, descriptors) = (broker.memory_mb(), broker.descriptors());
    let begin = Instant::now();
    let mut admin = Admin::connect(&broker.address)?;
    for number in 0..MANY_TOPICS {
        admin.create_topic(&format!("many-{number}"), 1000, &[])?;
    }
    numbers.insert("m2.create_seconds".into(), begin.elapsed().as_secs_f64());
    numbers.insert("m2.memory_mb".into(), broker.memory_mb());
    numbers.insert(
        "m2.kb_per_partition".into(),
        (broker.memory_mb() - memory) / f64::from(MANY_TOPICS),
    );
    numbers.insert("m2.descriptors".into(), broker.descriptors() - descriptors);
    Ok(())
}

/// M3: idle connections that have asked ApiVersions and Metadata once.
pub(crate) fn idle_connections(contender: Contender, places: &Places, numbers: &mut Numbers) -> Result<()> {
    let broker = Broker::fresh(contender, places, None)?;
    Admin::connect(&broker.address)?.create_topic("m3", 4, &[])?;
    let before = broker.memory_mb();
    let mut held = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        let mut connection = Admin::connect(&broker.address)?;
        connection.call(Frame::request(18, 0).finish())?;
        let mut metadata = Frame::request(3, 1);
        metadata.i32(-1);
        connection.call(metadata.finish())?;
        held.push(connection);
    }
    numbers.insert(
        "m3.kb_per_connection".into(),
        (broker.memory_mb() - before) * 1000.0 / IDLE_CONNECTIONS as f64,
    );
    Ok(())
}

fn fill(broker: &Broker, topic: &str, gigabytes: u64) -> Result<()> {
    Admin::connect(&broker.address)?.create_topic(topic, 16, &[])?;
    let load = Load {
        partitions: 16,
        bytes_max: Some(gigabytes * 1_000_000_000),
        ..Load::bulk(Duration::ZERO, Duration::from_secs(900))
    };
    produce::run(&broker.address, topic, &load, || ())?;
    Ok(())
}

/// R1: kill -9 with gigabytes stored; from exec to the first acknowledged produce and the last record fetched.
pub(crate) fn restart(
    contender: Contender,
    places: &Places,
    scale: Scale,
    numbers: &mut Numbers,
) -> Result<()> {
    let broker = Broker::fresh(contender, places, None)?;
    let address = broker.address.clone();
    fill(&broker, "r1", scale.restart_gb).context("filling")?;
    let end = Admin::connect(&address)?.end_offset("r1", 0)?;
    broker.kill()?;
    let begin = Instant::now();
    let broker = Broker::spawn(contender, places, &address, None)?;
    let offset = first_produce(&address, "r1", begin)?;
    ensure!(
        offset == end,
        "the first record after the restart has offset {offset}, not {end}"
    );
    numbers.insert("r1.produce_seconds".into(), begin.elapsed().as_secs_f64());
    let answer = Admin::connect(&address)?.call(fetch("r1", 0, end - 1, 500, 1 << 20))?;
    let framed = [&[0; 8], answer.as_slice()].concat();
    let (error, _, records) = fetched(&framed).context("the answer to a fetch is malformed")?;
    ensure!(
        error == 0 && !records.is_empty(),
        "the last record cannot be fetched: error {error}"
    );
    numbers.insert("r1.fetch_seconds".into(), begin.elapsed().as_secs_f64());
    drop(broker);
    Ok(())
}

/// R2: SIGTERM under 100 MB/s; seconds until the process has ended.
pub(crate) fn terminate_under_load(
    contender: Contender,
    places: &Places,
    numbers: &mut Numbers,
) -> Result<()> {
    let broker = Broker::fresh(contender, places, None)?;
    Admin::connect(&broker.address)?.create_topic("r2", 1, &[])?;
    let address = broker.address.clone();
    let (begun, wait) = std::sync::mpsc::channel();
    let producer = thread::spawn(move || {
        let load = Load {
            connections: 4,
            bytes_per_second: Some(100_000_000),
            ..Load::bulk(Duration::from_secs(2), Duration::from_secs(30))
        };
        // It ends with the error that the broker went away: that is what is provoked here.
        produce::run(&address, "r2", &load, || begun.send(()).unwrap_or_default())
            .map(drop)
            .unwrap_or_default();
    });
    wait.recv().context("the load did not begin")?;
    numbers.insert("r2.seconds".into(), broker.terminate()?);
    producer
        .join()
        .map_err(|_| anyhow::anyhow!("the producer panicked"))
}
