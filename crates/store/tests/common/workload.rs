//! A random workload over a simulated disk, and the check of what a store holds against what was told to it.
//!
//! The owner of the state is imitated by a [`Model`]: it folds every entry into a checksum, so that equal checksums mean the
//! same entries with the same bytes in the same order, also across snapshots.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn, Offset};
use anabranch_store::sim_disk::{Rng, SimDisk};
use anabranch_store::{Options, Replay, ReplayError, Step, Store};

use super::{Item, Recorder, batch, stored};

pub const FOLDER: &str = "/data";
const LOGS: u64 = 4;

/// What the entries so far amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub lsn: u64,
    fold: u32,
    next: BTreeMap<u32, Offset>,
    start: BTreeMap<u32, Offset>,
    dropped: Vec<u32>,
}

impl Model {
    fn add(&mut self, lsn: u64, item: &Item) {
        assert_eq!(lsn, self.lsn + 1, "entries follow each other");
        self.lsn = lsn;
        self.fold = crc32c::crc32c_append(self.fold, &lsn.to_le_bytes());
        match item {
            Item::Batch(log, bytes) => {
                self.fold = crc32c::crc32c_append(self.fold, &log.0.to_le_bytes());
                self.fold = crc32c::crc32c_append(self.fold, bytes);
                let base = i64::from_be_bytes(*bytes.first_chunk().expect("a batch"));
                let delta = i32::from_be_bytes(*bytes[23..].first_chunk().expect("a batch"));
                self.next.insert(log.0, base + i64::from(delta) + 1);
            }
            Item::State(bytes) => {
                self.fold = crc32c::crc32c_append(self.fold, bytes);
                let number = |at: usize| i64::from_le_bytes(*bytes[at..].first_chunk().expect("a command"));
                match bytes[0] {
                    b's' => drop(self.start.insert(number(1) as u32, number(9))),
                    b'd' => self.dropped.push(number(1) as u32),
                    _ => {}
                }
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.lsn.to_le_bytes());
        bytes.extend(self.fold.to_le_bytes());
        for map in [&self.next, &self.start] {
            bytes.push(map.len() as u8);
            for (log, offset) in map {
                bytes.extend(log.to_le_bytes());
                bytes.extend(offset.to_le_bytes());
            }
        }
        for log in &self.dropped {
            bytes.extend(log.to_le_bytes());
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Model {
        fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
            let (head, rest) = bytes.split_first_chunk().expect("a whole snapshot");
            *bytes = rest;
            *head
        }
        let (lsn, fold) = (
            u64::from_le_bytes(take(&mut bytes)),
            u32::from_le_bytes(take(&mut bytes)),
        );
        let mut maps = [BTreeMap::new(), BTreeMap::new()];
        for map in &mut maps {
            for _ in 0..take::<1>(&mut bytes)[0] {
                let log = u32::from_le_bytes(take(&mut bytes));
                map.insert(log, i64::from_le_bytes(take(&mut bytes)));
            }
        }
        let [next, start] = maps;
        let dropped = bytes
            .chunks_exact(4)
            .map(|log| u32::from_le_bytes(*log.first_chunk().expect("four")))
            .collect();
        Model {
            lsn,
            fold,
            next,
            start,
            dropped,
        }
    }
}

/// The model as the store's owner.
#[derive(Default)]
pub struct Owner(pub Model);

impl Replay for Owner {
    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        self.0 = Model::decode(bytes);
        Ok(())
    }

    fn state(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), ReplayError> {
        self.0.add(lsn.0, &Item::State(bytes.to_vec()));
        Ok(())
    }

    fn batches(&mut self, lsn: Lsn, log: LogId, bytes: &[u8]) -> Result<(), ReplayError> {
        let mut recorder = Recorder::default();
        recorder.batches(lsn, log, bytes)?;
        recorder
            .items
            .iter()
            .for_each(|(lsn, item)| self.0.add(lsn.0, item));
        Ok(())
    }
}

/// Everything that was ever told to the store, and what it promised.
#[derive(Clone)]
pub struct Ledger {
    /// The model after each entry; index = lsn.
    pub after: Vec<Model>,
    pub items: Vec<Item>,
    /// Batches by log: base offset, lsn, stored bytes.
    batches: BTreeMap<u32, Vec<(Offset, u64, Vec<u8>)>>,
    /// Entries up to here must never be lost.
    pub acked: u64,
    /// How often something happened that a workload is meant to bring about.
    pub seen: BTreeMap<&'static str, usize>,
}

impl Default for Ledger {
    fn default() -> Self {
        Ledger {
            after: vec![Model::default()],
            items: Vec::new(),
            batches: BTreeMap::new(),
            acked: 0,
            seen: BTreeMap::new(),
        }
    }
}

impl Ledger {
    pub fn now(&self) -> &Model {
        self.after.last().expect("the first model is always there")
    }

