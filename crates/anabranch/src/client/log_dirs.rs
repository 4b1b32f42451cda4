//! Sizes of partitions on disk: the one request that librdkafka does not have, made by hand.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anabranch_wire::frame;
use anabranch_wire::msg::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResponse,
};

use super::TopicPartition;

/// A version that brokers from 2018 to today speak.
const VERSION: i16 = 1;

/// The largest answer that is read: 100,000 partitions are about 3 MB.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Bytes of each partition on the broker behind `stream`. A size is a courtesy: where it cannot be had, there is none.
pub(super) fn sizes(
    mut stream: TcpStream,
    timeout: Duration,
    partitions: &[TopicPartition],
) -> Option<BTreeMap<TopicPartition, i64>> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for at in partitions {
        topics.entry(&at.topic).or_default().push(at.partition);
    }
    let topic = |(topic, partitions): (&str, Vec<i32>)| DescribableLogDirTopic {
        topic: topic.to_owned(),
        partitions,
    };
    let request = DescribeLogDirsRequest {
        topics: Some(topics.into_iter().map(topic).collect()),
    };
    let request = frame::encode_request(1, Some("anabranch"), &request, VERSION).ok()?;
    stream.set_read_timeout(Some(timeout)).ok()?;
    stream.set_write_timeout(Some(timeout)).ok()?;
    stream.write_all(&request.to_bytes()).ok()?;
    let mut prefix = [0; frame::PREFIX_LEN];
    stream.read_exact(&mut prefix).ok()?;
    let length = frame::length(prefix, ANSWER_BYTES_MAX).ok()?;
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).ok()?;
    let (_, answer) = frame::decode_response::<DescribeLogDirsResponse>(answer.into(), VERSION).ok()?;
    let mut sizes = BTreeMap::new();
    for topic in answer.results.into_iter().flat_map(|directory| directory.topics) {
        for one in topic.partitions {
            let at = TopicPartition {
                topic: topic.name.clone(),
                partition: one.partition_index,
            };
            sizes.insert(at, one.partition_size);
        }
    }
    Some(sizes)
}
