//! Whole partitions placed by load, and left alone otherwise.

use std::collections::BTreeMap;

use super::moves_test::World;
use super::planning_test::Uncounted;
use super::shares_test::{half, moves};
use crate::elastic::{Ended, Entry, How, Mode};
use crate::group::harness::{Bench, modern};
use crate::ids::Offset;

impl World {
    /// Members of a topic of several partitions with so many records each, of which the group has read none.
    fn of_partitions(names: &[&'static str], ends: &[Offset]) -> Self {
        let bench = Bench::new(&[("t", ends.len() as i32)]);
        let mut world = Self {
            bench,
            members: BTreeMap::new(),
            read_last: None,
        };
        let topic = world.bench.topics.id("t");
        for (partition, end) in ends.iter().enumerate() {
            world.bench.topics.ends.insert((topic, partition as i32), *end);
        }
        world.join(names[0]);
        world.calm();
        for partition in 0..ends.len() as i32 {
            let epoch = world.members[names[0]].member_epoch;
            assert!(world.bench.commit(names[0], epoch, "t", partition, 0).is_ok());
        }
        for name in &names[1..] {
            world.join(name);
            world.calm();
        }
        world
    }

    /// Time passes; the planner thinks and members heartbeat.
    fn let_pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.bench.pass(1_000);
            let (now, topics) = (self.bench.now, self.bench.topics.clone());
            let (_, effects) = self.bench.coordinator.plan(now, &topics, &Uncounted);
            self.bench.take(effects);
            let effects = self.bench.coordinator.recheck_queues(now, &topics);
            self.bench.take(effects);
            self.beat();
        }
        self.bench.check_fold();
    }

    fn partitions(&self, member: &str) -> Vec<i32> {
        let consumer = self.bench.coordinator.groups()["g"].consumer().unwrap();
        let held = consumer.members[member].current.assigned.values();
        held.flat_map(|held| held.keys().copied()).collect()
    }

    fn placed(&self) -> usize {
        let entries = self.bench.coordinator.decisions_of("g");
        let is_balance = |entry: &Entry| match entry {
            Entry::Decided(decision) => decision.change.kind.code() == "balance",
            Entry::Refused { .. } => false,
        };
        entries.filter(|(_, entry, _)| is_balance(entry)).count()
    }
}

#[test]
fn a_member_that_has_nothing_to_read_gets_one_of_two_full_partitions() {
    let mut world = World::of_partitions(&["a", "b"], &[10_000, 10_000, 0, 0]);
    assert_eq!(
        (world.partitions("a"), world.partitions("b")),
        (vec![0, 1], vec![2, 3])
    );
    world.let_pass(4);
    assert_eq!(world.placed(), 1, "decided once, and done");
    let (a, b) = (world.partitions("a"), world.partitions("b"));
    assert!(a.contains(&0) != a.contains(&1), "{a:?} and {b:?}");
    assert_eq!(a.len() + b.len(), 4);
    let settled = world.bench.coordinator.settled("g", 0).unwrap();
    assert_eq!(settled.ended, Ended::Done);
    // It stays there when the group changes, and is the assignor's again when the member leaves.
    world.join("c");
    world.let_pass(4);
    let placed = *b.iter().find(|partition| **partition < 2).unwrap();
    assert!(
        world.partitions("b").contains(&placed),
        "{:?}",
        world.partitions("b")
    );
    world.leave("b");
    world.let_pass(4);
    let all = [world.partitions("a"), world.partitions("c")].concat();
    assert_eq!(all.len(), 4, "{all:?}");
}

#[test]
fn a_topic_that_goes_to_queue_mode_has_its_queues_spread_evenly_again() {
    let mut world = World::of_partitions(&["a", "b"], &[0, 0, 10_000, 10_000]);
    world.let_pass(4);
    world.join("c");
    world.join("d");
    let consumer = world.bench.coordinator.groups()["g"].consumer().unwrap();
    let targets: Vec<usize> = consumer
        .members
        .values()
        .map(|state| state.target.len())
        .collect();
    assert_eq!(targets, [1, 1, 1, 0], "what was placed with a stays there");
    world.bench.topics.read_queues = Some(4);
    world.bench.topics.elastic.mode = Mode::Queues;
    world.bench.topics_changed();
    world.let_pass(4);
    for member in ["a", "b", "c", "d"] {
        assert_eq!(world.partitions(member).len(), 1, "{member}");
    }
}

/// The first two queues are read. Whether the partition is one of them or not, nobody shares it in the end.
#[test]
fn a_partition_that_was_divided_when_its_topic_went_to_queue_mode_is_a_queue_like_the_others_soon() {
    for partition in [0, 2] {
        let mut world = World::of_partitions(&["a", "b"], &[0, 0, 0]);
        let key = (world.bench.topics.id("t"), partition);
        let holder = world.bench.coordinator.whole_holder("g", key).0.unwrap();
        let parts = [("a", half(false)), ("b", half(true))];
        world.act(&moves(key, How::Divide, Some(&holder), &parts));
        world.let_pass(2);
        assert!(world.partitions("a").contains(&partition) && world.partitions("b").contains(&partition));
        world.bench.topics.read_queues = Some(2);
        world.bench.topics.elastic.mode = Mode::Queues;
        world.bench.topics_changed();
        world.let_pass(9);
        let (a, b) = (world.partitions("a"), world.partitions("b"));
        assert_eq!((a.len(), b.len()), (1, 1), "{partition}: {a:?} and {b:?}");
        let consumer = world.bench.coordinator.groups()["g"].consumer().unwrap();
        assert!(consumer.shared.is_empty());
        let epoch = consumer.epoch;
        world.let_pass(9);
        let consumer = world.bench.coordinator.groups()["g"].consumer().unwrap();
        assert_eq!(consumer.epoch, epoch, "and that is that");
    }
}

#[test]
fn partitions_are_dealt_by_number_where_nothing_is_elastic_or_a_client_wants_them_together() {
    let ends = [10_000, 10_000, 0, 0];
    let mut world = World::of_partitions(&["a", "b"], &ends);
    world.bench.topics.elastic.mode = Mode::Off;
    world.let_pass(4);
    assert_eq!((world.placed(), world.partitions("a")), (0, vec![0, 1]));

    let mut world = World::of_partitions(&["a"], &ends);
    for name in ["b", "c"] {
        let mut request = modern(name, &["t"]);
        request.assignor = Some("range".to_owned());
        let joined = world.bench.consumer(&request).unwrap();
        world.members.insert(name, joined);
    }
    world.calm();
    world.let_pass(4);
    assert_eq!(world.placed(), 0);
}

#[test]
fn a_group_that_is_not_elastic_in_its_work_is_not_moved_about() {
    let mut world = World::of_partitions(&["a", "b"], &[9_000, 200, 10_000, 0]);
    world.let_pass(6);
    assert_eq!(world.placed(), 0, "both have work, and about as much");
}
