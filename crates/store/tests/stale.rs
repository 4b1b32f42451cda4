//! Remains of groups that were discarded, and of earlier uses of a file, are never taken for a part of the log.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::Lsn;
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Durability, OpenError, Options, Step, Store};
use common::{Item, batch, open_manual, small, stored};

const FOLDER: &str = "/d";
const SEGMENT: &str = "/d/wal/0000000000000001.seg";

fn relaxed() -> Options {
    Options {
        durability: Durability::Relaxed,
        ..small()
    }
}

fn reopened(disk: &Arc<SimDisk>) -> (Store, Vec<(Lsn, Item)>) {
    let (store, recorder) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(disk), relaxed()).unwrap();
    (store, recorder.items)
}

/// A folder with one entry, open twice: two futures that may differ.
fn fork() -> [(Arc<SimDisk>, Store); 2] {
    let disk = Arc::new(SimDisk::new(1));
    let (store, _) = reopened(&disk);
    store.append_state(b"common past".to_vec());
    assert_eq!(store.commit_once(), Step::Committed);
    drop(store);
    [(), ()].map(|()| {
        let copy = Arc::new(disk.duplicate());
        let (store, _) = reopened(&copy);
        (copy, store)
    })
}

/// The disk, after the process that used it ended.
fn killed((disk, store): (Arc<SimDisk>, Store)) -> Arc<SimDisk> {
    drop(store);
    disk
}

#[test]
fn a_group_is_not_completed_by_the_frames_of_another() {
    let [old, new] = fork();
    for ((_, store), word) in [(&old, b"old"), (&new, b"new")] {
        store.append_state(word.to_vec());
        store.append_state([&word[..], b" too"].concat());
        assert_eq!(store.commit_once(), Step::Committed);
    }
    let (old, new) = (&killed(old), &killed(new));
    // The header and the first frame are the new group's; the second frame is what the old one had left.
    let second_frame = 8192 + 64 + 56;
    let mut content = new.content(Path::new(SEGMENT)).unwrap();
    let remains = &old.content(Path::new(SEGMENT)).unwrap()[second_frame..second_frame + 64];
    assert_ne!(&content[second_frame..second_frame + 64], remains);
    content[second_frame..second_frame + 64].copy_from_slice(remains);
    assert!(new.replace(Path::new(SEGMENT), &content));
    let (store, items) = reopened(new);
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(store.committed(), Lsn(1));
}

#[test]
fn a_group_that_followed_another_is_not_taken() {
    let [old, new] = fork();
    for ((_, store), word) in [(&old, b"old"), (&new, b"new")] {
        store.append_state(word.to_vec());
        assert_eq!(store.commit_once(), Step::Committed);
    }
    old.1.append_state(b"behind the old one".to_vec());
    assert_eq!(old.1.commit_once(), Step::Committed);
    let (old, new) = (&killed(old), &killed(new));
    let mut content = new.content(Path::new(SEGMENT)).unwrap();
    let third = 3 * 4096..4 * 4096;
    content[third.clone()].copy_from_slice(&old.content(Path::new(SEGMENT)).unwrap()[third]);
    assert!(new.replace(Path::new(SEGMENT), &content));
    let (_, items) = reopened(new);
    let expected = [b"common past".to_vec(), b"new".to_vec()].map(Item::State);
    assert!(items.iter().map(|(_, item)| item).eq(&expected), "{items:?}");
}

