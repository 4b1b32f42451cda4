//! Flipped bits, zeroed blocks, cut and missing files: noticed, named, never silently wrong, and nothing is deleted.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn, Offset};
use anabranch_store::sim_disk::{Rng, SimDisk};
use anabranch_store::{OpenError, ReadError, Step, Store};
use common::{Recorder, batch, open_manual, small, stored};

const FOLDER: &str = "/d";
const LOGS: u32 = 3;

/// A closed folder with packed, sealed and active segments and two snapshots, and what is in it.
struct Folder {
    disk: SimDisk,
    /// Log, base offset, stored bytes.
    batches: Vec<(LogId, Offset, Vec<u8>)>,
    last: Lsn,
}

fn commit(store: &Store) {
    while store.commit_once() == Step::Committed {}
}

fn folder() -> Folder {
    let disk = Arc::new(SimDisk::new(7));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let mut batches = Vec::new();
    let mut append = |from: i64, to: i64, len: usize| {
        for n in from..to {
            let entry = batch(
                n as u32 % LOGS,
                n / i64::from(LOGS),
                1,
                n,
                &vec![n as u8; len + n as usize % 50],
            );
            batches.push((entry.log, entry.base_offset, stored(&entry)));
            store.append_batch(entry);
            store.append_state(vec![n as u8; 20]);
            if n % 2 == 0 {
                commit(&store);
            }
        }
        commit(&store);
    };
    // Mostly padding: packed. Then full segments, some of them behind the snapshots.
    append(0, 120, 100);
    store.write_snapshot(store.committed(), b"early").unwrap();
    let packed = store.maintain().unwrap().packed;
    assert!(packed >= 2, "{packed} packed");
    append(120, 240, 3000);
    store.write_snapshot(store.committed(), b"late").unwrap();
    append(240, 330, 3000);
    assert!(store.usage().segments >= 6, "{:?}", store.usage());
    let last = store.last();
    assert!(store.close());
    Folder {
        disk: disk.duplicate(),
        batches,
        last,
    }
}

fn wal_files(disk: &SimDisk) -> Vec<PathBuf> {
    disk.files()
        .into_iter()
        .filter(|path| path.starts_with("/d/wal"))
        .collect()
}

fn names(error: &OpenError, file: &Path) -> bool {
    error
        .to_string()
        .contains(&*file.file_name().unwrap().to_string_lossy())
}

/// What became of a folder with one damaged file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Refused,
    /// Opened, and so many batches could not be read.
    Opened(usize),
}

