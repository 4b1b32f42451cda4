//! Memory aligned to the block size, used again and again: the committer fills a buffer, the tail cache lends it to
//! readers, and when the last of them lets go it returns to the pool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::format::BLOCK_BYTES;

/// Bytes of unused buffers that a pool keeps.
const POOL_BYTES_MAX: usize = 32 << 20;

/// A pool of buffers in size classes.
#[derive(Default)]
pub(crate) struct Pool {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    by_capacity: BTreeMap<usize, Vec<Vec<u8>>>,
    bytes: usize,
}

/// Aligned memory of fixed length. The content is arbitrary until it is written.
pub(crate) struct Buffer {
    /// One block longer than needed, so that an aligned start lies within it.
    raw: Vec<u8>,
    start: usize,
    len: usize,
    pool: Option<Arc<Pool>>,
}

/// The smallest class that holds `len` bytes: four classes per doubling, so that at most a fifth is unused.
fn class_of(len: usize) -> usize {
    let blocks = len.div_ceil(BLOCK_BYTES).max(1);
    let step = (blocks.next_power_of_two() / 8).max(1);
    blocks.div_ceil(step) * step * BLOCK_BYTES
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `len` bytes that comes back to this pool when it is dropped.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let class = class_of(len);
        let reused = {
            let mut free = self.lock();
            // A somewhat larger one will do: new memory costs more than the unused part of old memory.
            let fitting = free
                .by_capacity
                .range_mut(class..=class + class / 2)
                .find(|(_, raws)| !raws.is_empty());
            let found = fitting.and_then(|(found, raws)| Some((*found, raws.pop()?)));
            found.map(|(found, raw)| {
                free.bytes -= found;
                raw
            })
        };
        let raw = reused.unwrap_or_else(|| vec![0; class + BLOCK_BYTES]);
        Buffer::over(raw, len, Some(Arc::clone(self)))
    }

    fn give(&self, raw: Vec<u8>) {
        let class = raw.len() - BLOCK_BYTES;
        let mut free = self.lock();
        if free.bytes + class <= POOL_BYTES_MAX {
            free.bytes += class;
            free.by_capacity.entry(class).or_default().push(raw);
        }
    }
}

impl Buffer {
    /// A buffer of its own, full of zeros.
    pub(crate) fn zeroed(len: usize) -> Buffer {
        Buffer::over(vec![0; len + BLOCK_BYTES], len, None)
    }

    fn over(raw: Vec<u8>, len: usize, pool: Option<Arc<Pool>>) -> Buffer {
        let start = raw.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
        Buffer {
            raw,
            start,
            len,
            pool,
        }
    }

    /// Bytes that the buffer occupies in memory.
    pub(crate) fn capacity(&self) -> usize {
        self.raw.len()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.raw[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.give(std::mem::take(&mut self.raw));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_as_long_as_asked() {
        let pool = Arc::new(Pool::default());
        for len in [1, 4096, 4097, 100_000, 5 << 20] {
            let buffer = pool.take(len);
            assert_eq!(buffer.as_slice().len(), len);
            assert_eq!(buffer.as_slice().as_ptr().align_offset(BLOCK_BYTES), 0);
        }
    }

    #[test]
    fn a_dropped_buffer_is_used_again() {
        let pool = Arc::new(Pool::default());
        let first = pool.take(10_000);
        let address = first.as_slice().as_ptr();
        drop(first);
        let second = pool.take(9_000);
        assert_eq!(second.as_slice().as_ptr(), address);
        assert_eq!(pool.lock().bytes, 0);
        drop(second);
        let smaller = pool.take(8_000);
        assert_eq!(
            smaller.as_slice().as_ptr(),
            address,
            "a little too large is good enough"
        );
        drop(smaller);
        assert_ne!(
            pool.take(3_000).as_slice().as_ptr(),
            address,
            "far too large is not"
        );
    }

    #[test]
    fn the_pool_keeps_a_bounded_number_of_bytes() {
        let pool = Arc::new(Pool::default());
        let many: Vec<_> = (0..40).map(|_| pool.take(1 << 20)).collect();
        drop(many);
        assert_eq!(pool.lock().bytes, POOL_BYTES_MAX);
    }

    #[test]
    fn classes_waste_at_most_a_quarter() {
        for len in (1..3000).map(|n| n * 1777) {
            let class = class_of(len);
            assert!(class >= len && class.is_multiple_of(BLOCK_BYTES));
            assert!(class - len <= BLOCK_BYTES + len / 4, "{len} in {class}");
        }
    }
}
