//! Release, grant, give-up, death, refresh, the ways back (A.3, A.5, A.6, A.8, A.10 with F.1 and F.4).

use super::bench::*;
use crate::cursor::*;
use crate::limits::{CHAIN_CLOSED_IDS_MAX, CHAIN_SLICES_MAX};
use crate::slots::SlotSet;

#[test]
fn release_ends_the_tail_behind_what_was_handed_out() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 3);
    assert_eq!(bench.release("a", &half(1)), Ok(2));
    let (_, chain) = bench.chain("a");
    assert_eq!((chain.slices()[0].to, chain.tail().start), (Some(3), 3));
    assert_eq!(chain.tail().pieces, Pieces::of(3, &half(0)));
    assert_eq!(
        chain.transits()[0].pieces,
        Pieces::of(3, &one(1)),
        "the others had no record"
    );
    assert_eq!(bench.grantable(), [None, None], "in transit");
}

#[test]
fn release_opens_its_fence_at_once_if_nothing_is_in_work() {
    let mut bench = Bench::held(&[0, 0, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.grantable(), [None, Some(2)], "B4: records, not numbers");
    assert_eq!(bench.slices("a"), [1, 2]);
}

#[test]
fn release_of_an_untouched_chain_leaves_one_slice() {
    let mut bench = Bench::held(&[0, 1]);
    for (slots, tail) in [(half(1), 2), (half(0), 3)] {
        assert_eq!(bench.release("a", &slots), Ok(tail));
        assert_eq!(bench.slices("a"), [tail], "R5: all slots may go");
    }
    assert_eq!(bench.grantable(), [Some(0), Some(0)]);
    assert_eq!(bench.position("a"), at(3, 0));
    assert_eq!(bench.jump_grant("a", &SlotSet::all()), Ok(4));
    assert_eq!(
        bench.fetch(1, 0, 9),
        Some((4, vec![0, 1], 2)),
        "its old id leads on"
    );
}

#[test]
fn release_goes_behind_the_committed_position() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.commit("a", 1, 3);
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.grantable(), [None, Some(3)], "R6");
}

#[test]
fn release_is_refused_where_it_must_be() {
    let mut bench = Bench::held(&[0, 1]);
    assert_eq!(bench.release("a", &SlotSet::empty()), Err(Refusal::NoSlots));
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.release("a", &half(1)), Err(Refusal::NotThere));
    let (name, _) = bench.chain("a");
    assert_eq!(
        bench.step(|step| step.release(id(9), &half(0))),
        Err(Refusal::UnknownChain)
    );
    bench.step(|step| step.give_up("a"));
    assert_eq!(
        bench.step(|step| step.release(name, &half(0))),
        Err(Refusal::NotHeld)
    );
    let mut plain = Bench::new(&[]);
    assert_eq!(
        plain.step(|step| step.release(name, &half(0))),
        Err(Refusal::NotDivided)
    );
    assert_eq!(
        plain.step(|step| step.grant("a", 1, &half(0))),
        Err(Refusal::NotDivided)
    );
}

#[test]
fn a_chain_at_its_limit_waits_for_commits() {
    let mut bench = Bench::held(&[0; 40]);
    let mut tail = 1;
    for round in 1..CHAIN_SLICES_MAX as i64 {
        assert!(bench.fetch(tail, 0, 1).is_some(), "{round}");
        bench
            .release("a", &half(1))
            .or_else(|_| bench.jump_grant("a", &half(1)))
            .unwrap();
        tail = *bench.slices("a").last().unwrap();
    }
    assert_eq!(bench.slices("a").len(), CHAIN_SLICES_MAX);
    bench.fetch(tail, 0, 1);
    let moved = bench.release("a", &half(0));
    assert_eq!(moved, Err(Refusal::Full));
    let front = bench.slices("a")[1];
    bench.commit("a", front, 99);
    assert!(bench.release("a", &half(0)).is_ok());
}

#[test]
fn at_the_limit_a_tail_that_nobody_read_can_still_be_replaced() {
    let mut bench = Bench::held(&[0; 40]);
    let mut tail = 1;
    for _ in 1..CHAIN_SLICES_MAX {
        bench.fetch(tail, 0, 1);
        bench
            .release("a", &half(1))
            .or_else(|_| bench.jump_grant("a", &half(1)))
            .unwrap();
        tail = *bench.slices("a").last().unwrap();
    }
    assert!(
        bench.release("a", &half(0)).is_ok(),
        "settle step 3: the tail vanishes"
    );
    assert_eq!(bench.slices("a").len(), CHAIN_SLICES_MAX);
}

