//! Memory aligned to the block size, used again and again: the committer fills a buffer, the tail cache lends it to
//! readers, and when the last of them lets go it returns to the pool.
//!
//! Large buffers lie in huge pages where the system has them. Direct IO hands the disk one piece for each stretch of
//! contiguous physical memory; a group of 4 MiB is a thousand pieces in small pages, and two in huge ones. On a virtual disk
//! that halves the time of a large write ([ADR 0003](../../../docs/adr/0003-commit-groups-and-padding.md)).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::{MmapMut, MmapOptions};

use crate::format::BLOCK_BYTES;

/// Bytes of unused buffers that a pool keeps.
const POOL_BYTES_MAX: usize = 32 << 20;
/// Length of a huge page on most machines with one kind of them; where they have another length, this still aligns.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The end of a buffer gets a huge page of its own only if it uses that much of it.
const HUGE_PART_BYTES_MIN: usize = HUGE_PAGE_BYTES / 8 * 5;

/// A pool of buffers in size classes.
#[derive(Default)]
pub(crate) struct Pool {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    by_capacity: BTreeMap<usize, Vec<Memory>>,
    bytes: usize,
}

/// Where the bytes of a buffer are. New memory is full of zeros.
enum Place {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

/// Memory with an aligned start.
struct Memory {
    place: Place,
    start: usize,
    /// Usable bytes from there on.
    capacity: usize,
}

/// Aligned memory of fixed length. The content is arbitrary until it is written.
pub(crate) struct Buffer {
    memory: Memory,
    len: usize,
    pool: Option<Arc<Pool>>,
}

/// How much of `capacity` bytes is in huge pages; it may be more than that.
fn huge_bytes(capacity: usize) -> usize {
    let rest = capacity % HUGE_PAGE_BYTES;
    let last = if rest >= HUGE_PART_BYTES_MIN {
        HUGE_PAGE_BYTES
    } else {
        0
    };
    capacity - rest + last
}

/// The smallest class that holds `len` bytes: four classes per doubling, so that at most a fifth is unused, and more only at
/// the end of a huge page.
pub(crate) fn class_of(len: usize) -> usize {
    let blocks = len.div_ceil(BLOCK_BYTES).max(1);
    let step = (blocks.next_power_of_two() / 8).max(1);
    let class = blocks.div_ceil(step) * step * BLOCK_BYTES;
    class.max(huge_bytes(class))
}

impl Memory {
    fn new(capacity: usize) -> Memory {
        Memory::huge(capacity).unwrap_or_else(|| {
            // One block longer than needed, so that an aligned start lies within it.
            let bytes = vec![0; capacity + BLOCK_BYTES];
            let start = bytes.as_ptr().align_offset(BLOCK_BYTES).min(BLOCK_BYTES);
            Memory {
                place: Place::Heap(bytes),
                start,
                capacity,
            }
        })
    }

    /// Memory in huge pages, if it is large enough for that and can be had.
    fn huge(capacity: usize) -> Option<Memory> {
        let huge = huge_bytes(capacity);
        if huge == 0 {
            return None;
        }
        // What lies before the aligned start and behind the end is never touched, and so takes no memory.
        let mapped = MmapOptions::new()
            .len(capacity + HUGE_PAGE_BYTES)
            .map_anon()
            .ok()?;
        let start = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES).min(HUGE_PAGE_BYTES);
        // Without huge pages it is memory like any other.
        #[cfg(target_os = "linux")]
        let _ = mapped.advise_range(memmap2::Advice::HugePage, start, huge);
        Some(Memory {
            place: Place::Mapped(mapped),
            start,
            capacity,
        })
    }

    fn as_slice(&self) -> &[u8] {
        let bytes: &[u8] = match &self.place {
            Place::Heap(bytes) => bytes,
            Place::Mapped(mapped) => mapped,
        };
        &bytes[self.start..self.start + self.capacity]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = match &mut self.place {
            Place::Heap(bytes) => bytes,
            Place::Mapped(mapped) => mapped,
        };
        &mut bytes[self.start..self.start + self.capacity]
    }
}

impl Default for Memory {
    /// None at all.
    fn default() -> Self {
        Memory {
            place: Place::Heap(Vec::new()),
            start: 0,
            capacity: 0,
        }
    }
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
                .find(|(_, memories)| !memories.is_empty());
            let found = fitting.and_then(|(_, memories)| memories.pop());
            free.bytes -= found.as_ref().map_or(0, |memory| memory.capacity);
            found
        };
        Buffer {
            memory: reused.unwrap_or_else(|| Memory::new(class)),
            len,
            pool: Some(Arc::clone(self)),
        }
    }

    fn give(&self, memory: Memory) {
        let class = memory.capacity;
        let mut free = self.lock();
        if free.bytes + class <= POOL_BYTES_MAX {
            free.bytes += class;
            free.by_capacity.entry(class).or_default().push(memory);
        }
    }
}

impl Buffer {
    /// A buffer of its own, full of zeros.
    pub(crate) fn zeroed(len: usize) -> Buffer {
        Buffer {
            memory: Memory::new(class_of(len)),
            len,
            pool: None,
        }
    }

    /// Bytes that the buffer occupies in memory.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.capacity
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory.as_slice()[..self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory.as_mut_slice()[..self.len]
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
            pool.give(std::mem::take(&mut self.memory));
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
    fn large_buffers_start_at_a_huge_page_and_are_whole() {
        for len in [HUGE_PART_BYTES_MIN, HUGE_PAGE_BYTES, (4 << 20) + 1] {
            let mut buffer = Buffer::zeroed(len);
            assert!(matches!(buffer.memory.place, Place::Mapped(_)), "{len}");
            assert_eq!(buffer.as_slice().as_ptr().align_offset(HUGE_PAGE_BYTES), 0);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
            buffer.as_mut_slice().fill(0x5a);
            assert!(buffer.as_slice().iter().all(|&byte| byte == 0x5a));
            assert_eq!(buffer.as_slice().len(), len);
        }
    }

    #[test]
    fn classes_waste_at_most_a_quarter_or_the_end_of_a_huge_page() {
        for len in (1..5000).map(|n| n * 1777) {
            let class = class_of(len);
            assert!(class >= len && class.is_multiple_of(BLOCK_BYTES));
            let unused_max = match len % HUGE_PAGE_BYTES {
                rest if rest > HUGE_PART_BYTES_MIN / 5 * 4 => HUGE_PAGE_BYTES - rest,
                _ => BLOCK_BYTES + len / 4,
            };
            assert!(
                class - len <= unused_max.max(BLOCK_BYTES + len / 4),
                "{len} in {class}"
            );
        }
    }
}
