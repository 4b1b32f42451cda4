//! Records in, records out: offsets, waiting, limits, order, restarts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use anabranch_wire::batch::{BatchBuilder, BatchHeader, Compression};
use anabranch_wire::msg::*;
use anabranch_wire::prim::Records;
use common::*;

#[tokio::test]
async fn what_is_produced_is_fetched_with_consecutive_offsets() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 2, &[]).await;
    for (n, values) in [["a", "b"], ["c", "d"]].iter().enumerate() {
        let answer = client.produce("t", 1, batch(values)).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, 2 * n as i64));
        assert_eq!((answer.log_append_time_ms, answer.log_start_offset), (-1, 0));
    }
    let data = client.fetch("t", 1, 1, 0).await;
    assert_eq!(
        (data.error_code, data.high_watermark, data.last_stable_offset),
        (0, 4, 4)
    );
    // The batch that holds the offset comes whole.
    assert_eq!(values(&data), ["a", "b", "c", "d"]);
    assert_eq!(values(&client.fetch("t", 1, 2, 0).await), ["c", "d"]);
    assert_eq!(values(&client.fetch("t", 1, 4, 0).await), Vec::<String>::new());
    assert_eq!(values(&client.fetch("t", 0, 0, 0).await), Vec::<String>::new());
}

#[tokio::test]
async fn every_version_of_produce_and_fetch_carries_records() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let id = client.create_topic("t", 1, &[]).await;
    for (n, version) in (3..=13).enumerate() {
        let mut request = produce("t", 0, -1, batch(&["x"]));
        request.topic_data[0].topic_id = id;
        let response = client.call(version, &request).await;
        let answer = &response.responses[0].partition_responses[0];
        assert_eq!(
            (answer.error_code, answer.base_offset),
            (0, n as i64),
            "version {version}"
        );
    }
    for version in 4..=17 {
        let mut request = fetch("t", 0, 0, 0);
        request.topics[0].topic_id = id;
        let response = client.call(version, &request).await;
        assert_eq!(response.error_code, 0);
        let data = &response.responses[0].partitions[0];
        assert_eq!(values(data), vec!["x"; 11], "version {version}");
        assert_eq!(response.session_id, 0);
    }
}

#[tokio::test]
async fn a_fetch_at_the_end_waits_for_the_next_record_and_no_longer() {
    let server = TestServer::start().await;
    let mut reader = server.client().await;
    let mut writer = server.client().await;
    reader.create_topic("t", 2, &[]).await;
    let waiting = reader.send(12, &fetch("t", 1, 0, 60_000)).await;
    while server.running.metrics().fetches_parked.get() == 0 {
        tokio::task::yield_now().await;
    }
    // Another partition does not concern it.
    writer.produce("t", 0, batch(&["other"])).await;
    writer.produce("t", 1, batch(&["mine"])).await;
    let response = reader.receive::<FetchRequest>(waiting, 12).await;
    assert_eq!(values(&response.responses[0].partitions[0]), ["mine"]);
    // With a short wait and nothing to read it comes back empty.
    let data = reader.fetch("t", 1, 1, 20).await;
    assert_eq!((data.error_code, values(&data).len()), (0, 0));
}

#[tokio::test]
async fn min_bytes_are_waited_for() {
    let server = TestServer::start().await;
    let mut reader = server.client().await;
    let mut writer = server.client().await;
    reader.create_topic("t", 1, &[]).await;
    let size = batch(&["0"]).len() as i32;
    let request = FetchRequest {
        min_bytes: 3 * size,
        ..fetch("t", 0, 0, 60_000)
    };
    let waiting = reader.send(12, &request).await;
    for value in ["0", "1", "2"] {
        writer.produce("t", 0, batch(&[value])).await;
    }
    let response = reader.receive::<FetchRequest>(waiting, 12).await;
    assert_eq!(values(&response.responses[0].partitions[0]), ["0", "1", "2"]);
}

