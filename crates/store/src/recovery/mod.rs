//! Opening a folder: from files to a store that goes on where the last one ended.
//!
//! ```text
//! folder, lock, META  ->  segment headers and footers  ->  newest snapshot  ->  segments behind it, group by group  ->  tail
//! ```
//!
//! A segment that is sealed and older than the snapshot costs one read of its footer. Others are scanned. The log ends at
//! the first group that is not intact. Whether that end is *torn* (a group that was being written when the power went) or
//! *damage* (a group that had been acknowledged) is decided by proof: each group's header names the last entry that was
//! durable before it was written, so a later valid header, the next segment, or the snapshot shows that what is missing
//! had been there. A torn end is overwritten by the next group. Damage ends the start, and nothing is changed.

mod folder;
mod inventory;
mod proof;
mod replay;
mod scan;
mod segments;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anabranch_core::ids::Lsn;

use crate::cache::TailCache;
use crate::disk::{Access, Disk, LockGuard};
use crate::error::{CREATE, OpenError};
use crate::format::BLOCK_BYTES;
use crate::layout::Layout;
use crate::options::Options;
use crate::shared::{Shared, SharedStart, State};
use crate::snapshot;
use crate::wal::committer::Tail;
use crate::wal::prepare::{Prepared, Preparer, PreparerStart, Wanted};

pub use replay::Replay;
use scan::Chain;
use segments::Rebuild;

/// What a start found.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The last entry of the log.
    pub last: Lsn,
    /// The entry of the snapshot that the start began from.
    pub snapshot: Option<Lsn>,
    /// Entries that were replayed behind the snapshot.
    pub replayed: u64,
    /// Whether the store had been closed in good order.
    pub clean: bool,
    /// Whether the folder was created by this start.
    pub created: bool,
    /// What was amiss and could be made good, for the person who runs the broker.
    pub warnings: Vec<String>,
}

/// An opened folder, before threads are started.
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tail: Tail,
    pub(crate) recovered: Recovered,
    pub(crate) guard: Box<dyn LockGuard>,
}

/// Opens a folder and replays what it holds.
pub(crate) fn open(
    root: &Path,
    disk: &Arc<dyn Disk>,
    options: Options,
    replay: &mut dyn Replay,
) -> Result<Opened, OpenError> {
    options.check()?;
    let layout = Layout::new(root);
    let (meta, guard) = folder::open(&**disk, &layout, &options)?;
    let inventory = inventory::take(&**disk, &layout, &meta.cluster)?;
    let loaded = snapshot::load(&**disk, &layout, &meta.cluster)?;

    let snapshot_lsn = loaded.newest.as_ref().map_or(0, |(lsn, _)| *lsn);
    if let Some((lsn, bytes)) = &loaded.newest {
        replay.snapshot(bytes).map_err(|source| OpenError::Replay {
            file: layout.snapshot(*lsn),
            position: 0,
            lsn: Lsn(*lsn),
            source,
        })?;
    }
    let created = inventory.segments.is_empty() && loaded.kept.is_empty();
    let access = if options.direct_io {
        Access::Direct
    } else {
        Access::Write
    };
    let preparer = Preparer::new(PreparerStart {
        disk: Arc::clone(disk),
        layout: layout.clone(),
        cluster: meta.cluster,
        segment_bytes: options.segment_bytes,
        access,
        preformat: options.preformat,
        free_bytes_min: options.free_bytes_min(),
        next_epoch: inventory.next_epoch,
        spares: inventory.spares,
    });

    let mut rebuild = Rebuild::new(&**disk, &layout, meta.cluster, snapshot_lsn, access);
    rebuild.snapshot_damage = loaded.damaged.first().cloned();
    let end = rebuild.segments(&inventory.segments, replay)?;
    snapshot::quarantine(&**disk, &layout, &loaded.damaged)?;
    let mut recovered = Recovered {
        last: Lsn(end.chain.last_lsn),
        snapshot: loaded.newest.as_ref().map(|(lsn, _)| Lsn(*lsn)),
        replayed: rebuild.replayed,
        clean: end.clean,
        created,
        warnings: std::mem::take(&mut rebuild.warnings),
    };
    let told = |(path, what): &(std::path::PathBuf, String)| {
        format!("snapshot {} was damaged: {what}", path.display())
    };
    recovered.warnings.extend(loaded.damaged.iter().map(told));
    for warning in &recovered.warnings {
        tracing::warn!(warning, "recovery");
    }

    let (index, sealed, lists) = rebuild.finish();
    let active = active_segment(end.active, &preparer, &layout, end.next_seq)?;
    let tail = tail_of(&active, end.position, end.first_lsn, end.chain);
    match end.prepared {
        Some(prepared) => preparer.found(prepared),
        None => preparer.want(Wanted {
            seq: active.segment.seq + 1,
            small_groups: true,
        }),
    }
    let state = State {
        index,
        cache: TailCache::new(options.cache_bytes),
        sealed,
        active: active.segment,
    };
    let shared = Shared::new(SharedStart {
        disk: Arc::clone(disk),
        layout,
        options,
        cluster: meta.cluster,
        preparer,
        state,
        committed: end.chain.last_lsn,
        snapshots: loaded.kept,
    });
    for (epoch, list) in lists {
        shared.files.keep_entries(epoch, list);
    }
    Ok(Opened {
        shared: Arc::new(shared),
        tail,
        recovered,
        guard,
    })
}

/// The segment that the log goes on in; a new one if none was found.
fn active_segment(
    found: Option<Prepared>,
    preparer: &Preparer,
    layout: &Layout,
    next_seq: u64,
) -> Result<Prepared, OpenError> {
    match found {
        Some(active) => Ok(active),
        None => preparer
            .make_unfilled(next_seq)
            .map_err(|error| OpenError::from_io(&layout.segment(next_seq), CREATE, error)),
    }
}

fn tail_of(active: &Prepared, position: Option<u64>, first_lsn: Option<u64>, chain: Chain) -> Tail {
    let position = position.unwrap_or(BLOCK_BYTES as u64);
    Tail {
        segment: Arc::clone(&active.segment),
        file: Arc::clone(&active.file),
        position,
        first_lsn: first_lsn.unwrap_or(chain.last_lsn + 1),
        last_lsn: chain.last_lsn,
        durable_lsn: chain.last_lsn,
        group_seq: chain.group_seq,
        group_crc: chain.group_crc,
        counted_from: (chain.group_seq, position),
    }
}

/// Sealed segments by number.
type Sealed = BTreeMap<u64, Arc<crate::segment::Segment>>;
