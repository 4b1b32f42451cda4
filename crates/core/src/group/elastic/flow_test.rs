//! What members are handed ahead of their commits, and what becomes of moves when that is much.

use super::SliceFetch;
use super::activity::Activity;
use super::flow::{Flow, Pace};
use super::moves_test::{World, moved, slot};
use super::planning_test::{Uncounted, slot_of};
use crate::cursor::SliceOffset;
use crate::elastic::{Entry, How, Kind};
use crate::ids::Offset;
use crate::limits::HANDED_OUT_RECORDS_START;

impl World {
    /// A member takes all that it is given from a position on. Where it stands then, and how many records it got.
    fn take_all(&mut self, mut at: SliceOffset) -> (SliceOffset, usize) {
        let mut taken = 0;
        loop {
            let SliceFetch::Read(read) = self.bench.coordinator.locate_slice(self.key(), at) else {
                return (at, taken);
            };
            let sieve = &read.plan.sieve;
            let all = (read.plan.scan_from..self.end())
                .map(|offset| (offset, slot_of(offset)))
                .filter(|(offset, number)| sieve.keeps(slot(*number), *offset));
            let found: Vec<(Offset, u16)> = all.take(read.records_max).collect();
            let Some((last, _)) = found.last().copied() else {
                return (at, taken);
            };
            let from = self.read(at, &found, last + 1);
            taken += found.len();
            at = moved(from, last + 1);
        }
    }

    /// How much a member may be handed in one answer.
    fn room(&mut self, member: &str) -> usize {
        let at = self.position(member);
        match self.bench.coordinator.locate_slice(self.key(), at) {
            SliceFetch::Read(read) => read.records_max,
            other => panic!("{member} can read: {other:?}"),
        }
    }

    /// A member has been seen to do so many records a second.
    fn knows(&mut self, member: &str, rate: u64) {
        let mut activity = Activity::new(self.bench.now.mono_ms);
        activity.rate = Some(rate);
        let memory = self.bench.coordinator.elastic.group_mut("g");
        memory.activities.insert(member.to_owned(), activity);
    }

    fn is_full(&self, at: SliceOffset) -> bool {
        matches!(
            self.bench.coordinator.locate_slice(self.key(), at),
            SliceFetch::Full(_)
        )
    }

    /// How the slots of the newest division went.
    fn last_how(&self) -> Option<How> {
        let entries = self.bench.coordinator.decisions_of("g").rev();
        let mut splits = entries.filter_map(|(_, entry, _)| match entry {
            Entry::Decided(decision) if matches!(decision.change.kind, Kind::Split | Kind::Steal) => {
                decision.change.moves.first().map(|one| one.how)
            }
            Entry::Decided(_) | Entry::Refused { .. } => None,
        });
        splits.next()
    }
}

#[test]
fn a_member_is_handed_no_more_than_its_window_until_it_commits() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    let first = world.position("a");
    let (at, taken) = world.take_all(first);
    assert_eq!(taken as u64, HANDED_OUT_RECORDS_START, "nobody's speed is known");
    assert!(world.is_full(at));
    assert!(!world.is_full(first), "what it had already it gets again");
    let other = world.position("b");
    assert!(!world.is_full(other), "the other has a window of its own");
    // All of it is done at the first commit: it could have done more.
    world.bench.pass(1_000);
    world.commit("a", at);
    let (at, taken) = world.take_all(at);
    assert!(taken as u64 >= 2 * HANDED_OUT_RECORDS_START, "{taken}");
    // From now on half of it is left at each commit: the rest of a second, and another second.
    let half = moved(at, (first.offset() + at.offset()) / 2);
    world.bench.pass(1_000);
    world.commit("a", half);
    assert!(!world.is_full(at));
}

/// When a group is new, nobody knows where its first reader began: its first commit says where it stands, and nothing of how
/// fast it got there. Its next one may come at once, as it gives the partition up to be divided.
#[test]
fn the_pace_of_a_new_group_is_measured_from_its_first_commit_on() {
    let mut world = World::uncommitted(&["a", "b"]);
    let key = world.key();
    world.bench.topics.ends.insert(key, 100_000);
    world.plan();
    for (after_ms, done) in [(1_000, 900), (1_000, 1_900), (14, 1_914)] {
        world.bench.pass(after_ms);
        world.commit("a", SliceOffset::new(None, done).unwrap());
        world.plan();
    }
    let memory = world.bench.coordinator.elastic.group("g");
    let activity = &memory.unwrap().activities["a"];
    assert_eq!(activity.rate, Some(1_000));
    let interval_ms = activity.commits.interval_ms;
    assert!(interval_ms.is_some_and(|ms| ms > 500), "{interval_ms:?}");
}

