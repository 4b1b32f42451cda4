//! What the tests of this crate share: a replay that remembers, and batches to append.
#![allow(dead_code, unreachable_pub, reason = "not every test uses all of it")]

pub mod workload;

use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::{LogId, Lsn, Offset};
use anabranch_store::{Batch, Disk, OpenError, Options, Replay, ReplayError, Store};
use bytes::Bytes;

/// An entry as a replay delivers it, batches one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    State(Vec<u8>),
    Batch(LogId, Vec<u8>),
}

/// Remembers what is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    pub snapshot: Option<Vec<u8>>,
    pub items: Vec<(Lsn, Item)>,
}

impl Replay for Recorder {
    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        self.snapshot = Some(bytes.to_vec());
        Ok(())
    }

    fn state(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), ReplayError> {
        self.items.push((lsn, Item::State(bytes.to_vec())));
        Ok(())
    }

    fn batches(&mut self, lsn: Lsn, log: LogId, bytes: &[u8]) -> Result<(), ReplayError> {
        let mut at = 0;
        let mut lsn = lsn.0;
        while at < bytes.len() {
            let len = 12 + i32::from_be_bytes(bytes[at + 8..at + 12].try_into()?) as usize;
            self.items
                .push((Lsn(lsn), Item::Batch(log, bytes[at..at + len].to_vec())));
            at += len;
            lsn += 1;
        }
        Ok(())
    }
}

/// The bytes of a batch whose offset is not set yet, as a producer sends it.
pub fn sent(records: i32, max_timestamp: i64, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 61];
    bytes[8..12].copy_from_slice(&(49 + body.len() as i32).to_be_bytes());
    bytes[12..16].copy_from_slice(&(-1i32).to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&(records - 1).to_be_bytes());
    bytes[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
    bytes[57..61].copy_from_slice(&records.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

pub fn batch(log: u32, base_offset: Offset, records: i32, max_timestamp: i64, body: &[u8]) -> Batch {
    Batch {
        log: LogId(log),
        base_offset,
        leader_epoch: 5,
        last_offset: base_offset + i64::from(records) - 1,
        max_timestamp,
        bytes: Bytes::from(sent(records, max_timestamp, body)),
    }
}

/// The bytes of a batch as they are stored.
pub fn stored(batch: &Batch) -> Vec<u8> {
    let mut bytes = batch.bytes.to_vec();
    bytes[..8].copy_from_slice(&batch.base_offset.to_be_bytes());
    bytes[12..16].copy_from_slice(&batch.leader_epoch.to_be_bytes());
    bytes
}

/// Small segments, so that tests roll often.
pub fn small() -> Options {
    Options {
        segment_bytes: 64 << 10,
        cache_bytes: 32 << 10,
        index_cache_bytes: 16 << 10,
        spare_segments: 2,
        free_bytes_min: Some(0),
        now_ms: 1_700_000_000_000,
        ..Options::default()
    }
}

pub fn open(folder: &Path, disk: Arc<dyn Disk>, options: Options) -> Result<(Store, Recorder), OpenError> {
    let mut recorder = Recorder::default();
    Store::open(folder, disk, options, &mut recorder).map(|store| (store, recorder))
}

pub fn open_manual(
    folder: &Path,
    disk: Arc<dyn Disk>,
    options: Options,
) -> Result<(Store, Recorder), OpenError> {
    let mut recorder = Recorder::default();
    Store::open_manual(folder, disk, options, &mut recorder).map(|store| (store, recorder))
}

/// Joins what a read gave.
pub fn joined(slices: &[Bytes]) -> Vec<u8> {
    slices.concat()
}

/// All batches of a log that was never cut, in as many reads as it takes.
pub fn read_all(store: &Store, log: LogId) -> Vec<u8> {
    let mut all = Vec::new();
    let mut next = 0;
    loop {
        let slices = store
            .read(log, next, i64::MAX, 1 << 20, true)
            .expect("an intact log can be read");
        if slices.is_empty() {
            return all;
        }
        for slice in slices {
            let mut at = 0;
            while at < slice.len() {
                let field = |from: usize| {
                    i32::from_be_bytes(*slice[at + from..].first_chunk().expect("a whole batch"))
                };
                let base = i64::from_be_bytes(*slice[at..].first_chunk().expect("a whole batch"));
                assert_eq!(base, next, "batches follow each other");
                next = base + i64::from(field(23)) + 1;
                at += 12 + field(8) as usize;
            }
            all.extend_from_slice(&slice);
        }
    }
}
