//! E1–E11: how a backlog divides itself among members, what that costs, and what Kafka does in the same place. Q1, Q2: queue
//! mode.
//!
//! | file | ids |
//! |---|---|
//! | `join` | E1: from joining to the first record |
//! | `drain` | E2: a backlog drained by 1, 2, 4, 8 members; Kafka with 1, 8, 64 partitions, and as a share group |
//! | `split` | E3: what a split costs, against the size of the backlog |
//! | `evenness` | E4: how evenly the cut deals, over random workloads |
//! | `churn` | E5: gaps while members come and go; E11: what is delivered again |
//! | `amplification` | E6: bytes read and opened for each byte delivered |
//! | `tax` | E7: what it costs a topic that is not divided |
//! | `merge` | E8: from leaving to the first record elsewhere; how long lineage grows |
//! | `flapping` | E9: splits and merges while members come and go at random |
//! | `load` | E10: a producer at full speed while shares are divided |
//! | `queues` | Q1: what queue mode costs a producer; Q2: whether one notices that the write queue count changes |
//!
//! E4, E9 and the lineage of E8 are pure functions of the core, measured without a clock. All else runs against brokers:
//! `backlog` writes, `crew` are members as users run them (librdkafka), `raw` are members without any timers, `share`
//! is Kafka's share group (Java, as librdkafka has none), `verdict` checks every record, `api` asks Anabranch what it did,
//! `rows` and `report` are the table.

mod amplification;
mod api;
mod backlog;
mod churn;
mod crew;
mod drain;
mod evenness;
mod flapping;
mod join;
mod load;
mod merge;
mod queues;
mod raw;
pub(crate) mod rows;
mod share;
mod split;
mod tax;
mod verdict;

use crate::broker::{Broker, Contender, Places};
use crate::case::Numbers;
use crate::drive::admin::Admin;
use crate::machine::{Foreign, own_cpu_seconds};
use crate::say;
use anyhow::{Context, Result};
use backlog::Backlog;
use std::time::Instant;

/// All ids, in order.
pub(crate) const IDS: [&str; 13] = [
    "E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10", "E11", "Q1", "Q2",
];

/// Where, against whom, and how long.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'a> {
    pub(crate) contender: Contender,
    pub(crate) places: &'a Places,
    pub(crate) quick: bool,
}

/// Measures what is wanted of one contender: [`Contender::Durable`] or [`Contender::KafkaStock`].
pub(crate) fn run(stage: Stage<'_>, wanted: &dyn Fn(&str) -> bool, numbers: &mut Numbers) -> Result<()> {
    for id in IDS.iter().filter(|id| wanted(id)) {
        let (begin, own) = (Instant::now(), own_cpu_seconds());
        let foreign = Foreign::begin(own);
        let mut of_brokers = 0.0;
        let mut found = Numbers::new();
        measure(id, stage, &mut found, &mut of_brokers).with_context(|| (*id).to_owned())?;
        if found.is_empty() {
            continue;
        }
        let name = id.to_lowercase();
        found.insert(
            format!("{name}.foreign_share"),
            foreign.share(own_cpu_seconds() + of_brokers),
        );
        say(&format!("  {id}: {:.0} s", begin.elapsed().as_secs_f64()));
        numbers.extend(found);
    }
    Ok(())
}

fn measure(id: &str, stage: Stage<'_>, numbers: &mut Numbers, cpu: &mut f64) -> Result<()> {
    let kafka = stage.contender.is_kafka();
    match id {
        "E1" => join::run(stage, numbers, cpu),
        "E2" => drain::run(stage, numbers, cpu),
        "E5" => churn::gaps(stage, numbers, cpu),
        _ if kafka => Ok(()),
        "E3" => split::run(stage, numbers, cpu),
        "E4" => evenness::run(numbers),
        "E6" => amplification::run(stage, numbers, cpu),
        "E7" => tax::run(stage, numbers, cpu),
        "E8" => merge::run(stage, numbers, cpu),
        "E9" => flapping::run(numbers),
        "E10" => load::run(stage, numbers, cpu),
        "Q1" => queues::throughput(stage, numbers, cpu),
        "Q2" => queues::changes(stage, numbers, cpu),
        _ => churn::duplicates(stage, numbers, cpu),
    }
}

/// A broker on empty data, for one measurement.
struct Site<'a> {
    broker: Broker,
    /// Where the CPU time that the broker took is added in the end.
    cpu: &'a mut f64,
}

impl<'a> Site<'a> {
    fn start(stage: Stage<'_>, cpu: &'a mut f64) -> Result<Self> {
        let broker = Broker::fresh(stage.contender, stage.places, None)?;
        Ok(Self { broker, cpu })
    }

    fn address(&self) -> &str {
        &self.broker.address
    }

    /// Creates a topic that may be divided, and writes a backlog; how many records each key has.
    fn topic(&self, name: &str, backlog: Backlog) -> Result<Vec<u32>> {
        let settings: &[(&str, &str)] = match self.broker.contender.is_kafka() {
            true => &[],
            false => &[("elastic.mode", "slices")],
        };
        self.topic_with(name, backlog, settings)
    }

    fn topic_with(&self, name: &str, backlog: Backlog, settings: &[(&str, &str)]) -> Result<Vec<u32>> {
        Admin::connect(self.address())?.create_topic(name, i32::from(backlog.partitions), settings)?;
        backlog.write(self.address(), name)
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        *self.cpu += self.broker.cpu_seconds();
    }
}

/// A quantile of some values, which it sorts; the largest for the highest quantile of few, NaN of none.
fn quantile(values: &mut [f64], quantile: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (quantile * values.len() as f64).ceil() as usize;
    values
        .get(rank.clamp(1, values.len().max(1)) - 1)
        .copied()
        .unwrap_or(f64::NAN)
}

/// Median and 99th percentile of times in milliseconds, and how many there were.
fn insert_times(numbers: &mut Numbers, name: &str, mut times_ms: Vec<f64>) {
    numbers.insert(format!("{name}_p50_ms"), quantile(&mut times_ms, 0.5));
    numbers.insert(format!("{name}_p99_ms"), quantile(&mut times_ms, 0.99));
    numbers.insert(format!("{name}_samples"), times_ms.len() as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.5), 50.0);
        assert_eq!(quantile(&mut values, 0.99), 99.0);
        assert_eq!(quantile(&mut [7.0, 3.0], 0.99), 7.0);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
