//! A disk that counts how long it takes to make bytes durable; everything else is passed through.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anabranch_store::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard};

use crate::metrics::Metrics;

/// Wraps a disk.
pub(crate) struct TimedDisk {
    disk: Arc<dyn Disk>,
    metrics: Arc<Metrics>,
}

impl TimedDisk {
    pub(crate) fn new(disk: Arc<dyn Disk>, metrics: Arc<Metrics>) -> Self {
        Self { disk, metrics }
    }

    fn timed(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TimedFile {
            file,
            metrics: Arc::clone(&self.metrics),
        })
    }
}

impl Disk for TimedDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.timed(self.disk.open(path, access)?))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.timed(self.disk.create(path, access)?))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>, LockError> {
        self.disk.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_bytes(path)
    }

    fn random(&self) -> u64 {
        self.disk.random()
    }
}

struct TimedFile {
    file: Arc<dyn DiskFile>,
    metrics: Arc<Metrics>,
}

impl DiskFile for TimedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> io::Result<()> {
        self.file.read_at(buf, position)
    }

    fn write_at(&self, buf: &[u8], position: u64) -> io::Result<()> {
        self.file.write_at(buf, position)
    }

    fn sync_data(&self) -> io::Result<()> {
        let start = Instant::now();
        let done = self.file.sync_data();
        self.metrics.sync_time.observe(start.elapsed());
        done
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}
