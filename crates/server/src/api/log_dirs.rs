//! DescribeLogDirs: how many bytes each partition has on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_core::ids::LogId;
use anabranch_wire::msg::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use anabranch_wire::msg::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use super::check_partitions;
use crate::broker::{Broker, Core};
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

type Wanted = Vec<(String, Vec<(i32, LogId)>)>;

pub(crate) fn handle(call: Call<'_>, request: DescribeLogDirsRequest) -> Result<Pending, Close> {
    check_partitions(
        request
            .topics
            .iter()
            .flatten()
            .map(|topic| topic.partitions.len()),
    )?;
    let wanted = call.broker.with(|core| wanted(core, request));
    let broker = Arc::clone(call.broker);
    // Sizes of many partitions, and of the file system: nothing to keep a connection's thread with.
    call.on_thread(move || answer(&broker, wanted))
}

/// The partitions that exist of those that are asked for, each once. Others are left out, as Kafka does.
fn wanted(core: &Core, request: DescribeLogDirsRequest) -> Wanted {
    let Some(topics) = request.topics else {
        let all = |topic: &anabranch_core::meta::Topic| (0..).zip(topic.logs.iter().copied()).collect();
        return core
            .node()
            .topics()
            .map(|topic| (topic.name.clone(), all(topic)))
            .collect();
    };
    let mut wanted: BTreeMap<String, BTreeMap<i32, LogId>> = BTreeMap::new();
    for asked in topics {
        let Some(topic) = core.node().topic_by_name(&asked.topic) else {
            continue;
        };
        let logs = asked
            .partitions
            .iter()
            .filter_map(|index| Some((*index, topic.log(*index)?)));
        wanted.entry(asked.topic.clone()).or_default().extend(logs);
    }
    wanted
        .into_iter()
        .map(|(name, logs)| (name, logs.into_iter().collect()))
        .collect()
}

fn answer(broker: &Broker, wanted: Wanted) -> DescribeLogDirsResponse {
    let partition = |(partition_index, log): (i32, LogId)| DescribeLogDirsPartition {
        partition_index,
        partition_size: i64::try_from(broker.store.log_stats(log).bytes).unwrap_or(i64::MAX),
        ..Default::default()
    };
    let topic = |(name, logs): (String, Vec<(i32, LogId)>)| DescribeLogDirsTopic {
        name,
        partitions: logs.into_iter().map(partition).collect(),
    };
    let (total_bytes, usable_bytes) = broker.disk_space().unwrap_or((-1, -1));
    let result = DescribeLogDirsResult {
        log_dir: broker.data_dir.display().to_string(),
        topics: wanted.into_iter().map(topic).collect(),
        total_bytes,
        usable_bytes,
        ..Default::default()
    };
    DescribeLogDirsResponse {
        results: vec![result],
        ..Default::default()
    }
}
