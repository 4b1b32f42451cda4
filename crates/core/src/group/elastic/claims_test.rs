//! Claims of the published design that modules show together: members, metadata, planner and cursor in one group. What
//! the planner shows alone is in `crate::elastic::claims_test`; `docs/patent-map.md` lists both.

use std::collections::BTreeSet;

use super::moves_test::World;
use super::planning_test::Log;
use super::view::Counts;
use crate::elastic::{Decision, DivideInputs, Entry, Inputs, MemberState, Reading, Snapshot};
use crate::ids::TopicId;
use crate::slots::SlotSet;

/// The metadata of the group, as the planner sees it.
fn metadata(world: &mut World) -> Snapshot {
    let (now, topics, log) = (
        world.bench.now,
        world.bench.topics.clone(),
        Log { end: world.end() },
    );
    world.bench.coordinator.look_at(now, &topics, "g", &log).unwrap()
}

fn reading(world: &mut World) -> Reading {
    let (topic, partition) = world.key();
    metadata(world).topics[&topic].partitions[&partition]
        .reading
        .clone()
}

/// Who has which slots.
fn mapping(world: &mut World) -> Vec<(String, SlotSet)> {
    match reading(world) {
        Reading::Plain(plain) => plain.holder.into_iter().map(|id| (id, SlotSet::all())).collect(),
        Reading::Divided(divided) => divided
            .shares
            .into_iter()
            .map(|(id, share)| (id, share.slots))
            .collect(),
    }
}

fn owners(world: &mut World) -> Vec<String> {
    mapping(world).into_iter().map(|(id, _)| id).collect()
}

fn decisions(world: &World) -> Vec<Decision> {
    let entries = world.bench.coordinator.decisions_of("g");
    let decided = entries.filter_map(|(_, entry, _)| match entry {
        Entry::Decided(decision) => Some(decision.clone()),
        Entry::Refused { .. } => None,
    });
    decided.collect()
}

fn divide_inputs(decision: &Decision) -> &DivideInputs {
    match &decision.inputs {
        Inputs::Divide(inputs) => inputs,
        other => panic!("{other:?}"),
    }
}

/// Records of 20,000 that lie in these slots at or behind an offset.
fn records(slots: &SlotSet, from: i64) -> u64 {
    let counts = Log { end: 20_000 }.records_from(TopicId::default(), 0, from);
    counts.unwrap().total_of(slots)
}

/// One member at work on a backlog of which it has done 2,000 records.
fn one_at_work() -> World {
    let mut world = World::with_backlog(&["a"], 20_000);
    let epoch = world.members["a"].member_epoch;
    assert!(world.bench.commit("a", epoch, "t", 0, 2_000).is_ok());
    world
}

#[test]
fn claim_1_the_metadata_follows_each_operation_while_consumers_are_at_work() {
    let mut world = one_at_work();
    assert_eq!(mapping(&mut world), [("a".to_owned(), SlotSet::all())]);
    world.join("b");
    world.live(8);
    assert_eq!(world.kinds(), ["split"]);
    // Two new partitions hold what remained, half in each; one is the former owner's, the other the idle one's.
    let map = mapping(&mut world);
    let [(one, of_one), (two, of_two)] = map.as_slice() else {
        panic!("{map:?}");
    };
    assert_eq!((one.as_str(), two.as_str()), ("a", "b"));
    assert!(of_one.is_disjoint(of_two) && of_one.union(of_two).is_all());
    let (left, right) = (records(of_one, 2_000), records(of_two, 2_000));
    assert_eq!(left + right, 18_000);
    assert!(left.abs_diff(right) <= 18_000 / 50, "{left} and {right}");
    let (at_one, at_two) = (world.position("a"), world.position("b"));
    assert!(at_one.slice().is_some() && at_two.slice().is_some() && at_one.slice() != at_two.slice());
    assert_eq!(
        (at_one.offset(), at_two.offset()),
        (2_000, 2_000),
        "what was done is not divided"
    );
    // The next operation changes it again.
    world.work("a", 20);
    world.work("b", 20);
    world.join("c");
    world.live(12);
    assert_eq!(owners(&mut world), ["a", "b", "c"]);
}

