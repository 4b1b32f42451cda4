//! A source in memory, and logs to put into it.

use std::sync::Mutex;

use anabranch_core::ids::{LogId, Offset};
use anabranch_core::sieve::Sieve;
use anabranch_core::slots::SlotSet;
use anabranch_wire::batch::{
    BatchBuilder, BatchHeader, BatchIter, Compression, DecompressLimits, commit_marker, records,
};
use anabranch_wire::slot::{SLOTS, Slot};
use bytes::Bytes;

use super::source::{Source, SourceError};

pub(super) const LOG: LogId = LogId(7);
pub(super) const ID: i64 = 3 << 46;
pub(super) const LIMITS: DecompressLimits = DecompressLimits {
    bytes_max: 1 << 26,
    ratio_max: 10_000,
};

/// Stored batches, and what was asked of them.
#[derive(Debug)]
pub(super) struct Fake {
    pub(super) batches: Vec<Bytes>,
    pub(super) may_wait: bool,
    /// Batches that end at or below this count as being on disk.
    pub(super) on_disk: Offset,
    pub(super) bytes_read: Mutex<u64>,
}

pub(super) fn header(batch: &Bytes) -> BatchHeader {
    BatchHeader::parse(batch).unwrap()
}

impl Source for Fake {
    fn read(
        &self,
        log: LogId,
        from: Offset,
        upto: Offset,
        bytes_max: usize,
    ) -> Result<Vec<Bytes>, SourceError> {
        assert_eq!(log, LOG);
        let first = self
            .batches
            .partition_point(|batch| header(batch).last_offset() < from);
        let mut found: Vec<u8> = Vec::new();
        for batch in &self.batches[first..] {
            let fits = found.is_empty() || found.len() + batch.len() <= bytes_max;
            if !fits || header(batch).last_offset() >= upto {
                break;
            }
            if !self.may_wait && header(batch).next_offset() <= self.on_disk {
                return Err(SourceError::NeedsDisk);
            }
            found.extend_from_slice(batch);
        }
        *self.bytes_read.lock().unwrap() += found.len() as u64;
        // In two slices, as the store gives several.
        let middle = BatchIter::new(&found)
            .nth(1)
            .map_or(0, |second| second.unwrap().0);
        let found = Bytes::from(found);
        let slices = [found.slice(..middle), found.slice(middle..)];
        Ok(slices.into_iter().filter(|slice| !slice.is_empty()).collect())
    }

    fn bytes_between(&self, _: LogId, from: Offset, upto: Offset) -> u64 {
        let inside = |batch: &&Bytes| header(batch).last_offset() >= from && header(batch).base_offset < upto;
        self.batches
            .iter()
            .filter(inside)
            .map(|batch| batch.len() as u64)
            .sum()
    }

    fn may_wait(&self) -> bool {
        self.may_wait
    }
}

impl Fake {
    pub(super) fn new() -> Self {
        Self {
            batches: Vec::new(),
            may_wait: true,
            on_disk: 0,
            bytes_read: Mutex::new(0),
        }
    }

    pub(super) fn end(&self) -> Offset {
        self.batches.last().map_or(0, |batch| header(batch).next_offset())
    }

    /// Appends a batch with these keys; an empty key is null.
    pub(super) fn push(&mut self, compression: Compression, value_bytes: usize, keys: &[&str]) {
        let mut builder = BatchBuilder::new();
        builder
            .base_offset(self.end())
            .leader_epoch(2)
            .compression(compression, None);
        for (n, key) in keys.iter().enumerate() {
            let value: Vec<u8> = (0..value_bytes)
                .map(|at| ((at * 7 + n * 13) % 251) as u8)
                .collect();
            builder.append(
                1_000,
                (!key.is_empty()).then_some(key.as_bytes()),
                Some(&value),
                &[],
            );
        }
        self.batches.push(builder.finish().unwrap());
    }

    pub(super) fn push_control(&mut self) {
        let at = self.end();
        self.batches.push(commit_marker(at, at, 2, 1_000).unwrap());
    }

    /// A batch that claims three records and holds none that parse.
    pub(super) fn push_unreadable(&mut self) {
        self.push(Compression::None, 10, &["x", "y", "z"]);
        let mut bytes = self.batches.pop().unwrap().to_vec();
        bytes[61..].fill(0xff);
        self.batches.push(bytes.into());
    }

    /// Many batches with keys of this distribution, which takes a number that looks random.
    pub(super) fn fill(&mut self, batches: usize, per_batch: usize, key: impl Fn(usize, u64) -> u64) {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for batch in 0..batches {
            let keys: Vec<String> = (0..per_batch)
                .map(|_| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    format!("key-{}", key(batch, random >> 11))
                })
                .collect();
            self.push(
                Compression::None,
                20,
                &keys.iter().map(String::as_str).collect::<Vec<_>>(),
            );
        }
    }

    /// All records: offset, slot and key. What cannot be read, and control records, are not among them.
    pub(super) fn records(&self) -> Vec<(Offset, Slot, Vec<u8>)> {
        let mut all = Vec::new();
        for batch in self.batches.iter().filter(|batch| !header(batch).is_control()) {
            let set = records(batch, &LIMITS).unwrap();
            for record in &set {
                let Ok(record) = record else { break };
                let slot = match record.key {
                    Some(key) => anabranch_wire::slot::slot_of_key(key),
                    None => anabranch_wire::slot::slot_of_batch(set.header().base_offset),
                };
                all.push((
                    set.offset_of(&record),
                    slot,
                    record.key.unwrap_or_default().to_vec(),
                ));
            }
        }
        all
    }
}

/// The slots whose number leaves this rest.
pub(super) fn share(rest: u16, of: u16) -> SlotSet {
    (0..SLOTS as u16)
        .filter(|slot| slot % of == rest)
        .filter_map(Slot::new)
        .collect()
}

pub(super) fn sieve(slots: &SlotSet, from: Offset, to: Offset) -> Sieve {
    let mut sieve = Sieve::empty(to);
    sieve.add(slots, from);
    sieve
}

/// Offsets, without the slice's id, and keys of the records in an answer, after the checks of a client.
pub(super) fn delivered(batches: &[Bytes]) -> Vec<(Offset, Vec<u8>)> {
    let bytes = batches.concat();
    let mut all = Vec::new();
    for found in BatchIter::new(&bytes) {
        let (at, header) = found.unwrap();
        let batch = &bytes[at..at + header.size()];
        assert_eq!(header.leader_epoch, -1);
        assert_eq!(header.crc, crc32c::crc32c(&batch[21..]));
        if header.is_control() {
            continue;
        }
        let set = records(batch, &LIMITS).unwrap();
        assert!(header.record_count > 0, "never an empty batch");
        for record in &set {
            let record = record.unwrap();
            all.push((
                set.offset_of(&record) - ID,
                record.key.unwrap_or_default().to_vec(),
            ));
        }
    }
    assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0));
    all
}
