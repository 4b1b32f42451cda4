//! Where such systems went wrong, each by name: the planner does not.

use super::cut_test::{Keys, workload};
use super::harness::{World, divided, even, joined, kinds, per_slot, refusals, shared_by};
use super::*;
use anabranch_wire::slot::SLOTS;

#[test]
fn pitfall_1_flapping_costs_one_merge_and_one_split_each() {
    let mut world = shared_by(3, 60_000);
    let mut seen = Vec::new();
    for _ in 0..10 {
        world.leave("m2");
        seen.extend(kinds(&world.step()));
        world.join("m2");
        seen.extend(kinds(&world.step()));
        // Between two flaps time passes, and nothing else is done.
        for _ in 0..5 {
            world.wait(1_000);
            seen.extend(kinds(&world.step()));
        }
        assert!(world.shares(0) <= 3);
    }
    assert_eq!(seen.iter().filter(|kind| **kind == Kind::Merge).count(), 10);
    assert!(seen.iter().filter(|kind| **kind == Kind::Split).count() <= 10);
    assert_eq!(seen.len(), 20, "{seen:?}");
}

#[test]
fn pitfall_2_a_rolling_restart_of_static_members_changes_nothing() {
    let mut world = shared_by(8, 800_000);
    for number in 0..8 {
        let id = format!("m{number}");
        world.view(&id).is_static = true;
        world.view(&id).state = MemberState::Away;
        for _ in 0..30 {
            world.wait(1_000);
            let plan = world.step();
            assert!(plan.decisions.is_empty(), "{:?}", plan.decisions);
        }
        world.view(&id).state = MemberState::Busy;
        assert!(world.step().decisions.is_empty());
    }
}

#[test]
fn pitfall_2_a_rolling_restart_of_other_members_ends_with_no_extra_split() {
    let mut world = shared_by(8, 800_000);
    let (mut splits, mut merges) = (0, 0);
    for number in 0..8 {
        world.leave(&format!("m{number}"));
        merges += kinds(&world.step())
            .iter()
            .filter(|kind| **kind == Kind::Merge)
            .count();
        world.wait(2_000);
        world.join(&format!("new{number}"));
        splits += kinds(&world.step())
            .iter()
            .filter(|kind| **kind == Kind::Split)
            .count();
        world.wait(2_000);
    }
    assert_eq!((merges, splits, world.shares(0)), (8, 8, 8));
    for _ in 0..60 {
        world.wait(1_000);
        assert!(world.step().decisions.is_empty());
    }
}

#[test]
fn pitfall_2_one_who_comes_back_before_its_slots_are_given_away_gets_them() {
    let mut world = shared_by(4, 400_000);
    world.leave("m1");
    world.join("back");
    assert_eq!(kinds(&world.step()), [Kind::Merge]);
    assert!(
        world.loads().iter().all(|load| load.abs_diff(100_000) <= 1_000),
        "{:?}",
        world.loads()
    );
}

#[test]
fn pitfall_3_and_17_nothing_is_decided_about_what_is_on_its_way() {
    let plan = joined(shared_by(1, 10_000), |snapshot| {
        let since_ms = snapshot.now.mono_ms;
        let divided = divided(snapshot);
        let slots = divided.shares["m0"].slots.clone();
        divided.transits.push(Transit {
            slots,
            source: "m0".into(),
            target: Some("m0".into()),
            since_ms,
            remaining: 0,
        });
    });
    assert_eq!((kinds(&plan), refusals(&plan)), (vec![], vec!["in-transit"]));
}

#[test]
fn pitfall_4_a_missed_event_is_repaired_by_the_next_plan() {
    let mut world = World::new().plain(0, "a", even(10_000)).member("a");
    world.join("b");
    world.leave("a");
    // Nobody said that a left or that b joined: the state alone is enough.
    world.step();
    assert_eq!(world.load("b"), 10_000);
}

#[test]
fn pitfall_5_a_limit_is_reached_and_not_refused_altogether() {
    let mut world = World::new().plain(0, "m0", even(100_000)).member("m0");
    world.settings().slices_max = 3;
    for number in 1..8 {
        world.join(&format!("m{number}"));
    }
    let plan = world.step();
    assert_eq!(world.shares(0), 3);
    assert_eq!(plan.refusals.len(), 1, "for those that got nothing");
    world.wait(5_000);
    assert_eq!(refusals(&world.plan()), ["slices-max"]);
}

#[test]
fn pitfall_6_a_refusal_names_who_and_what_is_in_the_way() {
    let mut world = World::new()
        .plain(0, "old", even(100_000))
        .member("old")
        .member("idle");
    world.view("old").eligibility = Eligibility::No("its client is not known".into());
    let plan = world.plan();
    let refusal = &plan.refusals[0];
    assert_eq!(refusal.why_not.code(), "ineligible");
    let sentence = refusal.sentence();
    assert_eq!(
        sentence,
        "no work for idle: the largest share, old's of orders-0, cannot be divided while old is in the group: \
         its client is not known"
    );
}

#[test]
fn pitfall_8_a_share_that_is_done_soon_is_left_alone() {
    let mut world = shared_by(2, 8_000);
    world.process("m1", u64::MAX);
    world.view("m0").rate = Some(100_000);
    assert_eq!(refusals(&world.plan()), ["finishing-soon"]);
    world.view("m0").rate = Some(1_000);
    assert_eq!(kinds(&world.plan()), [Kind::Steal]);
}

