//! Batches as the readers of a divided partition see them: each the records of its slots, cut where the input says.
//!
//! Input: a byte that says how many readers share the slots, one that says how many records an answer holds, and a
//! batch. Whatever the batch, nothing may panic; if its records can be found at all, those of all readers together are
//! those of the batch, each once and byte by byte, and each answer is a batch that reads on its own.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_wire::batch::{
    self, BatchHeader, DecompressLimits, Gather, HEADER_LEN, IndexedBatch, Room, Selection, index_records,
    share_batch, sift,
};
use anabranch_wire::slot::{SLOTS, Slot};
use bytes::Bytes;

const DECOMPRESS: DecompressLimits = DecompressLimits {
    bytes_max: 1 << 20,
    ratio_max: 1_000,
};
/// Bits of a slice's id, as they lie above an offset.
const ID_BITS: i64 = 5 << 46;

/// Records as bytes, by their offset less that of the batch.
type Found = BTreeMap<i32, Vec<u8>>;

/// Goes through the batch as it is, and with length, format and an offset put right as a broker would have them, behind
/// which no mutation would get.
pub fn run(data: &[u8]) {
    let [readers, records_max, batch @ ..] = data else {
        return;
    };
    let readers = 1 + usize::from(*readers) * 16 % SLOTS;
    let records_max = 1 + usize::from(*records_max);
    open(batch);
    let mut stored = batch.to_vec();
    if stored.len() >= HEADER_LEN {
        let length = stored.len() as i32 - 12;
        stored[0] = 0;
        stored[1] &= 0x3f;
        stored[8..12].copy_from_slice(&length.to_be_bytes());
        stored[16] = 2;
        divide(&Bytes::from(stored), readers, records_max);
    }
}

/// Bytes that no broker would store: nothing is expected of them but an end.
fn open(bytes: &[u8]) {
    let batch = Bytes::copy_from_slice(bytes);
    let mut out = Gather::default();
    share_batch(&batch, ID_BITS, &mut out);
    let _ = sift(
        &batch,
        ID_BITS,
        &DECOMPRESS,
        |slot, _| slot.get() % 2 == 0,
        &mut out,
    );
}

fn divide(batch: &Bytes, readers: usize, records_max: usize) {
    let Ok(index) = index_records(batch, &DECOMPRESS) else {
        return;
    };
    let mut merged = Found::new();
    for reader in index
        .iter()
        .map(|(_, slot)| slot.index() % readers)
        .collect::<BTreeSet<_>>()
    {
        read(&index, readers, reader, records_max, &mut merged);
    }
    let mut expected = Found::new();
    records_of(index.stored(), &mut expected);
    assert_eq!(merged, expected, "all slices together are the batch");
}

/// Everything that one reader gets, in answers of so many records.
fn read(index: &IndexedBatch, readers: usize, reader: usize, records_max: usize, merged: &mut Found) {
    let room = Room {
        records_max,
        ..Room::ALL
    };
    let mut from = 0;
    loop {
        let mut taken = Vec::new();
        let keep = |slot: Slot, offset| slot.index() % readers == reader && offset >= from;
        let selection = index.select(&room, keep, &mut taken);
        let mut out = Gather::default();
        index.write(&selection, ID_BITS, &mut out);
        let answer = out.into_pieces().concat();
        assert_eq!(answer.len(), selection.bytes());
        assert_eq!(taken.len(), selection.records());
        if !taken.is_empty() {
            check(&answer, index, &selection);
            records_of(&answer, merged);
        }
        let Some(next) = selection.next() else { return };
        assert!(
            next >= selection.end() && next > from,
            "the next answer goes on behind this one"
        );
        from = next;
    }
}

fn check(answer: &[u8], index: &IndexedBatch, selection: &Selection) {
    let header = BatchHeader::parse(answer).expect("an answer is a batch");
    let stored = index.header();
    assert_eq!((header.size(), header.leader_epoch), (answer.len(), -1));
    assert_eq!(header.base_offset, stored.base_offset + ID_BITS);
    assert_eq!(header.next_offset(), selection.end() + ID_BITS);
    assert_eq!(header.record_count as usize, selection.records());
    if !selection.is_whole() {
        assert_eq!(header.crc, crc32c::crc32c(&answer[21..]));
        assert!(header.last_offset_delta <= stored.last_offset_delta);
    }
}

fn records_of(bytes: &[u8], into: &mut Found) {
    let set = batch::records(bytes, &DECOMPRESS).expect("what was found once can be found again");
    for record in &set {
        let record = record.expect("what was found once can be found again");
        let before = into.insert(record.offset_delta, record.raw.to_vec());
        assert_eq!(before, None, "no record twice");
    }
}
