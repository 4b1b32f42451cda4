//! How the state comes back: the store replays its newest snapshot and what lies behind it into a node.

use anabranch_core::Refused;
use anabranch_core::ids::{LogId, Lsn, Now};
use anabranch_core::log::BatchFacts;
use anabranch_core::node::{Node, Options};
use anabranch_store::{Replay, ReplayError};
use anabranch_wire::batch::BatchIter;

use crate::{Engine, Journal};

/// The node while the store replays into it.
#[derive(Debug)]
pub struct Recovery {
    options: Options,
    node: Node,
}

impl Recovery {
    /// The node of an empty folder. Refuses configurations that are unknown or invalid.
    pub fn new(options: Options) -> Result<Self, Refused> {
        Ok(Self {
            node: Node::new(options.clone())?,
            options,
        })
    }

    /// What has been replayed so far.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The store is open: sessions of group members run from now on, and the store, which does not remember it, is told
    /// where each log begins and which are gone.
    pub fn finish<J: Journal>(mut self, now: Now, journal: J) -> Engine<J> {
        if let Some(closing) = self.node.recovered(now) {
            journal.append_state(closing.encode());
        }
        let store = journal.store();
        for log in store.logs() {
            match self.node.log(log) {
                Some(found) => store.set_log_start(log, found.start()),
                None => store.drop_log(log),
            }
        }
        Engine::new(self.node, journal)
    }
}

impl Replay for Recovery {
    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        self.node = Node::restore(self.options.clone(), bytes)?;
        Ok(())
    }

    fn state(&mut self, _lsn: Lsn, bytes: &[u8]) -> Result<(), ReplayError> {
        self.node.replay_state(bytes)?;
        Ok(())
    }

    fn batches(&mut self, _lsn: Lsn, log: LogId, bytes: &[u8]) -> Result<(), ReplayError> {
        for batch in BatchIter::new(bytes) {
            let (_, header) = batch?;
            self.node
                .replay_batch(log, header.base_offset, &BatchFacts::from(&header))?;
        }
        Ok(())
    }
}
