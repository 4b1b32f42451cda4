//! What the committer, the readers and the maintenance share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use anabranch_core::ids::{LogId, Lsn, Offset};

use crate::buffer::Pool;
use crate::cache::TailCache;
use crate::disk::{Access, Disk};
use crate::error::Damage;
use crate::format::ClusterId;
use crate::index::Index;
use crate::layout::Layout;
use crate::options::Options;
use crate::read::{Files, ReadAhead, ReadCache};
use crate::segment::Segment;
use crate::wal::prepare::Preparer;
use crate::wal::queue::Queue;

/// What became durable (or, in relaxed mode, was written) with one group.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Every entry up to here is committed.
    pub upto: Lsn,
    /// The logs that got batches, with the offset behind the last one of each.
    pub tails: &'a [(LogId, Offset)],
}

/// Something that the owner of the store should know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A segment is full and its index is on disk: a good time for a snapshot, which lets older segments go.
    SegmentSealed {
        /// The segment's number.
        seq: u64,
        /// The last entry in it.
        last: Lsn,
    },
    /// A write or a sync failed. Nothing more will be committed; the process should end, and recover at its next start.
    Poisoned {
        /// What failed.
        message: String,
    },
    /// Damage was found. What is damaged stays as it is; everything else can be read.
    Damaged(Damage),
}

pub(crate) type CommitListener = Box<dyn for<'a> Fn(Commit<'a>) + Send + Sync>;
pub(crate) type EventListener = Box<dyn Fn(Event) + Send + Sync>;

/// What readers see: published after a group is committed, all of it at once.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: Index,
    pub(crate) cache: TailCache,
    /// Sealed segments by number.
    pub(crate) sealed: BTreeMap<u64, Arc<Segment>>,
    pub(crate) active: Arc<Segment>,
}

/// The store without its threads.
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) cluster: ClusterId,
    pub(crate) queue: Queue,
    pub(crate) pool: Arc<Pool>,
    pub(crate) preparer: Preparer,
    pub(crate) files: Files,
    pub(crate) read_cache: ReadCache,
    pub(crate) read_ahead: ReadAhead,
    state: RwLock<State>,
    committed: AtomicU64,
    poisoned: OnceLock<String>,
    /// Entries that the kept snapshots were taken at, ascending.
    pub(crate) snapshots: Mutex<Vec<u64>>,
    /// Somebody waits for a commit: held with `progress`.
    waiting: Mutex<usize>,
    progress: Condvar,
    pub(crate) commit_listener: OnceLock<CommitListener>,
    pub(crate) event_listener: OnceLock<EventListener>,
}

/// What [`Shared::new`] takes; the rest starts empty.
pub(crate) struct SharedStart {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) cluster: ClusterId,
    pub(crate) preparer: Preparer,
    pub(crate) state: State,
    pub(crate) committed: u64,
    pub(crate) snapshots: Vec<u64>,
}

impl Shared {
    pub(crate) fn new(start: SharedStart) -> Shared {
        let pool = Arc::new(Pool::default());
        let access = if start.options.direct_io {
            Access::ReadDirect
        } else {
            Access::Read
        };
        Shared {
            files: Files::new(
                Arc::clone(&start.disk),
                start.layout.clone(),
                access,
                Arc::clone(&pool),
                start.options.index_cache_bytes,
            ),
            read_cache: ReadCache::new(start.options.read_cache_bytes),
            read_ahead: ReadAhead::default(),
            disk: start.disk,
            layout: start.layout,
            options: start.options,
            cluster: start.cluster,
            queue: Queue::new(start.committed + 1),
            pool,
            preparer: start.preparer,
            state: RwLock::new(start.state),
            committed: AtomicU64::new(start.committed),
            poisoned: OnceLock::new(),
            snapshots: Mutex::new(start.snapshots),
            waiting: Mutex::new(0),
            progress: Condvar::new(),
            commit_listener: OnceLock::new(),
            event_listener: OnceLock::new(),
        }
    }

    pub(crate) fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_snapshots(&self) -> MutexGuard<'_, Vec<u64>> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Readers can see everything up to `lsn` now.
    pub(crate) fn set_committed(&self, lsn: u64) {
        self.committed.store(lsn, Ordering::Release);
        self.wake_waiting();
    }

    fn wake_waiting(&self) {
        if *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) > 0 {
            self.progress.notify_all();
        }
    }

    /// Blocks until `lsn` is committed; false if that will not happen any more.
    pub(crate) fn wait_committed(&self, lsn: u64) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting += 1;
        while self.committed() < lsn && self.poisoned().is_none() && !self.queue.is_stopped() {
            waiting = self
                .progress
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *waiting -= 1;
        self.committed() >= lsn
    }

    pub(crate) fn poisoned(&self) -> Option<&str> {
        self.poisoned.get().map(String::as_str)
    }

    /// Ends all committing for good.
    pub(crate) fn poison(&self, message: String) {
        if self.poisoned.set(message.clone()).is_ok() {
            tracing::error!(message, "the store takes no more writes");
            self.wake_waiting();
            self.emit(Event::Poisoned { message });
        }
    }

    pub(crate) fn emit(&self, event: Event) {
        if let Some(listener) = self.event_listener.get() {
            listener(event);
        }
    }

    /// Ends all waiting, for threads to return.
    pub(crate) fn stop(&self) {
        self.queue.stop();
        self.preparer.stop();
        self.read_ahead.stop();
        self.wake_waiting();
    }

    /// Up to which entry segments may be freed: the oldest kept snapshot covers them, so that even if the newest one
    /// turns out to be damaged nothing is missing.
    pub(crate) fn horizon(&self) -> u64 {
        self.lock_snapshots().first().copied().unwrap_or(0)
    }
}
