//! DeleteRecords, retention, producer ids.

use super::Node;
use crate::Refused;
use crate::ids::{LogId, Now, Offset};
use crate::limits;
use crate::log::{LogStats, retention};
use crate::meta::Command;
use anabranch_wire::ErrorCode;

/// What InitProducerId hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerId {
    /// An id that nobody had before.
    pub id: i64,
    /// Its epoch. Idempotent producers count it up by themselves.
    pub epoch: i16,
}

/// The retention clock, and when it was read; volatile, and noted in the state from time to time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetentionClock {
    clock_ms: i64,
    mono_ms: u64,
}

impl Node {
    /// Decides about deleting the records below `offset`; -1 means all that are durable. Returns the low watermark that
    /// the answer tells once the commands, and those of earlier deletions, are durable ([`Node::state_lsn`]): an offset
    /// below the start changes nothing, as in Kafka.
    ///
    /// UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION for a compacted topic.
    pub fn delete_records(&self, log: LogId, offset: Offset) -> Result<(Vec<Command>, Offset), Refused> {
        let Some(found) = self.log(log) else {
            return Err(Refused::new(
                ErrorCode::UnknownTopicOrPartition,
                "the partition does not exist",
            ));
        };
        if !found.settings().delete {
            let message =
                "records of a topic whose cleanup.policy is compact alone cannot be deleted by offset";
            return Err(Refused::new(ErrorCode::PolicyViolation, message));
        }
        let watermark = found.high_watermark();
        let offset = if offset == -1 { watermark } else { offset };
        if !(0..=watermark).contains(&offset) {
            let message = format!("offset {offset} lies beyond the high watermark {watermark}");
            return Err(Refused::new(ErrorCode::OffsetOutOfRange, message));
        }
        if offset <= found.decided_start() {
            return Ok((Vec::new(), found.decided_start()));
        }
        Ok((vec![Command::AdvanceLogStart { log, offset }], offset))
    }

    /// Decides what retention deletes, from what the store knows of each log; to be called every
    /// `settings().retention_check_ms`. Forgets idle producers on the way.
    pub fn retention(&mut self, now: Now, stats: &[LogStats]) -> Vec<Command> {
        let mut commands = Vec::new();
        let clock_ms = self.advance_retention_clock(now);
        let noted = self.state.retention_clock_ms();
        if noted.is_none_or(|noted| noted.abs_diff(clock_ms) >= limits::RETENTION_CLOCK_NOTE_MS) {
            commands.push(Command::SetRetentionClock { clock_ms });
        }
        for stats in stats {
            let Some(log) = self.logs.get_mut(&stats.log) else {
                continue;
            };
            if let Some(offset) = log.plan_retention(now, clock_ms, stats) {
                commands.push(Command::AdvanceLogStart {
                    log: stats.log,
                    offset,
                });
            }
        }
        self.expire_producers(now);
        commands
    }

    /// How far retention's clock is behind the wall clock, in milliseconds: after a jump, or a long time out of service,
    /// deletion is held back for a while, which the server says in its log.
    pub fn retention_lag_ms(&self, now: Now) -> i64 {
        self.retention_clock
            .map_or(0, |clock| now.wall_ms.saturating_sub(clock.clock_ms).max(0))
    }

    /// The moment by the clock that retention goes by: with it, what is forgotten for its age (committed offsets, too)
    /// outlives a jump of the wall clock.
    pub fn by_retention_clock(&mut self, now: Now) -> Now {
        Now {
            wall_ms: self.advance_retention_clock(now),
            ..now
        }
    }

    /// The moment by which groups date what may later be forgotten for its age: the wall clock, unless that has fallen behind
    /// the clock of retention as it was last read. So what is dated while the wall clock is set back does not look old when
    /// it is right again.
    pub fn dated(&self, now: Now) -> Now {
        let clock_ms = self.retention_clock.map_or(now.wall_ms, |clock| clock.clock_ms);
        Now {
            wall_ms: now.wall_ms.max(clock_ms),
            ..now
        }
    }

    fn advance_retention_clock(&mut self, now: Now) -> i64 {
        let (before_ms, since_ms) = match self.retention_clock {
            Some(clock) => (clock.clock_ms, clock.mono_ms),
            // After a restart the clock goes on where it was. A new data folder has none: there the wall clock of the
            // start is believed, and not that of the first look, before which it may have jumped.
            None => {
                let started = self.options.started;
                let clock_ms = self.state.retention_clock_ms().unwrap_or(started.wall_ms);
                (clock_ms, started.mono_ms)
            }
        };
        let clock_ms = retention::clock(before_ms, now.mono_ms.saturating_sub(since_ms), now.wall_ms);
        self.retention_clock = Some(RetentionClock {
            clock_ms,
            mono_ms: now.mono_ms,
        });
        clock_ms
    }

    fn expire_producers(&mut self, now: Now) {
        let (started, after) = (self.options.started.mono_ms, self.settings.producer_expiration_ms);
        for log in self.logs.values_mut() {
            let before = log.producer_count();
            log.expire_producers(now, started, after);
            self.producers_total -= before - log.producer_count();
        }
    }

    /// Decides about InitProducerId without a transactional id: a producer id that nobody had before. Ids are reserved
    /// in blocks, so most calls need no command; the answer waits for the state LSN all the same.
    ///
    /// With a transactional id it is refused: there are no transactions yet. The code is the one that every client
    /// takes as final (others make librdkafka ask again for ever); the same goes for a FindCoordinator of a transaction,
    /// where the sentence reaches the application.
    pub fn init_producer_id(
        &mut self,
        transactional_id: Option<&str>,
    ) -> Result<(ProducerId, Vec<Command>), Refused> {
        if let Some(id) = transactional_id {
            return Err(no_transactions(id));
        }
        let mut commands = Vec::new();
        if self.producer_ids.is_empty() {
            let first = self.state.next_producer_id();
            let Some(upto) = first.checked_add(limits::PRODUCER_ID_BLOCK) else {
                return Err(Refused::new(
                    ErrorCode::UnknownServerError,
                    "all producer ids are used up",
                ));
            };
            self.producer_ids = first..upto;
            commands.push(Command::AllocateProducerIds { upto });
        }
        let id = self.producer_ids.start;
        self.producer_ids.start += 1;
        Ok((ProducerId { id, epoch: 0 }, commands))
    }
}

/// The answer to whatever asks for transactions.
pub(crate) fn no_transactions(transactional_id: &str) -> Refused {
    let message = format!(
        "transactions are not supported yet: remove transactional.id `{transactional_id}` from the producer"
    );
    Refused::new(ErrorCode::TransactionalIdAuthorizationFailed, message)
}

#[cfg(test)]
#[path = "records_test.rs"]
mod tests;
