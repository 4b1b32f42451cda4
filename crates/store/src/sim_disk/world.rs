//! What the simulated disk holds: what readers see, what is durable, and what lies between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Fault;
use super::content::Content;
use crate::disk::DirEntry;

/// What survives of a write does so sector by sector.
const SECTOR_BYTES: usize = 512;

/// A small generator of random numbers: the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Debug)]
enum FileChange {
    Write { position: usize, bytes: Content },
    Len(usize),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    visible: Content,
    durable: Content,
    /// Since the last sync.
    changes: Vec<FileChange>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create { path: PathBuf, inode: u64 },
    Remove { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, inode: u64 },
}

impl NameChange {
    fn folder(&self) -> Option<&Path> {
        match self {
            NameChange::Create { path, .. } | NameChange::Remove { path } => path.parent(),
            NameChange::Rename { to, .. } => to.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameChange::Create { path, inode } => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Remove { path } => {
                names.remove(path);
            }
            NameChange::Rename { from, to, inode } => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), *inode);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct World {
    inodes: BTreeMap<u64, Inode>,
    pub(super) names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    name_changes: Vec<NameChange>,
    folders: BTreeSet<PathBuf>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) operations: u64,
    pub(super) faults: BTreeMap<u64, Fault>,
    pub(super) off: bool,
    pub(super) read_only: bool,
    pub(super) capacity: u64,
    pub(super) rng: Rng,
}

fn place(position: u64) -> io::Result<usize> {
    usize::try_from(position).map_err(io::Error::other)
}

