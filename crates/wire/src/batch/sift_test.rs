use super::super::compress::Compression;
use super::super::header::crc_of;
use super::super::{
    BatchBuilder, BatchIter, HeaderField, ProduceLimits, check_produced, records, set_log_append_time,
};
use super::*;
use crate::slot::{SLOTS, slot_of_batch, slot_of_key};
use proptest::prelude::*;

const LIMITS: DecompressLimits = DecompressLimits {
    bytes_max: 8 << 20,
    ratio_max: 1000,
};
const ID: i64 = 9 << 46;

/// Keys a, b, c ... by turns; the timestamp of record n is 1000 + 10 n.
fn builder(base: i64, keys: &str) -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    builder.base_offset(base).leader_epoch(4).producer(7, 3, 40);
    for (n, key) in (0..).zip(keys.chars()) {
        let headers = [HeaderField {
            key: "n",
            value: Some(&[n as u8]),
        }];
        let key = (key != '-').then(|| key.to_string());
        builder.append(
            1_000 + 10 * n,
            key.as_ref().map(String::as_bytes),
            Some(b"value"),
            &headers,
        );
    }
    builder
}

fn stored(base: i64, keys: &str, compression: Compression) -> Bytes {
    let mut builder = builder(base, keys);
    builder.compression(compression, None);
    builder.finish().unwrap()
}

fn is_key(key: &str) -> impl Fn(Slot, i64) -> bool {
    let slot = slot_of_key(key.as_bytes());
    move |found, _| found == slot
}

fn joined(out: Gather) -> Bytes {
    Bytes::from(out.into_pieces().concat())
}

/// What a client reads: (offset, key, timestamp) of each record, after all checks of a consumer.
fn read(bytes: &[u8]) -> Vec<(i64, Option<Vec<u8>>, i64)> {
    let mut all = Vec::new();
    for found in BatchIter::new(bytes) {
        let (position, header) = found.unwrap();
        let batch = &bytes[position..position + header.size()];
        assert_eq!(header.crc, crc_of(batch), "a right checksum");
        assert_eq!(header.leader_epoch, -1);
        assert!(header.record_count > 0, "never an empty batch");
        let set = records(batch, &LIMITS).unwrap();
        let mut last = header.base_offset - 1;
        let mut max = i64::MIN;
        for record in &set {
            let record = record.unwrap();
            assert!(set.offset_of(&record) > last);
            last = set.offset_of(&record);
            max = max.max(set.timestamp_of(&record));
            all.push((last, record.key.map(<[u8]>::to_vec), set.timestamp_of(&record)));
        }
        assert!(last <= header.last_offset());
        assert_eq!(header.max_timestamp, max);
    }
    all
}

fn offsets(bytes: &[u8]) -> Vec<i64> {
    read(bytes).iter().map(|(offset, ..)| offset - ID).collect()
}

#[test]
fn a_part_has_a_header_as_compaction_leaves_it() {
    for compression in Compression::ALL {
        let batch = stored(100, "abacbcab", compression);
        let mut out = Gather::default();
        let selection = sift(&batch, ID, &LIMITS, is_key("b"), &mut out).unwrap().unwrap();
        let bytes = joined(out);
        assert_eq!(
            (selection.records(), selection.bytes(), selection.is_whole()),
            (3, bytes.len(), false)
        );
        assert_eq!((selection.end(), selection.next()), (108, None));
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(header.size(), bytes.len());
        assert_eq!((header.base_offset, header.last_offset()), (ID + 100, ID + 107));
        assert_eq!((header.record_count, header.leader_epoch), (3, -1));
        assert_eq!((header.base_timestamp, header.max_timestamp), (1_000, 1_070));
        assert_eq!(
            (header.producer_id, header.producer_epoch, header.base_sequence),
            (7, 3, 40)
        );
        assert_eq!(header.compression(), Ok(Compression::None));
        assert_eq!(offsets(&bytes), [101, 104, 107]);
        assert!(
            read(&bytes)
                .iter()
                .all(|(_, key, _)| key.as_deref() == Some(b"b"))
        );
        let timestamps: Vec<i64> = read(&bytes).iter().map(|(.., timestamp)| *timestamp).collect();
        assert_eq!(timestamps, [1_010, 1_040, 1_070]);
    }
}

