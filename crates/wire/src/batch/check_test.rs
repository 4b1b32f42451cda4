//! One test per rule of a produced batch.

use super::super::{BatchBuilder, HeaderField, patch};
use super::*;
use crate::ErrorCode;

const LIMITS: ProduceLimits = ProduceLimits {
    bytes_max: 1 << 20,
    transactional: false,
    zstd: true,
    timestamps_ms: None,
};
const DECOMPRESS: DecompressLimits = DecompressLimits {
    bytes_max: 1 << 20,
    ratio_max: 1000,
};

/// Two records of an idempotent producer.
fn builder() -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    builder.producer(9, 0, 0);
    builder.append(
        1_000,
        Some(b"k"),
        Some(b"v"),
        &[HeaderField {
            key: "h",
            value: None,
        }],
    );
    builder.append(2_000, None, Some(b"w"), &[]);
    builder
}

fn batch() -> Vec<u8> {
    builder().finish().unwrap().to_vec()
}

/// The batch with its header changed and the checksum made right again.
fn altered(change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let mut bytes = batch();
    let mut header = BatchHeader::parse(&bytes).unwrap();
    change(&mut header);
    let raw = bytes.first_chunk_mut().unwrap();
    header.write_to(raw);
    super::super::header::seal(&mut bytes);
    bytes
}

fn refused(bytes: &[u8], limits: &ProduceLimits) -> (BatchError, ErrorCode) {
    let error = check_produced(bytes, limits).unwrap_err();
    let code = error.code();
    (error, code)
}

#[test]
fn accepts_what_clients_send() {
    let bytes = batch();
    assert_eq!(check_produced(&bytes, &LIMITS), BatchHeader::parse(&bytes));
    for compression in Compression::ALL {
        let mut builder = builder();
        builder.compression(compression, None);
        let bytes = builder.finish().unwrap();
        assert!(check_produced(&bytes, &LIMITS).is_ok(), "{compression}");
        assert!(
            check_records(&bytes, &LIMITS, &DECOMPRESS, false).is_ok(),
            "{compression}"
        );
    }
    // The leader epoch is the client's to leave at anything.
    assert!(check_produced(&altered(|h| h.leader_epoch = 77), &LIMITS).is_ok());
}

#[test]
fn without_producer_id_epoch_and_sequence_mean_nothing() {
    // franz-go and Java send -1 and -1, sarama -1 and 0, kafkajs 0 and 0.
    for (epoch, sequence) in [(-1, -1), (-1, 0), (0, 0)] {
        let bytes = altered(|h| (h.producer_id, h.producer_epoch, h.base_sequence) = (-1, epoch, sequence));
        assert!(check_produced(&bytes, &LIMITS).is_ok(), "{epoch} {sequence}");
    }
}

#[test]
fn exactly_one_batch() {
    assert_eq!(
        refused(&[], &LIMITS),
        (BatchError::Missing, ErrorCode::InvalidRecord)
    );
    let two = [batch(), batch()].concat();
    assert_eq!(
        refused(&two, &LIMITS),
        (BatchError::ManyBatches, ErrorCode::InvalidRecord)
    );
    let stray = [batch(), vec![0; 100]].concat();
    let expected = (BatchError::Trailing { bytes: 100 }, ErrorCode::CorruptMessage);
    assert_eq!(refused(&stray, &LIMITS), expected);
    let bytes = batch();
    let (needed, got) = (bytes.len(), bytes.len() - 1);
    let expected = (BatchError::Truncated { needed, got }, ErrorCode::CorruptMessage);
    assert_eq!(refused(&bytes[..got], &LIMITS), expected);
}

#[test]
fn size_limit_comes_before_the_checksum() {
    let mut bytes = batch();
    let size = bytes.len();
    let limits = ProduceLimits {
        bytes_max: size,
        ..LIMITS
    };
    assert!(
        check_produced(&bytes, &limits).is_ok(),
        "a batch of exactly the limit passes"
    );
    bytes[size - 1] ^= 1;
    let limits = ProduceLimits {
        bytes_max: size - 1,
        ..LIMITS
    };
    let expected = BatchError::TooLarge {
        size,
        bytes_max: size - 1,
    };
    assert_eq!(refused(&bytes, &limits), (expected, ErrorCode::MessageTooLarge));
}

