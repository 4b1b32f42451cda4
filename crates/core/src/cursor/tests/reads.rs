//! Rows of the fetch table (A.2 with F.1), OffsetFetch (A.9), restarts (A.11, R1).

use super::bench::*;
use crate::cursor::*;
use crate::limits::SERVED_CEILING_STEP;
use crate::slots::SlotSet;

#[test]
fn fetch_row_2_an_id_of_nobody_is_unknown() {
    let bench = Bench::held(&[0, 1]);
    assert!(matches!(bench.locate(9, 0), Found::Unknown));
    assert!(matches!(
        Cursor::Plain(Plain::default()).locate(&bench.live, id(1), 0),
        Found::Unknown
    ));
}

#[test]
fn fetch_row_3_a_chain_that_is_not_held_gives_no_data() {
    let mut bench = Bench::held(&[0, 1]);
    bench.step(|step| step.give_up("a"));
    assert!(matches!(bench.locate(1, 0), Found::Silent));
    bench.step(|step| step.dead("a"));
    assert!(matches!(bench.locate(1, 0), Found::Silent));
}

#[test]
fn fetch_row_4_an_earlier_chain_of_a_member_is_retired() {
    let mut bench = Bench::held(&[0, 1]);
    bench.step(|step| step.give_up("a"));
    assert_eq!(bench.grant("a", 2, &SlotSet::all()), Ok(2));
    assert!(matches!(bench.locate(1, 0), Found::Unknown));
    assert_eq!(bench.ids.get(id(1)), Some(IdUse::Retired { since_ms: 0 }));
}

#[test]
fn fetch_row_5_a_closed_slice_leads_to_the_start_of_the_next() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    assert_eq!(bench.fetch(1, 0, 2), Some((1, vec![0, 1], 2)));
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    assert_eq!(bench.commit("a", 1, 2), Committed::Moved);
    assert_eq!(bench.slices("a"), [2]);
    assert_eq!(bench.fetch(1, 0, 9), Some((2, vec![2], 4)));
    assert_eq!(bench.fetch(1, 99, 9), Some((2, vec![2], 4)));
}

#[test]
fn fetch_row_6_an_old_slice_stays_readable_with_what_left() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    assert_eq!(bench.fetch(1, 0, 9), Some((1, vec![0, 1], 2)), "B5");
}

#[test]
fn fetch_row_7_behind_the_end_the_next_slice_begins_at_its_start() {
    let mut bench = Bench::held(&[0, 1, 0, 1, 0]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    for behind in [2, 3, 99] {
        assert_eq!(
            bench.fetch(1, behind, 9),
            Some((2, vec![2, 4], 5)),
            "never carried over"
        );
    }
}

/// Fetches as the engine does: searches two offsets at a time, notes what was searched in vain, and locates the same anew.
fn looks(bench: &mut Bench, slice: u32, offset: Offset) -> (u32, Offset) {
    for _ in 0..9 {
        let Found::Read(plan) = bench.locate(slice, offset) else {
            panic!("nobody reads this")
        };
        let end = (plan.scan_from + 2).min(plan.sieve.to());
        let found: Vec<Record> = bench.records(plan.scan_from, end).collect();
        let mut kept = found.iter().filter(|r| plan.sieve.keeps(r.slot, r.offset));
        if let Some(first) = kept.next() {
            return (plan.slice.get(), first.offset);
        }
        bench.step(|step| step.memo(&plan, end));
    }
    panic!("what was searched in vain is searched again and again");
}

#[test]
fn a_search_behind_skipped_records_goes_on_where_it_ended() {
    let mut bench = Bench::held(&[0, 1, 1, 1, 1, 1, 1, 0]);
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    assert_eq!(looks(&mut bench, 2, 1), (2, 7));
    assert_eq!(looks(&mut bench, 2, 0), (2, 0), "what was skipped is still there");
}

#[test]
fn a_search_to_the_end_of_a_slice_leads_to_the_next_also_after_a_restart() {
    let mut bench = Bench::held(&[0, 0, 1, 1, 0]);
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    bench.fetch(2, 0, 4);
    let unused: SlotSet = half(0).difference(&one(0));
    assert_eq!(bench.release("a", &unused), Ok(3));
    bench.crash();
    assert_eq!(looks(&mut bench, 2, 2), (3, 4));
    assert_eq!(looks(&mut bench, 2, 1), (2, 1), "what it has is still there");
}

#[test]
fn what_was_searched_behind_skipped_records_is_known_once_they_are_committed() {
    let mut bench = Bench::held(&[0, 1]);
    bench.fetch(1, 0, 2);
    bench.commit("a", 1, 2);
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    assert_eq!(bench.grant("b", 1, &half(1)), Ok(3));
    bench.log.extend([0, 1, 1]);
    bench.fetch(3, 2, 9);
    bench.commit("b", 3, 5);
    let Found::Read(plan) = bench.locate(2, 3) else {
        panic!()
    };
    bench.step(|step| step.memo(&plan, 5));
    assert_eq!(bench.outside(), 2, "the record at 2 was skipped, and is not done");
    bench.commit("a", 2, 3);
    // Nothing is left to be searched, so no later search can tell.
    assert_eq!(bench.outside(), 5);
}

#[test]
fn fetch_row_9_what_is_handed_out_raises_the_end_before_it_leaves() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 3);
    let (name, _) = bench.chain("a");
    assert_eq!(bench.divided().place(name, &bench.live), Some(3));
}