#[test]
fn claim_1_messages_of_one_partition_are_processed_by_one_consumer() {
    let mut world = one_at_work();
    world.join("b");
    world.live(8);
    let read = |world: &mut World, member: &str| -> BTreeSet<i64> {
        let mut seen = BTreeSet::new();
        loop {
            let found = world.work(member, 3_000);
            if found.is_empty() {
                return seen;
            }
            seen.extend(found);
        }
    };
    let (a, b) = (read(&mut world, "a"), read(&mut world, "b"));
    assert!(a.is_disjoint(&b));
    assert!(a.union(&b).copied().eq(2_000..20_000));
}

#[test]
fn claim_3_the_operation_runs_at_a_period_though_nothing_happens_in_the_group() {
    let mut world = World::with_backlog(&["a", "b"], 600);
    world.live(5);
    assert!(world.kinds().is_empty(), "not enough to divide");
    // Producers send more. Members do what they did before.
    let key = world.key();
    world.bench.topics.ends.insert(key, 20_000);
    let (next_ms, now_ms) = (
        world.bench.coordinator.next_plan().unwrap(),
        world.bench.now.mono_ms,
    );
    assert!(next_ms <= now_ms + 1_000, "the period is a second");
    world.live(1);
    assert_eq!(world.kinds(), ["split"]);
}

#[test]
fn claim_3_the_operation_runs_at_a_change_of_the_group_without_waiting_for_the_period() {
    let mut world = World::with_backlog(&["a", "b"], 60_000);
    world.live(8);
    world.work("a", 20);
    world.work("b", 20);
    world.live(8);
    let before = world.kinds().len();
    world.plan();
    assert_eq!(
        world.kinds().len(),
        before,
        "nothing happened, and no time passed"
    );
    world.join("c");
    world.plan();
    let decisions = decisions(&world);
    assert_eq!(decisions.len(), before + 1, "{:?}", world.kinds());
    let moves = &decisions.last().unwrap().change.moves;
    assert!(moves.iter().any(|moved| moved.to == "c"));
}

#[test]
fn claim_4_i_the_group_changes_when_a_consumer_joins() {
    let mut world = one_at_work();
    world.live(5);
    assert!(world.kinds().is_empty());
    world.join("b");
    world.live(8);
    assert_eq!(world.kinds(), ["split"]);
    assert!(!world.slots("b").is_empty());
}

#[test]
fn claim_4_ii_the_group_changes_when_a_consumer_has_processed_its_partition() {
    let mut world = one_at_work();
    world.join("b");
    world.live(8);
    world.work("a", 20);
    while !world.work("b", 3_000).is_empty() {}
    assert_eq!(metadata(&mut world).members["b"].state, MemberState::Drained);
    for _ in 0..10 {
        world.live(1);
        world.work("a", 20);
    }
    assert!(world.kinds().contains(&"steal"), "{:?}", world.kinds());
    assert!(!world.work("b", 100).is_empty(), "it has work again");
}

#[test]
fn claim_4_iii_the_group_changes_when_a_consumer_ends_before_it_has_processed_its_partition() {
    let mut world = one_at_work();
    world.join("b");
    world.live(8);
    let of_b = world.slots("b");
    world.work("b", 100);
    world.leave("b");
    world.live(3);
    assert_eq!(world.kinds(), ["split", "merge"]);
    assert_eq!(owners(&mut world), ["a"]);
    let mut seen = Vec::new();
    loop {
        let found = world.work("a", 3_000);
        if found.is_empty() {
            break;
        }
        seen.extend(found);
    }
    let rest = records(&of_b, 2_000) - 100;
    assert_eq!(
        seen.len() as u64,
        records(&world.slots("a").difference(&of_b), 2_000) + rest
    );
}

#[test]
fn claim_6_the_metadata_is_there_before_the_planner_has_run() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    assert_eq!(
        world.bench.coordinator.decisions_of("g").count(),
        0,
        "no operation yet"
    );
    let seen = metadata(&mut world);
    assert_eq!(seen.members.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(seen.topics[&world.key().0].partitions.len(), 1);
    assert_eq!(owners(&mut world), ["a"]);
}

