//! What is explored: settings that hold, and planted faults with the setting that finds each.

use super::model::Setting;
use crate::cursor::{Evidence, Fault};

type Named = (&'static str, Setting);

/// Two members, two slots, three records, commits after the work; and a change.
fn with(change: impl FnOnce(&mut Setting)) -> Setting {
    let mut setting = Setting::base();
    change(&mut setting);
    setting
}

/// Commits run ahead of batches of so many records; the position before the last is the evidence.
fn ahead(count: usize, change: impl FnOnce(&mut Setting)) -> Setting {
    with(|s| {
        s.ahead = count;
        s.evidence = Evidence::Previous;
        change(s);
    })
}

/// Settings of every test run: complete, at most some thousand worlds each.
pub(super) fn small() -> Vec<Named> {
    vec![
        ("base", with(|_| {})),
        (
            "last + 1, lenient",
            with(|s| {
                s.last_plus_one = true;
                s.lenient = true;
            }),
        ),
        (
            "at most 2 slices, no return",
            with(|s| {
                s.slices_max = 2;
                s.returns = false;
            }),
        ),
        ("ahead by a record of 2", ahead(1, |s| s.log = &[0, 1])),
        (
            "crash, 1 record",
            with(|s| {
                s.log = &[0];
                s.budget.crashes = 1;
            }),
        ),
        (
            "leave, 1 record",
            with(|s| {
                s.log = &[0];
                s.budget.leaves = 1;
            }),
        ),
    ]
}

/// Settings by command. Not all are seen whole; those that are not are cut at the bound.
pub(super) fn large() -> Vec<Named> {
    let mut all = one_thing_goes_wrong();
    all.extend(two_things_go_wrong());
    all.extend(larger_worlds());
    all.extend(commits_ahead());
    all
}

fn one_thing_goes_wrong() -> Vec<Named> {
    vec![
        ("give-up", with(|s| s.budget.give_ups = 1)),
        ("leave", with(|s| s.budget.leaves = 1)),
        ("silent death", with(|s| s.budget.deaths = 1)),
        ("expulsion", with(|s| s.budget.expulsions = 1)),
        ("crash", with(|s| s.budget.crashes = 1)),
        ("lost answers and commits", with(|s| s.budget.lost = 1)),
        ("seek", with(|s| s.budget.seeks = 1)),
        ("skip", with(|s| s.budget.skips = 1)),
        ("restart", with(|s| s.budget.restarts = 1)),
    ]
}

fn two_things_go_wrong() -> Vec<Named> {
    vec![
        (
            "crash, foreign fetch",
            with(|s| (s.budget.crashes, s.budget.foreign) = (1, 1)),
        ),
        (
            "duplicates, lost",
            with(|s| (s.fetches_max, s.budget.lost) = (2, 1)),
        ),
        (
            "sent again, two under way",
            with(|s| (s.commits_max, s.budget.resends) = (2, 1)),
        ),
        (
            "sent again, give-up",
            with(|s| {
                s.log = &[0, 1];
                (s.budget.resends, s.budget.give_ups) = (1, 1);
            }),
        ),
        (
            "seek, sent again, two under way",
            with(|s| {
                s.log = &[0, 1];
                s.commits_max = 2;
                (s.budget.seeks, s.budget.resends) = (1, 1);
            }),
        ),
        (
            "seek, crash",
            with(|s| {
                s.log = &[0, 1];
                (s.budget.seeks, s.budget.crashes) = (1, 1);
            }),
        ),
        (
            "skip, crash",
            with(|s| {
                s.log = &[0, 1];
                (s.budget.skips, s.budget.crashes) = (1, 1);
            }),
        ),
        (
            "growing log, seek, crash",
            with(|s| {
                s.log = &[0, 0];
                (s.later, s.slots, s.empties) = (1, 1, true);
                (s.budget.seeks, s.budget.crashes) = (1, 1);
            }),
        ),
        (
            "restart, sent again, two under way",
            with(|s| {
                s.log = &[0, 1];
                s.commits_max = 2;
                (s.budget.restarts, s.budget.resends) = (1, 1);
            }),
        ),
    ]
}

fn larger_worlds() -> Vec<Named> {
    vec![
        (
            "4 records, one per answer",
            with(|s| (s.log, s.answer_max) = (&[0, 1, 0, 1], 1)),
        ),
        (
            "last + 1, lenient, duplicates",
            with(|s| (s.last_plus_one, s.lenient, s.fetches_max) = (true, true, 2)),
        ),
        ("growing log", with(|s| s.later = 2)),
        (
            "growing log, crash",
            with(|s| (s.later, s.budget.crashes) = (1, 1)),
        ),
        ("tails may be emptied", with(|s| s.empties = true)),
        ("4 slices", with(|s| s.slices_max = 4)),
        ("3 slots", with(|s| (s.log, s.slots) = (&[0, 1, 2], 3))),
        (
            "3 members, leave",
            with(|s| {
                s.log = &[0, 1];
                (s.clients, s.budget.leaves) = (3, 1);
            }),
        ),
    ]
}

fn commits_ahead() -> Vec<Named> {
    vec![
        ("ahead by a record", ahead(1, |_| {})),
        ("ahead by a batch", ahead(2, |_| {})),
        (
            "ahead by a batch, over answers",
            ahead(2, |s| (s.log, s.answer_max) = (&[0, 1, 0, 1], 1)),
        ),
        ("ahead by a batch, crash", ahead(2, |s| s.budget.crashes = 1)),
        ("ahead, give-up", ahead(1, |s| s.budget.give_ups = 1)),
        ("ahead, death", ahead(1, |s| s.budget.deaths = 1)),
        (
            "ahead, seek",
            ahead(1, |s| (s.log, s.budget.seeks) = (&[0, 1], 1)),
        ),
    ]
}

/// What must find a fault: the check that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The named one; see `check`.
    Named(&'static str),
    /// Invariant 6 of the protocol: some world cannot reach the goal.
    DeadEnd,
}

/// Two members, two slots, three records, and no transit is returned, so that a fault is found soon.
fn bare(change: impl FnOnce(&mut Setting)) -> Setting {
    with(|s| {
        s.returns = false;
        change(s);
    })
}

/// One slot with two records, of which a tail may be emptied.
fn one_slot(change: impl FnOnce(&mut Setting)) -> Setting {
    bare(|s| {
        (s.log, s.slots, s.empties) = (&[0, 0], 1, true);
        change(s);
    })
}

/// Each fault of the cursor with the check that it breaks and a setting that shows it.
pub(super) fn faults() -> [Vec<(Fault, Check, Setting)>; 4] {
    let mut all = [
        faults_of_moves(),
        faults_of_reads_and_commits(),
        faults_of_evidence(),
        faults_far_away(),
    ];
    for (fault, _, setting) in all.iter_mut().flatten() {
        setting.fault = Some(*fault);
    }
    all
}

fn faults_of_moves() -> Vec<(Fault, Check, Setting)> {
    use Check::Named;
    let leave = || bare(|s| s.budget.leaves = 1);
    let give_up = || bare(|s| s.budget.give_ups = 1);
    let skip = || bare(|s| s.budget.skips = 1);
    vec![
        (Fault::GrantBeforeFence, Named("I2"), bare(|_| {})),
        (Fault::SmallerId, Named("I4"), bare(|_| {})),
        (Fault::ReleaseIgnoresServed, Named("I2"), bare(|_| {})),
        (Fault::ReleaseIgnoresPosition, Named("I7"), skip()),
        (Fault::ReleaseLosesSlot, Named("I1"), bare(|_| {})),
        (Fault::TransitForgetsFrom, Named("I7"), bare(|_| {})),
        (Fault::MergeAtReceiver, Named("I2"), leave()),
        (Fault::GrantAtReleasePoint, Named("I2"), leave()),
        (Fault::SameIdAtRegrant, Named("I2"), give_up()),
        (Fault::PlainAtHighest, Named("I2"), leave()),
        (
            Fault::PlainAtLowest,
            Named("I7"),
            bare(|s| (s.log, s.budget.leaves) = (&[0, 1], 2)),
        ),
        (Fault::EmptySlicesStay, Named("F4"), bare(|_| {})),
    ]
}

fn faults_of_reads_and_commits() -> Vec<(Fault, Check, Setting)> {
    use Check::{DeadEnd, Named};
    let expel = || bare(|s| s.budget.expulsions = 1);
    vec![
        (Fault::DeadCommitMoves, Named("I2"), expel()),
        (Fault::DeadCommitOpensFence, Named("I2"), expel()),
        (Fault::OldCommitInTail, Named("I2"), bare(|_| {})),
        (Fault::BackwardCommit, Named("I7"), bare(|s| s.commits_max = 2)),
        (Fault::FenceByNumber, DeadEnd, bare(|s| s.last_plus_one = true)),
        (Fault::RetiredAtOnce, Named("I2"), bare(|s| s.budget.lost = 1)),
        (Fault::ServedNotReserved, Named("I3"), bare(|_| {})),
        (
            Fault::CeilingLost,
            Named("I3"),
            bare(|s| (s.log, s.budget.crashes) = (&[0, 1], 1)),
        ),
        (
            Fault::FetchAnswersTail,
            Named("I2"),
            bare(|s| s.budget.restarts = 1),
        ),
        (Fault::OutsiderSeesHeldOnly, Named("I5"), bare(|_| {})),
        (
            Fault::PositionCarried,
            Named("I2"),
            bare(|s| (s.log, s.answer_max) = (&[1, 0, 0], 1)),
        ),
    ]
}

fn faults_of_evidence() -> Vec<(Fault, Check, Setting)> {
    use Check::Named;
    vec![
        (
            Fault::RewindUnmarked,
            Named("I3"),
            one_slot(|s| (s.answer_max, s.budget.seeks) = (1, 1)),
        ),
        (Fault::SettlesBlind, Named("I2"), bare(|s| s.budget.crashes = 1)),
        (
            Fault::LatestIsEvidence,
            Named("I3"),
            ahead(1, |s| (s.answer_max, s.returns) = (1, false)),
        ),
    ]
}

/// Faults that need so long a story that a search in breadth goes through very many worlds before.
fn faults_far_away() -> Vec<(Fault, Check, Setting)> {
    use Check::Named;
    vec![
        (
            Fault::MarkLostAtRestart,
            Named("I3"),
            one_slot(|s| {
                s.later = 1;
                (s.budget.seeks, s.budget.crashes) = (1, 1);
            }),
        ),
        (
            Fault::MarkClearedEarly,
            Named("I3"),
            ahead(2, |s| {
                (s.answer_max, s.commits_max) = (1, 2);
                s.returns = false;
                s.budget.seeks = 1;
            }),
        ),
    ]
}

/// Clients that no rule of the cursor can bear: what they are refused for elsewhere is needed.
pub(super) fn unfit_clients() -> Vec<(&'static str, Check, Setting)> {
    let give_up = |change: fn(&mut Setting)| {
        bare(|s| {
            s.budget.give_ups = 1;
            change(s);
        })
    };
    vec![
        (
            "keeps what it was handed when it gives up",
            Check::Named("I3"),
            give_up(|s| s.false_give_up = true),
        ),
        (
            "takes answers from before its assignment",
            Check::Named("I3"),
            give_up(|s| s.takes_late_answers = true),
        ),
        (
            "commits ahead of its work, and is taken at its word",
            Check::Named("I3"),
            bare(|s| (s.ahead, s.answer_max) = (1, 1)),
        ),
    ]
}
