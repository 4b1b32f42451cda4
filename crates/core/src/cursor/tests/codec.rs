//! Cursors and changes as bytes; replays; the rows of the format page.

use proptest::prelude::*;

use super::bench::*;
use crate::codec::{CodecError, Decoder, Encoder};
use crate::cursor::*;
use crate::slots::SlotSet;

fn bytes_of(change: &CursorChange) -> Vec<u8> {
    let mut e = Encoder::new();
    change.put(&mut e);
    e.into_bytes()
}

fn change_of(bytes: &[u8]) -> Result<CursorChange, CodecError> {
    let mut d = Decoder::new(bytes);
    let change = CursorChange::get(&mut d)?;
    d.finish()?;
    Ok(change)
}

fn bytes_of_cursor(cursor: &Cursor) -> Vec<u8> {
    let mut e = Encoder::new();
    cursor.put(&mut e);
    e.into_bytes()
}

fn cursor_of(bytes: &[u8]) -> Result<Cursor, CodecError> {
    let mut d = Decoder::new(bytes);
    let cursor = Cursor::get(&mut d)?;
    d.finish()?;
    Ok(cursor)
}

/// A run of operations, whatever they are refused for.
fn busy(ops: &[(u8, u16, i64)]) -> Bench {
    let mut bench = Bench::held(&[0, 1, 0, 1, 1, 0, 0, 1, 1, 0]);
    for (op, which, offset) in ops {
        let member = if which % 2 == 0 { "a" } else { "b" };
        let slots: SlotSet = (which % 4096..4096)
            .filter_map(anabranch_wire::slot::Slot::new)
            .collect();
        let chain = bench
            .divided()
            .chain_of(member)
            .map(|(name, chain)| (name, chain.tail().id.get()));
        let Some((name, tail)) = chain else {
            let grantable = bench.divided().grantable(&bench.live).slots();
            let _ = bench.grant(member, 1, &slots.intersection(&grantable));
            continue;
        };
        match op % 8 {
            0 | 1 => drop(bench.fetch(tail, *offset, 2)),
            2 => {
                let own = bench.chain(member).1.tail().pieces.slots();
                let _ = bench.release(member, &slots.intersection(&own));
            }
            3 => {
                let grantable = bench.divided().grantable(&bench.live).slots();
                let _ = bench.jump_grant(member, &slots.intersection(&grantable));
            }
            4 => drop(bench.step(|step| step.refresh(name))),
            5 if offset % 4 == 0 => bench.step(|step| step.give_up(member)),
            6 if offset % 8 == 0 => bench.step(|step| step.dead(member)),
            _ => {
                bench.commit(member, tail, *offset);
            }
        }
    }
    bench
}

fn ops() -> impl Strategy<Value = Vec<(u8, u16, i64)>> {
    prop::collection::vec((any::<u8>(), any::<u16>(), 0..12i64), 0..40)
}

fn slots() -> impl Strategy<Value = SlotSet> {
    prop_oneof![
        prop::collection::vec(0..4096u16, 0..6),
        prop::collection::vec(0..4096u16, 300..600),
        Just((0..4096).collect::<Vec<u16>>()),
        Just((0..4096).step_by(2).collect::<Vec<u16>>()),
    ]
    .prop_map(|slots| {
        slots
            .into_iter()
            .filter_map(anabranch_wire::slot::Slot::new)
            .collect()
    })
}

fn slice_id() -> impl Strategy<Value = SliceId> {
    (1..=131_071u32).prop_map(id)
}

fn pieces() -> impl Strategy<Value = Pieces> {
    prop::collection::vec((any::<i64>(), slots()), 0..3).prop_map(|list| {
        let mut pieces = Pieces::new();
        list.iter().for_each(|(from, slots)| pieces.add(*from, slots));
        pieces
    })
}

fn slice() -> impl Strategy<Value = Slice> {
    let end = || prop::option::of(any::<i64>());
    (slice_id(), any::<i64>(), pieces(), end(), end()).prop_map(|(id, start, pieces, to, ceiling)| Slice {
        id,
        start,
        pieces,
        to,
        ceiling,
    })
}

fn plain() -> impl Strategy<Value = Plain> {
    (
        any::<i64>(),
        any::<i32>(),
        ".{0,5}",
        any::<i64>(),
        prop::option::of(any::<i64>()),
    )
        .prop_map(|(offset, leader_epoch, metadata, commit_ms, expires_ms)| Plain {
            offset,
            leader_epoch,
            metadata,
            commit_ms,
            expires_ms,
        })
}

