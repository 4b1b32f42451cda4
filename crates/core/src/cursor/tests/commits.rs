//! Rows of the commit table (A.4), evidence (A.7, F.5).

use super::bench::*;
use crate::cursor::*;
use crate::slots::SlotSet;

const NOTHING: fn(Why) -> Committed = Committed::Nothing;

#[test]
fn commit_row_1_an_older_assignment_has_no_effect() {
    let mut bench = Bench::held(&[0, 1]);
    bench.step(|step| step.give_up("a"));
    bench.grant("a", 5, &SlotSet::all()).unwrap();
    assert_eq!(bench.commit_at("a", 4, 2, 1), NOTHING(Why::OldEpoch), "B8");
    assert_eq!(bench.commit_at("a", 5, 2, 1), Committed::Moved);
}

#[test]
fn commit_row_3_other_slices_have_no_effect() {
    let mut bench = Bench::held(&[0, 1]);
    assert_eq!(bench.commit("a", 7, 1), NOTHING(Why::NotItsSlice));
    assert_eq!(bench.commit("b", 1, 1), NOTHING(Why::NotItsSlice));
    let mut plain = Bench::new(&[0, 1]);
    assert_eq!(plain.commit("a", 1, 1), NOTHING(Why::NotDivided));
}

#[test]
fn commit_row_4_a_dead_chain_does_not_move_and_opens_no_fence() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.step(|step| step.dead("a"));
    assert_eq!(bench.commit("a", 1, 2), NOTHING(Why::Dead), "B16");
    assert_eq!(bench.grantable(), [Some(0), Some(0)]);
}

#[test]
fn commit_row_5_a_position_ends_with_its_slice() {
    let mut bench = Bench::held(&[0, 1, 0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.fetch(2, 2, 9);
    assert_eq!(bench.commit("a", 1, 99), Committed::Moved);
    assert_eq!(bench.position("a"), at(2, 2), "clipped, and never re-read in 2");
}

#[test]
fn commit_row_5_in_a_newer_slice_all_before_is_done() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.fetch(2, 2, 9);
    assert_eq!(bench.commit("a", 2, 0), Committed::Moved);
    assert_eq!(bench.position("a"), at(2, 2));
    assert_eq!(bench.grantable(), [None, Some(2)]);
}

#[test]
fn commit_row_5_positions_do_not_go_back() {
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.fetch(1, 0, 3);
    assert_eq!(bench.commit("a", 1, 2), Committed::Moved);
    assert_eq!(bench.commit("a", 1, 1), NOTHING(Why::NotForward), "B14");
    assert_eq!(bench.commit("a", 1, 2), NOTHING(Why::NotForward));
    assert_eq!(bench.position("a"), at(1, 2));
}

#[test]
fn commit_row_5_in_the_tail_a_position_ends_with_the_log() {
    let mut bench = Bench::held(&[0, 1, 0]);
    assert_eq!(bench.commit("a", 1, 99), Committed::Moved);
    assert_eq!(bench.position("a"), at(1, 3));
}

#[test]
fn commit_row_6_a_closed_slice_has_no_effect() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.commit("a", 1, 2);
    assert_eq!(bench.commit("a", 1, 2), NOTHING(Why::NotForward));
    assert_eq!(bench.position("a"), at(2, 2));
}

#[test]
fn commit_in_a_slice_closed_between_two_counts_as_the_next_ones_start() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    let (name, _) = bench.chain("a");
    bench.step(|step| step.return_transit(name, &one(1))).unwrap();
    assert_eq!(bench.slices("a"), [1, 3]);
    assert_eq!(bench.commit("a", 2, 0), Committed::Moved);
    assert_eq!(bench.position("a"), at(3, 2));
}

#[test]
fn a_client_that_stands_behind_its_last_record_opens_the_fence() {
    // b holds half 1; a is handed [0, 3) as one batch, the last two records not its own.
    let mut bench = Bench::held(&[0, 1, 1]);
    bench.release("a", &half(1)).unwrap();
    bench.fetch(2, 0, 9);
    bench.release("a", &half(0)).unwrap();
    assert_eq!(bench.grantable()[0], None);
    assert_eq!(bench.commit("a", 2, 1), Committed::Moved);
    assert_eq!(bench.grantable()[0], Some(3), "B4");
}

#[test]
fn with_the_previous_position_as_evidence_one_commit_is_not_enough() {
    let mut bench = Bench::held(&[0, 1, 1, 0]);
    bench.evidence = Evidence::Previous;
    bench.fetch(1, 0, 2);
    bench.release("a", &half(0)).unwrap();
    bench.commit("a", 1, 1);
    assert_eq!(bench.grantable(), [None, None], "0 may still be in work");
    bench.commit("a", 1, 1);
    assert_eq!(
        bench.grantable(),
        [None, None],
        "E2: the same once more proves nothing"
    );
    bench.commit("a", 1, 2);
    assert_eq!(
        bench.grantable(),
        [Some(2), None],
        "E4: 1 was taken after 0 was done"
    );
}

