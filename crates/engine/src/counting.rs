//! Counting records by slot for the planner.
//!
//! A count at the moment of a decision may read only so much: what a [`Tally`] knows already is exact, the rest is a sample
//! of bounded size. Each count moves the tally of its log on a little, so that a partition that stays divided is soon
//! known to the last record.

use std::collections::BTreeMap;

use anabranch_core::elastic::{SlotCounts, Snapshot};
use anabranch_core::group::{CountWanted, Counts, Order, Ordered, Topics};
use anabranch_core::ids::{LogId, Now, Offset, TopicId};
use anabranch_core::limits::{SURVEY_BYTES_MAX, TALLIES_MAX, TALLY_BYTES_MAX, TALLY_STEP_BYTES};
use anabranch_core::sieve::Sieve;
use anabranch_core::slots::SlotSet;
use anabranch_store::Store;
use anabranch_wire::slot::{SLOTS, Slot};

use crate::slices::{self, FromDisk, ScanCache, SourceError, Tally};
use crate::{Engine, Journal, Outcome};

/// Times that records are counted for one thought of the planner, or for one order to it.
const COUNTS_MAX: usize = 4;

/// What is to be counted, with the log it is in.
#[derive(Clone, Copy, Debug)]
pub struct CountTask {
    wanted: CountWanted,
    log: LogId,
    log_start: Offset,
    high_watermark: Offset,
}

/// Counted records, for one [`Thought`] of the planner.
#[derive(Debug, Default)]
pub struct Counted {
    counts: BTreeMap<(TopicId, i32), BTreeMap<Offset, (Offset, SlotCounts)>>,
}

impl Counts for Counted {
    /// The count from that offset, or from one that lies before it by no more than a fiftieth of the records behind it: while
    /// records are counted, members go on.
    fn records_from(&self, topic: TopicId, partition: i32, from: Offset) -> Option<SlotCounts> {
        let of_partition = self.counts.get(&(topic, partition))?;
        let (counted, (end, counts)) = of_partition.range(..=from).next_back()?;
        let missed = from - counted;
        let behind = end.saturating_sub(from).max(0);
        (missed <= behind / 50).then(|| counts.clone())
    }
}

impl Counted {
    /// Takes further counts in.
    fn extend(&mut self, other: Self) {
        for (key, counts) in other.counts {
            self.counts.entry(key).or_default().extend(counts);
        }
    }
}

/// One thought of the planner, or one order to it: it is asked, what it wants to know first is counted, and it is asked again
/// with that, until it wants no more, or has had counts enough. Whoever runs it asks and counts, each where that is right:
///
/// ```text
/// while let Some(tasks) = thought.to_count(ask(thought.counted())) {
///     thought.learn(count(tasks));
/// }
/// ```
#[derive(Debug, Default)]
pub struct Thought {
    counted: Counted,
    counts: usize,
}

impl Thought {
    /// What was counted so far: what the planner is asked with.
    pub const fn counted(&self) -> &Counted {
        &self.counted
    }

    /// Asked so, it wants this. What is to be counted now; none: the thought is over.
    pub fn to_count(&self, wanted: Vec<CountTask>) -> Option<Vec<CountTask>> {
        (!wanted.is_empty() && self.counts < COUNTS_MAX).then_some(wanted)
    }

    /// That was counted. It is to be asked again, after the last count as well.
    pub fn learn(&mut self, more: Counted) {
        self.counted.extend(more);
        self.counts += 1;
    }
}

/// Tallies of the logs that are counted.
#[derive(Debug, Default)]
pub struct Counting {
    tallies: BTreeMap<LogId, Tally>,
}

impl Counting {
    /// Counts. Reads from the disk, so not under a lock.
    ///
    /// # Errors
    /// Those of reading a log, with its id; what was counted of others is lost, and may be asked for again.
    pub fn count(
        &mut self,
        store: &Store,
        scans: &ScanCache,
        tasks: &[CountTask],
    ) -> Result<Counted, (LogId, SourceError)> {
        let mut counted = Counted::default();
        let mut lowest: BTreeMap<LogId, Offset> = BTreeMap::new();
        for task in tasks {
            let low = lowest.entry(task.log).or_insert(task.wanted.from);
            *low = task.wanted.from.min(*low);
        }
        for task in tasks {
            let low = lowest.get(&task.log).copied().unwrap_or(task.wanted.from);
            let counts = self
                .count_one(store, scans, task, low)
                .map_err(|error| (task.log, error))?;
            let key = (task.wanted.topic, task.wanted.partition);
            let value = (task.high_watermark, counts);
            counted
                .counts
                .entry(key)
                .or_default()
                .insert(task.wanted.from, value);
        }
        Ok(counted)
    }

    fn count_one(
        &mut self,
        store: &Store,
        scans: &ScanCache,
        task: &CountTask,
        lowest: Offset,
    ) -> Result<SlotCounts, SourceError> {
        let from = task.wanted.from.max(task.log_start);
        if from >= task.high_watermark {
            return Ok(SlotCounts::none());
        }
        let source = FromDisk(store);
        let tally = self.tally(task.log, lowest.max(task.log_start));
        scans.note(tally.advance(&source, task.high_watermark, TALLY_STEP_BYTES)?);
        let mut sieve = Sieve::empty(Offset::MAX);
        sieve.add(&SlotSet::all(), from);
        let counts = tally.remaining(&source, scans, &sieve, task.high_watermark, SURVEY_BYTES_MAX)?;
        Ok(to_planner(&counts, task.high_watermark - from))
    }

