//! What is measured. A *case* runs against one started broker and yields named numbers; a *life* case starts and stops
//! brokers itself.

pub(crate) mod clients;
pub(crate) mod latency;
pub(crate) mod life;
pub(crate) mod throughput;

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
