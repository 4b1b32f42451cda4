//! ListOffsets and OffsetForLeaderEpoch: offsets by time, by name, by leader epoch.
//!
//! Neither request says at which offset its client is. One that reads a slice of a partition is answered in the numbers of
//! that slice ([`Numbering`]), and never by leader epoch: its position has none.

use std::sync::Arc;

use anabranch_core::cursor::SliceOffset;
use anabranch_core::group::{Caller, Numbering};
use anabranch_core::ids::{LogId, Offset, TopicId};
use anabranch_core::limits::{DECOMPRESSED_BATCH_BYTES_MAX, DECOMPRESSION_RATIO_MAX};
use anabranch_core::log::Log;
use anabranch_engine::fetch::check_leader_epoch;
use anabranch_store::Store;
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::{BatchHeader, DecompressLimits, records};
use anabranch_wire::msg::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic, ListOffsetsTopicResponse,
};
use anabranch_wire::msg::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopic, OffsetForLeaderTopicResult,
};
use anabranch_wire::msg::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use super::check_partitions;
use super::groups::caller;
use crate::broker::{Broker, Core};
use crate::connection::{Close, Pending};
use crate::dispatch::Call;

/// First version with leader epochs.
const EPOCHS: i16 = 4;

/// The end of the log, as far as it can be read.
const LATEST: i64 = -1;
/// The first offset that exists.
const EARLIEST: i64 = -2;
/// The record with the largest timestamp, from version 7 on (KIP-734).
const MAX_TIMESTAMP: i64 = -3;
/// The first offset on local disk, from version 8 on (KIP-405): here the same as the first.
const EARLIEST_LOCAL: i64 = -4;
/// The end of what was moved to other storage, from version 9 on (KIP-1005): here nothing ever is.
const LATEST_TIERED: i64 = -5;

/// An answer, or what must be looked up to give it.
enum Place {
    Known(Result<Spot, ErrorCode>),
    /// The first record at or after a time.
    Time(i64, Range),
    /// The first record that has the largest timestamp.
    Newest(Range),
}

/// What exists of a log and is visible, and how its offsets are told.
struct Range {
    log: LogId,
    start: Offset,
    end: Offset,
    leader_epoch: i32,
    numbering: Numbering,
}

/// An offset, with its timestamp if that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    offset: Offset,
    timestamp: i64,
    leader_epoch: i32,
}

/// What is answered where no record is found.
const NOWHERE: Spot = Spot {
    offset: -1,
    timestamp: -1,
    leader_epoch: -1,
};

pub(crate) fn handle(call: Call<'_>, request: ListOffsetsRequest) -> Result<Pending, Close> {
    check_partitions(request.topics.iter().map(|topic| topic.partitions.len()))?;
    let version = call.version();
    let is_replica = request.replica_id >= 0;
    let caller = caller(&call);
    let places: Vec<Vec<(i32, Place)>> = call.broker.with(|core| {
        let place = |topic: &ListOffsetsTopic, one: &ListOffsetsPartition| match is_replica {
            true => Place::Known(Err(ErrorCode::ClusterAuthorizationFailed)),
            false => place(core, &caller, &topic.name, one, version),
        };
        let partitions = |topic: &ListOffsetsTopic| {
            topic
                .partitions
                .iter()
                .map(|one| (one.partition_index, place(topic, one)))
                .collect()
        };
        request.topics.iter().map(partitions).collect()
    });
    let names: Vec<String> = request.topics.into_iter().map(|topic| topic.name).collect();
    if places
        .iter()
        .flatten()
        .all(|(_, place)| matches!(place, Place::Known(_)))
    {
        return call.now(&response(call.broker, version, names, places));
    }
    // Lookups by time may have to read, and perhaps to decompress.
    let broker = Arc::clone(call.broker);
    call.on_thread(move || response(&broker, version, names, places))
}

/// A partition's log, with the name of the partition for the coordinator.
fn log_of<'a>(core: &'a Core, topic: &str, partition: i32) -> Result<(&'a Log, (TopicId, i32)), ErrorCode> {
    let topic = core.node().topic_by_name(topic);
    let found = topic.and_then(|topic| {
        let log = core.node().log(topic.log(partition)?)?;
        Some((log, (topic.id, partition)))
    });
    found.ok_or(ErrorCode::UnknownTopicOrPartition)
}

fn place(core: &Core, caller: &Caller, topic: &str, one: &ListOffsetsPartition, version: i16) -> Place {
    match range(core, caller, topic, one) {
        Ok(range) => range.place(one.timestamp, version),
        Err(error) => Place::Known(Err(error)),
    }
}

