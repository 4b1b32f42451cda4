//! Queue mode. Q1: what it costs a producer at full speed. Q2: whether a producer notices that the write queue count changes.

use super::api;
use super::{Site, Stage};
use crate::case::{Numbers, median_ratio};
use crate::drive::admin::Admin;
use crate::drive::produce::{self, Load};
use anyhow::{Result, anyhow, ensure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Partitions that clients see.
const FACADE: i32 = 16;

/// How long the broker gets to remove what a load wrote.
const DELETION: Duration = Duration::from_millis(500);

/// Changes of the write queue count in Q2.
const CHANGES: u32 = 100;

/// The counts between which they go.
const COUNTS: [u32; 2] = [2, 6];

/// Longest wait for one of them.
const LIMIT: Duration = Duration::from_secs(20);

/// Q1: P1's load over all partitions. All of them in use, so that nothing is stored elsewhere than it was addressed to; and
/// one in use, so that nearly everything is. Against a plain topic in which as many partitions are written.
pub(super) fn throughput(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    let pairs = if stage.quick { 7 } else { 15 };
    let mut compare = |name: &str, bound: (&str, &str), plain: i32| -> Result<()> {
        let settings = [("elastic.mode", "queues"), bound];
        let topic = |kind: &str| format!("q1-{name}-{kind}");
        produced(&site, &topic("warm-up"), plain, &[])?;
        let ratio = median_ratio(pairs, ("queues", "plain"), |kind, pair| {
            let topic = topic(&format!("{kind}-{pair}"));
            match kind {
                "queues" => produced(&site, &topic, FACADE, &settings),
                _ => produced(&site, &topic, plain, &[]),
            }
        })?;
        numbers.insert(format!("q1.{name}_in_use"), ratio);
        Ok(())
    };
    compare("all", ("elastic.queues.min", "16"), FACADE)?;
    compare("one", ("elastic.queues.max", "1"), 1)
}

/// MB/s of P1's load into a topic of its own.
fn produced(site: &Site<'_>, topic: &str, partitions: i32, settings: &[(&str, &str)]) -> Result<f64> {
    let load = Load {
        partitions,
        ..Load::bulk(Duration::from_millis(200), Duration::from_millis(800))
    };
    let mut admin = Admin::connect(site.address())?;
    admin.create_topic(topic, partitions, settings)?;
    let achieved = produce::run(site.address(), topic, &load, || ())?;
    admin.delete_topic(topic)?;
    thread::sleep(DELETION);
    Ok(achieved.megabytes_per_second())
}

/// Q2: idempotent producers write while the write queue count goes up and down.
pub(super) fn changes(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    let http = site.broker.http()?;
    let settings = [
        ("elastic.mode", "queues"),
        ("elastic.queues.write.delay.ms", "10"),
        ("elastic.queues.drain.delay.ms", "10"),
        ("elastic.queues.shrink.grace.ms", "10"),
    ];
    Admin::connect(site.address())?.create_topic("q2", FACADE, &settings)?;
    let over = AtomicBool::new(false);
    let (achieved, changed) = thread::scope(|scope| {
        let producers = scope.spawn(|| {
            let load = Load {
                partitions: FACADE,
                idempotent: true,
                counts_errors: true,
                bytes_per_second: Some(20_000_000),
                ..Load::bulk(Duration::ZERO, LIMIT * CHANGES)
            };
            produce::run_until(
                site.address(),
                "q2",
                &load,
                &|| over.load(Ordering::Relaxed),
                || (),
            )
        });
        let changed =
            (0..CHANGES).try_for_each(|number| change(&http, COUNTS[number as usize % COUNTS.len()]));
        over.store(true, Ordering::Relaxed);
        let achieved = producers.join().map_err(|_| anyhow!("a producer panicked"));
        (achieved, changed)
    });
    let achieved = achieved??;
    changed?;
    numbers.insert("q2.changes".into(), f64::from(CHANGES));
    numbers.insert("q2.acknowledged".into(), achieved.records as f64);
    numbers.insert("q2.errors".into(), achieved.errors as f64);
    let p99_ms = achieved.answer_us.value_at_quantile(0.99) as f64 / 1000.0;
    numbers.insert("q2.answer_p99_ms".into(), p99_ms);
    Ok(())
}

/// Wishes for a number of queues and waits until both counts are there.
fn change(http: &str, count: u32) -> Result<()> {
    api::wish_queues(http, "q2", count)?;
    let begin = Instant::now();
    loop {
        let (write, read) = api::queues(http, "q2")?;
        if write == count && read == count {
            return Ok(());
        }
        ensure!(
            begin.elapsed() < LIMIT,
            "W is {write} and R {read} {LIMIT:?} after {count} were wished for"
        );
        thread::sleep(Duration::from_millis(2));
    }
}
