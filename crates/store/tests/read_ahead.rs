//! Reading sealed segments: ahead of who reads on, within a bound, and never past damage in silence.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_core::ids::LogId;
use anabranch_store::sim_disk::SimDisk;
use anabranch_store::{Options, ReadError, Step, Store};
use common::{batch, joined, open, open_manual, small, stored};

const FOLDER: &str = "/d";
const LOG: LogId = LogId(1);
const BATCHES: i64 = 200;
const BODY_BYTES: usize = 5000;

/// A folder with 200 batches in some twenty sealed segments, each its own group; and their stored bytes.
fn folder() -> (Arc<SimDisk>, Vec<Vec<u8>>) {
    let disk = Arc::new(SimDisk::new(9));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let mut all = Vec::new();
    for n in 0..BATCHES {
        let entry = batch(LOG.0, n, 1, n, &vec![n as u8; BODY_BYTES]);
        all.push(stored(&entry));
        store.append_batch(entry);
        while store.commit_once() == Step::Committed {}
    }
    // So that no start replays them, and meets damage by itself.
    store.write_snapshot(store.committed(), b"").unwrap();
    assert!(store.close());
    (disk, all)
}

fn options(read_cache_bytes: usize) -> Options {
    Options {
        cache_bytes: 8 << 10,
        read_cache_bytes,
        ..small()
    }
}

fn one(store: &Store, offset: i64) -> Vec<u8> {
    joined(&store.read(LOG, offset, BATCHES, BODY_BYTES, true).unwrap())
}

fn first_segment(disk: &SimDisk) -> PathBuf {
    let is_segment = |path: &PathBuf| path.starts_with("/d/wal");
    disk.files().into_iter().find(is_segment).unwrap()
}

#[test]
fn what_comes_next_is_in_memory_before_it_is_asked_for() {
    let (disk, all) = folder();
    let (store, _) = open(Path::new(FOLDER), disk, options(8 << 20)).unwrap();
    assert_eq!(one(&store, 0), all[0]);
    assert_eq!(one(&store, 1), all[1]);
    // The window is larger than the log: all of it comes.
    let limit = Instant::now() + Duration::from_secs(20);
    for offset in 2..BATCHES {
        let found = loop {
            if let Some(found) = store.try_read(LOG, offset, BATCHES, BODY_BYTES, true) {
                break found;
            }
            assert!(Instant::now() < limit, "offset {offset} is not read ahead");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(joined(&found), all[offset as usize]);
    }
    assert!(store.close());
}

#[test]
fn the_rest_of_what_was_read_is_kept_also_without_a_thread() {
    let (disk, all) = folder();
    let (store, _) = open_manual(Path::new(FOLDER), disk, options(8 << 20)).unwrap();
    // The read reaches for 20,000 bytes, and the answer takes them.
    let some = store.read(LOG, 0, BATCHES, 20_000, true).unwrap();
    assert_eq!(joined(&some), all[..3].concat());
    assert!(store.try_read(LOG, 1, BATCHES, 1, true).is_some());
    assert!(store.try_read(LOG, 50, BATCHES, 1, true).is_none());
}

#[test]
fn memory_for_what_was_read_is_bounded_also_while_answers_hold_it() {
    let (disk, all) = folder();
    let bound = 64 << 10;
    let (store, _) = open(Path::new(FOLDER), disk, options(bound)).unwrap();
    let mut held = Vec::new();
    for offset in 0..BATCHES {
        held.push(store.read(LOG, offset, BATCHES, BODY_BYTES, true).unwrap());
        assert!(store.usage().read_cache_bytes <= bound);
    }
    for (slices, expected) in held.iter().zip(&all) {
        assert_eq!(joined(slices), *expected);
    }
    drop(held);
    assert!(store.usage().read_cache_bytes <= bound);
    assert_eq!(one(&store, 100), all[100]);
}

#[test]
fn what_lies_before_damage_can_be_read_and_the_damage_is_named_to_who_gets_there() {
    let (disk, all) = folder();
    // The third batch of the first segment: a header block, then groups of two blocks.
    let file = first_segment(&disk);
    assert!(disk.flip_bit(&file, 4096 + 2 * 8192 + 500, 3));
    for ahead in [false, true] {
        let disk = Arc::new(disk.duplicate());
        let (store, _) = match ahead {
            false => open_manual(Path::new(FOLDER), disk, options(8 << 20)).unwrap(),
            true => open(Path::new(FOLDER), disk, options(8 << 20)).unwrap(),
        };
        let mut read = Vec::new();
        let error = loop {
            match store.read(LOG, read.len() as i64, BATCHES, 2 * BODY_BYTES, true) {
                Ok(slices) => read.extend(slices.iter().map(|slice| slice.to_vec())),
                Err(error) => break error,
            }
            assert!(read.len() < 3, "damage was handed out");
        };
        assert!(read == all[..2], "{} batches before the damage", read.len());
        let ReadError::Damaged(damage) = error else {
            panic!("{error}")
        };
        assert_eq!(
            (damage.file, damage.position),
            (file.clone(), 4096 + 2 * 8192 + 64)
        );
        let behind = store.read(LOG, 3, BATCHES, 2 * BODY_BYTES, true).unwrap();
        assert!(joined(&behind).starts_with(&all[3]));
    }
}