#[test]
fn pitfall_9_members_that_arrive_one_by_one_do_not_grind_a_share_to_dust() {
    let mut world = World::new().plain(0, "m00", even(20_000)).member("m00");
    for number in 1..60 {
        world.join(&format!("m{number:02}"));
        world.step();
        world.wait(2_000);
    }
    // Parts are made of at least 1,000 records, so none is below half of that.
    let parts: Vec<u64> = world.loads().into_iter().filter(|load| *load > 0).collect();
    assert!(parts.iter().all(|load| *load >= 480), "{parts:?}");
    assert!(parts.len() <= 40);
}

#[test]
fn pitfall_12_and_o6_a_hot_key_is_isolated_once_named_and_left_alone() {
    let records = per_slot(&workload(Keys::OneHeavy, 2000, 100_000, 5));
    let mut world = World::new().plain(0, "a", records).member("a");
    for id in ["b", "c", "d"] {
        world.join(id);
    }
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Isolate]);
    assert_eq!(world.slots_of(0, "a").len(), 1);
    assert!(world.load("a") > 80_000);
    // The others are done, the hot key is not: from now on it is only said why.
    for id in ["b", "c", "d"] {
        world.process(id, u64::MAX);
    }
    for _ in 0..20 {
        world.wait(1_000);
        let plan = world.step();
        assert!(plan.decisions.is_empty());
        assert!(matches!(plan.refusals[0].why_not, WhyNot::HotKey { records, .. } if records > 80_000));
    }
}

#[test]
fn pitfall_12_and_o7_one_key_alone_is_never_divided() {
    let records = per_slot(&workload(Keys::Uniform, 1, 50_000, 9));
    let mut world = World::new().plain(0, "a", records).member("a");
    for id in ["b", "c", "d", "e"] {
        world.join(id);
    }
    for _ in 0..40 {
        let plan = world.step();
        assert_eq!((kinds(&plan), refusals(&plan)), (vec![], vec!["hot-key"]));
        world.wait(1_000);
    }
    world.leave("a");
    assert_eq!(kinds(&world.step())[0], Kind::Balance);
}

#[test]
fn two_equal_keys_are_a_split_and_no_hot_key() {
    let mut records = vec![0; SLOTS];
    (records[7], records[3000]) = (700, 600);
    let mut world = World::new().plain(0, "a", records).member("a").member("b");
    assert_eq!(kinds(&world.step()), [Kind::Split]);
    assert_eq!(world.loads(), [700, 600]);
}

#[test]
fn o6_keyless_records_reach_all_members_and_four_hot_keys_four() {
    let mut world = World::new().plain(0, "a", even(100_000)).member("a");
    let mut hot = vec![0; SLOTS];
    for number in [100, 101, 102, 103] {
        hot[number] = 25_000;
    }
    let mut keys = World::new().plain(0, "a", hot).member("a");
    for id in ["b", "c", "d"] {
        world.join(id);
        keys.join(id);
    }
    world.step();
    assert!(world.loads().iter().all(|load| (15_000..=35_000).contains(load)));
    keys.step();
    assert_eq!(keys.loads(), [25_000; 4]);
}

#[test]
fn pitfall_13_what_was_handed_out_stays_with_its_owner() {
    let mut world = shared_by(1, 10_000);
    let part = world.parts.values_mut().next().unwrap();
    for at in 0..SLOTS {
        part.handed_out[at] = part.records[at] / 2;
        part.records[at] -= part.handed_out[at];
    }
    world.join("new");
    let plan = world.plan();
    let change = &plan.decisions[0].change;
    assert!(change.moves.iter().all(|moved| moved.how == How::Release));
    assert_eq!(change.shares[0].before, 10_000);
    assert!(
        change.shares[0].after.abs_diff(change.shares[1].after) <= 200,
        "{:?}",
        change.shares
    );
}

#[test]
fn pitfall_16_an_owner_that_is_done_is_no_victim_and_the_next_one_is() {
    let mut world = World::new()
        .plain(0, "a", even(50_000))
        .plain(1, "b", even(20_000));
    for id in ["a", "b", "c"] {
        world.join(id);
    }
    world.process("a", u64::MAX);
    let plan = world.step();
    assert_eq!(kinds(&plan), [Kind::Split]);
    assert_eq!(plan.decisions[0].change.moves[0].from.as_deref(), Some("b"));
    assert_eq!(
        plan.decisions[0].change.moves.len(),
        3,
        "the one that is done takes part"
    );
}

#[test]
fn pitfall_28_slots_of_a_paused_holder_can_be_taken() {
    let mut world = shared_by(1, 10_000);
    world.view("m0").state = MemberState::Paused;
    world.join("new");
    assert_eq!(kinds(&world.step()), [Kind::Split]);
    assert!(world.load("new") >= 4_900);
}

#[test]
fn pitfall_38_a_slow_member_is_relieved_again_and_again() {
    let mut world = shared_by(2, 64_000);
    let mut steals = 0;
    for _ in 0..60 {
        world.process("m0", 4_000);
        world.process("m1", 400);
        steals += kinds(&world.step())
            .iter()
            .filter(|kind| **kind == Kind::Steal)
            .count();
        world.wait(1_000);
    }
    assert_eq!(world.loads(), [0, 0]);
    assert!((2..=8).contains(&steals), "{steals}");
}

#[test]
fn o15_a_member_that_is_stuck_keeps_only_what_it_was_handed() {
    let mut world = shared_by(3, 90_000);
    for _ in 0..20 {
        world.process("m1", 20_000);
        world.process("m2", 20_000);
        world.step();
        world.wait(1_000);
    }
    assert!(world.load("m0") < 1_000, "{:?}", world.loads());
}
