//! [`Disk`] kept with the operating system.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation, OFlags};

use crate::disk::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard};

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

struct RealFile(File);

struct RealLock(#[expect(dead_code, reason = "the lock lives as long as the open file")] File);

impl LockGuard for RealLock {}

impl RealDisk {
    fn open_with(path: &Path, options: &mut OpenOptions, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        options.read(true);
        if access.is_direct() {
            let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
            match options.clone().custom_flags(direct).open(path) {
                // tmpfs and some network file systems refuse the flag: the same code then goes through the cache.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                other => return Ok(Arc::new(RealFile(other?))),
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        Self::open_with(path, OpenOptions::new().write(access.writes()), access)
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        Self::open_with(
            path,
            OpenOptions::new().write(true).create(true).truncate(true),
            access,
        )
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                is_dir: meta.is_dir(),
                bytes: if meta.is_dir() { 0 } else { meta.len() },
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(LockError::Io)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.trim().parse().ok());
                return Err(LockError::Held(pid));
            }
            Err(errno) => return Err(LockError::Io(errno.into())),
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        note(&mut file).map_err(LockError::Io)?;
        Ok(Box::new(RealLock(file)))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn random(&self) -> u64 {
        // Each state carries fresh keys from the system's generator.
        std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish()
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, position)
    }

    fn write_at(&self, buf: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(buf, position)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // Without fallocate the space is reserved by whoever writes the file with zeros.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                if self.len()? < bytes {
                    self.0.set_len(bytes)?;
                }
                Ok(())
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}
