//! The inputs to start from, made from the codec itself: one file each, `corpus/TARGET/seed-NAME`.

use anabranch_wire::api::{self, ApiKey};
use anabranch_wire::batch::{self, BatchBuilder, Compression, HeaderField};
use anabranch_wire::frame;
use anabranch_wire::msg::{
    CreateTopicsRequest, FetchRequest, FetchResponse, JoinGroupRequest, OffsetCommitRequest,
    OffsetFetchRequest, ProduceRequest, create_topics, fetch, join_group, offset_commit, offset_fetch,
    produce,
};
use anabranch_wire::prim::{Message, Records, Request};
use bytes::Bytes;

use crate::apis::{self, encode};
use crate::request::RESPONSE;

/// A file name with its bytes.
pub type Seed = (String, Vec<u8>);

/// A fuzz target.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it does with an input.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Seed>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "frame",
        run: crate::frame::run,
        seeds: frames,
    },
    Target {
        name: "request",
        run: crate::request::run,
        seeds: bodies,
    },
    Target {
        name: "batch",
        run: crate::batch::run,
        seeds: batches,
    },
    Target {
        name: "sift",
        run: crate::sift::run,
        seeds: divided,
    },
    Target {
        name: "recovery",
        run: crate::recovery::run,
        seeds: damages,
    },
];

fn frames() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (key, versions) in api::advertised() {
        let frame =
            (apis::row(key).default_frame)(*versions.end()).expect("the highest version is a struct's");
        seeds.push((format!("seed-{key}-v{}", versions.end()), frame.to_vec()));
    }
    seeds.push(framed(&produce_request(), 9));
    seeds.push(framed(&fetch_request(), 4));
    seeds.push(framed(&join_request(), 5));
    // An ApiVersions of the future, for which there is a special answer; and what is no Kafka at all.
    let mut unknown = (apis::row(ApiKey::ApiVersions).default_frame)(3)
        .expect("version 3 exists")
        .to_vec();
    unknown[6..8].copy_from_slice(&99i16.to_be_bytes());
    seeds.push(("seed-ApiVersions-v99".into(), unknown));
    seeds.push((
        "seed-http".into(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    ));
    seeds
}

fn framed<T: Request>(request: &T, version: i16) -> Seed {
    let frame = frame::encode_request(3, None, request, version).expect("the seed fits the version");
    (
        format!("seed-full-{}-v{version}", T::KEY),
        frame.to_bytes().to_vec(),
    )
}

fn bodies() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for row in apis::ROWS {
        let (version, body) = (row.default_request)();
        seeds.push(chosen(
            row.key.number() as u8,
            version,
            &body,
            &format!("seed-{}-v{version}", row.key),
        ));
    }
    seeds.extend([3, 9, 13].map(|version| full(&produce_request(), 0, version)));
    seeds.extend([4, 12, 17].map(|version| full(&fetch_request(), 0, version)));
    seeds.extend([4, 12, 17].map(|version| full(&fetch_response(), RESPONSE, version)));
    seeds.extend([0, 5, 9].map(|version| full(&join_request(), 0, version)));
    seeds.extend([2, 8, 10].map(|version| full(&commit_request(), 0, version)));
    seeds.extend([8, 10].map(|version| full(&offset_fetch_request(), 0, version)));
    seeds.extend([2, 7].map(|version| full(&create_request(), 0, version)));
    seeds
}

fn chosen(key: u8, version: i16, body: &[u8], name: &str) -> Seed {
    (name.to_owned(), [&[key, version as u8], body].concat())
}

fn full<T: Message>(message: &T, flag: u8, version: i16) -> Seed {
    let name = format!("seed-full-{}-v{version}", T::NAME);
    chosen(
        T::KEY.number() as u8 | flag,
        version,
        &encode(message, version),
        &name,
    )
}

fn one_record() -> Records {
    let mut builder = BatchBuilder::new();
    builder.append(1_000, Some(b"key"), Some(b"value"), &[]);
    Records::new(vec![builder.finish().expect("one record fits")])
}

