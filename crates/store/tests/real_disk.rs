//! The store on the operating system's files.

mod common;

use std::sync::{Arc, Mutex};

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::{Event, OpenError, Options, RealDisk, Store};
use common::{Item, Recorder, batch, joined, open, read_all, small, stored};

fn disk() -> Arc<RealDisk> {
    Arc::new(RealDisk)
}

#[test]
fn what_was_appended_is_read_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    let (first, second) = (batch(1, 0, 3, 100, b"abc"), batch(1, 3, 1, 101, b"d"));
    assert_eq!(store.append_batch(first.clone()), Lsn(1));
    assert_eq!(store.append_state(b"create".to_vec()), Lsn(2));
    assert_eq!(store.append_batch(second.clone()), Lsn(3));
    assert!(store.wait_committed(Lsn(3)));
    let both = [stored(&first), stored(&second)].concat();
    assert_eq!(
        joined(&store.try_read(LogId(1), 0, 4, 1 << 20, true).unwrap()),
        both
    );
    assert!(store.close());

    let (store, replayed) = open(folder.path(), disk(), small()).unwrap();
    let expected = [
        (Lsn(1), Item::Batch(LogId(1), stored(&first))),
        (Lsn(2), Item::State(b"create".to_vec())),
        (Lsn(3), Item::Batch(LogId(1), stored(&second))),
    ];
    assert_eq!(replayed.items, expected);
    assert!(store.recovered().clean);
    assert_eq!(
        store.try_read(LogId(1), 0, 4, 1 << 20, true),
        None,
        "not in memory after a start"
    );
    assert_eq!(joined(&store.read(LogId(1), 0, 4, 1 << 20, true).unwrap()), both);
}

#[test]
fn segments_roll_and_everything_is_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    let mut expected = Vec::new();
    for n in 0..400i64 {
        let entry = batch(n as u32 % 3, n / 3, 1, n, &[n as u8; 900]);
        expected.push((Lsn(n as u64 + 1), Item::Batch(entry.log, stored(&entry))));
        let lsn = store.append_batch(entry);
        assert!(store.wait_committed(lsn));
    }
    assert!(store.usage().segments > 5);
    drop(store);

    let (store, replayed) = open(folder.path(), disk(), small()).unwrap();
    assert!(!store.recovered().clean);
    assert!(replayed.items == expected);
    let read = read_all(&store, LogId(1));
    let of_log: Vec<u8> = expected
        .iter()
        .filter_map(|(_, item)| match item {
            Item::Batch(LogId(1), bytes) => Some(bytes.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(
        read == of_log,
        "{} bytes read, {} expected",
        read.len(),
        of_log.len()
    );
}

#[test]
fn a_second_process_is_told_who_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    let error = open(folder.path(), disk(), small()).unwrap_err();
    assert!(
        matches!(error, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()),
        "{error}"
    );
    drop(store);
    open(folder.path(), disk(), small()).unwrap();
}

#[test]
fn a_folder_with_other_content_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let error = open(folder.path(), disk(), small()).unwrap_err();
    assert!(
        matches!(&error, OpenError::ForeignFolder { entry, .. } if entry == "thesis.txt"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing was created"
    );
}

#[test]
fn a_folder_of_a_later_release_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), disk(), small()).unwrap().0.close();
    let meta = folder.path().join("META");
    let text = std::fs::read_to_string(&meta)
        .unwrap()
        .replace("format.version=1", "format.version=2");
    std::fs::write(&meta, text).unwrap();
    let error = open(folder.path(), disk(), small()).unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::NewerFormat {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_missing_meta_is_damage_and_not_a_new_folder() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), disk(), small()).unwrap().0.close();
    std::fs::remove_file(folder.path().join("META")).unwrap();
    let error = open(folder.path(), disk(), small()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn the_cluster_id_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    let id = store.cluster_id();
    assert_eq!(id.len(), 22);
    store.close();
    assert_eq!(open(folder.path(), disk(), small()).unwrap().0.cluster_id(), id);
}