    fn see(&mut self, what: &'static str, times: usize) {
        *self.seen.entry(what).or_default() += times;
    }

    fn note(&mut self, item: Item) {
        let mut model = self.now().clone();
        let lsn = model.lsn + 1;
        model.add(lsn, &item);
        if let Item::Batch(log, bytes) = &item {
            let base = i64::from_be_bytes(*bytes.first_chunk().expect("a batch"));
            self.batches
                .entry(log.0)
                .or_default()
                .push((base, lsn, bytes.clone()));
        }
        self.after.push(model);
        self.items.push(item);
    }

    /// Forgets what did not survive.
    fn cut(&mut self, last: u64) {
        self.after.truncate(last as usize + 1);
        self.items.truncate(last as usize);
        for batches in self.batches.values_mut() {
            batches.retain(|(_, lsn, _)| *lsn <= last);
        }
    }

    /// Holds a store that was just opened against the ledger, and applies what the owner would apply.
    pub fn check(&mut self, store: &Store, replayed: &Model) {
        let last = store.committed().0;
        assert!(
            last >= self.acked,
            "entry {} was acknowledged, the log ends with {last}",
            self.acked
        );
        assert!(last < self.after.len() as u64, "entry {last} was never appended");
        assert_eq!(
            replayed, &self.after[last as usize],
            "what was replayed is what was appended"
        );
        assert_eq!((store.recovered().last, store.last()), (Lsn(last), Lsn(last)));
        self.see("torn or lost end", usize::from(last < self.now().lsn));
        self.see("in doubt and there", usize::from(last > self.acked));
        self.see("snapshot used", usize::from(store.recovered().snapshot.is_some()));
        self.see("rebuilt footer", store.recovered().warnings.len());
        self.cut(last);
        self.acked = last;
        let model = self.now().clone();
        for log in store.logs() {
            if model.dropped.contains(&log.0) {
                store.drop_log(log);
            }
        }
        for (log, start) in &model.start {
            store.set_log_start(LogId(*log), *start);
        }
        self.check_reads(store);
    }

