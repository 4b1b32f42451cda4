//! A group from its first idle member to the last one left: the planner decides, members follow.

use std::collections::BTreeSet;

use anabranch_wire::slot::SLOTS;

use super::moves_test::{World, moved, slot};
use super::{Counts, SliceFetch};
use crate::config::ConsumerGroupSettings;
use crate::cursor::{SliceId, SliceIdsChange};
use crate::elastic::{Entry, MemberState, Mode, SlotCounts};
use crate::group::change::GroupChange;
use crate::group::harness::{Bench, alive};
use crate::ids::{Offset, TopicId};
use crate::slots::SlotSet;

/// A log in which the record of each offset has the slot `7 * offset`.
pub(super) struct Log {
    pub(super) end: Offset,
}

pub(super) fn slot_of(offset: Offset) -> u16 {
    (offset * 7 % SLOTS as i64) as u16
}

impl Counts for Log {
    fn records_from(&self, _: TopicId, _: i32, from: Offset) -> Option<SlotCounts> {
        let records = (from..self.end).map(|offset| (slot(slot_of(offset)), 1));
        Some(SlotCounts::exact(records))
    }
}

/// Nobody has counted anything.
pub(super) struct Uncounted;

impl Counts for Uncounted {
    fn records_from(&self, _: TopicId, _: i32, _: Offset) -> Option<SlotCounts> {
        None
    }
}

impl World {
    /// A backlog that is worth dividing.
    pub(super) fn with_backlog(names: &[&'static str], end: Offset) -> Self {
        let mut world = Self::new(names);
        let key = world.key();
        world.bench.topics.ends.insert(key, end);
        world
    }

    pub(super) fn end(&self) -> Offset {
        self.bench.topics.ends[&self.key()]
    }

    pub(super) fn plan(&mut self) {
        let (now, topics, log) = (self.bench.now, self.bench.topics.clone(), Log { end: self.end() });
        let (wanted, effects) = self.bench.coordinator.plan(now, &topics, &log);
        assert_eq!(wanted, BTreeSet::new(), "everything is counted");
        self.bench.take(effects);
    }

    /// Time passes; the planner thinks and members heartbeat.
    pub(super) fn live(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.bench.pass(1_000);
            self.plan();
            self.beat();
        }
        self.bench.check_fold();
    }

    /// A member reads up to `records` records, and commits twice: in the middle and at the end.
    pub(super) fn work(&mut self, member: &str, records: usize) -> Vec<Offset> {
        let position = self.position(member);
        let found = self.hold(member, records);
        if let (Some(middle), Some(last)) = (found.get(found.len() / 2), found.last()) {
            // A position in a slice that is over leads on to the next.
            let at = self.read_last.take().unwrap_or(position);
            self.commit(member, moved(at, *middle));
            self.commit(member, moved(at, last + 1));
        }
        found
    }

    /// A member takes up to `records` records from its committed position on, and commits nothing.
    pub(super) fn hold(&mut self, member: &str, records: usize) -> Vec<Offset> {
        let position = self.position(member);
        let SliceFetch::Read(read) = self.bench.coordinator.locate_slice(self.key(), position) else {
            panic!("{member} can read");
        };
        let plan = &read.plan;
        let all =
            (plan.scan_from..self.end()).filter(|offset| plan.sieve.keeps(slot(slot_of(*offset)), *offset));
        let found: Vec<Offset> = all.take(records).collect();
        if let Some(last) = found.last() {
            let handed: Vec<(i64, u16)> = found.iter().map(|offset| (*offset, slot_of(*offset))).collect();
            self.read_last = Some(self.read(position, &handed, last + 1));
        }
        found
    }

    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let entries = self.bench.coordinator.decisions_of("g");
        entries
            .filter_map(|(_, entry, _)| match entry {
                Entry::Decided(decision) => Some(decision.change.kind.code()),
                Entry::Refused { .. } => None,
            })
            .collect()
    }
}

