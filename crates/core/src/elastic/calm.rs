//! What undoes a division: slots whose fence stays shut go back, a quiet partition flows together, and is plain again.

use std::cmp::Reverse;

use super::decision::{Change, How, Kind, Move, Outcome, ShareChange, Why, WhyNot};
use super::inputs::{FoldInputs, FoldShare, PartitionRef, PlainInputs, ReturnInputs};
use super::settings::Mode;
use crate::slots::SlotSet;

/// Whether slots on their way go back to their source.
pub(super) fn decide_return(inputs: &ReturnInputs) -> Outcome {
    let left_ms = inputs.fence_timeout_ms.saturating_sub(inputs.for_ms);
    if left_ms > 0 {
        return refused(WhyNot::Waiting { left_ms });
    }
    Outcome::Change(Change {
        kind: Kind::Return,
        why: Why::FenceTimeout,
        moves: vec![Move {
            of: inputs.of.clone(),
            slots: inputs.slots.clone(),
            from: inputs.target.clone(),
            to: inputs.source.clone(),
            how: How::Return,
        }],
        shares: Vec::new(),
        passed_over: Vec::new(),
        error: 0,
    })
}

/// Whether the shares of live members flow together at the one that has most of the slots. Slow: only when there has been
/// nothing to read for long, or when the topic is not to be divided any more.
pub(super) fn decide_fold(inputs: &FoldInputs) -> Outcome {
    let why = match ripe(inputs.mode, inputs.quiet_for_ms, inputs.merge_delay_ms) {
        Ok(why) => why,
        Err(why_not) => return refused(why_not),
    };
    let takers = inputs.shares.iter().filter(|share| share.takes);
    let Some(target) =
        takers.max_by_key(|share| (share.slots.len(), share.remaining, Reverse(&share.member)))
    else {
        return refused(WhyNot::NoReceiver);
    };
    // The others give their shares up. A release would wait for commits that may never come: where there is nothing to read
    // nobody commits, and slots that come back from a fence that stayed shut would leave again at once, before anybody had
    // read what is in them. Where the topic is not to be divided any more, all give the partition up soon anyway.
    let others = || {
        let others = inputs.shares.iter().filter(|share| share.member != target.member);
        others.filter(|share| !share.slots.is_empty())
    };
    let moves: Vec<Move> = others()
        .map(|share| {
            moved(
                &inputs.of,
                &share.slots,
                &share.member,
                &target.member,
                How::Regrant,
            )
        })
        .collect();
    let total = inputs
        .shares
        .iter()
        .fold(0u64, |sum, share| sum.saturating_add(share.remaining));
    let after = |share: &FoldShare| if share.member == target.member { total } else { 0 };
    Outcome::Change(Change {
        kind: Kind::Fold,
        why,
        moves,
        shares: inputs
            .shares
            .iter()
            .map(|share| ShareChange {
                member: share.member.clone(),
                before: share.remaining,
                after: after(share),
            })
            .collect(),
        passed_over: Vec::new(),
        error: 0,
    })
}

/// Whether a partition of which one member has all slots becomes plain. It costs that member one give-up, so it, too, waits
/// for a quiet time.
pub(super) fn decide_plain(inputs: &PlainInputs) -> Outcome {
    match ripe(inputs.mode, inputs.quiet_for_ms, inputs.merge_delay_ms) {
        Err(why_not) => refused(why_not),
        Ok(why) => Outcome::Change(Change {
            kind: Kind::Plain,
            why,
            moves: vec![moved(
                &inputs.of,
                &SlotSet::all(),
                &inputs.member,
                &inputs.member,
                How::Plain,
            )],
            shares: Vec::new(),
            passed_over: Vec::new(),
            error: 0,
        }),
    }
}

/// Whether it is time for live members to give up shares.
fn ripe(mode: Mode, quiet_for_ms: Option<u64>, merge_delay_ms: u64) -> Result<Why, WhyNot> {
    if mode != Mode::Slices {
        return Ok(Why::SwitchedOff);
    }
    match quiet_for_ms.map(|quiet| merge_delay_ms.saturating_sub(quiet)) {
        None => Err(WhyNot::NotQuiet),
        Some(0) => Ok(Why::Quiet),
        Some(left_ms) => Err(WhyNot::Waiting { left_ms }),
    }
}

fn moved(of: &PartitionRef, slots: &SlotSet, from: &str, to: &str, how: How) -> Move {
    Move {
        of: of.clone(),
        slots: slots.clone(),
        from: Some(from.to_owned()),
        to: to.to_owned(),
        how,
    }
}

fn refused(why_not: WhyNot) -> Outcome {
    Outcome::Refused { why_not, about: None }
}
