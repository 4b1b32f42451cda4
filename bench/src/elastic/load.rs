//! E10: shares are divided while producers run at full speed into the same partition; what the producers notice.
//!
//! Seconds with a split and seconds without take turns. The members never wait (`raw`), so that the split falls into its
//! second.

use super::backlog::{Backlog, Keys};
use super::join::{Owner, READ_BYTES};
use super::raw::{RawMember, topic_id};
use super::{Site, Stage, quantile};
use crate::case::Numbers;
use crate::drive::produce::{self, Load};
use anyhow::{Result, anyhow, ensure};
use std::thread;
use std::time::{Duration, Instant};

/// From the start of a second's load to the newcomer.
const BEFORE_THE_JOIN: Duration = Duration::from_millis(300);

const LIMIT: Duration = Duration::from_secs(20);

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let bulk = Load::bulk(Duration::from_millis(100), Duration::from_millis(800));
    let lone = bulk.clone().lone();
    // A second of the first load is more than a gigabyte.
    let (few, many) = if stage.quick { (3, 5) } else { (5, 15) };
    turns(stage, numbers, cpu, ("e10", &bulk, few))?;
    turns(stage, numbers, cpu, ("e10_lone", &lone, many))
}

fn turns(
    stage: Stage<'_>,
    numbers: &mut Numbers,
    cpu: &mut f64,
    (name, load, turns): (&str, &Load, u32),
) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    let small = Backlog {
        records_per_batch: 8,
        ..Backlog::new(40_000, Keys::Uniform)
    };
    site.topic("e10", small)?;
    let owner = Owner::start(site.address(), "e10")?;
    second(&site, load)?;
    let (mut quiet, mut splitting, mut join_ms) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..turns {
        quiet.push(second(&site, load)?);
        let (address, member) = (site.address().to_owned(), format!("newcomer-{turn}"));
        let newcomer = thread::spawn(move || join_and_leave(&address, &member));
        splitting.push(second(&site, load)?);
        let took = newcomer.join().map_err(|_| anyhow!("the newcomer panicked"))??;
        join_ms.push(took.as_secs_f64() * 1000.0);
        owner.check()?;
    }
    owner.stop()?;
    let (quiet, splitting) = (quantile(&mut quiet, 0.5), quantile(&mut splitting, 0.5));
    numbers.insert(format!("{name}.quiet_p99_ms"), quiet);
    numbers.insert(format!("{name}.splitting_p99_ms"), splitting);
    numbers.insert(format!("{name}.rise_ms"), splitting - quiet);
    numbers.insert(format!("{name}.join_p50_ms"), quantile(&mut join_ms, 0.5));
    Ok(())
}

/// About a second of load; the 99th percentile of the producers' answers in milliseconds. An error ends the run.
fn second(site: &Site<'_>, load: &Load) -> Result<f64> {
    let achieved = produce::run(site.address(), "e10", load, || ())?;
    Ok(achieved.answer_us.value_at_quantile(0.99) as f64 / 1000.0)
}

/// Joins in the middle of the load, reads something, leaves; how long it took to get something.
fn join_and_leave(address: &str, name: &str) -> Result<Duration> {
    thread::sleep(BEFORE_THE_JOIN);
    let id = topic_id(address, "e10")?;
    let mut member = RawMember::connect(address, "e10", id, name)?;
    let begin = Instant::now();
    loop {
        member.beat()?;
        if !member.read(READ_BYTES)?.is_empty() {
            break;
        }
        ensure!(begin.elapsed() < LIMIT, "the newcomer got nothing");
        thread::sleep(Duration::from_millis(1));
    }
    let took = begin.elapsed();
    member.commit()?;
    member.leave()?;
    Ok(took)
}
