//! Measures the store alone: how fast batches and single entries become durable, at what cost.
//!
//! `cargo run --release -p anabranch-store --example wal_bench -- [folder] [seconds] [part of a case's name]`
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use anabranch_core::ids::{LogId, Lsn};
use anabranch_store::{Batch, Options, RealDisk, Replay, ReplayError, Store};
use bytes::Bytes;

/// Bytes that the producers may have in flight, as a broker's permits would allow.
const IN_FLIGHT_BYTES: u64 = 32 << 20;

struct Nothing;

impl Replay for Nothing {
    fn snapshot(&mut self, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }
    fn state(&mut self, _: Lsn, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }
    fn batches(&mut self, _: Lsn, _: LogId, _: &[u8]) -> Result<(), ReplayError> {
        Ok(())
    }
}

/// A batch of `len` bytes with a valid frame.
fn batch_bytes(len: usize) -> Bytes {
    let mut bytes = vec![0x5a; len];
    bytes[..61].fill(0);
    bytes[8..12].copy_from_slice(&(len as i32 - 12).to_be_bytes());
    bytes[16] = 2;
    Bytes::from(bytes)
}

fn cpu_seconds() -> f64 {
    // Fields 14 and 15 are user and system time in ticks of 10 ms; the name before them may hold spaces.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

/// Lets producers wait for commits without a wake-up for each entry.
#[derive(Default)]
struct Gate {
    committed: Mutex<u64>,
    moved: Condvar,
}

struct Case {
    name: &'static str,
    threads: usize,
    logs: u32,
    batch_bytes: usize,
    /// Whether each thread waits for each entry.
    one_by_one: bool,
    /// Whether old segments are freed, so that their files are used again.
    recycle: bool,
    preformat: bool,
}

/// What the producers of a case share.
struct Load<'a> {
    case: &'a Case,
    store: &'a Store,
    gate: &'a Gate,
    payload: Bytes,
    next: Vec<AtomicI64>,
    order: Mutex<()>,
    entries: AtomicU64,
    until: Instant,
}

impl Load<'_> {
    /// Appends until the time is over; gives how long each entry took, if it waited for it.
    fn produce(&self, nth: usize) -> Vec<Duration> {
        let in_flight_max = (IN_FLIGHT_BYTES / self.payload.len() as u64).max(1);
        let mut latencies = Vec::new();
        let mut log = nth as u32 % self.case.logs;
        while Instant::now() < self.until {
            let sent = Instant::now();
            let lsn = self.append(log);
            log = (log + 1) % self.case.logs;
            let upto = if self.case.one_by_one {
                lsn.0
            } else {
                lsn.0.saturating_sub(in_flight_max)
            };
            let mut committed = self.gate.committed.lock().expect("no panic while held");
            while *committed < upto {
                committed = self.gate.moved.wait(committed).expect("no panic while held");
            }
            drop(committed);
            if self.case.one_by_one {
                latencies.push(sent.elapsed());
            }
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
        latencies
    }

    fn append(&self, log: u32) -> Lsn {
        let _order = self.order.lock().expect("no panic while held");
        let offset = self.next[log as usize].fetch_add(1, Ordering::Relaxed);
        self.store.append_batch(Batch {
            log: LogId(log),
            base_offset: offset,
            leader_epoch: 0,
            last_offset: offset,
            max_timestamp: offset,
            bytes: self.payload.clone(),
        })
    }

    /// Frees old segments, as retention would.
    fn recycle(&self) {
        while Instant::now() < self.until {
            std::thread::sleep(Duration::from_millis(100));
            let committed = self.store.committed();
            let ends: Vec<i64> = self
                .next
                .iter()
                .map(|next| next.load(Ordering::Relaxed))
                .collect();
            self.store
                .write_snapshot(committed, b"")
                .expect("a snapshot can be written");
            for (log, end) in ends.into_iter().enumerate() {
                self.store.set_log_start(LogId(log as u32), end - 64.min(end));
            }
            self.store.maintain().expect("maintenance works");
        }
    }
}

