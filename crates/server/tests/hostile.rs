//! What strangers and faulty clients send: a code or the end of the connection, bounded cost, and no effect on others.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use anabranch_wire::batch::{BatchBuilder, Compression};
use anabranch_wire::frame::encode_request;
use anabranch_wire::msg::*;
use anabranch_wire::prim::Records;
use bytes::Bytes;
use common::*;
use tokio::io::AsyncWriteExt;

/// Sends raw bytes on a connection of their own and expects its end, while another one works as before.
async fn expect_expulsion(server: &TestServer, bytes: &[u8]) {
    let before = server.running.metrics().connections_expelled.get();
    let mut stranger = server.client().await;
    stranger.write(bytes).await;
    stranger.expect_end().await;
    let mut other = server.client().await;
    other.call(0, &ApiVersionsRequest::default()).await;
    soon(async {
        while server.running.metrics().connections_expelled.get() == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(body);
    frame
}

#[tokio::test]
async fn bytes_that_are_no_request_end_the_connection() {
    let server = TestServer::start().await;
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
        &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        &[0, 0, 0, 0],
        &[0x7f, 0xff, 0xff, 0xff, 0, 0],
        // One byte above the limit of 100 MiB.
        &(100_u32 * 1024 * 1024 + 1).to_be_bytes(),
    ] {
        expect_expulsion(&server, bytes).await;
    }
    // Not even a header.
    expect_expulsion(&server, &framed(&[1, 2, 3])).await;
}

#[tokio::test]
async fn unknown_apis_and_versions_end_the_connection() {
    let server = TestServer::start().await;
    let request = |key: i16, version: i16| {
        let mut body = key.to_be_bytes().to_vec();
        body.extend(version.to_be_bytes());
        body.extend([0, 0, 0, 1, 0xff, 0xff]);
        framed(&body)
    };
    // Unknown, negative, LeaderAndIsr, UpdateMetadata, Vote, SASL, and versions beyond what is served.
    for (key, version) in [
        (999, 0),
        (-1, 0),
        (4, 0),
        (6, 0),
        (52, 0),
        (17, 1),
        (36, 1),
        (0, 0),
        (0, 99),
        (3, -1),
    ] {
        expect_expulsion(&server, &request(key, version)).await;
    }
}

#[tokio::test]
async fn counts_and_lengths_that_lie_end_the_connection_at_no_cost() {
    let server = TestServer::start().await;
    let header = |key: i16, version: i16, flexible: bool| {
        let mut body = key.to_be_bytes().to_vec();
        body.extend(version.to_be_bytes());
        body.extend([0, 0, 0, 1, 0xff, 0xff]);
        if flexible {
            body.push(0);
        }
        body
    };
    let with = |mut head: Vec<u8>, tail: &[u8]| {
        head.extend_from_slice(tail);
        framed(&head)
    };
    for bytes in [
        // Metadata v1 with 2^31-1 topics; with a string beyond the frame; with a negative string length.
        with(header(3, 1, false), &[0x7f, 0xff, 0xff, 0xff]),
        with(header(3, 1, false), &[0, 0, 0, 1, 0x7f, 0xff, b'a']),
        with(header(3, 1, false), &[0, 0, 0, 1, 0xff, 0x00]),
        // Invalid UTF-8.
        with(header(3, 1, false), &[0, 0, 0, 1, 0, 2, 0xc3, 0x28]),
        // A varint of eleven bytes as count; a huge number of tags; the same tag twice.
        with(header(3, 9, true), &[0xff; 11]),
        with(
            header(18, 3, true),
            &[2, b'a', 2, b'b', 0xff, 0xff, 0xff, 0xff, 0x0f],
        ),
        with(header(18, 3, true), &[2, b'a', 2, b'b', 2, 5, 0, 5, 0]),
        // Fetch v12 with an array count above what follows.
        with(header(1, 12, true), &[0xff; 40]),
    ] {
        expect_expulsion(&server, &bytes).await;
    }
}

#[tokio::test]
async fn a_request_that_stops_half_way_costs_only_its_connection() {
    let server = TestServer::with(|config| config.limits.stall_timeout = Duration::from_millis(200)).await;
    expect_expulsion(&server, &[0, 0x60, 0, 0, 0, 0, 0, 9]).await;
    expect_expulsion(&server, &[0, 0]).await;
}

#[tokio::test]
async fn announced_bodies_wait_for_memory_and_small_requests_do_not() {
    let server = TestServer::with(|config| {
        config.limits.request_budget_bytes = 8 << 20;
        config.limits.stall_timeout = Duration::from_secs(20);
    })
    .await;
    // Three clients announce more than there is, send a little, and dawdle.
    let mut dawdlers = Vec::new();
    for _ in 0..3 {
        let mut client = server.client().await;
        client.write(&(7_u32 << 20).to_be_bytes()).await;
        client.write(&[0; 1_000]).await;
        dawdlers.push(client);
    }
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    assert_eq!(client.produce("t", 0, batch(&["small"])).await.error_code, 0);
    drop(dawdlers);
    let large = "x".repeat(900_000);
    assert_eq!(client.produce("t", 0, batch(&[&large])).await.error_code, 0);
}

#[tokio::test]
async fn batches_that_break_a_rule_get_the_code_for_it() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let good = batch(&["a", "b"]).to_vec();
    let with = |at: usize, bytes: &[u8], recrc: bool| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        if recrc {
            let crc = crc32c(&changed[21..]);
            changed[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        Bytes::from(changed)
    };
    let mut trailing = good.clone();
    trailing.extend([1, 2, 3]);
    let mut two = good.clone();
    two.extend(&good);
    let mut transactional = BatchBuilder::new();
    transactional
        .producer(1, 0, 0)
        .transactional(true)
        .append(1, None, Some(b"x"), &[]);
    for (name, records, codes) in [
        ("crc", with(70, &[0xee], false), &[2_i16][..]),
        ("magic 0", with(16, &[0], false), &[2, 43]),
        ("magic 3", with(16, &[3], false), &[2, 43]),
        ("truncated", Bytes::from(good[..40].to_vec()), &[2]),
        ("length beyond", with(8, &[0x7f, 0, 0, 0], false), &[2]),
        ("trailing", trailing.into(), &[2, 87]),
        ("two batches", two.into(), &[87]),
        ("negative count", with(57, &[0xff; 4], true), &[87]),
        ("huge count", with(57, &[0x7f, 0xff, 0xff, 0xff], true), &[87]),
        ("last offset delta", with(23, &[0, 0, 0, 9], true), &[87]),
        ("compression 5", with(22, &[5], true), &[76]),
        ("compression 7", with(22, &[7], true), &[76]),
        ("control", with(22, &[0x20], true), &[87]),
        ("transactional", transactional.finish().unwrap(), &[48, 87]),
        ("empty", Bytes::new(), &[87]),
    ] {
        let answer = client.produce("t", 0, records).await;
        assert!(
            codes.contains(&answer.error_code),
            "{name}: {} {:?}",
            answer.error_code,
            answer.error_message
        );
    }
    assert_eq!(client.produce("t", 0, good.into()).await.base_offset, 0);
    for acks in [2, -2, i16::MAX] {
        let response = client.call(9, &produce("t", 0, acks, batch(&["x"]))).await;
        assert_eq!(response.responses[0].partition_responses[0].error_code, 21);
    }
    let mut missing = produce("t", 0, -1, Bytes::new());
    missing.topic_data[0].partition_data[0].records = None;
    let response = client.call(9, &missing).await;
    assert_eq!(response.responses[0].partition_responses[0].error_code, 87);
}

/// CRC-32C, bit by bit: an implementation of its own, to make batches whose only fault is the one that is meant.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0x82f6_3b78
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

#[tokio::test]
async fn compressed_data_is_opened_only_where_keys_matter_and_then_within_bounds() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("plain", 1, &[]).await;
    client
        .create_topic("compact", 1, &[("cleanup.policy", "compact")])
        .await;
    let bomb = "0".repeat(900_000);
    let bomb: Vec<&str> = std::iter::repeat_n(bomb.as_str(), 300).collect();
    let bomb = batch_with(&bomb, Compression::Zstd);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(client.produce("plain", 0, bomb.clone()).await.error_code, 0);
    assert_eq!(client.produce("compact", 0, bomb).await.error_code, 87);
    let mut keyless = BatchBuilder::new();
    keyless.append(1, None, Some(b"x"), &[]);
    let answer = client.produce("compact", 0, keyless.finish().unwrap()).await;
    assert_eq!((answer.error_code, answer.record_errors[0].batch_index), (87, 0));
    assert_eq!(
        client.produce("compact", 0, batch(&["keyed"])).await.error_code,
        0
    );
}

