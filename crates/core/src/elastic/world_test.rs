//! Random worlds that stand still: planning comes to an end, and every plan keeps the rules.

use std::collections::BTreeSet;

use anabranch_wire::slot::SLOTS;
use proptest::prelude::*;

use super::cut_test::{Dice, KEYS, workload};
use super::harness::{Held, World, per_slot};
use super::*;
use crate::ids::TopicId;

fn holder(dice: &mut Dice, members: u64) -> Option<String> {
    let number = dice.below(members + 1);
    (number < members).then(|| format!("m{number}"))
}

/// A world of up to 8 members and 6 partitions in up to two topics, in any state that members may leave behind.
fn random_world(seed: u64) -> World {
    let mut dice = Dice(seed);
    let mut world = World::new();
    let other = TopicId([2; 16]);
    if dice.below(2) == 0 {
        let mut topic = world.topic().clone();
        topic.name = "audit".into();
        world.snapshot.topics.insert(other, topic);
    }
    let topics: Vec<TopicId> = world.snapshot.topics.keys().copied().collect();
    let members = 1 + dice.below(8);
    for number in 0..members {
        let id = format!("m{number}");
        world.join(&id);
        let (odd, rate) = (dice.below(10), dice.below(3));
        let member = world.view(&id);
        member.rate = (rate > 0).then_some(rate * 1000);
        match odd {
            0 if topics.len() > 1 => member.topics = [topics[0]].into(),
            1 => member.state = MemberState::Paused,
            2 => member.state = MemberState::Away,
            _ => {}
        }
    }
    for number in 0..1 + dice.below(6) {
        let topic = topics[dice.below(topics.len() as u64) as usize];
        let size = [0, 900, 5_000, 1_000_000][dice.below(4) as usize];
        let records = per_slot(&workload(
            KEYS[dice.below(6) as usize],
            1 + dice.below(500),
            size,
            dice.next(),
        ));
        let held = match dice.below(3) {
            0 => {
                let owners: Vec<Option<String>> = (0..4).map(|_| holder(&mut dice, members)).collect();
                Held::Divided((0..SLOTS).map(|at| owners[at * 4 / SLOTS].clone()).collect())
            }
            _ => Held::Plain(holder(&mut dice, members)),
        };
        world = world.part(number as i32, held, records);
        let mut part = world
            .parts
            .remove(&(super::harness::TOPIC, number as i32))
            .unwrap();
        for at in 0..SLOTS {
            let out = dice.below(3) * part.records[at] / 4;
            if matches!(part.held, Held::Divided(_)) && part.owner(at).is_some() {
                part.records[at] -= out;
                part.handed_out[at] = out;
            }
        }
        part.quiet_since_ms = (part.records.iter().sum::<u64>() == 0).then_some(0);
        world.parts.insert((topic, number as i32), part);
    }
    world
}

fn squares(world: &World) -> u128 {
    world.loads().iter().map(|load| u128::from(*load).pow(2)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// No ping-pong: in a world that stands still, plan after plan is carried out until there is nothing to decide, soon.
    #[test]
    fn a_world_that_stands_still_comes_to_rest(seed in any::<u64>()) {
        let mut world = random_world(seed);
        let mut rounds = 0;
        loop {
            let before = squares(&world);
            let total: u64 = world.parts.values().flat_map(|part| &part.records).sum();
            let plan = world.step();
            let after: u64 = world.parts.values().flat_map(|part| &part.records).sum();
            prop_assert_eq!(total, after);
            if plan.decisions.is_empty() {
                break;
            }
            let gives = |kind| matches!(kind, Kind::Merge | Kind::Fold | Kind::Plain);
            let gives_out = |decision: &Decision| gives(decision.change.kind) || decision.change.why == Why::NoHolder;
            if !plan.decisions.iter().any(gives_out) {
                prop_assert!(squares(&world) <= before, "loads grew apart: {:?}", plan.decisions);
            }
            rounds += 1;
            prop_assert!(rounds <= 24, "no rest after {rounds} rounds: {:?}", plan.decisions);
            world.wait(60_000);
        }
        // Nor later: no time-out starts anything anew.
        for wait_ms in [1_000, 60_000, 3_600_000] {
            world.wait(wait_ms);
            let plan = world.step();
            prop_assert!(plan.decisions.is_empty(), "{:?}", plan.decisions);
        }
    }
}

/// The worlds are worth something: every kind of change, and the refusals that a world can have, happen in them.
#[test]
fn random_worlds_have_everything_in_them() {
    let (mut kinds, mut hows, mut codes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for seed in 0..150 {
        let mut world = random_world(seed);
        for _ in 0..4 {
            let plan = world.step();
            for decision in &plan.decisions {
                kinds.insert(decision.change.kind);
                hows.extend(decision.change.moves.iter().map(|moved| moved.how));
            }
            codes.extend(plan.refusals.iter().map(|refusal| refusal.why_not.code()));
            world.wait(200_000);
        }
    }
    // A return needs a fence, which these worlds have not.
    let all = [
        Kind::Split,
        Kind::Steal,
        Kind::Isolate,
        Kind::Merge,
        Kind::Balance,
        Kind::Fold,
        Kind::Plain,
    ];
    assert_eq!(kinds, all.into());
    let all = [
        How::Release,
        How::Regrant,
        How::Divide,
        How::Grant,
        How::Assign,
        How::Plain,
    ];
    assert_eq!(hows, all.into());
    for code in [
        "below-threshold",
        "hot-key",
        "owner-absent",
        "nothing-to-serve",
        "no-receiver",
    ] {
        assert!(codes.contains(code), "{code} is missing in {codes:?}");
    }
}
