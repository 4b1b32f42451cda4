//! Batches as an attacker or a bad cable would send them: nothing panics, and what is damaged is refused or harmless.

use proptest::prelude::*;

use super::*;

const DECOMPRESS: DecompressLimits = DecompressLimits {
    bytes_max: 1 << 20,
    ratio_max: 1000,
};
const PRODUCE: ProduceLimits = ProduceLimits {
    bytes_max: 1 << 20,
    transactional: false,
    zstd: true,
    timestamps_ms: None,
};

fn batch(compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.producer(1, 0, 0).compression(compression, None);
    for i in 0..8i64 {
        let key = i.to_be_bytes();
        let headers = [HeaderField {
            key: "h",
            value: Some(b"x"),
        }];
        builder.append(1_000 + i, Some(&key), Some(b"value value value"), &headers);
    }
    builder.finish().unwrap().to_vec()
}

/// Everything that ever looks at a batch, without the checksum in the way.
fn poke(bytes: &[u8]) {
    let _ = check_produced(bytes, &PRODUCE);
    let _ = check_records(bytes, &PRODUCE, &DECOMPRESS, false);
    for found in BatchIter::new(bytes) {
        let Ok((position, header)) = found else { continue };
        let (_, _) = (header.next_offset(), header.last_sequence());
        let Ok(set) = records(&bytes[position..], &DECOMPRESS) else {
            continue;
        };
        for record in set.iter().flatten() {
            let (_, _) = (set.offset_of(&record), set.timestamp_of(&record));
            record.headers.for_each(drop);
        }
    }
    let mut changed = bytes.to_vec();
    patch(&mut changed, i64::MAX, i32::MIN);
    set_log_append_time(&mut changed, i64::MIN);
}

/// Makes the checksum right, so that what lies behind it is reached.
fn reseal(bytes: &mut [u8]) {
    super::header::seal(bytes);
}

#[test]
fn a_cut_at_every_byte_is_refused() {
    for compression in Compression::ALL {
        let whole = batch(compression);
        for cut in 0..whole.len() {
            let part = &whole[..cut];
            poke(part);
            assert!(
                check_produced(part, &PRODUCE).is_err(),
                "{compression} cut at {cut}"
            );
            assert!(records(part, &DECOMPRESS).is_err());

            // The same with lengths and checksum that agree with the cut.
            let mut lying = part.to_vec();
            if cut >= HEADER_LEN {
                lying[8..12].copy_from_slice(&(cut as i32 - 12).to_be_bytes());
                reseal(&mut lying);
                poke(&lying);
                assert!(
                    check_records(&lying, &PRODUCE, &DECOMPRESS, false).is_err(),
                    "{compression} {cut}"
                );
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_the_header_is_refused_or_harmless() {
    for compression in Compression::ALL {
        let good = batch(compression);
        for bit in 0..HEADER_LEN * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            poke(&bytes);
            // Only the leader epoch is neither checked nor covered by the checksum.
            let accepted = check_produced(&bytes, &PRODUCE).is_ok();
            assert_eq!(accepted, (12..16).contains(&(bit / 8)), "{compression} bit {bit}");
            reseal(&mut bytes);
            poke(&bytes);
        }
    }
}

#[test]
fn every_flipped_bit_of_the_records_is_harmless() {
    for compression in Compression::ALL {
        let good = batch(compression);
        for bit in HEADER_LEN * 8..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check_produced(&bytes, &PRODUCE).is_err());
            reseal(&mut bytes);
            poke(&bytes);
        }
    }
}

#[test]
fn every_record_count_but_the_right_one_is_refused() {
    for compression in Compression::ALL {
        for count in [i32::MIN, -1, 0, 1, 7, 9, 1_000, i32::MAX] {
            let mut bytes = batch(compression);
            bytes[23..27].copy_from_slice(&count.wrapping_sub(1).to_be_bytes());
            bytes[57..61].copy_from_slice(&count.to_be_bytes());
            reseal(&mut bytes);
            poke(&bytes);
            let error = check_records(&bytes, &PRODUCE, &DECOMPRESS, false).map(drop);
            assert!(error.is_err(), "{compression} {count}");
        }
    }
}

#[test]
fn sizes_that_overlap_are_refused() {
    let one = batch(Compression::None);
    let two = [one.clone(), one.clone()].concat();
    // The first batch claims a part of the second, all of it, or ends inside itself.
    for claimed in [one.len() + 10, two.len(), one.len() - 10] {
        let mut bytes = two.clone();
        bytes[8..12].copy_from_slice(&(claimed as i32 - 12).to_be_bytes());
        poke(&bytes);
        let error = check_produced(&bytes, &PRODUCE).unwrap_err();
        assert!(matches!(error, BatchError::Crc { .. }), "{claimed}: {error}");
        let end = claimed.min(bytes.len());
        reseal(&mut bytes[..end]);
        poke(&bytes);
        assert!(
            check_records(&bytes[..end], &PRODUCE, &DECOMPRESS, false).is_err(),
            "{claimed}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        poke(&bytes);
    }

    #[test]
    fn random_records_behind_a_good_header(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        count in prop_oneof![Just(1i32), 0..50i32, any::<i32>()],
        attributes in 0..8i16,
    ) {
        let mut bytes = batch(Compression::None);
        bytes.truncate(HEADER_LEN);
        bytes.extend_from_slice(&body);
        let length = bytes.len() as i32 - 12;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
        bytes[23..27].copy_from_slice(&count.wrapping_sub(1).to_be_bytes());
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        reseal(&mut bytes);
        poke(&bytes);
    }
}
