//! The journal as the engine sees it in a simulation: the real store, and a note of what went in for the oracles.

use std::cell::RefCell;

use anabranch_core::ids::Lsn;
use anabranch_core::log::BatchFacts;
use anabranch_engine::Journal;
use anabranch_store::{Batch, Store};
use anabranch_wire::batch::BatchHeader;

use crate::oracle::replay::Entry;

/// The store of a process.
#[derive(Debug)]
pub(super) struct Watched {
    store: Store,
    /// What was appended and no oracle has heard of.
    news: RefCell<Vec<(Lsn, Entry)>>,
}

impl Watched {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            news: RefCell::default(),
        }
    }

    /// What was appended since the last call.
    pub(super) fn news(&self) -> Vec<(Lsn, Entry)> {
        self.news.take()
    }

    pub(super) fn into_store(self) -> Store {
        self.store
    }

    fn note(&self, lsn: Lsn, entry: Entry) -> Lsn {
        self.news.borrow_mut().push((lsn, entry));
        lsn
    }
}

impl Journal for Watched {
    fn store(&self) -> &Store {
        &self.store
    }

    fn append_state(&self, bytes: Vec<u8>) -> Lsn {
        self.note(self.store.append_state(bytes.clone()), Entry::State(bytes))
    }

    fn append_batch(&self, batch: Batch) -> Lsn {
        // As recovery will read it: from the header, but for the offset, which is patched on the way to the disk.
        let header = BatchHeader::parse(&batch.bytes).expect("only checked batches are appended");
        let facts = BatchFacts::from(&header);
        let entry = Entry::Batch(batch.log, batch.base_offset, facts, batch.bytes.clone());
        self.note(self.store.append_batch(batch), entry)
    }
}
