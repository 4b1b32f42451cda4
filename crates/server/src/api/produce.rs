//! Produce: each batch is checked on its own, outside any lock; then all that passed are appended under one.
//!
//! ```text
//! resolve (short lock): topic -> log, is it compacted
//! check   (no lock):    lengths, CRC, attributes, counts; the records too if the topic needs their keys
//! append  (short lock): sequence and size rules, offsets; into the commit queue in the order of offsets
//! answer:               when the last of the batches is durable; acks = 0 gets none
//! ```
//!
//! `acks = 1` and `acks = all` mean the same on a single node: on disk. Batches stay slices of the receive buffer.

use anabranch_core::ids::{LogId, Lsn, Now, TopicId};
use anabranch_core::node::TopicRef;
use anabranch_engine::produce::{self, Appended, Target, target};
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::{BatchError, BatchHeader};
use anabranch_wire::msg::produce::{
    BatchIndexAndErrorMessage, PartitionProduceData, PartitionProduceResponse, TopicProduceResponse,
};
use anabranch_wire::msg::{ProduceRequest, ProduceResponse};
use bytes::Bytes;

use super::check_partitions;
use crate::broker::{Broker, Core};
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// First version with topic ids in the place of names.
const BY_ID: i16 = 13;

/// First version whose producers may send zstd (KIP-110).
const ZSTD: i16 = 7;

/// Why a batch was refused.
#[derive(Debug)]
struct Failure {
    code: ErrorCode,
    message: Option<String>,
    record: Option<i32>,
}

impl Failure {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
            record: None,
        }
    }
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
            record: None,
        }
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        let record = match &error {
            BatchError::Record { index, .. } => Some(*index),
            _ => None,
        };
        Self {
            code: error.code(),
            message: Some(error.to_string()),
            record,
        }
    }
}

/// A batch on its way.
struct Item {
    index: i32,
    state: Result<Checked, Failure>,
}

struct Checked {
    log: LogId,
    header: BatchHeader,
    bytes: Bytes,
}

pub(crate) fn handle(call: Call<'_>, request: ProduceRequest) -> Result<Pending, Close> {
    check_partitions(request.topic_data.iter().map(|topic| topic.partition_data.len()))?;
    let version = call.version();
    let acks = request.acks;
    let refusal = refusal(&call, acks);
    let mut latest = Lsn(0);
    let mut failed = None;
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for topic in request.topic_data {
        let by_id = (version >= BY_ID).then_some(TopicId(topic.topic_id));
        let items = check_topic(call.broker, &topic.name, by_id, version, topic.partition_data);
        let answers = append_all(call.broker, items, refusal);
        let mut partition_responses = Vec::with_capacity(answers.len());
        for (index, answer) in answers {
            match &answer {
                Ok(appended) => latest = latest.max(appended.after),
                Err(failure) => failed = Some(failure.code),
            }
            partition_responses.push(response(&call, index, answer));
        }
        responses.push(TopicProduceResponse {
            name: topic.name,
            topic_id: topic.topic_id,
            partition_responses,
        });
    }
    match (acks, failed) {
        // Nobody hears of a failure but by the end of the connection, after which clients look for the leader anew.
        (0, Some(code)) => Err(Close::Refused(code)),
        (0, None) => call.silent(latest),
        _ => call.after(
            &ProduceResponse {
                responses,
                ..Default::default()
            },
            latest,
        ),
    }
}

/// Why nothing is appended at all, if so.
fn refusal(call: &Call<'_>, acks: i16) -> Option<(ErrorCode, &'static str)> {
    if !matches!(acks, -1..=1) {
        return Some((ErrorCode::InvalidRequiredAcks, "acks must be 0, 1 or -1 (all)"));
    }
    if call.is_draining() {
        return Some((ErrorCode::NotLeaderOrFollower, "the broker is shutting down"));
    }
    if call.broker.is_short_of_space() {
        return Some((ErrorCode::KafkaStorageError, "the broker's disk is almost full"));
    }
    None
}

fn check_topic(
    broker: &Broker,
    name: &str,
    id: Option<TopicId>,
    version: i16,
    partitions: Vec<PartitionProduceData>,
) -> Vec<Item> {
    let topic = id.map_or(TopicRef::Name(name), TopicRef::Id);
    let targets = broker.with(|core| {
        let target = |one: &PartitionProduceData| target(core.node(), topic, one.index);
        partitions.iter().map(target).collect::<Vec<_>>()
    });
    let check = |(target, one): (Result<Target, ErrorCode>, PartitionProduceData)| {
        let records = one.records.map(anabranch_wire::prim::Records::into_bytes);
        let state = target
            .map_err(Failure::from)
            .and_then(|target| check(target, records, version));
        Item {
            index: one.index,
            state,
        }
    };
    targets.into_iter().zip(partitions).map(check).collect()
}

fn check(target: Target, records: Option<Bytes>, version: i16) -> Result<Checked, Failure> {
    let bytes = records.ok_or(BatchError::Missing)?;
    let header = produce::check(&target, &bytes, version >= ZSTD)?;
    Ok(Checked {
        log: target.log,
        header,
        bytes,
    })
}

type Answers = Vec<(i32, Result<Appended, Failure>)>;

fn append_all(broker: &Broker, items: Vec<Item>, refusal: Option<(ErrorCode, &'static str)>) -> Answers {
    let now = broker.clock.now();
    broker.with(|core| {
        let append = |item: Item| {
            let answer = item
                .state
                .and_then(|checked| append(broker, core, now, checked, refusal));
            (item.index, answer)
        };
        items.into_iter().map(append).collect()
    })
}

/// Appends a batch; or refuses it, unless it is here already.
fn append(
    broker: &Broker,
    core: &mut Core,
    now: Now,
    checked: Checked,
    refusal: Option<(ErrorCode, &'static str)>,
) -> Result<Appended, Failure> {
    let Checked { log, header, bytes } = checked;
    let size = bytes.len() as u64;
    let appended = match refusal {
        None => core.engine.append(now, log, &header, bytes),
        Some((code, why)) => {
            let known = core.engine.refuse(now, log, &header);
            Ok(known.ok_or_else(|| Failure::new(code, why))?)
        }
    };
    let appended = appended.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    core.group_clock.queued(appended.after, now.mono_ms);
    let metrics = &broker.shared.metrics;
    if appended.is_duplicate {
        metrics.produced_duplicates.inc();
    } else {
        metrics
            .produced_records
            .add(u64::from(header.record_count.unsigned_abs()));
        metrics.produced_bytes.add(size);
    }
    Ok(appended)
}

fn response(call: &Call<'_>, index: i32, answer: Result<Appended, Failure>) -> PartitionProduceResponse {
    match answer {
        Ok(appended) => PartitionProduceResponse {
            index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms.unwrap_or(-1),
            log_start_offset: appended.log_start_offset,
            ..Default::default()
        },
        Err(failure) => {
            let record = |batch_index| BatchIndexAndErrorMessage {
                batch_index,
                batch_index_error_message: failure.message.clone(),
            };
            PartitionProduceResponse {
                index,
                error_code: call.code(failure.code),
                base_offset: -1,
                record_errors: failure.record.map(record).into_iter().collect(),
                error_message: failure.message,
                ..Default::default()
            }
        }
    }
}
