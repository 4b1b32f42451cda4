//! One look at topics and groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_core::cursor::{ChainState, Cursor};
use anabranch_core::elastic::{Mode, Totals};
use anabranch_core::group::Topics;
use anabranch_core::ids::{LogId, Lsn, Now, TopicId};
use anabranch_core::node::{Node, Partitions};
use anabranch_core::queues::Kind as QueueChange;

use crate::broker::{Broker, Core};
use crate::progress::{self, Progress};

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Scrape {
    /// What was seen is durable once this entry is.
    pub(super) after: Lsn,
    pub(super) node_id: i32,
    pub(super) state_bytes: u64,
    /// What the planner of elastic groups did.
    pub(super) totals: Totals,
    pub(super) queue_changes: BTreeMap<QueueChange, u64>,
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
    /// Members that could have work, if each of its topics is divided as far as it may be.
    pub(super) room: u64,
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
    /// First offset that is there, and high watermark.
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) log: Option<LogId>,
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
            totals: groups.totals().clone(),
            queue_changes: core.engine.queue_changes().clone(),
            topics,
            groups: groups
                .groups()
                .keys()
                .map(|id| group(node, &partitions, now, id))
                .collect(),
        }
    }
}

fn group(node: &Node, topics: &Partitions<'_>, now: Now, id: &str) -> Group {
    let groups = node.groups();
    let members = groups.members(now, id);
    let idle = members
        .iter()
        .map(|member| member.partitions.map(|held| usize::from(held == 0)))
        .sum();
    let state = groups.groups().get(id);
    let keys = state.into_iter().flat_map(|group| group.cursors.keys());
    let read: BTreeSet<TopicId> = keys.map(|(topic, _)| *topic).collect();
    let room = read
        .into_iter()
        .map(|topic| room(node, topics, id, topic, members.is_empty()));
    Group {
        id: id.to_owned(),
        members: members.len(),
        idle,
        room: room.fold(0, u64::saturating_add),
        places: progress::of(node, id, ..).map(place).collect(),
    }
}

/// Members that could have work in a topic: one for each partition, or as many as may share each of them.
fn room(node: &Node, topics: &Partitions<'_>, group: &str, topic: TopicId, is_empty: bool) -> u64 {
    let found = topics.by_id(topic);
    let partitions = found.map_or(0, |topic| topic.partitions.unsigned_abs().into());
    // Who is not there is not known to be unable to share.
    let may_share = || match is_empty {
        true => topics.excluded_from_division(topic).is_none(),
        false => node.groups().eligibility(topics, group, topic).is_ok(),
    };
    match topics.elastic_mode(group, topic) {
        Mode::Slices if may_share() => {
            let sharers = u64::from(topics.elastic(group, topic).slices_max);
            sharers.saturating_mul(partitions)
        }
        Mode::Slices | Mode::Queues | Mode::Off => partitions,
    }
}

fn place(progress: Progress<'_>) -> Place {
    Place {
        topic: progress.topic.name.clone(),
        partition: progress.partition,
        committed: progress.committed,
        lag: i64::try_from(progress.lag()).unwrap_or(i64::MAX),
        start: progress.start,
        end: progress.end,
        log: progress.log,
        division: division(progress.cursor),
    }
}

impl Place {
    /// The oldest offset that is unread.
    pub(super) fn from(&self) -> i64 {
        self.committed.max(self.start)
    }
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