    /// Reads every log from its start to its end.
    pub fn check_reads(&self, store: &Store) {
        let model = self.now();
        for (log, batches) in &self.batches {
            if model.dropped.contains(log) {
                continue;
            }
            let start = model.start.get(log).copied().unwrap_or(0);
            let end = store.committed().0;
            let mut next = start;
            let mut found = Vec::new();
            loop {
                let slices = store
                    .read(LogId(*log), next, i64::MAX, 5000, true)
                    .expect("what is stored can be read");
                if slices.is_empty() {
                    break;
                }
                for slice in slices {
                    for bytes in split(&slice) {
                        let delta = i32::from_be_bytes(*bytes[23..].first_chunk().expect("a batch"));
                        next =
                            i64::from_be_bytes(*bytes.first_chunk().expect("a batch")) + i64::from(delta) + 1;
                        found.push(bytes.to_vec());
                    }
                }
            }
            let live = |(base, lsn, bytes): &&(Offset, u64, Vec<u8>)| {
                let delta = i32::from_be_bytes(*bytes[23..].first_chunk().expect("a batch"));
                base + i64::from(delta) >= start && *lsn <= end
            };
            let expected: Vec<Vec<u8>> = batches
                .iter()
                .filter(live)
                .map(|(_, _, bytes)| bytes.clone())
                .collect();
            assert!(
                found == expected,
                "log {log} from {start}: {} batches, expected {}",
                found.len(),
                expected.len()
            );
        }
    }
}

/// The batches in a slice.
pub fn split(slice: &[u8]) -> Vec<&[u8]> {
    let mut batches = Vec::new();
    let mut rest = slice;
    while !rest.is_empty() {
        let len = 12 + i32::from_be_bytes(*rest[8..].first_chunk().expect("a batch"));
        let (batch, behind) = rest.split_at(len as usize);
        batches.push(batch);
        rest = behind;
    }
    batches
}

/// Opens the folder and holds it against the ledger.
pub fn open_checked(disk: &Arc<SimDisk>, options: &Options, ledger: &mut Ledger) -> Store {
    let mut owner = Owner::default();
    let disk: Arc<dyn anabranch_store::Disk> = Arc::<SimDisk>::clone(disk);
    let store = Store::open_manual(Path::new(FOLDER), disk, options.clone(), &mut owner)
        .expect("nothing that was acknowledged is damaged");
    ledger.check(&store, &owner.0);
    store
}

/// One random step. False when the disk failed and the run is over.
pub fn step(store: &Store, disk: &SimDisk, ledger: &mut Ledger, rng: &mut Rng) -> bool {
    let log = 1 + rng.below(LOGS) as u32;
    let model = ledger.now().clone();
    let next = model.next.get(&log).copied().unwrap_or(0);
    match rng.below(100) {
        0..34 => {
            let len = if rng.chance(25) {
                rng.below(9000)
            } else {
                rng.below(700)
            };
            let body: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            let entry = batch(log, next, 1 + rng.below(5) as i32, rng.below(1000) as i64, &body);
            if !model.dropped.contains(&log) {
                ledger.note(Item::Batch(entry.log, stored(&entry)));
                assert_eq!(store.append_batch(entry), Lsn(ledger.now().lsn));
            }
        }
        34..42 => {
            let mut command = vec![b'x'];
            command.extend((0..rng.below(400)).map(|n| n as u8));
            state(store, ledger, command);
        }
        42..75 => drain(store, ledger),
        75..82 => {
            drain(store, ledger);
            let at = ledger.acked;
            if store.committed().0 == at && store.poisoned().is_none() {
                let written = store.write_snapshot(Lsn(at), &ledger.after[at as usize].encode());
                ledger.see("snapshot", usize::from(written.is_ok()));
            }
        }
        82..92 => {
            let start = model.start.get(&log).copied().unwrap_or(0);
            if next > start && !model.dropped.contains(&log) {
                let to = start + 1 + rng.below((next - start) as u64) as i64;
                let mut command = vec![b's'];
                command.extend(i64::from(log).to_le_bytes());
                command.extend(to.to_le_bytes());
                state(store, ledger, command);
                drain(store, ledger);
                if store.committed().0 == ledger.now().lsn {
                    store.set_log_start(LogId(log), to);
                }
            }
        }
        92..98 => {
            if let Ok(done) = store.maintain() {
                ledger.see("freed", done.freed);
                ledger.see("packed", done.packed);
            }
        }
        _ => {
            if rng.chance(30) && !model.dropped.contains(&log) {
                let mut command = vec![b'd'];
                command.extend(i64::from(log).to_le_bytes());
                state(store, ledger, command);
                drain(store, ledger);
                if store.committed().0 == ledger.now().lsn {
                    store.drop_log(LogId(log));
                }
            }
        }
    }
    !disk.is_off() && store.poisoned().is_none()
}

fn state(store: &Store, ledger: &mut Ledger, command: Vec<u8>) {
    ledger.note(Item::State(command.clone()));
    assert_eq!(store.append_state(command), Lsn(ledger.now().lsn));
}

/// Commits all that is queued, and notes what is acknowledged.
pub fn drain(store: &Store, ledger: &mut Ledger) {
    let before = store.usage().segments;
    while store.commit_once() == Step::Committed {}
    ledger.see("rolled", store.usage().segments - before);
    ledger.acked = store.committed().0;
}
