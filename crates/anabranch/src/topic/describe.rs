//! `anabranch topic describe`: what a topic is, where its partitions begin and end, what is set for it.

use std::time::Duration;

use anabranch_server::admin::model;
use serde::Serialize;

use super::{merge, topic_failure};
use crate::client::{
    Admin, AdminUrl, ConfigEntry, Connection, OffsetSpec, PartitionOffset, TopicDescription, TopicPartition,
};
use crate::failure::Outcome;
use crate::output::{self, Format, Table};

/// How long the administration API may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topics to describe.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// All settings, not only those that differ from the default.
    #[arg(long)]
    all_configs: bool,
}

#[derive(Debug, Serialize)]
struct Topic {
    name: String,
    id: String,
    internal: bool,
    replicas: usize,
    partitions: Vec<Partition>,
    configs: Vec<ConfigEntry>,
    /// Which partitions are written and read in queue mode, if the broker can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<model::Queues>,
    /// Its elastic.mode is queues.
    #[serde(skip)]
    is_queued: bool,
}

#[derive(Debug, Serialize)]
struct Partition {
    partition: i32,
    leader: Option<i32>,
    replicas: Vec<i32>,
    in_sync: Vec<i32>,
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    /// Offsets between start and end: the number of messages, unless the topic is compacted or has transactions.
    messages: Option<i64>,
    /// Size on disk, if the broker says.
    bytes: Option<i64>,
}

pub(crate) fn run(
    (connection, url): (&Connection, &AdminUrl),
    admin: &Admin,
    args: &Args,
    format: Format,
) -> Outcome {
    let mut failures = Vec::new();
    let mut found = Vec::new();
    for (name, described) in admin.describe_topics(&args.names)? {
        match described {
            Ok(topic) => found.push(topic),
            Err(error) => failures.push(topic_failure(&error, &name, "describe")),
        }
    }
    let mut topics = if found.is_empty() {
        Vec::new()
    } else {
        complete(connection, admin, found, args.all_configs)?
    };
    for topic in topics.iter_mut().filter(|topic| topic.is_queued) {
        topic.queues = queues(connection, url, topic)?;
    }
    match format {
        Format::Json => output::print_json(&topics)?,
        Format::Text => {
            let texts: Vec<String> = topics.iter().map(text).collect();
            output::print(&texts.join("\n"))?;
        }
    }
    merge(failures)
}

/// Adds offsets and configuration.
fn complete(
    connection: &Connection,
    admin: &Admin,
    found: Vec<TopicDescription>,
    all_configs: bool,
) -> Outcome<Vec<Topic>> {
    let names: Vec<String> = found.iter().map(|topic| topic.name.clone()).collect();
    let partitions: Vec<TopicPartition> = found
        .iter()
        .flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|one| (topic.name.clone(), one.partition))
        })
        .map(|(topic, partition)| TopicPartition { topic, partition })
        .collect();
    let ask = |spec: OffsetSpec| {
        admin.list_offsets(&partitions.iter().map(|at| (at.clone(), spec)).collect::<Vec<_>>())
    };
    let (starts, ends) = (ask(OffsetSpec::Earliest)?, ask(OffsetSpec::Latest)?);
    let sizes = connection.sizes(&partitions);
    let mut configs = admin.topic_configs(&names)?;
    let mut topics = Vec::new();
    for topic in found {
        let partition = |one: &crate::client::PartitionDescription| {
            let at = TopicPartition {
                topic: topic.name.clone(),
                partition: one.partition,
            };
            let (start, end) = (offset_of(&starts, &at), offset_of(&ends, &at));
            Partition {
                partition: one.partition,
                leader: one.leader,
                replicas: one.replicas.clone(),
                in_sync: one.in_sync.clone(),
                start_offset: start,
                end_offset: end,
                bytes: sizes.get(&at).copied(),
                messages: start.zip(end).map(|(start, end)| end - start),
            }
        };
        let entries = configs
            .iter_mut()
            .find(|(name, _)| *name == topic.name)
            .map(|(_, entries)| entries);
        let mut entries = entries
            .and_then(|entries| std::mem::replace(entries, Ok(Vec::new())).ok())
            .unwrap_or_default();
        let is_queued = entries
            .iter()
            .any(|one| one.name == "elastic.mode" && one.value == "queues");
        entries.retain(|entry| all_configs || entry.of_topic);
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        topics.push(Topic {
            replicas: topic.partitions.first().map_or(0, |one| one.replicas.len()),
            partitions: topic.partitions.iter().map(partition).collect(),
            configs: entries,
            name: topic.name,
            id: topic.id,
            internal: topic.internal,
            queues: None,
            is_queued,
        });
    }
    Ok(topics)
}

/// The queues of a topic as the administration API shows them: that of the listener that was named, else the usual one if the
/// broker is on this machine, too. An addition, never a condition.
fn queues(connection: &Connection, url: &AdminUrl, topic: &Topic) -> Outcome<Option<model::Queues>> {
    if !url.is_given() && !connection.is_local() {
        return Ok(None);
    }
    match url.open()?.with_patience(PATIENCE).queues(&topic.name) {
        // The usual listener may be that of another broker on this machine, with a topic of the same name.
        Ok(found) => {
            let same = usize::try_from(found.facade) == Ok(topic.partitions.len());
            Ok((url.is_given() || same).then_some(found))
        }
        Err(failure) => {
            if url.is_given() {
                output::say(&format!("the queues of {} are not shown: {failure}", topic.name));
            }
            Ok(None)
        }
    }
}

/// The offset of a partition in a list of answers; `None` if the broker did not say.
fn offset_of(answers: &[PartitionOffset], at: &TopicPartition) -> Option<i64> {
    let answer = answers.iter().find(|answer| answer.at == *at)?;
    (answer.error.is_none() && answer.offset >= 0).then_some(answer.offset)
}

fn text(topic: &Topic) -> String {
    let mut head = vec![
        ("Topic", topic.name.clone()),
        ("Id", topic.id.clone()),
        ("Partitions", topic.partitions.len().to_string()),
        ("Replicas", topic.replicas.to_string()),
    ];
    if topic.internal {
        head.push(("Internal", "yes".to_owned()));
    }
    let mut text: String = head
        .iter()
        .map(|(name, value)| format!("{name:<12}{value}\n"))
        .collect();
    for (i, config) in topic.configs.iter().enumerate() {
        let name = if i == 0 { "Configs" } else { "" };
        text.push_str(&format!("{name:<12}{}={}\n", config.name, config.value));
    }
    if let Some(queues) = &topic.queues {
        text.push('\n');
        text.push_str(&super::queues::summary(queues));
    }
    let mut table = Table::new(&[
        "PARTITION",
        "LEADER",
        "REPLICAS",
        "ISR",
        "START",
        "END",
        "MESSAGES",
        "SIZE",
    ]);
    for one in &topic.partitions {
        table.row(vec![
            one.partition.to_string(),
            or_dash(one.leader),
            ids(&one.replicas),
            ids(&one.in_sync),
            or_dash(one.start_offset),
            or_dash(one.end_offset),
            or_dash(one.messages),
            or_dash(
                one.bytes
                    .and_then(|bytes| u64::try_from(bytes).ok())
                    .map(output::human_bytes),
            ),
        ]);
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn ids(nodes: &[i32]) -> String {
    let texts: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    texts.join(",")
}
