//! The segment files of a folder: which there are, whether they are what their names say, and the footers of the sealed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::disk::{Access, Disk, DiskFile};
use crate::error::{Damage, OpenError};
use crate::format::footer::{SUMMARY_BYTES, Summary, Trailer};
use crate::format::header::{HeaderError, SegmentHeader, SegmentKind};
use crate::format::{BLOCK_BYTES, ClusterId, FORMAT_VERSION, seed};
use crate::layout::{Layout, WalFile, parse_wal_name};
use crate::segment::Segment;

/// Read at the end of a file in one go: enough for trailer and summaries of some hundred logs.
const TAIL_BYTES: u64 = 32 << 10;

/// A segment file.
pub(super) struct Found {
    pub(super) header: SegmentHeader,
    pub(super) path: PathBuf,
    pub(super) file_bytes: u64,
    pub(super) seed: u32,
    /// What a sealed segment says about itself; `None` if there is no intact footer.
    pub(super) footer: Option<(Trailer, Vec<Summary>)>,
}

/// What the `wal` folder holds.
#[derive(Default)]
pub(super) struct Inventory {
    /// By ascending number.
    pub(super) segments: Vec<Found>,
    pub(super) spares: Vec<u64>,
    /// Higher than any epoch in any of the files.
    pub(super) next_epoch: u64,
}

fn io<'a>(path: &'a Path, action: &'static str) -> impl FnOnce(std::io::Error) -> OpenError + 'a {
    move |error| OpenError::from_io(path, action, error)
}

impl Found {
    /// Opens the file for reading whole blocks, and for writing.
    pub(super) fn open(&self, disk: &dyn Disk, access: Access) -> Result<Arc<dyn DiskFile>, OpenError> {
        disk.open(&self.path, access).map_err(io(&self.path, "open"))
    }

    /// The segment as the rest of the store knows it.
    pub(super) fn segment(&self, cluster: &ClusterId, lsns: (u64, u64)) -> Segment {
        let SegmentHeader {
            seq,
            epoch,
            kind,
            replaces,
            ..
        } = self.header;
        let mut segment = Segment::new(cluster, seq, epoch, kind, self.file_bytes, lsns);
        segment.replaces_from = replaces.0;
        segment
    }

    pub(super) fn damaged(&self, position: u64, what: impl Into<String>) -> OpenError {
        Damage {
            file: self.path.clone(),
            position,
            what: what.into(),
        }
        .into()
    }

    /// Checks the run entries of every log against the summaries.
    pub(super) fn entries_are_intact(&self, disk: &dyn Disk) -> Result<bool, OpenError> {
        let Some((trailer, summaries)) = &self.footer else {
            return Ok(false);
        };
        let file = self.open(disk, Access::Read)?;
        let start = trailer.entries_position as usize;
        let mut bytes = vec![0; (trailer.summaries_position as usize).saturating_sub(start)];
        file.read_at(&mut bytes, start as u64)
            .map_err(io(&self.path, "read"))?;
        Ok(summaries.iter().all(|summary| {
            let at = (summary.entries_position as usize).saturating_sub(start);
            let entries = bytes.get(at..at + summary.entries_bytes());
            entries.is_some_and(|entries| crc32c::crc32c_append(self.seed, entries) == summary.entries_crc)
        }))
    }
}

/// Reads trailer and summaries, if both are intact.
fn read_footer(
    file: &dyn DiskFile,
    file_bytes: u64,
    header: &SegmentHeader,
    seed: u32,
) -> std::io::Result<Option<(Trailer, Vec<Summary>)>> {
    let len = file_bytes.min(TAIL_BYTES);
    let tail_at = file_bytes - len;
    let mut tail = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_at(&mut tail, tail_at)?;
    let Some(block) = tail.len().checked_sub(BLOCK_BYTES).and_then(|at| tail.get(at..)) else {
        return Ok(None);
    };
    let Some(trailer) = Trailer::decode(block, header.epoch, seed) else {
        return Ok(None);
    };
    let position = u64::from(trailer.summaries_position);
    let bytes = trailer.summaries as usize * SUMMARY_BYTES;
    if position + bytes as u64 + BLOCK_BYTES as u64 != file_bytes {
        return Ok(None);
    }
    let mut apart = Vec::new();
    let summaries = match position.checked_sub(tail_at) {
        Some(at) => &tail[usize::try_from(at).unwrap_or(0)..tail.len() - BLOCK_BYTES],
        None => {
            apart.resize(bytes, 0);
            file.read_at(&mut apart, position)?;
            apart.as_slice()
        }
    };
    let intact = crc32c::crc32c_append(seed, summaries) == trailer.summaries_crc;
    Ok(intact.then(|| (trailer, Summary::decode_all(summaries))))
}

