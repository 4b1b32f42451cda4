//! A sync that fails while a segment is sealed leaves an index that looks written and is not on the disk, and no later
//! sync brings it there. The next start must write it again before the log goes on.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::Lsn;
use anabranch_store::sim_disk::{Fault, SimDisk};
use anabranch_store::{Step, Store};
use common::{batch, open_manual, small};

const FOLDER: &str = "/d";
/// What survives is a matter of chance.
const POWER_CUTS: u64 = 20;

fn open(disk: &Arc<SimDisk>) -> Store {
    open_manual(Path::new(FOLDER), Arc::<SimDisk>::clone(disk), small())
        .unwrap()
        .0
}

/// Commits batch by batch until one more segment is sealed, or the store fails. Gives the operations of the last commit.
fn go_on(store: &Store, disk: &SimDisk, next_offset: &mut i64) -> std::ops::Range<u64> {
    let segments = store.usage().segments;
    loop {
        store.append_batch(batch(1, *next_offset, 1, *next_offset, &[7; 9_000]));
        *next_offset += 1;
        let before = disk.operations();
        if store.commit_once() != Step::Committed || store.usage().segments > segments {
            return before..disk.operations();
        }
    }
}

#[test]
fn an_index_whose_sync_failed_is_written_again() {
    let seals = {
        let disk = Arc::new(SimDisk::new(1));
        go_on(&open(&disk), &disk, &mut 0)
    };
    let mut failures = 0;
    for operation in seals {
        let disk = Arc::new(SimDisk::new(1));
        disk.fault_at(operation, Fault::IoError);
        let store = open(&disk);
        go_on(&store, &disk, &mut 0);
        failures += usize::from(store.poisoned().is_some());
        drop(store);

        // The process starts again and sees what is visible; it goes on for two segments, and then the power goes.
        let store = open(&disk);
        let mut next_offset = store.recovered().last.0 as i64;
        for _ in 0..2 {
            go_on(&store, &disk, &mut next_offset);
        }
        let committed = store.committed();
        drop(store);
        for cut in 0..POWER_CUTS {
            let after = Arc::new(disk.power_cycle(cut));
            let store = open(&after);
            assert!(
                store.recovered().last >= committed,
                "operation {operation}, cut {cut}"
            );
            assert!(store.committed() > Lsn(0));
        }
    }
    assert!(failures >= 2, "the write and the sync of an index: {failures}");
}
