//! Keeps bytes: one shared write-ahead log for all partitions and for the broker's own state.
//!
//! ```text
//!   append_batch, append_state                 try_read, read, by time                    write_snapshot, maintain
//!             |                                          |                                           |
//!         wal::queue                      index: log -> spans and runs                     snapshot, space (free, pack)
//!             | all that is queued               |               |                                   |
//!       wal::committer --- publishes -->  tail cache (RAM)   read::files                             |
//!             | one write, one sync                              |                                   |
//!             +------------------ Disk: segment files, snapshots, META, LOCK ------------------------+
//! ```
//!
//! - **Entries.** What is appended, a record batch or a state change, gets the next number of one sequence ([`Lsn`]). All
//!   that is queued becomes one *commit group*: one write, one sync. It is visible after that, never before.
//! - **Segments.** Groups fill segment files of fixed size that are written ahead of time and used again, so that a commit
//!   neither waits for space nor runs out of it. A full segment is sealed with an index of what it holds.
//! - **Reads.** The newest groups stay in memory for readers at the tail. Others are found through the index and read from
//!   the segment, and verified; who reads on finds the next ones in memory.
//! - **Recovery** ([`Replay`]): the newest snapshot, then every entry behind it, in order. What was acknowledged is there, or
//!   the start fails and names the damage; what was not acknowledged may be gone from the end.
//! - **Space.** A segment is freed when all in it is dead: batches below their log's start, and entries covered by a
//!   snapshot. What keeps an old segment alive although it is mostly dead is packed with its like into a new one.
//!
//! The store knows nothing of Kafka messages beyond five fields of a batch's header, and decides nothing: what is dead, when to
//! take a snapshot, and when to refuse appends is told by its owner. The formats are in `docs/format`, the reasons in
//! `docs/adr`.
//!
//! [`Lsn`]: anabranch_core::ids::Lsn

mod buffer;
mod cache;
mod disk;
mod error;
mod format;
mod index;
mod layout;
mod options;
mod read;
mod real_disk;
mod recovery;
mod segment;
mod shared;
#[cfg(any(test, feature = "sim"))]
pub mod sim_disk;
mod snapshot;
mod space;
mod store;
mod wal;

pub use disk::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard};
pub use error::{Damage, MaintainError, OpenError, ReadError, ReplayError, SnapshotError};
pub use options::{Durability, Options};
pub use read::MaxTimestamp;
pub use real_disk::RealDisk;
pub use recovery::{Recovered, Replay};
pub use shared::{Commit, Event};
pub use space::Maintained;
pub use store::{LogStats, Space, Store, StoredRange, Usage};
pub use wal::Batch;
pub use wal::committer::Step;
