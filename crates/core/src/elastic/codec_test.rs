//! Decisions as bytes: pinned, bounded, and checked when they are read.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::codec::{why_nots, words};
use super::cut_test::{Keys, workload};
use super::harness::{World, even, per_slot};
use super::*;

/// A decision and a refusal that the format page shows.
fn samples() -> (Decision, Refusal) {
    let mut world = World::new().plain(0, "a", even(0)).member("a").member("b");
    let part = world.parts.values_mut().next().unwrap();
    (part.records[5], part.records[9]) = (700, 600);
    let decision = world.plan().decisions.remove(0);
    let mut world = World::new().plain(0, "a", even(0)).member("a").member("b");
    world.parts.values_mut().next().unwrap().records[5] = 700;
    (decision, world.plan().refusals.remove(0))
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(24).map(|line| {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        line.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_bytes_are_those_of_the_format_page() {
    let page = include_str!("../../../../docs/format/state.md");
    let (decision, refusal) = samples();
    for bytes in [decision.encode(), refusal.encode()] {
        let shown = hex(&bytes);
        assert!(
            page.contains(&shown),
            "docs/format/state.md lacks these bytes:\n{shown}"
        );
    }
}

#[test]
fn every_word_has_a_number_of_its_own() {
    let (kinds, whys, hows) = words();
    for (at, kind) in kinds.iter().enumerate() {
        assert!(kinds.iter().skip(at + 1).all(|other| other.code() != kind.code()));
    }
    for (at, why) in whys.iter().enumerate() {
        assert!(whys.iter().skip(at + 1).all(|other| other.code() != why.code()));
    }
    for (at, how) in hows.iter().enumerate() {
        assert!(hows.iter().skip(at + 1).all(|other| other.code() != how.code()));
    }
    // One more variant than the table has would not be found in it.
    let in_table = |kind: Kind| match kind {
        Kind::Split | Kind::Steal | Kind::Isolate | Kind::Merge => kinds.contains(&kind),
        Kind::Balance | Kind::Return | Kind::Fold | Kind::Plain => kinds.contains(&kind),
    };
    assert!(
        kinds.iter().all(|kind| in_table(*kind)) && kinds.len() == 8 && whys.len() == 7 && hows.len() == 7
    );
}

/// The codes in the table below a heading of the page for operators.
fn codes_below(heading: &str) -> BTreeSet<&'static str> {
    let page = include_str!("../../../../docs/elastic.md");
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let rows = below.lines().take_while(|line| !line.starts_with("## "));
    let first_cells = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
    first_cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn the_page_for_operators_has_every_reason_and_every_end_of_a_decision_and_no_other() {
    let why_nots = why_nots();
    let codes: BTreeSet<&str> = why_nots.iter().map(WhyNot::code).collect();
    assert_eq!(codes_below("Why nothing is decided"), codes);
    assert_eq!(codes.len(), why_nots.len(), "no two have the same code");
    let ends = [Ended::Done, Ended::Undone, Ended::Overtaken].map(Ended::code);
    assert_eq!(codes_below("What became of a decision"), BTreeSet::from(ends));
}

/// What a split costs in the journal: E3 allows 4 KiB in all.
#[test]
fn a_decision_takes_a_kilobyte_or_two() {
    for keys in [Keys::Uniform, Keys::Zipf(10), Keys::OneHeavy, Keys::Clustered] {
        let records = per_slot(&workload(keys, 20_000, 2_000_000, 4));
        let mut world = World::new().plain(0, "consumer-1-0123456789abcdef0123456789abcdef", records);
        world.join("consumer-1-0123456789abcdef0123456789abcdef");
        world.join("consumer-2-0123456789abcdef0123456789abcdef");
        let bytes = world.plan().decisions[0].encode().len();
        assert!(bytes <= 2048, "{keys:?}: {bytes} bytes");
    }
    // The largest: 64 members without work, names of 50 bytes.
    let records = per_slot(&workload(Keys::Uniform, 1_000_000, 200_000_000, 4));
    let mut world = World::new().plain(0, "a", records).member("a");
    for number in 0..64 {
        world.join(&format!(
            "consumer-{number:02}-0123456789abcdef0123456789abcdef0123"
        ));
    }
    world.settings().slices_max = 100;
    let bytes = world.plan().decisions[0].encode().len();
    assert!(bytes <= 64 * 1024, "{bytes} bytes");
}

proptest! {
    #[test]
    fn cut_or_changed_bytes_are_an_error_or_a_value_and_never_a_panic(
        at in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let (decision, refusal) = samples();
        for bytes in [decision.encode(), refusal.encode()] {
            let short = &bytes[..cut.index(bytes.len())];
            prop_assert!(Decision::decode(short).is_err());
            prop_assert!(Refusal::decode(short).is_err());
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] = value;
            // What is still a value has one form: it is written as it was read. And it can be asked and told.
            if let Ok(decision) = Decision::decode(&changed) {
                prop_assert_eq!(decision.encode(), changed.clone());
                let _ = (decision.replay(), decision.sentence());
            }
            if let Ok(refusal) = Refusal::decode(&changed) {
                prop_assert_eq!(refusal.encode(), changed);
                let _ = (refusal.replay(), refusal.sentence());
            }
        }
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decision::decode(&bytes);
        let _ = Refusal::decode(&bytes);
    }
}