#[test]
fn a_whole_batch_is_patched_and_shared() {
    for compression in Compression::ALL {
        let keys = "abc".repeat(700);
        let batch = stored(1 << 40, &keys, compression);
        let mut out = Gather::default();
        let selection = sift(&batch, ID, &LIMITS, |_, _| true, &mut out).unwrap().unwrap();
        assert!(selection.is_whole() && selection.bytes() == batch.len());
        let pieces = out.into_pieces();
        if batch.len() > HEADER_LEN + SHARED_BYTES_MIN {
            assert_eq!(pieces.len(), 2);
            assert_eq!(
                pieces[1].as_ptr(),
                batch[HEADER_LEN..].as_ptr(),
                "the same memory"
            );
        }
        let bytes = pieces.concat();
        assert_eq!(bytes[HEADER_LEN - 40..], batch[HEADER_LEN - 40..]);
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(header.compression(), Ok(compression));
        assert_eq!((header.base_offset, header.leader_epoch), (ID + (1 << 40), -1));
        assert_eq!(read(&bytes).len(), keys.len());
    }
}

#[test]
fn nothing_is_made_of_a_batch_without_a_match() {
    let mut out = Gather::default();
    let found = sift(
        &stored(0, "aaa", Compression::Lz4),
        ID,
        &LIMITS,
        is_key("b"),
        &mut out,
    );
    assert_eq!(found, Ok(None));
    assert!(out.is_empty());
}

#[test]
fn starts_per_slot_are_cut_exactly_also_where_all_slots_match() {
    let batch = stored(100, "abababab", Compression::Gzip);
    let (a, b) = (slot_of_key(b"a"), slot_of_key(b"b"));
    let keep = |slot, offset| (slot == a && offset >= 104) || (slot == b && offset >= 101);
    let mut out = Gather::default();
    sift(&batch, ID, &LIMITS, keep, &mut out).unwrap();
    assert_eq!(offsets(&joined(out)), [101, 103, 104, 105, 106, 107]);
}

#[test]
fn the_header_stays_below_the_end_of_the_slice() {
    // Compaction left a header that reaches behind the last record.
    let mut gaps = BatchBuilder::new();
    gaps.base_offset(100);
    for delta in [0, 2, 5, 9] {
        gaps.append_at(delta, 1_000, Some(b"a"), None, &[]);
    }
    let mut gaps = gaps.finish().unwrap().to_vec();
    gaps[23..27].copy_from_slice(&20i32.to_be_bytes());
    let index = index_records(&Bytes::from(gaps), &LIMITS).unwrap();
    for (upto, records, end, next) in [
        (121, 4, 121, None),
        (120, 4, 120, None),
        (110, 4, 110, None),
        (109, 3, 109, Some(109)),
        (106, 3, 106, Some(109)),
        (101, 1, 101, Some(102)),
        (100, 0, 100, Some(100)),
    ] {
        let room = Room { upto, ..Room::ALL };
        let mut taken = Vec::new();
        let selection = index.select(&room, |_, _| true, &mut taken);
        assert_eq!(
            (selection.records(), selection.next(), taken.len()),
            (records, next, records),
            "{upto}"
        );
        let mut out = Gather::default();
        index.write(&selection, ID, &mut out);
        assert_eq!(selection.is_whole(), upto == 121);
        if records > 0 {
            let header = BatchHeader::parse(&joined(out)).unwrap();
            assert_eq!((header.next_offset() - ID, selection.end()), (end, end), "{upto}");
            assert_eq!(header.record_count as usize, records);
        } else {
            assert!(out.is_empty());
        }
    }
}

#[test]
fn a_selection_ends_between_two_records_where_the_room_ends() {
    let batch = stored(100, "aabaabaab", Compression::Zstd);
    let index = index_records(&batch, &LIMITS).unwrap();
    let record = index.body_bytes() / 9;
    for wanted in 1..6 {
        let by_bytes = Room {
            bytes_max: HEADER_LEN + record * wanted + record / 2,
            ..Room::ALL
        };
        let by_records = Room {
            records_max: wanted,
            ..Room::ALL
        };
        for room in [by_bytes, by_records] {
            let mut taken = Vec::new();
            let selection = index.select(&room, is_key("a"), &mut taken);
            let all = [100, 101, 103, 104, 106, 107];
            let offsets: Vec<i64> = taken.iter().map(|(offset, _)| *offset).collect();
            assert_eq!(offsets, all[..wanted]);
            assert_eq!(selection.next(), Some(all[wanted]));
            assert_eq!(
                selection.end(),
                all[wanted],
                "up to the next record, over what is not the slice's"
            );
            assert!(selection.bytes() <= room.bytes_max);
        }
    }
}

