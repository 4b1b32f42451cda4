//! The runs. Small settings, the faults and some walks are part of every test run; `cargo xtask explore` runs all, in
//! an optimised build, and prints what was seen.

use super::model::Setting;
use super::search::{Order, Outcome, explore};
use super::settings::{Check, faults, large, small, unfit_clients};
use crate::cursor::Fault;

/// Most worlds of a search in every test run.
const BOUND_SMALL: usize = 5_000;
/// Most worlds of a search for a planted fault, which goes in breadth and keeps many at a time.
const BOUND_FAULT: usize = 500_000;
/// Most worlds of a search by command; `ANABRANCH_EXPLORE_BOUND` sets another.
const BOUND_LARGE: usize = 3_000_000;

/// What `cargo xtask explore` asks for: the settings whose name has this in it; `all`: every one. None in a test run.
fn wanted() -> Option<String> {
    std::env::var("ANABRANCH_EXPLORE").ok()
}

fn bound() -> usize {
    if wanted().is_none() {
        return BOUND_SMALL;
    }
    let set = std::env::var("ANABRANCH_EXPLORE_BOUND").ok();
    set.and_then(|bound| bound.parse().ok()).unwrap_or(BOUND_LARGE)
}

/// Figures for whoever asked for a long run.
pub(super) fn say(line: &str) {
    if wanted().is_some() {
        eprintln!("{line}");
    }
}

/// Goes through a setting; panics with the shortest way to what is wrong with it.
fn holds(name: &str, setting: &Setting) {
    let mut outcome = explore(setting, bound(), Order::Depth);
    if outcome.broken.is_some() || outcome.dead.is_some() {
        outcome = explore(setting, bound().min(1_000_000), Order::Breadth);
    }
    let Outcome {
        states,
        transitions,
        broken,
        dead,
        cut,
    } = outcome;
    assert!(broken.is_none(), "{name}: {broken:#?}");
    assert!(dead.is_none(), "{name}: of {states} are dead: {dead:#?}");
    let what = if cut { "cut at the bound" } else { "complete" };
    say(&format!(
        "{name}: {what}, {states} states, {transitions} transitions"
    ));
}

#[test]
fn the_real_cursor_holds_in_small_settings() {
    for (name, setting) in small() {
        holds(name, &setting);
    }
}

#[test]
fn the_real_cursor_holds_in_larger_settings() {
    let Some(wanted) = wanted() else { return };
    for (name, setting) in large() {
        if wanted == "all" || name.contains(&wanted) {
            holds(name, &setting);
        }
    }
}

/// What finds what is wrong in a setting.
fn found(setting: &Setting) -> (Option<Check>, String) {
    let outcome = explore(setting, BOUND_FAULT, Order::Breadth);
    let states = outcome.states;
    match (outcome.broken, outcome.dead) {
        (Some((broken, path)), _) => {
            let names = ["I1", "I2", "I3", "I4", "I5", "I7", "F4"];
            let check = names.into_iter().find(|check| broken.starts_with(check));
            let text = format!("{broken}, in {} steps, {states} states", path.len());
            (check.map(Check::Named), text)
        }
        (None, Some((dead, _))) => (
            Some(Check::DeadEnd),
            format!("I6: {dead} of {states} states are dead"),
        ),
        (None, None) => (None, format!("nothing in {states} states")),
    }
}

fn all_are_found(faults: &[(Fault, Check, Setting)]) {
    let mut missed: Vec<String> = Vec::new();
    for (fault, expected, setting) in faults {
        let (by, text) = found(setting);
        say(&format!("{fault:?}: {text}"));
        if by != Some(*expected) {
            missed.push(format!("{fault:?}, expected {expected:?}: {text}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn planted_faults_of_moves_are_found_by_the_check_they_break() {
    all_are_found(&faults()[0]);
}

#[test]
fn planted_faults_of_reads_and_commits_are_found_by_the_check_they_break() {
    all_are_found(&faults()[1]);
}

#[test]
fn planted_faults_of_evidence_are_found_by_the_check_they_break() {
    all_are_found(&faults()[2]);
    if wanted().is_some() {
        all_are_found(&faults()[3]);
    }
}

#[test]
fn every_fault_that_can_be_planted_is_looked_for() {
    let all = faults().concat();
    for fault in Fault::ALL {
        assert_eq!(
            all.iter().filter(|(tried, ..)| tried == fault).count(),
            1,
            "{fault:?}"
        );
    }
}

#[test]
fn clients_that_must_not_be_divided_break_what_the_cursor_promises() {
    for (what, expected, setting) in unfit_clients() {
        let (by, text) = found(&setting);
        say(&format!("a client that {what}: {text}"));
        assert_eq!(by, Some(expected), "{what}: {text}");
    }
}
