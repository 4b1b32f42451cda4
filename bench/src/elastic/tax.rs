//! E7: what `elastic.mode=slices` costs a topic that is not divided: a producer at full speed, and a group of one member.
//!
//! Both are pairs of short loads on one broker, with the mode on and off.

use super::backlog::{Backlog, Keys};
use super::crew::{Crew, Job, Protocol};
use super::{Site, Stage};
use crate::case::{Numbers, median_ratio};
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
    // The first load of all meets colder memory than the rest.
    rate("off", "warm-up")?;
    median_ratio(pairs, ("slices", "off"), |mode, pair| {
        rate(mode, &format!("e7-{mode}-{pair}"))
    })
}

/// P1: records of 1 KB into one partition; MB/s.
fn produce(site: &Site<'_>, mode: &str, topic: &str) -> Result<f64> {
    let load = Load::bulk(Duration::from_millis(200), Duration::from_millis(800));
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
