//! E7: what `elastic.mode=slices` costs a topic that is not divided: a producer at full speed, and a group of one member.
//!
//! Both are pairs of short loads on one broker, in turn with the mode off, the order swapped each time; the median of the
//! ratios counts.

use super::backlog::{Backlog, Keys};
use super::crew::{Crew, Job, Protocol};
use super::{Site, Stage, quantile};
use crate::case::Numbers;
use crate::drive::admin::Admin;
use crate::drive::produce::{self, Load};
use anyhow::{Result, ensure};
use std::thread;
use std::time::Duration;

/// How long the broker gets to remove what a load wrote.
const DELETION: Duration = Duration::from_millis(500);

const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    let pairs = if stage.quick { 7 } else { 15 };
    let produced = paired(pairs, |mode, name| produce(&site, mode, name))?;
    numbers.insert("e7.produce".into(), produced);
    let read = paired(pairs, |mode, name| read(&site, mode, name, stage.quick))?;
    numbers.insert("e7.group_read".into(), read);
    Ok(())
}

/// The median ratio of a rate with slices to the same without.
fn paired(pairs: u32, mut rate: impl FnMut(&str, &str) -> Result<f64>) -> Result<f64> {
    let mut ratios = Vec::new();
    // The first load of all meets colder memory than the rest.
    rate("off", "warm-up")?;
    for pair in 0..pairs {
        let mut of = |mode: &str| rate(mode, &format!("e7-{mode}-{pair}"));
        let (slices, off) = if pair % 2 == 0 {
            let slices = of("slices")?;
            (slices, of("off")?)
        } else {
            let off = of("off")?;
            (of("slices")?, off)
        };
        ratios.push(slices / off);
    }
    Ok(quantile(&mut ratios, 0.5))
}

/// P1: records of 1 KB into one partition; MB/s.
fn produce(site: &Site<'_>, mode: &str, topic: &str) -> Result<f64> {
    let load = Load {
        connections: 16,
        in_flight: 5,
        partitions: 1,
        records_per_batch: 64,
        record_bytes: 1024,
        idempotent: false,
        sealed: false,
        warm_up: Duration::from_millis(200),
        measured: Duration::from_millis(800),
        bytes_max: None,
        bytes_per_second: None,
    };
    let mut admin = Admin::connect(site.address())?;
    admin.create_topic(topic, 1, &[("elastic.mode", mode)])?;
    let achieved = produce::run(site.address(), topic, &load, || ())?;
    admin.delete_topic(topic)?;
    thread::sleep(DELETION);
    Ok(achieved.megabytes_per_second())
}

/// One member that reads a backlog as fast as it can; records a second.
fn read(site: &Site<'_>, mode: &str, topic: &str, quick: bool) -> Result<f64> {
    let records = if quick { 300_000 } else { 600_000 };
    site.topic_with(
        topic,
        Backlog::new(records, Keys::Uniform),
        &[("elastic.mode", mode)],
    )?;
    let mut crew = Crew::new(Job {
        address: site.address().into(),
        group: topic.into(),
        topic: topic.into(),
        protocol: Protocol::Consumer,
        cost: Duration::ZERO,
        commit_interval: Some(Duration::from_millis(100)),
    });
    crew.join()?;
    ensure!(
        crew.wait(LIMIT, |crew| crew.delivered() >= u64::from(records))?,
        "the member did not read everything"
    );
    let deliveries = crew.finish()?;
    let begun_us = deliveries.iter().map(|one| one.start_us).min().unwrap_or(0);
    let done_us = deliveries.iter().map(|one| one.done_us).max().unwrap_or(0);
    Admin::connect(site.address())?.delete_topic(topic)?;
    Ok(f64::from(records) * 1e6 / (done_us - begun_us).max(1) as f64)
}