#[test]
fn each_damaged_byte_behind_the_checksum_is_seen() {
    let bytes = batch();
    for at in 17..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let (error, code) = refused(&damaged, &LIMITS);
        assert!(matches!(error, BatchError::Crc { .. }), "byte {at}: {error}");
        assert_eq!(code, ErrorCode::CorruptMessage);
    }
}

#[test]
fn old_formats_have_a_code_of_their_own() {
    for (magic, code) in [
        (0, ErrorCode::UnsupportedForMessageFormat),
        (1, ErrorCode::UnsupportedForMessageFormat),
        (3, ErrorCode::CorruptMessage),
    ] {
        let mut bytes = batch();
        bytes[16] = magic;
        assert_eq!(refused(&bytes, &LIMITS).1, code, "{magic}");
    }
}

#[test]
fn counts_must_agree_and_fit() {
    for (record_count, last_offset_delta) in [(0, -1), (-1, -2), (2, 0), (1, 1), (i32::MIN, i32::MAX)] {
        let bytes = altered(|h| (h.record_count, h.last_offset_delta) = (record_count, last_offset_delta));
        let expected = BatchError::RecordCount {
            record_count,
            last_offset_delta,
        };
        assert_eq!(refused(&bytes, &LIMITS), (expected, ErrorCode::InvalidRecord));
    }
    let record_count = i32::MAX;
    let lie = altered(|h| (h.record_count, h.last_offset_delta) = (record_count, record_count - 1));
    let expected = BatchError::RecordCountImpossible {
        record_count,
        bytes: lie.len() - HEADER_LEN,
    };
    assert_eq!(refused(&lie, &LIMITS), (expected, ErrorCode::InvalidRecord));
    // Compressed, a batch may hold more records than it has bytes, but not any number.
    let compressed =
        |count| altered(|h| (h.attributes, h.record_count, h.last_offset_delta) = (4, count, count - 1));
    assert!(check_produced(&compressed(1_000), &LIMITS).is_ok());
    let error = refused(&compressed(i32::MAX), &LIMITS).0;
    assert!(matches!(error, BatchError::RecordCountImpossible { .. }));
}

#[test]
fn a_record_of_the_least_size_counts() {
    let mut builder = BatchBuilder::new();
    for _ in 0..50 {
        builder.append(0, None, None, &[]);
    }
    assert!(check_produced(&builder.finish().unwrap(), &LIMITS).is_ok());
}

#[test]
fn compression_must_be_known_and_allowed() {
    for id in [5, 6, 7] {
        let expected = (
            BatchError::Compression { id },
            ErrorCode::UnsupportedCompressionType,
        );
        assert_eq!(
            refused(&altered(|h| h.attributes = i16::from(id)), &LIMITS),
            expected
        );
    }
    let old = ProduceLimits {
        zstd: false,
        ..LIMITS
    };
    let expected = (
        BatchError::Compression { id: 4 },
        ErrorCode::UnsupportedCompressionType,
    );
    assert_eq!(refused(&altered(|h| h.attributes = 4), &old), expected);
    assert!(check_produced(&altered(|h| h.attributes = 3), &old).is_ok());
}

#[test]
fn control_transactional_and_append_time_are_not_for_clients() {
    let expected = (BatchError::Control, ErrorCode::InvalidRecord);
    assert_eq!(refused(&altered(|h| h.attributes = 0x20), &LIMITS), expected);

    let transactional = altered(|h| h.attributes = 0x10);
    let expected = (BatchError::Transactional, ErrorCode::InvalidRecord);
    assert_eq!(refused(&transactional, &LIMITS), expected);
    let allowed = ProduceLimits {
        transactional: true,
        ..LIMITS
    };
    assert!(check_produced(&transactional, &allowed).is_ok());
    let nobodys = altered(|h| (h.attributes, h.producer_id) = (0x10, -1));
    assert_eq!(refused(&nobodys, &allowed).0, BatchError::Transactional);

    let expected = (BatchError::TimestampType, ErrorCode::InvalidTimestamp);
    assert_eq!(refused(&altered(|h| h.attributes = 0x08), &LIMITS), expected);
}

