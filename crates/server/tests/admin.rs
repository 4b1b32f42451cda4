//! Administration through the wire: topics, records, offsets, configurations, sizes, and what is not there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_wire::msg::*;
use common::*;

#[tokio::test]
async fn topics_are_created_grown_and_deleted() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let mut rehearsal = create_topic("t", 2, &[("retention.ms", "1000")]);
    rehearsal.validate_only = true;
    let response = client.call(7, &rehearsal).await;
    assert_eq!(
        (response.topics[0].error_code, response.topics[0].num_partitions),
        (0, 2)
    );
    assert!(
        client
            .call(
                1,
                &MetadataRequest {
                    topics: None,
                    ..Default::default()
                }
            )
            .await
            .topics
            .is_empty()
    );
    let id = client.create_topic("t", 2, &[("retention.ms", "1000")]).await;
    for (request, code) in [
        (create_topic("t", 1, &[]), 36),
        (create_topic("a/b", 1, &[]), 17),
        (create_topic("zero", 0, &[]), 37),
        (create_topic("huge", 1_000_000_000, &[]), 37),
        (create_topic("odd", 1, &[("no.such.key", "1")]), 40),
    ] {
        let response = client.call(5, &request).await;
        assert_eq!(response.topics[0].error_code, code, "{:?}", response.topics[0]);
        assert!(response.topics[0].error_message.is_some());
    }
    let mut twice = create_topic("twice", 1, &[]);
    twice.topics.push(twice.topics[0].clone());
    let response = client.call(5, &twice).await;
    assert_eq!((response.topics.len(), response.topics[0].error_code), (1, 42));
    let mut replicated = create_topic("r", 1, &[]);
    replicated.topics[0].replication_factor = 3;
    assert_eq!(client.call(5, &replicated).await.topics[0].error_code, 38);

    let grow = CreatePartitionsRequest {
        topics: vec![create_partitions::CreatePartitionsTopic {
            name: "t".to_owned(),
            count: 4,
            assignments: None,
        }],
        ..Default::default()
    };
    assert_eq!(client.call(3, &grow).await.results[0].error_code, 0);
    assert_eq!(client.call(3, &grow).await.results[0].error_code, 37);
    assert_eq!(client.produce("t", 3, batch(&["x"])).await.error_code, 0);

    let delete = DeleteTopicsRequest {
        topics: vec![
            delete_topics::DeleteTopicState {
                name: None,
                topic_id: id,
            },
            delete_topics::DeleteTopicState {
                name: Some("none".to_owned()),
                topic_id: [0; 16],
            },
        ],
        ..Default::default()
    };
    let response = client.call(6, &delete).await;
    assert_eq!(
        (
            response.responses[0].error_code,
            response.responses[0].name.as_deref()
        ),
        (0, Some("t"))
    );
    assert_eq!(response.responses[1].error_code, 3);
    assert_eq!(client.produce("t", 3, batch(&["x"])).await.error_code, 3);
    // Who still asks for it does not bring it back.
    let request = MetadataRequest {
        topics: Some(vec![topic("t")]),
        ..Default::default()
    };
    assert_eq!(client.call(9, &request).await.topics[0].error_code, 3);
    client.create_topic("t", 1, &[]).await;
    assert!(values(&client.fetch("t", 0, 0, 0).await).is_empty());
}

#[tokio::test]
async fn a_fetch_that_waits_hears_of_the_deletion() {
    let server = TestServer::start().await;
    let mut reader = server.client().await;
    let mut admin = server.client().await;
    admin.create_topic("t", 1, &[]).await;
    let waiting = reader.send(12, &fetch("t", 0, 0, 200_000)).await;
    while server.running.metrics().fetches_parked.get() == 0 {
        tokio::task::yield_now().await;
    }
    let delete = DeleteTopicsRequest {
        topic_names: vec!["t".to_owned()],
        ..Default::default()
    };
    assert_eq!(admin.call(4, &delete).await.responses[0].error_code, 0);
    let response = reader.receive::<FetchRequest>(waiting, 12).await;
    assert_eq!(response.responses[0].partitions[0].error_code, 3);
}

