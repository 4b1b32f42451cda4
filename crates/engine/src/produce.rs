//! Produce: where a batch goes, whether it is well-formed, and its place in the queue.
//!
//! [`target`] and [`Engine::append`] need the engine, and so the owner's lock; [`check`] between them, which looks at every
//! byte, does not.
//!
//! In queue mode a batch may be stored in another partition than the one it was addressed to ([`Append::New`]). Which one is
//! decided when it is appended, since it may change at any time before.

use anabranch_core::ids::{LogId, Lsn, Now, Offset};
use anabranch_core::limits::{DECOMPRESSED_BATCH_BYTES_MAX, DECOMPRESSION_RATIO_MAX};
use anabranch_core::log::{Append, AppendError, BatchFacts, Log};
use anabranch_core::meta::Command;
use anabranch_core::node::{Node, TopicRef};
use anabranch_store::Batch;
use anabranch_wire::ErrorCode;
use anabranch_wire::batch::{
    BatchError, BatchHeader, DecompressLimits, ProduceLimits, check_produced, check_records,
    set_log_append_time,
};
use bytes::{Bytes, BytesMut};

use crate::{Engine, Journal};

/// Where a batch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The log.
    pub log: LogId,
    /// For a compacted topic, whose records must have keys: the largest batch that is opened to see that, bytes.
    compact: Option<usize>,
}

/// A batch that is in the log, by this call or an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record in the partition that it was addressed to; -1, Kafka's "unknown", if it is stored in another
    /// one, which queue mode does: the offset would not be true of the partition that the client knows.
    pub base_offset: Offset,
    /// The time it was given, for a topic with LogAppendTime.
    pub log_append_time_ms: Option<i64>,
    /// First offset of the log that exists; -1 if the log has gone, or the batch is stored in another one.
    pub log_start_offset: Offset,
    /// It was there already.
    pub is_duplicate: bool,
    /// The entry that the answer waits for.
    pub after: Lsn,
}

/// Resolves a partition. UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID.
pub fn target(node: &Node, topic: TopicRef<'_>, partition: i32) -> Result<Target, ErrorCode> {
    let log = node
        .find_topic(topic)?
        .log(partition)
        .ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let settings = node.log(log).map(Log::settings);
    let compact = settings
        .filter(|settings| settings.compact)
        .map(|settings| settings.message_bytes_max);
    Ok(Target { log, compact })
}

/// Checks a batch as it came. `zstd` says whether the version of the request may send that (KIP-110).
pub fn check(target: &Target, batch: &Bytes, zstd: bool) -> Result<BatchHeader, BatchError> {
    // Size and timestamps are the topic's to judge, and transactions are refused with a reason of their own.
    let limits = ProduceLimits {
        bytes_max: target.compact.unwrap_or(usize::MAX),
        transactional: true,
        zstd,
        timestamps_ms: None,
    };
    let header = check_produced(batch, &limits)?;
    if target.compact.is_some() {
        let decompress = DecompressLimits {
            bytes_max: DECOMPRESSED_BATCH_BYTES_MAX,
            ratio_max: DECOMPRESSION_RATIO_MAX,
        };
        check_records(batch, &limits, &decompress, true)?;
    }
    Ok(header)
}

impl<J: Journal> Engine<J> {
    /// Decides about a checked batch and, if it is new, gives it its offsets and queues it.
    pub fn append(
        &mut self,
        now: Now,
        log: LogId,
        header: &BatchHeader,
        bytes: Bytes,
    ) -> Result<Appended, AppendError> {
        match self.node.append(now, log, &BatchFacts::from(header))? {
            Append::Duplicate {
                base_offset,
                log_append_time_ms,
                lsn,
            } => Ok(self.appended(log, base_offset, log_append_time_ms, true, lsn)),
            Append::New {
                log: home,
                base_offset,
                leader_epoch,
                log_append_time_ms,
            } => {
                let is_elsewhere = home != log;
                if is_elsewhere && header.producer_id >= 0 {
                    self.note_addressed(log, home);
                }
                // The order of the queue is the order of offsets: nothing comes in between.
                let after = self.journal.append_batch(Batch {
                    log: home,
                    base_offset,
                    leader_epoch,
                    last_offset: base_offset + i64::from(header.last_offset_delta),
                    max_timestamp: log_append_time_ms.unwrap_or(header.max_timestamp),
                    bytes: stamped(bytes, log_append_time_ms),
                });
                self.node.appended(home, after);
                if is_elsewhere {
                    self.node.appended(log, after);
                }
                let told = if is_elsewhere { -1 } else { base_offset };
                Ok(self.appended(log, told, log_append_time_ms, false, after))
            }
        }
    }

    /// Says of the batch that follows, whose sequence number counts where it was addressed, where that is.
    fn note_addressed(&mut self, log: LogId, home: LogId) {
        if let Some(partition) = self.node.log(log).map(Log::partition) {
            let note = Command::Addressed { log: home, partition }.encode();
            self.state_bytes += note.len() as u64;
            self.journal.append_state(note);
        }
    }

    /// Refuses a batch for a reason of the owner's own that may pass, and with it what its producer sends behind it. A batch
    /// that is here already cannot be refused: it is returned, to be acknowledged.
    #[must_use = "a duplicate is to be acknowledged"]
    pub fn refuse(&mut self, now: Now, log: LogId, header: &BatchHeader) -> Option<Appended> {
        match self.node.note_refused(now, log, &BatchFacts::from(header))? {
            Append::Duplicate {
                base_offset,
                log_append_time_ms,
                lsn,
            } => Some(self.appended(log, base_offset, log_append_time_ms, true, lsn)),
            Append::New { .. } => None,
        }
    }

    fn appended(
        &self,
        log: LogId,
        base_offset: Offset,
        log_append_time_ms: Option<i64>,
        is_duplicate: bool,
        after: Lsn,
    ) -> Appended {
        Appended {
            base_offset,
            log_append_time_ms,
            log_start_offset: match base_offset {
                -1 => -1,
                _ => self.node.log(log).map_or(-1, Log::start),
            },
            is_duplicate,
            after,
        }
    }
}

fn stamped(bytes: Bytes, log_append_time_ms: Option<i64>) -> Bytes {
    let Some(time_ms) = log_append_time_ms else {
        return bytes;
    };
    let mut stamped = BytesMut::from(bytes.as_ref());
    set_log_append_time(&mut stamped, time_ms);
    stamped.freeze()
}
