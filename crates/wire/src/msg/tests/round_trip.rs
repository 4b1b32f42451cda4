//! Every message in every version: random values come back, and the tables agree.

use std::fmt::Debug;

use super::{Visit, decode, each_message, encode};
use crate::api::ApiKey;
use crate::frame::{Incoming, PREFIX_LEN, encode_request};
use crate::msg::{ApiVersionsRequest, FetchResponse, ListOffsetsRequest, MetadataRequest};
use crate::msg::{OffsetFetchRequest, ProduceRequest};
use crate::prim::{EncodeErrorKind, Message, Random, Rng, Writer};

struct RoundTrip {
    rng: Rng,
    messages: usize,
}

impl Visit for RoundTrip {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self) {
        self.messages += 1;
        for version in T::VERSIONS {
            for _ in 0..40 {
                let message = T::random(&mut self.rng, version);
                let bytes = encode(&message, version);
                let back = decode::<T>(bytes, version).unwrap_or_else(|error| panic!("v{version}: {error}"));
                assert_eq!(back, message, "{} v{version}", T::NAME);
            }
        }
    }
}

#[test]
fn random_values_come_back_in_every_version() {
    let mut visit = RoundTrip {
        rng: Rng::new(7),
        messages: 0,
    };
    each_message(&mut visit);
    assert_eq!(visit.messages, 2 * crate::api::all().len());
}

struct Agree;

impl Visit for Agree {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self) {
        let api = T::KEY.api();
        assert_eq!(api.flexible, T::FLEXIBLE, "first flexible version of {}", T::NAME);
        assert!(
            T::NAME.starts_with(api.name),
            "{} belongs to {}",
            T::NAME,
            api.name
        );
        if let Some(served) = &api.served {
            assert!(
                T::VERSIONS.contains(served.start()) && T::VERSIONS.contains(served.end()),
                "{}",
                T::NAME
            );
        }
    }
}

#[test]
fn the_structs_and_the_table_of_apis_agree() {
    each_message(&mut Agree);
}

struct Outside;

impl Visit for Outside {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self) {
        for version in [*T::VERSIONS.start() - 1, *T::VERSIONS.end() + 1] {
            let error = T::default()
                .encode(&mut Writer::new(), version)
                .expect_err("no such version");
            assert_eq!((error.field, error.kind), (T::NAME, EncodeErrorKind::Version));
            let error = decode::<T>(vec![0; 64].into(), version).expect_err("no such version");
            assert_eq!(error.code(), crate::ErrorCode::UnsupportedVersion);
        }
    }
}

#[test]
fn versions_outside_are_refused() {
    each_message(&mut Outside);
}

#[test]
fn defaults_are_those_of_kafka() {
    let metadata = MetadataRequest::default();
    assert_eq!(
        (metadata.topics, metadata.allow_auto_topic_creation),
        (Some(vec![]), true)
    );
    assert_eq!(crate::msg::FetchRequest::default().replica_id, -1);
    assert_eq!(crate::msg::FetchRequest::default().max_bytes, i32::MAX);
    assert_eq!(
        crate::msg::ApiVersionsResponse::default().finalized_features_epoch,
        -1
    );
    assert_eq!(ProduceRequest::default().transactional_id, None);
    assert_eq!(
        crate::msg::produce::PartitionProduceResponse::default().log_append_time_ms,
        -1
    );
    assert_eq!(ListOffsetsRequest::default().replica_id, 0);
}

#[test]
fn a_value_without_a_place_is_an_error_unless_it_may_be_dropped() {
    let request = OffsetFetchRequest {
        require_stable: true,
        ..Default::default()
    };
    let error = request
        .encode(&mut Writer::new(), 6)
        .expect_err("no place before version 7");
    assert_eq!(
        error.to_string(),
        "OffsetFetchRequest.require_stable in version 6: the version lacks this field, and its value is not the default"
    );
    assert!(request.encode(&mut Writer::new(), 7).is_ok());
    // Ignorable: the name of the client's software is simply not sent.
    let request = ApiVersionsRequest {
        client_software_name: "n".into(),
        ..Default::default()
    };
    assert!(super::encode(&request, 0).is_empty());
    // Tagged and not ignorable.
    let mut response = FetchResponse {
        node_endpoints: vec![Default::default()],
        ..Default::default()
    };
    let error = response
        .encode(&mut Writer::new(), 15)
        .expect_err("no place before version 16");
    assert_eq!(
        (error.field, error.kind),
        ("FetchResponse.node_endpoints", EncodeErrorKind::NotInVersion)
    );
    assert!(response.encode(&mut Writer::new(), 16).is_ok());
    response.node_endpoints.clear();
    assert!(response.encode(&mut Writer::new(), 4).is_ok());
    // Null where the version knows no null.
    let request = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let error = request
        .encode(&mut Writer::new(), 0)
        .expect_err("not nullable in version 0");
    assert_eq!(
        (error.field, error.kind),
        ("MetadataRequest.topics", EncodeErrorKind::Null)
    );
}

#[test]
fn records_of_a_produce_are_a_slice_of_the_frame() {
    let mut rng = Rng::new(1);
    let mut request = ProduceRequest::random(&mut rng, 9);
    while request
        .topic_data
        .iter()
        .all(|topic| topic.partition_data.is_empty())
    {
        request = ProduceRequest::random(&mut rng, 9);
    }
    for partition in request
        .topic_data
        .iter_mut()
        .flat_map(|topic| &mut topic.partition_data)
    {
        partition.records = Some(bytes::Bytes::from(vec![5; 100]).into());
    }
    let frame = encode_request(1, None, &request, 9)
        .expect("representable")
        .to_bytes()
        .slice(PREFIX_LEN..);
    let incoming = Incoming::parse(frame.clone()).expect("a whole header");
    assert_eq!(incoming.header.api_key, ApiKey::Produce);
    let back: ProduceRequest = incoming.decode().expect("a whole body");
    let within = frame.as_ptr_range();
    for partition in back.topic_data.iter().flat_map(|topic| &topic.partition_data) {
        let records = partition.records.as_ref().expect("not null");
        let [slice] = records.slices() else {
            panic!("one slice")
        };
        assert!(within.contains(&slice.as_ptr()) && slice.len() == 100);
    }
}