/// Any change, sensible or not.
fn change() -> impl Strategy<Value = CursorChange> {
    let note = plain().prop_map(|plain| Note {
        metadata: plain.metadata,
        commit_ms: plain.commit_ms,
        expires_ms: plain.expires_ms,
    });
    let closed = prop::collection::btree_set(slice_id(), 0..3).prop_map(|ids| ids.into_iter().collect());
    let state = prop_oneof![
        Just(ChainState::Held),
        Just(ChainState::GivenUp),
        Just(ChainState::Dead)
    ];
    let advance = (
        slice_id(),
        slice_id(),
        any::<i64>(),
        closed,
        slots(),
        prop::option::of(note),
    );
    let edit = prop_oneof![
        plain().prop_map(|kept| Edit::Divide { kept }),
        (".{0,5}", any::<i32>(), slice()).prop_map(|(member, epoch, slice)| Edit::Grant {
            member,
            epoch,
            slice
        }),
        (slice_id(), any::<i64>(), slice(), pieces()).prop_map(|(chain, to, slice, transit)| Edit::Succeed {
            chain,
            to,
            slice,
            transit
        }),
        advance.prop_map(|(chain, front, pos, closed, opened, note)| Edit::Advance {
            chain,
            front,
            pos,
            closed,
            opened,
            note
        }),
        (slice_id(), state).prop_map(|(chain, state)| Edit::State { chain, state }),
        (slice_id(), slice_id(), any::<i64>()).prop_map(|(chain, slice, ceiling)| Edit::Ceiling {
            chain,
            slice,
            ceiling
        }),
        plain().prop_map(|plain| Edit::Plain { plain }),
    ];
    (any::<u64>(), edit).prop_map(|(version, edit)| CursorChange { version, edit })
}