#[test]
fn an_answer_is_cut_where_the_slice_ended_meanwhile() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    let Found::Read(plan) = bench.locate(1, 2) else {
        panic!()
    };
    bench.release("a", &half(1)).unwrap();
    let found: Vec<Record> = bench.records(2, 4).collect();
    assert_eq!(
        bench.step(|step| step.reserve(&plan, &found, 4)),
        Ok(Reserved { end: 2 }),
        "R2"
    );
}

#[test]
fn an_answer_is_refused_if_slots_left_the_slice_meanwhile() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 3);
    let Found::Read(plan) = bench.locate(1, 0) else {
        panic!()
    };
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.commit("a", 1, 2), Committed::Moved);
    assert_eq!(bench.grantable(), [None, Some(3)]);
    let found: Vec<Record> = bench.records(0, 3).collect();
    assert_eq!(
        bench.step(|step| step.reserve(&plan, &found, 3)),
        Err(Refusal::Stale)
    );
    bench.step(|step| step.dead("a"));
    assert_eq!(
        bench.step(|step| step.reserve(&plan, &found, 3)),
        Err(Refusal::NotHeld)
    );
}

#[test]
fn the_ceiling_is_durable_before_the_first_answer_and_then_in_steps() {
    let mut bench = Bench::held(&[0; 8]);
    let changes = |bench: &Bench| bench.journal.len();
    let before = changes(&bench);
    bench.fetch(1, 0, 2);
    assert_eq!(changes(&bench), before + 1, "the first answer");
    bench.fetch(1, 2, 4);
    assert_eq!(changes(&bench), before + 1);
    let ceiling = bench.chain("a").1.tail().ceiling;
    assert_eq!(ceiling, Some(2 + SERVED_CEILING_STEP as i64));
}

#[test]
fn what_was_searched_in_vain_is_not_searched_again() {
    let mut bench = Bench::held(&[0, 0, 0]);
    bench.release("a", &half(0)).unwrap();
    assert_eq!(bench.fetch(2, 0, 9), None);
    let Found::Read(plan) = bench.locate(2, 0) else {
        panic!()
    };
    assert_eq!((plan.from, plan.scan_from), (0, 3));
    bench.log.push(1);
    assert_eq!(bench.fetch(2, 0, 9), Some((2, vec![3], 4)));
}

/// Who went back to records that were deleted meanwhile gets none of them, and can never commit behind them.
#[test]
fn what_was_handed_out_and_is_not_found_any_more_is_nobodys_to_do() {
    let mut bench = Bench::held(&[0, 0, 0, 0]);
    bench.fetch(1, 0, 3);
    bench.commit("a", 1, 1);
    assert_eq!(bench.outside(), 1);
    let Found::Read(plan) = bench.locate(1, 1) else {
        panic!()
    };
    bench.step(|step| step.memo(&plan, 3));
    assert_eq!(bench.outside(), 3);
    bench.step(|step| step.dead("a"));
    assert_eq!(bench.outside(), 3, "whoever comes next begins there");
}

/// The same if it does not begin where it committed, as one that goes on behind a batch's header.
#[test]
fn what_is_not_found_by_one_who_is_ahead_of_its_commits_is_nobodys_to_do() {
    let mut bench = Bench::held(&[0, 1, 0, 0]);
    bench.release("a", &half(1)).unwrap();
    bench.fetch(2, 0, 3);
    bench.commit("a", 2, 1);
    let undone = |bench: &Bench| bench.divided().undone_from(&bench.live, bench.chain("a").0);
    assert_eq!(undone(&bench), Some(2));
    let Found::Read(plan) = bench.locate(2, 2) else {
        panic!()
    };
    bench.step(|step| step.memo(&plan, 3));
    assert_eq!(undone(&bench), Some(3));
}

