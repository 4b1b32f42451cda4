//! The seam between the store and the world: files, folders, a lock, free space and chance.
//!
//! The doc comments are the contract; [`RealDisk`](crate::RealDisk) keeps it with the operating system, and
//! [`SimDisk`](crate::sim_disk::SimDisk) with bytes in memory that obey no more than is promised here.
//!
//! What survives a power cut:
//! - *Contents*: what was written and then followed by a successful [`DiskFile::sync_data`] on that file. Anything
//!   written later may survive in part, in any subset of its 512-byte sectors and in any order.
//! - *Names*: what was created, renamed or removed and then followed by [`Disk::sync_dir`] on the folder. Later changes
//!   may or may not survive, each on its own; a rename is never seen half done.
//! - A failed `sync_data` promises nothing about anything written since the last successful one, and a later success
//!   does not make up for it.

use std::io;
use std::path::Path;
use std::sync::Arc;

/// How a file is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only, at any position.
    Read,
    /// Reads only, of whole 4 KiB blocks to memory aligned to 4 KiB; past the operating system's cache where the file system
    /// can.
    ReadDirect,
    /// Reads and writes, at any position, through the operating system's cache.
    Write,
    /// Reads and writes of whole 4 KiB blocks from and to memory aligned to 4 KiB; goes past the operating system's
    /// cache where the file system can, and through it where not.
    Direct,
}

impl Access {
    /// Whether the file can be written.
    pub fn writes(self) -> bool {
        matches!(self, Access::Write | Access::Direct)
    }

    /// Whether only whole blocks are read and written.
    pub fn is_direct(self) -> bool {
        matches!(self, Access::ReadDirect | Access::Direct)
    }
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the folder.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Length in bytes, 0 for a folder.
    pub bytes: u64,
}

/// Why a lock was not obtained.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it; its id if the lock file tells.
    Held(Option<u32>),
    /// The lock file could not be used.
    Io(io::Error),
}

/// Holds a lock until it is dropped.
pub trait LockGuard: Send + Sync {}

/// An open file. All methods may be called from several threads at once.
pub trait DiskFile: Send + Sync {
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Fills `buf` from `position` on. A file that ends before is an `UnexpectedEof` error.
    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<()>;

    /// Writes all of `buf` at `position`; grows the file if needed. On an error any part may have been written.
    fn write_at(&self, buf: &[u8], position: u64) -> io::Result<()>;

    /// Makes everything written to this file so far durable, and its length.
    fn sync_data(&self) -> io::Result<()>;

    /// Reserves space so that later writes below `bytes` cannot run out of it, and makes the file at least this long.
    /// Bytes not yet written read as zeros.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Cuts the file to `bytes`, or lengthens it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
}

/// A place where folders and files are.
pub trait Disk: Send + Sync {
    /// Opens an existing file.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a file, or empties an existing one.
    fn create(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a folder and the ones above it, where missing.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// The entries of a folder, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// Gives a file a new name within its folder, in one step; a file that had the name is gone with it. Handles open on
    /// either file stay valid.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name. Handles open on it stay valid.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the exclusive lock that this file stands for, and notes the process id in it. The file stays when the lock
    /// is given back; the lock of a process that died is free.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError>;

    /// Bytes that can still be written to the file system that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    /// A random number, for identities.
    fn random(&self) -> u64;
}
