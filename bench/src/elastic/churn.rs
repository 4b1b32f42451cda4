//! E5: eight members at work while a ninth comes and goes; how long each of the eight is without a record. E11: what is
//! delivered again meanwhile.

use super::api::{Decision, client_ids, decisions};
use super::backlog::{Backlog, Keys};
use super::crew::{Crew, Job, Protocol};
use super::join::{COMMIT_INTERVAL, COST};
use super::verdict::check;
use super::{Site, Stage, insert_times};
use crate::case::Numbers;
use anyhow::Result;
use std::thread;
use std::time::Duration;

/// Members that stay.
const STAYING: usize = 8;

/// Longest wait until they are at work.
const LIMIT: Duration = Duration::from_secs(40);

/// Time from one coming or going to the next.
const BETWEEN: Duration = Duration::from_secs(5);

/// After the start, before anything counts: until all eight are at work.
const SETTLING: Duration = Duration::from_secs(8);

/// Kafka's partitions: enough for each member to have some, whoever comes.
const KAFKA_PARTITIONS: u16 = 64;

/// The default of librdkafka.
const AUTO_COMMIT: Duration = Duration::from_secs(5);

/// A run of coming and going.
struct Churn {
    gaps: Vec<Gap>,
    again: u64,
    order_breaks: u64,
}

/// The longest time without a record begun, of one member after one change of the group.
struct Gap {
    ms: f64,
    /// The member gave or got nothing, and was not told of any change.
    unaffected: bool,
}

pub(super) fn gaps(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let changes = if stage.quick { 6 } else { 12 };
    for protocol in [Protocol::Consumer, Protocol::Eager] {
        let churn = churn(stage, protocol, Some(COMMIT_INTERVAL), changes, cpu)?;
        let name = format!("e5_{}", protocol.word());
        if !stage.contender.is_kafka() {
            let unaffected = churn.gaps.iter().filter(|gap| gap.unaffected).map(|gap| gap.ms);
            insert_times(numbers, &format!("{name}.unaffected"), unaffected.collect());
        }
        let all = churn.gaps.iter().map(|gap| gap.ms);
        insert_times(numbers, &format!("{name}.gap"), all.collect());
        numbers.insert(format!("{name}.again"), churn.again as f64);
        numbers.insert(format!("{name}.order_breaks"), churn.order_breaks as f64);
    }
    Ok(())
}

pub(super) fn duplicates(stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let changes = if stage.quick { 2 } else { 6 };
    for (name, commits) in [("e11_auto_5s", Some(AUTO_COMMIT)), ("e11_manual", None)] {
        let churn = churn(stage, Protocol::Consumer, commits, changes, cpu)?;
        numbers.insert(format!("{name}.again"), churn.again as f64);
        numbers.insert(format!("{name}.order_breaks"), churn.order_breaks as f64);
    }
    Ok(())
}

fn churn(
    stage: Stage<'_>,
    protocol: Protocol,
    commit_interval: Option<Duration>,
    changes: u32,
    cpu: &mut f64,
) -> Result<Churn> {
    let site = Site::start(stage, cpu)?;
    let seconds = SETTLING + BETWEEN * (changes + 2);
    let partitions = if stage.contender.is_kafka() {
        KAFKA_PARTITIONS
    } else {
        1
    };
    // More than nine members can do meanwhile; and more in each of Kafka's partitions than a member that reads no other
    // can do, so that nobody is without a record because its partitions are drained.
    let a_second = 10_000.max(1_200 * u32::from(partitions));
    let backlog = Backlog {
        partitions,
        ..Backlog::new(u32::try_from(seconds.as_secs())? * a_second, Keys::Uniform)
    };
    let written = site.topic("e5", backlog)?;
    let mut crew = Crew::new(Job {
        address: site.address().into(),
        group: "e5".into(),
        topic: "e5".into(),
        protocol,
        cost: COST,
        commit_interval,
    });
    crew.join_and_work(STAYING, LIMIT)?;
    thread::sleep(SETTLING);
    let mut changes_us = Vec::new();
    let mut ninth = None;
    for _ in 0..changes {
        changes_us.push(crew.clock.now_us());
        ninth = match ninth.take() {
            None => Some(crew.join()?),
            Some(at) => {
                crew.leave(at)?;
                None
            }
        };
        thread::sleep(BETWEEN);
    }
    let decided = match stage.contender.is_kafka() {
        true => Vec::new(),
        false => named(&site, &crew)?,
    };
    let gaps = changes_us
        .iter()
        .flat_map(|at_us| gaps_after(&crew, &decided, *at_us))
        .collect();
    // The backlog is larger than what was read of it.
    let verdict = check(&written, crew.finish()?);
    Ok(Churn {
        gaps,
        again: verdict.again,
        order_breaks: verdict.order_breaks,
    })
}

/// When a decision named whom, by client id.
fn named(site: &Site<'_>, crew: &Crew) -> Result<Vec<(u64, String)>> {
    let http = site.broker.http()?;
    let names = client_ids(&http, "e5")?;
    let mut named = Vec::new();
    for Decision {
        time_ms, from, to, ..
    } in decisions(&http, "e5")?
    {
        let at_us = u64::try_from(crew.clock.of_wall_ms(time_ms)).unwrap_or(0);
        let ids = from.iter().chain(&to);
        named.extend(ids.filter_map(|id| Some((at_us, names.get(id)?.clone()))));
    }
    Ok(named)
}

/// The longest gap of each member that stays, between a change of the group and the next.
fn gaps_after(crew: &Crew, decided: &[(u64, String)], from_us: u64) -> Vec<Gap> {
    let upto_us = from_us + u64::try_from(BETWEEN.as_micros()).unwrap_or(u64::MAX);
    let within = |at_us: u64| (from_us..upto_us).contains(&at_us);
    crew.members[..STAYING]
        .iter()
        .filter_map(|member| {
            let deliveries = member.journal.deliveries();
            let begun = deliveries.iter().map(|one| one.start_us);
            let mut begun: Vec<u64> = begun.filter(|at_us| within(*at_us)).collect();
            begun.dedup();
            let ends = [from_us].into_iter().chain(begun.iter().copied());
            let gaps = ends.zip(begun.iter().copied().chain([upto_us]));
            let longest_us = gaps.map(|(a, b)| b - a).max()?;
            let told = member.journal.changes_us().iter().any(|at_us| within(*at_us));
            let name = format!("member-{}", member.number);
            let is_named = decided.iter().any(|(at_us, of)| within(*at_us) && *of == name);
            Some(Gap {
                ms: longest_us as f64 / 1000.0,
                unaffected: !told && !is_named,
            })
        })
        .collect()
}
