//! Recovery of a data folder whose files were damaged.
//!
//! Input: a workload (1 byte), then edits of 7 bytes each: file, position (3 bytes, big-endian, taken modulo the file's
//! length), operation, two arguments. The workload is written by the store itself, the edits are applied to its files, and
//! the store is opened. It may refuse. If it opens, then nothing may be in it that was not written, in its order, and it
//! must go on: take new entries, and open again.

pub mod memory;
mod workload;

use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::{Options, Replay, ReplayError, Step, Store};

use memory::{Image, MemoryDisk};
use workload::{Entry, LOGS, Workload};

/// Most edits that are applied; more only hide each other.
const EDITS_MAX: usize = 16;
const EDIT_LEN: usize = 7;
const SECTOR: usize = 512;
/// Where the data folder is on the disk in memory.
const FOLDER: &str = "/data";

/// Opens the damaged folder and verifies what is found.
pub fn run(data: &[u8]) {
    let Some((choice, edits)) = data.split_first() else {
        return;
    };
    let workload = Workload::of(*choice);
    let mut image = workload.image.clone();
    let (edits, _) = edits.as_chunks::<EDIT_LEN>();
    for edit in edits.iter().take(EDITS_MAX) {
        apply(*edit, &mut image);
    }
    let disk = Arc::new(MemoryDisk::new(&image));
    let mut found = Found::default();
    let Ok(store) = open(&disk, &mut found) else {
        assert!(!edits.is_empty(), "an undamaged folder must open");
        return;
    };
    found.verify(workload, edits.is_empty());
    verify_reads(&store, workload, edits.is_empty());
    go_on(&disk, store, &found);
}

fn open(disk: &Arc<MemoryDisk>, found: &mut Found) -> Result<Store, String> {
    Store::open_manual(Path::new(FOLDER), disk.clone(), options(), found).map_err(|error| error.to_string())
}

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        cache_bytes: 16 << 10,
        index_cache_bytes: 16 << 10,
        direct_io: false,
        preformat: false,
        spare_segments: 1,
        free_bytes_min: Some(0),
        cluster_id: Some([9; 16]),
        ..Options::default()
    }
}

/// What a replay delivered.
#[derive(Default)]
struct Found {
    snapshot: Option<Vec<u8>>,
    entries: Vec<(u64, Entry)>,
}

impl Replay for Found {
    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        assert!(
            self.snapshot.is_none() && self.entries.is_empty(),
            "the snapshot comes once, and first"
        );
        self.snapshot = Some(bytes.to_vec());
        Ok(())
    }

    fn state(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), ReplayError> {
        self.entries.push((lsn.0, Entry::State(bytes.to_vec())));
        Ok(())
    }

    fn batches(&mut self, lsn: Lsn, log: LogId, bytes: &[u8]) -> Result<(), ReplayError> {
        for (lsn, batch) in (lsn.0..).zip(workload::split(bytes)) {
            self.entries.push((lsn, Entry::Batch(log, batch)));
        }
        Ok(())
    }
}

impl Found {
    fn verify(&self, workload: &Workload, undamaged: bool) {
        let start = match &self.snapshot {
            Some(bytes) => *workload
                .snapshots
                .iter()
                .find_map(|(lsn, written)| (written == bytes).then_some(lsn))
                .expect("the snapshot is one that was written"),
            None => 0,
        };
        for (expected, (lsn, entry)) in (start + 1..).zip(&self.entries) {
            assert_eq!(*lsn, expected, "entries follow the snapshot without a gap");
            assert_eq!(
                workload.entries.get(lsn),
                Some(entry),
                "entry {lsn} is as it was written"
            );
        }
        if undamaged {
            let last = self.entries.last().map_or(start, |(lsn, _)| *lsn);
            assert_eq!(last, workload.entries.len() as u64, "nothing is missing");
        }
    }
}

/// What a log gives to a reader is a part of what was written to it.
fn verify_reads(store: &Store, workload: &Workload, undamaged: bool) {
    for log in LOGS {
        let written = workload.log(log);
        let mut next = 0;
        while let Ok(slices) = store.read(log, next, i64::MAX, 32 << 10, true) {
            let batches = workload::split(&slices.concat());
            let Some(last) = batches.last() else { break };
            for batch in &batches {
                assert!(
                    written.contains(&batch),
                    "log {log}: a batch that was never written"
                );
            }
            let end = workload::offsets(last).1;
            assert!(end > next, "a read must move on");
            next = end;
        }
        if undamaged {
            let end = written.last().map_or(0, |batch| workload::offsets(batch).1);
            assert_eq!(next, end, "log {log} is readable to its end");
        }
        let _ = (store.log_stats(log), store.max_timestamp(log));
        let _ = store.first_batch_at_or_after_time(log, 5, 0, i64::MAX);
    }
}

/// Appends, and opens again.
fn go_on(disk: &Arc<MemoryDisk>, store: Store, before: &Found) {
    let _ = store.maintain();
    let lsn = store.append_state(b"after the damage".to_vec());
    let committed = store.commit_once() == Step::Committed;
    drop(store);
    let mut again = Found::default();
    let opened = open(disk, &mut again);
    if let Err(error) = opened {
        panic!("what opened once must open again: {error}");
    }
    if committed {
        let last = again.entries.pop();
        assert_eq!(last, Some((lsn.0, Entry::State(b"after the damage".to_vec()))));
    }
    assert!(
        again.snapshot == before.snapshot && again.entries == before.entries,
        "the same is found again"
    );
}

fn apply(edit: [u8; EDIT_LEN], image: &mut Image) {
    let [file, high, middle, low, operation, first, second] = edit;
    let names: Vec<_> = image.keys().cloned().collect();
    let Some(name) = names.get(usize::from(file) % names.len().max(1)) else {
        return;
    };
    let argument = usize::from(u16::from_be_bytes([first, second]));
    let bytes = image.get_mut(name).expect("the name is from the image");
    let at = u32::from_be_bytes([0, high, middle, low]) as usize % bytes.len().max(1);
    let sector = at - at % SECTOR;
    match operation % 8 {
        0 => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte ^= first | 1),
        1 => bytes
            .iter_mut()
            .skip(at)
            .zip([first, second])
            .for_each(|(byte, new)| *byte = new),
        2 => bytes
            .iter_mut()
            .skip(sector)
            .take(argument % 64 * SECTOR)
            .for_each(|byte| *byte = 0),
        3 => bytes.truncate(at),
        4 => {
            // A sector from elsewhere: an old version of this place, or a misdirected write.
            let from = argument * SECTOR % bytes.len().max(1);
            let copy: Vec<u8> = bytes
                .iter()
                .skip(from - from % SECTOR)
                .take(SECTOR)
                .copied()
                .collect();
            bytes
                .iter_mut()
                .skip(sector)
                .zip(copy)
                .for_each(|(byte, new)| *byte = new);
        }
        5 => drop(image.remove(name)),
        6 => {
            let copy = bytes.clone();
            image.insert(names[argument % names.len()].clone(), copy);
        }
        _ => bytes.resize(bytes.len() + argument % 8192, first),
    }
}
