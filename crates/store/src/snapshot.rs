//! Snapshots: the owner's state as of one entry, so that a start replays only what came after it.
//!
//! A snapshot is written beside the others, made durable, and only then given its name. Two are kept: should the newest
//! turn out to be damaged, the one before takes its place, and every entry after that one is still in the log.

use std::io;
use std::path::PathBuf;

use anabranch_core::ids::Lsn;

use crate::disk::{Access, Disk};
use crate::error::{OpenError, SnapshotError};
use crate::format::snapshot::{SNAPSHOT_HEADER_BYTES, SnapshotHeader};
use crate::format::{ClusterId, FORMAT_VERSION};
use crate::layout::{Layout, parse_snapshot_name};
use crate::shared::Shared;

/// How many snapshots are kept.
const KEPT: usize = 2;

/// What a start finds.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// The newest intact one.
    pub(crate) newest: Option<(u64, Vec<u8>)>,
    /// Entries of all that are kept, ascending.
    pub(crate) kept: Vec<u64>,
    /// Those that are not intact, and why.
    pub(crate) damaged: Vec<(PathBuf, String)>,
}

/// Reads a whole file.
pub(crate) fn read_file(disk: &dyn Disk, path: &std::path::Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Access::Read)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Writes a file so that it is there as a whole or not at all.
pub(crate) fn write_file(disk: &dyn Disk, path: &std::path::Path, parts: &[&[u8]]) -> io::Result<()> {
    let unfinished = path.with_extension("tmp");
    let written = || {
        let file = disk.create(&unfinished, Access::Write)?;
        let mut position = 0;
        for part in parts {
            file.write_at(part, position)?;
            position += part.len() as u64;
        }
        file.sync_data()?;
        disk.rename(&unfinished, path)?;
        disk.sync_dir(path.parent().unwrap_or(path))
    };
    let result = written();
    if result.is_err() {
        // Gives the space back; the error that counts is the first one.
        let _ = disk.remove(&unfinished);
    }
    result
}

fn check(bytes: &[u8], cluster: &ClusterId, lsn: u64) -> Result<(), Result<u32, String>> {
    let header = SnapshotHeader::decode(bytes).map_err(|error| error.map_err(str::to_owned))?;
    let payload = bytes.get(SNAPSHOT_HEADER_BYTES..).unwrap_or(&[]);
    let problem = if header.cluster != *cluster {
        "it belongs to another cluster"
    } else if header.lsn != lsn {
        "its name and its header tell different entries"
    } else if header.payload_bytes != payload.len() as u64 {
        "its length is not what its header says"
    } else if header.payload_crc != crc32c::crc32c(payload) {
        "its content fails the checksum"
    } else {
        return Ok(());
    };
    Err(Err(problem.to_owned()))
}

/// Finds the newest intact snapshot.
pub(crate) fn load(disk: &dyn Disk, layout: &Layout, cluster: &ClusterId) -> Result<Loaded, OpenError> {
    let io = |path: &std::path::Path| {
        let path = path.to_owned();
        move |error| OpenError::from_io(&path, "read", error)
    };
    let mut loaded = Loaded::default();
    let mut lsns = Vec::new();
    for entry in disk.list(&layout.snapshots).map_err(io(&layout.snapshots))? {
        if entry.name.ends_with(".tmp") {
            let path = layout.snapshots.join(&entry.name);
            disk.remove(&path).map_err(io(&path))?;
        }
        lsns.extend(parse_snapshot_name(&entry.name));
    }
    lsns.sort_unstable();
    while let Some(lsn) = lsns.pop() {
        let path = layout.snapshot(lsn);
        let mut bytes = read_file(disk, &path).map_err(io(&path))?;
        match check(&bytes, cluster, lsn) {
            Ok(()) => {
                bytes.drain(..SNAPSHOT_HEADER_BYTES);
                loaded.newest = Some((lsn, bytes));
                lsns.push(lsn);
                break;
            }
            Err(Ok(found)) => {
                return Err(OpenError::NewerFormat {
                    file: path,
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            Err(Err(what)) => loaded.damaged.push((path, what)),
        }
    }
    // Of the older ones, at most one more is of use; its content is looked at when it is needed.
    loaded.kept = lsns;
    Ok(loaded)
}

/// Moves damaged snapshots out of the way, so that they are kept but no more taken for snapshots.
pub(crate) fn quarantine(
    disk: &dyn Disk,
    layout: &Layout,
    damaged: &[(PathBuf, String)],
) -> Result<(), OpenError> {
    for (path, what) in damaged {
        let aside = path.with_extension("snap.damaged");
        tracing::warn!(file = %path.display(), what, "snapshot is damaged; using the one before");
        disk.rename(path, &aside)
            .map_err(|error| OpenError::from_io(path, "rename", error))?;
    }
    if !damaged.is_empty() {
        disk.sync_dir(&layout.snapshots)
            .map_err(|error| OpenError::from_io(&layout.snapshots, "sync", error))?;
    }
    Ok(())
}

impl Shared {
    /// Bytes of the sealed segments that a start would replay behind the newest snapshot.
    pub(crate) fn snapshot_lag_bytes(&self) -> u64 {
        let newest = self.lock_snapshots().last().copied().unwrap_or(0);
        let state = self.read_state();
        let behind = state.sealed.values().filter(|segment| segment.lsns.1 > newest);
        behind.map(|segment| segment.file_bytes).sum()
    }

    /// Writes a snapshot whose entries are all durable, and removes those that are too many.
    pub(crate) fn write_snapshot(&self, lsn: Lsn, bytes: &[u8]) -> Result<(), SnapshotError> {
        let path = self.layout.snapshot(lsn.0);
        let io = |source| SnapshotError::Io {
            file: path.clone(),
            source,
        };
        let header = SnapshotHeader {
            cluster: self.cluster,
            lsn: lsn.0,
            payload_bytes: bytes.len() as u64,
            payload_crc: crc32c::crc32c(bytes),
        };
        let mut kept = self.lock_snapshots();
        write_file(&*self.disk, &path, &[&header.encode(), bytes]).map_err(io)?;
        if !kept.contains(&lsn.0) {
            kept.push(lsn.0);
            kept.sort_unstable();
        }
        while kept.len() > KEPT {
            let oldest = self.layout.snapshot(kept[0]);
            self.disk
                .remove(&oldest)
                .map_err(|source| SnapshotError::Io { file: oldest, source })?;
            kept.remove(0);
        }
        Ok(())
    }
}