#[test]
fn a_producer_id_needs_epoch_and_sequence() {
    let expected = BatchError::Sequence {
        producer_id: 9,
        base_sequence: -1,
    };
    assert_eq!(
        refused(&altered(|h| h.base_sequence = -1), &LIMITS),
        (expected, ErrorCode::InvalidRecord)
    );
    let expected = BatchError::ProducerEpoch {
        producer_id: 9,
        producer_epoch: -1,
    };
    let found = refused(&altered(|h| h.producer_epoch = -1), &LIMITS);
    assert_eq!(found, (expected, ErrorCode::InvalidProducerEpoch));
    assert!(
        check_produced(&altered(|h| h.base_sequence = i32::MAX), &LIMITS).is_ok(),
        "sequences wrap"
    );
}

#[test]
fn a_client_may_not_choose_offsets() {
    let mut bytes = batch();
    patch(&mut bytes, 5, 0);
    let expected = (
        BatchError::BaseOffset { base_offset: 5 },
        ErrorCode::InvalidRecord,
    );
    assert_eq!(refused(&bytes, &LIMITS), expected);
}

#[test]
fn timestamps_are_compared_only_if_asked() {
    let far = altered(|h| h.max_timestamp = i64::MAX);
    assert!(check_produced(&far, &LIMITS).is_ok());
    let limits = ProduceLimits {
        timestamps_ms: Some(500..=2_000),
        ..LIMITS
    };
    let expected = BatchError::Timestamp {
        timestamp_ms: i64::MAX,
        min_ms: 500,
        max_ms: 2_000,
    };
    assert_eq!(refused(&far, &limits), (expected, ErrorCode::InvalidTimestamp));
    assert!(check_produced(&batch(), &limits).is_ok());
    assert!(
        check_produced(&altered(|h| h.max_timestamp = -1), &limits).is_ok(),
        "no timestamp"
    );

    // The first record, at 1,000, is too old; only opening the batch shows it.
    let limits = ProduceLimits {
        timestamps_ms: Some(1_500..=2_000),
        ..LIMITS
    };
    assert!(check_produced(&batch(), &limits).is_ok());
    let error = check_records(&batch(), &limits, &DECOMPRESS, false).unwrap_err();
    assert_eq!(
        error,
        BatchError::Timestamp {
            timestamp_ms: 1_000,
            min_ms: 1_500,
            max_ms: 2_000
        }
    );
}

#[test]
fn records_count_up_from_zero() {
    for deltas in [[1, 2], [0, 2]] {
        let mut builder = BatchBuilder::new();
        for delta in deltas {
            builder.append_at(delta, 0, None, None, &[]);
        }
        let error = check_records(&builder.finish().unwrap(), &LIMITS, &DECOMPRESS, false).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidRecord);
        let BatchError::Record { index, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(index, if deltas[0] == 1 { 0 } else { 1 });
    }
}

#[test]
fn compacted_topics_need_keys() {
    let error = check_records(&batch(), &LIMITS, &DECOMPRESS, true).unwrap_err();
    let reason = "a compacted topic needs a key in each record";
    assert_eq!(error, BatchError::Record { index: 1, reason });
    assert!(check_records(&batch(), &LIMITS, &DECOMPRESS, false).is_ok());
}

#[test]
fn headers_are_walked_to_the_end() {
    // The header count of the first record is its fifth byte from the end: count, key length, 'h', null value.
    let mut bytes = batch();
    let first_end = HEADER_LEN + 1 + usize::from(bytes[HEADER_LEN] / 2);
    assert_eq!(bytes[first_end - 4..first_end], [2, 2, b'h', 1]);
    for (count, reason) in [
        (0, "bytes follow its last header"),
        (4, "a header passes its end"),
    ] {
        bytes[first_end - 4] = count;
        let error = check_records(&bytes, &LIMITS, &DECOMPRESS, false).unwrap_err();
        assert_eq!(error, BatchError::Record { index: 0, reason });
    }
}