#[tokio::test]
async fn records_are_deleted_up_to_an_offset_and_stay_so() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    for n in 0..5 {
        client.produce("t", 0, batch(&[&n.to_string()])).await;
    }
    let up_to = |offset| DeleteRecordsRequest {
        topics: vec![delete_records::DeleteRecordsTopic {
            name: "t".to_owned(),
            partitions: vec![delete_records::DeleteRecordsPartition {
                partition_index: 0,
                offset,
            }],
        }],
        ..Default::default()
    };
    let answer = client.call(2, &up_to(3)).await.topics[0].partitions[0].clone();
    assert_eq!((answer.error_code, answer.low_watermark), (0, 3));
    assert_eq!(
        client.call(2, &up_to(9)).await.topics[0].partitions[0].error_code,
        1
    );
    assert_eq!(client.fetch("t", 0, 2, 0).await.error_code, 1);
    let data = client.fetch("t", 0, 3, 0).await;
    assert_eq!(
        (values(&data), data.log_start_offset),
        (vec!["3".to_owned(), "4".to_owned()], 3)
    );
    let server = server.restart().await;
    let mut client = server.client().await;
    assert_eq!(client.fetch("t", 0, 2, 0).await.error_code, 1);
    assert_eq!(values(&client.fetch("t", 0, 3, 0).await), ["3", "4"]);
}