#[test]
fn an_idle_member_gets_half_of_the_backlog() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.live(8);
    assert_eq!(world.kinds(), ["split"]);
    let (a, b) = (world.slots("a"), world.slots("b"));
    assert!(a.is_disjoint(&b) && a.union(&b).is_all());
    let counted = Log { end: 20_000 }
        .records_from(TopicId::default(), 0, 100)
        .unwrap();
    let (left, right) = (counted.total_of(&a), counted.total_of(&b));
    assert!(left.abs_diff(right) <= 20_000 / 50, "{left} and {right}");
    assert_eq!(world.bench.committed("t", 0), 100);
}

#[test]
fn a_small_backlog_is_left_alone_and_the_refusal_says_why() {
    let mut world = World::with_backlog(&["a", "b"], 600);
    world.live(8);
    assert_eq!(world.kinds(), Vec::<&str>::new());
    let refusals: Vec<_> = world.bench.coordinator.decisions_of("g").collect();
    assert_eq!(refusals.len(), 1, "repeated refusals are counted");
    assert!(refusals[0].2 > 3);
    let Entry::Refused { refusal, .. } = refusals[0].1 else {
        panic!("it was refused");
    };
    assert_eq!(refusal.why_not.code(), "below-threshold");
    assert!(refusal.sentence().contains("500"), "{}", refusal.sentence());
}

#[test]
fn nothing_is_decided_before_records_were_counted() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    let (now, topics) = (world.bench.now, world.bench.topics.clone());
    let (wanted, effects) = world.bench.coordinator.plan(now, &topics, &Uncounted);
    world.bench.take(effects);
    assert!(wanted.iter().any(|one| one.from == 100), "{wanted:?}");
    assert_eq!(world.kinds(), Vec::<&str>::new());
    world.live(2);
    assert_eq!(world.kinds(), ["split"]);
}

#[test]
fn a_third_member_gets_a_part_without_the_others_being_revoked() {
    let mut world = World::with_backlog(&["a", "b"], 60_000);
    world.live(8);
    world.work("a", 50);
    world.work("b", 50);
    world.join("c");
    for _ in 0..12 {
        world.live(1);
        world.work("a", 20);
        world.work("b", 20);
    }
    assert!(world.kinds().contains(&"split"));
    let slots = world.slots("c");
    assert!(!slots.is_empty(), "{:?}", world.kinds());
    assert!(slots.is_disjoint(&world.slots("a")) && slots.is_disjoint(&world.slots("b")));
    world.work("c", 20);
}

#[test]
fn a_leavers_share_flows_to_those_who_stay_and_back_to_one_position() {
    let mut world = World::with_backlog(&["a", "b"], 4_000);
    world.live(8);
    assert_eq!(world.kinds(), ["split"]);
    world.work("b", 100);
    world.leave("b");
    world.live(3);
    assert_eq!(world.kinds(), ["split", "merge"]);
    assert_eq!(world.slots("a"), SlotSet::all());
    let mut seen: Vec<Offset> = Vec::new();
    loop {
        let found = world.work("a", 500);
        if found.is_empty() {
            break;
        }
        seen.extend(found);
    }
    assert!(
        seen.len() > 3_700,
        "all but the leaver's committed records: {}",
        seen.len()
    );
    world.live(400);
    assert!(world.is_plain(), "after a long quiet: {:?}", world.kinds());
    assert_eq!(world.bench.committed("t", 0), 4_000);
}

#[test]
fn when_everybody_leaves_and_one_comes_back_nothing_is_lost() {
    let mut world = World::with_backlog(&["a", "b"], 4_000);
    world.live(8);
    let done: BTreeSet<Offset> = world.work("a", 300).into_iter().collect();
    for name in ["a", "b"] {
        world.leave(name);
    }
    world.join("c");
    world.live(3);
    let mut seen = BTreeSet::new();
    loop {
        let found = world.work("c", 1_000);
        if found.is_empty() {
            break;
        }
        seen.extend(found);
    }
    let all: BTreeSet<Offset> = (100..4_000).collect();
    assert_eq!(done.union(&seen).copied().collect::<BTreeSet<_>>(), all);
    assert!(done.is_disjoint(&seen), "what was committed does not come again");
}