#[test]
fn evidence_lasts_when_the_slice_is_closed() {
    let mut bench = Bench::held(&[0, 1, 1, 0]);
    bench.evidence = Evidence::Previous;
    bench.fetch(1, 0, 1);
    bench.release("a", &half(0)).unwrap();
    bench.commit("a", 1, 1);
    assert_eq!(bench.slices("a"), [2], "ends go by the latest position");
    assert_eq!(
        bench.grantable(),
        [None, None],
        "0 is in a closed slice, and may be in work"
    );
    bench.fetch(2, 1, 1);
    bench.commit("a", 2, 2);
    assert_eq!(bench.grantable(), [Some(1), None]);
}

#[test]
fn a_position_that_slides_over_no_record_is_no_evidence() {
    let mut bench = Bench::held(&[0, 1, 1, 0]);
    bench.evidence = Evidence::Previous;
    bench.release("a", &half(1)).unwrap();
    bench.fetch(2, 0, 2);
    bench.release("a", &half(0)).unwrap();
    bench.commit("a", 2, 1);
    bench.commit("a", 2, 2);
    assert_eq!(bench.grantable()[0], None);
}

#[test]
fn what_no_record_was_handed_out_of_needs_no_evidence() {
    let mut bench = Bench::held(&[0, 0, 1]);
    bench.evidence = Evidence::Previous;
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.grantable(), [None, Some(2)]);
}

#[test]
fn a_restart_forgets_evidence_and_the_next_commit_restores_it() {
    let mut bench = Bench::held(&[0, 1, 1, 1, 1, 0]);
    bench.evidence = Evidence::Previous;
    bench.fetch(1, 0, 2);
    bench.commit("a", 1, 1);
    bench.crash();
    bench.recall();
    let (name, _) = bench.chain("a");
    bench.step(|step| step.refresh(name)).unwrap();
    bench.fetch(1, 1, 9);
    bench.fetch(2, 6, 9);
    bench.log.extend([1, 1, 1]);
    assert_eq!(bench.fetch(2, 6, 1), Some((2, vec![6], 7)));
    bench.commit("a", 2, 7);
    assert_eq!(
        bench.release("a", &half(0)),
        Err(Refusal::Rewound),
        "not proven by the first commit in it"
    );
    bench.fetch(2, 7, 1);
    bench.commit("a", 2, 8);
    assert_eq!(bench.release("a", &half(0)), Ok(3));
    assert_eq!(bench.grantable(), [Some(8), None]);
}

#[test]
fn the_text_of_a_commit_is_not_shown_with_another_offset() {
    let mut bench = Bench::new(&[0, 1, 0, 1]);
    bench.cursor = Cursor::Plain(Plain {
        metadata: "at 0".into(),
        ..Plain::default()
    });
    bench.divide().unwrap();
    bench.grant("a", 1, &half(0)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    bench.fetch(1, 0, 9);
    let note = Note {
        metadata: "at 3".into(),
        ..Note::default()
    };
    bench.step(|step| step.commit("a", 1, id(1), 3, note));
    let text = |bench: &Bench| bench.cursor.outside_view(Some(&bench.live)).metadata;
    assert!(bench.outside() < 3);
    assert_eq!(text(&bench), "");
    bench.fetch(2, 0, 9);
    bench.commit("b", 2, 4);
    bench.step(|step| step.give_up("a"));
    bench.step(|step| step.give_up("b"));
    let (probe, _) = bench.probe();
    assert_eq!(bench.step(|step| step.back_to_plain(&probe)), Ok(4));
    assert_eq!(text(&bench), "");
}

#[test]
fn a_commit_that_leaves_behind_what_a_restart_forgot_settles_what_is_known() {
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.release("a", &half(0)).unwrap();
    bench.fetch(2, 0, 9);
    bench.jump_grant("a", &half(0)).unwrap();
    bench.crash();
    assert_eq!(bench.fetch(3, 0, 9), Some((3, vec![0, 2], 3)));
    let (name, _) = bench.chain("a");
    bench.step(|step| step.refresh(name)).unwrap();
    assert_eq!(bench.commit("a", 3, 3), Committed::Moved);
    assert_eq!(bench.slices("a"), [4], "of 3 nothing is left");
}

#[test]
fn a_commit_that_leaves_behind_what_a_restart_forgot_opens_fences() {
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.crash();
    let (name, _) = bench.chain("a");
    assert_eq!(bench.fetch(2, 2, 9), Some((2, vec![2], 3)));
    bench.step(|step| step.refresh(name)).unwrap();
    bench.log.push(0);
    assert_eq!(bench.fetch(3, 3, 9), Some((3, vec![3], 4)));
    assert_eq!(bench.grantable(), [None, None]);
    assert_eq!(bench.commit("a", 3, 4), Committed::Moved);
    assert_eq!(bench.grantable(), [None, Some(2)]);
}
