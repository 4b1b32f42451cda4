//! A disk in memory: files by path, nothing lost, nothing torn.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_store::{Access, DirEntry, Disk, DiskFile, LockError, LockGuard};

/// Most bytes of a file: beyond it, the store would have taken a damaged number for a size.
const FILE_BYTES_MAX: u64 = 4 << 20;

type Content = Arc<Mutex<Vec<u8>>>;

/// The files of a folder, as bytes.
pub type Image = BTreeMap<PathBuf, Vec<u8>>;

/// A disk in memory.
#[derive(Default)]
pub struct MemoryDisk {
    files: Mutex<BTreeMap<PathBuf, Content>>,
}

struct Open(Content);

struct Unlocked;

impl LockGuard for Unlocked {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDisk {
    /// A disk with these files.
    pub fn new(image: &Image) -> Self {
        let open = |(path, bytes): (&PathBuf, &Vec<u8>)| (path.clone(), Arc::new(Mutex::new(bytes.clone())));
        Self {
            files: Mutex::new(image.iter().map(open).collect()),
        }
    }

    /// The files as they are now.
    pub fn image(&self) -> Image {
        locked(&self.files)
            .iter()
            .map(|(path, content)| (path.clone(), locked(content).clone()))
            .collect()
    }
}

impl DiskFile for Open {
    fn len(&self) -> Result<u64> {
        Ok(locked(&self.0).len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], position: u64) -> Result<()> {
        let bytes = locked(&self.0);
        let found = usize::try_from(position)
            .ok()
            .and_then(|at| bytes.get(at..)?.get(..buf.len()));
        buf.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], position: u64) -> Result<()> {
        let end = position + buf.len() as u64;
        if locked(&self.0).len() as u64 <= end {
            self.set_len(end)?;
        }
        locked(&self.0)[position as usize..end as usize].copy_from_slice(buf);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> Result<()> {
        if self.len()? < bytes {
            self.set_len(bytes)
        } else {
            Ok(())
        }
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        assert!(bytes <= FILE_BYTES_MAX, "a file of {bytes} bytes");
        locked(&self.0).resize(bytes as usize, 0);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, _access: Access) -> Result<Arc<dyn DiskFile>> {
        let content = locked(&self.files)
            .get(path)
            .cloned()
            .ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(Open(content)))
    }

    fn create(&self, path: &Path, _access: Access) -> Result<Arc<dyn DiskFile>> {
        let content = locked(&self.files).entry(path.to_owned()).or_default().clone();
        locked(&content).clear();
        Ok(Arc::new(Open(content)))
    }

    fn create_dir_all(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let mut entries: BTreeMap<String, DirEntry> = BTreeMap::new();
        for (file, content) in locked(&self.files).iter() {
            let Ok(below) = file.strip_prefix(path) else {
                continue;
            };
            let mut parts = below.iter().map(|part| part.to_string_lossy().into_owned());
            let Some(name) = parts.next() else { continue };
            let is_dir = parts.next().is_some();
            let bytes = if is_dir { 0 } else { locked(content).len() as u64 };
            entries.insert(name.clone(), DirEntry { name, is_dir, bytes });
        }
        Ok(entries.into_values().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut files = locked(&self.files);
        let content = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = locked(&self.files).remove(path);
        removed.map(drop).ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    fn sync_dir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> std::result::Result<Box<dyn LockGuard>, LockError> {
        locked(&self.files).entry(path.to_owned()).or_default();
        Ok(Box::new(Unlocked))
    }

    fn free_bytes(&self, _path: &Path) -> Result<u64> {
        Ok(1 << 40)
    }

    fn random(&self) -> u64 {
        7
    }
}
