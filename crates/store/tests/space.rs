//! Space: what is dead is freed, what little lives is packed, a full disk stops nothing but taking in more.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::sim_disk::{Fault, SimDisk};
use anabranch_store::{Event, OpenError, Options, RealDisk, SnapshotError, Step, Store};
use common::{Item, batch, open, open_manual, read_all, small, stored};

const FOLDER: &str = "/d";

fn fresh(options: Options) -> (Arc<SimDisk>, Store) {
    let disk = Arc::new(SimDisk::new(3));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), options).unwrap();
    (disk, store)
}

fn commit(store: &Store) {
    while store.commit_once() == Step::Committed {}
}

fn snapshot_and_maintain(store: &Store) {
    store.write_snapshot(store.committed(), b"s").unwrap();
    while store.maintain().unwrap().more {}
}

/// Two snapshots further on: whatever can be freed and packed is.
fn settle(store: &Store) {
    for _ in 0..2 {
        store.append_state(vec![0]);
        store.commit_once();
        assert!(store.wait_committed(store.last()));
        snapshot_and_maintain(store);
    }
}

fn wal_bytes(disk: &SimDisk) -> usize {
    disk.files()
        .iter()
        .filter(|path| path.starts_with("/d/wal"))
        .filter_map(|path| disk.content(path))
        .map(|c| c.len())
        .sum()
}

#[test]
fn a_slow_log_pins_little_more_than_its_own_bytes() {
    let (disk, store) = fresh(Options {
        spare_segments: 0,
        ..small()
    });
    let mut expected = Vec::new();
    for n in 0..600i64 {
        store.append_batch(batch(1, n, 1, n, &[1; 3000]));
        if n % 12 == 0 {
            let slow = batch(2, n / 12, 1, n, &[2; 500]);
            expected.extend(stored(&slow));
            store.append_batch(slow);
        }
        commit(&store);
        if n % 50 == 49 {
            store.set_log_start(LogId(1), n - 5);
            snapshot_and_maintain(&store);
        }
    }
    settle(&store);
    assert!(read_all(&store, LogId(2)) == expected);
    let usage = store.usage();
    assert!(usage.segments <= 4, "{usage:?}");
    // The active and the prepared segment, the newest sealed one, and twice the slow log with some blocks around it.
    let bound = 3 * (64 << 10) + 2 * expected.len() + 64 * 1024;
    assert!(
        wal_bytes(&disk) <= bound,
        "{} bytes, expected at most {bound}",
        wal_bytes(&disk)
    );
}

#[test]
fn the_padding_of_small_groups_is_packed_away() {
    let (_, store) = fresh(Options {
        spare_segments: 0,
        ..small()
    });
    let mut expected = Vec::new();
    for n in 0..300 {
        let entry = batch(1, n, 1, n, b"tiny");
        expected.extend(stored(&entry));
        store.append_batch(entry);
        commit(&store);
    }
    let before = store.usage();
    snapshot_and_maintain(&store);
    let after = store.usage();
    assert!(before.sealed_bytes > 15 * (64 << 10), "{before:?}");
    assert!(after.sealed_bytes <= 3 * (64 << 10), "{after:?}");
    assert!(read_all(&store, LogId(1)) == expected);
}

#[test]
fn packed_segments_are_packed_again_and_survive_a_start() {
    let (disk, store) = fresh(small());
    let mut expected = Vec::new();
    let mut packed = 0;
    for n in 0..900i64 {
        let entry = batch(1 + (n % 5) as u32, n / 5, 1, n, &[n as u8; 40]);
        if entry.log == LogId(3) {
            expected.extend(stored(&entry));
        }
        store.append_batch(entry);
        commit(&store);
        if n % 100 == 99 {
            for log in [1, 2, 4, 5] {
                store.set_log_start(LogId(log), n / 5 - 3);
            }
            store.write_snapshot(store.committed(), b"s").unwrap();
            loop {
                let done = store.maintain().unwrap();
                packed += done.packed;
                if !done.more {
                    break;
                }
            }
        }
    }
    assert!(packed > 40, "{packed} segments packed");
    assert!(read_all(&store, LogId(3)) == expected);
    drop(store);
    let (store, _) = open_manual(Path::new(FOLDER), disk, small()).unwrap();
    assert!(read_all(&store, LogId(3)) == expected);
}

#[test]
fn a_dropped_log_gives_its_segments_back() {
    let (disk, store) = fresh(small());
    for n in 0..200 {
        store.append_batch(batch(1, n, 1, n, &[1; 3000]));
        commit(&store);
    }
    store.drop_log(LogId(1));
    assert!(store.logs().is_empty());
    assert_eq!(store.read(LogId(1), 0, 200, 1 << 20, true).unwrap().len(), 0);
    snapshot_and_maintain(&store);
    let usage = store.usage();
    assert_eq!(
        (usage.segments, usage.spare_segments),
        (2, 2),
        "the newest sealed one stays: {usage:?}"
    );
    drop(store);
    // The store does not remember: whoever opens it says again which logs are gone.
    let (store, _) = open_manual(Path::new(FOLDER), disk, small()).unwrap();
    assert_eq!(store.logs(), [LogId(1)]);
    store.drop_log(LogId(1));
    assert!(store.logs().is_empty());
}

