//! Batches as Kafka's own Java client 4.3.1 writes them (its `MemoryRecordsBuilder`), pinned: we read every record of
//! them, and write the uncompressed one to the byte.
//!
//! The records follow a rule (`expected`): null and present keys and values, equal header keys, null header values, and
//! timestamps that go back. The small batches hold three of them, the files 1,200, so that each compression spans
//! several blocks.

use super::*;

const RECORDS_IN_FILE: usize = 1_200;
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

/// Three records each.
const SMALL: [(Compression, &str); 5] = [
    (
        Compression::None,
        concat!(
            "0000000000000000000000c70000000902947365ec0000000000020000018bcfe567fb0000018bcfe568060000000000",
            "001092000700000064000000030c00000001010088010010020a6b65792d316a76616c75652031206f66206120626174",
            "6368207769746820746578742074686174207265706561747320616e64207265706561747302026802318e010016040a",
            "6b65792d326a76616c75652032206f662061206261746368207769746820746578742074686174207265706561747320",
            "616e6420726570656174730402680232026801",
        ),
    ),
    (
        Compression::Gzip,
        concat!(
            "0000000000000000000000a00000000902246042020001000000020000018bcfe567fb0000018bcfe568060000000000",
            "001092000700000064000000031f8b08000000000000ffe3616060606464e860641060e2ca4eadd435cc2a4bcc294d55",
            "3054c84f534854484a2c49ce5028cf2cc9502849ad285128c9482c51284a2d484d2c295648cc4b81b1999832980cfb18",
            "19c458c0a618414d3122cd1416a029464c198c00b2df588a96000000",
        ),
    ),
    (
        Compression::Snappy,
        concat!(
            "0000000000000000000000ab000000090257511c050002000000020000018bcfe567fb0000018bcfe568060000000000",
            "0010920007000000640000000382534e41505059000000000100000001000000669601f0400c00000001010088010010",
            "020a6b65792d316a76616c75652031206f66206120626174636820776974682074657874207468617420726570656174",
            "7320616e64200d0c2402026802318e01001604054600320d460032b646001c0402680232026801",
        ),
    ),
    (
        Compression::Lz4,
        concat!(
            "0000000000000000000000a300000009025bc505060003000000020000018bcfe567fb0000018bcfe568060000000000",
            "0010920007000000640000000304224d1860408263000000f4310c00000001010088010010020a6b65792d316a76616c",
            "75652031206f662061206261746368207769746820746578742074686174207265706561747320616e640c00a1020268",
            "02318e010016044600133246001f3246001b80040268023202680100000000",
        ),
    ),
    (
        Compression::Zstd,
        concat!(
            "0000000000000000000000990000000902c24075ed0004000000020000018bcfe567fb0000018bcfe568060000000000",
            "0010920007000000640000000328b52ffd0058e402004245131b80556d6c36748c09cffbe3ffdbebb6844c40764afb68",
            "b838b1c81dc8d99273b5b68cc3024bce54203dd5bad24e6fe57e0bb6cfcd04ce492b72fd129d7dab47010d3b06eb0c59",
            "1c120ef1ee8804000323e06e120402278a19010000",
        ),
    ),
];

const FILES: [(Compression, &[u8]); 4] = [
    (Compression::Gzip, include_bytes!("golden/java-gzip.bin")),
    (Compression::Snappy, include_bytes!("golden/java-snappy.bin")),
    (Compression::Lz4, include_bytes!("golden/java-lz4.bin")),
    (Compression::Zstd, include_bytes!("golden/java-zstd.bin")),
];

struct Expected {
    timestamp: i64,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(&'static str, Option<String>)>,
}

fn expected(i: usize) -> Expected {
    let back = if i.is_multiple_of(7) { 5 } else { 0 };
    Expected {
        timestamp: 1_700_000_000_000 + 3 * i as i64 - back,
        key: (!i.is_multiple_of(5)).then(|| format!("key-{}", i % 50)),
        value: (!i.is_multiple_of(11))
            .then(|| format!("value {i} of a batch with text that repeats and repeats")),
        headers: [("h", Some(i.to_string())), ("h", None)]
            .into_iter()
            .take(i % 3)
            .collect(),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    pairs
        .iter()
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn verify(batch: &[u8], compression: Compression, count: usize) {
    let header = check_produced(batch, &PRODUCE).unwrap();
    assert_eq!(header.compression(), Ok(compression));
    assert_eq!((header.leader_epoch, header.record_count as usize), (9, count));
    assert_eq!(
        (header.producer_id, header.producer_epoch, header.base_sequence),
        (4242, 7, 100)
    );
    assert_eq!(
        (header.base_timestamp, header.last_offset_delta as usize),
        (1_699_999_999_995, count - 1)
    );
    let set = check_records(batch, &PRODUCE, &DECOMPRESS, false).unwrap();
    assert_eq!(set.iter().count(), count);
    for (i, record) in set.iter().enumerate() {
        let (record, expected) = (record.unwrap(), expected(i));
        assert_eq!(
            record.key,
            expected.key.as_deref().map(str::as_bytes),
            "{compression} {i}"
        );
        assert_eq!(
            record.value,
            expected.value.as_deref().map(str::as_bytes),
            "{compression} {i}"
        );
        assert_eq!(set.timestamp_of(&record), expected.timestamp);
        assert_eq!(set.offset_of(&record), i as i64);
        let headers: Vec<_> = record.headers.map(Result::unwrap).collect();
        assert_eq!(headers.len(), expected.headers.len());
        for (header, (key, value)) in headers.iter().zip(&expected.headers) {
            assert_eq!(
                (header.key, header.value),
                (key.as_bytes(), value.as_deref().map(str::as_bytes))
            );
        }
    }
}

fn build(count: usize, compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder
        .leader_epoch(9)
        .producer(4242, 7, 100)
        .compression(compression, None);
    for i in 0..count {
        let Expected {
            timestamp,
            key,
            value,
            headers,
        } = expected(i);
        let headers: Vec<_> = headers
            .iter()
            .map(|(key, value)| HeaderField {
                key,
                value: value.as_deref().map(str::as_bytes),
            })
            .collect();
        let bytes = |text: Option<&String>| text.map(|text| text.as_bytes().to_vec());
        builder.append(
            timestamp,
            bytes(key.as_ref()).as_deref(),
            bytes(value.as_ref()).as_deref(),
            &headers,
        );
    }
    builder.finish().unwrap().to_vec()
}

#[test]
fn reads_the_small_batches_of_the_java_client() {
    for (compression, hex) in SMALL {
        verify(&unhex(hex), compression, 3);
    }
}

#[test]
fn reads_the_long_batches_of_the_java_client() {
    for (compression, batch) in FILES {
        verify(batch, compression, RECORDS_IN_FILE);
    }
}

#[test]
fn writes_the_uncompressed_batch_to_the_byte() {
    assert_eq!(build(3, Compression::None), unhex(SMALL[0].1));
}

#[test]
fn reads_back_its_own() {
    for compression in Compression::ALL {
        verify(&build(RECORDS_IN_FILE, compression), compression, RECORDS_IN_FILE);
    }
}
