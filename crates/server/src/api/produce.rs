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
use anabranch_core::limits::{DECOMPRESSED_BATCH_BYTES_MAX, DECOMPRESSION_RATIO_MAX};
use anabranch_core::log::{Append, BatchFacts};
use anabranch_store::Batch;
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::{
    BatchError, BatchHeader, DecompressLimits, ProduceLimits, check_produced, check_records,
    set_log_append_time,
};
use anabranch_wire::msg::produce::{
    BatchIndexAndErrorMessage, PartitionProduceData, PartitionProduceResponse, TopicProduceResponse,
};
use anabranch_wire::msg::{ProduceRequest, ProduceResponse};
use bytes::{Bytes, BytesMut};

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

/// Where a batch goes.
#[derive(Clone, Copy, Debug)]
struct Target {
    log: LogId,
    /// For a compacted topic, whose records must have keys: the largest batch that is opened to see that, bytes.
    compact: Option<usize>,
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

/// What is answered for a batch that was appended, now or before.
struct Appended {
    base_offset: i64,
    log_append_time_ms: i64,
    log_start_offset: i64,
    after: Lsn,
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
    let targets = broker.with(|core| {
        let target = |one: &PartitionProduceData| target(core, name, id, one.index);
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

fn target(core: &Core, name: &str, id: Option<TopicId>, partition: i32) -> Result<Target, ErrorCode> {
    let (topic, missing) = match id {
        Some(id) => (core.node.topic_by_id(id), ErrorCode::UnknownTopicId),
        None => (core.node.topic_by_name(name), ErrorCode::UnknownTopicOrPartition),
    };
    let log = topic
        .ok_or(missing)?
        .log(partition)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let settings = core.node.log(log).map(anabranch_core::log::Log::settings);
    let compact = settings
        .filter(|settings| settings.compact)
        .map(|settings| settings.message_bytes_max);
    Ok(Target { log, compact })
}

fn check(target: Target, records: Option<Bytes>, version: i16) -> Result<Checked, Failure> {
    let bytes = records.ok_or(BatchError::Missing)?;
    // Size and timestamps are the topic's to judge, and transactions are refused with a reason of their own.
    let limits = ProduceLimits {
        bytes_max: target.compact.unwrap_or(usize::MAX),
        transactional: true,
        zstd: version >= ZSTD,
        timestamps_ms: None,
    };
    let header = check_produced(&bytes, &limits)?;
    if target.compact.is_some() {
        let decompress = DecompressLimits {
            bytes_max: DECOMPRESSED_BATCH_BYTES_MAX,
            ratio_max: DECOMPRESSION_RATIO_MAX,
        };
        check_records(&bytes, &limits, &decompress, true)?;
    }
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
    let Checked {
        log,
        header,
        mut bytes,
    } = checked;
    let facts = BatchFacts::from(&header);
    let decision = match refusal {
        None => core.node.append(now, log, &facts),
        Some((code, why)) => {
            let known = core.node.note_refused(now, log, &facts);
            Ok(known.ok_or_else(|| Failure::new(code, why))?)
        }
    };
    let log_start_offset = core.node.log(log).map_or(-1, anabranch_core::log::Log::start);
    match decision.map_err(|error| Failure::new(error.code(), error.to_string()))? {
        Append::Duplicate {
            base_offset,
            log_append_time_ms,
            lsn,
        } => {
            broker.shared.metrics.produced_duplicates.inc();
            let log_append_time_ms = log_append_time_ms.unwrap_or(-1);
            Ok(Appended {
                base_offset,
                log_append_time_ms,
                log_start_offset,
                after: lsn,
            })
        }
        Append::New {
            base_offset,
            leader_epoch,
            log_append_time_ms,
        } => {
            if let Some(time_ms) = log_append_time_ms {
                let mut stamped = BytesMut::from(bytes.as_ref());
                set_log_append_time(&mut stamped, time_ms);
                bytes = stamped.freeze();
            }
            let metrics = &broker.shared.metrics;
            metrics
                .produced_records
                .add(u64::from(header.record_count.unsigned_abs()));
            metrics.produced_bytes.add(bytes.len() as u64);
            // Still under the lock: the order of the queue is the order of offsets.
            let after = broker.store.append_batch(Batch {
                log,
                base_offset,
                leader_epoch,
                last_offset: base_offset + i64::from(header.last_offset_delta),
                max_timestamp: log_append_time_ms.unwrap_or(header.max_timestamp),
                bytes,
            });
            core.group_clock.queued(after, now.mono_ms);
            core.node.appended(log, after);
            let log_append_time_ms = log_append_time_ms.unwrap_or(-1);
            Ok(Appended {
                base_offset,
                log_append_time_ms,
                log_start_offset,
                after,
            })
        }
    }
}

fn response(call: &Call<'_>, index: i32, answer: Result<Appended, Failure>) -> PartitionProduceResponse {
    match answer {
        Ok(appended) => PartitionProduceResponse {
            index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms,
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
