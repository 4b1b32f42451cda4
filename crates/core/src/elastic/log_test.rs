//! The decision log: bounded, refusals counted, back from its bytes.

use super::harness::{World, even};
use super::*;
use crate::codec::{Decoder, Encoder};

fn refusing() -> World {
    World::new().plain(0, "a", even(500)).member("a").member("b")
}

fn refusal(world: &mut World) -> Refusal {
    world.plan().refusals.remove(0)
}

fn decision() -> Decision {
    let mut world = World::new().plain(0, "a", even(10_000)).member("a").member("b");
    world.plan().decisions.remove(0)
}

fn again(log: &DecisionLog, entries_max: usize, bytes_max: usize) -> DecisionLog {
    let mut e = Encoder::new();
    log.put(&mut e);
    let bytes = e.into_bytes();
    let mut d = Decoder::new(&bytes);
    let log = DecisionLog::get(&mut d, entries_max, bytes_max).unwrap();
    d.finish().unwrap();
    log
}

#[test]
fn what_became_of_a_decision_stands_beside_it_and_the_decision_stays_as_it_was() {
    let mut log = DecisionLog::new(100, 1 << 20);
    let first = log.decide(decision());
    let second = log.decide(decision());
    assert_eq!((first + 1, second + 1), (second, log.next_number()));
    let settled = Settled {
        ended: Ended::Undone,
        handover_ms: 30_000,
    };
    log.settle(first, settled);
    log.settle(99, settled);
    assert_eq!((log.settled(first), log.settled(second)), (Some(settled), None));
    assert_eq!(again(&log, 100, 1 << 20), log);
    for (_, entry) in log.entries() {
        let Entry::Decided(decision) = entry else { panic!() };
        assert_eq!(decision.replay(), Outcome::Change(decision.change.clone()));
    }
    // What is forgotten takes it along.
    let fewer = again(&log, 1, 1 << 20);
    assert_eq!((fewer.settled(first), fewer.settled(second)), (None, None));
}

#[test]
fn a_refusal_that_repeats_is_counted() {
    let mut world = refusing();
    let mut log = DecisionLog::new(100, 1 << 20);
    let first = refusal(&mut world);
    assert_eq!(log.refuse(first.clone()), Noted::New(0));
    for _ in 0..100_000 / 100 {
        world.wait(1_000);
        world.process("a", 0);
        assert_eq!(log.refuse(refusal(&mut world)), Noted::Repeated(0));
    }
    let (_, entry) = log.entries().next().unwrap();
    let Entry::Refused {
        refusal,
        first_ms,
        times,
    } = entry
    else {
        panic!()
    };
    assert_eq!((*first_ms, *times), (first.at_ms, 1001));
    assert_eq!(refusal.at_ms, first.at_ms + 1_000_000, "the newest numbers");
    assert_eq!(log.entries().count(), 1);
    assert_eq!(again(&log, 100, 1 << 20), log);
}

#[test]
fn another_reason_another_member_or_a_decision_between_is_a_new_entry() {
    let mut world = refusing();
    let mut log = DecisionLog::new(100, 1 << 20);
    log.refuse(refusal(&mut world));
    world.snapshot.paused = true;
    assert_eq!(log.refuse(refusal(&mut world)), Noted::New(1));
    world.snapshot.paused = false;
    assert_eq!(log.refuse(refusal(&mut world)), Noted::Repeated(0));
    world.join("c");
    assert_eq!(log.refuse(refusal(&mut world)), Noted::New(2));
    assert_eq!(log.decide(decision()), 3);
    assert_eq!(log.refuse(refusal(&mut world)), Noted::New(4));
    assert_eq!(again(&log, 100, 1 << 20), log);
}

#[test]
fn the_oldest_go_when_number_or_bytes_are_used_up() {
    let size = decision().encode().len();
    let mut few = DecisionLog::new(3, 1 << 20);
    let mut small = DecisionLog::new(1000, size * 5 / 2);
    for number in 0..10 {
        assert_eq!(few.decide(decision()), number);
        small.decide(decision());
    }
    let numbers = |log: &DecisionLog| log.entries().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers(&few), [7, 8, 9]);
    assert_eq!(numbers(&small), [8, 9]);
    assert_eq!(small.bytes(), 2 * size);
    assert_eq!((few.next_number(), again(&few, 3, 1 << 20)), (10, few.clone()));
    // Tighter bounds after a restart forget more; numbers go on.
    let tighter = again(&few, 1, 1 << 20);
    assert_eq!((numbers(&tighter), tighter.next_number()), (vec![9], 10));
    // The newest stays even if it is alone too large.
    let mut tiny = DecisionLog::new(10, 1);
    tiny.decide(decision());
    tiny.decide(decision());
    assert_eq!(numbers(&tiny), [1]);
}

#[test]
fn damaged_logs_are_errors() {
    let mut log = DecisionLog::new(3, 1 << 20);
    log.decide(decision());
    let mut e = Encoder::new();
    log.put(&mut e);
    let bytes = e.into_bytes();
    for cut in 0..bytes.len() {
        assert!(
            DecisionLog::get(&mut Decoder::new(&bytes[..cut]), 3, 1 << 20).is_err(),
            "{cut}"
        );
    }
    for (at, value) in [(0, 0), (0, 3), (1, 0), (3, 9)] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        assert!(
            DecisionLog::get(&mut Decoder::new(&bytes), 3, 1 << 20).is_err(),
            "{at}"
        );
    }
}
