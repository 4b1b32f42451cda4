//! What the store had written before the damage: made once per process, by the store itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::{Batch, Step, Store};
use anabranch_wire::batch::{BatchBuilder, BatchHeader, BatchIter};

use super::memory::{Image, MemoryDisk};
use super::{FOLDER, Found, options};

/// The logs that workloads write to.
pub(super) const LOGS: [LogId; 3] = [LogId(1), LogId(2), LogId(7)];

/// An entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    State(Vec<u8>),
    Batch(LogId, Vec<u8>),
}

/// A data folder, and what was written into it.
pub(super) struct Workload {
    pub(super) image: Image,
    pub(super) entries: BTreeMap<u64, Entry>,
    pub(super) snapshots: Vec<(u64, Vec<u8>)>,
}

/// How to write one.
struct Plan {
    entries: u64,
    /// Entries behind which a snapshot is taken.
    snapshots: &'static [u64],
    closed: bool,
}

const PLANS: [Plan; 4] = [
    Plan {
        entries: 0,
        snapshots: &[],
        closed: true,
    },
    Plan {
        entries: 12,
        snapshots: &[],
        closed: false,
    },
    Plan {
        entries: 90,
        snapshots: &[30, 60],
        closed: false,
    },
    Plan {
        entries: 90,
        snapshots: &[72],
        closed: true,
    },
];

impl Workload {
    /// One of the workloads.
    pub(super) fn of(choice: u8) -> &'static Self {
        static MADE: [OnceLock<Workload>; PLANS.len()] = [const { OnceLock::new() }; PLANS.len()];
        let number = usize::from(choice) % PLANS.len();
        MADE[number].get_or_init(|| Self::write(&PLANS[number]))
    }

    /// The batches of a log.
    pub(super) fn log(&self, wanted: LogId) -> Vec<&Vec<u8>> {
        let batch = |entry| match entry {
            &Entry::Batch(log, ref bytes) if log == wanted => Some(bytes),
            _ => None,
        };
        self.entries.values().filter_map(batch).collect()
    }

    fn write(plan: &Plan) -> Self {
        let disk = Arc::new(MemoryDisk::default());
        let store = Store::open_manual(Path::new(FOLDER), disk.clone(), options(), &mut Found::default())
            .expect("an empty disk can be used");
        let mut made = Self {
            image: Image::new(),
            entries: BTreeMap::new(),
            snapshots: Vec::new(),
        };
        let mut offsets = BTreeMap::new();
        for number in 1..=plan.entries {
            let entry = made.append(&store, number, &mut offsets);
            made.entries.insert(number, entry);
            // Groups of one, two and three entries.
            if number % 6 == 0 || number % 6 == 2 || number % 6 == 3 || number == plan.entries {
                // What is queued may be more than one group holds.
                while store.commit_once() == Step::Committed {}
                assert_eq!(store.committed(), Lsn(number));
            }
            if plan.snapshots.contains(&number) {
                let bytes = format!("state as of entry {number}").into_bytes();
                store
                    .write_snapshot(Lsn(number), &bytes)
                    .expect("the entry is committed");
                made.snapshots.push((number, bytes));
                while store.maintain().expect("a disk in memory does not fail").more {}
            }
        }
        if plan.closed {
            assert!(store.close());
        } else {
            drop(store);
        }
        made.image = disk.image();
        made
    }

    fn append(&self, store: &Store, number: u64, offsets: &mut BTreeMap<LogId, i64>) -> Entry {
        if number.is_multiple_of(5) {
            let bytes = vec![number as u8; 10 * number as usize];
            assert_eq!(store.append_state(bytes.clone()), Lsn(number));
            return Entry::State(bytes);
        }
        let log = LOGS[(number % 3) as usize];
        let base_offset = offsets.entry(log).or_default();
        let (batch, stored) = batch(log, *base_offset, number);
        *base_offset = batch.last_offset + 1;
        assert_eq!(store.append_batch(batch), Lsn(number));
        Entry::Batch(log, stored)
    }
}

/// A batch as the broker appends it, and its bytes as they are stored.
fn batch(log: LogId, base_offset: i64, number: u64) -> (Batch, Vec<u8>) {
    let mut builder = BatchBuilder::new();
    let value = vec![number as u8; 200 + 37 * number as usize];
    for record in 0..=number % 3 {
        builder.append((number + record) as i64, Some(b"key"), Some(&value), &[]);
    }
    let bytes = builder.finish().expect("a few records fit");
    let header = BatchHeader::parse(&bytes).expect("just built");
    let mut stored = bytes.to_vec();
    anabranch_wire::batch::patch(&mut stored, base_offset, 3);
    let batch = Batch {
        log,
        base_offset,
        leader_epoch: 3,
        last_offset: base_offset + i64::from(header.last_offset_delta),
        max_timestamp: header.max_timestamp,
        bytes,
    };
    (batch, stored)
}

/// The batches in a stretch of a log.
///
/// # Panics
/// If it holds anything else.
pub(super) fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    BatchIter::new(bytes)
        .map(|found| found.expect("whole batches"))
        .map(|(position, header)| bytes[position..position + header.size()].to_vec())
        .collect()
}

/// First offset of a batch, and the one behind its last.
pub(super) fn offsets(batch: &[u8]) -> (i64, i64) {
    let header = BatchHeader::parse(batch).expect("a whole batch");
    (header.base_offset, header.next_offset())
}