#[test]
fn offset_fetch_answers_the_oldest_open_slice() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    assert_eq!(bench.position("a"), at(1, 0));
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.position("a"), at(1, 0), "B6: not the tail");
    bench.commit("a", 1, 1);
    assert_eq!(bench.position("a"), at(1, 1));
    bench.commit("a", 1, 2);
    assert_eq!(bench.position("a"), at(2, 2));
    assert_eq!(bench.cursor.offset_fetch(&bench.live, "b"), None);
    bench.step(|step| step.give_up("a"));
    assert_eq!(bench.cursor.offset_fetch(&bench.live, "a"), None);
}

#[test]
fn outsiders_see_the_lowest_of_all_slots() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.commit("a", 1, 2);
    bench.fetch(2, 2, 9);
    bench.commit("a", 2, 4);
    assert_eq!(bench.outside(), 2, "B20: half 1 is loose at 2");
    bench.grant("b", 1, &half(1)).unwrap();
    assert_eq!(bench.fetch(3, 2, 9), Some((3, vec![3], 4)));
    assert_eq!(bench.outside(), 3, "the next record of b");
    bench.commit("b", 3, 4);
    assert_eq!(bench.outside(), 4);
    bench.log.extend([0, 0, 0]);
    assert_eq!(bench.fetch(2, 4, 1), Some((2, vec![4], 5)));
    bench.commit("a", 2, 5);
    assert_eq!(bench.fetch(3, 4, 9), None);
    assert_eq!(bench.outside(), 5, "b has searched up to 7 in vain");
    let lower = bench.cursor.outside_view(None).offset;
    assert_eq!(lower, 4, "without what is known");
}

#[test]
fn after_a_restart_a_chain_is_blind_until_it_is_read_again() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    bench.crash();
    assert_eq!(bench.commit("a", 1, 2), Committed::Moved);
    assert_eq!(bench.slices("a"), [1, 2], "nothing settles");
    assert_eq!(bench.grantable(), [None, None]);
    assert_eq!(bench.release("a", &half(0)), Err(Refusal::Rewound));
    bench.recall();
    assert_eq!(bench.slices("a"), [2]);
    assert_eq!(
        bench.grantable(),
        [None, None],
        "R4: the chain was read, so it is marked"
    );
    let (name, _) = bench.chain("a");
    assert_eq!(bench.step(|step| step.refresh(name)).map(SliceId::get), Ok(3));
    assert_eq!(bench.fetch(2, 2, 9), Some((3, vec![2], 4)));
    assert_eq!(bench.commit("a", 3, 3), Committed::Moved);
    assert_eq!(bench.grantable(), [None, Some(2)]);
}

#[test]
fn after_a_restart_the_durable_ceiling_stands_for_what_was_handed_out() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.crash();
    let (name, _) = bench.chain("a");
    assert_eq!(
        bench.divided().place(name, &bench.live),
        Some(4),
        "R1: as far as the log goes"
    );
    assert!(bench.divided().view(&bench.live)[0].is_blind);
    bench.recall();
    let view = &bench.divided().view(&bench.live)[0];
    assert_eq!((view.is_blind, view.undone.by_slot.len()), (false, 2));
}

#[test]
fn after_a_restart_an_untouched_chain_moves_at_once() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.crash();
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    assert_eq!(bench.grantable(), [None, Some(0)]);
    assert_eq!(bench.slices("a"), [2]);
}

#[test]
fn records_beyond_the_limit_are_remembered_as_a_block() {
    let count = crate::limits::HANDED_OUT_RECORDS_MAX as i64 + 10;
    let mut bench = Bench::held(&[]);
    bench.log = (0..count).map(|offset| u16::from(offset > 10)).collect();
    bench.fetch(1, 0, count);
    let view = &bench.divided().view(&bench.live)[0];
    assert!(view.undone.and_more);
    bench.release("a", &half(0)).unwrap();
    assert_eq!(bench.commit("a", 1, 11), Committed::Moved);
    assert_eq!(
        bench.grantable(),
        [None, None],
        "later than it could, never earlier"
    );
    bench.commit("a", 1, count / 2 + 10);
    assert_eq!(bench.grantable(), [Some(count), None]);
}
