//! E2: a backlog in one partition, drained by 1, 2, 4 and 8 members, each record taking a millisecond; beside it, Kafka
//! with the same members on 1, 8 and 64 fixed partitions, and as a share group.
//!
//! All members start at once on a group that has never read the topic, so a division has to wait for the first member's
//! first commits. Time counts from the first record begun to the last one done.

use super::backlog::{Backlog, Keys};
use super::crew::{Crew, Job, Protocol};
use super::join::{COMMIT_INTERVAL, COST};
use super::verdict::{Delivery, Verdict, check};
use super::{Site, Stage, share};
use crate::case::Numbers;
use crate::say;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Members of the largest group.
const MEMBERS: u32 = 8;

/// Work a member, in a drain of [`MEMBERS`] members.
fn records_a_member(stage: Stage<'_>) -> u32 {
    if stage.quick { 15_000 } else { 25_000 }
}

/// How long a drain may take beyond what one member alone would need.
const LIMIT: Duration = Duration::from_secs(30);

/// What a drain achieved.
struct Drained {
    records_per_second: f64,
    verdict: Verdict,
}

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    if stage.contender.is_kafka() {
        return kafka(stage, numbers, cpu);
    }
    let alone = drain(stage, Keys::Uniform, 1, 1, records_a_member(stage) / 2, cpu)?;
    numbers.insert("e2_1.records_s".into(), alone.records_per_second);
    let sizes: &[u32] = if stage.quick { &[MEMBERS] } else { &[2, 4, MEMBERS] };
    let (mut again, mut breaks) = (0, 0);
    for members in sizes {
        for (keys, name) in [(Keys::Uniform, "uniform"), (Keys::Zipf, "zipf")] {
            let done = drain(stage, keys, 1, *members, records_a_member(stage) * members, cpu)?;
            again += done.verdict.again;
            breaks += done.verdict.order_breaks;
            let speed_up = done.records_per_second / alone.records_per_second;
            numbers.insert(format!("e2_{name}_{members}.speed_up"), speed_up);
            numbers.insert(
                format!("e2_{name}_{members}.share_of_n"),
                speed_up / f64::from(*members),
            );
            if (keys, *members) == (Keys::Zipf, MEMBERS) {
                // The same number under the name of what it is compared with.
                for other in ["partitions_1", "partitions_8", "partitions_64", "share_group"] {
                    numbers.insert(format!("e2_{other}.records_s"), done.records_per_second);
                }
            }
        }
    }
    numbers.insert("e2.again".into(), again as f64);
    numbers.insert("e2.order_breaks".into(), breaks as f64);
    Ok(())
}

fn kafka(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let all = records_a_member(stage) * MEMBERS;
    share_group(stage, all, numbers, cpu)?;
    let mut breaks = 0;
    for partitions in [1, 8, 64] {
        // One partition has one reader, whose rate does not need the whole backlog to be seen.
        let records = if partitions == 1 { all / 16 } else { all };
        let done = drain(stage, Keys::Zipf, partitions, MEMBERS, records, cpu)?;
        breaks += done.verdict.order_breaks;
        numbers.insert(
            format!("e2_partitions_{partitions}.records_s"),
            done.records_per_second,
        );
    }
    numbers.insert("e2.order_breaks".into(), breaks as f64);
    Ok(())
}

/// The same records by a share group.
fn share_group(stage: Stage<'_>, all: u32, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let site = Site::start(stage, cpu)?;
    let written = site.topic("e2", Backlog::new(all, Keys::Zipf))?;
    let limit = LIMIT + COST * all / MEMBERS;
    let deliveries = share::drain(stage.places, site.address(), "e2", (MEMBERS, all), limit)?;
    let done = judge(&written, deliveries)?;
    numbers.insert("e2_share_group.records_s".into(), done.records_per_second);
    numbers.insert("e2_share_group.again".into(), done.verdict.again as f64);
    numbers.insert(
        "e2_share_group.order_breaks".into(),
        done.verdict.order_breaks as f64,
    );
    Ok(())
}

fn drain(
    stage: Stage<'_>,
    keys: Keys,
    partitions: u16,
    members: u32,
    records: u32,
    cpu: &mut f64,
) -> Result<Drained> {
    let site = Site::start(stage, cpu)?;
    let backlog = Backlog {
        partitions,
        ..Backlog::new(records, keys)
    };
    let written = site.topic("e2", backlog)?;
    let mut crew = Crew::new(Job {
        address: site.address().into(),
        group: "e2".into(),
        topic: "e2".into(),
        protocol: Protocol::Consumer,
        cost: COST,
        commit_interval: Some(COMMIT_INTERVAL),
    });
    for _ in 0..members {
        crew.join()?;
    }
    let limit = LIMIT + COST * records * 2;
    // Records that come again are counted as well, so the number alone does not say that all were there.
    let mut complete = false;
    while !complete {
        let wanted = u64::from(records).max(crew.delivered() + 1);
        let more = crew.wait(
            if crew.delivered() < u64::from(records) {
                limit
            } else {
                Duration::from_millis(500)
            },
            |crew| crew.delivered() >= wanted,
        )?;
        let deliveries = crew.members.iter().flat_map(|member| member.journal.deliveries());
        complete = check(&written, deliveries.collect()).lost == 0;
        ensure!(
            more || complete,
            "{members} members did not drain {records} records"
        );
    }
    judge(&written, crew.finish()?)
}

fn judge(written: &[u32], deliveries: Vec<Delivery>) -> Result<Drained> {
    let begun_us = deliveries.iter().map(|one| one.start_us).min().unwrap_or(0);
    let done_us = deliveries.iter().map(|one| one.done_us).max().unwrap_or(0);
    let verdict = check(written, deliveries);
    ensure!(verdict.lost == 0, "{} records were not delivered", verdict.lost);
    let done = Drained {
        records_per_second: verdict.delivered as f64 * 1e6 / (done_us - begun_us).max(1) as f64,
        verdict,
    };
    say(&format!("    {:.0} records/s", done.records_per_second));
    Ok(done)
}