/// What the power cut, or a failed sync, left of unsynced changes.
fn apply_some(content: &mut Content, changes: &[FileChange], rng: &mut Rng) {
    // Often all or nothing, sometimes a few sectors, sometimes nearly all.
    let percent = match rng.below(5) {
        0 => 0,
        1 => 100,
        2 => 10,
        3 => 90,
        _ => 50,
    };
    for change in changes {
        match change {
            FileChange::Len(len) => {
                if rng.chance(percent) {
                    content.resize(*len);
                }
            }
            FileChange::Write { position, bytes } => {
                for (nth, sector) in bytes.to_vec().chunks(SECTOR_BYTES).enumerate() {
                    if rng.chance(percent) {
                        content.write(position + nth * SECTOR_BYTES, sector);
                    }
                }
            }
        }
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        World {
            inodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            name_changes: Vec::new(),
            folders: BTreeSet::from([PathBuf::from("/")]),
            locks: BTreeSet::new(),
            operations: 0,
            faults: BTreeMap::new(),
            off: false,
            read_only: false,
            capacity: u64::MAX,
            rng: Rng::new(seed),
        }
    }

    pub(super) fn powered(&self) -> io::Result<()> {
        if self.off {
            Err(io::Error::other("the power is off"))
        } else {
            Ok(())
        }
    }

    /// Counts an operation; tells the fault that hits it.
    fn operate(&mut self) -> io::Result<Option<Fault>> {
        self.powered()?;
        if self.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let fault = self.faults.remove(&self.operations);
        self.operations += 1;
        if fault == Some(Fault::PowerCut) {
            self.off = true;
        }
        Ok(fault)
    }

    fn error(fault: Fault) -> io::Error {
        match fault {
            Fault::PowerCut => io::Error::other("the power went off"),
            Fault::IoError => io::Error::from_raw_os_error(5),
            Fault::NoSpace => io::ErrorKind::StorageFull.into(),
        }
    }

    pub(super) fn inode(&self, path: &Path) -> io::Result<u64> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn visible(&self, path: &Path) -> Option<Vec<u8>> {
        Some(self.inodes.get(self.names.get(path)?)?.visible.to_vec())
    }

    pub(super) fn used(&self) -> u64 {
        let inodes: BTreeSet<_> = self.names.values().collect();
        inodes.into_iter().map(|inode| self.len(*inode)).sum()
    }

    pub(super) fn len(&self, inode: u64) -> u64 {
        self.inodes
            .get(&inode)
            .map_or(0, |inode| inode.visible.len() as u64)
    }

    /// Changes a file beyond the control of the operating system.
    pub(super) fn change(&mut self, path: &Path, mut change: impl FnMut(&mut Vec<u8>) -> bool) -> bool {
        let Some(inode) = self.names.get(path).and_then(|inode| self.inodes.get_mut(inode)) else {
            return false;
        };
        let mut content = inode.visible.to_vec();
        let done = change(&mut content);
        inode.changes.clear();
        inode.visible = Content::from(&content[..]);
        inode.durable = inode.visible.clone();
        done
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<u64> {
        let fault = self.operate()?;
        if let Some(fault) = fault.filter(|fault| *fault != Fault::PowerCut) {
            return Err(Self::error(fault));
        }
        let inode = match self.names.get(path) {
            Some(&inode) => {
                if let Some(file) = self.inodes.get_mut(&inode) {
                    file.visible.resize(0);
                    file.changes.push(FileChange::Len(0));
                }
                inode
            }
            None => {
                let inode = self.inodes.len() as u64;
                self.inodes.insert(inode, Inode::default());
                self.change_name(NameChange::Create {
                    path: path.to_owned(),
                    inode,
                });
                inode
            }
        };
        fault.map_or(Ok(inode), |fault| Err(Self::error(fault)))
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    /// A fault other than a power cut leaves the names as they are; a power cut may come before or after.
    fn name_operation(&mut self, change: NameChange) -> io::Result<()> {
        let fault = self.operate()?;
        if fault.is_none_or(|fault| fault == Fault::PowerCut) {
            self.change_name(change);
        }
        fault.map_or(Ok(()), |fault| Err(Self::error(fault)))
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.powered()?;
        let inode = self.inode(from)?;
        self.name_operation(NameChange::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
            inode,
        })
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.powered()?;
        self.inode(path)?;
        self.name_operation(NameChange::Remove {
            path: path.to_owned(),
        })
    }

    /// Folders themselves are durable at once: the store makes them before anything of value is in them.
    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        if let Some(fault) = self.operate()? {
            return Err(Self::error(fault));
        }
        self.folders.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.powered()?;
        if !self.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name_in = |child: &Path| {
            let name = child.file_name().filter(|_| child.parent() == Some(path))?;
            Some(name.to_string_lossy().into_owned())
        };
        let files = self.names.iter().filter_map(|(child, inode)| {
            Some(DirEntry {
                name: name_in(child)?,
                is_dir: false,
                bytes: self.len(*inode),
            })
        });
        let folders = self.folders.iter().filter_map(|child| {
            Some(DirEntry {
                name: name_in(child)?,
                is_dir: true,
                bytes: 0,
            })
        });
        let mut entries: Vec<_> = files.chain(folders).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        self.powered()?;
        if !self.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(fault) = self.operate()? {
            return Err(Self::error(fault));
        }
        let durable = &mut self.durable_names;
        self.name_changes.retain(|change| {
            let here = change.folder() == Some(path);
            if here {
                change.apply(durable);
            }
            !here
        });
        Ok(())
    }

    pub(super) fn read(&self, inode: u64, buf: &mut [u8], position: u64) -> io::Result<()> {
        self.powered()?;
        let position = place(position)?;
        let file = self.inodes.get(&inode);
        match file.is_some_and(|file| file.visible.read(position, buf)) {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    pub(super) fn write(&mut self, inode: u64, buf: &[u8], position: u64) -> io::Result<()> {
        let fault = self.operate()?;
        let position = place(position)?;
        let growth = (position + buf.len()).saturating_sub(place(self.len(inode))?);
        if growth > 0 && growth as u64 > self.capacity.saturating_sub(self.used()) {
            return Err(Self::error(Fault::NoSpace));
        }
        let len = match fault {
            Some(Fault::NoSpace) => 0,
            // Some of it may have been written.
            Some(Fault::IoError) => place(self.rng.below(buf.len() as u64 + 1))?,
            Some(Fault::PowerCut) | None => buf.len(),
        };
        if let Some(file) = self.inodes.get_mut(&inode).filter(|_| len > 0) {
            let bytes = Content::from(&buf[..len]);
            file.visible.write_shared(position, &bytes);
            file.changes.push(FileChange::Write { position, bytes });
        }
        fault.map_or(Ok(()), |fault| Err(Self::error(fault)))
    }

    pub(super) fn set_len(&mut self, inode: u64, bytes: u64) -> io::Result<()> {
        if let Some(fault) = self.operate()? {
            return Err(Self::error(fault));
        }
        let growth = bytes.saturating_sub(self.len(inode));
        if growth > 0 && growth > self.capacity.saturating_sub(self.used()) {
            return Err(Self::error(Fault::NoSpace));
        }
        let len = place(bytes)?;
        if let Some(file) = self.inodes.get_mut(&inode) {
            file.visible.resize(len);
            file.changes.push(FileChange::Len(len));
        }
        Ok(())
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        let fault = self.operate()?;
        let Some(file) = self.inodes.get_mut(&inode) else {
            return Ok(());
        };
        match fault {
            None => {
                for change in std::mem::take(&mut file.changes) {
                    match change {
                        FileChange::Len(len) => file.durable.resize(len),
                        FileChange::Write { position, bytes } => {
                            file.durable.write_shared(position, &bytes);
                        }
                    }
                }
                Ok(())
            }
            Some(Fault::PowerCut) => Err(Self::error(Fault::PowerCut)),
            Some(fault) => {
                // Reported once; what did not reach the disk is taken for clean from now on.
                apply_some(&mut file.durable, &file.changes, &mut self.rng);
                file.changes.clear();
                Err(Self::error(fault))
            }
        }
    }

    pub(super) fn take_away(&mut self, path: &Path) -> bool {
        self.durable_names.remove(path);
        self.names.remove(path).is_some()
    }

    pub(super) fn duplicate(&self) -> World {
        let mut copy = World::new(self.rng.clone().next_u64());
        copy.capacity = self.capacity;
        copy.folders.clone_from(&self.folders);
        copy.names.clone_from(&self.names);
        copy.durable_names.clone_from(&self.names);
        for (inode, file) in &self.inodes {
            let (visible, durable) = (file.visible.clone(), file.visible.clone());
            copy.inodes.insert(
                *inode,
                Inode {
                    visible,
                    durable,
                    changes: Vec::new(),
                },
            );
        }
        copy
    }

    pub(super) fn survivors(&self, seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let mut after = World::new(rng.next_u64());
        after.capacity = self.capacity;
        after.folders.clone_from(&self.folders);
        after.names.clone_from(&self.durable_names);
        let percent = [0, 50, 100, 90][usize::try_from(rng.below(4)).unwrap_or(0)];
        for change in &self.name_changes {
            if rng.chance(percent) {
                change.apply(&mut after.names);
            }
        }
        for (inode, file) in &self.inodes {
            let mut durable = file.durable.clone();
            apply_some(&mut durable, &file.changes, &mut rng);
            after.inodes.insert(
                *inode,
                Inode {
                    visible: durable.clone(),
                    durable,
                    changes: Vec::new(),
                },
            );
        }
        after.durable_names.clone_from(&after.names);
        after
    }
}
