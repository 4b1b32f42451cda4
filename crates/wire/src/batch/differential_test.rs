//! The public codec crate as second opinion: what one writes, the other reads the same, for every compression.
//!
//! Its known faults are kept out: it merges headers of equal keys, so keys differ here.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as theirs;
use proptest::prelude::*;

use super::*;

const DECOMPRESS: DecompressLimits = DecompressLimits {
    bytes_max: 8 << 20,
    ratio_max: 1000,
};
const PRODUCE: ProduceLimits = ProduceLimits {
    bytes_max: 8 << 20,
    transactional: true,
    zstd: true,
    timestamps_ms: None,
};

/// A record as both sides know it.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), len))
}

fn plain() -> impl Strategy<Value = Plain> {
    let headers = proptest::collection::btree_map("[a-zé]{0,6}", bytes(0..20), 0..4);
    (0..1i64 << 50, bytes(0..80), bytes(0..300), headers).prop_map(|(timestamp, key, value, headers)| Plain {
        timestamp,
        key,
        value,
        headers: headers.into_iter().collect(),
    })
}

fn codec() -> impl Strategy<Value = (Compression, theirs::Compression)> {
    proptest::sample::select(vec![
        (Compression::None, theirs::Compression::None),
        (Compression::Gzip, theirs::Compression::Gzip),
        (Compression::Snappy, theirs::Compression::Snappy),
        (Compression::Lz4, theirs::Compression::Lz4),
        (Compression::Zstd, theirs::Compression::Zstd),
    ])
}

fn to_theirs(index: usize, record: &Plain) -> theirs::Record {
    theirs::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 5,
        producer_id: 77,
        producer_epoch: 2,
        timestamp_type: theirs::TimestampType::Creation,
        offset: index as i64,
        sequence: 1_000 + index as i32,
        timestamp: record.timestamp,
        key: record.key.clone().map(Bytes::from),
        value: record.value.clone().map(Bytes::from),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| (StrBytes::from_string(key.clone()), value.clone().map(Bytes::from)))
            .collect(),
    }
}

fn from_theirs(record: &theirs::Record) -> Plain {
    Plain {
        timestamp: record.timestamp,
        key: record.key.as_ref().map(|bytes| bytes.to_vec()),
        value: record.value.as_ref().map(|bytes| bytes.to_vec()),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| (key.to_string(), value.as_ref().map(|bytes| bytes.to_vec())))
            .collect(),
    }
}

fn ours(records: &[Plain], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new();
    builder
        .leader_epoch(5)
        .producer(77, 2, 1_000)
        .compression(compression, None);
    for record in records {
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(key, value)| HeaderField {
                key,
                value: value.as_deref(),
            })
            .collect();
        builder.append(
            record.timestamp,
            record.key.as_deref(),
            record.value.as_deref(),
            &headers,
        );
    }
    builder.finish().unwrap()
}

fn read_ours(batch: &[u8]) -> Vec<Plain> {
    let set = check_records(batch, &PRODUCE, &DECOMPRESS, false).unwrap();
    let plain = |record: Record<'_>| Plain {
        timestamp: set.timestamp_of(&record),
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record
            .headers
            .map(Result::unwrap)
            .map(|h| {
                (
                    String::from_utf8(h.key.to_vec()).unwrap(),
                    h.value.map(<[u8]>::to_vec),
                )
            })
            .collect(),
    };
    set.iter().map(|record| plain(record.unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn they_read_what_we_write(records in proptest::collection::vec(plain(), 1..40), codec in codec()) {
        let batch = ours(&records, codec.0);
        let set = theirs::RecordBatchDecoder::decode(&mut batch.clone()).unwrap();
        prop_assert_eq!(set.compression, codec.1);
        let read: Vec<_> = set.records.iter().map(from_theirs).collect();
        prop_assert_eq!(&read, &records);
        for (index, record) in set.records.iter().enumerate() {
            prop_assert_eq!(record.offset, index as i64);
            prop_assert_eq!(record.sequence, 1_000 + index as i32);
            prop_assert_eq!((record.producer_id, record.producer_epoch), (77, 2));
            prop_assert_eq!(record.partition_leader_epoch, 5);
        }
        prop_assert_eq!(read_ours(&batch), records);
    }

    #[test]
    fn we_read_what_they_write(records in proptest::collection::vec(plain(), 1..40), codec in codec()) {
        let records_theirs: Vec<_> =
            records.iter().enumerate().map(|(index, record)| to_theirs(index, record)).collect();
        let mut buffer = BytesMut::new();
        let options = theirs::RecordEncodeOptions { version: 2, compression: codec.1 };
        theirs::RecordBatchEncoder::encode(&mut buffer, &records_theirs, &options).unwrap();

        let header = check_produced(&buffer, &PRODUCE).unwrap();
        prop_assert_eq!(header.compression(), Ok(codec.0));
        prop_assert_eq!(header.record_count as usize, records.len());
        prop_assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (77, 2, 1_000));
        prop_assert_eq!(header.max_timestamp, records.iter().map(|r| r.timestamp).max().unwrap());
        prop_assert_eq!(read_ours(&buffer), records);
    }
}