fn run(folder: &std::path::Path, case: &Case, seconds: u64) {
    let folder = folder.join(case.name.replace([' ', ','], "-"));
    let _ = std::fs::remove_dir_all(&folder);
    let options = Options {
        preformat: case.preformat,
        ..Options::default()
    };
    let store =
        Store::open(&folder, Arc::new(RealDisk), options, &mut Nothing).expect("the folder can be used");
    let (gate, groups) = (Arc::new(Gate::default()), Arc::new(AtomicU64::new(0)));
    store.on_commit(Box::new({
        let (gate, groups) = (Arc::clone(&gate), Arc::clone(&groups));
        move |commit| {
            groups.fetch_add(1, Ordering::Relaxed);
            *gate.committed.lock().expect("no panic while held") = commit.upto.0;
            gate.moved.notify_all();
        }
    }));
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let load = Load {
        case,
        store: &store,
        gate: &gate,
        payload: batch_bytes(case.batch_bytes),
        next: (0..case.logs).map(|_| AtomicI64::new(0)).collect(),
        order: Mutex::new(()),
        entries: AtomicU64::new(0),
        until: begin + Duration::from_secs(seconds),
    };
    let mut latencies = Vec::new();
    std::thread::scope(|scope| {
        let load = &load;
        let producers: Vec<_> = (0..case.threads)
            .map(|nth| scope.spawn(move || load.produce(nth)))
            .collect();
        if case.recycle {
            load.recycle();
        }
        for producer in producers {
            latencies.extend(producer.join().expect("producers do not panic"));
        }
    });
    store.wait_committed(store.last());
    let entries = load.entries.load(Ordering::Relaxed) as f64;
    report(
        case,
        begin.elapsed().as_secs_f64(),
        cpu_seconds() - cpu,
        entries,
        &groups,
        latencies,
    );
    drop(store);
    reopen(&folder);
    let _ = std::fs::remove_dir_all(&folder);
}

fn report(
    case: &Case,
    seconds: f64,
    cpu: f64,
    entries: f64,
    groups: &AtomicU64,
    mut latencies: Vec<Duration>,
) {
    latencies.sort_unstable();
    let at = |share: f64| {
        latencies
            .get((latencies.len() as f64 * share) as usize)
            .copied()
            .unwrap_or_default()
    };
    let gb = entries * case.batch_bytes as f64 / 1e9;
    println!(
        "{:<42} {:6.3} GB/s  {:8.0} entries/s  {:6.0} groups/s  {:5.2} CPU-s/GB  {:6.1} us CPU/entry  p50 {:?} p99 {:?}",
        case.name,
        gb / seconds,
        entries / seconds,
        groups.load(Ordering::Relaxed) as f64 / seconds,
        cpu / gb,
        cpu * 1e6 / entries,
        at(0.5),
        at(0.99),
    );
}

fn reopen(folder: &std::path::Path) {
    for what in ["after a kill", "with a snapshot"] {
        let begin = Instant::now();
        let store = Store::open(folder, Arc::new(RealDisk), Options::default(), &mut Nothing)
            .expect("it opens again");
        let (elapsed, usage, replayed) = (begin.elapsed(), store.usage(), store.recovered().replayed);
        println!(
            "{:<42} opened {what} in {elapsed:?}: {} segments, {replayed} entries replayed",
            "", usage.segments
        );
        store
            .write_snapshot(store.committed(), b"")
            .expect("a snapshot can be written");
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or_else(|| "wal-bench.tmp".to_owned()));
    let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(4);
    let filter = args.next().unwrap_or_default();
    let many = Case {
        name: "",
        threads: 2,
        logs: 1,
        batch_bytes: 64 << 10,
        one_by_one: false,
        recycle: true,
        preformat: true,
    };
    let single = Case {
        threads: 1,
        batch_bytes: 200,
        one_by_one: true,
        ..many
    };
    let cases = [
        Case {
            name: "64 KiB, 1 log, recycled",
            ..many
        },
        Case {
            name: "64 KiB, 256 logs, recycled",
            logs: 256,
            ..many
        },
        Case {
            name: "64 KiB, 1 log, growing",
            recycle: false,
            ..many
        },
        Case {
            name: "64 KiB, 1 log, growing, not preformatted",
            recycle: false,
            preformat: false,
            ..many
        },
        Case {
            name: "1 KiB, 1 log, recycled",
            batch_bytes: 1 << 10,
            ..many
        },
        Case {
            name: "single 200 B, 1 thread",
            ..single
        },
        Case {
            name: "single 200 B, growing",
            recycle: false,
            ..single
        },
        Case {
            name: "single 200 B, growing, not preformatted",
            recycle: false,
            preformat: false,
            ..single
        },
        Case {
            name: "single 200 B, 16 threads",
            threads: 16,
            ..single
        },
    ];
    for case in cases.iter().filter(|case| case.name.contains(&filter)) {
        run(&folder, case, seconds);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
