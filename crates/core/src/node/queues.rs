//! Topics in queue mode: which are, where their batches go, and when their counts change. The machine is
//! [`crate::queues`].

use super::{Node, Partitions, layers};
use crate::Refused;
use crate::config::Values;
use crate::elastic::{ElasticKeys, Mode};
use crate::group::{Coordinator, QueueReader, QueueReaders};
use crate::ids::{Now, TopicId};
use crate::limits::ADMIN_ROWS_MAX;
use crate::meta::{Command, State, Topic};
use crate::queues::{Blocked, Change, Moment, QueueSettings, Queues, Watch, Wish};
use anabranch_wire::ErrorCode;
use std::collections::BTreeMap;
use std::ops::Range;

/// What an operator wants of a topic's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// So many, whatever the number of instances; `None`: as many as instances again.
    Wish(Option<u32>),
    /// Not to wait until the queues that go have been read.
    Force,
}

/// A topic in queue mode, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuesView {
    /// Ids that clients see.
    pub facade: u32,
    /// Its counts and its phase.
    pub queues: Queues,
    /// What it goes by.
    pub settings: QueueSettings,
    /// The groups with members that read it, and what of it each has not read.
    pub groups: Vec<QueueGroup>,
    /// In how many milliseconds the next change is due at the latest; `None`: none is.
    pub next_in_ms: Option<u64>,
    /// For how many milliseconds there have been fewer instances than queues are wanted.
    pub fewer_for_ms: Option<u64>,
    /// What stands in the way of the read queue count now, if it is to go down.
    pub blocked: Option<Blocked>,
}

/// A group that reads a topic in queue mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueGroup {
    /// Its id.
    pub group: String,
    /// Its instances that read the topic.
    pub instances: u32,
    /// Whether the counts follow it, if it is the largest.
    pub counts: bool,
    /// Records that it has not read, of all ids.
    pub unread: u64,
    /// The same by id, rising, where there are any: of all groups together at most [`ADMIN_ROWS_MAX`], the first.
    pub unread_in: Vec<(u32, u64)>,
    /// Ids with unread records that are not in `unread_in`.
    pub unread_left_out: u64,
}

impl Node {
    /// The change that each topic is due, and those that enter or leave queue mode. To be called again at once when these
    /// have been made, until there are none.
    pub fn queues_due(&mut self, now: Now) -> Vec<Command> {
        let now = self.dated(now);
        let mut commands = match std::mem::take(&mut self.modes_changed) {
            true => self.modes_due(now),
            false => Vec::new(),
        };
        if !commands.is_empty() || self.state.queues().is_empty() {
            return commands;
        }
        self.with_readers(|surroundings, watches| {
            for (id, queues) in surroundings.partitions.state.queues() {
                let Some(of) = surroundings.of(*id) else { continue };
                let watch = watches.entry(*id).or_insert_with(|| Watch::resumed(queues, now));
                let blocked = |ids| of.blocked(ids, now);
                if let Some(change) = queues.step(watch, &of.moment(now, &blocked)) {
                    commands.push(set(*id, change));
                }
            }
        });
        commands
    }

    /// When [`Self::queues_due`] is to be called next if nothing happens, monotonic milliseconds.
    pub fn next_queues(&self) -> Option<u64> {
        let layers = self.layers();
        let next = |(id, queues): (&TopicId, &Queues)| {
            let topic = self.state.topic_by_id(*id)?;
            let settings = QueueSettings::new(&topic.configs, layers);
            self.queue_watches.get(id)?.next_ms(queues, &settings)
        };
        self.state.queues().iter().filter_map(next).min()
    }

