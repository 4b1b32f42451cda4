//! [`Disk`] in memory, with the faults of real ones: a power cut that lets any subset of the unsynced sectors survive, failed
//! writes and syncs, a full disk, flipped bits. The same seed gives the same bytes.
//!
//! Every operation that changes something has a number, counted from 0. A test runs a workload once to learn how many there
//! are, and then again for each number, with the power cut there:
//!
//! ```text
//! run, cut at n  ->  power_cycle(seed): what survived  ->  open again, compare with what was acknowledged
//! ```
//!
//! Dropping a store and opening the folder again on the same disk is a kill of the process: everything written is still
//! visible, and not yet durable.

mod content;
mod world;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard};
use crate::format::BLOCK_BYTES;
use world::World;

pub use world::Rng;

/// A disk in memory.
#[derive(Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

/// Which operation a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power goes during this operation: it and all later ones fail.
    PowerCut,
    /// The operation fails with an input/output error; later ones succeed. A failed sync loses what it should have synced,
    /// although it stays visible, and no later sync makes up for it.
    IoError,
    /// The operation fails for want of space.
    NoSpace,
}

struct SimFile {
    world: Arc<Mutex<World>>,
    inode: u64,
    access: Access,
}

struct SimLock {
    world: Arc<Mutex<World>>,
    path: PathBuf,
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimDisk {
    /// An empty disk. The seed decides what survives a power cut and which random numbers are drawn.
    pub fn new(seed: u64) -> Self {
        SimDisk {
            world: Arc::new(Mutex::new(World::new(seed))),
        }
    }

    /// How many changing operations there were so far.
    pub fn operations(&self) -> u64 {
        lock(&self.world).operations
    }

    /// Lets an operation fail, by its number.
    pub fn fault_at(&self, operation: u64, fault: Fault) {
        lock(&self.world).faults.insert(operation, fault);
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        lock(&self.world).off
    }

    /// What is there after a power cut: a disk with everything that was synced and, by chance, some of the rest.
    #[must_use]
    pub fn power_cycle(&self, seed: u64) -> SimDisk {
        SimDisk {
            world: Arc::new(Mutex::new(lock(&self.world).survivors(seed))),
        }
    }

    /// A disk with the same files, all of it durable, and no faults to come.
    #[must_use]
    pub fn duplicate(&self) -> SimDisk {
        SimDisk {
            world: Arc::new(Mutex::new(lock(&self.world).duplicate())),
        }
    }

    /// Bounds the sum of all files' lengths.
    pub fn set_capacity(&self, bytes: u64) {
        lock(&self.world).capacity = bytes;
    }

    /// Lets every change fail, as on a file system that is mounted read-only.
    pub fn set_read_only(&self, read_only: bool) {
        lock(&self.world).read_only = read_only;
    }

    /// Flips one bit of a file, on the disk and in every cache. False if the file is not that long.
    pub fn flip_bit(&self, path: &Path, byte: u64, bit: u8) -> bool {
        lock(&self.world).change(path, |content| {
            match usize::try_from(byte).ok().and_then(|at| content.get_mut(at)) {
                Some(byte) => {
                    *byte ^= 1 << (bit % 8);
                    true
                }
                None => false,
            }
        })
    }

    /// Replaces the content of a file, on the disk and in every cache. False if there is no such file.
    pub fn replace(&self, path: &Path, content: &[u8]) -> bool {
        lock(&self.world).change(path, |old| {
            *old = content.to_vec();
            true
        })
    }

    /// The content of a file as a reader sees it.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        lock(&self.world).visible(path)
    }

    /// Takes a file away, on the disk and in every cache. False if there is no such file.
    pub fn take_away(&self, path: &Path) -> bool {
        lock(&self.world).take_away(path)
    }

    /// All files, by name.
    pub fn files(&self) -> Vec<PathBuf> {
        lock(&self.world).names.keys().cloned().collect()
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let world = lock(&self.world);
        world.powered()?;
        let inode = world.inode(path)?;
        Ok(Arc::new(SimFile {
            world: Arc::clone(&self.world),
            inode,
            access,
        }))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let inode = lock(&self.world).create(path)?;
        Ok(Arc::new(SimFile {
            world: Arc::clone(&self.world),
            inode,
            access,
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        lock(&self.world).list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        lock(&self.world).rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        lock(&self.world).sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        let mut world = lock(&self.world);
        world.powered().map_err(LockError::Io)?;
        if !world.names.contains_key(path) {
            world.create(path).map_err(LockError::Io)?;
        }
        if !world.locks.insert(path.to_owned()) {
            return Err(LockError::Held(Some(1)));
        }
        Ok(Box::new(SimLock {
            world: Arc::clone(&self.world),
            path: path.to_owned(),
        }))
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        let world = lock(&self.world);
        world.powered()?;
        Ok(world.capacity.saturating_sub(world.used()))
    }

    fn random(&self) -> u64 {
        lock(&self.world).rng.next_u64()
    }
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        lock(&self.world).locks.remove(&self.path);
    }
}

impl SimFile {
    /// Direct IO demands whole blocks in aligned memory; a store that breaks this would fail on a real disk.
    fn check_alignment(&self, buf: &[u8], position: u64) {
        if self.access.is_direct() {
            let aligned = buf.as_ptr().align_offset(BLOCK_BYTES) == 0
                && buf.len().is_multiple_of(BLOCK_BYTES)
                && position.is_multiple_of(BLOCK_BYTES as u64);
            assert!(
                aligned,
                "direct IO of {} bytes at {position} is not aligned",
                buf.len()
            );
        }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        let world = lock(&self.world);
        world.powered()?;
        Ok(world.len(self.inode))
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        self.check_alignment(buf, position);
        lock(&self.world).read(self.inode, buf, position)
    }

    fn write_at(&self, buf: &[u8], position: u64) -> io::Result<()> {
        self.check_alignment(buf, position);
        assert!(
            self.access.writes(),
            "a file that was opened for reading is written"
        );
        lock(&self.world).write(self.inode, buf, position)
    }

    fn sync_data(&self) -> io::Result<()> {
        lock(&self.world).sync(self.inode)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut world = lock(&self.world);
        let bytes = bytes.max(world.len(self.inode));
        world.set_len(self.inode, bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        lock(&self.world).set_len(self.inode, bytes)
    }
}

#[cfg(test)]
mod tests;
