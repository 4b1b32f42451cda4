use anabranch_wire::batch::{BatchIter, Compression};
use anabranch_wire::slot::slot_of_key;

use super::super::fake::{Fake, ID, LIMITS as DECOMPRESS, LOG, delivered, header, share, sieve};
use super::*;
use anabranch_core::slots::SlotSet;
use anabranch_wire::batch::records;

const WIDE: ReadLimits = ReadLimits {
    bytes_max: 1 << 20,
    records_max: usize::MAX,
    scan_bytes_max: 8 << 20,
};

fn query<'a>(fake: &Fake, sieve: &'a Sieve, from: Offset) -> SliceQuery<'a> {
    SliceQuery {
        log: LOG,
        id_bits: ID,
        sieve,
        from,
        upto: fake.end(),
    }
}

fn read(fake: &Fake, cache: &ScanCache, sieve: &Sieve, from: Offset, limits: &ReadLimits) -> SliceRead {
    let found = read_slice(fake, cache, &query(fake, sieve, from), limits).unwrap();
    let bytes: usize = found.batches.iter().map(Bytes::len).sum();
    assert_eq!(bytes as u64, found.cost.delivered);
    assert_eq!(
        found.records.is_empty(),
        bytes == 0,
        "never bytes without a record"
    );
    assert!(from <= found.end && found.end <= found.scanned_to.max(from));
    found
}

/// Reads a slice to its end as a client does: each time from where it stands.
fn read_all(fake: &Fake, cache: &ScanCache, sieve: &Sieve, limits: &ReadLimits) -> (Vec<Offset>, Cost) {
    let (mut from, mut all, mut cost) = (0, Vec::new(), Cost::default());
    for _ in 0..1_000_000 {
        let found = read(fake, cache, sieve, from, limits);
        let offsets: Vec<Offset> = found.records.iter().map(|(offset, _)| *offset).collect();
        assert!(offsets.iter().all(|offset| (from..found.end).contains(offset)));
        all.extend(offsets);
        cost += found.cost;
        match found.stop {
            Stop::Exhausted => return (all, cost),
            Stop::Full => assert!(!found.records.is_empty() && found.scanned_to >= found.end),
            Stop::Budget => assert!(found.scanned_to > from),
            Stop::NeedsDisk => unreachable!("this source may wait"),
        }
        from = found.scanned_to;
    }
    panic!("the slice has no end");
}

fn offsets_of(fake: &Fake, sieve: &Sieve) -> Vec<Offset> {
    let kept = |(offset, slot, _): (Offset, Slot, Vec<u8>)| sieve.keeps(slot, offset).then_some(offset);
    fake.records().into_iter().filter_map(kept).collect()
}

fn mixed() -> Fake {
    let mut fake = Fake::new();
    for (n, compression) in Compression::ALL.into_iter().cycle().take(60).enumerate() {
        let keys: Vec<String> = (0..1 + n % 23)
            .map(|i| format!("{}", (i * 31 + n) % 40))
            .collect();
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if n % 4 == 0 {
            keys.extend(["", ""]);
        }
        fake.push(compression, 50 + n * 3, &keys);
    }
    fake
}