#[test]
fn grant_by_assignment_always_has_a_fresh_id() {
    let mut bench = Bench::held(&[0, 1]);
    assert_eq!(bench.grant("a", 2, &SlotSet::all()), Err(Refusal::StillHeld));
    bench.step(|step| step.give_up("a"));
    assert_eq!(bench.grant("a", 2, &half(0)), Ok(2));
    assert_eq!(
        bench.grantable(),
        [None, Some(0)],
        "what is left of its former chain is loose"
    );
    assert_eq!(bench.grant("b", 2, &half(0)), Err(Refusal::NotThere));
    assert_eq!(bench.grant("b", 2, &SlotSet::empty()), Ok(3), "waits for slots");
    assert_eq!(bench.jump_grant("b", &half(1)), Ok(4));
    assert_eq!(bench.fetch(3, 2, 9), Some((4, vec![1], 2)));
}

#[test]
fn grant_by_jump_has_gained_slots_at_their_resume_points() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.release("a", &half(1)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    bench.fetch(2, 0, 9);
    bench.commit("a", 2, 3);
    assert_eq!(bench.fetch(3, 0, 2), Some((3, vec![1], 3)));
    bench.step(|step| step.dead("b"));
    assert_eq!(bench.jump_grant("a", &half(1)), Ok(4));
    let (_, chain) = bench.chain("a");
    assert_eq!(
        chain.tail().pieces.from_of(slot(1)),
        Some(1),
        "b committed nothing; record 0 is none of its"
    );
    assert_eq!(chain.tail().pieces.from_of(slot(0)), Some(4));
    assert_eq!(bench.fetch(2, 4, 9), Some((4, vec![1, 3], 4)), "B11");
    assert_eq!(bench.divided().chains().count(), 1);
}

#[test]
fn a_transit_goes_back_to_its_source_without_a_fence() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    let (name, _) = bench.chain("a");
    assert_eq!(
        bench.step(|step| step.return_transit(name, &one(0))),
        Err(Refusal::NotThere)
    );
    assert_eq!(
        bench
            .step(|step| step.return_transit(name, &one(1)))
            .map(SliceId::get),
        Ok(3)
    );
    let (_, chain) = bench.chain("a");
    assert!(chain.transits().is_empty());
    assert_eq!(chain.tail().pieces, Pieces::of(2, &half(0).union(&one(1))));
    assert_eq!(bench.slices("a"), [1, 3], "settle step 3: 2 had no record");
}

#[test]
fn give_up_and_death_let_slots_resume_where_they_are_not_where_they_would_have_left() {
    for leave in [true, false] {
        let mut bench = Bench::held(&[0, 1, 0, 1]);
        bench.fetch(1, 0, 2);
        bench.release("a", &half(1)).unwrap();
        bench.step(|step| if leave { step.dead("a") } else { step.give_up("a") });
        assert_eq!(bench.grantable(), [Some(0), Some(0)], "B1");
    }
}

#[test]
fn what_outsiders_saw_as_done_stays_done_when_a_member_leaves_or_gives_up() {
    for leave in [true, false] {
        // The only record of half 1 is the last; the gap before it is nobody's any more once half 0 is done.
        let mut bench = Bench::held(&[0, 0, 0, 0, 1]);
        bench.release("a", &half(1)).unwrap();
        bench.grant("b", 1, &half(1)).unwrap();
        bench.fetch(2, 0, 9);
        bench.fetch(3, 0, 9);
        bench.commit("a", 2, 4);
        assert_eq!(bench.outside(), 4);
        bench.step(|step| if leave { step.dead("b") } else { step.give_up("b") });
        assert_eq!(bench.outside(), 4);
        assert_eq!(bench.grantable(), [None, Some(4)]);
        // A part of it: the rest comes loose.
        bench.grant("b", 2, &one(1)).unwrap();
        assert_eq!(bench.outside(), 4);
        bench.jump_grant("a", &half(1).difference(&one(1))).unwrap();
        assert_eq!(bench.outside(), 4);
    }
}