#[test]
fn a_member_that_never_commits_is_woken_for_more() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    let start = world.position("a");
    let (at, _) = world.take_all(start);
    assert!(world.is_full(at));
    world.bench.pass(2_000);
    let (now, topics, key) = (world.bench.now, world.bench.topics.clone(), world.key());
    let (_, effects) = world.bench.coordinator.plan(now, &topics, &Uncounted);
    assert!(
        effects.moved.contains(&key),
        "whoever waits for records of it looks again"
    );
    world.bench.take(effects);
    assert!(!world.is_full(at));
}

/// What it took may be gone by then, deleted by retention: it has nothing to commit, and can only ask for what comes next.
#[test]
fn a_member_that_had_taken_all_it_might_before_a_restart_is_woken_for_more() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    let start = world.position("a");
    let (at, _) = world.take_all(start);
    let key = world.key();
    world.bench.topics.ends.insert(key, at.offset());
    world.restart();
    let taken: Vec<_> = (start.offset()..at.offset())
        .map(|offset| (offset, slot_of(offset)))
        .collect();
    world.recall(&taken);
    world.bench.topics.ends.insert(key, 100_000);
    assert!(world.is_full(at));
    for _ in 0..4 {
        world.bench.pass(2_000);
        let (now, topics) = (world.bench.now, world.bench.topics.clone());
        let (_, effects) = world.bench.coordinator.plan(now, &topics, &Uncounted);
        world.bench.take(effects);
    }
    assert!(!world.is_full(at));
}

#[test]
fn after_a_fence_that_did_not_open_the_share_is_taken_away_and_given_back_once() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    for _ in 0..4 {
        world.work("a", 1_000);
        world.live(1);
    }
    world.work("b", 20_000);
    let start = world.position("a");
    let (at, _) = world.take_all(start);
    world.join("c");
    world.live(4);
    assert_eq!(
        (world.kinds().as_slice(), world.last_how()),
        (["split", "split"].as_slice(), Some(How::Release))
    );
    // What a had nothing of in work is there at once.
    world.work("c", 100_000);
    world.live(35);
    assert_eq!(world.kinds()[2..], ["return", "steal"], "a committed nothing");
    assert_eq!(world.last_how(), Some(How::Regrant));
    assert!(!world.slots("c").is_empty(), "it gave up what it was handed");
    // It comes back with a fresh share, of which nothing is known to be slow.
    let before = at.slice();
    let after = world.position("a");
    assert!(after.slice() > before && !world.is_full(after));
}

#[test]
fn a_first_window_goes_by_the_members_own_pace_or_else_by_that_of_others_in_the_partition_or_in_the_group() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    world.knows("a", 400);
    world.knows("c", 4_000);
    // A commit every five seconds, a quarter more for late ones, and one second ahead.
    assert_eq!(world.room("a"), 400 * 7_250 / 1_000);
    assert_eq!(world.room("b"), 2_200 * 7_250 / 1_000, "the mean of the two");
    let pace = Pace {
        rate: Some(100_000),
        interval_ms: None,
    };
    let division = world.bench.coordinator.elastic.division_mut("g", world.key());
    division.flows.insert("a".to_owned(), Flow::new(0, pace));
    assert_eq!(
        world.room("b"),
        725,
        "others may have other work in other partitions"
    );
}

#[test]
fn nothing_is_kept_of_a_member_that_has_no_part_any_more() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    for name in ["a", "b"] {
        world.work(name, 100);
    }
    let flows = |world: &World| {
        let division = world
            .bench
            .coordinator
            .elastic
            .division("g", world.key())
            .unwrap();
        division.flows.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(flows(&world), ["a", "b"]);
    world.leave("b");
    world.live(2);
    assert_eq!(flows(&world), ["a"]);
}
