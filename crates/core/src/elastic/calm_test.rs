//! Slots without a holder, whole partitions, and what flows together again.

use super::harness::{Held, TOPIC, World, divided, even, kinds, refusals, shared_by};
use super::*;
use anabranch_wire::slot::SLOTS;

#[test]
fn slots_without_a_holder_do_not_wait_for_long_to_be_counted() {
    let mut world = shared_by(3, 90_000);
    world.counted = false;
    world.leave("m1");
    let mut snapshot = world.look();
    let plan = super::plan(&snapshot);
    assert_eq!((plan.decisions.len(), plan.uncounted.len()), (0, 1));
    divided(&mut snapshot).loose[0].since_ms -= 50;
    assert_eq!(kinds(&super::plan(&snapshot)), [Kind::Merge]);
}

#[test]
fn a_pause_by_the_operator_holds_everything_but_slots_without_a_holder() {
    let mut world = shared_by(3, 90_000);
    world.snapshot.paused = true;
    world.leave("m1");
    world.join("new");
    assert_eq!(kinds(&world.step()), [Kind::Merge]);
    world.join("newer");
    let plan = world.step();
    assert_eq!((kinds(&plan), refusals(&plan)), (vec![], vec!["paused"]));
}

#[test]
fn shares_of_live_members_flow_together_only_after_a_long_quiet() {
    let mut world = shared_by(4, 0);
    let since = world.snapshot.now.mono_ms;
    world
        .parts
        .values_mut()
        .for_each(|part| part.quiet_since_ms = Some(since));
    world.wait(299_999);
    assert!(world.step().decisions.is_empty());
    world.wait(1);
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Fold]);
    let moves = &plan.decisions[0].change.moves;
    assert!(
        moves.iter().all(|moved| moved.how == How::Regrant),
        "nobody commits any more, so no fence would open: {moves:?}"
    );
    assert_eq!(world.shares(0), 1);
    assert_eq!(kinds(&world.step()), [Kind::Plain]);
    assert!(world.step().decisions.is_empty());
    assert!(matches!(world.parts[&(TOPIC, 0)].held, Held::Plain(Some(_))));
}

#[test]
fn a_topic_that_is_switched_off_flows_together_at_once() {
    let mut world = shared_by(4, 40_000);
    world.settings().mode = Mode::Off;
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Fold]);
    let moves = &plan.decisions[0].change.moves;
    assert!(
        moves.iter().all(|moved| moved.how == How::Regrant),
        "slots that come back from a fence that stays shut would be on their way again before anybody reads them: {moves:?}"
    );
    assert_eq!(kinds(&world.step())[0], Kind::Plain);
}

#[test]
fn where_nothing_is_left_to_read_a_member_that_had_read_again_does_not_keep_a_division_that_is_switched_off()
{
    let kinds_of = |records, mode| {
        let mut world = shared_by(2, records);
        world.settings().mode = mode;
        let mut snapshot = world.look();
        let shares = divided(&mut snapshot).shares.values_mut();
        shares.for_each(|share| share.rewound = true);
        kinds(&super::plan(&snapshot))
    };
    assert_eq!(kinds_of(0, Mode::Queues), [Kind::Fold]);
    // It will commit, and then it is known where it is.
    assert_eq!(kinds_of(40_000, Mode::Queues), []);
    // It may be about to read on; nothing is in a hurry.
    assert_eq!(kinds_of(0, Mode::Slices), []);
}

#[test]
fn whole_partitions_are_placed_before_shares_are_cut() {
    let mut world = World::new();
    for number in 0..8 {
        world = world.plain(number, "a", even(10_000));
    }
    let mut world = world.member("a").member("b");
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Balance]);
    assert_eq!(plan.decisions[0].change.moves.len(), 4);
    assert_eq!(world.loads(), [40_000, 40_000]);
    assert!(world.step().decisions.is_empty(), "and that is that");
}

#[test]
fn empty_partitions_are_placed_by_number() {
    let mut world = World::new();
    for number in 0..9 {
        world = world.part(number, Held::Plain(None), vec![0; SLOTS]);
    }
    let mut world = world.member("a").member("b").member("c");
    world.step();
    let held = |world: &World, id: &str| {
        (0..9)
            .filter(|number| !world.slots_of(*number, id).is_empty())
            .count()
    };
    assert_eq!(["a", "b", "c"].map(|id| held(&world, id)), [3, 3, 3]);
    world.join("d");
    world.step();
    assert_eq!(held(&world, "d"), 2);
    assert!(world.step().decisions.is_empty());
}

#[test]
fn members_at_work_swap_partitions_only_for_much_and_seldom() {
    let world = || {
        let mut world = World::new().plain(9, "b", even(5_000)).member("a").member("b");
        for number in 0..4 {
            world = world.plain(number, "a", even(20_000));
        }
        world
    };
    let mut fresh = world();
    assert_eq!(kinds(&fresh.step()), [Kind::Balance]);
    let mut cooling = world();
    cooling.snapshot.balanced_ms = Some(cooling.snapshot.now.mono_ms - 29_999);
    assert!(cooling.step().decisions.is_empty());
    // A difference that is small against the loads is left.
    let mut near = World::new()
        .plain(0, "a", even(50_000))
        .plain(1, "a", even(50_000))
        .plain(2, "b", even(90_000));
    near = near.member("a").member("b");
    assert!(near.step().decisions.is_empty());
}

#[test]
fn the_autoscaler_is_told_how_many_members_are_useful() {
    let mut world = World::new()
        .plain(0, "a", even(8_200))
        .plain(1, "a", even(10))
        .member("a");
    assert_eq!(world.plan().useful_members, 8 + 1);
    world.settings().mode = Mode::Off;
    assert_eq!(world.plan().useful_members, 2);
    let mut empty = World::new().plain(0, "a", even(0)).member("a");
    assert_eq!(empty.plan().useful_members, 1);
}
