//! The store as its owner sees it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anabranch_core::ids::{LogId, Lsn, Offset};
use bytes::Bytes;

use crate::disk::{Disk, LockGuard};
use crate::error::{MaintainError, OpenError, ReadError, SnapshotError};
use crate::options::{Durability, Options};
use crate::read::{MaxTimestamp, Range};
use crate::recovery::{self, Recovered, Replay};
use crate::shared::{Commit, Event, Shared};
use crate::space::Maintained;
use crate::wal::committer::{Committer, Step};
use crate::wal::queue::Wake;
use crate::wal::{Batch, Entry};

/// How much room is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes free on the file system at the last look; `u64::MAX` if that cannot be told.
    pub free_bytes: u64,
    /// Too little: refuse to take in records now, so that state changes can go on from what is prepared. Ends by itself when
    /// there is room again.
    pub low: bool,
}

/// Bytes in memory and on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Segments in use: the active one and the sealed ones.
    pub segments: usize,
    /// Length of the sealed segments' files.
    pub sealed_bytes: u64,
    /// Live bytes in them.
    pub live_bytes: u64,
    /// Freed segments that wait to be used again.
    pub spare_segments: usize,
    /// Memory held by the tail cache.
    pub cache_bytes: usize,
    /// Memory held by the read cache, with what answers hold of it.
    pub read_cache_bytes: usize,
}

/// What a part of a log holds, in offset order: the base for retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRange {
    /// Offset of its first record.
    pub first_offset: Offset,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Bytes of its batches.
    pub bytes: u64,
    /// Largest timestamp of its records, in milliseconds since 1970 UTC.
    pub max_timestamp: i64,
}

/// What is stored of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes of all its batches.
    pub bytes: u64,
    /// One for each sealed segment, and some for the active one. The first may begin below the log's start.
    pub ranges: Vec<StoredRange>,
}

/// An open data folder.
///
/// All methods may be called from any thread. Those that append, or that read from memory, never block on the disk.
pub struct Store {
    shared: Arc<Shared>,
    committer: Arc<Mutex<Committer>>,
    threads: Vec<JoinHandle<()>>,
    maintenance: Mutex<()>,
    recovered: Recovered,
    /// Given back last.
    guard: Option<Box<dyn LockGuard>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("folder", &self.shared.layout.root)
            .finish_non_exhaustive()
    }
}

/// How long the committer waits before it looks for space again. Only an entry larger than a segment can get there: for
/// all others the waiting is for a prepared segment.
const FULL_RETRY: Duration = Duration::from_millis(200);

/// Poisons the store if its thread panics: what it did not finish must not be taken for done.
struct PanicGuard<'a>(&'a Shared, &'static str);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(format!("the {} thread panicked", self.1));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn commit_loop(shared: &Shared, committer: &Mutex<Committer>) {
    let _guard = PanicGuard(shared, "commit");
    while !shared.queue.is_stopped() {
        let step = lock(committer).run_once(true);
        match step {
            // There may be more than one group took.
            Step::Committed => {}
            Step::Idle => {
                if shared.queue.wait() == Wake::Stop {
                    return;
                }
            }
            // One entry larger than a segment, and no space to make a segment longer.
            Step::Full => std::thread::sleep(FULL_RETRY),
            Step::Poisoned => return,
        }
    }
}

impl Store {
    /// Opens a folder, or creates one, and replays what it holds to `replay`. Then starts the threads that
    /// commit, prepare segments and read ahead.
    pub fn open(
        folder: &Path,
        disk: Arc<dyn Disk>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<Store, OpenError> {
        let mut store = Store::open_manual(folder, disk, options, replay)?;
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(format!("store-{name}"))
                .spawn(body)
                .map_err(|error| OpenError::from_io(folder, "start a thread for", error))
        };
        let (shared, committer) = (Arc::clone(&store.shared), Arc::clone(&store.committer));
        store.threads.push(spawn(
            "commit",
            Box::new(move || commit_loop(&shared, &committer)),
        )?);
        let shared = Arc::clone(&store.shared);
        let prepare = move || {
            let _guard = PanicGuard(&shared, "prepare");
            shared.preparer.run();
        };
        store.threads.push(spawn("prepare", Box::new(prepare))?);
        let shared = Arc::clone(&store.shared);
        let read_ahead = move || crate::read::ahead::run(&shared);
        store.shared.read_ahead.start();
        store.threads.push(spawn("read-ahead", Box::new(read_ahead))?);
        Ok(store)
    }