#[tokio::test]
async fn odd_fetches_are_clamped_or_refused() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    client.produce("t", 0, batch(&["x"])).await;
    for (offset, code) in [(-1, 1), (2, 1), (i64::MAX, 1), (i64::MIN, 1), (0, 0), (1, 0)] {
        assert_eq!(
            client.fetch("t", 0, offset, 0).await.error_code,
            code,
            "offset {offset}"
        );
    }
    let odd = |change: &dyn Fn(&mut FetchRequest)| {
        let mut request = fetch("t", 0, 0, 0);
        change(&mut request);
        request
    };
    for request in [
        odd(&|request| request.max_bytes = 0),
        odd(&|request| request.max_bytes = -5),
        odd(&|request| request.max_bytes = i32::MAX),
        odd(&|request| request.min_bytes = i32::MIN),
        odd(&|request| request.max_wait_ms = i32::MIN),
        odd(&|request| request.topics[0].partitions[0].partition_max_bytes = -1),
        odd(&|request| request.topics[0].partitions[0].partition_max_bytes = i32::MAX),
    ] {
        let response = client.call(12, &request).await;
        // The first batch comes whole whatever the limits.
        assert_eq!(values(&response.responses[0].partitions[0]), ["x"], "{request:?}");
    }
    let code = |response: FetchResponse| response.error_code;
    assert_eq!(
        code(client.call(12, &odd(&|request| request.session_epoch = 3)).await),
        70
    );
    let unknown = odd(&|request| (request.session_id, request.session_epoch) = (77, 1));
    assert_eq!(code(client.call(12, &unknown).await), 70);
    assert_eq!(
        code(client.call(12, &odd(&|request| request.replica_id = 1)).await),
        31
    );
    let follower = client.call(5, &odd(&|request| request.replica_id = 1)).await;
    assert_eq!(follower.responses[0].partitions[0].error_code, 31);
    let epoch = odd(&|request| request.topics[0].partitions[0].current_leader_epoch = 9);
    assert_eq!(
        client.call(12, &epoch).await.responses[0].partitions[0].error_code,
        75
    );
    // A wait that is too long is cut, and min_bytes that never come do not hold what is there for ever.
    let patient = odd(&|request| {
        request.min_bytes = i32::MAX;
        request.max_wait_ms = 50;
    });
    assert_eq!(
        values(&client.call(12, &patient).await.responses[0].partitions[0]),
        ["x"]
    );
}