fn read_segment(disk: &dyn Disk, layout: &Layout, cluster: &ClusterId, seq: u64) -> Result<Found, OpenError> {
    let path = layout.segment(seq);
    let file = disk.open(&path, Access::Read).map_err(io(&path, "open"))?;
    let file_bytes = file.len().map_err(io(&path, "read"))?;
    let mut block = Buffer::zeroed(BLOCK_BYTES);
    let header = if file_bytes < BLOCK_BYTES as u64 {
        Err(HeaderError::NoSegment)
    } else {
        file.read_at(block.as_mut_slice(), 0).map_err(io(&path, "read"))?;
        SegmentHeader::decode(block.as_slice())
    };
    let damaged = |what: String| OpenError::Damaged {
        file: path.clone(),
        position: 0,
        what,
    };
    let header = header.map_err(|error| match error {
        HeaderError::NewerFormat(found) => OpenError::NewerFormat {
            file: path.clone(),
            found,
            supported: FORMAT_VERSION,
        },
        other => damaged(other.what()),
    })?;
    if header.cluster != *cluster {
        return Err(damaged("it belongs to another cluster".to_owned()));
    }
    if header.seq != seq {
        return Err(damaged(format!("it holds segment {:016x}", header.seq)));
    }
    if file_bytes < header.file_bytes {
        let what = format!(
            "the file has {file_bytes} bytes, it was made with {}",
            header.file_bytes
        );
        return Err(OpenError::Damaged {
            file: path,
            position: file_bytes,
            what,
        });
    }
    let seed = seed(cluster, header.epoch);
    let footer = read_footer(&*file, file_bytes, &header, seed).map_err(io(&path, "read"))?;
    Ok(Found {
        header,
        path,
        file_bytes,
        seed,
        footer,
    })
}

/// The epoch that a freed file was last used with; `None` if its header cannot tell.
fn spare_epoch(disk: &dyn Disk, path: &Path, cluster: &ClusterId) -> Option<u64> {
    let file = disk.open(path, Access::Read).ok()?;
    let mut block = [0; BLOCK_BYTES];
    file.read_at(&mut block, 0).ok()?;
    let header = SegmentHeader::decode(&block).ok()?;
    (header.cluster == *cluster).then_some(header.epoch)
}

/// Takes stock of the `wal` folder. Removes what a crash left unfinished, and segments that a packed one stands for.
pub(super) fn take(disk: &dyn Disk, layout: &Layout, cluster: &ClusterId) -> Result<Inventory, OpenError> {
    let mut inventory = Inventory::default();
    let mut last_epoch = 0;
    for entry in disk.list(&layout.wal).map_err(io(&layout.wal, "list"))? {
        let path = layout.wal.join(&entry.name);
        match parse_wal_name(&entry.name) {
            WalFile::Segment(seq) => {
                let found = read_segment(disk, layout, cluster, seq)?;
                last_epoch = last_epoch.max(found.header.epoch);
                inventory.segments.push(found);
            }
            WalFile::Spare(seq) => match spare_epoch(disk, &path, cluster) {
                Some(epoch) => {
                    last_epoch = last_epoch.max(epoch);
                    inventory.spares.push(seq);
                }
                // What it held from earlier uses is unknown, and so is which epochs would be fresh for it.
                None => disk.remove(&path).map_err(io(&path, "remove"))?,
            },
            WalFile::Unfinished => disk.remove(&path).map_err(io(&path, "remove"))?,
            WalFile::Foreign => {
                tracing::warn!(file = %path.display(), "not a file of the store; leaving it alone");
            }
        }
    }
    inventory.next_epoch = last_epoch + 1;
    inventory.segments.sort_by_key(|found| found.header.seq);
    remove_replaced(disk, &mut inventory)?;
    Ok(inventory)
}

/// A crash may come between the moment a packed segment takes effect and the removal of those it replaces.
fn remove_replaced(disk: &dyn Disk, inventory: &mut Inventory) -> Result<(), OpenError> {
    let packed: Vec<(u64, (u64, u64))> = inventory
        .segments
        .iter()
        .filter(|found| found.header.kind == SegmentKind::Packed)
        .map(|found| (found.header.seq, found.header.replaces))
        .collect();
    let replaced = |seq: u64| {
        packed
            .iter()
            .any(|(by, (from, to))| seq != *by && (*from..=*to).contains(&seq))
    };
    for found in inventory
        .segments
        .extract_if(.., |found| replaced(found.header.seq))
    {
        disk.remove(&found.path).map_err(io(&found.path, "remove"))?;
    }
    Ok(())
}
