//! A member without timers of its own: it speaks KIP-848 and does everything the moment it can be done, so that what
//! remains of a measured time is the broker's.
//!
//! It introduces itself as the Java consumer, whose way to ask for offsets it follows, and keeps its group's rules: it
//! gives up before it takes, commits what it has read, and reads on from where its slice goes on.

use super::backlog::identity;
use anabranch_wire::batch::{BatchIter, DecompressLimits, records};
use anabranch_wire::frame::{decode_response, encode_request};
use anabranch_wire::msg::*;
use anabranch_wire::prim::{Request, Uuid};
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Errors after which the same is asked again a moment later: a slice is not granted yet, or the group has moved on.
const AGAIN: [i16; 5] = [14, 25, 82, 88, 113];

/// The group of all raw members.
pub(crate) const GROUP: &str = "raw";

/// A blocking connection that calls itself a Java consumer.
struct Wire(TcpStream);

impl Wire {
    fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut wire = Self(stream);
        let introduction = ApiVersionsRequest {
            client_software_name: "apache-kafka-java".into(),
            client_software_version: "4.3.1".into(),
        };
        wire.call(3, &introduction)?;
        Ok(wire)
    }

    fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        let frame = encode_request(1, Some("raw"), request, version)?;
        self.0.write_all(&frame.to_bytes())?;
        let mut length = [0; 4];
        self.0.read_exact(&mut length).context("no answer")?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer)?;
        Ok(decode_response::<R::Response>(answer.into(), version)?.1)
    }
}

/// The id of a topic.
pub(crate) fn topic_id(address: &str, topic: &str) -> Result<Uuid> {
    let request = MetadataRequest {
        topics: Some(vec![metadata::MetadataRequestTopic {
            name: Some(topic.into()),
            ..Default::default()
        }]),
        ..Default::default()
    };
    let answer = Wire::connect(address)?.call(12, &request)?;
    let topic = answer.topics.first().context("no topic in the answer")?;
    ensure!(topic.error_code == 0, "no topic: error {}", topic.error_code);
    Ok(topic.topic_id)
}

/// Sets a configuration key of [`GROUP`].
pub(crate) fn configure_group(address: &str, key: &str, value: &str) -> Result<()> {
    /// Number of the resource type "group".
    const OF_A_GROUP: i8 = 32;
    let request = IncrementalAlterConfigsRequest {
        resources: vec![incremental_alter_configs::AlterConfigsResource {
            resource_type: OF_A_GROUP,
            resource_name: GROUP.into(),
            configs: vec![incremental_alter_configs::AlterableConfig {
                name: key.into(),
                config_operation: 0,
                value: Some(value.into()),
            }],
        }],
        validate_only: false,
    };
    let answer = Wire::connect(address)?.call(1, &request)?;
    let answer = answer.responses.first().context("no resource in the answer")?;
    ensure!(
        answer.error_code == 0,
        "{key} cannot be set: {:?}",
        answer.error_message
    );
    Ok(())
}

/// A member of [`GROUP`] that reads partition 0 of a topic.
pub(crate) struct RawMember {
    wire: Wire,
    topic: String,
    topic_id: Uuid,
    id: String,
    epoch: i32,
    /// Whether the partition is its own, as it was told.
    holds: bool,
    /// Whether it has told the broker so.
    told: bool,
    /// Where it reads on.
    position: Option<i64>,
    committed: Option<i64>,
}

impl RawMember {
    /// Connects, and joins the group.
    pub(crate) fn join(address: &str, topic: &str, topic_id: Uuid, id: &str) -> Result<Self> {
        let mut member = Self::connect(address, topic, topic_id, id)?;
        member.beat()?;
        Ok(member)
    }

    /// Connects and does not join yet; the first [`Self::beat`] does.
    pub(crate) fn connect(address: &str, topic: &str, topic_id: Uuid, id: &str) -> Result<Self> {
        Ok(Self {
            wire: Wire::connect(address)?,
            topic: topic.into(),
            topic_id,
            id: id.into(),
            epoch: 0,
            holds: false,
            told: false,
            position: None,
            committed: None,
        })
    }