#[tokio::test]
async fn the_first_batch_comes_whole_and_limits_hold_for_the_rest() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 2, &[]).await;
    let large = "x".repeat(100_000);
    for partition in [0, 1] {
        client.produce("t", partition, batch(&[&large])).await;
        client.produce("t", partition, batch(&["small"])).await;
    }
    let partition = |partition| fetch::FetchPartition {
        partition,
        partition_max_bytes: 1_000,
        ..Default::default()
    };
    let topics = vec![fetch::FetchTopic {
        topic: "t".to_owned(),
        partitions: vec![partition(1), partition(0)],
        ..Default::default()
    }];
    let request = FetchRequest {
        max_bytes: 2_000,
        min_bytes: 1,
        topics,
        ..Default::default()
    };
    let response = client.call(12, &request).await;
    let partitions = &response.responses[0].partitions;
    assert_eq!(values(&partitions[0]), std::slice::from_ref(&large));
    assert!(values(&partitions[1]).is_empty());
    // Past the large one, the small one is had with the same limits.
    assert_eq!(values(&client.fetch("t", 0, 1, 0).await), ["small"]);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let hello = ApiVersionsRequest {
        client_software_name: "test".to_owned(),
        client_software_version: "1".to_owned(),
    };
    let mut sent = Vec::new();
    for n in 0..200 {
        sent.push((
            client
                .send(9, &produce("t", 0, -1, batch(&[&n.to_string()])))
                .await,
            Some(n),
        ));
        if n % 50 == 0 {
            sent.push((client.send(3, &hello).await, None));
        }
    }
    for (id, offset) in sent {
        let Some(offset) = offset else {
            client.receive::<ApiVersionsRequest>(id, 3).await;
            continue;
        };
        let response = client.receive::<ProduceRequest>(id, 9).await;
        assert_eq!(response.responses[0].partition_responses[0].base_offset, offset);
    }
}

#[tokio::test]
async fn acks_zero_is_silent_and_what_follows_is_answered() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    client.send(9, &produce("t", 0, 0, batch(&["quiet"]))).await;
    let answer = client.produce("t", 0, batch(&["loud"])).await;
    assert_eq!(answer.base_offset, 1);
    // A failure that cannot be told ends the connection.
    client
        .send(9, &produce("no such topic", 0, 0, batch(&["x"])))
        .await;
    client.expect_end().await;
}

#[tokio::test]
async fn records_survive_a_restart_and_so_do_topics_and_ids() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let id = client.create_topic("t", 3, &[("retention.ms", "1234567")]).await;
    client.produce("t", 2, batch(&["before"])).await;
    let cluster = server.running.cluster_id().to_owned();
    let server = server.restart().await;
    assert_eq!(server.running.cluster_id(), cluster);
    let mut client = server.client().await;
    let metadata = client
        .call(
            12,
            &MetadataRequest {
                topics: None,
                ..Default::default()
            },
        )
        .await;
    assert_eq!(metadata.topics[0].topic_id, id);
    assert_eq!(metadata.topics[0].partitions.len(), 3);
    assert_eq!(client.produce("t", 2, batch(&["after"])).await.base_offset, 1);
    assert_eq!(values(&client.fetch("t", 2, 0, 0).await), ["before", "after"]);
}

#[tokio::test]
async fn a_server_that_just_vanishes_loses_nothing_that_it_acknowledged() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    for n in 0..50 {
        client.produce("t", 0, batch(&[&n.to_string()])).await;
    }
    // A copy of the folder is what a crash would leave behind.
    let copy = tempfile::tempdir().unwrap();
    copy_folder(server.folder(), copy.path());
    let other = TestServer::with(|config| config.data_dir = copy.path().to_owned()).await;
    let mut client = other.client().await;
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(values(&client.fetch("t", 0, 0, 0).await), expected);
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_folder(&entry.path(), &target);
        } else if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn idempotent(id: i64, sequence: i32, value: &str) -> bytes::Bytes {
    let mut builder = BatchBuilder::new();
    builder.producer(id, 0, sequence);
    builder.append(1, None, Some(value.as_bytes()), &[]);
    builder.finish().unwrap()
}

#[tokio::test]
async fn a_batch_that_comes_again_is_acknowledged_with_its_old_offset_also_after_a_restart() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let given = client
        .call(
            4,
            &InitProducerIdRequest {
                transactional_id: None,
                ..Default::default()
            },
        )
        .await;
    assert_eq!((given.error_code, given.producer_epoch), (0, 0));
    let id = given.producer_id;
    for sequence in 0..3 {
        let answer = client.produce("t", 0, idempotent(id, sequence, "x")).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, i64::from(sequence)));
    }
    let again = client.produce("t", 0, idempotent(id, 1, "x")).await;
    assert_eq!((again.error_code, again.base_offset), (0, 1));
    let gap = client.produce("t", 0, idempotent(id, 7, "x")).await;
    assert_eq!(gap.error_code, 45);
    let server = server.restart().await;
    let mut client = server.client().await;
    let again = client.produce("t", 0, idempotent(id, 2, "x")).await;
    assert_eq!((again.error_code, again.base_offset), (0, 2));
    assert_eq!(
        client.produce("t", 0, idempotent(id, 3, "x")).await.base_offset,
        3
    );
    // No second producer gets the same id.
    let other = client
        .call(
            4,
            &InitProducerIdRequest {
                transactional_id: None,
                ..Default::default()
            },
        )
        .await;
    assert!(other.producer_id > id);
}

