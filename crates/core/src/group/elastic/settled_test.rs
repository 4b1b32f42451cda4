//! What became of decisions, and how long that took.

use std::collections::BTreeMap;

use super::moves_test::{World, moved};
use crate::elastic::{Ended, Entry, Kind, Outcome, Settled, Totals};

impl World {
    /// A member has most of its share in work and commits nothing: what was to go to a newcomer has come back.
    fn after_a_fence_that_stayed_shut() -> Self {
        let mut world = Self::with_backlog(&["a", "b"], 100_000);
        world.live(8);
        world.work("b", 40_000);
        world.hold("a", 5_000);
        world.join("c");
        world.live(32);
        world
    }

    /// Kind of each decision, and what became of it.
    fn ends(&self) -> Vec<(&'static str, Option<Settled>)> {
        let coordinator = &self.bench.coordinator;
        let entries = coordinator.decisions_of("g");
        let decided = entries.filter_map(|(number, entry, _)| match entry {
            Entry::Decided(decision) => {
                let replayed = decision.replay();
                assert_eq!(replayed, Outcome::Change(decision.change.clone()));
                Some((decision.change.kind.code(), coordinator.settled("g", number)))
            }
            Entry::Refused { .. } => None,
        });
        decided.collect()
    }

    fn ended(&self, number: usize) -> Option<(Ended, u64)> {
        let settled = self.ends().get(number).and_then(|(_, settled)| *settled)?;
        Some((settled.ended, settled.handover_ms))
    }
}

#[test]
fn a_division_is_done_when_the_receiver_has_its_part() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.bench.pass(1_000);
    world.plan();
    assert_eq!(world.ends(), [("split", None)], "the owner holds it still");
    world.bench.pass(700);
    world.beat();
    let (ended, handover_ms) = world.ended(0).unwrap();
    assert_eq!((ended, handover_ms), (Ended::Done, 700));
    world.bench.check_fold();
    world.bench.restart();
    assert_eq!(world.ended(0), Some((Ended::Done, 700)), "it is durable");
}

#[test]
fn a_release_is_done_when_commits_have_opened_the_fence_for_all_slots() {
    let mut world = World::with_backlog(&["a", "b"], 100_000);
    world.live(8);
    let at = world.position("a");
    world.work("b", 40_000);
    // More than all slots of its share are in work.
    let taken = world.hold("a", 5_000);
    world.join("c");
    world.live(3);
    assert_eq!(world.ended(1), None, "{:?}", world.ends());
    world.commit("a", moved(at, taken[taken.len() / 2]));
    world.commit("a", moved(at, taken[taken.len() - 1] + 1));
    let at = world.position("a");
    let more = world.hold("a", 100);
    world.commit("a", moved(at, more[more.len() - 1] + 1));
    world.live(3);
    let (ended, handover_ms) = world.ended(1).unwrap();
    assert_eq!(ended, Ended::Done);
    assert!((2_000..6_000).contains(&handover_ms), "{handover_ms}");
}

#[test]
fn a_fence_that_stays_shut_undoes_the_decision_and_the_return_is_done_at_once() {
    let world = World::after_a_fence_that_stayed_shut();
    assert_eq!(world.ends()[2].0, "return");
    assert_eq!(world.ended(1), Some((Ended::Undone, 30_000)));
    assert_eq!(world.ended(2), Some((Ended::Done, 0)));
}

#[test]
fn a_decision_is_overtaken_if_it_is_for_one_of_its_receivers() {
    let mut world = World::with_backlog(&["a", "b", "c"], 60_000);
    world.bench.pass(1_000);
    world.plan();
    world.leave("c");
    assert_eq!(world.ends(), [("split", None)], "the owner holds it still");
    world.live(2);
    assert!(!world.slots("b").is_empty(), "the other has its part");
    assert_eq!(world.ended(0).map(|end| end.0), Some(Ended::Overtaken));
}

#[test]
fn the_way_back_to_plain_is_done_when_the_cursor_is_plain() {
    let mut world = World::with_backlog(&["a", "b"], 4_000);
    world.live(8);
    world.leave("b");
    world.live(3);
    while !world.work("a", 1_000).is_empty() {}
    world.live(400);
    let ends = world.ends();
    assert_eq!(ends.last().map(|(kind, _)| *kind), Some("plain"));
    let is_done = |settled: &Option<Settled>| settled.is_some_and(|settled| settled.ended == Ended::Done);
    assert!(ends.iter().all(|(_, settled)| is_done(settled)), "{ends:?}");
}

#[test]
fn a_receiver_that_leaves_and_a_restart_overtake_what_is_on_its_way() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.bench.pass(1_000);
    world.plan();
    world.leave("b");
    world.live(1);
    assert_eq!(world.ended(0).map(|end| end.0), Some(Ended::Overtaken));

    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.bench.pass(1_000);
    world.plan();
    world.restart();
    assert_eq!(world.ended(0).map(|end| end.0), Some(Ended::Overtaken));
    world.bench.check_fold();
}

#[test]
fn a_pause_survives_a_restart() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    let set = |world: &mut World, group: &str, paused: bool| {
        let (now, topics) = (world.bench.now, world.bench.topics.clone());
        let (found, effects) = world.bench.coordinator.set_paused(now, &topics, group, paused);
        world.bench.take(effects);
        found
    };
    assert!(!set(&mut world, "nobody's", true));
    assert!(set(&mut world, "g", true));
    world.live(3);
    world.bench.restart();
    world.live(8);
    assert_eq!(world.kinds(), Vec::<&str>::new(), "it is paused");
    assert!(set(&mut world, "g", false));
    world.bench.restart();
    world.live(8);
    assert_eq!(world.kinds(), ["split"]);
}

#[test]
fn totals_count_decisions_by_kind_and_end_and_every_refusal_and_begin_anew_at_a_restart() {
    let world = World::after_a_fence_that_stayed_shut();
    let totals = world.bench.coordinator.totals();
    let ends = world.ends();
    let of_kind = |kind: Kind| ends.iter().filter(move |(code, _)| *code == kind.code());
    for kind in Kind::ALL {
        assert_eq!(totals.decided(kind), of_kind(kind).count() as u64, "{kind:?}");
        let counted = totals.handovers().iter().filter(|((of, _), _)| *of == kind);
        let counted: u64 = counted.map(|(_, durations)| durations.count()).sum();
        let ended = of_kind(kind).filter(|(_, settled)| settled.is_some()).count() as u64;
        assert_eq!(counted, ended, "{kind:?}");
    }
    assert!(totals.decided(Kind::Return) > 0);
    let undone = totals
        .handovers()
        .iter()
        .filter(|((_, end), _)| *end == Ended::Undone);
    let sums: Vec<u64> = undone.map(|(_, durations)| durations.sum_ms).collect();
    assert_eq!(sums, [30_000]);

    // Too little to divide: the member without work is told so again and again.
    let mut world = World::with_backlog(&["a", "b"], 500);
    world.live(8);
    let entries = world.bench.coordinator.decisions_of("g");
    let refusals = entries.filter_map(|(_, entry, again)| match entry {
        Entry::Refused { refusal, times, .. } => Some((refusal.why_not.code(), times + again)),
        Entry::Decided(_) => None,
    });
    let refusals: BTreeMap<&str, u64> = refusals.collect();
    assert!(refusals["below-threshold"] > 1, "{refusals:?}");
    assert_eq!(*world.bench.coordinator.totals().refused(), refusals);

    world.bench.restart();
    assert_eq!(*world.bench.coordinator.totals(), Totals::default());
}
