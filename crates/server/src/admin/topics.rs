//! One topic: partitions, sizes, configurations, readers.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_core::config::Source;
use anabranch_core::group::Topics;
use anabranch_core::ids::{LogId, Lsn, TopicId};
use anabranch_core::limits::ADMIN_ROWS_MAX;
use anabranch_core::log::Log;
use anabranch_core::node::ConfigEntry;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::model::{Config, Reader, Topic, TopicPartition};
use super::routes::{Door, broker, durable, refused};
use super::view::mode_name;
use crate::broker::{Broker, Core};
use crate::progress;

/// Kafka's number of the resource type.
const TOPIC: i8 = 2;

/// Which partitions are wanted.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Part {
    /// The first partition of the answer; 0 if left out.
    from: Option<usize>,
    /// At most so many partitions, and never more than 1,000.
    limit: Option<usize>,
}

pub(super) async fn topic(
    State(door): State<Door>,
    Path(name): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let Some((topic, after)) = look(&broker, &name, &part) else {
        return no_topic(&name);
    };
    match durable(&broker, after).await {
        Ok(()) => Json(topic).into_response(),
        Err(response) => *response,
    }
}

pub(super) fn no_topic(name: &str) -> Response {
    refused(
        StatusCode::NOT_FOUND,
        "not-found",
        &format!("there is no topic {name:?}"),
    )
}

fn look(broker: &Arc<Broker>, name: &str, part: &Part) -> Option<(Topic, Lsn)> {
    let limit = part.limit.unwrap_or(ADMIN_ROWS_MAX).min(ADMIN_ROWS_MAX);
    let (mut topic, logs, after) = broker.with(|core| see(core, name, part.from.unwrap_or(0), limit))?;
    for (partition, log) in topic.partitions.iter_mut().zip(logs) {
        partition.bytes = broker.store.log_stats(log).bytes;
        let newest = broker.store.max_timestamp(log).map(|newest| newest.timestamp);
        partition.newest_ms = newest.filter(|newest| *newest >= 0 && partition.log_start < partition.log_end);
    }
    Some((topic, after))
}

fn see(core: &Core, name: &str, from: usize, limit: usize) -> Option<(Topic, Vec<LogId>, Lsn)> {
    let node = core.node();
    let found = node.topic_by_name(name)?;
    let topics = node.partitions();
    let logs: Vec<LogId> = found.logs.iter().copied().skip(from).take(limit).collect();
    let partition = |log: &LogId| {
        let log = node.log(*log);
        TopicPartition {
            partition: log.map_or(-1, Log::partition),
            log_start: log.map_or(0, Log::start),
            log_end: log.map_or(0, Log::high_watermark),
            ..TopicPartition::default()
        }
    };
    let entries = node
        .resource(TOPIC, name)
        .and_then(|topic| node.describe_configs(&topic, None));
    let readers = readers(core, found.id);
    let shown = readers.len().min(ADMIN_ROWS_MAX);
    let topic = Topic {
        topic: found.name.clone(),
        id: found.id.0.iter().map(|byte| format!("{byte:02x}")).collect(),
        created_ms: found.created_ms,
        mode: mode_name(topics.elastic_mode("", found.id)).to_owned(),
        partition_count: found.logs.len() as u32,
        partitions: logs.iter().map(partition).collect(),
        partitions_left_out: found.logs.len().saturating_sub(from + logs.len()) as u64,
        configs: entries.unwrap_or_default().into_iter().map(config).collect(),
        readers_left_out: (readers.len() - shown) as u64,
        readers: readers.into_values().take(shown).collect(),
    };
    Some((topic, logs, node.state_lsn()))
}

fn config(entry: ConfigEntry) -> Config {
    let source = match entry.source {
        Source::Topic | Source::Group => "topic",
        Source::Broker => "broker",
        Source::ClusterDefault => "cluster",
        Source::Static => "file",
        Source::Default => "default",
    };
    Config {
        name: entry.name.to_owned(),
        value: entry.value,
        source: source.to_owned(),
        doc: entry.doc.to_owned(),
    }
}

fn readers(core: &Core, topic: TopicId) -> BTreeMap<String, Reader> {
    let node = core.node();
    let mut readers = BTreeMap::new();
    for id in node.groups().groups().keys() {
        let mut reader = Reader {
            group: id.clone(),
            ..Reader::default()
        };
        for progress in progress::of(node, id, (topic, i32::MIN)..=(topic, i32::MAX)) {
            reader.partitions += 1;
            reader.lag = reader.lag.saturating_add(progress.lag());
        }
        if reader.partitions > 0 {
            readers.insert(id.clone(), reader);
        }
    }
    readers
}
