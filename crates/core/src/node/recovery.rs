//! Snapshots, and what a restart does with them and with the journal behind them.
//!
//! A snapshot is the whole node at one LSN; behind it the journal's state entries and batch headers are replayed in
//! order. Replay repeats no decision: a batch that was accepted once is taken as it is, only its place is checked.

use super::{Node, Options};
use crate::Refused;
use crate::codec::{CodecError, Decoder, Encoder};
use crate::config::{Layers, TopicSettings, Values};
use crate::group::{Coordinator, GroupSettings};
use crate::ids::{LogId, Now, Offset};
use crate::log::{BatchFacts, Log, ReplayError};
use crate::meta::{Command, State};
use std::collections::BTreeMap;
use thiserror::Error;

/// The format version that snapshots are written in. Version 1, before queue mode, can be read.
const VERSION: u64 = 2;

/// Why a node could not be restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The snapshot cannot be read.
    #[error("the snapshot cannot be read: {0}")]
    Codec(#[from] CodecError),
    /// A configuration of the start is not valid.
    #[error(transparent)]
    Config(#[from] Refused),
}

impl Node {
    /// The whole node, to be written by the store at the LSN of the last entry.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut e = Encoder::new();
        e.uvar(VERSION);
        e.section(|e| self.state.put(e));
        e.section(|e| e.list(self.logs.values(), |e, log| log.put(e)));
        e.bytes(&self.groups.snapshot_encode());
        e.into_bytes()
    }

    /// The node of a snapshot. Everything in it is durable, so high watermarks are at the ends.
    pub fn restore(options: Options, snapshot: &[u8]) -> Result<Self, RestoreError> {
        let mut d = Decoder::new(snapshot);
        let version = d.uvar()?;
        if version == 0 {
            return Err(d.invalid("the format version of the snapshot is 0").into());
        }
        if version > VERSION {
            return Err(CodecError::Newer {
                what: "the snapshot",
                found: version,
                known: VERSION,
            }
            .into());
        }
        let mut section = d.section()?;
        let state = State::get(&mut section, version)?;
        section.finish()?;
        let mut section = d.section()?;
        let logs = get_logs(&mut section, &state, version)?;
        section.finish()?;
        let groups = Coordinator::snapshot_decode(GroupSettings::default(), d.bytes()?)?;
        d.finish()?;
        Ok(Self::with_state(options, state, logs, groups)?)
    }

    /// To be called after the last replay, before the first request: sessions of group members run from now on, at full
    /// length, since nobody could send a heartbeat while the broker was down.
    ///
    /// If the journal ends with what was said of a batch that did not become durable, the command that ends that is
    /// returned: it must be the next entry, or the same would be said of the next batch.
    #[must_use = "what was said of a lost batch would be said of the next one"]
    pub fn recovered(&mut self, now: Now) -> Option<Command> {
        self.groups.restart_sessions(now);
        let (log, _) = self.addressed.take()?;
        let partition = self.log(log)?.partition();
        Some(Command::Addressed { log, partition })
    }

    /// Takes a state entry of the journal, where it is durable: so are the log starts that it moves. The store is told of
    /// them once it is open, for all logs at once.
    pub fn replay_state(&mut self, entry: &[u8]) -> Result<(), ReplayError> {
        let command = Command::decode(entry)?;
        // It is said of the very next entry, or of nothing.
        self.addressed = match command {
            Command::Addressed { log, partition } => Some((log, partition)),
            _ => None,
        };
        let effects = self.apply(&command);
        self.commit_starts(&effects);
        Ok(())
    }

    /// Takes the header of a batch of the journal.
    pub fn replay_batch(
        &mut self,
        log: LogId,
        base_offset: Offset,
        batch: &BatchFacts,
    ) -> Result<(), ReplayError> {
        let found = self.logs.get_mut(&log).ok_or(ReplayError::UnknownLog(log))?;
        let place = found.replay_place(base_offset, batch)?;
        match self.addressed.take() {
            Some((stored, partition)) if stored == log && partition != found.partition() => {
                let topic = self.state.topic_by_id(found.topic());
                if let Some(addressed) = topic.and_then(|topic| topic.log(partition)) {
                    self.remember(0, addressed, batch, place.elsewhere());
                }
            }
            _ => self.remember(0, log, batch, place),
        }
        Ok(())
    }
}

fn get_logs(d: &mut Decoder<'_>, state: &State, version: u64) -> Result<BTreeMap<LogId, Log>, CodecError> {
    // The settings are derived once the node is whole.
    let none = Values::new();
    let settings = TopicSettings::new(
        &none,
        Layers {
            broker: &none,
            cluster: &none,
            fixed: &none,
        },
    );
    let logs = d.list(|d| Log::get(d, settings, version))?;
    let owned = |log: &Log| {
        let topic = state.topic_by_id(log.topic());
        topic.and_then(|topic| topic.log(log.partition())) == Some(log.id())
    };
    let all = logs.len() == state.partition_count() && logs.iter().all(owned);
    let logs: BTreeMap<_, _> = logs.into_iter().map(|log| (log.id(), log)).collect();
    if !all || logs.len() != state.partition_count() {
        return Err(d.invalid("the logs are not those of the topics"));
    }
    Ok(logs)
}

#[cfg(test)]
#[path = "recovery_test.rs"]
mod tests;
