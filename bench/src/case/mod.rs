//! What is measured. A *case* runs against one started broker and yields named numbers; a *life* case starts and stops
//! brokers itself.

pub(crate) mod clients;
pub(crate) mod latency;
pub(crate) mod life;
pub(crate) mod throughput;

use anyhow::Result;
use std::collections::BTreeMap;

/// Numbers of one contender in one round, by metric name.
pub(crate) type Numbers = BTreeMap<String, f64>;

/// How long and how much, in a full run or a quick one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Rounds, half of them in reverse order of contenders.
    pub(crate) rounds: u32,
    /// Seconds of load that warm the broker up before its first case.
    pub(crate) warm_up_seconds: u64,
    /// Seconds each load counts.
    pub(crate) load_seconds: u64,
    /// Gigabytes that catch-up readers read.
    pub(crate) catch_up_gb: u64,
    /// Gigabytes stored before the restarts.
    pub(crate) restart_gb: u64,
    /// Seconds before idle memory is read.
    pub(crate) idle_seconds: u64,
}

impl Scale {
    pub(crate) const FULL: Self = Self {
        rounds: 5,
        warm_up_seconds: 15,
        load_seconds: 8,
        catch_up_gb: 5,
        restart_gb: 10,
        idle_seconds: 60,
    };
    pub(crate) const QUICK: Self = Self {
        rounds: 1,
        warm_up_seconds: 6,
        load_seconds: 3,
        catch_up_gb: 1,
        restart_gb: 1,
        idle_seconds: 5,
    };
}

/// The median ratio of what is measured of one to the same of another, in pairs, each pair in the other order than the one
/// before: the speed of a virtual disk drifts more from minute to minute than loads differ.
pub(crate) fn median_ratio<T: Copy>(
    pairs: u32,
    (one, other): (T, T),
    mut measure: impl FnMut(T, u32) -> Result<f64>,
) -> Result<f64> {
    let mut ratios = Vec::new();
    for pair in 0..pairs {
        let (of, to) = if pair % 2 == 0 {
            let of = measure(one, pair)?;
            (of, measure(other, pair)?)
        } else {
            let to = measure(other, pair)?;
            (measure(one, pair)?, to)
        };
        ratios.push(of / to);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_measured_in_turns_and_their_median_counts() {
        let mut asked = Vec::new();
        let ratio = median_ratio(3, (6.0, 2.0), |of, pair| {
            asked.push((of, pair));
            // The last pair is disturbed.
            Ok(if asked.len() > 4 { 1.0 } else { of })
        });
        assert_eq!(ratio.unwrap(), 3.0);
        assert_eq!(
            asked,
            [(6.0, 0), (2.0, 0), (2.0, 1), (6.0, 1), (6.0, 2), (2.0, 2)]
        );
    }
}