async fn offset_at(client: &mut Client, timestamp: i64) -> (i64, i64) {
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![list_offsets::ListOffsetsTopic {
            name: "t".to_owned(),
            partitions: vec![list_offsets::ListOffsetsPartition {
                timestamp,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let answer = client.call(10, &request).await.topics[0].partitions[0].clone();
    assert_eq!(answer.error_code, 0);
    (answer.offset, answer.timestamp)
}

#[tokio::test]
async fn offsets_are_found_by_name_and_by_time() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    assert_eq!(offset_at(&mut client, -1).await, (0, -1));
    assert_eq!(offset_at(&mut client, -3).await, (-1, -1));
    // Timestamps are 1000, 1001, 1002 in each batch.
    client.produce("t", 0, batch(&["a", "b", "c"])).await;
    client
        .produce(
            "t",
            0,
            batch_with(&["d", "e"], anabranch_wire::batch::Compression::Gzip),
        )
        .await;
    for (timestamp, expected) in [
        (-1, (5, -1)),
        (-2, (0, -1)),
        (-3, (2, 1002)),
        (-4, (0, -1)),
        (-5, (-1, -1)),
        (0, (0, 1000)),
        (1001, (1, 1001)),
        (1002, (2, 1002)),
        (1003, (-1, -1)),
    ] {
        assert_eq!(
            offset_at(&mut client, timestamp).await,
            expected,
            "at {timestamp}"
        );
    }
    let odd = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![list_offsets::ListOffsetsTopic {
            name: "t".to_owned(),
            partitions: vec![list_offsets::ListOffsetsPartition {
                timestamp: -77,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    assert_eq!(client.call(7, &odd).await.topics[0].partitions[0].error_code, 35);
    let epoch = |leader_epoch| OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![offset_for_leader_epoch::OffsetForLeaderTopic {
            topic: "t".to_owned(),
            partitions: vec![offset_for_leader_epoch::OffsetForLeaderPartition {
                leader_epoch,
                ..Default::default()
            }],
        }],
    };
    for asked in [0, 5] {
        let answer = client.call(4, &epoch(asked)).await.topics[0].partitions[0].clone();
        assert_eq!(
            (answer.error_code, answer.leader_epoch, answer.end_offset),
            (0, 0, 5)
        );
    }
}

#[tokio::test]
async fn configurations_are_shown_changed_and_kept() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[("retention.ms", "5000")]).await;
    let describe = |resource_type, name: &str| DescribeConfigsRequest {
        resources: vec![describe_configs::DescribeConfigsResource {
            resource_type,
            resource_name: name.to_owned(),
            configuration_keys: None,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    let topic = client.call(4, &describe(2, "t")).await.results[0].clone();
    let retention = topic
        .configs
        .iter()
        .find(|config| config.name == "retention.ms")
        .unwrap();
    assert_eq!(
        (retention.value.as_deref(), retention.config_source),
        (Some("5000"), 1)
    );
    assert!(
        retention
            .documentation
            .as_ref()
            .is_some_and(|text| !text.is_empty())
    );
    assert!(retention.synonyms.len() > 1);
    let broker = client.call(4, &describe(4, "1")).await.results[0].clone();
    assert!(
        broker
            .configs
            .iter()
            .any(|config| config.name == "num.partitions")
    );
    assert_eq!(
        client.call(4, &describe(2, "none")).await.results[0].error_code,
        3
    );
    assert_eq!(client.call(4, &describe(77, "x")).await.results[0].error_code, 42);

    let change = |name: &str, value: &str| IncrementalAlterConfigsRequest {
        resources: vec![incremental_alter_configs::AlterConfigsResource {
            resource_type: 2,
            resource_name: "t".to_owned(),
            configs: vec![incremental_alter_configs::AlterableConfig {
                name: name.to_owned(),
                config_operation: 0,
                value: Some(value.to_owned()),
            }],
        }],
        ..Default::default()
    };
    assert_eq!(
        client
            .call(1, &change("max.message.bytes", "500"))
            .await
            .responses[0]
            .error_code,
        0
    );
    assert_eq!(
        client
            .call(1, &change("max.message.bytes", "many"))
            .await
            .responses[0]
            .error_code,
        40
    );
    assert_eq!(
        client
            .produce("t", 0, batch(&[&"x".repeat(600)]))
            .await
            .error_code,
        10
    );
    let server = server.restart().await;
    let mut client = server.client().await;
    assert_eq!(
        client
            .produce("t", 0, batch(&[&"x".repeat(600)]))
            .await
            .error_code,
        10
    );
    let listed = client.call(1, &ListConfigResourcesRequest::default()).await;
    let names: Vec<(&str, i8)> = listed
        .config_resources
        .iter()
        .map(|resource| (resource.resource_name.as_str(), resource.resource_type))
        .collect();
    assert_eq!(names, [("t", 2), ("1", 4)]);
}

#[tokio::test]
async fn topic_partitions_come_in_pages() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("a", 3, &[]).await;
    client.create_topic("b", 2, &[]).await;
    let mut request = DescribeTopicPartitionsRequest {
        response_partition_limit: 2,
        ..Default::default()
    };
    let mut pages = Vec::new();
    loop {
        let page = client.call(0, &request).await;
        for topic in &page.topics {
            for partition in &topic.partitions {
                pages.push((topic.name.clone().unwrap(), partition.partition_index));
            }
        }
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    let expected = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)];
    assert_eq!(pages, expected.map(|(name, index)| (name.to_owned(), index)));
    let named = DescribeTopicPartitionsRequest {
        topics: vec![
            describe_topic_partitions::TopicRequest {
                name: "none".to_owned(),
            },
            describe_topic_partitions::TopicRequest { name: "a".to_owned() },
        ],
        ..Default::default()
    };
    let answer = client.call(0, &named).await;
    let codes: Vec<i16> = answer.topics.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [0, 3]);
}

#[tokio::test]
async fn log_dirs_tell_real_sizes() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 2, &[]).await;
    let records = batch(&["some bytes"]);
    client.produce("t", 1, records.clone()).await;
    let response = client.call(4, &DescribeLogDirsRequest { topics: None }).await;
    let dir = &response.results[0];
    assert_eq!(dir.log_dir, server.folder().display().to_string());
    assert!(dir.usable_bytes > 0 && dir.total_bytes >= dir.usable_bytes);
    let sizes: Vec<i64> = dir.topics[0]
        .partitions
        .iter()
        .map(|one| one.partition_size)
        .collect();
    assert_eq!(sizes, [0, records.len() as i64]);
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    assert_eq!(
        client.call(3, &DescribeAclsRequest::default()).await.error_code,
        54
    );
    let elect = ElectLeadersRequest {
        topic_partitions: Some(vec![elect_leaders::TopicPartitions {
            topic: "t".to_owned(),
            partitions: vec![0, 9],
        }]),
        ..Default::default()
    };
    let answer = client.call(2, &elect).await;
    let codes: Vec<i16> = answer.replica_election_results[0]
        .partition_result
        .iter()
        .map(|one| one.error_code)
        .collect();
    assert_eq!(codes, [84, 3]);
    let transaction = FindCoordinatorRequest {
        key_type: 1,
        coordinator_keys: vec!["tx".to_owned()],
        ..Default::default()
    };
    assert_eq!(client.call(4, &transaction).await.coordinators[0].error_code, 53);
    let given = client
        .call(
            4,
            &InitProducerIdRequest {
                transactional_id: Some("tx".to_owned()),
                ..Default::default()
            },
        )
        .await;
    assert_eq!(given.error_code, 53);
    let describe = DescribeTransactionsRequest {
        transactional_ids: vec!["tx".to_owned()],
    };
    assert_eq!(
        client.call(0, &describe).await.transaction_states[0].error_code,
        105
    );
    let quotas = client.call(1, &DescribeClientQuotasRequest::default()).await;
    assert_eq!((quotas.error_code, quotas.entries), (0, Some(Vec::new())));
}
