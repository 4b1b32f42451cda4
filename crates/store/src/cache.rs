//! The newest groups in memory, for readers at the tail: with direct IO nobody else holds what was just written.

use std::collections::VecDeque;

use bytes::Bytes;

/// A ring of whole commit groups, bounded by the memory that they occupy.
#[derive(Debug)]
pub(crate) struct TailCache {
    /// In the order of writing, and thereby ascending in (epoch, position).
    groups: VecDeque<Group>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Group {
    epoch: u64,
    position: u32,
    content: Bytes,
    /// What the buffer occupies, which is more than its content.
    capacity: usize,
}

impl TailCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        TailCache {
            groups: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds the newest group and lets go of the oldest ones beyond the bound.
    pub(crate) fn insert(&mut self, epoch: u64, position: u32, content: Bytes, capacity: usize) {
        self.bytes += capacity;
        self.groups.push_back(Group {
            epoch,
            position,
            content,
            capacity,
        });
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.groups.pop_front() else {
                break;
            };
            self.bytes -= oldest.capacity;
        }
    }

    /// The bytes at a place of a segment, if its group is still here.
    pub(crate) fn get(&self, epoch: u64, position: u32, len: usize) -> Option<Bytes> {
        let behind = self
            .groups
            .partition_point(|group| (group.epoch, group.position) <= (epoch, position));
        let group = self.groups.get(behind.checked_sub(1)?)?;
        if group.epoch != epoch {
            return None;
        }
        let start = (position - group.position) as usize;
        let end = start.checked_add(len)?;
        (end <= group.content.len()).then(|| group.content.slice(start..end))
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> TailCache {
        let mut cache = TailCache::new(100);
        cache.insert(1, 4096, Bytes::from_static(b"0123456789"), 40);
        cache.insert(1, 8192, Bytes::from_static(b"abcdefghij"), 40);
        cache
    }

    #[test]
    fn what_is_inside_is_found() {
        let cache = filled();
        assert_eq!(cache.get(1, 4098, 3).unwrap(), "234");
        assert_eq!(cache.get(1, 8192, 10).unwrap(), "abcdefghij");
    }

    #[test]
    fn what_is_outside_is_not_found() {
        let cache = filled();
        assert!(cache.get(1, 0, 1).is_none());
        assert!(cache.get(1, 4096, 11).is_none());
        assert!(cache.get(1, 9000, 1).is_none());
        assert!(cache.get(2, 4096, 1).is_none());
        assert!(cache.get(0, 4096, 1).is_none());
    }

    #[test]
    fn the_oldest_goes_first_and_memory_is_bounded() {
        let mut cache = filled();
        cache.insert(2, 4096, Bytes::from_static(b"ABC"), 40);
        assert!(cache.get(1, 4096, 1).is_none());
        assert_eq!(cache.get(2, 4096, 3).unwrap(), "ABC");
        assert_eq!(cache.bytes(), 80);
    }
}