fn range(core: &Core, caller: &Caller, topic: &str, one: &ListOffsetsPartition) -> Result<Range, ErrorCode> {
    let (log, key) = log_of(core, topic, one.partition_index)?;
    let numbering = core.node().groups().numbering(caller, key)?;
    let leader_epoch = match numbering.is_plain() {
        true => {
            check_leader_epoch(log, one.current_leader_epoch)?;
            log.leader_epoch()
        }
        false => -1,
    };
    Ok(Range {
        log: log.id(),
        start: log.start(),
        end: log.high_watermark(),
        leader_epoch,
        numbering,
    })
}

impl Range {
    fn place(self, timestamp: i64, version: i16) -> Place {
        let known = |offset| {
            Place::Known(Ok(Spot {
                offset,
                timestamp: -1,
                leader_epoch: self.leader_epoch,
            }))
        };
        match timestamp {
            LATEST => known(self.numbering.last(self.end)),
            EARLIEST => known(self.numbering.first(self.start)),
            MAX_TIMESTAMP if version >= 7 => Place::Newest(self),
            EARLIEST_LOCAL if version >= 8 => known(self.numbering.first(self.start)),
            LATEST_TIERED if version >= 9 => Place::Known(Ok(NOWHERE)),
            ..0 => Place::Known(Err(ErrorCode::UnsupportedVersion)),
            timestamp => Place::Time(timestamp, self),
        }
    }

    /// What was found, as it is told.
    fn told(&self, spot: Option<Spot>) -> Spot {
        spot.map_or(NOWHERE, |spot| Spot {
            offset: self.numbering.at(spot.offset),
            leader_epoch: self.leader_epoch,
            ..spot
        })
    }
}

fn response(
    broker: &Broker,
    version: i16,
    names: Vec<String>,
    places: Vec<Vec<(i32, Place)>>,
) -> ListOffsetsResponse {
    let partition = |(partition_index, place): (i32, Place)| match find(broker, place) {
        Ok(spot) => ListOffsetsPartitionResponse {
            partition_index,
            timestamp: spot.timestamp,
            offset: spot.offset,
            leader_epoch: if version >= EPOCHS { spot.leader_epoch } else { -1 },
            ..Default::default()
        },
        Err(error) => ListOffsetsPartitionResponse {
            partition_index,
            error_code: broker.code(error),
            ..Default::default()
        },
    };
    let topic = |(name, places): (String, Vec<(i32, Place)>)| ListOffsetsTopicResponse {
        name,
        partitions: places.into_iter().map(partition).collect(),
    };
    let topics = names.into_iter().zip(places).map(topic).collect();
    ListOffsetsResponse {
        topics,
        ..Default::default()
    }
}

fn find(broker: &Broker, place: Place) -> Result<Spot, ErrorCode> {
    let (timestamp, range) = match place {
        Place::Known(known) => return known,
        Place::Time(timestamp, range) => (timestamp, range),
        Place::Newest(range) => match broker.store.max_timestamp(range.log) {
            Some(newest) if newest.timestamp >= 0 => (newest.timestamp, range),
            _ => return Ok(NOWHERE),
        },
    };
    let found = first_at_or_after(&broker.store, range.log, timestamp, range.start..range.end);
    let found = found.map_err(|error| {
        tracing::error!(%error, "cannot look up an offset by time");
        ErrorCode::KafkaStorageError
    })?;
    Ok(range.told(found.map(|(offset, timestamp)| Spot {
        offset,
        timestamp,
        leader_epoch: -1,
    })))
}

/// The first record in a range of a log at or after `timestamp`, with its own. A batch that cannot be opened counts with its
/// first offset, so that a reader starts too early rather than too late. May block on the disk.
pub(crate) fn first_at_or_after(
    store: &Store,
    log: LogId,
    timestamp: i64,
    range: std::ops::Range<Offset>,
) -> Result<Option<(Offset, i64)>, anabranch_store::ReadError> {
    let mut from = range.start;
    while let Some(batch) = store.first_batch_at_or_after_time(log, timestamp, from, range.end)? {
        let Ok(header) = BatchHeader::parse(&batch) else {
            break;
        };
        if let Some(found) = find_record(&batch, &header, timestamp, from) {
            return Ok(Some(found));
        }
        from = header.next_offset();
    }
    Ok(None)
}

