//! When to kill: at a random moment, or in the middle of what is easiest to get wrong.

use crate::broker::Broker;
use crate::rng::Rng;
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
}

/// Waits for a moment, then kills.
pub(crate) fn kill(broker: &mut Broker, rng: &mut Rng) -> Result<Moment> {
    let moment = match rng.below(10) {
        0..=3 => Moment::Random,
        4..=6 => Moment::SegmentChange,
        7..=8 => Moment::Snapshot,
        _ => Moment::Recovery,
    };
    let reached = match moment {
        Moment::Random => {
            thread::sleep(Duration::from_millis(30 + rng.below(900)));
            true
        }
        Moment::SegmentChange => changed(&broker.data().join("wal"), rng),
        Moment::Snapshot => changed(&broker.data().join("snapshots"), rng),
        Moment::Recovery => {
            thread::sleep(Duration::from_micros(rng.below(20_000)));
            true
        }
    };
    broker.kill()?;
    Ok(if reached { moment } else { Moment::Random })
}

/// Waits for a change in a folder, at most three seconds; then up to five milliseconds more.
fn changed(folder: &Path, rng: &mut Rng) -> bool {
    let before = names(folder);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        if names(folder) != before {
            thread::sleep(Duration::from_micros(rng.below(5_000)));
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
