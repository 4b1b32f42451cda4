//! Power cuts at every operation of a workload, with many different survivors each; kills; crashes while a crash is being
//! recovered from; failed writes and syncs; relaxed mode.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::LogId;
use anabranch_store::sim_disk::{Fault, Rng, SimDisk};
use anabranch_store::{Disk, Durability, Options, Step, Store};
use common::workload::{FOLDER, Ledger, Owner, drain, open_checked, step};
use common::{batch, open_manual, read_all, small};

/// Runs a workload from a fresh disk until it ends or the disk fails.
fn run(disk: &Arc<SimDisk>, options: &Options, seed: u64, steps: usize) -> Ledger {
    let mut ledger = Ledger::default();
    let mut rng = Rng::new(seed);
    if let Some(store) = try_open(disk, options, &mut ledger) {
        go_on(&store, disk, &mut ledger, &mut rng, steps);
    }
    ledger
}

fn go_on(store: &Store, disk: &SimDisk, ledger: &mut Ledger, rng: &mut Rng, steps: usize) {
    for _ in 0..steps {
        if !step(store, disk, ledger, rng) {
            return;
        }
    }
}

/// Opens, unless the power goes meanwhile.
fn try_open(disk: &Arc<SimDisk>, options: &Options, ledger: &mut Ledger) -> Option<Store> {
    let mut owner = Owner::default();
    let opened = Store::open_manual(
        Path::new(FOLDER),
        Arc::<SimDisk>::clone(disk),
        options.clone(),
        &mut owner,
    );
    match opened {
        Ok(store) => {
            ledger.check(&store, &owner.0);
            Some(store)
        }
        Err(error) => {
            assert!(disk.is_off(), "{error}");
            None
        }
    }
}

/// Checks what survived, that the store goes on, and that a second start sees the same.
fn check_survivors(after: SimDisk, options: &Options, ledger: &mut Ledger) {
    let after = Arc::new(after);
    let store = open_checked(&after, options, ledger);
    let mut rng = Rng::new(ledger.acked);
    go_on(&store, &after, ledger, &mut rng, 12);
    drain(&store, ledger);
    ledger.check_reads(&store);
    drop(store);
    let last = ledger.now().lsn;
    drop(open_checked(&after, options, ledger));
    assert_eq!(ledger.now().lsn, last, "a kill loses nothing that was committed");
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_acknowledged() {
    let options = small();
    let steps = 240;
    let whole = Arc::new(SimDisk::new(1));
    let ledger = run(&whole, &options, 34, steps);
    for what in ["rolled", "freed", "packed", "snapshot"] {
        assert!(ledger.seen[what] >= 2, "{what} too rarely: {:?}", ledger.seen);
    }
    let operations = whole.operations();
    assert!(operations > 150, "{operations} operations");
    for cut in 0..operations {
        let disk = Arc::new(SimDisk::new(1));
        disk.fault_at(cut, Fault::PowerCut);
        let ledger = run(&disk, &options, 34, steps);
        for survivors in 0..5 {
            check_survivors(
                disk.power_cycle(cut * 10 + survivors),
                &options,
                &mut ledger.clone(),
            );
        }
    }
}

#[test]
fn a_power_cut_while_recovering_loses_nothing_either() {
    let options = small();
    let steps = 240;
    let whole = Arc::new(SimDisk::new(2));
    run(&whole, &options, 42, steps);
    for cut in (0..whole.operations()).step_by(5) {
        let disk = Arc::new(SimDisk::new(2));
        disk.fault_at(cut, Fault::PowerCut);
        let ledger = run(&disk, &options, 42, steps);
        for second in 0..16 {
            let after = Arc::new(disk.power_cycle(cut));
            after.fault_at(second, Fault::PowerCut);
            let mut ledger = ledger.clone();
            if let Some(store) = try_open(&after, &options, &mut ledger) {
                let mut rng = Rng::new(second);
                go_on(&store, &after, &mut ledger, &mut rng, 10);
            }
            check_survivors(after.power_cycle(second), &options, &mut ledger);
        }
    }
}

/// `STORE_LIVES` sets the number of seeds, for long runs.
#[test]
fn many_lives_with_kills_and_power_cuts() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let lives = std::env::var("STORE_LIVES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    for seed in 0..lives {
        let mut rng = Rng::new(seed);
        let mut options = small();
        options.preformat = rng.chance(50);
        let mut disk = Arc::new(SimDisk::new(seed));
        let mut ledger = Ledger::default();
        for _life in 0..8 {
            if rng.chance(60) {
                disk.fault_at(disk.operations() + rng.below(400), Fault::PowerCut);
            }
            if let Some(store) = try_open(&disk, &options, &mut ledger) {
                let steps = rng.below(300) as usize;
                go_on(&store, &disk, &mut ledger, &mut rng, steps);
                if !disk.is_off() && rng.chance(30) {
                    drain(&store, &mut ledger);
                    store.close();
                }
            }
            // With the power still on this is a kill: the next life sees what was written but not synced.
            if disk.is_off() {
                disk = Arc::new(disk.power_cycle(rng.next_u64()));
            }
        }
        drop(open_checked(
            &Arc::new(disk.power_cycle(seed)),
            &options,
            &mut ledger,
        ));
        for (what, times) in &ledger.seen {
            *seen.entry(what).or_default() += times;
        }
    }
    for (what, times) in seen {
        // A footer is rebuilt only after damage, which is not a part of this.
        assert!(
            times >= 10 || what == "rebuilt footer",
            "{what}: only {times} times"
        );
    }
}

