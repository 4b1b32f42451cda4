//! Run entries of sealed segments that were read from disk, least recently used out first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_core::ids::LogId;

use super::Run;

/// What a cached list costs beside its entries.
const OVERHEAD_BYTES: usize = 128;

type Key = (u64, LogId);

/// A bounded cache from (segment epoch, log) to that log's runs in that segment.
#[derive(Debug)]
pub(crate) struct EntryCache {
    lists: HashMap<Key, (Arc<[Run]>, u64)>,
    by_age: BTreeMap<u64, Key>,
    tick: u64,
    bytes: usize,
    bytes_max: usize,
}

fn cost(runs: &[Run]) -> usize {
    size_of_val(runs) + OVERHEAD_BYTES
}

impl EntryCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        EntryCache {
            lists: HashMap::new(),
            by_age: BTreeMap::new(),
            tick: 0,
            bytes: 0,
            bytes_max,
        }
    }

    pub(crate) fn get(&mut self, epoch: u64, log: LogId) -> Option<Arc<[Run]>> {
        let (runs, age) = self.lists.get_mut(&(epoch, log))?;
        self.by_age.remove(age);
        self.tick += 1;
        *age = self.tick;
        self.by_age.insert(self.tick, (epoch, log));
        Some(Arc::clone(runs))
    }

    pub(crate) fn insert(&mut self, epoch: u64, log: LogId, runs: Arc<[Run]>) {
        self.tick += 1;
        self.bytes += cost(&runs);
        self.by_age.insert(self.tick, (epoch, log));
        if let Some((old, age)) = self.lists.insert((epoch, log), (runs, self.tick)) {
            self.bytes -= cost(&old);
            self.by_age.remove(&age);
        }
        // The newest list stays even if it alone is too large: its reader is about to use it.
        while self.bytes > self.bytes_max && self.by_age.len() > 1 {
            let Some((_, key)) = self.by_age.pop_first() else {
                break;
            };
            if let Some((old, _)) = self.lists.remove(&key) {
                self.bytes -= cost(&old);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(count: usize) -> Arc<[Run]> {
        let run = Run {
            base_offset: 0,
            last_offset: 0,
            max_timestamp: 0,
            max_timestamp_base: 0,
            position: 0,
            payload_bytes: 0,
            batches: 1,
        };
        vec![run; count].into()
    }

    #[test]
    fn the_least_recently_used_list_goes_first() {
        let mut cache = EntryCache::new(2 * cost(&runs(10)));
        cache.insert(1, LogId(1), runs(10));
        cache.insert(1, LogId(2), runs(10));
        assert!(cache.get(1, LogId(1)).is_some());
        cache.insert(2, LogId(1), runs(10));
        assert!(cache.get(1, LogId(2)).is_none());
        assert!(cache.get(1, LogId(1)).is_some());
        assert!(cache.get(2, LogId(1)).is_some());
    }

    #[test]
    fn replacing_a_list_does_not_count_it_twice() {
        let mut cache = EntryCache::new(10_000);
        for _ in 0..1000 {
            cache.insert(1, LogId(1), runs(10));
        }
        assert_eq!(cache.bytes, cost(&runs(10)));
        assert_eq!(cache.by_age.len(), 1);
    }
}
