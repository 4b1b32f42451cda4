//! Test help: any value at all.

use proptest::prelude::*;

use super::codec::KINDS;
use super::{Blocked, Decision, Phase, Queues, Why};

fn any_blocked() -> impl Strategy<Value = Blocked> {
    ("[a-z]{1,6}", any::<u32>(), any::<u64>()).prop_map(|(group, queue, unread)| Blocked {
        group,
        queue,
        unread,
    })
}

fn any_why() -> impl Strategy<Value = Why> {
    prop_oneof![
        Just(Why::SwitchedOn),
        Just(Why::SwitchedOff),
        ("[a-z]{1,6}", any::<u32>()).prop_map(|(group, instances)| Why::LargestGroup { group, instances }),
        Just(Why::Bounds),
        any::<Option<u32>>().prop_map(|wish| Why::Operator { wish }),
        Just(Why::DelayOver),
        Just(Why::Drained),
        any_blocked().prop_map(Why::Unread),
        proptest::option::of(any_blocked()).prop_map(Why::Forced),
    ]
}

pub(crate) fn any_decision() -> impl Strategy<Value = Decision> {
    let counts = || (any::<u32>(), any::<u32>());
    let numbers = (counts(), counts(), any::<u32>(), any::<u64>());
    (
        any::<i64>(),
        prop::sample::select(KINDS.to_vec()),
        any_why(),
        numbers,
    )
        .prop_map(|(at_ms, kind, why, (before, after, goal, wait_ms))| Decision {
            at_ms,
            kind,
            why,
            before,
            after,
            goal,
            wait_ms,
        })
}

pub(crate) fn any_counts() -> impl Strategy<Value = Queues> {
    let phase = prop_oneof![
        Just(Phase::Idle),
        Just(Phase::ReadingAhead),
        Just(Phase::Draining),
        any_blocked().prop_map(Phase::Postponed),
    ];
    let counts = (1..99u32, 0..99u32, 1..99u32);
    (counts, any::<Option<u32>>(), phase, any::<i64>()).prop_map(
        |((write, more, goal), wish, phase, since_ms)| Queues {
            write,
            read: write + more,
            goal,
            wish,
            phase,
            since_ms,
        },
    )
}

pub(crate) fn any_queues() -> impl Strategy<Value = (Queues, Vec<Decision>)> {
    (any_counts(), prop::collection::vec(any_decision(), 0..4))
}