#[test]
fn the_members_of_a_group_get_each_record_once_whatever_the_limits() {
    let fake = mixed();
    let cache = ScanCache::new(4 << 20);
    let limits = |bytes_max, records_max, scan_bytes_max| ReadLimits {
        bytes_max,
        records_max,
        scan_bytes_max,
    };
    for limits in [
        WIDE,
        limits(700, 1_000, 1 << 20),
        limits(1 << 20, 1, 1 << 20),
        limits(1, 1_000, 1),
        limits(5_000, 7, 300),
    ] {
        for members in [1, 2, 8] {
            let mut all = Vec::new();
            for member in 0..members {
                let sieve = sieve(&share(member, members), 0, Offset::MAX);
                let (offsets, _) = read_all(&fake, &cache, &sieve, &limits);
                assert_eq!(offsets, offsets_of(&fake, &sieve));
                all.extend(offsets);
            }
            all.sort_unstable();
            assert_eq!(all, (0..fake.end()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn records_come_verbatim_with_their_keys() {
    let fake = mixed();
    let sieve = sieve(&share(1, 3), 0, Offset::MAX);
    let found = read(&fake, &ScanCache::new(1 << 20), &sieve, 0, &WIDE);
    let expected: Vec<_> = fake
        .records()
        .into_iter()
        .filter(|(offset, slot, _)| sieve.keeps(*slot, *offset))
        .map(|(offset, _, key)| (offset, key))
        .collect();
    assert_eq!(delivered(&found.batches), expected);
    assert_eq!(found.stop, Stop::Exhausted);
    assert_eq!(
        (found.scanned_to, found.records.len()),
        (fake.end(), expected.len())
    );
}

#[test]
fn an_answer_stays_within_its_bytes_but_for_a_first_record() {
    let fake = mixed();
    let cache = ScanCache::new(4 << 20);
    let sieve = sieve(&SlotSet::all(), 0, Offset::MAX);
    for bytes_max in [1, 200, 1_000, 3_000, 20_000] {
        let limits = ReadLimits { bytes_max, ..WIDE };
        let mut from = 0;
        while from < fake.end() {
            let found = read(&fake, &cache, &sieve, from, &limits);
            let bytes = found.cost.delivered as usize;
            assert!(
                bytes <= bytes_max || found.records.len() == 1,
                "{bytes} of {bytes_max}"
            );
            if found.stop == Stop::Full && bytes_max >= 1_000 {
                assert!(
                    bytes > bytes_max / 2,
                    "{bytes} of {bytes_max}: close to the limit"
                );
            }
            from = found.end;
        }
    }
}

#[test]
fn a_whole_batch_is_shared_and_stays_compressed() {
    let mut fake = Fake::new();
    for compression in Compression::ALL {
        fake.push(compression, 3_000, &["a", "b", "c", "d"]);
    }
    let cache = ScanCache::new(1 << 20);
    let sieve = sieve(&SlotSet::all(), 0, Offset::MAX);
    let first = read(&fake, &cache, &sieve, 0, &WIDE);
    let bytes = first.batches.concat();
    let found: Vec<_> = BatchIter::new(&bytes)
        .map(|found| found.unwrap().1.compression().unwrap())
        .collect();
    assert_eq!(found, Compression::ALL);
    let again = read(&fake, &cache, &sieve, 0, &WIDE);
    let large = |read: &SliceRead| {
        let pieces = read.batches.iter().filter(|piece| piece.len() > 12_000);
        pieces.map(|piece| piece.as_ptr()).collect::<Vec<_>>()
    };
    assert_eq!(large(&first).len(), 1);
    assert_eq!(large(&first), large(&again), "the same memory");
}

#[test]
fn nothing_below_the_fetch_offset_or_a_slots_start_is_given() {
    let mut fake = Fake::new();
    fake.push(Compression::Lz4, 20, &["a", "b", "a", "b", "a", "b", "a", "b"]);
    let cache = ScanCache::new(1 << 20);
    let mut jump = Sieve::empty(Offset::MAX);
    jump.add(&[slot_of_key(b"a")].into_iter().collect(), 4);
    jump.add(&[slot_of_key(b"b")].into_iter().collect(), 1);
    let offsets = |from| {
        let found = read(&fake, &cache, &jump, from, &WIDE);
        delivered(&found.batches)
            .into_iter()
            .map(|(offset, _)| offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(offsets(0), [1, 3, 4, 5, 6, 7]);
    assert_eq!(offsets(5), [5, 6, 7]);
    assert_eq!(offsets(8), [0; 0]);
}

#[test]
fn a_closed_slice_ends_below_its_end() {
    let fake = mixed();
    let cache = ScanCache::new(4 << 20);
    for to in 0..fake.end().min(60) {
        let sieve = sieve(&share(0, 2), 0, to);
        let found = read(&fake, &cache, &sieve, 0, &WIDE);
        assert_eq!(delivered(&found.batches).len(), offsets_of(&fake, &sieve).len());
        assert_eq!(found.stop, Stop::Exhausted);
        assert!(found.end <= to && found.scanned_to == to);
        let bytes = found.batches.concat();
        for (_, header) in BatchIter::new(&bytes).flatten() {
            assert!(header.next_offset() - ID <= to);
        }
    }
}

#[test]
fn a_slice_without_matches_says_how_far_and_is_searched_in_turns() {
    let mut fake = Fake::new();
    for _ in 0..100 {
        fake.push(Compression::Zstd, 900, &["a"; 50]);
    }
    fake.push(Compression::None, 10, &["rare"]);
    let cache = ScanCache::new(16 << 20);
    let sieve = sieve(&[slot_of_key(b"rare")].into_iter().collect(), 0, Offset::MAX);
    let limits = ReadLimits {
        scan_bytes_max: 500_000,
        ..WIDE
    };
    let (mut from, mut turns) = (0, 0);
    loop {
        let found = read(&fake, &cache, &sieve, from, &limits);
        if !found.records.is_empty() {
            assert_eq!(found.records, [(5_000, slot_of_key(b"rare"))]);
            break;
        }
        assert_eq!((found.stop, found.end), (Stop::Budget, from));
        turns += 1;
        from = found.scanned_to;
    }
    assert!(
        (8..13).contains(&turns),
        "{turns} turns of 500,000 bytes for 4,600,000"
    );
    let found = read(&fake, &cache, &sieve, 5_001, &limits);
    assert_eq!(
        (found.stop, found.scanned_to, found.batches.len()),
        (Stop::Exhausted, 5_001, 0)
    );
}

#[test]
fn control_batches_are_kept_between_data_only() {
    let mut fake = Fake::new();
    fake.push_control();
    fake.push(Compression::None, 10, &["a", "b"]);
    fake.push_control();
    fake.push(Compression::None, 10, &["b"]);
    fake.push_control();
    fake.push(Compression::None, 10, &["a"]);
    fake.push_control();
    let cache = ScanCache::new(1 << 20);
    let controls = |key: &str, limits: &ReadLimits| {
        let sieve = sieve(
            &[slot_of_key(key.as_bytes())].into_iter().collect(),
            0,
            Offset::MAX,
        );
        let found = read(&fake, &cache, &sieve, 0, limits);
        let bytes = found.batches.concat();
        assert!(bytes.len() <= limits.bytes_max);
        BatchIter::new(&bytes)
            .map(|found| found.unwrap().1)
            .map(|header| (header.base_offset - ID, header.is_control()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        controls("a", &WIDE),
        [(1, false), (3, true), (5, true), (6, false)]
    );
    assert_eq!(controls("b", &WIDE), [(1, false), (3, true), (4, false)]);
    assert_eq!(controls("none", &WIDE), []);
    // No room for what follows: then the control batch in front of it stays away, too.
    let size = fake.batches[1].len() + 10;
    let limits = ReadLimits {
        bytes_max: size,
        ..WIDE
    };
    assert_eq!(controls("a", &limits), [(1, false)]);
}

#[test]
fn a_batch_that_cannot_be_read_goes_whole_to_one_slice() {
    let mut fake = Fake::new();
    fake.push(Compression::None, 10, &["a"; 5]);
    fake.push_unreadable();
    fake.push(Compression::None, 10, &["a"; 5]);
    let cache = ScanCache::new(1 << 20);
    let slot = slot_of_batch(5);
    let owner = sieve(&[slot].into_iter().collect(), 0, Offset::MAX);
    let found = read(&fake, &cache, &owner, 0, &WIDE);
    assert_eq!(found.records, [(7, slot)]);
    let bytes = found.batches.concat();
    assert_eq!(bytes[61..], fake.batches[1][61..]);
    assert_eq!(
        (found.end, header(&bytes.clone().into()).base_offset),
        (8, ID + 5)
    );
    assert!(
        records(&bytes, &DECOMPRESS)
            .unwrap()
            .iter()
            .any(|record| record.is_err()),
        "as damaged as it is"
    );
    let mut others = SlotSet::all();
    others.remove(slot);
    let found = read(&fake, &cache, &sieve(&others, 0, Offset::MAX), 0, &WIDE);
    assert_eq!(
        delivered(&found.batches).len(),
        10,
        "nobody else is stopped by it"
    );
    // A slice that ends inside it does not have it; its successor has.
    let closed = sieve(&SlotSet::all(), 0, 7);
    assert_eq!(read(&fake, &cache, &closed, 5, &WIDE).records, []);
    let successor = sieve(&SlotSet::all(), 7, Offset::MAX);
    assert_eq!(read(&fake, &cache, &successor, 7, &WIDE).records[0], (7, slot));
    // It is taken alone, or not at all.
    let limits = ReadLimits {
        bytes_max: 10,
        ..WIDE
    };
    assert_eq!(read(&fake, &cache, &owner, 0, &limits).records, [(7, slot)]);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let limits = ReadLimits {
        bytes_max: fake.batches[0].len() + 20,
        ..WIDE
    };
    let found = read(&fake, &cache, &all, 0, &limits);
    assert_eq!(
        (found.records.len(), found.stop, found.scanned_to),
        (5, Stop::Full, 7)
    );
}

#[test]
fn what_needs_the_disk_ends_the_answer_or_is_said_at_once() {
    let mut fake = mixed();
    fake.may_wait = false;
    fake.on_disk = fake.end() / 2;
    let cache = ScanCache::new(4 << 20);
    let all = sieve(&SlotSet::all(), 0, Offset::MAX);
    let refused = read_slice(&fake, &cache, &query(&fake, &all, 0), &WIDE);
    assert!(matches!(refused, Err(SourceError::NeedsDisk)));
    let found = read(&fake, &cache, &all, fake.on_disk, &WIDE);
    assert_eq!((found.stop, found.scanned_to), (Stop::Exhausted, fake.end()));
    // Batches 40 on are in the cache; then they are forgotten by the source's memory.
    fake.push(Compression::None, 10, &["late"]);
    fake.on_disk = fake.end();
    let found = read(&fake, &cache, &all, fake.end() / 2 + 20, &WIDE);
    assert_eq!((found.stop, found.scanned_to), (Stop::NeedsDisk, fake.end() - 1));
    assert!(!found.records.is_empty());
}

#[test]
fn members_on_one_log_cost_little_more_than_one() {
    let mut fake = Fake::new();
    fake.fill(400, 50, |_, random| random % 1_000);
    let limits = ReadLimits {
        bytes_max: 32 << 10,
        ..WIDE
    };
    for (members, most) in [(2, 1.3), (4, 1.6), (8, 2.0)] {
        // Small against the log: sharing must come from reading together.
        let cache = ScanCache::new(512 << 10);
        let sieves: Vec<_> = (0..members)
            .map(|member| sieve(&share(member, members), 0, Offset::MAX))
            .collect();
        let mut at = vec![0; sieves.len()];
        let mut cost = Cost::default();
        while at.iter().any(|at| *at < fake.end()) {
            for (sieve, at) in sieves.iter().zip(&mut at) {
                let found = read(&fake, &cache, sieve, *at, &limits);
                *at = found.scanned_to;
                cost += found.cost;
            }
        }
        assert_eq!(cache.totals(), cost, "what the answers say that they cost");
        let read = cost.read as f64 / cost.delivered as f64;
        let opened = cost.opened as f64 / cost.delivered as f64;
        assert!(
            read <= most && opened <= most,
            "{members} members: read {read:.2}, opened {opened:.2}"
        );
    }
}
