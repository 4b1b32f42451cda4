//! Members of the classic protocol, and their requests.

use anabranch_wire::batch::BatchBuilder;
use anabranch_wire::msg::*;
use bytes::Bytes;

use super::{Client, TestServer};

/// ConsumerProtocolSubscription version 0 for one topic.
pub fn subscription(topic: &str) -> Bytes {
    let mut bytes = vec![0, 0, 0, 0, 0, 1];
    bytes.extend((topic.len() as i16).to_be_bytes());
    bytes.extend(topic.as_bytes());
    bytes.extend([0xff; 4]);
    bytes.into()
}

pub fn join(group: &str, member: &str, protocol: &str, metadata: Bytes) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: member.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![join_group::JoinGroupRequestProtocol {
            name: protocol.to_owned(),
            metadata,
        }],
        ..Default::default()
    }
}

pub async fn sync(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> SyncGroupResponse {
    let request = SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    client.call(3, &request).await
}

/// A client library: its id, the name and version that it introduces itself with, and its JoinGroup.
#[derive(Clone, Copy)]
pub struct Library {
    pub client_id: &'static str,
    pub software: Option<(&'static str, &'static str)>,
    pub join_version: i16,
}

pub const LIBRDKAFKA: Library = Library {
    client_id: "rdkafka",
    software: Some(("librdkafka", "2.16.0")),
    join_version: 5,
};

pub const SARAMA: Library = Library {
    client_id: "sarama",
    software: Some(("sarama", "v1.60.1")),
    join_version: 5,
};

pub const KAFKA_GO: Library = Library {
    client_id: "app@host (github.com/segmentio/kafka-go)",
    software: None,
    join_version: 2,
};

impl Library {
    /// A new connection of one of its clients.
    pub async fn connect(self, server: &TestServer) -> Client {
        let mut client = server.client().await;
        client.client_id = self.client_id.to_owned();
        if let Some((name, version)) = self.software {
            let request = ApiVersionsRequest {
                client_software_name: name.to_owned(),
                client_software_version: version.to_owned(),
            };
            assert_eq!(client.call(3, &request).await.error_code, 0);
        }
        client
    }
}

/// An eager member of group "g", and the connection of its group requests.
pub struct Member {
    pub client: Client,
    library: Library,
    pub joined: JoinGroupResponse,
}

impl Member {
    pub async fn enter(server: &TestServer, library: Library) -> Self {
        let mut member = Self {
            client: library.connect(server).await,
            library,
            joined: JoinGroupResponse::default(),
        };
        member.join().await;
        member
    }

    pub async fn join(&mut self) {
        for _ in 0..2 {
            let request = join("g", &self.joined.member_id, "range", subscription("t"));
            self.joined = self.client.call(self.library.join_version, &request).await;
            if self.joined.error_code == 0 {
                break;
            }
        }
        assert_eq!(self.joined.error_code, 0);
        assert_eq!(sync(&mut self.client, "g", &self.joined).await.error_code, 0);
    }

    /// Heartbeats, and does as it is told.
    pub async fn follow(&mut self) {
        let request = HeartbeatRequest {
            group_id: "g".to_owned(),
            generation_id: self.joined.generation_id,
            member_id: self.joined.member_id.clone(),
            ..Default::default()
        };
        match self.client.call(3, &request).await.error_code {
            0 => {}
            27 => self.join().await,
            other => panic!("heartbeat: {other}"),
        }
    }

    /// Where it is to begin; `None` if it is to ask again.
    pub async fn position(&mut self) -> Option<i64> {
        let request = OffsetFetchRequest {
            group_id: "g".to_owned(),
            topics: Some(vec![offset_fetch::OffsetFetchRequestTopic {
                name: "t".to_owned(),
                partition_indexes: vec![0],
            }]),
            ..Default::default()
        };
        let answer = self.client.call(5, &request).await;
        let one = &answer.topics[0].partitions[0];
        (one.error_code == 0).then_some(one.committed_offset)
    }

    pub async fn commit(&mut self, committed_offset: i64) {
        let request = OffsetCommitRequest {
            group_id: "g".to_owned(),
            generation_id_or_member_epoch: self.joined.generation_id,
            member_id: self.joined.member_id.clone(),
            topics: vec![offset_commit::OffsetCommitRequestTopic {
                name: "t".to_owned(),
                partitions: vec![offset_commit::OffsetCommitRequestPartition {
                    partition_index: 0,
                    committed_offset,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.client.call(7, &request).await;
        assert_eq!(answer.topics[0].partitions[0].error_code, 0);
    }
}

/// Record n has the key, the value and the timestamp n.
pub fn numbered(numbers: std::ops::Range<i64>) -> Bytes {
    let mut builder = BatchBuilder::new();
    for n in numbers {
        let text = n.to_string();
        builder.append(n, Some(text.as_bytes()), Some(text.as_bytes()), &[]);
    }
    builder.finish().unwrap()
}