    /// A heartbeat: says what it holds if that is news, and takes what it is told.
    pub(crate) fn beat(&mut self) -> Result<()> {
        let joins = self.epoch == 0;
        let owned = || consumer_group_heartbeat::TopicPartitions {
            topic_id: self.topic_id,
            partitions: vec![0],
        };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rebalance_timeout_ms: if joins { 60_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec![self.topic.clone()]),
            topic_partitions: (joins || !self.told).then(|| self.holds.then(owned).into_iter().collect()),
            ..Default::default()
        };
        let answer = self.wire.call(1, &request)?;
        ensure!(
            answer.error_code == 0,
            "a heartbeat failed: error {} {:?}",
            answer.error_code,
            answer.error_message
        );
        self.epoch = answer.member_epoch;
        self.told = true;
        if let Some(assignment) = answer.assignment {
            let holds = !assignment.topic_partitions.is_empty();
            self.told = holds == self.holds;
            self.holds = holds;
            // What it holds from now on, it asks for anew.
            if !holds {
                self.position = None;
            }
        }
        Ok(())
    }

    /// Leaves the group.
    pub(crate) fn leave(mut self) -> Result<()> {
        self.epoch = -1;
        self.told = true;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: self.id.clone(),
            member_epoch: -1,
            ..Default::default()
        };
        let answer = self.wire.call(1, &request)?;
        ensure!(
            answer.error_code == 0,
            "leaving failed: error {}",
            answer.error_code
        );
        Ok(())
    }

    /// Reads what is there for it, at most about so many bytes: key and number of each record. Nothing if it holds nothing,
    /// or has no position yet.
    pub(crate) fn read(&mut self, bytes_max: i32) -> Result<Vec<(u32, u32)>> {
        if !self.holds || (self.position.is_none() && !self.locate()?) {
            return Ok(Vec::new());
        }
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: 0,
            min_bytes: 1,
            max_bytes: bytes_max,
            session_epoch: -1,
            topics: vec![fetch::FetchTopic {
                topic: self.topic.clone(),
                partitions: vec![fetch::FetchPartition {
                    fetch_offset: self.position.unwrap_or_default(),
                    partition_max_bytes: bytes_max,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.wire.call(12, &request)?;
        let found = answer.responses.into_iter().flat_map(|topic| topic.partitions);
        let found = found.last().context("no partition in the answer")?;
        if found.error_code == 1 {
            // The slice was taken away: the committed offset says where to go on.
            self.position = None;
            return Ok(Vec::new());
        }
        ensure!(
            found.error_code == 0,
            "a fetch failed: error {}",
            found.error_code
        );
        let batches = found
            .records
            .map(anabranch_wire::prim::Records::into_bytes)
            .unwrap_or_default();
        self.take(&batches)
    }

    fn take(&mut self, batches: &Bytes) -> Result<Vec<(u32, u32)>> {
        let limits = DecompressLimits {
            bytes_max: 64 << 20,
            ratio_max: 1000,
        };
        let asked = self.position.unwrap_or_default();
        let mut came = Vec::new();
        for found in BatchIter::new(batches) {
            let (at, header) = found?;
            let set = records(&batches[at..at + header.size()], &limits)?;
            for record in &set {
                let record = record?;
                if set.offset_of(&record) >= asked {
                    came.extend(record.value.and_then(identity));
                }
            }
            self.position = Some(header.next_offset());
        }
        Ok(came)
    }

    /// Commits its position, if that is news.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if self.position.is_none() || self.position == self.committed {
            return Ok(());
        }
        let request = OffsetCommitRequest {
            group_id: GROUP.into(),
            generation_id_or_member_epoch: self.epoch,
            member_id: self.id.clone(),
            topics: vec![offset_commit::OffsetCommitRequestTopic {
                name: self.topic.clone(),
                partitions: vec![offset_commit::OffsetCommitRequestPartition {
                    partition_index: 0,
                    committed_offset: self.position.unwrap_or_default(),
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.wire.call(9, &request)?;
        let codes = answer.topics.iter().flat_map(|topic| &topic.partitions);
        match codes.map(|one| one.error_code).max() {
            Some(0) => self.committed = self.position,
            Some(code) if AGAIN.contains(&code) => {}
            code => bail!("a commit failed: {code:?}"),
        }
        Ok(())
    }

    /// Asks where to begin; whether it was told.
    fn locate(&mut self) -> Result<bool> {
        let request = OffsetFetchRequest {
            groups: vec![offset_fetch::OffsetFetchRequestGroup {
                group_id: GROUP.into(),
                member_id: Some(self.id.clone()),
                member_epoch: self.epoch,
                topics: Some(vec![offset_fetch::OffsetFetchRequestTopics {
                    name: self.topic.clone(),
                    partition_indexes: vec![0],
                    ..Default::default()
                }]),
            }],
            require_stable: true,
            ..Default::default()
        };
        let answer = self.wire.call(9, &request)?;
        let group = answer.groups.first().context("no group in the answer")?;
        let found = group.topics.first().and_then(|topic| topic.partitions.first());
        let code = found.map_or(group.error_code, |found| found.error_code.max(group.error_code));
        if AGAIN.contains(&code) {
            return Ok(false);
        }
        ensure!(code == 0, "an offset fetch failed: error {code}");
        let offset = found.map_or(-1, |found| found.committed_offset);
        self.position = Some(offset.max(0));
        self.committed = (offset >= 0).then_some(offset);
        Ok(true)
    }
}