fn produce_request() -> ProduceRequest {
    let partition = produce::PartitionProduceData {
        index: 3,
        records: Some(one_record()),
    };
    let topic = produce::TopicProduceData {
        name: "topic".into(),
        topic_id: [7; 16],
        partition_data: vec![partition.clone(), partition],
    };
    ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![topic],
        ..Default::default()
    }
}

fn fetch_request() -> FetchRequest {
    let partition = fetch::FetchPartition {
        fetch_offset: 99,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = fetch::FetchTopic {
        topic: "topic".into(),
        topic_id: [7; 16],
        partitions: vec![partition.clone(), partition],
    };
    FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        topics: vec![topic],
        ..Default::default()
    }
}

fn fetch_response() -> FetchResponse {
    let partition = fetch::PartitionData {
        high_watermark: 1,
        aborted_transactions: Some(vec![fetch::AbortedTransaction {
            producer_id: 1,
            first_offset: 0,
        }]),
        records: Some(one_record()),
        ..Default::default()
    };
    let topic = fetch::FetchableTopicResponse {
        topic: "topic".into(),
        topic_id: [7; 16],
        partitions: vec![partition],
    };
    FetchResponse {
        responses: vec![topic],
        ..Default::default()
    }
}

fn join_request() -> JoinGroupRequest {
    let protocol = join_group::JoinGroupRequestProtocol {
        name: "range".into(),
        metadata: Bytes::from_static(&[0, 1, 0, 0, 0, 1, 0, 5, b't', b'o', b'p', b'i', b'c', 0, 0, 0, 0]),
    };
    JoinGroupRequest {
        group_id: "group".into(),
        session_timeout_ms: 45_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    }
}

fn commit_request() -> OffsetCommitRequest {
    let partition = offset_commit::OffsetCommitRequestPartition {
        committed_offset: 42,
        committed_metadata: Some("note".into()),
        ..Default::default()
    };
    let topic = offset_commit::OffsetCommitRequestTopic {
        name: "topic".into(),
        topic_id: [7; 16],
        partitions: vec![partition],
    };
    OffsetCommitRequest {
        group_id: "group".into(),
        member_id: "member".into(),
        topics: vec![topic],
        ..Default::default()
    }
}

fn offset_fetch_request() -> OffsetFetchRequest {
    let topic = offset_fetch::OffsetFetchRequestTopics {
        name: "topic".into(),
        topic_id: [7; 16],
        partition_indexes: vec![0, 1],
    };
    let some = offset_fetch::OffsetFetchRequestGroup {
        group_id: "one".into(),
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let all = offset_fetch::OffsetFetchRequestGroup {
        group_id: "two".into(),
        topics: None,
        ..Default::default()
    };
    OffsetFetchRequest {
        groups: vec![some, all],
        ..Default::default()
    }
}

fn create_request() -> CreateTopicsRequest {
    let topic = create_topics::CreatableTopic {
        name: "topic".into(),
        num_partitions: 3,
        replication_factor: 1,
        ..Default::default()
    };
    CreateTopicsRequest {
        topics: vec![topic],
        ..Default::default()
    }
}

/// Records with all that a record can have.
fn builder(compression: Compression) -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    builder.producer(9, 1, 100).compression(compression, None);
    let headers = [
        HeaderField {
            key: "h",
            value: Some(b"1"),
        },
        HeaderField {
            key: "h",
            value: None,
        },
        HeaderField {
            key: "",
            value: Some(b""),
        },
    ];
    builder.append(
        1_700_000_000_000,
        Some(b"key"),
        Some(b"value value value value value value"),
        &headers,
    );
    builder.append(1_699_999_999_000, None, None, &[]);
    builder.append(1_700_000_000_500, Some(b""), Some(b""), &headers[..1]);
    builder
}

fn built(builder: BatchBuilder) -> Bytes {
    builder.finish().expect("a few records fit")
}

/// A batch whose compressed bytes are given.
fn around(compression: Compression, packed: &[u8]) -> Vec<u8> {
    let mut bytes = built(builder(Compression::None))[..batch::HEADER_LEN].to_vec();
    let length = (bytes.len() + packed.len()) as i32 - 12;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[22] = compression.id();
    bytes.extend_from_slice(packed);
    bytes
}

