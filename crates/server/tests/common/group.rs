//! Requests of members of the classic protocol.

use anabranch_wire::msg::*;
use bytes::Bytes;

use super::Client;

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
