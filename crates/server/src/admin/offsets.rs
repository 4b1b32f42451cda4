//! What a group has committed, and setting it anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_core::group::{Caller, CommitPartition, OffsetCommit, TopicRef};
use anabranch_core::ids::{LogId, Lsn, Offset};
use anabranch_core::limits::ADMIN_PLACES_MAX;
use anabranch_wire::ErrorCode;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::model::{Offsets, Place, Reset, ResetOrder, ResetStep, ResetTo};
use super::routes::{Door, broker, durable, refused};
use super::topics::no_topic;
use crate::api::list_offsets::first_at_or_after;
use crate::broker::{Broker, Core};
use crate::progress::{self, Progress};

/// The last version of OffsetCommit that names topics by name.
const COMMIT_VERSION: i16 = 9;

pub(super) async fn offsets(State(door): State<Door>, Path(group): Path<String>) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let Some((offsets, after)) = broker.with(|core| see(core, &group)) else {
        return no_group(&group);
    };
    match durable(&broker, after).await {
        Ok(()) => Json(offsets).into_response(),
        Err(response) => *response,
    }
}

fn no_group(group: &str) -> Response {
    refused(
        StatusCode::NOT_FOUND,
        "not-found",
        &format!("there is no group {group:?}"),
    )
}

fn see(core: &Core, group: &str) -> Option<(Offsets, Lsn)> {
    let node = core.node();
    let described = node.groups().describe(&node.partitions(), group);
    if !described.exists {
        return None;
    }
    let place = |progress: Progress<'_>| Place {
        topic: progress.topic.name.clone(),
        partition: progress.partition,
        log_start: progress.start,
        log_end: progress.end,
        committed: progress.committed,
        lag: progress.lag(),
    };
    let mut places: Vec<Place> = progress::of(node, group, ..).map(place).collect();
    places.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    let left_out = places.len().saturating_sub(ADMIN_PLACES_MAX);
    places.truncate(ADMIN_PLACES_MAX);
    let offsets = Offsets {
        group: group.to_owned(),
        state: described.state.to_owned(),
        members: described.members.len() as u32,
        places,
        places_left_out: left_out as u64,
    };
    Some((offsets, node.state_lsn()))
}

/// A partition whose offset is to be set.
struct Target {
    log: LogId,
    start: Offset,
    end: Offset,
    current: Option<Offset>,
}

pub(super) async fn reset(
    State(door): State<Door>,
    Path(group): Path<String>,
    Json(order): Json<ResetOrder>,
) -> Response {
    let broker = match broker(&door) {
        Ok(broker) => broker,
        Err(response) => return *response,
    };
    let targets = match broker.with(|core| targets(core, &group, &order)) {
        Ok(targets) => targets,
        Err(response) => return *response,
    };
    let to = order.to;
    let steps = {
        // Lookups by time may have to read.
        let broker = Arc::clone(&broker);
        tokio::task::spawn_blocking(move || steps(&broker, targets, to)).await
    };
    let steps = match steps {
        Ok(Ok(steps)) => steps,
        Ok(Err(response)) => return *response,
        Err(_) => {
            return refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "the broker is ending",
            );
        }
    };
    if order.execute
        && let Err(response) = execute(&broker, &group, &order.topic, &steps).await
    {
        return *response;
    }
    Json(Reset {
        executed: order.execute,
        steps,
    })
    .into_response()
}