#[test]
fn what_outsiders_saw_as_done_stays_done_in_every_slice_of_a_chain() {
    let mut bench = Bench::held(&[1, 1, 0, 0, 1, 0]);
    bench.release("a", &half(1)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    bench.fetch(2, 0, 4);
    bench.commit("a", 2, 3);
    bench.fetch(3, 0, 2);
    bench.commit("b", 3, 2);
    bench.step(|step| step.dead("b"));
    assert_eq!(bench.jump_grant("a", &half(1)), Ok(4));
    let found = bench.fetch(4, 2, 1);
    assert_eq!(
        found,
        Some((4, vec![4], 5)),
        "between 2 and 4 is nothing of half 1"
    );
    assert_eq!(bench.outside(), 3, "in a's older slice");
    bench.step(|step| step.dead("a"));
    assert_eq!(bench.outside(), 3);
    bench.grant("c", 1, &half(1)).unwrap();
    assert_eq!(bench.outside(), 3);
}

#[test]
fn commits_after_a_give_up_are_rounded_up_as_well() {
    let mut bench = Bench::held(&[1, 0, 0, 0, 1]);
    bench.release("a", &half(1)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    bench.fetch(2, 0, 9);
    bench.fetch(3, 0, 9);
    bench.commit("a", 2, 4);
    bench.step(|step| step.give_up("b"));
    assert_eq!(bench.outside(), 0);
    assert_eq!(bench.commit("b", 3, 1), Committed::Moved);
    assert_eq!(bench.outside(), 4);
    bench.grant("b", 2, &one(1)).unwrap();
    assert_eq!(bench.outside(), 4);
}

#[test]
fn commits_after_a_give_up_count_until_the_slots_are_granted_anew() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 3);
    bench.step(|step| step.give_up("a"));
    assert_eq!(bench.commit("a", 1, 1), Committed::Moved);
    assert_eq!(bench.grant("b", 2, &half(1)), Ok(2));
    assert_eq!(bench.commit("a", 1, 3), Committed::Moved);
    assert_eq!(bench.grantable(), [Some(3), None]);
    assert_eq!(bench.position("b"), at(2, 1), "b stays where it was granted");
}

#[test]
fn a_rewound_chain_gets_a_fresh_slice_and_must_commit_in_it() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.fetch(1, 0, 2);
    bench.fetch(1, 0, 2);
    let (name, _) = bench.chain("a");
    assert_eq!(bench.release("a", &half(1)), Err(Refusal::Rewound));
    assert_eq!(
        bench.divided().view(&bench.live)[0].rewound,
        Rewound::NeedsRefresh
    );
    assert_eq!(bench.step(|step| step.refresh(name)).map(SliceId::get), Ok(2));
    assert_eq!(bench.step(|step| step.refresh(name)), Err(Refusal::NotRewound));
    assert_eq!(bench.commit("a", 1, 2), Committed::Moved);
    assert_eq!(bench.release("a", &half(1)), Err(Refusal::Rewound));
    bench.fetch(2, 2, 1);
    assert_eq!(bench.commit("a", 2, 3), Committed::Moved);
    assert_eq!(bench.release("a", &half(1)), Ok(3));
}

#[test]
fn pieces_of_a_later_release_keep_their_own_first_offset() {
    let mut bench = Bench::held(&[0, 0, 0, 1, 1]);
    bench.release("a", &half(1)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    bench.fetch(3, 0, 9);
    bench.commit("b", 3, 4);
    bench.step(|step| step.give_up("b"));
    assert_eq!(bench.jump_grant("a", &half(1)), Ok(4));
    bench.release("a", &half(1)).unwrap();
    assert_eq!(bench.grantable(), [None, Some(4)], "B10: not 0");
}

#[test]
fn back_to_plain_only_where_one_offset_is_exact() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    bench.release("a", &half(1)).unwrap();
    bench.grant("b", 1, &half(1)).unwrap();
    bench.fetch(2, 0, 9);
    bench.commit("a", 2, 3);
    let (probe, _) = bench.probe();
    assert_eq!(
        bench.step(|step| step.back_to_plain(&probe)),
        Err(Refusal::StillHeld)
    );
    bench.step(|step| step.give_up("a"));
    bench.step(|step| step.give_up("b"));
    let (probe, offset) = bench.probe();
    assert_eq!(offset, None, "B12: 1 is not done, 2 is");
    assert_eq!(
        bench.step(|step| step.back_to_plain(&probe)),
        Err(Refusal::NotExact)
    );
    bench.commit("b", 3, 2);
    assert_eq!(bench.step(|step| step.back_to_plain(&probe)), Err(Refusal::Stale));
    let (probe, offset) = bench.probe();
    assert_eq!(offset, Some(3));
    assert_eq!(bench.step(|step| step.back_to_plain(&probe)), Ok(3));
    assert_eq!(bench.outside(), 3);
    assert!((1..=3).all(|number| matches!(bench.ids.get(id(number)), Some(IdUse::Retired { .. }))));
}