#[tokio::test]
async fn append_time_is_stamped_and_told() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client
        .create_topic("t", 1, &[("message.timestamp.type", "LogAppendTime")])
        .await;
    let answer = client.produce("t", 0, batch(&["x"])).await;
    assert!(answer.log_append_time_ms > 1_600_000_000_000);
    let data = client.fetch("t", 0, 0, 0).await;
    let bytes = data.records.clone().unwrap().into_bytes();
    let header = BatchHeader::parse(&bytes).unwrap();
    assert!(header.is_log_append_time());
    assert_eq!(header.max_timestamp, answer.log_append_time_ms);
    assert_eq!(values(&data), ["x"]);
}

#[tokio::test]
async fn zstd_is_produced_by_new_clients_and_sent_to_all() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    client
        .produce("t", 0, batch_with(&["packed"], Compression::Zstd))
        .await;
    // Kafka 4 sends it to old versions of Fetch, too: kafka-python 2 asks by version 4 and knows zstd.
    for version in [4, 9, 10, 12] {
        let answer = client.call(version, &fetch("t", 0, 0, 0)).await;
        assert_eq!(
            values(&answer.responses[0].partitions[0]),
            ["packed"],
            "version {version}"
        );
    }
    // Producing it takes version 7 (KIP-110).
    let refused = client
        .call(6, &produce("t", 0, -1, batch_with(&["x"], Compression::Zstd)))
        .await;
    assert_eq!(refused.responses[0].partition_responses[0].error_code, 76);
}

#[tokio::test]
async fn errors_of_one_partition_leave_the_others_alone() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client
        .create_topic("t", 2, &[("max.message.bytes", "1000")])
        .await;
    let mut request = produce("t", 0, -1, batch(&["good"]));
    let mut add = |index, records: bytes::Bytes| {
        request.topic_data[0]
            .partition_data
            .push(produce::PartitionProduceData {
                index,
                records: Some(Records::from(records)),
            });
    };
    add(7, batch(&["nowhere"]));
    add(1, batch(&[&"x".repeat(2_000)]));
    let mut corrupt = batch(&["corrupt"]).to_vec();
    let last = corrupt.len() - 1;
    corrupt[last] ^= 1;
    add(1, corrupt.into());
    let response = client.call(9, &request).await;
    let codes: Vec<i16> = response.responses[0]
        .partition_responses
        .iter()
        .map(|one| one.error_code)
        .collect();
    assert_eq!(codes, [0, 3, 10, 2]);
    assert!(
        response.responses[0].partition_responses[2]
            .error_message
            .is_some()
    );
    assert_eq!(values(&client.fetch("t", 0, 0, 0).await), ["good"]);
    assert!(values(&client.fetch("t", 1, 0, 0).await).is_empty());
}

#[tokio::test]
async fn old_data_is_read_from_disk_when_memory_has_moved_on() {
    let server = TestServer::with(|config| config.storage.cache_bytes = 1 << 20).await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let filler = "f".repeat(200_000);
    client.produce("t", 0, batch(&["oldest"])).await;
    for _ in 0..30 {
        client.produce("t", 0, batch(&[&filler])).await;
    }
    let data = client.fetch("t", 0, 0, 0).await;
    assert_eq!(values(&data)[0], "oldest");
    assert!(server.running.metrics().fetches_from_disk.get() > 0);
    let mut offset = 0;
    while offset < 31 {
        let data = client.fetch("t", 0, offset, 0).await;
        let got = values(&data).len() as i64;
        assert!(got > 0, "nothing at {offset}");
        offset += got;
    }
}

#[tokio::test]
async fn a_shutdown_answers_a_parked_fetch_and_takes_no_time() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let waiting = client.send(12, &fetch("t", 0, 0, 200_000)).await;
    while server.running.metrics().fetches_parked.get() == 0 {
        tokio::task::yield_now().await;
    }
    let start = std::time::Instant::now();
    let TestServer { running, .. } = server;
    let (ended, answer) = tokio::join!(running.shutdown(), client.receive::<FetchRequest>(waiting, 12));
    ended.unwrap();
    assert_eq!(answer.responses[0].partitions[0].error_code, 0);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    client.expect_end().await;
}
