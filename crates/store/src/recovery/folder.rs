//! The data folder as a whole: is it one, is it free, what does META say.

use std::path::Path;

use crate::disk::{Disk, LockError, LockGuard};
use crate::error::{CREATE, OpenError};
use crate::format::FORMAT_VERSION;
use crate::format::meta::{Meta, MetaError, cluster_id_from};
use crate::layout::Layout;
use crate::options::Options;
use crate::snapshot::{read_file, write_file};

/// What an unfinished creation may have left behind, and what file systems put into their root.
const HARMLESS: [&str; 5] = ["LOCK", "META.tmp", "wal", "snapshots", "lost+found"];

fn io<'a>(path: &'a Path, action: &'static str) -> impl FnOnce(std::io::Error) -> OpenError + 'a {
    move |error| OpenError::from_io(path, action, error)
}

/// Locks the folder and reads META; creates both if the folder is empty or missing.
pub(super) fn open(
    disk: &dyn Disk,
    layout: &Layout,
    options: &Options,
) -> Result<(Meta, Box<dyn LockGuard>), OpenError> {
    let root = &layout.root;
    let entries = match disk.list(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            disk.create_dir_all(root).map_err(io(root, CREATE))?;
            if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                disk.sync_dir(parent).map_err(io(parent, "sync"))?;
            }
            Vec::new()
        }
        other => other.map_err(io(root, "list"))?,
    };
    let exists = entries.iter().any(|entry| entry.name == "META");
    if !exists
        && let Some(foreign) = entries
            .iter()
            .find(|entry| !HARMLESS.contains(&entry.name.as_str()))
    {
        return Err(OpenError::ForeignFolder {
            folder: root.clone(),
            entry: foreign.name.clone(),
        });
    }
    let guard = disk.lock(&layout.lock()).map_err(|error| match error {
        LockError::Held(pid) => OpenError::Locked {
            folder: root.clone(),
            pid,
        },
        LockError::Io(error) => OpenError::from_io(&layout.lock(), "lock", error),
    })?;
    let meta = if exists {
        read_meta(disk, layout)?
    } else {
        create(disk, layout, options)?
    };
    // A process that was killed may have left names that are visible but not yet durable.
    for folder in [root, &layout.wal, &layout.snapshots] {
        disk.sync_dir(folder).map_err(io(folder, "sync"))?;
    }
    Ok((meta, guard))
}

fn read_meta(disk: &dyn Disk, layout: &Layout) -> Result<Meta, OpenError> {
    let file = layout.meta();
    let bytes = read_file(disk, &file).map_err(io(&file, "read"))?;
    Meta::decode(&bytes).map_err(|error| match error {
        MetaError::NewerFormat(found) => OpenError::NewerFormat {
            file: file.clone(),
            found,
            supported: FORMAT_VERSION,
        },
        MetaError::Damaged(what) => OpenError::Damaged {
            file: file.clone(),
            position: 0,
            what: what.to_owned(),
        },
    })
}

fn create(disk: &dyn Disk, layout: &Layout, options: &Options) -> Result<Meta, OpenError> {
    for folder in [&layout.wal, &layout.snapshots] {
        disk.create_dir_all(folder).map_err(io(folder, CREATE))?;
        let content = disk.list(folder).map_err(io(folder, "list"))?;
        if let Some(entry) = content.first() {
            return Err(OpenError::Damaged {
                file: layout.meta(),
                position: 0,
                what: format!(
                    "it is missing, although {} holds {:?}",
                    folder.display(),
                    entry.name
                ),
            });
        }
    }
    disk.sync_dir(&layout.root).map_err(io(&layout.root, "sync"))?;
    let cluster = options
        .cluster_id
        .unwrap_or_else(|| cluster_id_from(disk.random(), disk.random()));
    let meta = Meta {
        version: FORMAT_VERSION,
        cluster,
        created_ms: options.now_ms,
    };
    let file = layout.meta();
    write_file(disk, &file, &[meta.encode().as_bytes()]).map_err(io(&file, "write"))?;
    Ok(meta)
}