#[test]
fn a_reset_ends_all_chains() {
    let mut bench = Bench::held(&[0, 1]);
    bench.release("a", &half(1)).unwrap();
    let plain = Plain {
        offset: 1,
        ..Plain::default()
    };
    bench.step(|step| step.collapse(plain.clone()));
    assert_eq!(bench.cursor, Cursor::Plain(plain));
    assert!((1..=2).all(|number| matches!(bench.ids.get(id(number)), Some(IdUse::Retired { .. }))));
    bench.divide().unwrap();
    assert_eq!(bench.grant("a", 3, &SlotSet::all()), Ok(3), "ids rest");
}

#[test]
fn dividing_needs_an_offset_that_fits() {
    let mut bench = Bench::held(&[]);
    assert_eq!(bench.divide(), Err(Refusal::Divided));
    for offset in [-1, SliceOffset::OFFSET_END] {
        let mut bench = Bench::new(&[]);
        bench.cursor = Cursor::Plain(Plain {
            offset,
            ..Plain::default()
        });
        assert_eq!(bench.divide(), Err(Refusal::NoPosition));
    }
}

#[test]
fn without_a_free_id_nothing_changes() {
    let mut bench = Bench::held(&[0, 1]);
    bench.take_ids(2..=SliceId::LAST.get());
    let before = bench.cursor.clone();
    assert_eq!(bench.release("a", &half(1)), Err(Refusal::NoId));
    assert_eq!(bench.cursor, before);
}

#[test]
fn the_last_id_that_is_free_is_for_a_slice_of_all_slots() {
    let mut bench = Bench::held(&[0, 1]);
    bench.take_ids(3..=SliceId::LAST.get());
    let before = bench.cursor.clone();
    assert_eq!(bench.release("a", &half(1)), Err(Refusal::NoId));
    assert_eq!(bench.cursor, before);
    bench.step(|step| step.give_up("a"));
    assert_eq!(bench.grant("b", 1, &half(1)), Err(Refusal::NoId));
    assert_eq!(bench.grant("b", 1, &SlotSet::all()), Ok(2));
}

#[test]
fn moves_of_an_idle_member_leave_nothing_behind_in_memory() {
    let mut bench = Bench::held(&[0, 1]);
    for _ in 0..20 {
        bench.release("a", &half(1)).unwrap();
        bench.jump_grant("a", &half(1)).unwrap();
    }
    let (name, _) = bench.chain("a");
    assert_eq!(bench.live.chains[&name].slices.len(), 1);
}

/// E8: each of many newcomers costs the one who stays two ids. What it remembers of them is bounded, and it can always
/// be moved again.
#[test]
fn e8_a_member_that_stays_while_hundreds_come_and_go_can_still_be_moved() {
    fn work(bench: &mut Bench, member: &str) {
        loop {
            let position = bench.position(member);
            let Some((slice, _, end)) = bench.fetch(position.slice.get(), position.offset, 99) else {
                return;
            };
            bench.commit(member, slice, end);
        }
    }
    let mut bench = Bench::held(&[]);
    for cycle in 0..600 {
        bench.log.extend([0, 1]);
        work(&mut bench, "a");
        assert!(bench.release("a", &half(1)).is_ok(), "{cycle}");
        bench.grant("b", 1, &half(1)).unwrap();
        bench.log.extend([0, 1]);
        work(&mut bench, "a");
        work(&mut bench, "b");
        bench.step(|step| step.dead("b"));
        assert!(bench.jump_grant("a", &half(1)).is_ok(), "{cycle}");
        let (_, chain) = bench.chain("a");
        assert!(chain.slices().len() <= 2 && chain.closed().len() < CHAIN_CLOSED_IDS_MAX);
        assert!(chain.slices().iter().all(|slice| slice.pieces.len() <= 2));
    }
    // The oldest ids are retired: whoever still asks for one gets no data. The first one names the chain.
    let (name, chain) = bench.chain("a");
    assert_eq!((name, chain.closed()[0]), (id(1), id(1)));
    assert!(matches!(bench.locate(1, 0), Found::Read(_)));
    assert!(matches!(bench.locate(2, 0), Found::Unknown));
    assert!(matches!(bench.ids.get(id(2)), Some(IdUse::Retired { .. })));
    let mut replayed = Cursor::Plain(Plain::default());
    for change in &bench.journal {
        change.apply(&mut replayed);
    }
    assert_eq!(replayed, bench.cursor);
}
