//! The claims of the published design, as far as they are the planner's, each by name.

use super::harness::{Held, TOPIC, World, even, kinds};
use super::*;
use anabranch_wire::slot::SLOTS;

/// A at work on one partition of 10,000 records, B without anything.
fn one_at_work_one_without() -> World {
    World::new().plain(0, "a", even(10_000)).member("a").member("b")
}

#[test]
fn claim_1_the_remaining_messages_are_halved_for_a_consumer_without_a_partition() {
    let mut world = one_at_work_one_without();
    world.process("a", 2_000);
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Split]);
    // Two new partitions over the remaining 8,000, one for each of the two.
    let change = &plan.decisions[0].change;
    assert_eq!(
        change
            .moves
            .iter()
            .map(|moved| moved.to.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    let (a, b) = (world.load("a"), world.load("b"));
    assert_eq!(a + b, 8_000);
    assert!(a.abs_diff(b) <= 160, "{a} and {b}");
    assert_eq!(change.shares[0].before, 8_000);
    assert_eq!((change.shares[0].after, change.shares[1].after), (a, b));
}

#[test]
fn claim_1_each_part_is_processed_by_one_consumer() {
    let mut world = one_at_work_one_without();
    world.step();
    let (a, b) = (world.slots_of(0, "a"), world.slots_of(0, "b"));
    assert!(a.is_disjoint(&b) && a.union(&b).is_all());
}

#[test]
fn claim_3_the_operation_also_runs_at_a_period() {
    let mut world = one_at_work_one_without();
    world.topic().divided_ms = Some(world.snapshot.now.mono_ms);
    assert!(world.step().decisions.is_empty(), "it was just divided");
    // Nothing has changed in the group when the next period comes.
    world.wait(GroupElasticSettings::default().interval_ms);
    assert_eq!(kinds(&world.step()), [Kind::Split]);
}

#[test]
fn claim_4_i_a_new_consumer_joins() {
    let mut world = World::new().plain(0, "a", even(10_000)).member("a");
    assert!(world.step().decisions.is_empty());
    world.join("b");
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Split]);
    assert_eq!(plan.decisions[0].change.why, Why::MemberIdle);
}

#[test]
fn claim_4_ii_a_consumer_has_processed_all_messages_of_its_partition() {
    let mut world = one_at_work_one_without();
    world.step();
    world.process("b", u64::MAX);
    world.wait(5_000);
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Steal]);
    assert_eq!(plan.decisions[0].change.why, Why::MemberDrained);
    assert!(world.load("a").abs_diff(world.load("b")) <= 100);
}

#[test]
fn claim_4_iii_a_consumer_ended_without_having_processed_its_messages() {
    let mut world = one_at_work_one_without();
    world.step();
    world.leave("b");
    // At once: no cooldown holds slots that nobody has.
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Merge]);
    assert_eq!(world.load("a"), 10_000);
    assert!(world.slots_of(0, "a").is_all());
}

#[test]
fn claim_6_the_metadata_is_there_before_the_first_operation() {
    let mut world = World::new().plain(0, "a", even(10_000)).member("a");
    let snapshot = world.look();
    assert!(snapshot.members.contains_key("a"));
    let partition = &snapshot.topics[&TOPIC].partitions[&0];
    assert!(matches!(&partition.reading, Reading::Plain(plain) if plain.holder.as_deref() == Some("a")));
    // It is what step (a) is decided by: nobody is without a partition.
    let plan = super::plan(&snapshot);
    assert_eq!((plan.decisions.len(), plan.refusals.len()), (0, 0));
}

#[test]
fn claim_7_the_victim_has_the_most_messages_still_to_be_processed() {
    // P0 is the largest, but most of it is done; p1 has the most still to be processed.
    let mut world = World::new()
        .plain(0, "a", even(90_000))
        .plain(1, "b", even(20_000))
        .plain(2, "c", even(5_000));
    for id in ["a", "b", "c", "d"] {
        world.join(id);
    }
    world.process("a", 80_000);
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Split]);
    let moved = &plan.decisions[0].change.moves[0];
    assert_eq!((moved.of.partition, moved.from.as_deref()), (1, Some("b")));
    assert!(world.load("b").abs_diff(world.load("d")) <= 400);
}

#[test]
fn claim_8_what_remains_is_compared_with_a_threshold_after_step_a() {
    for (records, divided) in [(999, false), (1000, true)] {
        let mut world = World::new().plain(0, "a", even(records)).member("a");
        // Step (a) says no: nothing is compared, nothing refused.
        assert!(world.plan().refusals.is_empty());
        world.join("b");
        let plan = world.step();
        assert_eq!(!plan.decisions.is_empty(), divided, "{records}");
        let refused: Vec<&WhyNot> = plan.refusals.iter().map(|refusal| &refusal.why_not).collect();
        let below = WhyNot::BelowThreshold {
            remaining: 999,
            needed: 1000,
        };
        assert_eq!(refused, if divided { vec![] } else { vec![&below] });
    }
}

#[test]
fn claim_9_the_metadata_has_the_list_of_consumers() {
    let mut world = one_at_work_one_without();
    // One who is not in the list holds nothing that counts: its partition is without a consumer.
    world.leave("a");
    world = world.part(1, Held::Plain(Some("ghost".into())), even(10));
    let plan = world.plan();
    let assigned: Vec<_> = plan.decisions[0]
        .change
        .moves
        .iter()
        .map(|moved| (moved.of.partition, &moved.to))
        .collect();
    assert_eq!(assigned, [(0, &"b".to_owned()), (1, &"b".to_owned())]);
    assert!(
        plan.decisions[0]
            .change
            .moves
            .iter()
            .all(|moved| moved.from.is_none())
    );
}

#[test]
fn k_consumers_without_work_are_k_operations_in_one_cut() {
    let mut world = World::new().plain(0, "a", even(80_000)).member("a");
    for number in 1..8 {
        world.join(&format!("b{number}"));
    }
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Split]);
    assert_eq!(plan.decisions[0].change.moves.len(), 8);
    assert!(
        world.loads().iter().all(|load| load.abs_diff(10_000) <= 200),
        "{:?}",
        world.loads()
    );
    assert_eq!(world.shares(0), 8);
}

#[test]
fn k_consumers_go_to_the_shares_whose_parts_are_largest() {
    let mut world = World::new()
        .plain(0, "a", even(60_000))
        .plain(1, "b", even(30_000));
    for id in ["a", "b", "c", "d"] {
        world.join(id);
    }
    let plan = world.step();
    // 60 and 30 for two more: 30 + 30, then 20 + 20 + 20 against 15 + 15; ties go to the larger share.
    assert_eq!(kinds(&plan), [Kind::Split]);
    assert_eq!((world.shares(0), world.shares(1)), (3, 1));
    assert_eq!(world.load("b"), 30_000);
}

#[test]
fn every_slot_stays_with_somebody_through_joining_and_leaving() {
    let mut world = World::new().plain(0, "m0", even(100_000)).member("m0");
    for round in 1..40u64 {
        let id = format!("m{round}");
        if round % 3 == 0 {
            let gone = world.snapshot.members.keys().next().cloned().unwrap();
            world.leave(&gone);
        }
        world.join(&id);
        world.step();
        let owned: usize = world
            .snapshot
            .members
            .keys()
            .map(|id| world.slots_of(0, id).len())
            .sum();
        assert_eq!(owned, SLOTS, "round {round}");
        world.wait(1_000);
    }
}
