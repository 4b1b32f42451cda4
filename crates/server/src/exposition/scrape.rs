//! One look at topics and groups.

use std::sync::Arc;

use anabranch_core::cursor::{ChainState, Cursor};
use anabranch_core::group::{Coordinator, Topics};
use anabranch_core::ids::{Lsn, Now, TopicId};
use anabranch_core::node::Partitions;

use crate::broker::{Broker, Core};

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Scrape {
    /// What was seen is durable once this entry is.
    pub(super) after: Lsn,
    pub(super) node_id: i32,
    pub(super) state_bytes: u64,
    /// In the order of their names.
    pub(super) topics: Vec<Topic>,
    /// In the order of their ids.
    pub(super) groups: Vec<Group>,
}

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    /// First offset and high watermark of each partition.
    pub(super) logs: Vec<(i64, i64)>,
    /// Write and read queue count, in queue mode.
    pub(super) queues: Option<(u32, u32)>,
}

/// A group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: String,
    pub(super) members: usize,
    /// Members that hold no partition; `None` where a client assigns them and the broker does not know.
    pub(super) idle: Option<usize>,
    /// What it has a committed offset in.
    pub(super) places: Vec<Place>,
}

/// A partition as a group has read it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) topic: String,
    pub(super) partition: i32,
    /// The committed offset that others see.
    pub(super) committed: i64,
    /// Records from there to the high watermark; never negative.
    pub(super) lag: i64,
    /// If it is divided: how many members share it, and how many slots are on their way between them.
    pub(super) division: Option<(usize, usize)>,
}

impl Scrape {
    /// Looks under the lock of the core.
    pub(super) fn take(broker: &Arc<Broker>) -> Self {
        let now = broker.clock.now();
        broker.with(|core| {
            let now = core.group_clock.now(now);
            Self::of(core, now)
        })
    }

    fn of(core: &Core, now: Now) -> Self {
        let node = core.node();
        let (partitions, groups) = (node.partitions(), node.groups());
        let mut topics = Vec::new();
        partitions.each(&mut |topic| {
            let bounds = |number| {
                (
                    partitions.log_start(topic.id, number),
                    partitions.log_end(topic.id, number),
                )
            };
            topics.push(Topic {
                name: topic.name.to_owned(),
                logs: (0..topic.partitions).map(bounds).collect(),
                queues: node
                    .state()
                    .queues()
                    .get(&topic.id)
                    .map(|queues| (queues.write, queues.read)),
            });
        });
        Self {
            after: node.state_lsn(),
            node_id: node.node_id(),
            state_bytes: core.engine.state_bytes(),
            topics,
            groups: groups
                .groups()
                .keys()
                .map(|id| group(groups, &partitions, now, id))
                .collect(),
        }
    }
}

fn group(groups: &Coordinator, topics: &Partitions<'_>, now: Now, id: &str) -> Group {
    let members = groups.members(now, id);
    let idle = members
        .iter()
        .map(|member| member.partitions.map(|held| usize::from(held == 0)))
        .sum();
    let state = groups.groups().get(id);
    let keys = state.into_iter().flat_map(|group| group.cursors.keys());
    Group {
        id: id.to_owned(),
        members: members.len(),
        idle,
        places: keys.filter_map(|key| place(groups, topics, id, *key)).collect(),
    }
}

fn place(groups: &Coordinator, topics: &Partitions<'_>, group: &str, key: (TopicId, i32)) -> Option<Place> {
    let topic = topics.by_id(key.0)?;
    let committed = groups.committed(group, key)?;
    let (start, end) = (topics.log_start(key.0, key.1), topics.log_end(key.0, key.1));
    Some(Place {
        topic: topic.name.to_owned(),
        partition: key.1,
        committed,
        lag: end.saturating_sub(committed.max(start)).max(0),
        division: groups.cursor_of(group, key).and_then(division),
    })
}

fn division(cursor: &Cursor) -> Option<(usize, usize)> {
    let Cursor::Divided(divided) = cursor else {
        return None;
    };
    let chains = || divided.chains().map(|(_, chain)| chain);
    let held = chains().filter(|chain| chain.state() == ChainState::Held);
    let moving = chains().map(|chain| chain.transit_slots().len()).sum();
    Some((held.count(), moving))
}
