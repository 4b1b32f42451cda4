//! Every served API answers in every version, and each says what it should.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_wire::api::{self, ApiKey};
use anabranch_wire::msg::*;
use anabranch_wire::prim::Request;
use common::*;

/// Calls an API in all its versions with a request that is default but for what makes it acceptable.
async fn all_versions<R: Request>(client: &mut Client, request: &R) -> Vec<R::Response> {
    let mut responses = Vec::new();
    for version in R::KEY.api().served.clone().expect("a served API") {
        responses.push(client.call(version, request).await);
    }
    responses
}

#[tokio::test]
async fn every_served_api_answers_a_plain_request_in_every_version() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let group = "g".to_owned();
    let mut seen = Vec::new();
    macro_rules! check {
        ($($request:expr),* $(,)?) => {$(
            let request = $request;
            seen.push(key_of(&request));
            all_versions(&mut client, &request).await;
        )*};
    }
    check!(
        produce("t", 0, -1, batch(&["x"])),
        fetch("t", 0, 0, 0),
        ListOffsetsRequest {
            replica_id: -1,
            ..Default::default()
        },
        MetadataRequest::default(),
        OffsetCommitRequest {
            group_id: group.clone(),
            ..Default::default()
        },
        OffsetFetchRequest::default(),
        FindCoordinatorRequest::default(),
        JoinGroupRequest::default(),
        HeartbeatRequest::default(),
        LeaveGroupRequest::default(),
        SyncGroupRequest::default(),
        DescribeGroupsRequest {
            groups: vec![group.clone()],
            ..Default::default()
        },
        ListGroupsRequest::default(),
        ApiVersionsRequest {
            client_software_name: "test".to_owned(),
            client_software_version: "1".to_owned(),
        },
        CreateTopicsRequest::default(),
        DeleteTopicsRequest::default(),
        DeleteRecordsRequest::default(),
        InitProducerIdRequest {
            transactional_id: None,
            ..Default::default()
        },
        OffsetForLeaderEpochRequest {
            replica_id: -1,
            ..Default::default()
        },
        DescribeAclsRequest::default(),
        CreateAclsRequest {
            creations: vec![Default::default()]
        },
        DeleteAclsRequest {
            filters: vec![Default::default()]
        },
        DescribeConfigsRequest::default(),
        AlterConfigsRequest::default(),
        DescribeLogDirsRequest { topics: None },
        CreatePartitionsRequest::default(),
        DeleteGroupsRequest {
            groups_names: vec![group.clone()]
        },
        ElectLeadersRequest {
            topic_partitions: None,
            ..Default::default()
        },
        IncrementalAlterConfigsRequest::default(),
        AlterPartitionReassignmentsRequest::default(),
        ListPartitionReassignmentsRequest::default(),
        OffsetDeleteRequest {
            group_id: group.clone(),
            ..Default::default()
        },
        DescribeClientQuotasRequest::default(),
        AlterClientQuotasRequest {
            entries: vec![Default::default()],
            ..Default::default()
        },
        DescribeUserScramCredentialsRequest { users: None },
        DescribeClusterRequest::default(),
        DescribeProducersRequest::default(),
        DescribeTransactionsRequest {
            transactional_ids: vec!["x".to_owned()]
        },
        ListTransactionsRequest::default(),
        ConsumerGroupHeartbeatRequest {
            group_id: group.clone(),
            ..Default::default()
        },
        ConsumerGroupDescribeRequest {
            group_ids: vec![group.clone()],
            ..Default::default()
        },
        ListConfigResourcesRequest::default(),
        DescribeTopicPartitionsRequest::default(),
    );
    let served: Vec<ApiKey> = api::all()
        .iter()
        .filter(|api| api.served.is_some())
        .map(|api| api.key)
        .collect();
    for key in served {
        assert!(seen.contains(&key), "{key:?} is served but not tried here");
    }
}

fn key_of<R: Request>(_: &R) -> ApiKey {
    R::KEY
}

