//! E3: what a split costs, against the size of the backlog: from the decision to the newcomer's first record, and what is
//! written for it.
//!
//! Nothing is in work when the newcomer joins, and the group's commits count as done (`elastic.commit.evidence=latest`),
//! so that no member is waited for. The decision's moment is the one in the decision log, in whole milliseconds.

use super::api::{counters, decisions, last_words};
use super::backlog::{Backlog, Keys};
use super::raw::{GROUP, RawMember, topic_id};
use super::{Site, Stage, quantile};
use crate::case::Numbers;
use crate::drive::admin::Admin;
use anyhow::{Context, Result, ensure};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Records in the backlog, and how numbers are named after them.
const SIZES: [(u32, &str); 3] = [(10_000, "e3_1e4"), (1_000_000, "e3_1e6"), (10_000_000, "e3_1e7")];

/// Longer than `elastic.split.cooldown.ms`.
const BETWEEN: Duration = Duration::from_millis(1200);

const LIMIT: Duration = Duration::from_secs(30);

/// One split.
struct Cost {
    from_decision_ms: f64,
    from_join_ms: f64,
    state_bytes: f64,
}

pub(super) fn run(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let sizes = if stage.quick { &SIZES[..2] } else { &SIZES[..] };
    let (mut decided, mut joined) = (Vec::new(), Vec::new());
    for (records, name) in sizes {
        let costs = splits(stage, *records, cpu).with_context(|| format!("{records} records"))?;
        let column = |of: fn(&Cost) -> f64, at: f64| {
            let mut values: Vec<f64> = costs.iter().map(of).collect();
            quantile(&mut values, at)
        };
        decided.push(column(|cost| cost.from_decision_ms, 0.5));
        joined.push(column(|cost| cost.from_join_ms, 0.5));
        numbers.insert(
            format!("{name}.decided_p50_ms"),
            column(|cost| cost.from_decision_ms, 0.5),
        );
        numbers.insert(
            format!("{name}.decided_p99_ms"),
            column(|cost| cost.from_decision_ms, 0.99),
        );
        numbers.insert(
            format!("{name}.joined_p50_ms"),
            column(|cost| cost.from_join_ms, 0.5),
        );
        numbers.insert(
            format!("{name}.state_bytes"),
            column(|cost| cost.state_bytes, 0.5),
        );
    }
    let worst = |values: &[f64]| values.iter().copied().fold(f64::NAN, f64::max);
    let slope = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN) / values[0];
    numbers.insert("e3.decided_p50_ms".into(), worst(&decided));
    numbers.insert("e3.slope".into(), slope(&decided));
    numbers.insert("e3.joined_slope".into(), slope(&joined));
    let bytes = numbers
        .iter()
        .filter(|(name, _)| name.starts_with("e3_") && name.ends_with(".state_bytes"));
    let bytes: Vec<f64> = bytes.map(|(_, bytes)| *bytes).collect();
    numbers.insert("e3.state_bytes".into(), worst(&bytes));
    Ok(())
}

fn splits(stage: Stage<'_>, records: u32, cpu: &mut f64) -> Result<Vec<Cost>> {
    let site = Site::start(stage, cpu)?;
    let settings = [("elastic.mode", "slices"), ("elastic.commit.evidence", "latest")];
    site.topic_with("e3", Backlog::new(records, Keys::Uniform), &settings)?;
    let id = topic_id(site.address(), "e3")?;
    let http = site.broker.http()?;
    let mut owner = RawMember::join(site.address(), "e3", id, "owner")?;
    read_and_commit(&mut owner)?;
    let mut costs = Vec::new();
    for join in 0..if stage.quick { 8 } else { 15 } {
        let begin = Instant::now();
        while begin.elapsed() < BETWEEN {
            owner.beat()?;
            thread::sleep(Duration::from_millis(20));
        }
        // It takes a record of what came back to it, and has nothing in work.
        owner.read(1)?;
        owner.commit()?;
        let before = counters(&http)?;
        let mut newcomer = RawMember::connect(site.address(), "e3", id, &format!("newcomer-{join}"))?;
        let begin = Instant::now();
        newcomer.beat()?;
        while newcomer.read(1)?.is_empty() {
            ensure!(
                begin.elapsed() < LIMIT,
                "the newcomer got nothing: {}",
                last_words(&http, GROUP)
            );
            owner.beat()?;
            newcomer.beat()?;
        }
        let (took, now) = (begin.elapsed(), SystemTime::now().duration_since(UNIX_EPOCH)?);
        let split = decisions(&http, GROUP)?
            .into_iter()
            .rfind(|one| one.kind == "split")
            .context("there was no split")?;
        costs.push(Cost {
            from_decision_ms: now.as_secs_f64() * 1000.0 - split.time_ms as f64,
            from_join_ms: took.as_secs_f64() * 1000.0,
            state_bytes: (counters(&http)?.state_bytes_total - before.state_bytes_total) as f64,
        });
        newcomer.commit()?;
        newcomer.leave()?;
    }
    let end = Admin::connect(site.address())?.end_offset("e3", 0)?;
    ensure!(
        end == i64::from(records),
        "splits have changed the log: it ends at {end}"
    );
    Ok(costs)
}

fn read_and_commit(owner: &mut RawMember) -> Result<()> {
    let begin = Instant::now();
    while owner.read(1)?.is_empty() {
        ensure!(begin.elapsed() < LIMIT, "the owner got nothing");
        owner.beat()?;
    }
    owner.commit()
}
