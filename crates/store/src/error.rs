//! What can go wrong, in words for the person who runs the broker: each message names the thing and the cure.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_core::ids::{LogId, Lsn, Offset};

/// Damage that a checksum or a contradiction revealed. Nothing of it was deleted or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged at byte {position}: {what}", file.display())]
pub struct Damage {
    /// The file that holds the damage.
    pub file: PathBuf,
    /// Where the first damaged structure starts, in bytes from the start of the file.
    pub position: u64,
    /// What was expected and what was found.
    pub what: String,
}

/// Why a data folder could not be opened. Nothing was deleted in any of these cases.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process holds the folder's lock.
    #[error(
        "data folder {} is in use by {}: stop that process, or give this broker a folder of its own",
        folder.display(), holder(*pid)
    )]
    Locked {
        /// The data folder.
        folder: PathBuf,
        /// The holder's process id, when its lock file names one.
        pid: Option<u32>,
    },
    /// The folder was written by a later release.
    #[error(
        "{} has format version {found}, this release knows versions up to {supported}: start a release that \
         is at least as new as the one that wrote it",
        file.display()
    )]
    NewerFormat {
        /// The file that tells the version.
        file: PathBuf,
        /// The version it tells.
        found: u32,
        /// The newest version that this release reads.
        supported: u32,
    },
    /// The folder has content but was never a data folder.
    #[error(
        "{} is not a data folder: it holds {entry:?} but no META file; choose an empty or a new folder",
        folder.display()
    )]
    ForeignFolder {
        /// The folder.
        folder: PathBuf,
        /// One of the entries that do not belong there.
        entry: String,
    },
    /// The file system is mounted read-only.
    #[error("{} lies on a read-only file system: mount it writable, or choose another folder", path.display())]
    ReadOnly {
        /// What could not be written.
        path: PathBuf,
    },
    /// The process may not use the folder.
    #[error(
        "no permission to {action} {}: give this user read and write access to the data folder and all in it",
        path.display()
    )]
    Permission {
        /// What could not be used.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
    },
    /// The path, or one above it, is a file.
    #[error(
        "{} cannot be the data folder: this path, or one above it, is a file; choose another path, or move the \
         file away",
        path.display()
    )]
    NotAFolder {
        /// What should have been a folder.
        path: PathBuf,
    },
    /// No space is left for the first segment.
    #[error("no space left for {}: free some space on that file system and start again", path.display())]
    Full {
        /// What could not be written.
        path: PathBuf,
    },
    /// Acknowledged data cannot be read back as it was written.
    #[error(
        "{} is damaged at byte {position}: {what}. Nothing was changed or deleted. Restore this file from a \
         copy, or move the data folder away and restore the whole of it",
        file.display()
    )]
    Damaged {
        /// The file that holds the damage.
        file: PathBuf,
        /// Where the first damaged structure starts, in bytes from the start of the file.
        position: u64,
        /// What was expected and what was found.
        what: String,
    },
    /// The owner of the state refused what was stored.
    #[error("{} byte {position}: entry {lsn} cannot be replayed: {source}", file.display())]
    Replay {
        /// The file that holds the entry.
        file: PathBuf,
        /// Where the entry (or the group that holds it) starts.
        position: u64,
        /// The entry's number; for a snapshot, the one it was taken at.
        lsn: Lsn,
        /// The refusal.
        source: ReplayError,
    },
    /// An option has a value that cannot work.
    #[error("store option {name}: {problem}")]
    Option {
        /// The option's name.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// No folder or file can be at this path.
    #[error("cannot {action} {}: {why}; choose another path", path.display())]
    BadPath {
        /// What could not be used.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What is wrong with the path.
        why: &'static str,
    },
    /// Anything else that the operating system reported.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What could not be used.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// Why the owner of the state refused an entry during replay.
pub type ReplayError = Box<dyn std::error::Error + Send + Sync>;

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl From<Damage> for OpenError {
    fn from(Damage { file, position, what }: Damage) -> Self {
        OpenError::Damaged { file, position, what }
    }
}

/// What is said to be tried where a file or folder is made.
pub(crate) const CREATE: &str = "create";

impl OpenError {
    /// Sorts an IO error into the variant that tells the cure.
    pub(crate) fn from_io(path: &Path, action: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
            io::ErrorKind::PermissionDenied => OpenError::Permission { path, action },
            io::ErrorKind::NotADirectory => OpenError::NotAFolder { path },
            // Folders above it are made as they are needed, so what is missing cannot be made.
            io::ErrorKind::NotFound if action == CREATE => OpenError::BadPath {
                path,
                action,
                why: "its file system takes no new folders, or a link in the path leads nowhere",
            },
            io::ErrorKind::InvalidFilename => OpenError::BadPath {
                path,
                action,
                why: "a name in it is too long",
            },
            _ if is_out_of_space(&source) => OpenError::Full { path },
            _ => OpenError::Io { path, action, source },
        }
    }
}