    /// The same without threads: nothing is committed unless [`Self::commit_once`] is called. For tests and simulations.
    #[expect(clippy::needless_pass_by_value, reason = "the same signature as `open`")]
    pub fn open_manual(
        folder: &Path,
        disk: Arc<dyn Disk>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<Store, OpenError> {
        let opened = recovery::open(folder, &disk, options, replay)?;
        let committer = Committer::new(Arc::clone(&opened.shared), opened.tail);
        Ok(Store {
            shared: opened.shared,
            committer: Arc::new(Mutex::new(committer)),
            threads: Vec::new(),
            maintenance: Mutex::new(()),
            recovered: opened.recovered,
            guard: Some(opened.guard),
        })
    }

    /// What opening found.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// The cluster id of the folder, as text: 22 characters, as Kafka writes it.
    pub fn cluster_id(&self) -> String {
        crate::format::meta::uuid_text(&self.shared.cluster)
    }

    /// Queues a batch and gives it the next number. Short and without IO: meant to be called under the lock that also
    /// assigns the offset, so that the order of the queue is the order of the offsets. The caller bounds how much it
    /// queues. It is not durable before [`Self::committed`] reaches the number.
    pub fn append_batch(&self, batch: Batch) -> Lsn {
        self.shared.queue.push(Entry::Batch(batch))
    }

    /// Queues a state entry, likewise.
    pub fn append_state(&self, bytes: Vec<u8>) -> Lsn {
        self.shared.queue.push(Entry::State(bytes))
    }

    /// Every entry up to here is durable (in relaxed mode: written) and can be read.
    pub fn committed(&self) -> Lsn {
        Lsn(self.shared.committed())
    }

    /// The last number given to an entry.
    pub fn last(&self) -> Lsn {
        self.shared.queue.last()
    }

    /// Blocks until an entry is committed. False if that will not happen: the store was poisoned or is closing.
    pub fn wait_committed(&self, lsn: Lsn) -> bool {
        self.shared.wait_committed(lsn.0)
    }

    /// Sets who is told of each commit. It is called on the commit thread, after readers can see the group; it should be
    /// quick, and may call back into the store except for [`Self::close`], [`Self::write_snapshot`] and
    /// [`Self::maintain`], which can wait for the commit thread. Only the first call has an effect.
    pub fn on_commit(&self, listener: Box<dyn for<'a> Fn(Commit<'a>) + Send + Sync>) {
        let _ = self.shared.commit_listener.set(listener);
    }

    /// Sets who is told of everything else, on whatever thread it happens. Only the first call has an effect.
    pub fn on_event(&self, listener: Box<dyn Fn(Event) + Send + Sync>) {
        let _ = self.shared.event_listener.set(listener);
    }

    /// Why the store takes no more writes, if so. Reads go on.
    pub fn poisoned(&self) -> Option<&str> {
        self.shared.poisoned()
    }