#[test]
fn entries_behind_the_snapshots_are_never_freed() {
    let (disk, store) = fresh(small());
    let mut states = Vec::new();
    for n in 0..200u64 {
        store.append_state(vec![n as u8; 3000]);
        states.push((Lsn(n + 1), Item::State(vec![n as u8; 3000])));
        commit(&store);
        if n == 50 || n == 120 {
            store.write_snapshot(store.committed(), &[n as u8]).unwrap();
        }
        store.maintain().unwrap();
    }
    drop(store);
    // The newest snapshot is damaged: everything behind the one before must still be there.
    let newest = Path::new("/d/snapshots").join(format!("{:016x}.snap", 121));
    assert!(disk.flip_bit(&newest, 30, 0));
    let (_, recorder) = open_manual(Path::new(FOLDER), disk, small()).unwrap();
    assert_eq!(recorder.snapshot, Some(vec![50]));
    assert!(recorder.items == states[51..]);
}

#[test]
fn a_full_disk_keeps_what_is_queued_and_goes_on_when_there_is_room() {
    let disk = Arc::new(SimDisk::new(4));
    disk.set_capacity(5 * (64 << 10));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let mut appended = 0i64;
    let mut low_at = None;
    let full = loop {
        store.append_batch(batch(1, appended, 1, appended, &[1; 3000]));
        appended += 1;
        let step = store.commit_once();
        if store.space().low {
            low_at.get_or_insert(appended);
        }
        if step != Step::Committed {
            break step;
        }
    };
    assert_eq!(full, Step::Full);
    assert!(store.poisoned().is_none());
    let committed = store.committed();
    assert_eq!(committed.0 as i64, appended - 1);
    assert!(
        low_at.is_some_and(|at| at + 10 < appended),
        "low at {low_at:?}, full at {appended}"
    );
    assert_eq!(store.commit_once(), Step::Full, "and stays so");

    store.set_log_start(LogId(1), appended - 2);
    snapshot_and_maintain(&store);
    assert_eq!(store.commit_once(), Step::Committed);
    assert_eq!(store.committed().0 as i64, appended);
    assert!(!store.space().low, "{:?}", store.space());
    assert_eq!(
        store
            .read(LogId(1), appended - 1, appended, 1, true)
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn little_free_space_is_told_before_it_is_gone() {
    let disk = Arc::new(SimDisk::new(4));
    let options = Options {
        free_bytes_min: Some(1 << 20),
        spare_segments: 0,
        ..small()
    };
    disk.set_capacity(1 << 20);
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), options).unwrap();
    assert!(store.space().low);
    disk.set_capacity(4 << 20);
    store.maintain().unwrap();
    assert!(!store.space().low, "{:?}", store.space());
}

#[test]
fn a_start_without_any_space_says_so() {
    let disk = Arc::new(SimDisk::new(4));
    disk.set_capacity(10_000);
    let error = open_manual(Path::new(FOLDER), disk, small()).unwrap_err();
    assert!(matches!(error, OpenError::Full { .. }), "{error}");
}

#[test]
fn a_read_only_file_system_is_named() {
    let disk = Arc::new(SimDisk::new(4));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    store.close();
    disk.set_read_only(true);
    let error = open_manual(Path::new(FOLDER), disk, small()).unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error}");
}

#[test]
fn an_entry_larger_than_a_segment_gets_a_larger_segment() {
    let (disk, store) = fresh(small());
    let entries: Vec<_> = (0..4)
        .map(|n| batch(1, n, 1, n, &vec![n as u8; 150_000]))
        .collect();
    let expected: Vec<u8> = entries.iter().flat_map(stored).collect();
    for entry in entries {
        store.append_batch(entry);
        store.append_state(vec![7; 100]);
        commit(&store);
    }
    assert!(read_all(&store, LogId(1)) == expected);
    drop(store);
    let (store, recorder) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    assert_eq!(recorder.items.len(), 8);
    assert!(read_all(&store, LogId(1)) == expected);
    store.append_batch(batch(1, 4, 1, 4, &[0; 10]));
    commit(&store);
    store.set_log_start(LogId(1), 4);
    snapshot_and_maintain(&store);
    assert!(wal_bytes(&disk) < 8 * (64 << 10), "{}", wal_bytes(&disk));
}

