//! Members that come and go at random, for long: what the planner does with it is bounded by what happened.

use super::cut_test::Dice;
use super::harness::{World, even, kinds};
use super::*;
use anabranch_wire::slot::SLOTS;

/// What half an hour of coming and going led to.
#[derive(Debug, Default)]
struct Storm {
    joined: usize,
    left: usize,
    splits: usize,
    merges: usize,
    steals: usize,
}

/// Half an hour: in each second, with probability 1 in `odds`, a member joins or leaves. The planner is asked then, and every
/// five seconds; members work, and producers keep up with them.
fn storm(seed: u64, odds: u64) -> Storm {
    let mut dice = Dice(seed);
    let mut world = World::new().plain(0, "m0", even(200_000)).member("m0");
    let mut seen = Storm::default();
    for second in 0..1_800 {
        let happened = dice.below(odds) == 0;
        if happened {
            come_or_go(&mut world, &mut dice, &mut seen);
        }
        if second % 5 == 0 {
            work(&mut world);
        }
        if happened || second % 5 == 0 {
            seen.count(&world.step());
            assert!(world.shares(0) <= world.snapshot.members.len(), "seed {seed}");
        }
        world.wait(1_000);
    }
    seen
}

fn come_or_go(world: &mut World, dice: &mut Dice, seen: &mut Storm) {
    let members: Vec<String> = world.snapshot.members.keys().cloned().collect();
    if members.len() == 1 || members.len() < 12 && dice.below(2) == 0 {
        seen.joined += 1;
        world.join(&format!("m{}", seen.joined));
    } else {
        seen.left += 1;
        world.leave(&members[dice.below(members.len() as u64) as usize]);
    }
}

/// 500 records for each member, processed and produced.
fn work(world: &mut World) {
    let members: Vec<String> = world.snapshot.members.keys().cloned().collect();
    for id in &members {
        world.process(id, 500);
    }
    for part in world.parts.values_mut() {
        for at in 0..500 * members.len() {
            part.records[(at * 41 + 7) % SLOTS] += 1;
        }
    }
}

impl Storm {
    fn count(&mut self, plan: &Plan) {
        for kind in kinds(plan) {
            match kind {
                Kind::Split | Kind::Isolate => self.splits += 1,
                Kind::Merge => self.merges += 1,
                Kind::Steal => self.steals += 1,
                // When the last one left before the next came, the partition is placed whole.
                Kind::Balance => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn e9_half_an_hour_of_flapping_costs_at_most_a_split_per_joiner_and_a_merge_per_leaver() {
    for (seed, odds) in [(1, 5), (2, 20)] {
        let seen = storm(seed, odds);
        assert!(seen.joined + seen.left > 1_000 / odds as usize, "{seen:?}");
        assert!(seen.splits <= seen.joined, "{seen:?}");
        assert!(seen.merges <= seen.left, "{seen:?}");
        assert!(seen.splits > 0 && seen.merges > 0, "{seen:?}");
        // One in a cooldown of the topic, at most.
        let cooldown_s = ElasticSettings::default().split_cooldown_ms / 1_000;
        assert!(seen.steals <= 1_800 / cooldown_s.max(1) as usize, "{seen:?}");
    }
}

#[test]
fn a_rolling_restart_of_any_number_of_members_splits_once_for_each_that_comes() {
    for count in [2, 5, 9] {
        let mut world = super::harness::shared_by(count, 100_000 * count as u64);
        let mut splits = 0;
        for number in 0..count {
            world.leave(&format!("m{number}"));
            world.step();
            world.wait(3_000);
            world.join(&format!("new{number:02}"));
            splits += kinds(&world.step())
                .iter()
                .filter(|kind| **kind == Kind::Split)
                .count();
            world.wait(3_000);
        }
        for _ in 0..30 {
            splits += kinds(&world.step())
                .iter()
                .filter(|kind| matches!(kind, Kind::Split | Kind::Steal))
                .count();
            world.wait(1_000);
        }
        assert_eq!((splits, world.shares(0)), (count, count));
    }
}