#[test]
fn a_recycled_file_holds_nothing_of_its_earlier_use() {
    let disk = Arc::new(SimDisk::new(2));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let mut last = None;
    for n in 0..200 {
        let entry = batch(1, n, 1, n, &[n as u8; 1000]);
        last = Some(stored(&entry));
        store.append_batch(entry);
        assert_eq!(store.commit_once(), Step::Committed);
        if n % 20 == 19 {
            store.write_snapshot(store.committed(), b"").unwrap();
            store.set_log_start(anabranch_core::ids::LogId(1), n);
            while store.maintain().unwrap().more {}
        }
    }
    drop(store);
    // The active file had been filled before: behind its last group lie whole groups of then.
    let active = disk
        .files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "seg"))
        .count();
    assert!(active >= 3);
    let (store, recorder) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    assert_eq!(store.committed(), Lsn(200));
    let stale = disk
        .files()
        .iter()
        .filter_map(|path| disk.content(path))
        .map(|content| {
            content
                .chunks(4096)
                .filter(|block| block.starts_with(b"ABGR"))
                .count()
        })
        .sum::<usize>();
    assert!(
        stale > 60,
        "{stale} group headers on disk: the files were not used again, and the test shows nothing"
    );
    if let Some((_, Item::Batch(_, bytes))) = recorder.items.last() {
        assert_eq!(Some(bytes), last.as_ref());
    }
}

/// The epoch in each segment file's header.
fn epochs(disk: &SimDisk) -> Vec<u64> {
    let headers = disk
        .files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "seg"));
    headers
        .map(|path| u64::from_le_bytes(*disk.content(&path).unwrap()[40..].first_chunk().unwrap()))
        .collect()
}

#[test]
fn every_use_of_a_file_has_an_epoch_of_its_own_also_after_a_start() {
    let disk = Arc::new(SimDisk::new(2));
    let open = || {
        open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small())
            .unwrap()
            .0
    };
    let fill = |store: &Store, from: i64| {
        for n in from..from + 40 {
            store.append_batch(batch(1, n, 1, n, &[0; 3000]));
            assert_eq!(store.commit_once(), Step::Committed);
        }
    };
    let store = open();
    fill(&store, 0);
    // All that was sealed becomes spare, the files with the highest epochs but for the active and the prepared one.
    store.write_snapshot(store.committed(), b"").unwrap();
    store.set_log_start(anabranch_core::ids::LogId(1), 40);
    while store.maintain().unwrap().more {}
    assert!(store.usage().spare_segments > 0);
    drop(store);
    // As if the newest segments had been removed: only the spare ones tell which epochs were used.
    let highest = *epochs(&disk).iter().max().unwrap();
    for path in disk.files() {
        if path.starts_with("/d/wal") && !path.to_string_lossy().contains("spare")
            || path.starts_with("/d/snapshots")
        {
            assert!(disk.take_away(&path));
        }
    }
    let spare = epochs(&disk);
    assert!(!spare.is_empty() && spare.iter().all(|epoch| *epoch < highest));
    let store = open();
    fill(&store, 0);
    let (unused, in_use): (Vec<_>, Vec<_>) =
        epochs(&disk).into_iter().partition(|epoch| spare.contains(epoch));
    assert!(
        unused.is_empty(),
        "all spare files are used again, under other epochs: {unused:?}"
    );
    assert!(
        in_use.len() >= 3 && in_use.iter().min() > spare.iter().max(),
        "{in_use:?} after {spare:?}"
    );
    drop(store);
}

#[test]
fn an_orderly_close_makes_everything_durable_also_in_relaxed_mode() {
    let disk = Arc::new(SimDisk::new(3));
    let (store, _) = reopened(&disk);
    for n in 0..5 {
        store.append_batch(batch(1, n, 1, n, b"relaxed"));
        assert_eq!(store.commit_once(), Step::Committed);
    }
    assert!(store.close());
    for cut in 0..30 {
        let (store, items) = reopened(&Arc::new(disk.power_cycle(cut)));
        assert_eq!(items.len(), 5);
        assert!(store.recovered().clean);
    }
    // And it proves so: damage of the last group is not taken for a torn end.
    assert!(disk.flip_bit(Path::new(SEGMENT), 5 * 4096 + 20, 0));
    let refused = open_manual(Path::new(FOLDER), disk, relaxed()).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
}
