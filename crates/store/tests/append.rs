//! What a commit group makes of the queue.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Options, Step, Store};
use common::{Item, batch, joined, open_manual, read_all, small, stored};

const FOLDER: &str = "/d";

fn fresh(options: Options) -> (Arc<SimDisk>, Store) {
    let disk = Arc::new(SimDisk::new(3));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), options).unwrap();
    (disk, store)
}

#[test]
fn nothing_is_visible_before_it_is_committed() {
    let (_, store) = fresh(small());
    assert_eq!(store.append_batch(batch(1, 0, 1, 7, b"x")), Lsn(1));
    assert_eq!((store.last(), store.committed()), (Lsn(1), Lsn(0)));
    assert_eq!(store.try_read(LogId(1), 0, 10, 1000, true), Some(vec![]));
    assert_eq!(store.max_timestamp(LogId(1)), None);
    assert_eq!(store.commit_once(), Step::Committed);
    assert_eq!(store.committed(), Lsn(1));
    assert_eq!(store.try_read(LogId(1), 0, 10, 1000, true).unwrap().len(), 1);
    assert_eq!(store.commit_once(), Step::Idle);
}

#[test]
fn the_batches_of_a_log_in_one_group_are_one_slice() {
    let (_, store) = fresh(small());
    let mut expected = Vec::new();
    for n in 0..30 {
        let entry = batch(1 + n % 3, i64::from(n / 3), 1, 0, &[n as u8; 50]);
        if n % 3 == 1 {
            expected.extend(stored(&entry));
        }
        store.append_batch(entry);
    }
    assert_eq!(store.commit_once(), Step::Committed);
    let slices = store.try_read(LogId(2), 0, 10, 1 << 20, true).unwrap();
    assert_eq!(slices.len(), 1);
    assert!(joined(&slices) == expected);
}

#[test]
fn offset_and_epoch_are_filled_in_and_nothing_else_is_changed() {
    let (_, store) = fresh(small());
    let sent = batch(1, 1 << 40, 3, 99, b"the rest");
    store.append_batch(sent.clone());
    store.commit_once();
    let found = joined(&store.try_read(LogId(1), 1 << 40, i64::MAX, 1000, true).unwrap());
    assert_eq!(found[..8], (1i64 << 40).to_be_bytes());
    assert_eq!(found[12..16], 5i32.to_be_bytes());
    assert_eq!(found[8..12], sent.bytes[8..12]);
    assert_eq!(found[16..], sent.bytes[16..]);
}

#[test]
fn a_replay_is_in_the_order_of_the_appends_however_a_group_is_laid_out() {
    let (disk, store) = fresh(small());
    let mut expected = Vec::new();
    for n in 0..40u32 {
        let lsn = if n % 3 == 2 {
            expected.push(Item::State(vec![n as u8; 30]));
            store.append_state(vec![n as u8; 30])
        } else {
            let entry = batch(1 + n % 2, i64::from(n), 1, 0, &[n as u8; 20]);
            expected.push(Item::Batch(entry.log, stored(&entry)));
            store.append_batch(entry)
        };
        assert_eq!(lsn, Lsn(u64::from(n) + 1));
    }
    assert_eq!(store.commit_once(), Step::Committed);
    assert_eq!(store.committed(), Lsn(40), "all in one group");
    drop(store);
    let (_, recorder) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let numbered: Vec<_> = expected
        .into_iter()
        .zip(1..)
        .map(|(item, lsn)| (Lsn(lsn), item))
        .collect();
    assert!(recorder.items == numbered);
}

#[test]
fn a_long_queue_becomes_several_groups() {
    let (_, store) = fresh(small());
    for n in 0..30 {
        store.append_batch(batch(1, n, 1, 0, &[1; 2000]));
    }
    let mut groups = 0;
    while store.commit_once() == Step::Committed {
        groups += 1;
    }
    // A group takes a quarter of a segment of 64 KiB.
    assert_eq!(groups, 5);
    assert_eq!(store.committed(), Lsn(30));
}

#[test]
fn a_commit_tells_the_new_end_of_each_log_once() {
    let (_, store) = fresh(small());
    let told = Arc::new(Mutex::new(Vec::new()));
    store.on_commit(Box::new({
        let told = Arc::clone(&told);
        move |commit| told.lock().unwrap().push((commit.upto, commit.tails.to_vec()))
    }));
    for (log, base) in [(2, 0), (1, 5), (2, 3), (1, 8)] {
        store.append_batch(batch(log, base, 3, 0, b""));
    }
    store.append_state(vec![1]);
    store.commit_once();
    assert_eq!(
        *told.lock().unwrap(),
        [(Lsn(5), vec![(LogId(1), 11), (LogId(2), 6)])]
    );
}

#[test]
fn memory_for_the_tail_is_bounded_and_what_left_it_is_read_from_disk() {
    let (_, store) = fresh(Options {
        cache_bytes: 64 << 10,
        ..small()
    });
    let mut expected = Vec::new();
    for n in 0..100 {
        let entry = batch(1, n, 1, n, &[n as u8; 5000]);
        expected.extend(stored(&entry));
        store.append_batch(entry);
        store.commit_once();
        assert!(store.usage().cache_bytes <= 64 << 10);
    }
    assert_eq!(store.try_read(LogId(1), 10, 100, 1 << 20, true), None);
    assert_eq!(store.try_read(LogId(1), 99, 100, 1 << 20, true).unwrap().len(), 1);
    assert!(read_all(&store, LogId(1)) == expected);
}

#[test]
fn readers_keep_what_they_were_given_while_memory_is_used_again() {
    let (_, store) = fresh(Options {
        cache_bytes: 16 << 10,
        ..small()
    });
    let mut held = Vec::new();
    for n in 0..60 {
        let entry = batch(1, n, 1, n, &[n as u8; 3000]);
        let bytes = stored(&entry);
        store.append_batch(entry);
        store.commit_once();
        held.push((bytes, store.try_read(LogId(1), n, n + 1, 1, true).unwrap()));
    }
    assert!(held.iter().all(|(bytes, slices)| joined(slices) == *bytes));
}