#[test]
fn the_first_start_with_the_defaults_is_quick() {
    let folder = tempfile::tempdir().unwrap();
    let begin = std::time::Instant::now();
    let (store, _) = open(folder.path(), disk(), Options::default()).unwrap();
    let lsn = store.append_state(vec![1]);
    assert!(store.wait_committed(lsn));
    // 50 ms on a quiet machine; the bound leaves room for a busy one.
    assert!(begin.elapsed().as_millis() < 2000, "{:?}", begin.elapsed());
}

#[test]
fn appends_of_many_threads_keep_the_order_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    let log_lock = Mutex::new(0i64);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let mut next = log_lock.lock().unwrap();
                    let lsn = store.append_batch(batch(7, *next, 2, *next, &[1; 300]));
                    *next += 2;
                    drop(next);
                    assert!(store.wait_committed(lsn));
                }
            });
        }
    });
    let (store, recorder) = reopen(store, folder.path());
    assert_eq!(recorder.items.len(), 800);
    let mut at = 0i64;
    for (nth, (lsn, item)) in recorder.items.iter().enumerate() {
        let Item::Batch(_, bytes) = item else {
            panic!("{item:?}")
        };
        assert_eq!(lsn.0, nth as u64 + 1);
        assert_eq!(bytes[..8], at.to_be_bytes());
        at += 2;
    }
    drop(store);
}

fn reopen(store: Store, folder: &std::path::Path) -> (Store, Recorder) {
    assert!(store.close());
    open(folder, disk(), small()).expect("a closed folder opens")
}

#[test]
fn commits_are_told_in_order_and_after_they_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let sealed = Arc::new(Mutex::new(0));
    store.on_commit(Box::new({
        let told = Arc::clone(&told);
        move |commit| told.lock().unwrap().push((commit.upto, commit.tails.to_vec()))
    }));
    store.on_event(Box::new({
        let sealed = Arc::clone(&sealed);
        move |event| {
            if matches!(event, Event::SegmentSealed { .. }) {
                *sealed.lock().unwrap() += 1;
            }
        }
    }));
    for n in 0..100 {
        store.append_batch(batch(n as u32 % 2, n / 2, 1, 0, &[0; 2000]));
    }
    store.close();
    let told = told.lock().unwrap();
    assert!(told.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(told.last().unwrap().0, Lsn(100));
    let last_of = |log| {
        told.iter()
            .flat_map(|(_, tails)| tails)
            .filter(|(l, _)| *l == LogId(log))
            .map(|t| t.1)
            .max()
    };
    assert_eq!((last_of(0), last_of(1)), (Some(50), Some(50)));
    assert!(*sealed.lock().unwrap() >= 2);
}

#[test]
fn freed_segments_are_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    for n in 0..300i64 {
        let lsn = store.append_batch(batch(1, n, 1, n, &[7; 1500]));
        store.wait_committed(lsn);
        if n % 20 == 19 {
            store.write_snapshot(lsn, b"state").unwrap();
            store.set_log_start(LogId(1), n - 10);
            store.maintain().unwrap();
        }
    }
    let usage = store.usage();
    assert!(usage.segments <= 6, "{usage:?}");
    assert!(usage.spare_segments <= 2, "{usage:?}");
    let files = std::fs::read_dir(folder.path().join("wal")).unwrap().count();
    assert!(
        files <= usage.segments + usage.spare_segments + 2,
        "{files} files, {usage:?}"
    );
    assert_eq!(
        store
            .read(LogId(1), 290, 300, 1 << 20, true)
            .unwrap()
            .concat()
            .len(),
        10 * 1561
    );
}

#[test]
fn a_burst_of_several_groups_is_committed_without_a_further_append() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path(), disk(), small()).unwrap();
    for n in 0..200 {
        store.append_batch(batch(1, n, 1, 0, &[1; 1000]));
    }
    assert!(store.wait_committed(Lsn(200)));
}