#[tokio::test]
async fn many_partitions_in_one_fetch_give_a_bounded_answer() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let large = "y".repeat(500_000);
    for _ in 0..4 {
        client.produce("t", 0, batch(&[&large])).await;
    }
    let mut request = fetch("t", 0, 0, 0);
    let one = request.topics[0].partitions[0].clone();
    request.topics[0].partitions = vec![one; 10_000];
    request.max_bytes = 2 << 20;
    let response = client.call(12, &request).await;
    let partitions = &response.responses[0].partitions;
    assert_eq!(partitions.len(), 10_000);
    let bytes: usize = partitions
        .iter()
        .map(|one| one.records.as_ref().map_or(0, Records::len))
        .sum();
    assert!(bytes <= 2 << 20 && bytes > 500_000, "{bytes}");
}

#[tokio::test]
async fn metadata_for_very_many_names_is_bounded_work_and_creation_is_rationed() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let names = |count: usize, same: bool| {
        let name = |n| format!("topic-{}", if same { 0 } else { n });
        let topic = |n| metadata::MetadataRequestTopic {
            name: Some(name(n)),
            ..Default::default()
        };
        MetadataRequest {
            topics: Some((0..count).map(topic).collect()),
            ..Default::default()
        }
    };
    let response = client.call(9, &names(10_000, true)).await;
    assert_eq!(response.topics.len(), 1);
    let response = client.call(9, &names(2_000, false)).await;
    let created = response
        .topics
        .iter()
        .filter(|topic| topic.error_code == 0)
        .count();
    assert!(
        (100..=1_000).contains(&created),
        "{created} topics were created at once"
    );
    assert!(
        response
            .topics
            .iter()
            .all(|topic| [0, 5].contains(&topic.error_code))
    );
    client.send(9, &names(100_000, false)).await;
    client.expect_end().await;
}

