//! Bytes that Apache Kafka's own codec wrote, one line for each message and version: they decode, and come out the same.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;

use super::{Visit, decode, each_message, encode};
use crate::msg::{ApiVersionsResponse, FetchRequest, OffsetCommitRequest};
use crate::prim::{Message, Random};

const GOLDEN: &str = include_str!("../../../tests/golden/messages.txt");

struct Golden(BTreeMap<(&'static str, i16), Vec<Bytes>>);

impl Golden {
    fn read() -> Self {
        let mut lines: BTreeMap<_, Vec<Bytes>> = BTreeMap::new();
        for line in GOLDEN.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let mut word = || words.next().expect("three words in a line");
            let (name, version, hex) = (word(), word(), word());
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
            let bytes = (0..hex.len()).step_by(2).map(byte).collect();
            lines
                .entry((name, version.parse().expect("a version")))
                .or_default()
                .push(bytes);
        }
        Self(lines)
    }
}

impl Visit for Golden {
    fn message<T: Message + Random + Clone + Debug + PartialEq>(&mut self) {
        for version in T::VERSIONS {
            let lines = self.0.remove(&(T::NAME, version));
            for bytes in lines.unwrap_or_else(|| panic!("no line for {} v{version}", T::NAME)) {
                let message = decode::<T>(bytes.clone(), version)
                    .unwrap_or_else(|error| panic!("{} v{version}: {error}", T::NAME));
                assert_eq!(encode(&message, version), bytes, "{} v{version}", T::NAME);
            }
        }
    }
}

#[test]
fn bytes_from_kafka_come_out_the_same() {
    let mut golden = Golden::read();
    each_message(&mut golden);
    assert!(
        golden.0.is_empty(),
        "versions that Kafka has and we lack: {:?}",
        golden.0.keys()
    );
}

fn golden<T: Message>(version: i16) -> T {
    let lines = Golden::read().0.remove(&(T::NAME, version)).expect("a line");
    decode(lines[0].clone(), version).expect("as Kafka wrote it")
}

/// The lines count the values up in the order of the schema, so fields that were swapped would show.
#[test]
fn values_lie_in_their_fields() {
    let fetch: FetchRequest = golden(18);
    assert_eq!(
        (fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes),
        (19, 20, 21)
    );
    assert_eq!(
        (fetch.isolation_level, fetch.session_id, fetch.session_epoch),
        (22, 23, 24)
    );
    let partition = &fetch.topics[0].partitions[0];
    assert_eq!(
        (
            partition.partition,
            partition.current_leader_epoch,
            partition.fetch_offset
        ),
        (27, 28, 29)
    );
    assert_eq!(
        (partition.last_fetched_epoch, partition.log_start_offset),
        (30, 31)
    );
    assert_eq!(
        (partition.partition_max_bytes, partition.high_watermark),
        (32, 35)
    );

    let commit: OffsetCommitRequest = golden(9);
    assert_eq!(
        (commit.group_id.as_str(), commit.member_id.as_str()),
        ("s9", "s1")
    );
    assert_eq!(commit.generation_id_or_member_epoch, 11);
    let partition = &commit.topics[0].partitions[0];
    assert_eq!((partition.partition_index, partition.committed_offset), (15, 16));

    let versions: ApiVersionsResponse = golden(4);
    let api = &versions.api_keys[0];
    assert_eq!((api.api_key, api.min_version, api.max_version), (6, 7, 8));
    assert_eq!(versions.finalized_features[0].max_version_level, 15);
}
