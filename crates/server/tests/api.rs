//! The administration API through the wire: what the console and programs see; who is let in is in `doors`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_server::admin::model::*;
use anabranch_wire::batch::BatchBuilder;
use anabranch_wire::msg::*;
use common::group::*;
use common::*;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn document<T: DeserializeOwned>(answer: &str) -> T {
    let (status, body) = parts(answer);
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

async fn read<T: DeserializeOwned>(server: &TestServer, path: &str) -> T {
    document(&http_get(server.http(), path).await)
}

/// Status and code of the error.
async fn refused(server: &TestServer, path: &str) -> (u16, String) {
    let answer = http_get(server.http(), path).await;
    let (status, body) = parts(&answer);
    (status, serde_json::from_str::<Refusal>(body).unwrap().error.code)
}

async fn reset(server: &TestServer, body: &str) -> (u16, String) {
    let answer = http_post(server.http(), "/api/v1/groups/g/reset", body).await;
    let (status, body) = parts(&answer);
    (status, body.to_owned())
}

/// Record n has the key `k{n % 3}`, the value `v{n}` and the timestamp 1000 + n.
fn numbered(numbers: std::ops::Range<i64>) -> bytes::Bytes {
    let mut builder = BatchBuilder::new();
    for n in numbers {
        let (key, value) = (format!("k{}", n % 3), format!("v{n}"));
        builder.append(1_000 + n, Some(key.as_bytes()), Some(value.as_bytes()), &[]);
    }
    builder.finish().unwrap()
}

async fn commit(client: &mut Client, partition_index: i32, committed_offset: i64) {
    let request = OffsetCommitRequest {
        group_id: "g".to_owned(),
        generation_id_or_member_epoch: -1,
        topics: vec![offset_commit::OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![offset_commit::OffsetCommitRequestPartition {
                partition_index,
                committed_offset,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = client.call(8, &request).await;
    assert_eq!(answer.topics[0].partitions[0].error_code, 0);
}

/// Topic "t" with ten records in partition 0 of two; group "g" has committed 4 there.
async fn ten(server: &TestServer) -> Client {
    let mut client = server.client().await;
    client
        .create_topic("t", 2, &[("retention.ms", "86400000000")])
        .await;
    assert_eq!(client.produce("t", 0, numbered(0..6)).await.error_code, 0);
    assert_eq!(client.produce("t", 0, numbered(6..10)).await.error_code, 0);
    commit(&mut client, 0, 4).await;
    client
}

#[tokio::test]
async fn the_overview_has_topics_groups_and_sums() {
    let server = TestServer::with_http().await;
    let mut client = ten(&server).await;
    client.create_topic("other", 3, &[]).await;
    let overview: Overview = read(&server, "/api/v1/overview").await;
    assert_eq!((overview.totals.topics, overview.totals.partitions), (2, 5));
    assert_eq!((overview.totals.groups, overview.totals.unread), (1, 6));
    let names: Vec<&str> = overview.topics.iter().map(|row| row.topic.as_str()).collect();
    assert_eq!(names, ["other", "t"]);
    assert_eq!(overview.topics[1].records, 10);
    assert!(overview.topics[1].bytes > 0 && overview.totals.bytes == overview.topics[1].bytes);
    let group = &overview.groups[0];
    assert_eq!(
        (group.group.as_str(), group.lag, group.unread, group.partitions),
        ("g", 6, 6, 1)
    );
    assert_eq!((group.members, group.topics.clone()), (0, vec!["t".to_owned()]));
    let part: Overview = read(&server, "/api/v1/overview?contains=oth").await;
    assert_eq!(
        (part.topics.len(), part.groups.len(), part.totals.topics),
        (1, 0, 2)
    );
    let few: Overview = read(&server, "/api/v1/overview?limit=1").await;
    assert_eq!((few.topics.len(), few.topics_left_out), (1, 1));
}

#[tokio::test]
async fn rates_are_told_from_the_second_look_on() {
    let server = TestServer::with_http().await;
    let mut client = ten(&server).await;
    let first: Overview = read(&server, "/api/v1/overview").await;
    assert_eq!(first.totals.in_rate, None);
    client.produce("t", 1, numbered(0..100)).await;
    commit(&mut client, 0, 10).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_000)).await;
    let second: Overview = read(&server, "/api/v1/overview").await;
    let (came, done) = (
        second.topics[0].in_rate.unwrap(),
        second.groups[0].out_rate.unwrap(),
    );
    assert!(came > 20.0 && came <= 100.0, "{came}");
    assert!(done > 1.0 && done <= 6.0, "{done}");
}

#[tokio::test]
async fn a_topic_has_partitions_configurations_and_readers() {
    let server = TestServer::with_http().await;
    ten(&server).await;
    let topic: Topic = read(&server, "/api/v1/topics/t").await;
    assert_eq!(
        (topic.partition_count, topic.partitions.len(), topic.id.len()),
        (2, 2, 32)
    );
    let first = &topic.partitions[0];
    assert_eq!(
        (first.log_start, first.log_end, first.newest_ms),
        (0, 10, Some(1_009))
    );
    assert!(first.bytes > 0);
    assert_eq!(
        (topic.partitions[1].log_end, topic.partitions[1].newest_ms),
        (0, None)
    );
    let retention = topic
        .configs
        .iter()
        .find(|one| one.name == "retention.ms")
        .unwrap();
    assert_eq!(
        (retention.value.as_deref(), retention.source.as_str()),
        (Some("86400000000"), "topic")
    );
    assert_eq!((topic.readers[0].group.as_str(), topic.readers[0].lag), ("g", 6));
    let page: Topic = read(&server, "/api/v1/topics/t?from=0&limit=1").await;
    assert_eq!((page.partitions.len(), page.partitions_left_out), (1, 1));
    let page: Topic = read(&server, "/api/v1/topics/t?from=9").await;
    assert_eq!((page.partitions.len(), page.partitions_left_out), (0, 0));
    assert_eq!(
        refused(&server, "/api/v1/topics/none").await,
        (404, "not-found".to_owned())
    );
}

#[tokio::test]
async fn messages_are_found_by_offset_time_and_key() {
    let server = TestServer::with_http().await;
    ten(&server).await;
    let offsets = async |query: &str| {
        let found: Messages = read(&server, &format!("/api/v1/topics/t/messages?{query}")).await;
        let offsets: Vec<i64> = found.messages.iter().map(|one| one.offset).collect();
        (offsets, found.next)
    };
    assert_eq!(offsets("partition=0&limit=3").await, (vec![7, 8, 9], None));
    assert_eq!(
        offsets("partition=0&offset=2&limit=2").await,
        (vec![2, 3], Some(4))
    );
    assert_eq!(
        offsets("partition=0&offset=5&limit=2").await,
        (vec![5, 6], Some(7))
    );
    assert_eq!(offsets("partition=0&offset=-5&limit=1").await, (vec![0], Some(1)));
    assert_eq!(offsets("partition=0&offset=99").await, (vec![], None));
    assert_eq!(offsets("partition=0&time_ms=1007").await, (vec![7, 8, 9], None));
    assert_eq!(offsets("partition=0&time_ms=5000").await, (vec![], None));
    assert_eq!(offsets("partition=0&key=k1").await, (vec![1, 4, 7], None));
    assert_eq!(
        offsets("partition=0&key=k1&offset=2&limit=1").await,
        (vec![4], Some(5))
    );
    assert_eq!(offsets("partition=1").await, (vec![], None));
    let found: Messages = read(
        &server,
        "/api/v1/topics/t/messages?partition=0&offset=3&limit=1&bytes=1",
    )
    .await;
    let message = &found.messages[0];
    let value = message.value.as_ref().unwrap();
    assert_eq!((value.text.as_str(), value.cut, value.bytes), ("v", true, 2));
    assert_eq!((message.time_ms, found.log_end, found.searched), (1_003, 10, 1));
    let slot = anabranch_wire::slot::slot_of_key(b"k0").get();
    assert_eq!(message.slot, slot);
    assert_eq!(
        refused(&server, "/api/v1/topics/t/messages?partition=7").await.0,
        404
    );
    assert_eq!(
        refused(&server, "/api/v1/topics/t/messages?offset=1&time_ms=1")
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn offsets_are_reset_after_a_rehearsal() {
    let server = TestServer::with_http().await;
    ten(&server).await;
    let committed = async || {
        let offsets: Offsets = read(&server, "/api/v1/groups/g/offsets").await;
        offsets.places[0].committed
    };
    assert_eq!(committed().await, 4);
    for (to, new_offset) in [
        (r#""earliest""#, 0),
        (r#""latest""#, 10),
        (r#"{"offset":7}"#, 7),
        (r#"{"offset":70}"#, 10),
        (r#"{"time_ms":1003}"#, 3),
        (r#"{"time_ms":9999}"#, 10),
        (r#"{"shift_by":-2}"#, 2),
        (r#"{"shift_by":-20}"#, 0),
    ] {
        let (status, body) = reset(&server, &format!(r#"{{"topic":"t","partitions":[0],"to":{to}}}"#)).await;
        assert_eq!(status, 200, "{body}");
        let plan: Reset = serde_json::from_str(&body).unwrap();
        assert!(!plan.executed);
        assert_eq!(
            (plan.steps[0].current, plan.steps[0].new_offset),
            (Some(4), new_offset),
            "{to}"
        );
    }
    assert_eq!(committed().await, 4, "a rehearsal changes nothing");
    let (status, body) = reset(&server, r#"{"topic":"t","to":"earliest","execute":true}"#).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(committed().await, 0);
    for (body, status) in [
        (r#"{"topic":"none","to":"latest"}"#, 404),
        (r#"{"topic":"t","partitions":[9],"to":"latest"}"#, 404),
        (r#"{"topic":"t","to":"sideways"}"#, 422),
    ] {
        assert_eq!(reset(&server, body).await.0, status, "{body}");
    }
    let mut member = server.client().await;
    let joined = member.call(2, &join("g", "", "range", subscription("t"))).await;
    assert_eq!(joined.error_code, 0);
    assert_eq!(sync(&mut member, "g", &joined).await.error_code, 0);
    let (status, body) = reset(&server, r#"{"topic":"t","to":"latest","execute":true}"#).await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("has members"), "{body}");
}

#[tokio::test]
async fn what_is_left_is_told_by_bands_of_slots() {
    let server = TestServer::with_http().await;
    ten(&server).await;
    let mut member = server.client().await;
    let joined = member.call(2, &join("g", "", "range", subscription("t"))).await;
    assert_eq!(sync(&mut member, "g", &joined).await.error_code, 0);
    let group: Group = read(&server, "/api/v1/groups/g?bands=128&topic=t").await;
    let bands = group.partitions[0].bands.as_ref().unwrap();
    assert_eq!(
        (bands.unread.len(), bands.unread.iter().sum::<u64>(), bands.exact),
        (128, 6, true)
    );
    let band = usize::from(anabranch_wire::slot::slot_of_key(b"k0").get()) / 32;
    assert!(bands.unread[band] >= 2, "offsets 6 and 9");
    let without: Group = read(&server, "/api/v1/groups/g").await;
    assert_eq!(without.partitions[0].bands, None);
    let none: Group = read(&server, "/api/v1/groups/g?topic=none").await;
    assert!(none.partitions.is_empty());
}

#[tokio::test]
async fn what_is_malformed_is_refused_in_a_document() {
    let server = TestServer::with_http().await;
    ten(&server).await;
    for (path, status) in [
        ("/api/v1/topics/t/messages?offset=first", 400),
        ("/api/v1/overview?limit=-1", 400),
        ("/api/v1/groups/g/pause", 405),
    ] {
        assert_eq!(
            refused(&server, path).await,
            (status, "bad-request".to_owned()),
            "{path}"
        );
    }
    let (status, body) = reset(&server, r#"{"topic":"t"}"#).await;
    let refusal: Refusal = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 422);
    assert!(refusal.error.message.contains("missing field `to`"), "{body}");
}

/// Reads from a stream until `enough`.
async fn hear(stream: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut heard = Vec::new();
    let text = |heard: &[u8]| String::from_utf8_lossy(heard).into_owned();
    let hearing = async {
        while !enough(&text(&heard)) {
            let mut more = [0; 65_536];
            let read = stream.read(&mut more).await.unwrap();
            assert!(read > 0, "the stream ended: {}", text(&heard));
            heard.extend_from_slice(&more[..read]);
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, hearing).await;
    assert!(in_time.is_ok(), "waited in vain: {}", text(&heard));
    text(&heard)
}

async fn listen(server: &TestServer, query: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.http()).await.unwrap();
    let request = format!("GET /api/v1/events{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn events_tell_what_changes_and_end_with_the_server() {
    let server = TestServer::with_http().await;
    let mut client = ten(&server).await;
    let mut stream = listen(&server, "?group=nobody").await;
    let first = hear(&mut stream, |text| text.contains("event: decisions")).await;
    assert!(first.contains("text/event-stream"), "{first}");
    assert!(
        first.contains("event: overview") && first.contains("event: gone"),
        "{first}"
    );
    client.create_topic("newcomer", 1, &[]).await;
    let news = hear(&mut stream, |text| text.contains("\"newcomer\"")).await;
    assert!(
        !news.contains("event: gone"),
        "what has not changed is not told again: {news}"
    );
    let TestServer {
        running,
        folder: _folder,
    } = server;
    let ended = tokio::spawn(running.shutdown());
    let mut rest = Vec::new();
    soon(stream.read_to_end(&mut rest)).await.unwrap();
    soon(ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_group_is_told_as_it_changes() {
    let server = TestServer::with_http().await;
    ten(&server).await;
    let mut member = server.client().await;
    let joined = member.call(2, &join("g", "", "range", subscription("t"))).await;
    assert_eq!(sync(&mut member, "g", &joined).await.error_code, 0);
    let mut stream = listen(&server, "?group=g&bands=16").await;
    let first = hear(&mut stream, |text| text.contains("\"members\":[{")).await;
    assert!(
        first.contains("event: group") && first.contains("\"paused\":false},\"members\""),
        "{first}"
    );
    let pause = http_post(server.http(), "/api/v1/groups/g/pause", "").await;
    assert_eq!(parts(&pause).0, 200);
    let then = hear(&mut stream, |text| text.contains("\"paused\":true},\"members\"")).await;
    assert!(then.contains("event: group"), "{then}");
}

#[tokio::test]
async fn streams_are_bounded() {
    let server = TestServer::with_http().await;
    let mut open = Vec::new();
    for _ in 0..64 {
        let mut stream = listen(&server, "").await;
        hear(&mut stream, |text| text.contains("event: overview")).await;
        open.push(stream);
    }
    assert_eq!(
        refused(&server, "/api/v1/events").await,
        (503, "too-many".to_owned())
    );
    drop(open);
    soon(async {
        loop {
            let mut stream = listen(&server, "").await;
            if hear(&mut stream, |text| text.contains("\r\n\r\n"))
                .await
                .starts_with("HTTP/1.1 200")
            {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
}