#[test]
fn a_failed_operation_acknowledges_nothing_wrong() {
    let options = small();
    let steps = 240;
    let whole = Arc::new(SimDisk::new(3));
    run(&whole, &options, 21, steps);
    for fault in [Fault::IoError, Fault::NoSpace] {
        for at in 0..whole.operations() {
            let disk = Arc::new(SimDisk::new(3 + at));
            disk.fault_at(at, fault);
            let mut ledger = Ledger::default();
            let mut rng = Rng::new(21);
            let mut owner = Owner::default();
            let opened = Store::open_manual(
                Path::new(FOLDER),
                Arc::<SimDisk>::clone(&disk),
                options.clone(),
                &mut owner,
            );
            if let Ok(store) = opened {
                ledger.check(&store, &owner.0);
                go_on(&store, &disk, &mut ledger, &mut rng, steps);
            }
            // The process ends and starts again, sees what is visible, goes on; then the power goes.
            let store = open_checked(&disk, &options, &mut ledger);
            go_on(&store, &disk, &mut ledger, &mut rng, 70);
            drain(&store, &mut ledger);
            drop(store);
            check_survivors(disk.power_cycle(at), &options, &mut ledger);
        }
    }
}

#[test]
fn relaxed_mode_keeps_a_prefix() {
    let options = Options {
        durability: Durability::Relaxed,
        ..small()
    };
    let steps = 240;
    let whole = Arc::new(SimDisk::new(4));
    run(&whole, &options, 51, steps);
    let mut lost = 0;
    for cut in 0..whole.operations() {
        let disk = Arc::new(SimDisk::new(4));
        disk.fault_at(cut, Fault::PowerCut);
        let ledger = run(&disk, &options, 51, steps);
        for survivors in 0..4 {
            let mut ledger = ledger.clone();
            // Acknowledged does not mean durable here; all else is as strict.
            let acked = std::mem::take(&mut ledger.acked);
            let after = Arc::new(disk.power_cycle(cut * 10 + survivors));
            let store = open_checked(&after, &options, &mut ledger);
            lost += u64::from(store.committed().0 < acked);
            let mut rng = Rng::new(cut);
            go_on(&store, &after, &mut ledger, &mut rng, 12);
            drain(&store, &mut ledger);
            drop(store);
            drop(open_checked(&after, &options, &mut ledger));
            // A second cut: stale groups of the first life must not come back.
            ledger.acked = 0;
            drop(open_checked(
                &Arc::new(after.power_cycle(survivors)),
                &options,
                &mut ledger,
            ));
        }
    }
    assert!(
        lost > 0,
        "the test would not notice a sync that relaxed mode does not need"
    );
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let image = || {
        let disk = Arc::new(SimDisk::new(5));
        run(&disk, &small(), 15, 200);
        disk.files()
            .iter()
            .map(|path| (path.clone(), disk.content(path)))
            .collect::<Vec<_>>()
    };
    assert!(image() == image());
}

#[test]
fn a_footer_whose_sync_failed_is_made_good_by_the_next_start() {
    // Many small runs, so that a footer spans several sectors, each of which may be lost.
    let fill = |store: &Store, from: i64, until_segments: usize| {
        for n in from.. {
            for log in 0..8 {
                store.append_batch(batch(log, n, 1, n, b"small"));
            }
            if store.commit_once() != Step::Committed || store.usage().segments >= until_segments {
                return n + 1;
            }
        }
        unreachable!("segments fill up")
    };
    let open = |disk: &Arc<SimDisk>| {
        let disk: Arc<dyn Disk> = Arc::<SimDisk>::clone(disk);
        open_manual(Path::new(FOLDER), disk, small())
            .expect("nothing acknowledged is damaged")
            .0
    };
    let operations_before_the_roll = {
        let disk = Arc::new(SimDisk::new(0));
        let store = open(&disk);
        let rolls_at = fill(&store, 0, 2) - 1;
        drop(store);
        let disk = Arc::new(SimDisk::new(0));
        let store = open(&disk);
        for n in 0..rolls_at {
            fill(&store, n, 1);
        }
        disk.operations()
    };
    for seed in 0..60 {
        let disk = Arc::new(SimDisk::new(seed));
        // The footer is written; its sync fails.
        disk.fault_at(operations_before_the_roll + 1, Fault::IoError);
        let store = open(&disk);
        fill(&store, 0, 9);
        assert!(
            store.poisoned().is_some_and(|message| message.contains("sync")),
            "{:?}",
            store.poisoned()
        );
        let committed = i64::try_from(store.committed().0).expect("few") / 8;
        drop(store);
        let store = open(&disk);
        assert_eq!(store.usage().segments, 2, "the footer is visible");
        let end = fill(&store, committed, 4);
        drop(store);
        let store = open(&Arc::new(disk.power_cycle(seed)));
        for log in 0..8 {
            assert_eq!(read_all(&store, LogId(log)).len() as i64, end * 66, "log {log}");
        }
    }
}