fn targets(core: &Core, group: &str, order: &ResetOrder) -> Result<BTreeMap<i32, Target>, Box<Response>> {
    let node = core.node();
    let described = node.groups().describe(&node.partitions(), group);
    if !described.exists {
        return Err(Box::new(no_group(group)));
    }
    if !described.members.is_empty() {
        return Err(Box::new(has_members(group)));
    }
    let topic = node.topic_by_name(&order.topic);
    let topic = topic.ok_or_else(|| Box::new(no_topic(&order.topic)))?;
    let all = 0..i32::try_from(topic.logs.len()).unwrap_or(i32::MAX);
    let wanted: Vec<i32> = match &order.partitions {
        Some(partitions) => partitions.clone(),
        None => all.collect(),
    };
    let target = |partition: i32| {
        let log = topic.log(partition).and_then(|log| node.log(log));
        let log = log.ok_or_else(|| {
            let text = format!("there is no partition {partition} of topic {:?}", order.topic);
            Box::new(refused(StatusCode::NOT_FOUND, "not-found", &text))
        })?;
        let target = Target {
            log: log.id(),
            start: log.start(),
            end: log.high_watermark(),
            current: node.groups().committed(group, (topic.id, partition)),
        };
        Ok((partition, target))
    };
    wanted.into_iter().map(target).collect()
}

fn has_members(group: &str) -> Response {
    let text = format!("group {group:?} has members, whose next commit would undo this; stop them first");
    refused(StatusCode::CONFLICT, "has-members", &text)
}

fn steps(
    broker: &Broker,
    targets: BTreeMap<i32, Target>,
    to: ResetTo,
) -> Result<Vec<ResetStep>, Box<Response>> {
    let step = |(partition, target): (i32, Target)| {
        let wanted = match to {
            ResetTo::Earliest => target.start,
            ResetTo::Latest => target.end,
            ResetTo::Offset(offset) => offset,
            ResetTo::TimeMs(time_ms) => {
                let found = first_at_or_after(&broker.store, target.log, time_ms, target.start..target.end);
                let found = found.map_err(|error| {
                    tracing::error!(%error, "cannot look up an offset by time");
                    let text = "the log cannot be read; the broker's log says why";
                    Box::new(refused(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", text))
                })?;
                found.map_or(target.end, |(offset, _)| offset)
            }
            ResetTo::ShiftBy(by) => {
                let current = target.current.ok_or_else(|| {
                    let text = format!("partition {partition} has no committed offset to shift");
                    Box::new(refused(StatusCode::BAD_REQUEST, "nothing-committed", &text))
                })?;
                current.saturating_add(by)
            }
        };
        Ok(ResetStep {
            partition,
            current: target.current,
            new_offset: wanted.clamp(target.start, target.end.max(target.start)),
            log_end: target.end,
        })
    };
    targets.into_iter().map(step).collect()
}

/// Commits as somebody who is no member, which the coordinator refuses where there are members.
async fn execute(
    broker: &Arc<Broker>,
    group: &str,
    topic: &str,
    steps: &[ResetStep],
) -> Result<(), Box<Response>> {
    let commit = |step: &ResetStep| CommitPartition {
        partition: step.partition,
        offset: step.new_offset,
        leader_epoch: -1,
        metadata: None,
    };
    let request = OffsetCommit {
        version: COMMIT_VERSION,
        group_id: group.to_owned(),
        generation_or_epoch: -1,
        member_id: String::new(),
        instance_id: None,
        retention_ms: -1,
        topics: vec![(
            TopicRef::Name(topic.to_owned()),
            steps.iter().map(commit).collect(),
        )],
    };
    let caller = Caller {
        client_id: "administration".to_owned(),
        ..Caller::default()
    };
    let (answer, after) =
        broker.group(|coordinator, topics, now| coordinator.commit(now, topics, &caller, &request));
    let mut errors = answer
        .iter()
        .flat_map(|(_, partitions)| partitions)
        .map(|(_, error)| *error);
    match errors.find(|error| *error != ErrorCode::None) {
        None => durable(broker, after).await,
        Some(ErrorCode::UnknownMemberId | ErrorCode::StaleMemberEpoch | ErrorCode::IllegalGeneration) => {
            Err(Box::new(has_members(group)))
        }
        Some(error) => {
            let text = format!("the offsets were not taken: {error:?}");
            Err(Box::new(refused(StatusCode::CONFLICT, "not-taken", &text)))
        }
    }
}
