//! End-to-end latency at fixed rates: L1–L3, broker on one core and driver on the other.

use super::{Numbers, Scale};
use crate::broker::{Broker, Places};
use crate::drive::admin::Admin;
use crate::drive::latency::end_to_end;
use crate::{broker::Contender, drive::produce, drive::produce::Load};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Identifier and records a second.
const RATES: [(&str, u64); 3] = [("l1", 1_000), ("l2", 10_000), ("l3", 30_000)];

/// Above this share of the broker's core a point says nothing of the broker's latency.
const BUSY_MAX: f64 = 0.95;

/// Above this, the driver's own lateness is what is seen: something else had its core.
const LATE_US_MAX: u64 = 1_000;

/// Measures one contender; the driver's core is set by the caller.
pub(crate) fn run(contender: Contender, places: &Places, scale: Scale, numbers: &mut Numbers) -> Result<()> {
    let broker = Broker::fresh(contender, places, Some(0))?;
    let warm = Duration::from_secs(scale.warm_up_seconds);
    Admin::connect(&broker.address)?.create_topic("warm-up", 1, &[])?;
    let load = Load {
        connections: 8,
        record_bytes: 1000,
        bytes_per_second: Some(5_000_000),
        ..Load::bulk(Duration::ZERO, warm).lone()
    };
    produce::run(&broker.address, "warm-up", &load, || ())?;
    for (name, per_second) in RATES {
        Admin::connect(&broker.address)?.create_topic(name, 1, &[])?;
        let (begin, cpu) = (Instant::now(), broker.cpu_seconds());
        let seconds = Duration::from_secs(scale.load_seconds);
        let Ok(times) = end_to_end(&broker.address, name, per_second, Duration::from_secs(1), seconds) else {
            // It could not follow the rate at all.
            numbers.insert(format!("{name}.saturated"), 1.0);
            continue;
        };
        let busy = (broker.cpu_seconds() - cpu) / begin.elapsed().as_secs_f64();
        numbers.insert(format!("{name}.broker_core"), busy);
        numbers.insert(format!("{name}.records_a_request"), times.records_a_request);
        let late_us = times.late_us.value_at_quantile(0.99);
        numbers.insert(format!("{name}.late_p99_us"), late_us as f64);
        let is_full = busy > BUSY_MAX || late_us > LATE_US_MAX;
        numbers.insert(format!("{name}.saturated"), f64::from(u8::from(is_full)));
        for (label, quantile) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
            let us = times.end_to_end_us.value_at_quantile(quantile);
            numbers.insert(format!("{name}.{label}"), us as f64);
        }
    }
    Ok(())
}