#[test]
fn claim_9_the_metadata_has_all_consumers_also_those_without_a_partition() {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    let states = |world: &mut World| -> Vec<(String, MemberState)> {
        let members = metadata(world).members.into_iter();
        members.map(|(id, member)| (id, member.state)).collect()
    };
    assert_eq!(
        states(&mut world),
        [
            ("a".to_owned(), MemberState::Busy),
            ("b".to_owned(), MemberState::Idle)
        ]
    );
    world.leave("b");
    assert_eq!(states(&mut world), [("a".to_owned(), MemberState::Busy)]);
}

#[test]
fn claim_10_the_steps_of_the_method_are_in_the_record_of_the_decision() {
    let mut world = one_at_work();
    world.join("b");
    world.live(8);
    let decisions = decisions(&world);
    let inputs = divide_inputs(&decisions[0]);
    // (a) Is there a consumer without a partition?
    assert_eq!(inputs.needy.len(), 1);
    assert_eq!(
        (inputs.needy[0].id.as_str(), inputs.needy[0].drained),
        ("b", false)
    );
    // (b) The partition with the most that remains, and its halves.
    assert_eq!(inputs.candidates[0].owner, "a");
    assert_eq!(inputs.candidates[0].remaining, 18_000);
    let change = &decisions[0].change;
    assert!(change.shares[0].after.abs_diff(change.shares[1].after) <= 360);
    // (c) One half each.
    let takers: Vec<&str> = change.moves.iter().map(|moved| moved.to.as_str()).collect();
    assert_eq!(takers, ["a", "b"]);
    // And the metadata says so.
    let slots_of_b = change.moves[1].slots.clone();
    assert_eq!(mapping(&mut world)[1].1, slots_of_b);
}

#[test]
fn claim_12_the_method_keeps_the_list_of_consumers() {
    let mut world = World::with_backlog(&["a", "b"], 60_000);
    for (newcomer, all) in [("c", vec!["a", "b", "c"]), ("d", vec!["a", "b", "c", "d"])] {
        world.join(newcomer);
        let seen = metadata(&mut world);
        assert_eq!(seen.members.keys().collect::<Vec<_>>(), all);
    }
    world.live(8);
    // All of them were served by the operation that knew of them.
    let decisions = decisions(&world);
    let inputs = divide_inputs(&decisions[0]);
    let needy: BTreeSet<&str> = inputs.needy.iter().map(|needy| needy.id.as_str()).collect();
    assert_eq!(needy, BTreeSet::from(["b", "c", "d"]));
    assert_eq!(owners(&mut world), ["a", "b", "c", "d"]);
}

#[test]
fn claim_13_the_method_takes_the_partition_with_the_most_still_to_be_processed() {
    let mut world = World::with_backlog(&["a", "b"], 60_000);
    world.live(8);
    world.work("a", 20);
    world.work("b", 10_000);
    world.live(8);
    let before = decisions(&world).len();
    world.join("c");
    world.live(12);
    let decisions = decisions(&world);
    let decision = &decisions[before];
    let candidates = &divide_inputs(decision).candidates;
    assert_eq!(candidates[0].owner, "a", "b has read a third of its half");
    assert!(candidates[0].remaining > candidates[1].remaining + 9_000);
    assert!(
        decision
            .change
            .moves
            .iter()
            .all(|moved| moved.from.as_deref() == Some("a"))
    );
}

#[test]
fn claim_14_the_method_compares_what_remains_with_a_threshold() {
    for (end, remaining, is_divided) in [(1_099, 999, false), (1_100, 1_000, true)] {
        let mut world = World::with_backlog(&["a", "b"], end);
        world.live(3);
        assert_eq!(!world.kinds().is_empty(), is_divided, "{remaining}");
        let entries: Vec<_> = world.bench.coordinator.decisions_of("g").collect();
        let inputs = match entries[0].1 {
            Entry::Decided(decision) => &decision.inputs,
            Entry::Refused { refusal, .. } => {
                assert_eq!(refusal.why_not.code(), "below-threshold");
                &refusal.inputs
            }
        };
        let Inputs::Divide(inputs) = inputs else {
            panic!("{inputs:?}");
        };
        let candidate = &inputs.candidates[0];
        assert_eq!(
            (candidate.remaining, candidate.rules.split_min_remaining),
            (remaining, 1_000)
        );
    }
}