/// Opens a damaged folder and checks that nothing in it is silently wrong.
fn examine(folder: &Folder, disk: SimDisk, file: &Path, what: &str) -> Outcome {
    let disk = Arc::new(disk);
    let before: Vec<_> = disk
        .files()
        .iter()
        .map(|path| (path.clone(), disk.content(path)))
        .collect();
    let (store, recorder) = match open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(names(&error, file), "{what}: {error}");
            let after: Vec<_> = disk
                .files()
                .iter()
                .map(|path| (path.clone(), disk.content(path)))
                .collect();
            assert!(before == after, "{what}: a refused folder is left as it is");
            return Outcome::Refused;
        }
    };
    assert_eq!(
        store.committed(),
        folder.last,
        "{what}: nothing is lost without a word"
    );
    check_replay(folder, &store, &recorder, what);
    let mut unreadable = 0;
    for (log, base, bytes) in &folder.batches {
        match store.read(*log, *base, base + 1, 1, true) {
            Ok(slices) => assert!(
                slices.concat() == *bytes,
                "{what}: log {log} offset {base} is wrong"
            ),
            Err(ReadError::Damaged(damage)) => {
                assert_eq!(damage.file, file, "{what}");
                unreadable += 1;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    assert!(
        unreadable < folder.batches.len() / 2,
        "{what}: {unreadable} unreadable"
    );
    Outcome::Opened(unreadable)
}

fn check_replay(folder: &Folder, store: &Store, recorder: &Recorder, what: &str) {
    let first = store.recovered().snapshot.map_or(1, |lsn| lsn.0 + 1);
    assert_eq!(recorder.items.len() as u64, folder.last.0 + 1 - first, "{what}");
    for ((lsn, item), expected) in recorder.items.iter().zip(first..) {
        assert_eq!(lsn.0, expected, "{what}");
        // Batches and states alternate.
        let n = (expected - 1) / 2;
        match item {
            common::Item::Batch(log, bytes) => {
                let (expected_log, _, expected_bytes) = &folder.batches[n as usize];
                assert!(
                    log == expected_log && bytes == expected_bytes,
                    "{what}: entry {lsn}"
                );
            }
            common::Item::State(bytes) => assert_eq!(bytes, &vec![n as u8; 20], "{what}: entry {lsn}"),
        }
    }
}

#[test]
fn the_folder_itself_is_in_order() {
    let folder = folder();
    assert_eq!(
        examine(&folder, folder.disk.duplicate(), Path::new("/"), "untouched"),
        Outcome::Opened(0)
    );
}

#[test]
fn flipped_bits_are_never_silently_wrong() {
    let folder = folder();
    let mut rng = Rng::new(1);
    let (mut refused, mut unreadable, mut harmless) = (0, 0, 0);
    for file in folder.disk.files() {
        let len = folder.disk.content(&file).unwrap().len() as u64;
        let everywhere = (0..60).map(|_| rng.below(len.max(1))).collect::<Vec<_>>();
        // The structures are at the starts of blocks and at the end of the file.
        let blocks = (0..len / 4096)
            .flat_map(|block| [block * 4096 + 4, block * 4096 + 70])
            .collect::<Vec<_>>();
        let end = (1..8)
            .map(|n| len.saturating_sub(4096 - 13 * n))
            .collect::<Vec<_>>();
        for byte in everywhere.into_iter().chain(blocks).chain(end) {
            let disk = folder.disk.duplicate();
            if !disk.flip_bit(&file, byte, (byte % 8) as u8) {
                continue;
            }
            match examine(
                &folder,
                disk,
                &file,
                &format!("byte {byte} of {}", file.display()),
            ) {
                Outcome::Refused => refused += 1,
                Outcome::Opened(0) => harmless += 1,
                Outcome::Opened(_) => unreadable += 1,
            }
        }
    }
    assert!(
        refused > 50 && unreadable > 50 && harmless > 50,
        "{refused} {unreadable} {harmless}"
    );
}

#[test]
fn zeroed_blocks_are_never_silently_wrong() {
    let folder = folder();
    for file in wal_files(&folder.disk) {
        let content = folder.disk.content(&file).unwrap();
        for block in 0..content.len() / 4096 {
            let mut zeroed = content.clone();
            zeroed[block * 4096..(block + 1) * 4096].fill(0);
            let disk = folder.disk.duplicate();
            assert!(disk.replace(&file, &zeroed));
            examine(
                &folder,
                disk,
                &file,
                &format!("block {block} of {} zeroed", file.display()),
            );
        }
    }
}

#[test]
fn cut_files_are_noticed() {
    let folder = folder();
    for file in wal_files(&folder.disk) {
        if file.to_string_lossy().contains("spare") {
            continue;
        }
        let content = folder.disk.content(&file).unwrap();
        for len in [
            0,
            100,
            4096,
            5000,
            content.len() / 2,
            content.len() - 4096,
            content.len() - 1,
        ] {
            let disk = folder.disk.duplicate();
            assert!(disk.replace(&file, &content[..len]));
            let what = format!("{} cut to {len}", file.display());
            assert_eq!(examine(&folder, disk, &file, &what), Outcome::Refused, "{what}");
        }
    }
}

#[test]
fn a_missing_segment_that_is_needed_for_the_replay_is_noticed_at_once() {
    let folder = folder();
    let segments: Vec<_> = wal_files(&folder.disk)
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("spare"))
        .collect();
    // The last one is only prepared, the one before it is the active one.
    for file in &segments[segments.len() - 3..segments.len() - 1] {
        let disk = Arc::new(folder.disk.duplicate());
        assert!(disk.take_away(file));
        let error = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_missing_old_segment_is_told_to_who_reads_it() {
    let folder = folder();
    let disk = Arc::new(folder.disk.duplicate());
    let oldest_sealed = wal_files(&disk)
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("spare"))
        .nth(1);
    assert!(disk.take_away(&oldest_sealed.unwrap()));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let (mut missing, mut wrong) = (0, 0);
    for (log, base, bytes) in &folder.batches {
        match store.read(*log, *base, base + 1, 1, true) {
            Ok(slices) => wrong += usize::from(slices.concat() != *bytes),
            Err(ReadError::Missing { offset, next, .. }) => {
                assert!(offset == *base && next > *base);
                missing += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(missing > 10 && wrong == 0, "{missing} missing, {wrong} wrong");
}

#[test]
fn a_damaged_snapshot_is_put_aside_and_the_one_before_takes_its_place() {
    let folder = folder();
    let disk = Arc::new(folder.disk.duplicate());
    let snapshots: Vec<_> = disk
        .files()
        .into_iter()
        .filter(|path| path.starts_with("/d/snapshots"))
        .collect();
    assert_eq!(snapshots.len(), 2);
    assert!(disk.flip_bit(&snapshots[1], 65, 0));
    let (store, recorder) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    assert_eq!(recorder.snapshot.as_deref(), Some(&b"early"[..]));
    check_replay(&folder, &store, &recorder, "fallback");
    assert_eq!(
        store.recovered().warnings.len(),
        1,
        "{:?}",
        store.recovered().warnings
    );
    assert!(disk.content(&snapshots[1]).is_none());
    assert!(
        disk.content(&snapshots[1].with_extension("snap.damaged"))
            .is_some(),
        "kept for who wants to look"
    );
}

#[test]
fn without_any_intact_snapshot_the_snapshot_is_named() {
    let folder = folder();
    let disk = Arc::new(folder.disk.duplicate());
    for path in disk
        .files()
        .into_iter()
        .filter(|path| path.starts_with("/d/snapshots"))
    {
        assert!(disk.flip_bit(&path, 65, 0));
    }
    let error = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap_err();
    assert!(
        matches!(&error, OpenError::Damaged { file, .. } if file.starts_with("/d/snapshots")),
        "{error}"
    );
    assert_eq!(
        disk.files()
            .iter()
            .filter(|path| path.starts_with("/d/snapshots"))
            .count(),
        2
    );
}

#[test]
fn a_damaged_segment_is_not_packed_and_not_freed() {
    let disk = Arc::new(SimDisk::new(8));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    let damaged = Arc::new(std::sync::Mutex::new(Vec::new()));
    store.on_event(Box::new({
        let damaged = Arc::clone(&damaged);
        move |event| {
            if let anabranch_store::Event::Damaged(damage) = event {
                damaged.lock().unwrap().push(damage.file);
            }
        }
    }));
    for n in 0..60 {
        store.append_batch(batch(1, n, 1, n, b"x"));
        commit(&store);
    }
    store.write_snapshot(store.committed(), b"").unwrap();
    let file = Path::new("/d/wal/0000000000000002.seg");
    // Somewhere in the first frame.
    assert!(disk.flip_bit(file, 4096 + 64 + 60, 1));
    while store.maintain().unwrap().more {}
    assert_eq!(*damaged.lock().unwrap(), [file.to_owned()]);
    assert!(disk.content(file).is_some());
    store.maintain().unwrap();
    assert_eq!(damaged.lock().unwrap().len(), 1, "told once");
    let readable = (0..60).filter(|n| {
        store
            .read(LogId(1), *n, n + 1, 1, true)
            .is_ok_and(|found| !found.is_empty())
    });
    assert_eq!(readable.count(), 59, "all but the damaged batch");
}

#[test]
fn a_snapshot_proves_that_the_last_group_had_been_there() {
    let disk = Arc::new(SimDisk::new(9));
    let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
    for n in 0..3 {
        store.append_batch(batch(1, n, 1, n, b"x"));
        commit(&store);
    }
    store.write_snapshot(store.committed(), b"of entry 3").unwrap();
    drop(store);
    // The third group is the last one: nothing behind it tells that it was acknowledged.
    let file = Path::new("/d/wal/0000000000000001.seg");
    assert!(disk.flip_bit(file, 3 * 4096 + 20, 0));
    let error = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap_err();
    assert!(
        names(&error, file) && error.to_string().contains("snapshot"),
        "{error}"
    );
}

#[test]
fn a_segment_under_the_name_of_another_is_noticed() {
    let folder = folder();
    let segments: Vec<_> = wal_files(&folder.disk)
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("spare"))
        .collect();
    let [.., one, other, _active, _prepared] = segments.as_slice() else {
        panic!("{segments:?}")
    };
    let disk = folder.disk.duplicate();
    assert!(disk.replace(other, &disk.content(one).unwrap()));
    let what = format!("{} in the place of {}", one.display(), other.display());
    assert_eq!(examine(&folder, disk, other, &what), Outcome::Refused);
}

#[test]
fn an_older_copy_of_a_segment_is_noticed() {
    // Two futures of one folder: in one the first segment gets more entries, smaller ones, than in the other.
    let disk = Arc::new(SimDisk::new(9));
    drop(open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap());
    let [few, many] = [5000, 500].map(|len| {
        let disk = Arc::new(disk.duplicate());
        let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
        for n in 0..40 {
            store.append_batch(batch(1, n, 1, n, &vec![1; len]));
            commit(&store);
        }
        store.write_snapshot(store.committed(), b"of all").unwrap();
        assert!(store.close());
        disk
    });
    let (first, second) = (
        Path::new("/d/wal/0000000000000001.seg"),
        Path::new("/d/wal/0000000000000002.seg"),
    );
    assert!(many.replace(first, &few.content(first).unwrap()));
    let error = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&many), small()).unwrap_err();
    assert!(names(&error, second), "{error}");
}

#[test]
fn a_damaged_footer_is_rebuilt_from_the_groups() {
    let folder = folder();
    let segments: Vec<_> = wal_files(&folder.disk)
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("spare"))
        .collect();
    // All but the active and the prepared one are sealed; the oldest one is packed.
    for file in &segments[..segments.len() - 2] {
        let len = folder.disk.content(file).unwrap().len() as u64;
        for byte in [len - 4096 + 20, len - 4096 - 10] {
            let disk = Arc::new(folder.disk.duplicate());
            assert!(disk.flip_bit(file, byte, 0));
            let (store, _) = open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(&disk), small()).unwrap();
            assert!(
                store.recovered().warnings[0].contains("rebuilt"),
                "{:?}",
                store.recovered().warnings
            );
            drop(store);
            let what = format!(
                "byte {byte} of {} after the start that rebuilt it",
                file.display()
            );
            assert_eq!(
                examine(&folder, disk.duplicate(), file, &what),
                Outcome::Opened(0)
            );
        }
    }
}
