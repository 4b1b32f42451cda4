//! How far groups have read: what metrics and the administration API say of that is the same, because it is from here.
//!
//! A broker may have hundreds of thousands of committed offsets, and all are looked at under its lock: each costs one look
//! at its topic and one at its log.

use std::ops::RangeBounds;

use anabranch_core::cursor::Cursor;
use anabranch_core::ids::{LogId, Offset, TopicId};
use anabranch_core::log::Log;
use anabranch_core::meta::Topic;
use anabranch_core::node::Node;

/// A group in a partition that it has a committed offset in.
#[derive(Clone, Copy)]
pub(crate) struct Progress<'a> {
    pub(crate) topic: &'a Topic,
    pub(crate) partition: i32,
    pub(crate) log: Option<LogId>,
    /// First offset that is there, and high watermark; 0 if there is no such partition any more.
    pub(crate) start: Offset,
    pub(crate) end: Offset,
    pub(crate) cursor: &'a Cursor,
    /// The committed offset that others see.
    pub(crate) committed: Offset,
}

impl Progress<'_> {
    /// Records from the committed offset to the end of the partition; what was deleted unread does not count.
    pub(crate) fn lag(&self) -> u64 {
        let from = self.committed.max(self.start);
        u64::try_from(self.end.saturating_sub(from)).unwrap_or(0)
    }
}

/// The progress of a group in `keys`, in their order; topics that are gone are left out.
pub(crate) fn of<'a>(
    node: &'a Node,
    group: &'a str,
    keys: impl RangeBounds<(TopicId, i32)>,
) -> impl Iterator<Item = Progress<'a>> {
    let committed = node.groups().committed_in(group, keys);
    committed.filter_map(|((topic, partition), cursor, committed)| {
        let topic = node.topic_by_id(topic)?;
        let id = topic.log(partition);
        let log = id.and_then(|id| node.log(id));
        Some(Progress {
            topic,
            partition,
            log: id,
            start: log.map_or(0, Log::start),
            end: log.map_or(0, Log::high_watermark),
            cursor,
            committed,
        })
    })
}
