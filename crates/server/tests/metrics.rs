//! `/metrics` through the wire: what Prometheus reads of topics, groups and requests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_wire::msg::*;
use common::*;

/// The samples by name and labels; panics at what a scraper would refuse.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut types = BTreeMap::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "{name} comes twice");
        } else if !line.starts_with('#') {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let name = key.split('{').next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
                let base = name.strip_suffix(end)?;
                (types.get(base) == Some(&"histogram")).then_some(base)
            });
            assert!(types.contains_key(base.unwrap_or(name)), "{line} has no type");
            let before = samples.insert(key.to_owned(), value.parse().unwrap());
            assert!(before.is_none(), "{key} comes twice");
        }
    }
    samples
}

async fn scrape(server: &TestServer) -> BTreeMap<String, f64> {
    let answer = http_get(server.http(), "/metrics").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    samples(body)
}

/// A commit in partition 0 of topic "t" by somebody who is no member.
fn commit(group: &str, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: -1,
        topics: vec![offset_commit::OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![offset_commit::OffsetCommitRequestPartition {
                committed_offset: offset,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[tokio::test]
async fn topics_and_groups_are_shown_as_kafka_exporter_shows_them() {
    let server = TestServer::with_http().await;
    let mut client = server.client().await;
    client.create_topic("t", 2, &[]).await;
    assert_eq!(
        client.produce("t", 0, batch(&["a", "b", "c"])).await.error_code,
        0
    );
    assert_eq!(client.produce("t", 1, batch(&["d"])).await.error_code, 0);
    let committed = client.call(8, &commit("odd \"group\"", 1)).await;
    assert_eq!(committed.topics[0].partitions[0].error_code, 0);
    let found = scrape(&server).await;
    for (key, value) in [
        ("kafka_brokers", 1.0),
        ("kafka_topic_partitions{topic=\"t\"}", 2.0),
        (
            "kafka_topic_partition_current_offset{topic=\"t\",partition=\"0\"}",
            3.0,
        ),
        (
            "kafka_topic_partition_oldest_offset{topic=\"t\",partition=\"1\"}",
            0.0,
        ),
        (
            "kafka_topic_partition_in_sync_replica{topic=\"t\",partition=\"1\"}",
            1.0,
        ),
        (
            "kafka_consumergroup_members{consumergroup=\"odd \\\"group\\\"\"}",
            0.0,
        ),
        (
            "kafka_consumergroup_current_offset{consumergroup=\"odd \\\"group\\\"\",topic=\"t\",partition=\"0\"}",
            1.0,
        ),
        (
            "kafka_consumergroup_lag{consumergroup=\"odd \\\"group\\\"\",topic=\"t\",partition=\"0\"}",
            2.0,
        ),
        (
            "kafka_consumergroup_lag_sum{consumergroup=\"odd \\\"group\\\"\",topic=\"t\"}",
            2.0,
        ),
        ("anabranch_produced_records_total", 4.0),
        ("anabranch_requests_total{api=\"Produce\"}", 2.0),
        ("anabranch_request_seconds_count{api=\"Produce\"}", 2.0),
        (
            "anabranch_request_seconds_bucket{api=\"Produce\",le=\"+Inf\"}",
            2.0,
        ),
        ("anabranch_metric_series_left_out", 0.0),
        ("anabranch_disk_almost_full", 0.0),
    ] {
        assert_eq!(found.get(key), Some(&value), "{key} in {found:#?}");
    }
    // What was never committed has no offset, and so no lag.
    assert!(
        !found
            .keys()
            .any(|key| key.starts_with("kafka_consumergroup_lag{") && key.contains("partition=\"1\""))
    );
    assert!(found["anabranch_sync_seconds_count"] >= 1.0);
    assert!(found["anabranch_connections"] >= 1.0);
}

#[tokio::test]
async fn every_metric_that_is_served_is_in_the_reference() {
    let server = TestServer::with_http().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let page = anabranch_server::metrics_page();
    let found = scrape(&server).await;
    let names: BTreeSet<&str> = found.keys().filter_map(|key| key.split('{').next()).collect();
    for name in names {
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let is_there = |name: &str| page.contains(&format!("| `{name}` |"));
        assert!(is_there(name) || base.is_some_and(is_there), "{name}");
    }
}

#[tokio::test]
async fn errors_are_counted_by_name_and_a_deleted_topic_is_gone() {
    let server = TestServer::with_http().await;
    let mut client = server.client().await;
    let id = client.create_topic("t", 1, &[]).await;
    assert_eq!(client.produce("none", 0, batch(&["a"])).await.error_code, 3);
    let before = scrape(&server).await;
    assert_eq!(
        before["anabranch_errors_total{error=\"UnknownTopicOrPartition\"}"],
        1.0
    );
    assert!(before.contains_key("kafka_topic_partitions{topic=\"t\"}"));
    let delete = DeleteTopicsRequest {
        topics: vec![delete_topics::DeleteTopicState {
            name: None,
            topic_id: id,
        }],
        ..Default::default()
    };
    assert_eq!(client.call(6, &delete).await.responses[0].error_code, 0);
    assert!(!scrape(&server).await.keys().any(|key| key.contains("\"t\"")));
}
