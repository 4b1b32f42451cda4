//! Members that share a partition, through the wire: what is told to requests that carry no offset.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_core::cursor::{SliceId, SliceOffset};
use anabranch_server::admin::model;
use anabranch_wire::batch::BatchIter;
use anabranch_wire::msg::*;
use common::group::*;
use common::*;

/// Enough for a division; the default of `elastic.split.min.remaining` is 1,000.
const RECORDS: i64 = 4_000;

/// A partition with a backlog, divided by the planner among two members; with where each begins.
async fn divided(server: &TestServer, library: Library) -> [(Member, SliceOffset); 2] {
    divided_with(server, library, &[]).await
}

/// The same with other settings of the topic.
async fn divided_with(
    server: &TestServer,
    library: Library,
    settings: &[(&str, &str)],
) -> [(Member, SliceOffset); 2] {
    let mut admin = server.client().await;
    admin.create_topic("t", 1, settings).await;
    for start in (0..RECORDS).step_by(500) {
        assert_eq!(
            admin
                .produce("t", 0, numbered(start..start + 500))
                .await
                .error_code,
            0
        );
    }
    let mut a = Member::enter(server, library).await;
    assert_eq!(a.position().await, Some(-1));
    a.commit(0).await;
    let mut b = Member::enter(server, library).await;
    soon(async {
        loop {
            a.follow().await;
            b.follow().await;
            let (at_a, at_b) = (a.position().await, b.position().await);
            let slice = |at: Option<i64>| SliceOffset::from_wire(at?).filter(|at| at.slice().is_some());
            if let (Some(at_a), Some(at_b)) = (slice(at_a), slice(at_b)) {
                return [(a, at_a), (b, at_b)];
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await
}

/// Error, offset and leader epoch in the answer to a ListOffsets.
async fn listed(client: &mut Client, timestamp: i64, epoch: i32) -> (i16, i64, i32) {
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![list_offsets::ListOffsetsTopic {
            name: "t".to_owned(),
            partitions: vec![list_offsets::ListOffsetsPartition {
                timestamp,
                current_leader_epoch: epoch,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let one = client.call(7, &request).await.topics[0].partitions[0].clone();
    (one.error_code, one.offset, one.leader_epoch)
}

/// First, end, at time 1,500, and of the largest timestamp.
async fn all_listed(client: &mut Client) -> [i64; 4] {
    let mut found = [0; 4];
    for (found, timestamp) in found.iter_mut().zip([-2, -1, 1_500, -3]) {
        let (error, offset, _) = listed(client, timestamp, -1).await;
        assert_eq!(error, 0);
        *found = offset;
    }
    found
}

const PLAIN: [i64; 4] = [0, RECORDS, 1_500, RECORDS - 1];

fn wire(slice: Option<SliceId>, offset: i64) -> i64 {
    SliceOffset::new(slice, offset).unwrap().to_wire()
}

fn of(slice: Option<SliceId>) -> [i64; 4] {
    PLAIN.map(|offset| wire(slice, offset))
}

#[tokio::test]
async fn offsets_are_listed_in_the_numbers_of_whoever_asks() {
    let server = TestServer::start().await;
    let mut members = divided(&server, LIBRDKAFKA).await;
    // On a connection that is not known yet it could be either: both are there.
    let mut readers = [
        LIBRDKAFKA.connect(&server).await,
        LIBRDKAFKA.connect(&server).await,
    ];
    for (reader, (member, at)) in readers.iter_mut().zip(&mut members) {
        assert_eq!(all_listed(reader).await, PLAIN);
        assert_eq!(all_listed(&mut member.client).await, of(at.slice()));
        let fetched = reader.fetch("t", 0, at.to_wire(), 0).await;
        assert_eq!(fetched.error_code, 0);
        assert!(!values(&fetched).is_empty());
        assert_eq!(all_listed(reader).await, of(at.slice()));
        // A plain fetch in between is nothing unusual.
        assert_eq!(reader.fetch("t", 0, 5, 0).await.error_code, 0);
        assert_eq!(all_listed(reader).await, of(at.slice()));
        // A slice has no leader epoch, and none is wrong.
        assert_eq!(listed(reader, -1, 70).await, (0, wire(at.slice(), RECORDS), -1));
    }
    // A tool on the same machine.
    let mut outsider = server.client().await;
    assert_eq!(all_listed(&mut outsider).await, PLAIN);
    assert_eq!(listed(&mut outsider, -1, 70).await.0, 75);
    // An id that never was is no reason to believe that anybody reads a slice.
    let unknown = wire(SliceId::new(99), 0);
    assert_eq!(outsider.fetch("t", 0, unknown, 0).await.error_code, 1);
    assert_eq!(all_listed(&mut outsider).await, PLAIN);
    // One has died, and is a member until its session is over: who comes now is the other.
    let [(mut alive, at), dead] = members;
    drop((dead, readers));
    soon(async {
        loop {
            let mut unknown = LIBRDKAFKA.connect(&server).await;
            if all_listed(&mut unknown).await == of(at.slice()) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(all_listed(&mut alive.client).await, of(at.slice()));
}

#[tokio::test]
async fn clients_that_check_where_they_begin_find_it_within_bounds() {
    for library in [SARAMA, KAFKA_GO] {
        let server = TestServer::start().await;
        let members = divided(&server, library).await;
        let mut fresh = library.connect(&server).await;
        let [first, last, ..] = all_listed(&mut fresh).await;
        for (mut member, at) in members {
            assert!((first..=last).contains(&at.to_wire()), "{}", library.client_id);
            assert_eq!(all_listed(&mut member.client).await, of(at.slice()));
        }
    }
}

#[tokio::test]
async fn no_position_in_a_slice_looks_like_lost_records() {
    let server = TestServer::start().await;
    let end_of_epoch = |leader_epoch| OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![offset_for_leader_epoch::OffsetForLeaderTopic {
            topic: "t".to_owned(),
            partitions: vec![offset_for_leader_epoch::OffsetForLeaderPartition {
                partition: 0,
                current_leader_epoch: leader_epoch,
                leader_epoch,
            }],
        }],
    };
    let members = divided(&server, LIBRDKAFKA).await;
    let mut client = server.client().await;
    for epoch in [-1, 0, 70] {
        let answer = client.call(4, &end_of_epoch(epoch)).await;
        let one = &answer.topics[0].partitions[0];
        assert_eq!(one.error_code, 0);
        assert!(one.leader_epoch >= 0);
        for (_, at) in &members {
            assert!(one.end_offset >= wire(at.slice(), RECORDS));
        }
    }
}

#[tokio::test]
async fn what_reading_slices_costs_is_counted() {
    let server = TestServer::with_http().await;
    let http = server.http();
    let counters = async || -> model::Counters {
        let answer = http_get(http, "/api/v1/counters").await;
        serde_json::from_str(parts(&answer).1).unwrap()
    };
    assert_eq!(counters().await.slice_delivered_bytes_total, 0);
    let members = divided(&server, LIBRDKAFKA).await;
    let before = counters().await;
    assert!(before.state_bytes_total > 0);
    assert!(
        before.slice_read_bytes_total > 0 && before.slice_delivered_bytes_total == 0,
        "the planner has counted, nobody has read: {before:?}"
    );
    let mut delivered = 0;
    for (mut member, at) in members {
        let fetched = member.client.fetch("t", 0, at.to_wire(), 0).await;
        delivered += fetched.records.unwrap().len() as u64;
    }
    let after = counters().await;
    assert_eq!(after.slice_delivered_bytes_total, delivered);
    assert!(after.slice_opened_bytes_total > before.slice_opened_bytes_total);
}

#[tokio::test]
async fn lag_is_not_changed_by_a_division_and_who_shares_is_told() {
    let server = TestServer::with_http().await;
    let members = divided(&server, LIBRDKAFKA).await;
    let answer = http_get(server.http(), "/metrics").await;
    let place = "{consumergroup=\"g\",topic=\"t\",partition=\"0\"}";
    let of_topic = "{consumergroup=\"g\",topic=\"t\"}";
    for (name, labels, value) in [
        ("kafka_consumergroup_lag", place, RECORDS),
        ("kafka_consumergroup_lag_sum", of_topic, RECORDS),
        ("anabranch_group_sharing_members", place, members.len() as i64),
        ("anabranch_group_moving_slots", place, 0),
    ] {
        let line = format!("{name}{labels} {value}");
        assert!(
            answer.lines().any(|found| found == line),
            "{line} is not in\n{answer}"
        );
    }
    assert!(answer.contains("anabranch_group_idle_members{consumergroup=\"g\"} 0\n"));
}

/// Lines of a scrape that begin so, with their values.
fn lines_of(scrape: &str, name: &str) -> Vec<(String, f64)> {
    let lines = scrape.lines().filter(|line| line.starts_with(name));
    let parsed = lines.map(|line| line.rsplit_once(' ').unwrap());
    parsed
        .map(|(key, value)| (key.to_owned(), value.parse().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_division_is_counted_and_what_must_be_counted_is_there_at_a_later_scrape() {
    let server = TestServer::with_http().await;
    let http = server.http();
    let before = http_get(http, "/metrics").await;
    let split = "anabranch_decisions_total{kind=\"split\"}";
    assert_eq!(lines_of(&before, split), [(split.to_owned(), 0.0)]);
    assert_eq!(lines_of(&before, "anabranch_handover_seconds_count"), []);
    let _members = divided(&server, LIBRDKAFKA).await;
    let hottest = "anabranch_group_hottest_slot_share{consumergroup=\"g\",topic=\"t\"}";
    let after = soon(async {
        loop {
            let answer = http_get(http, "/metrics").await;
            if !lines_of(&answer, hottest).is_empty() {
                return answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let value = |name: &str| match lines_of(&after, name).as_slice() {
        [(_, value)] => *value,
        other => panic!("{name}: {other:?} in\n{after}"),
    };
    assert_eq!(value(split), 1.0);
    assert_eq!(value("anabranch_decisions_ended_total{end=\"done\"}"), 1.0);
    assert_eq!(
        value("anabranch_handover_seconds_count{kind=\"split\",end=\"done\"}"),
        1.0
    );
    assert!(value("anabranch_handover_seconds_sum{kind=\"split\",end=\"done\"}") < 20.0);
    // Four thousand keys in as many slots: none stands out.
    let share = value(hottest);
    assert!(share > 0.0 && share < 0.01, "{share}");
    // The records are of 1970, as their producer says.
    assert!(value("anabranch_group_lag_seconds") > 1e9);
    assert_eq!(
        value("anabranch_group_desired_members"),
        2.0,
        "nobody has worked yet"
    );
    assert!(value("anabranch_group_stuck_seconds") < 20.0);
}

impl Member {
    /// Reads its share to the end and commits as it goes; the numbers of the records.
    async fn read_all(&mut self, reader: &mut Client, at: SliceOffset) -> Vec<i64> {
        let (mut at, mut seen) = (at.to_wire(), Vec::new());
        loop {
            let found = reader.fetch("t", 0, at, 200).await;
            assert_eq!(found.error_code, 0);
            let numbers = values(&found);
            if numbers.is_empty() {
                return seen;
            }
            seen.extend(numbers.iter().map(|number| number.parse::<i64>().unwrap()));
            let bytes = found.records.unwrap().into_bytes();
            let last = BatchIter::new(&bytes).last().unwrap().unwrap();
            at = last.1.next_offset();
            self.commit(at).await;
        }
    }
}

/// The whole program does it, for clients that know nothing of it.
#[tokio::test]
async fn claim_15_the_program_divides_what_remains_of_a_partition_between_two_members() {
    let server = TestServer::start().await;
    let [(mut a, at_a), (mut b, at_b)] = divided(&server, LIBRDKAFKA).await;
    let mut readers = [
        LIBRDKAFKA.connect(&server).await,
        LIBRDKAFKA.connect(&server).await,
    ];
    let [reader_a, reader_b] = &mut readers;
    let (of_a, of_b) = tokio::join!(a.read_all(reader_a, at_a), b.read_all(reader_b, at_b));
    let half = usize::try_from(RECORDS).unwrap() / 2;
    assert!(
        of_a.len().abs_diff(half) <= half / 50,
        "{} and {}",
        of_a.len(),
        of_b.len()
    );
    assert!(of_a.is_sorted() && of_b.is_sorted());
    let mut all = [of_a, of_b].concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..RECORDS), "each record once");
}

#[tokio::test]
async fn what_was_deleted_is_passed_over_by_whoever_shares_a_partition() {
    let server = TestServer::start().await;
    let members = divided(&server, LIBRDKAFKA).await;
    let delete = DeleteRecordsRequest {
        topics: vec![delete_records::DeleteRecordsTopic {
            name: "t".to_owned(),
            partitions: vec![delete_records::DeleteRecordsPartition {
                partition_index: 0,
                offset: 2_250,
            }],
        }],
        ..Default::default()
    };
    let mut admin = server.client().await;
    assert_eq!(admin.call(2, &delete).await.topics[0].partitions[0].error_code, 0);
    for (mut member, at) in members {
        assert_eq!(at.offset(), 0);
        let fetched = member.client.fetch("t", 0, at.to_wire(), 0).await;
        assert_eq!(fetched.error_code, 0);
        let numbers = values(&fetched)
            .into_iter()
            .map(|value| value.parse::<i64>().unwrap());
        let lowest = numbers.min().unwrap();
        assert!((2_250..2_300).contains(&lowest), "{lowest}");
    }
}

#[tokio::test]
async fn whoever_does_not_read_its_share_is_told_to_take_it_anew() {
    let server = TestServer::start().await;
    let settings = [("elastic.watchdog.fetch.ms", "1500")];
    let [(mut reads, at), (mut silent, before)] = divided_with(&server, LIBRDKAFKA, &settings).await;
    let mut reader = LIBRDKAFKA.connect(&server).await;
    assert_eq!(reader.fetch("t", 0, at.to_wire(), 0).await.error_code, 0);
    let slice = |at: Option<i64>| SliceOffset::from_wire(at?)?.slice();
    soon(async {
        while slice(silent.position().await) <= before.slice() {
            silent.follow().await;
            reads.follow().await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(
        slice(reads.position().await),
        at.slice(),
        "who reads is left alone"
    );
}