    /// Decides about what an operator wants. UNKNOWN_TOPIC_OR_PARTITION; INVALID_REQUEST if the topic is not in queue mode,
    /// the number is not possible, or nothing is waited for.
    pub fn order_queues(
        &mut self,
        now: Now,
        topic: &str,
        order: QueueOrder,
    ) -> Result<Vec<Command>, Refused> {
        let now = self.dated(now);
        let invalid = |text: String| Refused::new(ErrorCode::InvalidRequest, text);
        let found = self.existing(topic)?;
        let (id, facade) = (found.id, found.partitions().unsigned_abs());
        let Some(queues) = self.state.queues().get(&id).cloned() else {
            return Err(invalid(format!(
                "topic `{topic}` is not in queue mode: set elastic.mode=queues on it"
            )));
        };
        let change = match order {
            QueueOrder::Wish(Some(wish)) if !(1..=facade).contains(&wish) => {
                return Err(invalid(format!(
                    "{wish} queues are not possible: topic `{topic}` has {facade} partitions"
                )));
            }
            QueueOrder::Wish(wish) => {
                return Ok(queues
                    .wished(now, wish)
                    .map(|change| set(id, change))
                    .into_iter()
                    .collect());
            }
            QueueOrder::Force => self.with_readers(|surroundings, watches| {
                let of = surroundings.of(id)?;
                let watch = watches.entry(id).or_insert_with(|| Watch::resumed(&queues, now));
                let blocked = |ids| of.blocked(ids, now);
                queues.forced(watch, &of.moment(now, &blocked))
            }),
        };
        match change {
            Some(change) => Ok(vec![set(id, change)]),
            None => Err(invalid(format!(
                "topic `{topic}` does not wait for queues to be read: there is nothing to force"
            ))),
        }
    }

    /// A topic in queue mode; `None` if it is not.
    pub fn queues_view(&mut self, now: Now, topic: TopicId) -> Option<QueuesView> {
        let now = self.dated(now);
        self.with_readers(|surroundings, watches| {
            let of = surroundings.of(topic)?;
            let queues = surroundings.partitions.state.queues().get(&topic)?.clone();
            let watch = watches.get(&topic);
            let next_ms = watch.and_then(|watch| watch.next_ms(&queues, &of.settings));
            Some(QueuesView {
                facade: of.facade,
                groups: of.groups(),
                next_in_ms: next_ms.map(|at_ms| at_ms.saturating_sub(now.mono_ms)),
                fewer_for_ms: watch.and_then(|watch| watch.fewer_for_ms(now)),
                blocked: of.blocked(queues.write..queues.read, now),
                settings: of.settings,
                queues,
            })
        })
    }

    /// Topics whose mode is queues enter it, others leave it.
    fn modes_due(&self, now: Now) -> Vec<Command> {
        let partitions = self.partitions();
        let mut commands = Vec::new();
        for topic in self.state.topics() {
            let wanted = partitions.is_queued(topic);
            match self.state.queues().get(&topic.id) {
                // It has records in all of its partitions, perhaps, so all are in use at first.
                None if wanted => {
                    let facade = topic.partitions().unsigned_abs();
                    commands.push(set(topic.id, Queues::start(facade, now)));
                }
                Some(queues) if !wanted => commands.push(Command::SetQueues {
                    id: topic.id,
                    queues: None,
                    decision: Box::new(queues.end(topic.partitions().unsigned_abs(), now)),
                }),
                _ => {}
            }
        }
        commands
    }

    /// For a topic that is being created: the queues it begins with, if it is in queue mode.
    pub(super) fn first_queues(&self, now: Now, topic: &Topic) -> Option<Command> {
        let settings = QueueSettings::new(&topic.configs, self.layers());
        let facade = topic.partitions().unsigned_abs();
        // Nothing is in it yet, so the fewest are enough.
        let start = || Queues::start(settings.clamped(0, facade), now);
        self.partitions().is_queued(topic).then(|| set(topic.id, start()))
    }

    /// How many partitions a topic with these configurations gets if its creator does not say.
    pub(super) fn default_partitions(&self, configs: &Values) -> i32 {
        let mode = ElasticKeys::new(configs, &Values::new(), self.layers()).mode_of_topic();
        match mode {
            Mode::Queues => i32::try_from(QueueSettings::new(configs, self.layers()).max).unwrap_or(i32::MAX),
            _ => self.settings.num_partitions,
        }
    }

    /// Where batches go follows from the write queue count; to be called when that, or the partitions, may have changed.
    pub(super) fn refresh_homes(&mut self, id: TopicId) {
        let Some(topic) = self.state.topic_by_id(id) else {
            return;
        };
        let queues = self.state.queues().get(&id);
        for (partition, log) in (0..).zip(&topic.logs) {
            let home = queues.map_or(partition, |queues| queues.home(partition));
            let home = usize::try_from(home).ok().and_then(|home| topic.logs.get(home));
            if let Some(found) = self.logs.get_mut(log) {
                found.set_home(home.filter(|home| *home != log).copied());
            }
        }
    }

