//! Topics and records: CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords.
//!
//! Each answer leaves once the changes are durable, so that what follows it (a produce, say) works at once.

use anabranch_core::Refused;
use anabranch_core::ids::TopicId;
use anabranch_core::meta::{Command, Resource};
use anabranch_core::node::{CreateTopic, TopicRef, duplicates};
use anabranch_wire::ErrorCode;
use anabranch_wire::msg::create_partitions::{CreatePartitionsTopic, CreatePartitionsTopicResult};
use anabranch_wire::msg::create_topics::{CreatableTopic, CreatableTopicConfigs, CreatableTopicResult};
use anabranch_wire::msg::delete_records::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use anabranch_wire::msg::delete_topics::{DeletableTopicResult, DeleteTopicState};
use anabranch_wire::msg::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteRecordsRequest, DeleteRecordsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
};
use anabranch_wire::prim::Uuid;

use super::{check_names, check_partitions};
use crate::broker::Update;
use crate::clock::fresh_id;
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// First version of DeleteTopics that names topics by id as well.
const DELETE_BY_ID: i16 = 6;

fn twice(name: &str) -> Refused {
    Refused::new(
        ErrorCode::InvalidRequest,
        format!("the request names topic `{name}` more than once"),
    )
}

/// Refuses changes while the server ends.
fn check_running(call: &Call<'_>) -> Result<(), Refused> {
    match call.is_draining() {
        true => Err(Refused::new(
            ErrorCode::NotController,
            "the broker is shutting down",
        )),
        false => Ok(()),
    }
}

pub(crate) fn create(call: Call<'_>, request: CreateTopicsRequest) -> Result<Pending, Close> {
    check_names(request.topics.len())?;
    let names = request.topics.iter().map(|topic| topic.name.as_str());
    let repeated: Vec<String> = duplicates(names).into_iter().map(str::to_owned).collect();
    let mut topics = request.topics;
    // A name that comes twice is answered once.
    let mut told = std::collections::HashSet::new();
    topics.retain(|topic| !repeated.contains(&topic.name) || told.insert(topic.name.clone()));
    let (topics, after) = call.broker.update(|update| {
        let create = |topic: CreatableTopic| {
            let name = topic.name.clone();
            let made = check_running(&call).and_then(|()| match repeated.contains(&name) {
                true => Err(twice(&name)),
                false => create_one(update, topic, request.validate_only),
            });
            made.unwrap_or_else(|refused| CreatableTopicResult {
                name,
                error_code: call.code(refused.code()),
                error_message: Some(refused.message().to_owned()),
                configs: None,
                ..Default::default()
            })
        };
        topics.into_iter().map(create).collect()
    });
    call.after(
        &CreateTopicsResponse {
            topics,
            ..Default::default()
        },
        after,
    )
}

