//! When to kill: at a random moment, or in the middle of what is easiest to get wrong.

use crate::broker::Broker;
use crate::rng::Rng;
use crate::shared::ledger::Ledger;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// A moment of death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// After a random time under load.
    Random,
    /// Within a few milliseconds after the files of the log changed: a new, sealed, recycled or packed segment.
    SegmentChange,
    /// Within a few milliseconds after the files of the snapshots changed.
    Snapshot,
    /// While the broker is still recovering or has just begun to serve.
    Recovery,
    /// While several members share a partition, shortly after one came, left, or read a share for the first time: shares are on
    /// their way.
    Division,
}

/// Waits for a moment, then kills.
pub(crate) fn kill(broker: &mut Broker, rng: &mut Rng, ledger: &Ledger) -> Result<Moment> {
    let moment = match rng.below(14) {
        0..=3 => Moment::Random,
        4..=6 => Moment::SegmentChange,
        7..=8 => Moment::Snapshot,
        9 => Moment::Recovery,
        _ => Moment::Division,
    };
    let reached = match moment {
        Moment::Random => {
            thread::sleep(Duration::from_millis(30 + rng.below(900)));
            true
        }
        Moment::SegmentChange => changed(&broker.data().join("wal"), 3, rng),
        // Few brokers live long enough for one.
        Moment::Snapshot => changed(&broker.data().join("snapshots"), 1, rng),
        Moment::Division => {
            let reached = within(2, || ledger.is_divided());
            let before = ledger.events();
            let reached = reached && within(1, || ledger.events() != before);
            thread::sleep(Duration::from_millis(rng.below(200)));
            reached
        }
        Moment::Recovery => {
            thread::sleep(Duration::from_micros(rng.below(20_000)));
            true
        }
    };
    broker.kill()?;
    Ok(if reached { moment } else { Moment::Random })
}

/// Waits for a change in a folder, at most so many seconds; then up to five milliseconds more.
fn changed(folder: &Path, seconds: u64, rng: &mut Rng) -> bool {
    let before = names(folder);
    let is_changed = within(seconds, || names(folder) != before);
    if is_changed {
        thread::sleep(Duration::from_micros(rng.below(5_000)));
    }
    is_changed
}

fn within(seconds: u64, look: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        if look() {
            return true;
        }
        thread::sleep(Duration::from_micros(500));
    }
    false
}

fn names(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}