proptest! {
    #[test]
    fn changes_come_back_and_cuts_are_errors(change in change()) {
        let bytes = bytes_of(&change);
        for len in 0..bytes.len() {
            prop_assert!(change_of(&bytes[..len]).is_err());
        }
        prop_assert_eq!(change_of(&bytes), Ok(change));
    }

    #[test]
    fn garbage_is_an_error_or_has_one_form(bytes in prop::collection::vec(any::<u8>(), 0..200), tag in 0..9u8) {
        let framed = [&[5, tag][..], &bytes].concat();
        if let Ok(change) = change_of(&framed) {
            prop_assert_eq!(bytes_of(&change), framed);
        }
        let framed = [&[1][..], &bytes].concat();
        if let Ok(cursor) = cursor_of(&framed) {
            prop_assert_eq!(bytes_of_cursor(&cursor), framed);
        }
    }

    #[test]
    fn cursors_come_back(ops in ops()) {
        let bench = busy(&ops);
        let bytes = bytes_of_cursor(&bench.cursor);
        let back = cursor_of(&bytes).unwrap();
        prop_assert_eq!(&back, &bench.cursor);
        for len in (0..bytes.len()).step_by(7) {
            prop_assert!(cursor_of(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn the_state_is_the_fold_of_its_changes_wherever_a_replay_begins(ops in ops(), begin in any::<prop::sample::Index>()) {
        let bench = busy(&ops);
        let mut folded = Cursor::Plain(Plain::default());
        for change in &bench.journal {
            change.apply(&mut folded);
        }
        prop_assert_eq!(&folded, &bench.cursor);
        for change in &bench.journal[begin.index(bench.journal.len())..] {
            change.apply(&mut folded);
        }
        prop_assert_eq!(&folded, &bench.cursor);
    }

    #[test]
    fn applying_never_fails(ops in ops(), changes in prop::collection::vec(change(), 0..12)) {
        let mut cursor = busy(&ops).cursor;
        for change in &changes {
            change.apply(&mut cursor);
            let _ = bytes_of_cursor(&cursor);
        }
    }
}

#[test]
fn a_cut_in_two_takes_less_than_4_kib_and_a_commit_a_handful_of_bytes() {
    let mut bench = Bench::held(&[0, 1, 0, 1]);
    let every_second: SlotSet = SlotSet::all().iter().filter(|slot| slot.get() % 2 == 1).collect();
    bench.fetch(1, 0, 2);
    let size = |bench: &mut Bench, act: &dyn Fn(&mut Bench) -> bool| {
        let before = bench.journal.len();
        assert!(act(bench));
        bench.journal[before..]
            .iter()
            .map(|change| bytes_of(change).len())
            .sum::<usize>()
    };
    let release = size(&mut bench, &|bench| bench.release("a", &every_second).is_ok());
    let commit = size(&mut bench, &|bench| bench.commit("a", 1, 1) == Committed::Moved);
    let grant = size(&mut bench, &|bench| {
        let loose = bench.divided().loose().slots();
        bench.grant("b", 1, &loose).is_ok()
    });
    assert!(release <= 4096 && grant <= 4096, "{release} {grant}");
    assert!(commit <= 16, "{commit}");
}

#[test]
fn a_divided_cursor_that_breaks_the_rules_is_damage() {
    let mut bench = Bench::held(&[0, 1]);
    bench.release("a", &half(1)).unwrap();
    let Cursor::Divided(divided) = &bench.cursor else {
        panic!()
    };
    let mut broken = divided.clone();
    broken.loose = Pieces::of(0, &SlotSet::all());
    assert!(broken.check().unwrap_err().starts_with("I1"));
    assert!(cursor_of(&bytes_of_cursor(&Cursor::Divided(broken))).is_err());
}

/// One change of every kind, as the format page shows them.
fn every_kind() -> Vec<(CursorChange, &'static str)> {
    let kept = Plain {
        offset: 7,
        leader_epoch: -1,
        metadata: "m".into(),
        commit_ms: 1_700_000_000_000,
        expires_ms: None,
    };
    let low = (0..1024).filter_map(anabranch_wire::slot::Slot::new).collect();
    let slice = |number, slots| Slice {
        id: id(number),
        start: 7,
        pieces: Pieces::of(7, &slots),
        to: None,
        ceiling: None,
    };
    let edits = [
        (Edit::Divide { kept: kept.clone() }, "Divide"),
        (
            Edit::Grant {
                member: "a".into(),
                epoch: 3,
                slice: slice(1, SlotSet::all()),
            },
            "Grant",
        ),
        (
            Edit::Succeed {
                chain: id(1),
                to: 9,
                slice: slice(2, half(1)),
                transit: Pieces::of(9, &half(0)),
            },
            "Succeed",
        ),
        (
            Edit::Advance {
                chain: id(1),
                front: id(2),
                pos: 9,
                closed: vec![id(3)],
                opened: low,
                note: Some(Note::default()),
            },
            "Advance",
        ),
        (
            Edit::State {
                chain: id(1),
                state: ChainState::GivenUp,
            },
            "State",
        ),
        (
            Edit::Ceiling {
                chain: id(1),
                slice: id(2),
                ceiling: 65_545,
            },
            "Ceiling",
        ),
        (Edit::Plain { plain: kept }, "Plain"),
    ];
    let numbered = (1..).zip(edits);
    numbered
        .map(|(version, (edit, name))| (CursorChange { version, edit }, name))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

#[test]
fn every_kind_has_the_bytes_of_the_format_page() {
    let page = include_str!("../../../../../docs/format/state.md");
    let mut rows: Vec<String> = every_kind()
        .iter()
        .map(|(change, name)| format!("| {name} | `{}` |", hex(&bytes_of(change))))
        .collect();
    let mut bench = Bench::held(&[0, 1, 0]);
    bench.fetch(1, 0, 2);
    bench.release("a", &half(1)).unwrap();
    rows.push(format!(
        "| a divided cursor | `{}` |",
        hex(&bytes_of_cursor(&bench.cursor))
    ));
    let ids = [
        SliceIdsChange::Taken {
            id: id(300),
            group: "g".into(),
        },
        SliceIdsChange::Retired {
            ids: vec![id(1), id(2)],
            at_ms: 1_700_000_000_000,
        },
    ];
    for (change, name) in ids.iter().zip(["Taken", "Retired"]) {
        let mut e = Encoder::new();
        change.put(&mut e);
        rows.push(format!("| {name} | `{}` |", hex(&e.into_bytes())));
        bench.ids.apply(change);
    }
    let mut e = Encoder::new();
    bench.ids.put(&mut e);
    rows.push(format!("| a pool | `{}` |", hex(&e.into_bytes())));
    for row in &rows {
        assert!(
            page.contains(row.as_str()),
            "docs/format/state.md lacks:\n{}",
            rows.join("\n")
        );
    }
}

#[test]
fn ids_of_a_pool_change_come_back() {
    for change in [
        SliceIdsChange::Taken {
            id: id(1),
            group: "g".into(),
        },
        SliceIdsChange::Retired {
            ids: vec![id(1), id(9)],
            at_ms: -1,
        },
    ] {
        let mut e = Encoder::new();
        change.put(&mut e);
        let bytes = e.into_bytes();
        assert_eq!(SliceIdsChange::get(&mut Decoder::new(&bytes)), Ok(change));
    }
    assert!(
        SliceIdsChange::get(&mut Decoder::new(&[2, 2, 9, 1, 0])).is_err(),
        "not ascending"
    );
    assert!(
        SliceIdsChange::get(&mut Decoder::new(&[1, 0, 0])).is_err(),
        "id 0"
    );
}
