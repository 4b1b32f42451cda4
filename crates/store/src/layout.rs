//! Where things are in the data folder.
//!
//! ```text
//! LOCK                        held while a store is open; names the process
//! META                        format version, cluster id, time of creation
//! wal/<seq>.seg               segments, numbered in hexadecimal
//! wal/spare-<seq>.seg         freed segments that will be used again
//! wal/*.tmp                   unfinished; removed at the next start
//! snapshots/<lsn>.snap        state as of that entry, in hexadecimal; the newest two are kept
//! ```

use std::path::{Path, PathBuf};

/// The paths of one data folder.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
    pub(crate) wal: PathBuf,
    pub(crate) snapshots: PathBuf,
}

/// A file of the `wal` folder, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalFile {
    Segment(u64),
    Spare(u64),
    Unfinished,
    Foreign,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        Layout {
            root: root.to_owned(),
            wal: root.join("wal"),
            snapshots: root.join("snapshots"),
        }
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("LOCK")
    }

    pub(crate) fn meta(&self) -> PathBuf {
        self.root.join("META")
    }

    pub(crate) fn segment(&self, seq: u64) -> PathBuf {
        self.wal.join(format!("{seq:016x}.seg"))
    }

    pub(crate) fn spare(&self, seq: u64) -> PathBuf {
        self.wal.join(format!("spare-{seq:016x}.seg"))
    }

    pub(crate) fn unfinished(&self, name: &str) -> PathBuf {
        self.wal.join(format!("{name}.tmp"))
    }

    pub(crate) fn snapshot(&self, lsn: u64) -> PathBuf {
        self.snapshots.join(format!("{lsn:016x}.snap"))
    }
}

fn parse_hex(text: &str) -> Option<u64> {
    let plain = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u64::from_str_radix(text, 16).ok())?
}

/// What a name in the `wal` folder stands for.
pub(crate) fn parse_wal_name(name: &str) -> WalFile {
    if name.ends_with(".tmp") {
        return WalFile::Unfinished;
    }
    let Some(stem) = name.strip_suffix(".seg") else {
        return WalFile::Foreign;
    };
    match stem.strip_prefix("spare-") {
        Some(seq) => parse_hex(seq).map_or(WalFile::Foreign, WalFile::Spare),
        None => parse_hex(stem).map_or(WalFile::Foreign, WalFile::Segment),
    }
}

/// The entry that a snapshot file's name tells.
pub(crate) fn parse_snapshot_name(name: &str) -> Option<u64> {
    parse_hex(name.strip_suffix(".snap")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_as_written() {
        let layout = Layout::new(Path::new("/d"));
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            parse_wal_name(&name(layout.segment(0xabc))),
            WalFile::Segment(0xabc)
        );
        assert_eq!(parse_wal_name(&name(layout.spare(7))), WalFile::Spare(7));
        assert_eq!(
            parse_wal_name(&name(layout.unfinished("next"))),
            WalFile::Unfinished
        );
        assert_eq!(
            parse_snapshot_name(&name(layout.snapshot(u64::MAX))),
            Some(u64::MAX)
        );
    }

    #[test]
    fn other_names_are_foreign() {
        for name in [
            "x.seg",
            "1.seg",
            "00000000000000AB.seg",
            "+000000000000001.seg",
            "notes.txt",
        ] {
            assert_eq!(parse_wal_name(name), WalFile::Foreign, "{name}");
        }
        assert_eq!(parse_snapshot_name("0000000000000001.snap.damaged"), None);
    }
}