#[tokio::test]
async fn connections_beyond_the_limits_are_refused_and_others_go_on() {
    let server = TestServer::with(|config| config.limits.connections_per_ip_max = 3).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = server.client().await;
        client.call(0, &ApiVersionsRequest::default()).await;
        clients.push(client);
    }
    server.client().await.expect_end().await;
    clients[0].call(0, &ApiVersionsRequest::default()).await;
    drop(clients.pop());
    soon(async {
        loop {
            let mut client = server.client().await;
            client
                .write(
                    &encode_request(1, None, &ApiVersionsRequest::default(), 0)
                        .unwrap()
                        .to_bytes(),
                )
                .await;
            if client.frame().await.is_some() {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_closed_and_holds_back_nobody() {
    let server = TestServer::with(|config| config.limits.write_timeout = Duration::from_millis(300)).await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let large = "z".repeat(900_000);
    for _ in 0..10 {
        client.produce("t", 0, batch(&[&large])).await;
    }
    let mut deaf = server.client().await;
    let mut request = fetch("t", 0, 0, 0);
    request.max_bytes = i32::MAX;
    request.topics[0].partitions[0].partition_max_bytes = i32::MAX;
    for id in 0..50 {
        let frame = encode_request(id, None, &request, 12).unwrap().to_bytes();
        // The server stops reading at some point, and then closes.
        if deaf.stream.write_all(&frame).await.is_err() {
            break;
        }
    }
    soon(async {
        while server.running.metrics().connections_expelled.get() == 0 {
            client.produce("t", 0, batch(&["meanwhile"])).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_produce_behind_which_the_client_hangs_up_is_whole_or_not_at_all() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let mut hasty = server.client().await;
    let frame = encode_request(1, None, &produce("t", 0, -1, batch(&["a", "b"])), 9)
        .unwrap()
        .to_bytes();
    hasty.write(&frame).await;
    hasty.stream.shutdown().await.unwrap();
    // What was complete is done, and even answered.
    assert!(hasty.frame().await.is_some());
    hasty.expect_end().await;
    let mut cut = server.client().await;
    cut.write(&frame[..frame.len() - 1]).await;
    cut.stream.shutdown().await.unwrap();
    cut.expect_end().await;
    assert_eq!(values(&client.fetch("t", 0, 0, 0).await), ["a", "b"]);
    assert_eq!(client.produce("t", 0, batch(&["c"])).await.base_offset, 2);
}

#[tokio::test]
async fn timestamps_out_of_range_are_refused_where_a_range_is_set() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client
        .create_topic(
            "free",
            1,
            &[("message.timestamp.after.max.ms", "9223372036854775807")],
        )
        .await;
    client
        .create_topic("strict", 1, &[("message.timestamp.before.max.ms", "1000")])
        .await;
    let far = |timestamp| {
        let mut builder = BatchBuilder::new();
        builder.append(timestamp, None, Some(b"x"), &[]);
        builder.finish().unwrap()
    };
    assert_eq!(client.produce("strict", 0, far(1)).await.error_code, 32);
    assert_eq!(
        client
            .produce("strict", 0, far(9_223_372_036_854_000))
            .await
            .error_code,
        32
    );
    assert_eq!(
        client
            .produce("free", 0, far(9_223_372_036_854_000))
            .await
            .error_code,
        0
    );
}