    fn with_readers<T>(
        &mut self,
        work: impl FnOnce(&Surroundings<'_>, &mut BTreeMap<TopicId, Watch>) -> T,
    ) -> T {
        let Self {
            options,
            state,
            logs,
            groups,
            queue_watches,
            ..
        } = self;
        let partitions = Partitions {
            state,
            logs,
            layers: layers(options, state),
        };
        let readers = groups.queue_readers(&partitions, state.queues().keys());
        let surroundings = Surroundings {
            partitions,
            groups,
            readers,
        };
        work(&surroundings, queue_watches)
    }
}

/// What the queues of all topics are decided from.
struct Surroundings<'a> {
    partitions: Partitions<'a>,
    groups: &'a Coordinator,
    readers: QueueReaders,
}

/// What those of one topic are.
struct OfTopic<'a> {
    all: &'a Surroundings<'a>,
    id: TopicId,
    facade: u32,
    settings: QueueSettings,
    readers: &'a BTreeMap<String, QueueReader>,
}

impl Surroundings<'_> {
    fn of(&self, id: TopicId) -> Option<OfTopic<'_>> {
        let topic = self.partitions.state.topic_by_id(id)?;
        Some(OfTopic {
            all: self,
            id,
            facade: topic.partitions().unsigned_abs(),
            settings: QueueSettings::new(&topic.configs, self.partitions.layers),
            readers: self.readers.get(&id)?,
        })
    }
}

impl OfTopic<'_> {
    fn moment<'b>(&'b self, now: Now, blocked: &'b dyn Fn(Range<u32>) -> Option<Blocked>) -> Moment<'b> {
        let counted = self.readers.iter().filter(|(_, reader)| reader.counts);
        // Of equally large ones the first, so that the reason does not change with nothing.
        let largest = counted.max_by(|a, b| a.1.instances.cmp(&b.1.instances).then(b.0.cmp(a.0)));
        Moment {
            now,
            facade: self.facade,
            settings: &self.settings,
            largest: largest.map(|(group, reader)| Wish {
                group: group.clone(),
                instances: reader.instances,
            }),
            blocked,
        }
    }

    fn blocked(&self, ids: Range<u32>, now: Now) -> Option<Blocked> {
        let oldest_ms = now
            .wall_ms
            .saturating_sub(i64::try_from(self.settings.group_ttl_ms).unwrap_or(i64::MAX));
        let all = self.all;
        all.groups
            .unread_queue(&all.partitions, self.id, ids, self.readers, oldest_ms)
    }

    fn groups(&self) -> Vec<QueueGroup> {
        let mut rows_left = ADMIN_ROWS_MAX;
        let mut groups = Vec::with_capacity(self.readers.len());
        for (group, reader) in self.readers {
            let mut shown = QueueGroup {
                group: group.clone(),
                instances: reader.instances,
                counts: reader.counts,
                unread: 0,
                unread_in: Vec::new(),
                unread_left_out: 0,
            };
            for (id, records) in self.unread_in(group) {
                shown.unread = shown.unread.saturating_add(records);
                if rows_left == 0 {
                    shown.unread_left_out += 1;
                } else {
                    rows_left -= 1;
                    shown.unread_in.push((id, records));
                }
            }
            groups.push(shown);
        }
        groups
    }

    /// What a group has not read of each id, where that is anything.
    fn unread_in(&self, group: &str) -> impl Iterator<Item = (u32, u64)> {
        let all = self.all;
        let of = move |id| all.groups.unread(&all.partitions, group, (self.id, id));
        let counted = (0..self.facade.cast_signed()).map(move |id| (id.cast_unsigned(), of(id)));
        counted.filter(|(_, records)| *records > 0)
    }
}

impl Partitions<'_> {
    /// Whether a topic is to be in queue mode.
    pub(super) fn is_queued(&self, topic: &Topic) -> bool {
        let mode = ElasticKeys::new(&topic.configs, &Values::new(), self.layers).mode_of_topic();
        let is_excluded = || topic.name.starts_with("__") || topic.settings(self.layers).compact;
        mode == Mode::Queues && !is_excluded()
    }

    /// The read queue count of a topic in queue mode.
    pub(super) fn read_count(state: &State, topic: TopicId) -> Option<i32> {
        let queues = state.queues().get(&topic)?;
        Some(i32::try_from(queues.read).unwrap_or(i32::MAX))
    }
}

fn set(id: TopicId, change: Change) -> Command {
    Command::SetQueues {
        id,
        queues: Some(change.queues),
        decision: Box::new(change.decision),
    }
}

#[cfg(test)]
#[path = "queues_test.rs"]
mod tests;
