//! Random walks through settings that are too large to be seen whole. In their second half nothing goes wrong any
//! more, and they must reach the goal.

use super::acts::{Act, possible};
use super::model::{Budget, Scene, Setting};
use super::runs::say;
use crate::cursor::Evidence;

/// Events while things go wrong, and the most that a walk may take from there to the goal.
const WILD: usize = 150;
const CALM_MAX: usize = 20_000;

fn setting(evidence: Evidence, ahead: usize, last_plus_one: bool) -> Setting {
    Setting {
        log: &[0, 1, 2, 0, 1, 1, 2, 0],
        later: 4,
        slots: 3,
        clients: 3,
        answer_max: 2,
        slices_max: 4,
        commits_max: 2,
        fetches_max: 2,
        evidence,
        ahead,
        last_plus_one,
        lenient: false,
        empties: true,
        budget: Budget {
            give_ups: 6,
            leaves: 2,
            deaths: 2,
            expulsions: 2,
            crashes: 3,
            seeks: 2,
            restarts: 2,
            skips: 0,
            foreign: 3,
            resends: 4,
            lost: 6,
        },
        ..Setting::base()
    }
}

/// Numbers that look random: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

fn walk(setting: &Setting, seed: u64) -> Result<usize, (String, Vec<Act>)> {
    let mut scene = Scene::new(setting);
    let mut next = scene.next_records(setting);
    let mut numbers = Numbers(seed);
    let mut path = Vec::new();
    for step in 0..WILD + CALM_MAX {
        if step >= WILD {
            scene.budget = Budget::default();
            if scene.is_at_goal(setting, &next) {
                return Ok(step);
            }
        }
        let acts = possible(&scene, setting);
        let act = acts[numbers.below(acts.len())];
        path.push(act);
        match scene.after(setting, &next, act) {
            Ok(Some(after)) => (scene, next) = after,
            Ok(None) => {}
            Err(broken) => return Err((broken, path)),
        }
    }
    Err(("I6: the goal was not reached".to_owned(), path))
}

/// Walks from as many seeds as `ANABRANCH_EXPLORE_WALKS` says, else a few.
fn walks(name: &str, setting: &Setting) {
    let set = std::env::var("ANABRANCH_EXPLORE_WALKS").ok();
    let count = set.and_then(|count| count.parse().ok()).unwrap_or(2);
    let mut steps = 0;
    for seed in 0..count {
        match walk(setting, seed) {
            Ok(taken) => steps += taken,
            Err((broken, path)) => {
                let first = &path[..path.len().min(400)];
                panic!(
                    "{name}, seed {seed}: {broken}, after {} events: {first:?}",
                    path.len()
                );
            }
        }
    }
    say(&format!(
        "walks, {name}: {count}, {steps} steps, all reached the goal"
    ));
}

#[test]
fn walks_with_commits_after_the_work() {
    walks("latest", &setting(Evidence::Latest, 0, false));
    walks("latest, last + 1", &setting(Evidence::Latest, 0, true));
}

#[test]
fn walks_with_commits_ahead_of_the_work() {
    walks("previous", &setting(Evidence::Previous, 1, false));
    walks("previous, batches", &setting(Evidence::Previous, 2, true));
}
