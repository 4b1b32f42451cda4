//! How the state comes back: the store replays its newest snapshot and what lies behind it into a node.

use anabranch_core::Refused;
use anabranch_core::ids::{LogId, Lsn};
use anabranch_core::log::BatchFacts;
use anabranch_core::node::{Node, Options};
use anabranch_store::{Replay, ReplayError};
use anabranch_wire::batch::BatchIter;

/// The node while the store replays into it.
pub(crate) struct Recovery {
    options: Options,
    pub(crate) node: Node,
}

impl Recovery {
    /// The node of an empty folder. Refuses configurations that are unknown or invalid.
    pub(crate) fn new(options: Options) -> Result<Self, Refused> {
        Ok(Self {
            node: Node::new(options.clone())?,
            options,
        })
    }
}

impl Replay for Recovery {
    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), ReplayError> {
        self.node = Node::restore(self.options.clone(), bytes)?;
        Ok(())
    }

    fn state(&mut self, _lsn: Lsn, bytes: &[u8]) -> Result<(), ReplayError> {
        // What follows for the store is told to it once it is open, for all logs at once.
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
