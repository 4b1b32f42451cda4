//! What happens by itself: old records go, space comes back, snapshots keep restarts short.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;

use anabranch_server::Config;
use anabranch_wire::msg::*;
use common::*;

fn often(config: &mut Config) {
    config
        .broker
        .insert("log.retention.check.interval.ms".to_owned(), "50".to_owned());
}

/// Produces `count` batches of about 100 KB.
async fn fill(client: &mut Client, topic: &str, count: usize) {
    let value = "x".repeat(100_000);
    for _ in 0..count {
        assert_eq!(client.produce(topic, 0, batch(&[&value])).await.error_code, 0);
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        // A file may go while we look.
        let Ok(metadata) = entry.as_ref().unwrap().metadata() else {
            continue;
        };
        bytes += if metadata.is_dir() {
            bytes_in(&entry.unwrap().path())
        } else {
            metadata.len()
        };
    }
    bytes
}

#[tokio::test]
async fn retention_by_size_moves_the_start_and_readers_are_told() {
    let server = TestServer::with(often).await;
    let mut client = server.client().await;
    // Records of these tests are from 1970: without a bound in time, so that only the size counts.
    let configs = [("retention.bytes", "1000000"), ("retention.ms", "-1")];
    client.create_topic("t", 1, &configs).await;
    fill(&mut client, "t", 50).await;
    soon(async {
        while client.fetch("t", 0, 30, 0).await.error_code == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.fetch("t", 0, 0, 0).await.error_code, 1);
    let data = client.fetch("t", 0, 49, 0).await;
    assert_eq!(data.error_code, 0);
    assert!(
        data.log_start_offset > 30 && data.log_start_offset < 45,
        "{}",
        data.log_start_offset
    );
}

#[tokio::test]
async fn retention_by_time_spares_what_is_young() {
    let server = TestServer::with(often).await;
    let mut client = server.client().await;
    // The records of these batches are from 1970; others carry the time of their append.
    client
        .create_topic("old", 1, &[("retention.ms", "3600000")])
        .await;
    client
        .create_topic(
            "young",
            1,
            &[
                ("retention.ms", "3600000"),
                ("message.timestamp.type", "LogAppendTime"),
            ],
        )
        .await;
    client.produce("young", 0, batch(&["young"])).await;
    fill(&mut client, "old", 20).await;
    soon(async { while client.fetch("old", 0, 0, 0).await.error_code == 0 {} }).await;
    assert_eq!(values(&client.fetch("young", 0, 0, 0).await), ["young"]);
}

#[tokio::test]
async fn space_of_deleted_topics_comes_back_and_the_rest_stays() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("kept", 1, &[]).await;
    client.create_topic("gone", 1, &[]).await;
    client.produce("kept", 0, batch(&["precious"])).await;
    fill(&mut client, "gone", 150).await;
    let before = bytes_in(server.folder());
    assert!(before > 14 << 20, "{before}");
    let delete = DeleteTopicsRequest {
        topic_names: vec!["gone".to_owned()],
        ..Default::default()
    };
    assert_eq!(client.call(4, &delete).await.responses[0].error_code, 0);
    soon(async {
        while bytes_in(server.folder()) > 8 << 20 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(values(&client.fetch("kept", 0, 0, 0).await), ["precious"]);
    let server = server.restart().await;
    let mut client = server.client().await;
    assert_eq!(values(&client.fetch("kept", 0, 0, 0).await), ["precious"]);
    assert_eq!(client.fetch("gone", 0, 0, 0).await.error_code, 3);
}

#[tokio::test]
async fn many_segments_and_changes_come_back_after_a_restart() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for n in 0..20 {
        client.create_topic(&format!("t{n}"), 3, &[]).await;
        fill(&mut client, &format!("t{n}"), 3).await;
    }
    let server = server.restart().await;
    let mut client = server.client().await;
    let metadata = client
        .call(
            9,
            &MetadataRequest {
                topics: None,
                ..Default::default()
            },
        )
        .await;
    assert_eq!(metadata.topics.len(), 20);
    for n in 0..20 {
        assert_eq!(client.fetch(&format!("t{n}"), 0, 0, 0).await.high_watermark, 3);
        assert_eq!(
            client
                .produce(&format!("t{n}"), 0, batch(&["next"]))
                .await
                .base_offset,
            3
        );
    }
    assert!(server.running.metrics().sync_time.counts().sum::<u64>() > 0);
}