#[test]
fn where_nothing_is_divided_nobody_is_told_anything_and_switching_it_on_is_enough() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.bench.topics.elastic.mode = Mode::Off;
    let times = ConsumerGroupSettings {
        session_timeout_ms: 45_000,
        heartbeat_interval_ms: 5_000,
    };
    world.bench.coordinator.set_own_settings("g", Some(times));
    world.live(8);
    assert_eq!(world.bench.coordinator.decisions_of("g").count(), 0);
    assert_eq!(world.members["b"].heartbeat_interval_ms, 5_000);
    world.bench.topics.elastic.mode = Mode::Slices;
    world.beat();
    for name in ["a", "b"] {
        let interval_ms = world.members[name].heartbeat_interval_ms;
        assert_eq!(interval_ms, 500, "one waits for what the other gives up");
    }
    world.live(8);
    assert_eq!(world.members["b"].heartbeat_interval_ms, 1_000, "both share it");
    assert_eq!(world.kinds(), ["split"]);
    // What is divided is looked after, whatever the mode.
    world.bench.topics.elastic.mode = Mode::Off;
    world.work("a", 20_000);
    world.work("b", 20_000);
    world.live(8);
    assert!(world.kinds().contains(&"fold"), "{:?}", world.kinds());
}

#[test]
fn while_a_holder_is_to_give_up_nothing_else_is_decided() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.bench.pass(1_000);
    world.plan();
    assert_eq!(world.kinds(), ["split"]);
    let mut epoch = world.members["b"].member_epoch;
    for _ in 0..5 {
        world.bench.pass(1_000);
        epoch = world
            .bench
            .consumer(&alive("b", epoch, None))
            .unwrap()
            .member_epoch;
        world.plan();
    }
    assert_eq!(world.kinds(), ["split"], "the holder has not been heard of");
}

#[test]
fn a_member_that_reads_without_a_committed_position_has_work() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    let key = world.key();
    world.step(|coordinator, step, key| {
        let group = "g".to_owned();
        coordinator.record(
            step,
            GroupChange::CursorsGone {
                group,
                partitions: vec![key],
            },
        );
    });
    assert!(world.bench.coordinator.cursor_of("g", key).is_none());
    let state = |world: &mut World| {
        let (now, topics) = (world.bench.now, world.bench.topics.clone());
        let look = world.bench.coordinator.look_at(now, &topics, "g", &Uncounted);
        look.unwrap().members["a"].state
    };
    assert_eq!(state(&mut world), MemberState::Busy);
    world.bench.topics.ends.insert(key, 0);
    assert_eq!(state(&mut world), MemberState::Drained, "an empty log");
}

#[test]
fn members_that_could_be_taken_for_one_another_are_not_divided() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    let request = alive("b", world.members["b"].member_epoch, None);
    let (bench, borrowed) = (&mut world.bench, Bench::caller_of("a"));
    let (beaten, effects) =
        bench
            .coordinator
            .consumer_heartbeat(bench.now, &bench.topics, [7; 16], &borrowed, &request);
    bench.take(effects);
    assert!(beaten.is_ok());
    world.live(8);
    let entries: Vec<_> = world.bench.coordinator.decisions_of("g").collect();
    let [(_, Entry::Refused { refusal, .. }, _)] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert_eq!(refusal.why_not.code(), "ineligible");
    assert!(
        refusal.sentence().contains("one connection"),
        "{}",
        refusal.sentence()
    );
}

#[test]
fn a_partition_without_slice_ids_left_is_not_divided() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    let takes = |world: &mut World, numbers: std::ops::RangeInclusive<u32>| {
        world.step(|coordinator, step, (topic, partition)| {
            let group = "another".to_owned();
            let taken = numbers.filter_map(SliceId::new).map(|id| SliceIdsChange::Taken {
                id,
                group: group.clone(),
            });
            let changes = taken.collect();
            let change = GroupChange::SliceIds {
                group: group.clone(),
                topic,
                partition,
                changes,
            };
            coordinator.record(step, change);
        });
    };
    let last = SliceId::LAST.get();
    takes(&mut world, 1..=last - 1);
    world.live(8);
    let entries: Vec<_> = world.bench.coordinator.decisions_of("g").collect();
    let [(_, Entry::Refused { refusal, .. }, _)] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert_eq!(
        refusal.why_not.code(),
        "ids-exhausted",
        "the owner needs one as well"
    );
}
