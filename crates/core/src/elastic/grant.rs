//! Slots that nobody has: their holder left, died or was expelled. They are given away at once; no cooldown holds them.

use std::cmp::Reverse;

use super::cut::{Side, deal};
use super::decision::{Change, How, Kind, Move, Outcome, ShareChange, Why, WhyNot};
use super::inputs::{GrantInputs, Receiver};

/// How long slots wait for their records to be counted, in milliseconds, before they are given to one member as they are.
pub(super) const COUNT_WAIT_MS: u64 = 50;

/// The members among whom the slots are dealt: so many that each part is worth it, and no more sharers than may be.
pub(super) fn takers(inputs: &GrantInputs) -> Vec<&Receiver> {
    let parts = (inputs.remaining / inputs.split_min_remaining.max(1)).max(1);
    let mut room = inputs.slices_max.saturating_sub(inputs.sharers) as usize;
    let mut takers = Vec::new();
    for receiver in &inputs.receivers {
        if takers.len() as u64 >= parts {
            break;
        }
        if receiver.slots == 0 {
            // One who shares nothing yet is still taken if nobody could take the slots otherwise.
            if room == 0 && (!takers.is_empty() || inputs.receivers.iter().any(|other| other.slots > 0)) {
                continue;
            }
            room = room.saturating_sub(1);
        }
        takers.push(receiver);
    }
    takers
}

/// Answers the question.
pub(super) fn decide(inputs: &GrantInputs) -> Outcome {
    let takers = takers(inputs);
    let Some(first) = takers.first() else {
        return refused(WhyNot::NoReceiver);
    };
    let weights = match &inputs.weights {
        Some(weights) if takers.len() > 1 => weights,
        None if takers.len() > 1 && inputs.for_ms < COUNT_WAIT_MS => return Outcome::Uncounted(0),
        _ => return Outcome::Change(change(inputs, &[(first, whole(inputs))], 0)),
    };
    let start: Vec<u64> = takers.iter().map(|taker| taker.load).collect();
    let sides = deal(weights, &start);
    let dealt: Vec<(&Receiver, Side)> = takers.into_iter().zip(sides).collect();
    Outcome::Change(change(inputs, &dealt, weights.error))
}

fn whole(inputs: &GrantInputs) -> Side {
    Side {
        slots: inputs.slots.clone(),
        records: inputs.remaining,
    }
}

fn change(inputs: &GrantInputs, dealt: &[(&Receiver, Side)], error: u64) -> Change {
    let dealt = || dealt.iter().filter(|(_, side)| !side.slots.is_empty());
    let mut shares: Vec<ShareChange> = dealt()
        .map(|(taker, side)| ShareChange {
            member: taker.id.clone(),
            before: taker.load,
            after: taker.load.saturating_add(side.records),
        })
        .collect();
    shares.sort_by_key(|share| Reverse(share.after));
    let moves = dealt().map(|(taker, side)| Move {
        of: inputs.of.clone(),
        slots: side.slots.clone(),
        from: None,
        to: taker.id.clone(),
        how: How::Grant,
    });
    Change {
        kind: Kind::Merge,
        why: Why::NoHolder,
        moves: moves.collect(),
        shares,
        passed_over: Vec::new(),
        error,
    }
}

fn refused(why_not: WhyNot) -> Outcome {
    Outcome::Refused { why_not, about: None }
}