    fn tally(&mut self, log: LogId, lowest: Offset) -> &mut Tally {
        if !self.tallies.contains_key(&log) && self.tallies.len() >= TALLIES_MAX {
            self.tallies.pop_first();
        }
        let fresh = || Tally::new(log, lowest, TALLY_BYTES_MAX);
        let tally = self.tallies.entry(log).or_insert_with(fresh);
        if tally.start() > lowest {
            // Another group reads further back: begin anew.
            *tally = fresh();
        }
        tally.trim(lowest);
        tally
    }
}

/// The same counts as the planner takes them.
fn to_planner(counts: &slices::SlotCounts, records: Offset) -> SlotCounts {
    let each = (0..SLOTS).filter_map(|slot| Slot::new(u16::try_from(slot).ok()?));
    let by_slot = each.map(|slot| (slot, counts.of(slot)));
    if counts.is_exact() {
        return SlotCounts::exact(by_slot);
    }
    // From how far a half may be off (two standard errors) to the size of a sample that has that error.
    let half: SlotSet = (0..SLOTS)
        .step_by(2)
        .filter_map(|slot| Slot::new(u16::try_from(slot).ok()?))
        .collect();
    let of = u64::try_from(records).unwrap_or(0);
    let relative = of as f64 / counts.error(&half).max(1) as f64;
    SlotCounts::estimated(by_slot, ((relative * relative) as u64).clamp(1, of.max(1)), of)
}

impl<J: Journal> Engine<J> {
    /// Lets the planner think about the groups whose time has come. What it wants counted first is to be counted without
    /// the lock, by [`Counting::count`], and given to the next call, which may come at once.
    pub fn plan(&mut self, now: Now, counted: &Counted) -> (Vec<CountTask>, Outcome) {
        let (wanted, outcome) = self.group(now, |coordinator, topics, now| {
            coordinator.plan(now, topics, counted)
        });
        (self.count_tasks(wanted), outcome)
    }

    /// Gives the planner an order; see [`anabranch_core::group::Coordinator::order`]. What it wants counted first comes as with [`Self::plan`].
    pub fn order(
        &mut self,
        now: Now,
        group: &str,
        counted: &Counted,
        order: (Order, bool),
    ) -> (Option<(Ordered, Vec<CountTask>)>, Outcome) {
        let (ordered, outcome) = self.group(now, |coordinator, topics, now| {
            coordinator.order(now, topics, group, counted, order)
        });
        let ordered = ordered.map(|ordered| {
            let tasks = self.count_tasks(ordered.wanted.clone());
            (ordered, tasks)
        });
        (ordered, outcome)
    }

    /// The group as the planner sees it; see [`anabranch_core::group::Coordinator::look_at`].
    pub fn look_at(&mut self, now: Now, group: &str, counted: &Counted) -> Option<Snapshot> {
        let (groups, topics) = self.node.groups_mut();
        groups.look_at(now, &topics, group, counted)
    }

    /// What is to be counted for an exact look at a group.
    pub fn count_tasks_of(&self, now: Now, group: &str) -> Vec<CountTask> {
        let topics = self.node.partitions();
        self.count_tasks(self.node.groups().counts_of_divided(now, &topics, group))
    }

    /// What is to be counted, with the logs that it is in; what does not exist is left out.
    pub fn count_tasks(&self, wanted: impl IntoIterator<Item = CountWanted>) -> Vec<CountTask> {
        let partitions = self.node.partitions();
        let task = |wanted: CountWanted| {
            let log = self.log_of((wanted.topic, wanted.partition))?;
            Some(CountTask {
                wanted,
                log,
                log_start: partitions.log_start(wanted.topic, wanted.partition),
                high_watermark: partitions.log_end(wanted.topic, wanted.partition),
            })
        };
        wanted.into_iter().filter_map(task).collect()
    }

    /// When [`Self::plan`] is to be called next, monotonic milliseconds, if nothing happens before.
    pub fn next_plan(&self) -> Option<u64> {
        self.node.groups().next_plan()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(from: Offset) -> CountTask {
        CountTask {
            wanted: CountWanted {
                topic: TopicId::default(),
                partition: 0,
                from,
            },
            log: LogId::default(),
            log_start: 0,
            high_watermark: 100,
        }
    }

    fn count(tasks: &[CountTask]) -> Counted {
        let by_offset = tasks
            .iter()
            .map(|task| (task.wanted.from, (100, SlotCounts::none())));
        Counted {
            counts: BTreeMap::from([((TopicId::default(), 0), by_offset.collect())]),
        }
    }

    #[test]
    fn a_thought_ends_when_nothing_is_wanted_or_after_the_last_count_was_asked_about() {
        let thought = Thought::default();
        assert!(thought.to_count(Vec::new()).is_none());

        // It always wants one offset more than it knows.
        let (mut thought, mut asked) = (Thought::default(), Vec::new());
        let mut ask = |counted: &Counted| {
            let known = (0..100)
                .step_by(10)
                .filter(|from| counted.records_from(TopicId::default(), 0, *from).is_some());
            asked.push(known.count());
            vec![task(10 * asked.len() as Offset - 10)]
        };
        while let Some(tasks) = thought.to_count(ask(thought.counted())) {
            thought.learn(count(&tasks));
        }
        assert_eq!(
            asked,
            [0, 1, 2, 3, COUNTS_MAX],
            "what was counted last was of use"
        );
    }
}