/// Offset and timestamp of the first record of a batch from `from` on that is at or after `timestamp`.
fn find_record(batch: &[u8], header: &BatchHeader, timestamp: i64, from: Offset) -> Option<(Offset, i64)> {
    let limits = DecompressLimits {
        bytes_max: DECOMPRESSED_BATCH_BYTES_MAX,
        ratio_max: DECOMPRESSION_RATIO_MAX,
    };
    let at_start = (header.base_offset.max(from), header.max_timestamp);
    let Ok(set) = records(batch, &limits) else {
        return Some(at_start);
    };
    for record in &set {
        let Ok(record) = record else { return Some(at_start) };
        let (offset, time) = (set.offset_of(&record), set.timestamp_of(&record));
        if offset >= from && time >= timestamp {
            return Some((offset, time));
        }
    }
    None
}

pub(crate) fn for_leader_epoch(
    call: Call<'_>,
    request: OffsetForLeaderEpochRequest,
) -> Result<Pending, Close> {
    check_partitions(request.topics.iter().map(|topic| topic.partitions.len()))?;
    let is_replica = request.replica_id >= 0;
    let topics = call.broker.with(|core| {
        let partition = |topic: &str, one: &OffsetForLeaderPartition| {
            let end = match is_replica {
                true => Err(ErrorCode::ClusterAuthorizationFailed),
                false => end_of_epoch(core, topic, one),
            };
            end.unwrap_or_else(|error| EpochEndOffset {
                error_code: call.code(error),
                partition: one.partition,
                ..Default::default()
            })
        };
        let topic = |topic: OffsetForLeaderTopic| OffsetForLeaderTopicResult {
            partitions: topic
                .partitions
                .iter()
                .map(|one| partition(&topic.topic, one))
                .collect(),
            topic: topic.topic,
        };
        request.topics.into_iter().map(topic).collect()
    });
    call.now(&OffsetForLeaderEpochResponse {
        topics,
        ..Default::default()
    })
}

/// The largest epoch that is not above the one asked for, and where it ends: the present one ends at the log's end.
/// Never less than what a client has been shown, or it would believe that the log was cut (KIP-320). So while the partition
/// is divided for any group, the answer is the end of the log in the largest slice, and epochs are not compared.
fn end_of_epoch(
    core: &Core,
    topic: &str,
    one: &OffsetForLeaderPartition,
) -> Result<EpochEndOffset, ErrorCode> {
    let (log, key) = log_of(core, topic, one.partition)?;
    let end = log.high_watermark();
    let end_offset = match core.node().groups().largest_slice(key) {
        Some(slice) => SliceOffset::new(Some(slice), end).map_or(end, SliceOffset::to_wire),
        None => {
            check_leader_epoch(log, one.current_leader_epoch)?;
            if one.leader_epoch < log.leader_epoch() {
                return Ok(EpochEndOffset {
                    partition: one.partition,
                    ..Default::default()
                });
            }
            end
        }
    };
    Ok(EpochEndOffset {
        partition: one.partition,
        leader_epoch: log.leader_epoch(),
        end_offset,
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::batch::BatchBuilder;

    #[test]
    fn the_first_record_that_is_late_enough_is_found_and_not_its_batch() {
        let mut builder = BatchBuilder::new();
        builder.base_offset(100);
        for (n, time) in [10, 30, 20, 40].into_iter().enumerate() {
            builder.append(time, None, Some(&[n as u8]), &[]);
        }
        let batch = builder.finish().unwrap();
        let header = BatchHeader::parse(&batch).unwrap();
        let at = |timestamp, from| find_record(&batch, &header, timestamp, from);
        assert_eq!(at(0, 0), Some((100, 10)));
        assert_eq!(at(20, 0), Some((101, 30)));
        assert_eq!(at(20, 102), Some((102, 20)));
        assert_eq!(at(35, 0), Some((103, 40)));
        assert_eq!(at(41, 0), None);
    }

    #[test]
    fn a_batch_that_cannot_be_opened_counts_with_its_start() {
        let mut builder = BatchBuilder::new();
        builder.base_offset(100).append(10, None, Some(b"x"), &[]);
        let mut batch = builder.finish().unwrap().to_vec();
        let header = BatchHeader::parse(&batch).unwrap();
        let last = batch.len() - 1;
        batch[61] = 0x7f;
        batch[last] = 0x7f;
        assert_eq!(
            find_record(&batch, &header, 5, 0).map(|(offset, _)| offset),
            Some(100)
        );
    }
}
