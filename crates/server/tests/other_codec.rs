//! A conversation in somebody else's codec: what a foreign implementation encodes we understand, and the other way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use bytes::{Buf, Bytes, BytesMut};
use common::{Client, TestServer};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

/// A client that speaks through the other codec.
struct Foreigner {
    client: Client,
    next: i32,
}

impl Foreigner {
    async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        self.next += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.next)
            .with_client_id(Some(StrBytes::from_static_str("foreigner")));
        let mut body = BytesMut::new();
        header.encode(&mut body, R::header_version(version)).unwrap();
        request.encode(&mut body, version).unwrap();
        self.client
            .write(&u32::try_from(body.len()).unwrap().to_be_bytes())
            .await;
        self.client.write(&body).await;
        let mut frame = self.client.frame().await.expect("an answer");
        let header = ResponseHeader::decode(&mut frame, R::Response::header_version(version)).unwrap();
        assert_eq!(header.correlation_id, self.next);
        let response = R::Response::decode(&mut frame, version).unwrap();
        assert!(
            !frame.has_remaining(),
            "{} bytes are left of version {version}",
            frame.len()
        );
        response
    }
}

fn records(compression: Compression) -> Bytes {
    let record = |offset: i64| Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence: i32::try_from(offset).unwrap(),
        timestamp: 5_000 + offset,
        key: Some(Bytes::from(format!("key-{offset}"))),
        value: (offset != 1).then(|| Bytes::from("v".repeat(100))),
        headers: std::iter::once((StrBytes::from_static_str("h"), Some(Bytes::from_static(b"1")))).collect(),
    };
    let all: Vec<Record> = (0..3).map(record).collect();
    let mut bytes = BytesMut::new();
    let options = RecordEncodeOptions {
        version: 2,
        compression,
    };
    RecordBatchEncoder::encode(&mut bytes, &all, &options).unwrap();
    bytes.freeze()
}

fn name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

#[tokio::test]
async fn a_foreign_codec_produces_and_fetches_in_every_version_and_compression() {
    let server = TestServer::start().await;
    let mut foreigner = Foreigner {
        client: server.client().await,
        next: 100,
    };
    for version in 0..=4 {
        let hello = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("foreigner"))
            .with_client_software_version(StrBytes::from_static_str("1.0"));
        let response = foreigner.call(version, &hello).await;
        assert_eq!(response.error_code, 0);
        assert!(
            response
                .api_keys
                .iter()
                .any(|api| api.api_key == 0 && api.max_version >= 12)
        );
    }
    let mut topic_id = uuid_of(&mut foreigner, "t", 9).await;
    for version in 0..=12 {
        let id = uuid_of(&mut foreigner, "t", version).await;
        if version >= 10 {
            topic_id = id;
        }
    }
    let mut count = 0;
    for version in 3..=13 {
        for compression in [
            Compression::None,
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            if compression == Compression::Zstd && version < 7 {
                continue;
            }
            let partition = PartitionProduceData::default().with_records(Some(records(compression)));
            let topic = TopicProduceData::default().with_partition_data(vec![partition]);
            let topic = if version >= 13 {
                topic.with_topic_id(topic_id)
            } else {
                topic.with_name(name("t"))
            };
            let request = ProduceRequest::default()
                .with_acks(-1)
                .with_timeout_ms(1_000)
                .with_topic_data(vec![topic]);
            let response = foreigner.call(version, &request).await;
            let answer = &response.responses[0].partition_responses[0];
            assert_eq!(
                (answer.error_code, answer.base_offset),
                (0, 3 * count),
                "version {version}"
            );
            count += 1;
        }
    }
    for version in 10..=17 {
        let partition = FetchPartition::default().with_partition_max_bytes(10 << 20);
        let topic = FetchTopic::default().with_partitions(vec![partition]);
        let topic = if version >= 13 {
            topic.with_topic_id(topic_id)
        } else {
            topic.with_topic(name("t"))
        };
        let request = FetchRequest::default()
            .with_max_bytes(10 << 20)
            .with_topics(vec![topic])
            .with_session_epoch(-1);
        let response = foreigner.call(version, &request).await;
        let partition = &response.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 3 * count));
        let mut bytes = partition.records.clone().unwrap();
        let sets = RecordBatchDecoder::decode_all(&mut bytes).unwrap();
        let all: Vec<&Record> = sets.iter().flat_map(|set| &set.records).collect();
        let offsets: Vec<i64> = all.iter().map(|record| record.offset).collect();
        assert_eq!(offsets, (0..3 * count).collect::<Vec<_>>());
        assert!(
            all.iter()
                .all(|record| record.value.is_some() == (record.offset % 3 != 1))
        );
        assert!(
            all.iter()
                .all(|record| record.headers.len() == 1 && record.timestamp >= 5_000)
        );
    }
    for version in 1..=10 {
        let partition = ListOffsetsPartition::default().with_timestamp(5_002);
        let topic = ListOffsetsTopic::default()
            .with_name(name("t"))
            .with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_topics(vec![topic]);
        let response = foreigner.call(version, &request).await;
        let partition = &response.topics[0].partitions[0];
        assert_eq!(
            (partition.error_code, partition.offset, partition.timestamp),
            (0, 2, 5_002)
        );
    }
}

async fn uuid_of(foreigner: &mut Foreigner, topic: &str, version: i16) -> uuid::Uuid {
    let topic = MetadataRequestTopic::default().with_name(Some(name(topic)));
    let request = MetadataRequest::default().with_topics(Some(vec![topic]));
    let response = foreigner.call(version, &request).await;
    assert_eq!(response.topics[0].error_code, 0, "version {version}");
    assert_eq!(response.topics[0].partitions[0].leader_id, BrokerId(1));
    response.topics[0].topic_id
}
