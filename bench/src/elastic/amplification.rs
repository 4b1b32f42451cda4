//! E6: what the broker reads and opens for each byte that it delivers to members that share a log, and what that costs,
//! beside one member that reads the log alone.
//!
//! The members are fast, so that the log does not fit into the memory that a scan shares. The broker counts only what it
//! reads for slices; what it reads to count for the planner, before the first division too, is in the figures.

use super::api::counters;
use super::backlog::{Backlog, Keys};
use super::crew::{Crew, Job, Protocol};
use super::{Site, Stage};
use crate::case::Numbers;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Work on a record: 25,000 a second and member.
const COST: Duration = Duration::from_micros(40);

/// Often enough for the backlog to be divided long before its end.
const COMMIT_INTERVAL: Duration = Duration::from_millis(200);

const LIMIT: Duration = Duration::from_secs(60);

/// Bytes of a record in the log, about; for costs per byte, which is compared only with itself.
const RECORD_BYTES: f64 = 222.0;

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let each = if stage.quick { 150_000 } else { 250_000 };
    let alone = drain(stage, 1, each * 2, cpu)?;
    numbers.insert("e6_1.cpu_s_per_gb".into(), alone.cpu_s_per_gb);
    for members in [2, 4, 8] {
        let drained = drain(stage, members, each * u32::try_from(members)?, cpu)?;
        let name = format!("e6_{members}");
        numbers.insert(format!("{name}.read"), drained.read);
        numbers.insert(format!("{name}.opened"), drained.opened);
        numbers.insert(format!("{name}.cpu_s_per_gb"), drained.cpu_s_per_gb);
        numbers.insert(
            format!("{name}.cpu_to_alone"),
            drained.cpu_s_per_gb / alone.cpu_s_per_gb,
        );
    }
    Ok(())
}

struct Drained {
    /// Bytes read for each byte delivered as part of a slice, and bytes opened.
    read: f64,
    opened: f64,
    cpu_s_per_gb: f64,
}

fn drain(stage: Stage<'_>, members: usize, records: u32, cpu: &mut f64) -> Result<Drained> {
    let site = Site::start(stage, cpu)?;
    let mode = if members == 1 { "off" } else { "slices" };
    site.topic_with(
        "e6",
        Backlog::new(records, Keys::Uniform),
        &[("elastic.mode", mode)],
    )?;
    let http = site.broker.http()?;
    let mut crew = Crew::new(Job {
        address: site.address().into(),
        group: "e6".into(),
        topic: "e6".into(),
        protocol: Protocol::Consumer,
        cost: COST,
        commit_interval: Some(COMMIT_INTERVAL),
    });
    crew.join_and_work(members, LIMIT)?;
    let (delivered, cpu_before) = (crew.delivered(), site.broker.cpu_seconds());
    // Before the end, when members wait for each other's rest.
    let enough = u64::from(records) * 9 / 10;
    ensure!(
        delivered < enough / 2,
        "{members} members were divided too late to measure: {delivered} of {records} records were gone"
    );
    ensure!(
        crew.wait(LIMIT, |crew| crew.delivered() >= enough)?,
        "{members} members did not drain {records} records"
    );
    let bytes = (crew.delivered() - delivered) as f64 * RECORD_BYTES;
    let (of_slices, cpu_after) = (counters(&http)?, site.broker.cpu_seconds());
    let sent = of_slices.slice_delivered_bytes_total as f64;
    Ok(Drained {
        read: of_slices.slice_read_bytes_total as f64 / sent,
        opened: of_slices.slice_opened_bytes_total as f64 / sent,
        cpu_s_per_gb: (cpu_after - cpu_before) * 1e9 / bytes,
    })
}