    /// Reads whole batches from memory: those from the one that contains `from` on that end below `upto`, as many as fit
    /// into `max_bytes`, and possibly fewer; at least one if asked, even if it is larger. `None` means that even the first
    /// one needs the disk, see [`Self::read`].
    pub fn try_read(
        &self,
        log: LogId,
        from: Offset,
        upto: Offset,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Option<Vec<Bytes>> {
        self.shared.try_read(
            log,
            Range {
                from,
                upto,
                max_bytes,
                at_least_one,
            },
        )
    }

    /// The same, from memory or disk. May block; what comes from disk is verified.
    pub fn read(
        &self,
        log: LogId,
        from: Offset,
        upto: Offset,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>, ReadError> {
        self.shared.read(
            log,
            Range {
                from,
                upto,
                max_bytes,
                at_least_one,
            },
        )
    }

    /// The first batch that reaches into `from..upto`, ends below `upto` and has a record at or after `timestamp`. May
    /// block on the disk.
    pub fn first_batch_at_or_after_time(
        &self,
        log: LogId,
        timestamp: i64,
        from: Offset,
        upto: Offset,
    ) -> Result<Option<Bytes>, ReadError> {
        self.shared
            .first_batch_at_or_after_time(log, timestamp, from, upto)
    }

    /// The largest timestamp in a log and where it is; `None` if the log is empty. From memory. A batch that lies below the
    /// log's start but in one segment with later ones can still be the answer.
    pub fn max_timestamp(&self, log: LogId) -> Option<MaxTimestamp> {
        self.shared.max_timestamp(log)
    }

    /// What is stored of a log.
    pub fn log_stats(&self, log: LogId) -> LogStats {
        self.shared.log_stats(log)
    }

    /// The logs that have batches, in ascending order.
    pub fn logs(&self) -> Vec<LogId> {
        let mut logs: Vec<_> = self.shared.read_state().index.logs.keys().copied().collect();
        logs.sort_unstable();
        logs
    }

    /// Everything below `offset` is dead; its space will be freed by [`Self::maintain`]. Call it once the decision is
    /// durable, and again for each log after an open: the store itself does not remember it.
    pub fn set_log_start(&self, log: LogId, offset: Offset) {
        self.shared.write_state().index.set_log_start(log, offset);
    }

    /// The whole log is dead, including batches that are still queued. Call it once the decision is durable, and after an
    /// open for each of [`Self::logs`] that no longer exists.
    pub fn drop_log(&self, log: LogId) {
        let last = self.shared.queue.last().0;
        let committed = self.shared.committed();
        let mut state = self.shared.write_state();
        state.index.drop_log(log, last);
        state.index.committed(committed);
    }

    /// Writes a snapshot that has the effects of all entries up to `lsn` and of none behind it. Blocks until those are
    /// durable: never call it under a lock that a listener takes. Older segments can then be freed, and the next start replays only what comes behind it. Of the earlier
    /// snapshots one is kept.
    pub fn write_snapshot(&self, lsn: Lsn, bytes: &[u8]) -> Result<(), SnapshotError> {
        if !self.threads.is_empty() {
            self.shared.wait_committed(lsn.0);
        }
        if self.shared.committed() < lsn.0 {
            return Err(match self.poisoned() {
                Some(message) => SnapshotError::Stopped(message.to_owned()),
                None => SnapshotError::NotCommitted {
                    at: lsn,
                    committed: self.committed(),
                },
            });
        }
        // A snapshot must never know more than the log after a power cut.
        if self.shared.options.durability == Durability::Relaxed && !lock(&self.committer).sync() {
            return Err(SnapshotError::Stopped(
                self.poisoned().unwrap_or_default().to_owned(),
            ));
        }
        self.shared.write_snapshot(lsn, bytes)
    }

    /// Whether it is time for a snapshot, `since_last` after the last one was written or the folder was opened: the log behind
    /// it has reached [`Options::snapshot_log_bytes`]; or some segment is behind it, and either
    /// [`Options::snapshot_interval`] has passed or space is low.
    pub fn is_snapshot_due(&self, since_last: Duration) -> bool {
        let options = &self.shared.options;
        let lag = self.shared.snapshot_lag_bytes();
        lag >= options.snapshot_log_bytes
            || (lag > 0 && (since_last >= options.snapshot_interval || self.space().low))
    }

    /// Frees segments that hold nothing live, and packs what little is live in old ones. Does a bounded amount of work;
    /// call it again while [`Maintained::more`] is set, and from time to time, but not under a lock that a listener takes.
    pub fn maintain(&self) -> Result<Maintained, MaintainError> {
        let _one_at_a_time = lock(&self.maintenance);
        // What declared batches dead must not be lost after they are gone.
        if self.shared.options.durability == Durability::Relaxed && !lock(&self.committer).sync() {
            return Ok(Maintained::default());
        }
        self.shared.maintain()
    }

    /// How much room is left.
    pub fn space(&self) -> Space {
        let (free_bytes, low) = self.shared.preparer.space();
        Space { free_bytes, low }
    }

    /// What the store occupies.
    pub fn usage(&self) -> Usage {
        let state = self.shared.read_state();
        let live = |segment: &Arc<crate::segment::Segment>| {
            segment.live_bytes.load(std::sync::atomic::Ordering::Relaxed)
        };
        Usage {
            segments: state.sealed.len() + 1,
            sealed_bytes: state.sealed.values().map(|segment| segment.file_bytes).sum(),
            live_bytes: state.sealed.values().map(live).sum(),
            spare_segments: self.shared.preparer.spares(),
            cache_bytes: state.cache.bytes(),
            read_cache_bytes: self.shared.read_cache.bytes(),
        }
    }

    /// One step of the committer: commits one group of what is queued. In manual mode only.
    pub fn commit_once(&self) -> Step {
        lock(&self.committer).run_once(false)
    }

    /// Commits what is queued, notes that the store was closed in good order, and gives the folder back. False if the store
    /// was poisoned, or is out of space with entries still queued.
    pub fn close(mut self) -> bool {
        self.shared.queue.stop();
        self.shared.preparer.close();
        let with_threads = !self.threads.is_empty();
        let mut committer = lock(&self.committer);
        let drained = loop {
            match committer.run_once(with_threads) {
                Step::Committed => {}
                Step::Idle => break true,
                Step::Full | Step::Poisoned => break false,
            }
        };
        let clean = drained && committer.mark_clean();
        drop(committer);
        self.end_threads();
        clean
    }

    fn end_threads(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A listener may hold the last reference to the store's owner; its thread then ends by itself.
            if thread.thread().id() == std::thread::current().id() {
                continue;
            }
            // A panic in it has been told by its guard.
            let _ = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end_threads();
        self.guard = None;
    }
}
