//! When the disk fails, and how.
//!
//! The store's simulated disk knows what of the unsynced bytes survives a power cut, and what a failed sync leaves. This
//! layer decides at which operation that happens, and remembers which one it was, so that a run can tell in what
//! situation it has been. A *kill* differs from a power cut: the process ends at once, but the operating system goes
//! on, and what was written stays readable without being durable.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_store::sim_disk::{Fault, SimDisk};
use anabranch_store::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard};

/// What an operation does, as far as faults care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writing bytes, reserving space, changing a length.
    Write,
    /// Making bytes durable.
    Sync,
    /// Creating, renaming or removing a name, and making names durable.
    Name,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is killed.
    Kill,
    /// The power goes.
    PowerCut,
}

/// What will go wrong, and what has.
#[derive(Debug, Default)]
struct Plan {
    /// The process ends at the operation of this number from now, 1 being the next.
    end_in: Option<(u64, End)>,
    ended: Option<(Kind, PathBuf)>,
    /// The next operation of this kind on a segment fails with an IO error.
    fail_next: Option<Kind>,
    failed: Option<Kind>,
}

/// A disk with a plan: what one process sees of it.
#[derive(Clone)]
pub struct FaultDisk {
    sim: Arc<SimDisk>,
    plan: Arc<Mutex<Plan>>,
}

struct FaultFile {
    inner: Arc<dyn DiskFile>,
    path: PathBuf,
    disk: FaultDisk,
}

impl FaultDisk {
    /// A process's view of a disk.
    pub fn new(sim: Arc<SimDisk>) -> Self {
        Self {
            sim,
            plan: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process will end at the operation of this number from now, 1 being the next.
    pub fn end_in(&self, operations: u64, end: End) {
        self.lock().end_in = Some((operations, end));
    }

    /// At which operation the process has ended, if it has.
    pub fn ended(&self) -> Option<(Kind, PathBuf)> {
        self.lock().ended.clone()
    }

    /// The next operation of this kind on a segment fails with an IO error.
    pub fn fail_next(&self, kind: Kind) {
        self.lock().fail_next = Some(kind);
    }

    /// Which kind of operation has failed so, if one has.
    pub fn failed(&self) -> Option<Kind> {
        self.lock().failed
    }

    fn alive(&self) -> io::Result<()> {
        if self.lock().ended.is_some() {
            return Err(io::Error::other("the process has ended"));
        }
        Ok(())
    }

    /// An operation that changes something is about to happen.
    fn pass(&self, kind: Kind, path: &Path) -> io::Result<()> {
        self.alive()?;
        let mut plan = self.lock();
        if let Some((left, end)) = &mut plan.end_in {
            *left = left.saturating_sub(1);
            let (left, end) = (*left, *end);
            if left == 0 {
                plan.end_in = None;
                plan.ended = Some((kind, path.to_owned()));
                if end == End::PowerCut {
                    // The operation itself may have happened in part.
                    self.sim.fault_at(self.sim.operations(), Fault::PowerCut);
                    return Ok(());
                }
                return Err(io::Error::other("the process was killed"));
            }
        }
        if plan.fail_next == Some(kind) && path.extension().is_some_and(|extension| extension == "seg") {
            plan.fail_next = None;
            plan.failed = Some(kind);
            self.sim.fault_at(self.sim.operations(), Fault::IoError);
        }
        Ok(())
    }

    fn file(&self, inner: Arc<dyn DiskFile>, path: &Path) -> Arc<dyn DiskFile> {
        Arc::new(FaultFile {
            inner,
            path: path.to_owned(),
            disk: self.clone(),
        })
    }
}

impl DiskFile for FaultFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.alive()?;
        self.inner.len()
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        self.disk.alive()?;
        self.inner.read_at(buf, position)
    }

    fn write_at(&self, buf: &[u8], position: u64) -> io::Result<()> {
        self.disk.pass(Kind::Write, &self.path)?;
        self.inner.write_at(buf, position)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.pass(Kind::Sync, &self.path)?;
        self.inner.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.disk.pass(Kind::Write, &self.path)?;
        self.inner.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.disk.pass(Kind::Write, &self.path)?;
        self.inner.set_len(bytes)
    }
}

impl Disk for FaultDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        self.alive()?;
        Ok(self.file(self.sim.open(path, access)?, path))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        self.pass(Kind::Name, path)?;
        Ok(self.file(self.sim.create(path, access)?, path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.pass(Kind::Name, path)?;
        self.sim.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.alive()?;
        self.sim.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Kind::Name, to)?;
        self.sim.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.pass(Kind::Name, path)?;
        self.sim.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.pass(Kind::Name, path)?;
        self.sim.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        self.alive().map_err(LockError::Io)?;
        self.sim.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.alive()?;
        self.sim.free_bytes(path)
    }

    fn random(&self) -> u64 {
        self.sim.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_can_do_nothing_and_the_disk_lives_on() {
        let sim = Arc::new(SimDisk::new(1));
        let disk = FaultDisk::new(Arc::clone(&sim));
        disk.create_dir_all(Path::new("/d")).unwrap();
        let path = Path::new("/d/a");
        let file = disk.create(path, Access::Write).unwrap();
        disk.end_in(2, End::Kill);
        file.write_at(b"x", 0).unwrap();
        assert!(file.sync_data().is_err());
        assert_eq!(disk.ended(), Some((Kind::Sync, path.to_owned())));
        assert!(disk.open(path, Access::Read).is_err() && !sim.is_off());
        assert_eq!(sim.content(path), Some(b"x".to_vec()));
    }

    #[test]
    fn only_segments_fail_on_request() {
        let disk = FaultDisk::new(Arc::new(SimDisk::new(1)));
        disk.create_dir_all(Path::new("/d")).unwrap();
        let other = disk.create(Path::new("/d/META"), Access::Write).unwrap();
        let segment = disk.create(Path::new("/d/1.seg"), Access::Write).unwrap();
        disk.fail_next(Kind::Sync);
        other.sync_data().unwrap();
        assert!(segment.sync_data().is_err());
        segment.sync_data().unwrap();
        assert_eq!(disk.failed(), Some(Kind::Sync));
    }
}
