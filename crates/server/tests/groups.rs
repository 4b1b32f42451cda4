//! Groups through the wire: joining, committing, describing, restarting, ending.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use anabranch_wire::msg::*;
use bytes::Bytes;
use common::group::*;
use common::*;

/// Joins with the two steps of version 4 and later.
async fn join_fully(client: &mut Client, group: &str, topic: &str) -> JoinGroupResponse {
    let first = client
        .call(5, &join(group, "", "range", subscription(topic)))
        .await;
    assert_eq!(first.error_code, 79);
    let second = client
        .call(5, &join(group, &first.member_id, "range", subscription(topic)))
        .await;
    assert_eq!(second.error_code, 0, "{second:?}");
    second
}

fn commit(group: &str, joined: Option<&JoinGroupResponse>, topic: &str, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: joined.map_or(-1, |joined| joined.generation_id),
        member_id: joined.map(|joined| joined.member_id.clone()).unwrap_or_default(),
        topics: vec![offset_commit::OffsetCommitRequestTopic {
            name: topic.to_owned(),
            partitions: vec![offset_commit::OffsetCommitRequestPartition {
                partition_index: 0,
                committed_offset: offset,
                committed_metadata: Some("note".to_owned()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

async fn committed(client: &mut Client, group: &str) -> Vec<(String, i64, String)> {
    let request = OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: None,
        ..Default::default()
    };
    let response = client.call(7, &request).await;
    assert_eq!(response.error_code, 0);
    let mut all = Vec::new();
    for topic in response.topics {
        for partition in topic.partitions {
            all.push((
                topic.name.clone(),
                partition.committed_offset,
                partition.metadata.unwrap_or_default(),
            ));
        }
    }
    all
}

#[tokio::test]
async fn a_member_joins_is_assigned_commits_and_leaves() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let joined = join_fully(&mut client, "g", "t").await;
    let synced = sync(&mut client, "g", &joined).await;
    assert_eq!(synced.error_code, 0);
    assert!(synced.assignment.windows(1).len() > 6 && synced.assignment.ends_with(&[0xff; 4]));
    let answer = client.call(7, &commit("g", Some(&joined), "t", 42)).await;
    assert_eq!(answer.topics[0].partitions[0].error_code, 0);
    assert_eq!(
        committed(&mut client, "g").await,
        [("t".to_owned(), 42, "note".to_owned())]
    );

    let heartbeat = HeartbeatRequest {
        group_id: "g".to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    assert_eq!(client.call(3, &heartbeat).await.error_code, 0);
    let stranger = HeartbeatRequest {
        member_id: "stranger".to_owned(),
        ..heartbeat.clone()
    };
    assert_eq!(client.call(3, &stranger).await.error_code, 25);

    let describe = DescribeGroupsRequest {
        groups: vec!["g".to_owned(), "no".to_owned()],
        ..Default::default()
    };
    let described = client.call(6, &describe).await;
    assert_eq!(
        (
            described.groups[0].group_state.as_str(),
            described.groups[0].members.len()
        ),
        ("Stable", 1)
    );
    assert_eq!(described.groups[0].members[0].client_host, "/127.0.0.1");
    assert_eq!(described.groups[0].members[0].client_id, "test");
    assert_eq!(described.groups[1].error_code, 69);
    let older = client.call(5, &describe).await;
    assert_eq!(
        (older.groups[1].error_code, older.groups[1].group_state.as_str()),
        (0, "Dead")
    );
    let listed = client.call(4, &ListGroupsRequest::default()).await;
    assert_eq!(
        (
            listed.groups[0].group_id.as_str(),
            listed.groups[0].group_state.as_str()
        ),
        ("g", "Stable")
    );

    let delete = DeleteGroupsRequest {
        groups_names: vec!["g".to_owned()],
    };
    assert_eq!(client.call(2, &delete).await.results[0].error_code, 68);
    let leave = LeaveGroupRequest {
        group_id: "g".to_owned(),
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    assert_eq!(client.call(2, &leave).await.error_code, 0);
    assert_eq!(client.call(3, &heartbeat).await.error_code, 25);
    assert_eq!(client.call(2, &delete).await.results[0].error_code, 0);
    assert!(committed(&mut client, "g").await.is_empty());
    assert_eq!(client.call(2, &delete).await.results[0].error_code, 69);
}

#[tokio::test]
async fn membership_and_commits_survive_a_restart() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let joined = join_fully(&mut client, "g", "t").await;
    sync(&mut client, "g", &joined).await;
    client.call(7, &commit("g", Some(&joined), "t", 7)).await;
    client.call(7, &commit("tool", None, "t", 3)).await;
    let server = server.restart().await;
    let mut client = server.client().await;
    assert_eq!(committed(&mut client, "g").await[0].1, 7);
    assert_eq!(committed(&mut client, "tool").await[0].1, 3);
    // The member goes on as if nothing had been.
    let answer = client.call(7, &commit("g", Some(&joined), "t", 8)).await;
    assert_eq!(answer.topics[0].partitions[0].error_code, 0);
    assert_eq!(committed(&mut client, "g").await[0].1, 8);
}

#[tokio::test]
async fn commits_are_fetched_in_every_version() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    for version in 2..=9 {
        let answer = client
            .call(version, &commit("g", None, "t", i64::from(version)))
            .await;
        assert_eq!(answer.topics[0].partitions[0].error_code, 0, "version {version}");
    }
    for version in 1..=7 {
        let topics = vec![offset_fetch::OffsetFetchRequestTopic {
            name: "t".to_owned(),
            partition_indexes: vec![0, 9],
        }];
        let request = OffsetFetchRequest {
            group_id: "g".to_owned(),
            topics: Some(topics),
            ..Default::default()
        };
        let response = client.call(version, &request).await;
        let offsets: Vec<i64> = response.topics[0]
            .partitions
            .iter()
            .map(|one| one.committed_offset)
            .collect();
        assert_eq!(offsets, [9, -1], "version {version}");
    }
    for version in 8..=9 {
        let group = |group_id: &str| offset_fetch::OffsetFetchRequestGroup {
            group_id: group_id.to_owned(),
            topics: Some(vec![offset_fetch::OffsetFetchRequestTopics {
                name: "t".to_owned(),
                partition_indexes: vec![0],
                ..Default::default()
            }]),
            ..Default::default()
        };
        let request = OffsetFetchRequest {
            groups: vec![group("g"), group("other")],
            ..Default::default()
        };
        let response = client.call(version, &request).await;
        let offsets: Vec<i64> = response
            .groups
            .iter()
            .map(|group| group.topics[0].partitions[0].committed_offset)
            .collect();
        assert_eq!(offsets, [9, -1], "version {version}");
    }
}

#[tokio::test]
async fn commits_that_cannot_be_are_refused() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let code = |response: OffsetCommitResponse| response.topics[0].partitions[0].error_code;
    let mut long = commit("g", None, "t", 1);
    long.topics[0].partitions[0].committed_metadata = Some("x".repeat(4_097));
    assert_eq!(code(client.call(7, &long).await), 12);
    assert_eq!(code(client.call(7, &commit("g", None, "none", 1)).await), 3);
    assert_eq!(code(client.call(7, &commit("", None, "t", 1)).await), 24);
    let delete = OffsetDeleteRequest {
        group_id: "g".to_owned(),
        topics: vec![offset_delete::OffsetDeleteRequestTopic {
            name: "t".to_owned(),
            partitions: vec![offset_delete::OffsetDeleteRequestPartition { partition_index: 0 }],
        }],
    };
    assert_eq!(client.call(0, &delete).await.error_code, 69);
    client.call(7, &commit("g", None, "t", 1)).await;
    let answer = client.call(0, &delete).await;
    assert_eq!(
        (answer.error_code, answer.topics[0].partitions[0].error_code),
        (0, 0)
    );
    assert!(committed(&mut client, "g").await.is_empty());
}

#[tokio::test]
async fn hostile_joins_get_their_codes() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.create_topic("t", 1, &[]).await;
    let code = async |client: &mut Client, change: &dyn Fn(&mut JoinGroupRequest)| {
        let mut request = join("g", "", "range", subscription("t"));
        change(&mut request);
        client.call(9, &request).await.error_code
    };
    assert_eq!(code(&mut client, &|request| request.group_id.clear()).await, 24);
    assert_eq!(
        code(&mut client, &|request| request.session_timeout_ms = 1).await,
        26
    );
    assert_eq!(
        code(&mut client, &|request| request.session_timeout_ms = i32::MAX).await,
        26
    );
    assert_eq!(code(&mut client, &|request| request.protocols.clear()).await, 23);
    let large = |request: &mut JoinGroupRequest| request.protocols[0].metadata = vec![0; 2 << 20].into();
    assert_eq!(code(&mut client, &large).await, 42);
}

#[tokio::test]
async fn a_group_with_a_leader_waits_for_its_plan_and_a_shutdown_lets_everybody_go() {
    let server = TestServer::start().await;
    let mut leader = server.client().await;
    let mut follower = server.client().await;
    let connect = |member: &str| JoinGroupRequest {
        protocol_type: "connect".to_owned(),
        ..join("c", member, "default", Bytes::from_static(b"opaque"))
    };
    let first = leader.call(3, &connect("")).await;
    assert_eq!((first.error_code, first.leader == first.member_id), (0, true));
    // A second member makes the first one join again; both answers come when both are there.
    let second_id = follower.send(3, &connect("")).await;
    let describe = DescribeGroupsRequest {
        groups: vec!["c".to_owned()],
        ..Default::default()
    };
    soon(async { while leader.call(5, &describe).await.groups[0].group_state != "PreparingRebalance" {} })
        .await;
    let first = leader.call(3, &connect(&first.member_id)).await;
    let second = follower.receive::<JoinGroupRequest>(second_id, 3).await;
    assert_eq!((first.error_code, second.error_code), (0, 0));
    assert_eq!(first.generation_id, second.generation_id);
    let (leads, follows) = if first.leader == first.member_id {
        (&first, &second)
    } else {
        (&second, &first)
    };
    let (mut leader, mut follower) = if first.leader == first.member_id {
        (leader, follower)
    } else {
        (follower, leader)
    };
    assert_eq!((leads.members.len(), follows.members.len()), (2, 0));
    let sync = |joined: &JoinGroupResponse, plan: bool| SyncGroupRequest {
        group_id: "c".to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: if plan {
            vec![sync_group::SyncGroupRequestAssignment {
                member_id: follows.member_id.clone(),
                assignment: Bytes::from_static(b"work"),
            }]
        } else {
            Vec::new()
        },
        ..Default::default()
    };
    let waiting = follower.send(3, &sync(follows, false)).await;
    assert_eq!(leader.call(3, &sync(leads, true)).await.error_code, 0);
    let answer = follower.receive::<SyncGroupRequest>(waiting, 3).await;
    assert_eq!(
        (answer.error_code, answer.assignment),
        (0, Bytes::from_static(b"work"))
    );

    // The leader joins again and waits for the other, who does not come: the server ends first.
    let waiting = leader.send(3, &connect(&leads.member_id)).await;
    soon(async { while follower.call(5, &describe).await.groups[0].group_state != "PreparingRebalance" {} })
        .await;
    let (ended, answer) = tokio::join!(
        server.running.shutdown(),
        leader.receive::<JoinGroupRequest>(waiting, 3)
    );
    ended.unwrap();
    assert_eq!(answer.error_code, 16);
}

#[tokio::test]
async fn a_member_of_the_new_protocol_is_assigned_and_described() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let id = client.create_topic("t", 2, &[]).await;
    let mut request = ConsumerGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        member_id: "me".to_owned(),
        rebalance_timeout_ms: 10_000,
        subscribed_topic_names: Some(vec!["t".to_owned()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    let joined = client.call(1, &request).await;
    assert_eq!(joined.error_code, 0, "{joined:?}");
    let assigned = joined.assignment.unwrap().topic_partitions;
    assert_eq!((assigned[0].topic_id, assigned[0].partitions.len()), (id, 2));
    request.member_epoch = joined.member_epoch;
    request.rebalance_timeout_ms = -1;
    request.subscribed_topic_names = None;
    request.topic_partitions = Some(assigned);
    let stable = client.call(1, &request).await;
    assert_eq!((stable.error_code, stable.assignment), (0, None));
    let describe = ConsumerGroupDescribeRequest {
        group_ids: vec!["g".to_owned()],
        ..Default::default()
    };
    let group = client.call(1, &describe).await.groups[0].clone();
    assert_eq!(
        (group.error_code, group.group_state.as_str(), group.members.len()),
        (0, "Stable", 1)
    );
    assert_eq!(group.members[0].assignment.topic_partitions[0].topic_name, "t");
    request.member_epoch = joined.member_epoch + 5;
    assert_eq!(client.call(1, &request).await.error_code, 110);
    request.group_id.clear();
    assert_eq!(client.call(1, &request).await.error_code, 42);
}