#[tokio::test]
async fn an_unknown_version_of_api_versions_gets_the_list_in_version_zero() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client
        .write(&[0, 0, 0, 10, 0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff])
        .await;
    let frame = client.frame().await.unwrap();
    let (id, response) = anabranch_wire::frame::decode_response::<ApiVersionsResponse>(frame, 0).unwrap();
    assert_eq!((id, response.error_code), (7, 35));
    assert!(
        response
            .api_keys
            .iter()
            .any(|api| api.api_key == 18 && api.max_version == 4)
    );
    // The connection is as good as before.
    client.call(0, &ApiVersionsRequest::default()).await;
}

#[tokio::test]
async fn metadata_tells_what_the_client_dialled() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for version in 0..=13 {
        let response = client.call(version, &MetadataRequest::default()).await;
        let broker = &response.brokers[0];
        assert_eq!((broker.node_id, broker.host.as_str()), (1, "127.0.0.1"));
        assert_eq!(broker.port, i32::from(server.address().port()));
    }
    let other = TestServer::with(|config| {
        config.listeners[0].advertise = Some(anabranch_server::Advertised {
            host: "broker.example".to_owned(),
            port: 1234,
        });
    })
    .await;
    let mut client = other.client().await;
    let response = client
        .call(
            1,
            &FindCoordinatorRequest {
                key: "g".to_owned(),
                ..Default::default()
            },
        )
        .await;
    assert_eq!(
        (response.host.as_str(), response.port, response.error_code),
        ("broker.example", 1234, 0)
    );
    let cluster = client.call(2, &DescribeClusterRequest::default()).await;
    assert_eq!(
        (cluster.brokers[0].host.as_str(), cluster.brokers[0].port),
        ("broker.example", 1234)
    );
    assert_eq!(cluster.cluster_id, other.running.cluster_id());
}

#[tokio::test]
async fn metadata_creates_topics_on_demand_with_a_leader_at_once() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let ask = |names: &[&str], allow| MetadataRequest {
        topics: Some(names.iter().map(|name| topic(name)).collect()),
        allow_auto_topic_creation: allow,
        ..Default::default()
    };
    let refused = client.call(9, &ask(&["new"], false)).await;
    assert_eq!(refused.topics[0].error_code, 3);
    let response = client.call(9, &ask(&["new", "new", "bad/name", ""], true)).await;
    let codes: Vec<i16> = response.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [0, 17, 17]);
    assert_eq!(response.topics[0].partitions[0].leader_id, 1);
    assert_eq!(client.produce("new", 0, batch(&["x"])).await.error_code, 0);
    // All topics: null, or an empty list in version 0. None: an empty list later.
    let all = client
        .call(
            0,
            &MetadataRequest {
                topics: Some(Vec::new()),
                ..Default::default()
            },
        )
        .await;
    assert_eq!(all.topics.len(), 1);
    let all = client
        .call(
            1,
            &MetadataRequest {
                topics: None,
                ..Default::default()
            },
        )
        .await;
    assert_eq!(all.topics.len(), 1);
    let none = client
        .call(
            1,
            &MetadataRequest {
                topics: Some(Vec::new()),
                ..Default::default()
            },
        )
        .await;
    assert!(none.topics.is_empty());
    assert_eq!(server.running.metrics().topics_auto_created.get(), 1);
}

#[tokio::test]
async fn metadata_finds_topics_by_id_and_tells_operations_when_asked() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let id = client.create_topic("t", 1, &[]).await;
    let by_id = |topic_id| metadata::MetadataRequestTopic { topic_id, name: None };
    let request = MetadataRequest {
        topics: Some(vec![by_id(id), by_id([9; 16])]),
        include_topic_authorized_operations: true,
        ..Default::default()
    };
    let response = client.call(12, &request).await;
    assert_eq!(response.topics[0].name.as_deref(), Some("t"));
    assert_eq!(response.topics[0].topic_authorized_operations, 3576);
    assert_eq!(
        (response.topics[1].error_code, &response.topics[1].name),
        (100, &None)
    );
    let plain = client.call(12, &MetadataRequest::default()).await;
    assert!(plain.topics.is_empty());
    let plain = client
        .call(
            12,
            &MetadataRequest {
                topics: None,
                ..Default::default()
            },
        )
        .await;
    assert_eq!(plain.topics[0].topic_authorized_operations, i32::MIN);
}