fn create_one(
    update: &mut Update<'_>,
    topic: CreatableTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult, Refused> {
    let assignments = topic
        .assignments
        .into_iter()
        .map(|one| (one.partition_index, one.broker_ids));
    let wish = CreateTopic {
        name: topic.name,
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: assignments.collect(),
        configs: topic
            .configs
            .into_iter()
            .map(|config| (config.name, config.value))
            .collect(),
    };
    let commands = update.node().create_topic(update.now, &wish, fresh_id())?;
    let mut result = CreatableTopicResult {
        name: wish.name,
        replication_factor: 1,
        ..Default::default()
    };
    for command in &commands {
        if let Command::CreateTopic { id, logs, .. } = command {
            result.topic_id = if validate_only { Uuid::default() } else { id.0 };
            result.num_partitions = i32::try_from(logs.len()).unwrap_or(i32::MAX);
        }
    }
    if validate_only {
        return Ok(result);
    }
    update.run(commands);
    let configs = update
        .node()
        .describe_configs(&Resource::Topic(result.name.clone()), None)?;
    let config = |entry: anabranch_core::node::ConfigEntry| CreatableTopicConfigs {
        name: entry.name.to_owned(),
        value: entry.value,
        read_only: entry.read_only,
        config_source: entry.source as i8,
        is_sensitive: entry.sensitive,
    };
    result.configs = Some(configs.into_iter().map(config).collect());
    Ok(result)
}

pub(crate) fn delete(call: Call<'_>, request: DeleteTopicsRequest) -> Result<Pending, Close> {
    let topics = if call.version() >= DELETE_BY_ID {
        request.topics
    } else {
        let by_name = |name| DeleteTopicState {
            name: Some(name),
            ..Default::default()
        };
        request.topic_names.into_iter().map(by_name).collect()
    };
    check_names(topics.len())?;
    let (responses, after) = call.broker.update(|update| {
        let delete = |topic: DeleteTopicState| {
            let mut result = DeletableTopicResult {
                name: topic.name,
                topic_id: topic.topic_id,
                ..Default::default()
            };
            let done = check_running(&call).and_then(|()| delete_one(update, &mut result));
            if let Err(refused) = done {
                result.error_code = call.code(refused.code());
                result.error_message = Some(refused.message().to_owned());
            }
            result
        };
        topics.into_iter().map(delete).collect()
    });
    call.after(
        &DeleteTopicsResponse {
            responses,
            ..Default::default()
        },
        after,
    )
}

/// Deletes what `result` names, and completes its name or id.
fn delete_one(update: &mut Update<'_>, result: &mut DeletableTopicResult) -> Result<(), Refused> {
    let has_id = result.topic_id != Uuid::default();
    let commands = match (&result.name, has_id) {
        (Some(name), false) => update.node().delete_topic(update.now, TopicRef::Name(name))?,
        (None, true) => update
            .node()
            .delete_topic(update.now, TopicRef::Id(TopicId(result.topic_id)))?,
        _ => {
            let message = "a topic to delete is named either by its name or by its id";
            return Err(Refused::new(ErrorCode::InvalidRequest, message));
        }
    };
    for command in &commands {
        if let Command::DeleteTopic { id, .. } = command {
            result.topic_id = id.0;
            result.name = update.node().topic_by_id(*id).map(|topic| topic.name.clone());
        }
    }
    update.run(commands);
    Ok(())
}

pub(crate) fn create_partitions(call: Call<'_>, request: CreatePartitionsRequest) -> Result<Pending, Close> {
    check_names(request.topics.len())?;
    let names = request.topics.iter().map(|topic| topic.name.as_str());
    let repeated: Vec<String> = duplicates(names).into_iter().map(str::to_owned).collect();
    let (results, after) = call.broker.update(|update| {
        let grow = |topic: CreatePartitionsTopic| {
            let done = check_running(&call).and_then(|()| match repeated.contains(&topic.name) {
                true => Err(twice(&topic.name)),
                false => grow_one(update, &topic, request.validate_only),
            });
            let (error_code, error_message) = match done {
                Ok(()) => (0, None),
                Err(refused) => (call.code(refused.code()), Some(refused.message().to_owned())),
            };
            CreatePartitionsTopicResult {
                name: topic.name,
                error_code,
                error_message,
            }
        };
        request.topics.into_iter().map(grow).collect()
    });
    call.after(
        &CreatePartitionsResponse {
            results,
            ..Default::default()
        },
        after,
    )
}

fn grow_one(
    update: &mut Update<'_>,
    topic: &CreatePartitionsTopic,
    validate_only: bool,
) -> Result<(), Refused> {
    let assignments: Option<Vec<Vec<i32>>> = topic
        .assignments
        .as_ref()
        .map(|all| all.iter().map(|one| one.broker_ids.clone()).collect());
    let commands = update
        .node()
        .create_partitions(&topic.name, topic.count, assignments.as_deref())?;
    if !validate_only {
        update.run(commands);
    }
    Ok(())
}

pub(crate) fn delete_records(call: Call<'_>, request: DeleteRecordsRequest) -> Result<Pending, Close> {
    check_partitions(request.topics.iter().map(|topic| topic.partitions.len()))?;
    let (topics, after) = call.broker.update(|update| {
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in request.topics {
            let partitions = topic.partitions.into_iter().map(|one| {
                let done = check_running(&call)
                    .and_then(|()| delete_up_to(update, &topic.name, one.partition_index, one.offset));
                let (low_watermark, error_code) = match done {
                    Ok(low_watermark) => (low_watermark, 0),
                    Err(refused) => (-1, call.code(refused.code())),
                };
                DeleteRecordsPartitionResult {
                    partition_index: one.partition_index,
                    low_watermark,
                    error_code,
                }
            });
            let partitions = partitions.collect();
            topics.push(DeleteRecordsTopicResult {
                name: topic.name,
                partitions,
            });
        }
        topics
    });
    call.after(
        &DeleteRecordsResponse {
            topics,
            ..Default::default()
        },
        after,
    )
}

fn delete_up_to(update: &mut Update<'_>, topic: &str, partition: i32, offset: i64) -> Result<i64, Refused> {
    let log = update
        .node()
        .topic_by_name(topic)
        .and_then(|topic| topic.log(partition));
    let log = log.ok_or_else(|| {
        let message = format!("partition {partition} of topic `{topic}` does not exist");
        Refused::new(ErrorCode::UnknownTopicOrPartition, message)
    })?;
    let (commands, low_watermark) = update.node().delete_records(log, offset)?;
    update.run(commands);
    Ok(low_watermark)
}