#[test]
fn one_record_is_taken_however_large() {
    let mut builder = BatchBuilder::new();
    builder.append(1, Some(b"a"), Some(&[b'x'; 5_000]), &[]);
    builder.append(1, Some(b"a"), Some(&[b'x'; 5_000]), &[]);
    let index = index_records(&builder.finish().unwrap(), &LIMITS).unwrap();
    let mut room = Room {
        bytes_max: 100,
        ..Room::ALL
    };
    let selection = index.select(&room, |_, _| true, &mut Vec::new());
    assert_eq!((selection.records(), selection.next()), (1, Some(1)));
    room.at_least_one = false;
    let selection = index.select(&room, |_, _| true, &mut Vec::new());
    assert_eq!(
        (selection.records(), selection.bytes(), selection.next()),
        (0, 0, Some(0))
    );

    let mut alone = BatchBuilder::new();
    alone.compression(Compression::Zstd, None);
    alone.append(1, Some(b"a"), Some(&[b'x'; 5_000]), &[]);
    let alone = alone.finish().unwrap();
    let index = index_records(&alone, &LIMITS).unwrap();
    room = Room {
        bytes_max: 10,
        ..Room::ALL
    };
    let selection = index.select(&room, |_, _| true, &mut Vec::new());
    assert!(
        selection.is_whole(),
        "a batch of one record is sent as it is stored"
    );
}

#[test]
fn a_compressed_batch_fits_as_it_is_stored() {
    let batch = stored(0, &"a".repeat(500), Compression::Zstd);
    let index = index_records(&batch, &LIMITS).unwrap();
    let room = Room {
        bytes_max: batch.len(),
        ..Room::ALL
    };
    assert!(index.body_bytes() > 2 * batch.len());
    assert!(index.select(&room, |_, _| true, &mut Vec::new()).is_whole());
    let room = Room {
        bytes_max: batch.len() - 1,
        ..Room::ALL
    };
    let selection = index.select(&room, |_, _| true, &mut Vec::new());
    assert!(!selection.is_whole() && selection.bytes() <= room.bytes_max);
}

#[test]
fn append_time_and_transactions_keep_what_they_say() {
    let mut bytes = {
        let mut builder = builder(0, "abab");
        builder.transactional(true);
        builder.finish().unwrap().to_vec()
    };
    set_log_append_time(&mut bytes, 77_000);
    let mut out = Gather::default();
    sift(&Bytes::from(bytes), ID, &LIMITS, is_key("b"), &mut out).unwrap();
    let part = joined(out);
    let header = BatchHeader::parse(&part).unwrap();
    assert!(header.is_log_append_time() && header.is_transactional());
    assert_eq!((header.base_timestamp, header.max_timestamp), (1_000, 77_000));
    assert_eq!(
        read(&part)
            .iter()
            .map(|(.., timestamp)| *timestamp)
            .collect::<Vec<_>>(),
        [77_000, 77_000]
    );
}

#[test]
fn timestamps_that_are_missing_or_run_backwards() {
    let mut builder = BatchBuilder::new();
    for (key, timestamp) in [(b"a", 50), (b"b", -1), (b"a", 40), (b"b", 30)] {
        builder.append(timestamp, Some(key), None, &[]);
    }
    let batch = builder.finish().unwrap();
    for (key, max) in [("a", 50), ("b", 30)] {
        let mut out = Gather::default();
        sift(&batch, ID, &LIMITS, is_key(key), &mut out).unwrap();
        assert_eq!(BatchHeader::parse(&joined(out)).unwrap().max_timestamp, max);
    }
}

#[test]
fn timestamps_that_lie_far_apart() {
    let mut builder = BatchBuilder::new();
    let far = 1_800_000_000_000;
    for (key, timestamp) in [(b"a", 0), (b"b", far - 1), (b"a", far), (b"b", -1)] {
        builder.append(timestamp, Some(key), None, &[]);
    }
    let batch = builder.finish().unwrap();
    for (key, max) in [("a", far), ("b", far - 1)] {
        let mut out = Gather::default();
        sift(&batch, ID, &LIMITS, is_key(key), &mut out).unwrap();
        let bytes = joined(out);
        assert_eq!(BatchHeader::parse(&bytes).unwrap().max_timestamp, max);
        assert_eq!(read(&bytes).len(), 2);
    }
}

