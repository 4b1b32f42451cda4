//! What went wrong when the protocol was first written down and gone through by a checker, each by the number it got
//! there: the shortest story, and what happens today.

use super::bench::*;
use crate::cursor::*;
use crate::slots::SlotSet;

/// The owner is gone before its commits cover what moves: granted at the release point, record 0 would be lost.
#[test]
fn b1_after_a_death_slots_resume_where_the_commits_are_not_where_they_were_released() {
    for is_give_up in [false, true] {
        let mut bench = Bench::held(&[0, 1, 0]);
        assert_eq!(bench.fetch(1, 0, 2), Some((1, vec![0, 1], 2)));
        bench.release("a", &half(0)).unwrap();
        let (_, chain) = bench.chain("a");
        assert_eq!(
            chain.transits()[0].pieces.from_of(slot(0)),
            Some(2),
            "released at 2"
        );
        bench.step(|step| {
            if is_give_up {
                step.give_up("a");
            } else {
                step.dead("a");
            }
        });
        let granted = bench.grant("b", 2, &half(0)).unwrap();
        assert_eq!(bench.position("b"), at(granted, 0));
        assert_eq!(bench.fetch(granted, 0, 9), Some((granted, vec![0, 2], 3)));
    }
}

/// A fetch comes twice. The first was answered; a release that goes by the second would end the slice below what the
/// owner has in its hands.
#[test]
fn b2_a_release_ends_behind_what_any_answer_has_carried() {
    let mut bench = Bench::held(&[0, 1, 0]);
    assert_eq!(bench.fetch(1, 0, 2), Some((1, vec![0, 1], 2)), "not taken up yet");
    bench.release("a", &half(0)).unwrap();
    assert_eq!(bench.grantable()[0], None, "record 0 may be in work");
    assert_eq!(bench.fetch(1, 0, 2), Some((1, vec![0, 1], 2)), "the second one");
    assert_eq!(bench.grantable()[0], None);
    assert_eq!(bench.grant("b", 1, &half(0)), Err(Refusal::NotThere));
}

/// The same with a look-up that was made before the release and is reserved after it.
#[test]
fn b2_an_answer_that_is_reserved_after_a_release_stays_below_it() {
    let mut bench = Bench::held(&[0, 1, 0]);
    let Found::Read(plan) = bench.locate(1, 0) else {
        panic!("a can read");
    };
    bench.release("a", &half(0)).unwrap();
    let records: Vec<Record> = bench.records(0, 3).collect();
    // Nothing was handed out, so the slice is gone, and the look-up with it.
    assert_eq!(
        bench.step(|step| step.reserve(&plan, &records, 3)),
        Err(Refusal::Stale)
    );
    assert_eq!(bench.grantable()[0], Some(0));
}

/// The answer was lost, or the owner starts again at its commit: led on to the successor, it would skip records.
#[test]
fn b5_a_slice_with_a_successor_is_read_until_it_is_done() {
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.position("a"), at(1, 0), "where it begins again");
    let again = bench.fetch(1, 0, 9);
    assert_eq!(again, Some((1, vec![0, 1], 2)), "with what has left it");
    assert_eq!(
        bench.fetch(1, 2, 9),
        Some((2, vec![2], 3)),
        "behind it the next one"
    );
    bench.commit("a", 1, 2);
    assert_eq!(bench.fetch(1, 0, 9), Some((2, vec![2], 3)), "now it is done");
}

/// A commit under way when the partition is given up: in a slice of the same id it would cover what nobody did.
#[test]
fn b8_a_grant_by_assignment_has_a_fresh_id_and_late_commits_do_not_reach_it() {
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.fetch(1, 0, 3);
    bench.step(|step| step.give_up("a"));
    let granted = bench.grant("a", 2, &half(0)).unwrap();
    assert_ne!(granted, 1, "also for the same member");
    assert_ne!(bench.commit_at("a", 1, 1, 3), Committed::Moved, "the late one");
    assert_ne!(
        bench.commit_at("a", 1, granted, 3),
        Committed::Moved,
        "of an older assignment"
    );
    assert_eq!(bench.position("a"), at(granted, 0));
    assert_eq!(bench.fetch(granted, 0, 9), Some((granted, vec![0, 2], 3)));
}

/// The same slots once more: the late commit must not open a fence either, while the records are read again.
#[test]
fn b8_late_commits_of_an_older_assignment_open_no_fence() {
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.fetch(1, 0, 3);
    bench.step(|step| step.give_up("a"));
    let granted = bench.grant("a", 2, &SlotSet::all()).unwrap();
    bench.fetch(granted, 0, 3);
    bench.release("a", &half(0)).unwrap();
    for late in [1, granted] {
        bench.commit_at("a", 1, late, 3);
        assert_eq!(bench.grantable(), [None, None], "slice {late}");
    }
    bench.commit_at("a", 2, granted, 3);
    assert_eq!(bench.grantable(), [Some(3), None], "its own does");
}

/// The receiver of a merge stands at 3 and gains records from 0 on: the number 1 of its older slice, read in the new
/// one, would cover record 2.
#[test]
fn b9_a_commit_is_a_position_in_the_slice_that_it_names() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.release("a", &half(1)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    assert_eq!(bench.fetch(2, 0, 3), Some((2, vec![0, 2], 3)));
    bench.step(|step| step.dead("b"));
    assert_eq!(bench.jump_grant("a", &half(1)), Ok(4));
    let (_, chain) = bench.chain("a");
    assert_eq!((chain.tail().start, chain.front().to), (0, Some(3)));
    assert_eq!(bench.commit("a", 2, 1), Committed::Moved);
    assert_eq!(bench.position("a"), at(2, 1), "record 2 is not done");
    assert_eq!(bench.fetch(2, 1, 9), Some((2, vec![2], 3)));
    assert_eq!(bench.commit("a", 2, 99), Committed::Moved);
    assert_eq!(
        bench.position("a"),
        at(4, 0),
        "the end of the old one, nothing of the new"
    );
}
