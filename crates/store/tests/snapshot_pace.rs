//! When snapshots are due: seldom enough to cost little, often enough that a start replays a bounded part of the log.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Options, Step, Store};
use common::{Item, batch, open_manual, small};

const FOLDER: &str = "/d";
const SEGMENT_BYTES: u64 = 64 << 10;
const LOG_BYTES: u64 = 5 * SEGMENT_BYTES;
const INTERVAL: Duration = Duration::from_secs(10);

fn options() -> Options {
    Options {
        snapshot_log_bytes: LOG_BYTES,
        snapshot_interval: INTERVAL,
        ..small()
    }
}

fn fresh() -> (Arc<SimDisk>, Store) {
    let disk = Arc::new(SimDisk::new(5));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), options()).unwrap();
    (disk, store)
}

/// Appends one batch and one state entry; both are committed.
fn append(store: &Store, n: i64) {
    store.append_batch(batch(1, n, 1, n, &vec![n as u8; 2000 + n as usize % 700]));
    store.append_state(n.to_le_bytes().to_vec());
    while store.commit_once() == Step::Committed {}
}

#[test]
fn a_fast_log_gets_a_snapshot_per_so_many_bytes_and_a_start_replays_no_more() {
    let (disk, store) = fresh();
    let (mut sealed, mut taken, mut longest) = (0, Vec::new(), 0);
    let mut segments = store.usage().segments;
    for n in 0..1500 {
        append(&store, n);
        let now = store.usage().segments;
        sealed += now.saturating_sub(segments);
        segments = now;
        if store.is_snapshot_due(Duration::ZERO) {
            taken.push(store.committed());
            store.write_snapshot(store.committed(), &n.to_le_bytes()).unwrap();
            assert!(!store.is_snapshot_due(INTERVAL), "nothing is behind it");
        }
        if n % 50 != 0 {
            continue;
        }
        // Whenever the power fails, the newest snapshot and what is replayed behind it are all there was.
        let after = disk.power_cycle(n as u64);
        let (again, found) = open_manual(Path::new(FOLDER), Arc::new(after), options()).unwrap();
        let first = found.snapshot.as_ref().map_or(Lsn(0), |_| *taken.last().unwrap());
        let lsns: Vec<_> = found.items.iter().map(|(lsn, _)| lsn.0).collect();
        assert_eq!(lsns, (first.0 + 1..=store.committed().0).collect::<Vec<_>>());
        let bytes = |item: &Item| match item {
            Item::State(bytes) | Item::Batch(_, bytes) => bytes.len() as u64,
        };
        longest = longest.max(found.items.iter().map(|(_, item)| bytes(item)).sum::<u64>());
        assert_eq!(again.committed(), store.committed());
        assert!(
            again
                .read(LogId(1), 0, n + 1, 1, true)
                .is_ok_and(|found| !found.is_empty())
        );
    }
    assert!(sealed >= 50, "{sealed} sealed");
    assert!(
        (sealed / 6..=sealed / 4).contains(&taken.len()),
        "{} of {sealed}",
        taken.len()
    );
    assert!(
        longest > LOG_BYTES / 3 && longest <= LOG_BYTES + SEGMENT_BYTES,
        "{longest} bytes"
    );
}

#[test]
fn a_slow_log_gets_one_in_time_and_a_silent_one_none() {
    let (_, store) = fresh();
    assert!(!store.is_snapshot_due(INTERVAL));
    for n in 0.. {
        append(&store, n);
        if store.usage().segments > 1 {
            break;
        }
        assert!(!store.is_snapshot_due(INTERVAL), "no segment is sealed yet");
    }
    assert!(!store.is_snapshot_due(INTERVAL / 2));
    assert!(store.is_snapshot_due(INTERVAL));
    store.write_snapshot(store.committed(), b"").unwrap();
    assert!(!store.is_snapshot_due(INTERVAL * 100));
}

#[test]
fn without_space_a_snapshot_is_due_as_soon_as_it_can_free_something() {
    let disk = Arc::new(SimDisk::new(5));
    let scarce = Options {
        free_bytes_min: Some(u64::MAX),
        ..options()
    };
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), scarce).unwrap();
    disk.set_capacity(64 << 20);
    store.maintain().unwrap();
    assert!(store.space().low && !store.is_snapshot_due(Duration::ZERO));
    for n in 0..40 {
        append(&store, n);
    }
    assert!(store.usage().segments > 1);
    assert!(store.is_snapshot_due(Duration::ZERO));
}