#[test]
fn what_a_batch_without_keys_holds_stays_together() {
    let batch = stored(4_711, "----", Compression::None);
    let slot = slot_of_batch(4_711);
    let mut out = Gather::default();
    sift(&batch, ID, &LIMITS, |found, _| found == slot, &mut out).unwrap();
    assert_eq!(read(&joined(out)).len(), 4);
    assert_eq!(
        sift(
            &batch,
            ID,
            &LIMITS,
            |found, _| found != slot,
            &mut Gather::default()
        ),
        Ok(None)
    );
}

#[test]
fn a_batch_that_cannot_be_read_is_shared_whole_and_may_be_cut_short() {
    let batch = stored(5, "abc", Compression::None);
    let mut out = Gather::default();
    share_batch(&batch, ID, &mut out);
    let bytes = joined(out);
    assert_eq!(bytes.len(), batch.len());
    assert_eq!(offsets(&bytes), [5, 6, 7]);
    let mut out = Gather::default();
    share_batch(&batch.slice(..60), ID, &mut out);
    assert!(out.is_empty());
}

fn keys() -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    let key = proptest::option::weighted(0.9, proptest::collection::vec(0u8..6, 0..3));
    proptest::collection::vec(key, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_slices_of_all_slots_are_the_batch(
        keys in keys(), base in 0i64..1 << 45, codec in 0usize..5, members in 1u16..9, cut in 1usize..20,
    ) {
        let mut builder = BatchBuilder::new();
        builder.base_offset(base).compression(Compression::ALL[codec], None);
        for (n, key) in (0..).zip(&keys) {
            builder.append(5_000 - n, key.as_deref(), Some(&[n as u8; 30]), &[]);
        }
        let batch = builder.finish().unwrap();
        let index = index_records(&batch, &LIMITS).unwrap();
        let mut merged = Vec::new();
        for member in 0..members {
            let keep = |slot: Slot, _| slot.get() % members == member;
            // In answers of few records, each from where the last one ended.
            let mut from = 0;
            loop {
                let room = Room { records_max: cut, ..Room::ALL };
                let mut taken = Vec::new();
                let selection = index.select(&room, |slot, offset| keep(slot, offset) && offset >= from, &mut taken);
                let mut out = Gather::default();
                index.write(&selection, ID, &mut out);
                let found = read(&joined(out));
                prop_assert_eq!(found.len(), taken.len());
                for ((offset, key, timestamp), (taken, slot)) in found.into_iter().zip(taken) {
                    prop_assert_eq!(offset, taken + ID);
                    let expected = key.as_deref().map_or_else(|| slot_of_batch(base), slot_of_key);
                    prop_assert_eq!(slot, expected);
                    merged.push((taken, key, timestamp));
                }
                from = selection.end();
                if selection.next().is_none() {
                    break;
                }
            }
        }
        merged.sort();
        let expected: Vec<_> =
            (0..).zip(&keys).map(|(n, key)| (base + n, key.clone(), 5_000 - n)).collect();
        prop_assert_eq!(merged, expected);
        prop_assert!(usize::from(members) < SLOTS);
    }

    #[test]
    fn damaged_batches_never_panic(flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), codec in 0usize..5) {
        let mut bytes = stored(5, "abcabcabc", Compression::ALL[codec]).to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let batch = Bytes::from(bytes);
        let mut out = Gather::default();
        let _ = sift(&batch, ID, &LIMITS, is_key("a"), &mut out);
        share_batch(&batch, ID, &mut out);
    }
}

#[test]
fn a_part_of_a_produced_batch_passes_the_brokers_own_checks() {
    // With the base offset of a produced batch and all records but gaps, only the count rule can fail.
    let mut out = Gather::default();
    sift(
        &stored(0, "aab", Compression::Lz4),
        0,
        &LIMITS,
        is_key("a"),
        &mut out,
    )
    .unwrap();
    let part = joined(out);
    let limits = ProduceLimits {
        bytes_max: 1 << 20,
        transactional: true,
        zstd: true,
        timestamps_ms: None,
    };
    assert_eq!(
        check_produced(&part, &limits),
        Err(BatchError::RecordCount {
            record_count: 2,
            last_offset_delta: 2
        }),
        "what compaction leaves is no batch to produce; everything before that rule holds"
    );
}