#[test]
fn a_failed_write_ends_all_committing_and_is_told_but_reads_go_on() {
    for fault in [Fault::IoError, Fault::NoSpace] {
        let (disk, store) = fresh(small());
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        store.on_event(Box::new({
            let told = Arc::clone(&told);
            move |event| {
                if let Event::Poisoned { message } = event {
                    told.lock().unwrap().push(message);
                }
            }
        }));
        store.append_batch(batch(1, 0, 1, 0, b"kept"));
        commit(&store);
        disk.fault_at(disk.operations(), fault);
        store.append_batch(batch(1, 1, 1, 1, b"lost"));
        assert_eq!(store.commit_once(), Step::Poisoned);
        store.append_batch(batch(1, 2, 1, 2, b"refused"));
        assert_eq!(
            store.commit_once(),
            Step::Poisoned,
            "also when the disk works again"
        );
        assert_eq!(store.committed(), Lsn(1));
        assert_eq!(told.lock().unwrap().len(), 1);
        assert!(
            told.lock().unwrap()[0].contains("0000000000000001.seg"),
            "{told:?}"
        );
        assert_eq!(store.read(LogId(1), 0, 10, 1000, true).unwrap().len(), 1);
        let refused = store.write_snapshot(Lsn(2), b"").unwrap_err();
        assert!(matches!(refused, SnapshotError::Stopped(_)), "{refused}");
        assert!(!store.close());
    }
}

#[test]
fn a_snapshot_of_what_is_not_committed_is_refused() {
    let (_, store) = fresh(small());
    let lsn = store.append_state(vec![1]);
    let refused = store.write_snapshot(lsn, b"").unwrap_err();
    assert!(
        matches!(
            refused,
            SnapshotError::NotCommitted {
                at: Lsn(1),
                committed: Lsn(0)
            }
        ),
        "{refused}"
    );
}

#[test]
fn readers_are_not_disturbed_by_freeing_and_packing() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        cache_bytes: 8 << 10,
        index_cache_bytes: 1 << 10,
        ..small()
    };
    let (store, _) = open(folder.path(), Arc::new(RealDisk), options).unwrap();
    let done = AtomicBool::new(false);
    let (store, done) = (&store, &done);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) || rounds < 3 {
                    rounds += 1;
                    let all = read_all(store, LogId(2));
                    assert_eq!(all.len() % (61 + 200), 0);
                    assert!(
                        all.chunks_exact(261)
                            .enumerate()
                            .all(|(n, batch)| batch[61..] == [n as u8; 200])
                    );
                }
            });
        }
        for n in 0..1500i64 {
            store.append_batch(batch(1, n, 1, n, &[9; 2000]));
            if n % 5 == 0 {
                store.append_batch(batch(2, n / 5, 1, n, &[(n / 5) as u8; 200]));
            }
            assert!(store.wait_committed(store.last()));
            if n % 40 == 39 {
                store.set_log_start(LogId(1), n - 5);
                snapshot_and_maintain(store);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    settle(store);
    assert!(store.usage().sealed_bytes < 5 * (64 << 10), "{:?}", store.usage());
}

#[test]
fn an_entry_larger_than_a_segment_waits_for_space_too() {
    let (disk, store) = fresh(small());
    disk.set_capacity(200_000);
    let entry = batch(1, 0, 1, 0, &[5; 150_000]);
    store.append_batch(entry.clone());
    assert_eq!(store.commit_once(), Step::Full);
    assert!(store.poisoned().is_none());
    disk.set_capacity(u64::MAX);
    assert_eq!(store.commit_once(), Step::Committed);
    assert!(read_all(&store, LogId(1)) == stored(&entry));
}

#[test]
fn a_listener_may_hold_the_last_reference_to_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), Arc::new(RealDisk), small()).unwrap();
    let slot = Arc::new(std::sync::Mutex::new(None));
    let (told, wait) = std::sync::mpsc::channel();
    store.on_commit(Box::new({
        let slot = Arc::clone(&slot);
        move |_| {
            drop(slot.lock().unwrap().take());
            told.send(()).unwrap();
        }
    }));
    let mut held = slot.lock().unwrap();
    store.append_state(vec![1]);
    *held = Some(store);
    drop(held);
    wait.recv().unwrap();
    // The lock was given back with the store.
    open(folder.path(), Arc::new(RealDisk), small()).unwrap();
}

#[test]
fn an_empty_active_segment_still_knows_where_the_log_stood() {
    // How many operations there were when the commit that rolls began.
    let run = |cut: Option<u64>| {
        let disk = Arc::new(SimDisk::new(6));
        if let Some(cut) = cut {
            disk.fault_at(cut, Fault::PowerCut);
        }
        let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
        for n in 0.. {
            let before = disk.operations();
            store.append_batch(batch(1, n, 1, n, &[1; 3000]));
            if store.commit_once() != Step::Committed || store.usage().segments == 3 {
                return (disk, before, store.committed());
            }
        }
        unreachable!("it rolls at some time")
    };
    let (_, rolls, _) = run(None);
    // The footer is written and synced; the power goes before the first group of the next segment.
    let (disk, _, committed) = run(Some(rolls + 2));
    let disk = Arc::new(disk.power_cycle(0));
    for _ in 0..2 {
        let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
        assert!(
            store.committed() == committed,
            "{} and {committed}",
            store.committed()
        );
        store.set_log_start(LogId(1), 1000);
        snapshot_and_maintain(&store);
        assert_eq!(store.usage().segments, 2);
    }
}