/// Whether an error says that space ran out: on the file system, of a quota, or of a file's size.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Why a read of a log failed. Other ranges and other logs stay readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// What is stored there is not what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The index has nothing at an offset that was neither freed nor is ahead of the log's end.
    #[error(
        "log {log} has no batch with offset {offset}; the next one starts at {next}: a segment file is missing"
    )]
    Missing {
        /// The log.
        log: LogId,
        /// The offset that was asked for.
        offset: Offset,
        /// The first offset behind the hole.
        next: Offset,
    },
    /// The operating system could not read.
    #[error("cannot read {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Why a snapshot was not written. The previous one stays in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The entries it stands for are not all committed, and nobody is there to commit them.
    #[error("snapshot at entry {at} refused: only entries up to {committed} are committed")]
    NotCommitted {
        /// The entry that the snapshot was taken at.
        at: Lsn,
        /// The last committed entry.
        committed: Lsn,
    },
    /// The store takes no more writes.
    #[error("snapshot refused: {0}")]
    Stopped(String),
    /// The operating system could not write it.
    #[error("cannot write snapshot {}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Why a round of maintenance did less than it wanted. It can be called again at any time.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", file.display())]
pub struct MaintainError {
    /// The file.
    pub file: PathBuf,
    /// What was tried.
    pub action: &'static str,
    /// The system's reason.
    pub source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_become_the_variant_that_tells_the_cure() {
        let path = Path::new("/data/wal");
        let sort = |kind: io::ErrorKind| OpenError::from_io(path, "write", kind.into());
        assert!(matches!(
            sort(io::ErrorKind::ReadOnlyFilesystem),
            OpenError::ReadOnly { .. }
        ));
        assert!(matches!(
            sort(io::ErrorKind::PermissionDenied),
            OpenError::Permission { .. }
        ));
        assert!(matches!(
            sort(io::ErrorKind::NotADirectory),
            OpenError::NotAFolder { .. }
        ));
        assert!(matches!(sort(io::ErrorKind::StorageFull), OpenError::Full { .. }));
        assert!(matches!(
            sort(io::ErrorKind::QuotaExceeded),
            OpenError::Full { .. }
        ));
        assert!(matches!(sort(io::ErrorKind::NotFound), OpenError::Io { .. }));
        let text = OpenError::from_io(path, CREATE, io::ErrorKind::NotFound.into()).to_string();
        assert!(
            text.contains("takes no new folders") && text.contains("choose another path"),
            "{text}"
        );
        let text = sort(io::ErrorKind::InvalidFilename).to_string();
        assert!(text.contains("too long; choose another path"), "{text}");
    }

    #[test]
    fn messages_name_the_thing_and_the_cure() {
        let text = OpenError::Locked {
            folder: "/data".into(),
            pid: Some(41),
        }
        .to_string();
        assert!(
            text.contains("/data") && text.contains("process 41") && text.contains("stop"),
            "{text}"
        );
        let text = OpenError::from(Damage {
            file: "/d/wal/1.seg".into(),
            position: 4096,
            what: "x".into(),
        })
        .to_string();
        assert!(
            text.contains("1.seg") && text.contains("4096") && text.contains("Restore"),
            "{text}"
        );
    }
}
