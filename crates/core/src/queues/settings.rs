//! What a topic in queue mode goes by: typed values of the keys `elastic.queues.*`.

use crate::config::{Layers, Reader, Scope, Source, Values};

/// The settings of one topic: its own value of a key, else the broker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// `elastic.queues.min`: no fewer queues.
    pub min: u32,
    /// `elastic.queues.max`: no more queues; also the partitions of a topic that is created without a number of them.
    pub max: u32,
    /// `elastic.queues.write.delay.ms`: how long after R W goes up, milliseconds.
    pub write_delay_ms: u64,
    /// `elastic.queues.drain.delay.ms`: how long after W R may go down, milliseconds.
    pub drain_delay_ms: u64,
    /// `elastic.queues.shrink.grace.ms`: how long there must be fewer instances before W goes down, milliseconds.
    pub shrink_grace_ms: u64,
    /// `elastic.queues.group.ttl.ms`: how long after its last commit a group without members still counts, milliseconds.
    pub group_ttl_ms: u64,
}

impl QueueSettings {
    /// The settings of a topic with these overrides.
    pub fn new(topic: &Values, layers: Layers<'_>) -> Self {
        let read = Reader {
            scope: Scope::Topic,
            own: Some((topic, Source::Topic)),
            layers,
        };
        let count = |key| u32::try_from(read.count(key)).unwrap_or(u32::MAX);
        Self {
            min: count("elastic.queues.min"),
            max: count("elastic.queues.max"),
            write_delay_ms: read.count("elastic.queues.write.delay.ms"),
            drain_delay_ms: read.count("elastic.queues.drain.delay.ms"),
            shrink_grace_ms: read.count("elastic.queues.shrink.grace.ms"),
            group_ttl_ms: read.count("elastic.queues.group.ttl.ms"),
        }
    }

    /// The nearest number of queues that is allowed, for a topic with so many ids. The maximum wins over the minimum, the
    /// facade over both.
    pub fn clamped(&self, count: u32, facade: u32) -> u32 {
        count.max(self.min).min(self.max).min(facade).max(1)
    }
}

impl Default for QueueSettings {
    /// The defaults of the keys.
    fn default() -> Self {
        let none = Values::new();
        let layers = Layers {
            broker: &none,
            cluster: &none,
            fixed: &none,
        };
        Self::new(&none, layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_published_design() {
        let settings = QueueSettings::default();
        assert_eq!((settings.min, settings.max), (1, 64));
        assert_eq!(settings.write_delay_ms, 10_000);
        assert_eq!(settings.drain_delay_ms, 300_000);
    }

    #[test]
    fn a_count_out_of_bounds_is_brought_to_the_nearest_one_inside() {
        let settings = QueueSettings {
            min: 2,
            max: 8,
            ..QueueSettings::default()
        };
        let clamped = |count| settings.clamped(count, 6);
        assert_eq!([0, 1, 5, 7, 2_000].map(clamped), [2, 2, 5, 6, 6]);
        let contrary = QueueSettings { min: 9, ..settings };
        assert_eq!(contrary.clamped(1, 64), 8, "the maximum wins");
        assert_eq!(contrary.clamped(1, 0), 1, "one queue there always is");
    }
}