fn batches() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = Compression::ALL
        .iter()
        .map(|codec| (format!("seed-{codec}"), built(builder(*codec)).to_vec()))
        .collect();
    let mut add = |name: &str, bytes: Vec<u8>| seeds.push((format!("seed-{name}"), bytes));

    let mut long = BatchBuilder::new();
    long.compression(Compression::Lz4, None);
    for i in 0..300i64 {
        long.append(i, Some(&i.to_be_bytes()), Some(&[b'x'; 300]), &[]);
    }
    add("lz4-two-blocks", built(long).to_vec());

    let mut transactional = builder(Compression::None);
    transactional.transactional(true);
    add("transactional", built(transactional).to_vec());
    add(
        "filler",
        batch::commit_marker(5, 99, 3, 1_000)
            .expect("a short hole")
            .to_vec(),
    );
    let mut gaps = BatchBuilder::new();
    gaps.append_at(3, 7, None, Some(b"x"), &[])
        .append_at(9, 8, None, Some(b"y"), &[]);
    add("gaps", built(gaps).to_vec());
    let plain = built(builder(Compression::None));
    add("two-batches", [&plain[..], &plain].concat());
    add("cut", plain[..plain.len() - 3].to_vec());
    let mut stamped = plain.to_vec();
    batch::set_log_append_time(&mut stamped, 1_800_000_000_000);
    add("append-time", stamped);
    let mut old = plain.to_vec();
    old[16] = 1;
    add("format-1", old);

    // A raw snappy stream of one record, one that declares 4 GiB, a zstd frame that repeats a byte 2^17 times over and
    // over, and a gzip of two members.
    add(
        "snappy-raw",
        around(Compression::Snappy, &[8, 28, 14, 0, 0, 0, 2, b'k', 1, 0]),
    );
    add(
        "snappy-huge",
        around(Compression::Snappy, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0]),
    );
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    for last in [0, 0, 0, 0, 0, 0, 0, 1] {
        bomb.extend_from_slice(&[2 | last, 0, 0x10, 0]);
    }
    add("zstd-bomb", around(Compression::Zstd, &bomb));
    let member =
        batch::compress::compress(Compression::Gzip, None, &[14, 0, 0, 0, 2, b'k', 1, 0]).expect("tiny");
    add("gzip-members", around(Compression::Gzip, &member.repeat(3)));
    seeds
}

/// The same batches for several readers, and one with many keys in each compression.
fn divided() -> Vec<Seed> {
    let with = |name: String, readers: u8, records_max: u8, batch: &[u8]| {
        (name, [&[readers, records_max], batch].concat())
    };
    let mut seeds: Vec<Seed> = batches()
        .into_iter()
        .map(|(name, bytes)| with(name, 1, 255, &bytes))
        .collect();
    for (readers, codec) in (0..).zip(Compression::ALL) {
        let mut builder = BatchBuilder::new();
        builder.base_offset(70_000).compression(codec, None);
        for i in 0..40i64 {
            let key = (i % 7).to_be_bytes();
            builder.append_at(
                i as i32 * 3,
                900 - i,
                (i % 7 > 0).then_some(&key),
                Some(b"some value"),
                &[],
            );
        }
        seeds.push(with(
            format!("seed-keys-{codec}"),
            readers,
            readers,
            &built(builder),
        ));
    }
    seeds
}

/// Each workload undamaged, and with one or two of each kind of damage here and there.
fn damages() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for workload in 0..4 {
        seeds.push((format!("seed-{workload}"), vec![workload]));
        for operation in 0..8 {
            let file = operation + workload;
            let one = [file, 0, 0x10 * operation, 40, operation, 0, 3];
            let two = [file + 2, 0, 0x20 + operation, 0, operation + 1, 0, 1];
            seeds.push((
                format!("seed-{workload}-{operation}"),
                [&[workload], &one[..]].concat(),
            ));
            if workload > 1 {
                seeds.push((
                    format!("seed-{workload}-{operation}-2"),
                    [&[workload], &one[..], &two].concat(),
                ));
            }
        }
    }
    seeds
}
