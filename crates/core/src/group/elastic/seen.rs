//! The last slice that a connection has fetched of each partition.
//!
//! ListOffsets and OffsetForLeaderEpoch carry no offset that would tell a slice, but most clients send them on the
//! connection that they fetch on. A plain fetch or one at an id that does not exist does not clear the memory: a client
//! that seeks beyond its share must find back into it.

use std::collections::BTreeMap;

use crate::cursor::SliceId;
use crate::ids::TopicId;
use crate::limits::SLICES_SEEN_MAX;

/// Slices by partition, each with the time of its last fetch, counted in fetches.
#[derive(Debug, Default)]
pub(super) struct SlicesSeen {
    slices: BTreeMap<(TopicId, i32), (SliceId, u64)>,
    clock: u64,
}

impl SlicesSeen {
    /// Notes a fetch of a slice that exists.
    pub(super) fn note(&mut self, topic: TopicId, partition: i32, slice: SliceId) {
        self.clock += 1;
        let key = (topic, partition);
        if !self.slices.contains_key(&key) && self.slices.len() >= SLICES_SEEN_MAX {
            let oldest = self.slices.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.slices.remove(&oldest);
            }
        }
        self.slices.insert(key, (slice, self.clock));
    }

    /// The last slice fetched of a partition.
    pub(super) fn last(&self, topic: TopicId, partition: i32) -> Option<SliceId> {
        self.slices.get(&(topic, partition)).map(|(slice, _)| *slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: TopicId = TopicId([1; 16]);

    fn id(number: u32) -> SliceId {
        SliceId::new(number).unwrap()
    }

    #[test]
    fn the_last_slice_of_each_partition_is_known() {
        let mut seen = SlicesSeen::default();
        assert_eq!(seen.last(T, 0), None);
        seen.note(T, 0, id(5));
        seen.note(T, 1, id(9));
        seen.note(T, 0, id(7));
        assert_eq!((seen.last(T, 0), seen.last(T, 1)), (Some(id(7)), Some(id(9))));
        assert_eq!(seen.last(TopicId([2; 16]), 0), None);
    }

    #[test]
    fn what_was_not_fetched_for_longest_is_forgotten_first() {
        let mut seen = SlicesSeen::default();
        for partition in 0..SLICES_SEEN_MAX as i32 {
            seen.note(T, partition, id(1));
        }
        seen.note(T, 0, id(2));
        seen.note(T, -1, id(3));
        assert_eq!(seen.slices.len(), SLICES_SEEN_MAX);
        assert_eq!((seen.last(T, 0), seen.last(T, -1)), (Some(id(2)), Some(id(3))));
        assert_eq!(seen.last(T, 1), None);
    }
}
