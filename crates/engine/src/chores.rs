//! What the broker does without being asked. When each of these is due is the owner's to know.

use anabranch_core::Refused;
use anabranch_core::ids::{LogId, Lsn, Now, Offset, TopicId};
use anabranch_core::log::{LogStats, Run};
use anabranch_core::meta::Command;
use anabranch_core::node::{LogEffect, QueueOrder, QueuesView};
use anabranch_store::{Store, StoredRange};

use crate::{Engine, Journal, Outcome};

/// Changes of the queue counts that are made at once, at most; more follow the next time.
const QUEUE_CHANGES_MAX: usize = 8;

/// Without an occasion, topics in queue mode are looked at so often, milliseconds: what a missed event could cost.
const QUEUES_INTERVAL_MS: u64 = 1_000;

/// Records that retention has decided to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The log.
    pub log: LogId,
    /// The first of them.
    pub from: Offset,
    /// The first that stays.
    pub upto: Offset,
}

impl<J: Journal> Engine<J> {
    /// Notes the clock that retention goes by. Once the commit listener is set, and before anything else: until a new data
    /// folder has it, a restart would believe whatever the wall clock says.
    pub fn note_retention_clock(&mut self, now: Now) -> Outcome {
        self.retain(now, &[]).1
    }

    /// Brings back what divided cursors need after a restart, and completes what a crash cut short. Once the commit listener
    /// is set, and before the first request.
    pub fn resume_slices(&mut self, now: Now) -> Outcome {
        self.group(now, |coordinator, topics, now| {
            ((), coordinator.recover_slices(now, topics))
        })
        .1
    }

    /// Deletes what is older or more than the topics keep, and forgets idle producers. `stats` comes from [`log_stats`].
    pub fn retain(&mut self, now: Now, stats: &[LogStats]) -> (Vec<Deleted>, Outcome) {
        self.update(now, |update| {
            let commands = update.node_mut().retention(now, stats);
            let deleted = commands.iter().filter_map(|command| match command {
                Command::AdvanceLogStart { log, offset } => Some(Deleted {
                    log: *log,
                    from: update.node().log(*log)?.decided_start(),
                    upto: *offset,
                }),
                _ => None,
            });
            let deleted = deleted.collect();
            update.run(commands);
            deleted
        })
    }

    /// Forgets committed offsets and groups that are too old; by retention's clock, since a jump of the wall clock must not
    /// make them old.
    pub fn expire_groups(&mut self, now: Now) -> Outcome {
        let now = self.node.by_retention_clock(now);
        self.group(now, |coordinator, topics, now| {
            ((), coordinator.expire(now, topics))
        })
        .1
    }

    /// Changes the queue counts of topics in queue mode that are due. With it comes when to do so again if nothing happens,
    /// monotonic milliseconds; `None` if no topic is in queue mode.
    pub fn adjust_queues(&mut self, now: Now) -> (Option<u64>, Outcome) {
        let ((), mut outcome) = self.update(now, |update| {
            // One change may be followed by another; each brings the counts nearer to where they stay.
            for _ in 0..QUEUE_CHANGES_MAX {
                let due = update.node_mut().queues_due(now);
                if due.is_empty() {
                    break;
                }
                update.run(due);
            }
        });
        if self.node.state().queues().is_empty() {
            return (None, outcome);
        }
        let ((), more) = self.group(now, |coordinator, topics, now| {
            ((), coordinator.recheck_queues(now, topics))
        });
        outcome.absorb(more);
        let latest = now.mono_ms.saturating_add(QUEUES_INTERVAL_MS);
        let next = self.node.next_queues().unwrap_or(latest).min(latest);
        (Some(next), outcome)
    }

    /// Does what an operator wants of a topic's queues, and what follows from it at once. Errors as
    /// [`anabranch_core::node::Node::order_queues`].
    pub fn order_queues(
        &mut self,
        now: Now,
        topic: &str,
        order: QueueOrder,
    ) -> (Result<(), Refused>, Outcome) {
        let (result, mut outcome) = self.update(now, |update| {
            let commands = update.node_mut().order_queues(now, topic, order)?;
            update.run(commands);
            Ok(())
        });
        outcome.absorb(self.adjust_queues(now).1);
        (result, outcome)
    }

    /// A topic in queue mode as it is now; `None` if it is not.
    pub fn queues_view(&mut self, now: Now, topic: TopicId) -> Option<QueuesView> {
        self.node.queues_view(now, topic)
    }

    /// Lets the coordinator act on what is due.
    pub fn on_time(&mut self, now: Now) -> Outcome {
        self.group(now, |coordinator, topics, now| {
            ((), coordinator.on_time(now, topics))
        })
        .1
    }

    /// When [`Self::on_time`] is to be called next, monotonic milliseconds. Any call may bring it nearer.
    pub fn next_deadline(&self) -> Option<u64> {
        self.node.groups().next_deadline()
    }

    /// The whole state, and the entry that it is at: for [`Store::write_snapshot`].
    pub fn snapshot(&self) -> (Lsn, Vec<u8>) {
        (self.store().last(), self.node.snapshot())
    }
}

/// Tells the store what is dead, durably so. May take a while, so not under a lock.
pub fn tell_store(store: &Store, effects: &[LogEffect]) {
    for effect in effects {
        match *effect {
            LogEffect::Start { log, offset } => store.set_log_start(log, offset),
            LogEffect::Drop { log } => store.drop_log(log),
        }
    }
}

/// What the store knows of some logs, for [`Engine::retain`].
pub fn log_stats(store: &Store, logs: impl IntoIterator<Item = LogId>) -> Vec<LogStats> {
    let run = |range: StoredRange| Run {
        first_offset: range.first_offset,
        last_offset: range.last_offset,
        bytes: range.bytes,
        max_timestamp: range.max_timestamp,
    };
    let stats = |log| {
        let stored = store.log_stats(log);
        LogStats {
            log,
            bytes: stored.bytes,
            runs: stored.ranges.into_iter().map(run).collect(),
        }
    };
    logs.into_iter().map(stats).collect()
}
