//! Dividing a share for members without work: splits, steals, and the isolation of a hot key.
//!
//! The dynamic redistribution operation, step by step: is there a member without work ([`DivideInputs::needy`]); the share
//! with the most records still to be processed ([`choose`]); is that enough ([`fits`]); divide its records evenly
//! ([`super::cut::deal`]) between its owner and the others ([`decide`]).
//!
//! Several members without work are as many operations at once. Each in turn is given to the share whose parts are the
//! largest so far; a share that is given m members is cut into m + 1 sides, in one cut.

use std::cmp::{Ordering, Reverse};

use super::cut::{Side, Weights, deal};
use super::decision::{Change, How, Kind, Move, Outcome, PassedOver, ShareChange, Why, WhyNot};
use super::inputs::{Candidate, DivideInputs, Needy};
use super::settings::Mode;
use crate::slots::SlotSet;

/// A slot that has so many times the records of all others, and is left alone with its owner, is called a hot key.
const HOT_TO_OTHERS: u64 = 3;

/// Which share is divided, for whom, by what means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Position in [`DivideInputs::candidates`].
    pub(super) victim: usize,
    /// Positions in [`DivideInputs::needy`].
    pub(super) served: Vec<usize>,
    /// How the slots leave the owner.
    pub(super) how: How,
}

/// The victim and whom it serves, or why there is none, with the candidate that this is about.
pub(super) fn choose(inputs: &DivideInputs) -> Result<Choice, (WhyNot, Option<usize>)> {
    if inputs.paused {
        return Err((WhyNot::Paused, None));
    }
    let blocked: Vec<Option<WhyNot>> = inputs.candidates.iter().map(obstacle).collect();
    let mut served: Vec<Vec<usize>> = vec![Vec::new(); inputs.candidates.len()];
    let mut refusals: Vec<(usize, WhyNot)> = Vec::new();
    for (at, needy) in inputs.needy.iter().enumerate() {
        let mut best: Option<usize> = None;
        let mut refused = None;
        for (number, candidate) in inputs.candidates.iter().enumerate() {
            let Some(new_sharer) = taker(candidate, at) else {
                continue;
            };
            let has = served.get(number).map_or(0, Vec::len);
            let why_not = blocked.get(number).cloned().flatten();
            let why_not = why_not.or_else(|| fits(candidate, needy, has, new_sharer, inputs, &served));
            if let Some(why_not) = why_not {
                refused = refused.or(Some((number, why_not)));
            } else if best.is_none_or(|best| larger_part(inputs, &served, number, best)) {
                best = Some(number);
            }
        }
        match best.and_then(|best| served.get_mut(best)) {
            Some(served) => served.push(at),
            None => refusals.extend(refused),
        }
    }
    let chosen =
        (0..inputs.candidates.len()).filter(|number| served.get(*number).is_some_and(|s| !s.is_empty()));
    let victim = chosen.max_by_key(|number| (remaining(inputs, *number), Reverse(*number)));
    let Some(victim) = victim else {
        // The largest share in the way is what people want to hear about.
        return Err(match refusals.into_iter().min_by_key(|(number, _)| *number) {
            Some((number, why_not)) => (why_not, Some(number)),
            None => (WhyNot::NothingToServe, None),
        });
    };
    let served = served.swap_remove(victim);
    let how = match inputs.candidates.get(victim) {
        Some(candidate) => how(candidate, served.len()),
        None => How::Release,
    };
    Ok(Choice { victim, served, how })
}

/// Answers the question.
pub(super) fn decide(inputs: &DivideInputs) -> Outcome {
    let choice = match choose(inputs) {
        Ok(choice) => choice,
        Err((why_not, number)) => {
            let about = number.and_then(|number| inputs.candidates.get(number));
            return Outcome::Refused {
                why_not,
                about: about.map(|candidate| (candidate.of.clone(), candidate.owner.clone())),
            };
        }
    };
    let Some(victim) = inputs.candidates.get(choice.victim) else {
        return Outcome::Uncounted(choice.victim);
    };
    match &inputs.victim {
        Some(weights) => Outcome::Change(change(inputs, &choice, victim, weights)),
        None => Outcome::Uncounted(choice.victim),
    }
}

fn change(inputs: &DivideInputs, choice: &Choice, victim: &Candidate, weights: &Weights) -> Change {
    let mut start = vec![0; choice.served.len() + 1];
    // What was handed out stays with the owner, unless it gives everything up.
    if let (How::Release, Some(kept)) = (choice.how, start.first_mut()) {
        *kept = victim.handed_out;
    }
    let mut sides = deal(weights, &start).into_iter();
    let kept = sides.next().unwrap_or_default();
    let takers: Vec<(&Needy, Side)> = choice
        .served
        .iter()
        .filter_map(|at| inputs.needy.get(*at))
        .zip(sides)
        .filter(|(_, side)| !side.slots.is_empty())
        .collect();
    let moved = |slots: SlotSet, to: &str| Move {
        of: victim.of.clone(),
        slots,
        from: Some(victim.owner.clone()),
        to: to.to_owned(),
        how: choice.how,
    };
    let before = weights
        .total()
        .saturating_add(start.first().copied().unwrap_or(0));
    let mut shares = vec![ShareChange {
        member: victim.owner.clone(),
        before,
        after: kept.records.saturating_add(start.first().copied().unwrap_or(0)),
    }];
    let mut moves = Vec::new();
    if choice.how != How::Release && !kept.slots.is_empty() {
        moves.push(moved(kept.slots.clone(), &victim.owner));
    }
    for (needy, side) in &takers {
        shares.push(ShareChange {
            member: needy.id.clone(),
            before: 0,
            after: side.records,
        });
        moves.push(moved(side.slots.clone(), &needy.id));
    }
    let all_drained = takers.iter().all(|(needy, _)| needy.drained);
    let alone = weights.hottest().is_some_and(|hottest| {
        let most = hottest.records / HOT_TO_OTHERS >= hottest.others;
        most && kept.slots.len() == 1 && kept.slots.contains(hottest.slot)
    });
    Change {
        kind: match (alone, all_drained) {
            (true, _) => Kind::Isolate,
            (false, true) => Kind::Steal,
            (false, false) => Kind::Split,
        },
        why: if all_drained {
            Why::MemberDrained
        } else {
            Why::MemberIdle
        },
        moves,
        shares,
        passed_over: passed_over(inputs, choice),
        error: weights.error,
    }
}

/// Larger shares that stood in the way, so that the log says why it was not them.
fn passed_over(inputs: &DivideInputs, choice: &Choice) -> Vec<PassedOver> {
    let larger = inputs.candidates.iter().take(choice.victim);
    let passed = larger.filter_map(|candidate| {
        Some(PassedOver {
            of: candidate.of.clone(),
            owner: candidate.owner.clone(),
            why_not: obstacle(candidate)?,
        })
    });
    passed.collect()
}

fn remaining(inputs: &DivideInputs, number: usize) -> u64 {
    inputs
        .candidates
        .get(number)
        .map_or(0, |candidate| candidate.remaining)
}

/// Whether that member may take a part, and whether it would be one sharer more.
fn taker(candidate: &Candidate, needy: usize) -> Option<bool> {
    let mut takers = candidate.takers.iter();
    let found = takers.find(|(at, _)| usize::from(*at) == needy)?;
    Some(found.1)
}

/// Whether the parts of the first are larger than those of the second.
fn larger_part(inputs: &DivideInputs, served: &[Vec<usize>], first: usize, second: usize) -> bool {
    let parts = |number: usize| served.get(number).map_or(1, |served| served.len() as u128 + 1);
    let records = |number: usize| u128::from(remaining(inputs, number));
    let compared = (records(first) * parts(second)).cmp(&(records(second) * parts(first)));
    compared == Ordering::Greater
}

/// What stands in the way of dividing this share at all.
pub(super) fn obstacle(candidate: &Candidate) -> Option<WhyNot> {
    let facts = &candidate.facts;
    match candidate.rules.mode {
        Mode::Off => return Some(WhyNot::Off),
        Mode::Queues => return Some(WhyNot::Queues),
        Mode::Slices => {}
    }
    if let Some(text) = &facts.excluded {
        return Some(WhyNot::Excluded { text: text.clone() });
    }
    if let Some((member, text)) = &facts.ineligible {
        return Some(WhyNot::Ineligible {
            member: member.clone(),
            text: text.clone(),
        });
    }
    if facts.owner_absent {
        return Some(WhyNot::OwnerAbsent);
    }
    if facts.in_transit {
        return Some(WhyNot::InTransit);
    }
    hot_key(candidate)
        .or_else(|| commits(candidate))
        .or_else(|| (facts.rewound && !is_mostly_handed_out(candidate, 1)).then_some(WhyNot::Rewound))
        .or_else(|| facts.blind.then_some(WhyNot::Blind))
        .or_else(|| facts.chain_full.then_some(WhyNot::ChainFull))
        .or_else(|| cooldown(candidate))
}

/// A share that is one slot, or has records in one only, cannot be divided, now or later: it is not tried again.
fn hot_key(candidate: &Candidate) -> Option<WhyNot> {
    let hottest = candidate.hottest?;
    let alone = candidate.slots <= 1 || hottest.others == 0;
    (alone && hottest.records > 0).then_some(WhyNot::HotKey {
        slot: hottest.slot,
        records: hottest.records,
    })
}

fn commits(candidate: &Candidate) -> Option<WhyNot> {
    let silent = candidate
        .uncommitted_for_ms
        .is_some_and(|ms| ms >= candidate.rules.watchdog_commit_ms);
    // After a fence that did not open, the share is taken away whole, and all that was not committed comes again.
    let unproven = candidate.returned_ago_ms.is_some() && candidate.commits == 0;
    (silent || unproven).then_some(WhyNot::NeverCommits)
}

fn cooldown(candidate: &Candidate) -> Option<WhyNot> {
    let left_ms = candidate
        .rules
        .cooldown_ms
        .saturating_sub(candidate.divided_ago_ms?);
    (left_ms > 0).then_some(WhyNot::Cooldown { left_ms })
}

/// What stands in the way of cutting one more part off for this member.
fn fits(
    candidate: &Candidate,
    needy: &Needy,
    has: usize,
    new_sharer: bool,
    inputs: &DivideInputs,
    served: &[Vec<usize>],
) -> Option<WhyNot> {
    let rules = &candidate.rules;
    let part = candidate.remaining / (has as u64 + 1);
    let needed = if needy.drained {
        rules.steal_min_remaining
    } else {
        rules.split_min_remaining
    };
    if part < needed {
        return Some(WhyNot::BelowThreshold {
            remaining: part,
            needed,
        });
    }
    if let (true, Some(rate)) = (needy.drained, candidate.rate.filter(|rate| *rate > 0)) {
        let left_ms = part.saturating_mul(1000) / rate;
        if left_ms < rules.steal_min_ms {
            return Some(WhyNot::FinishingSoon {
                left_ms,
                needed_ms: rules.steal_min_ms,
            });
        }
    }
    let number = inputs.candidates.iter().position(|other| other == candidate);
    let given = number.and_then(|number| served.get(number)).into_iter().flatten();
    let newcomers = given.filter(|at| taker(candidate, **at) == Some(true)).count() + usize::from(new_sharer);
    if newcomers > 0 && candidate.sharers as usize + newcomers > rules.slices_max as usize {
        return Some(WhyNot::SlicesMax {
            max: rules.slices_max,
        });
    }
    // Each taker and the owner get a fresh id.
    ((candidate.ids_left as usize) < has + 2).then_some(WhyNot::IdsExhausted)
}

/// By release if that leads anywhere, since it interrupts nobody; else the owner gives its share up once.
fn how(candidate: &Candidate, served: usize) -> How {
    if candidate.plain {
        return How::Divide;
    }
    let handed_out = candidate.handed_out;
    if handed_out == 0 {
        return How::Release;
    }
    let came_back = candidate.returned_ago_ms.is_some();
    if is_mostly_handed_out(candidate, served)
        || candidate.facts.rewound
        || came_back
        || fence_ms(candidate) > candidate.rules.fence_timeout_ms
    {
        How::Regrant
    } else {
        How::Release
    }
}

/// Whether so much of a share was handed out that the rest is not worth a release. After a restart of the broker that is
/// so for all that may have been handed out before: a member that gives up its share ends the doubt at once, while commits
/// would end it only behind all of that.
fn is_mostly_handed_out(candidate: &Candidate, served: usize) -> bool {
    let handed_out = candidate.handed_out;
    let movable = candidate.remaining.saturating_sub(handed_out);
    let even = candidate.remaining / (served as u64 + 1);
    handed_out > movable && handed_out > even.saturating_add(even / 2)
}

/// How long the fence will take to open, in milliseconds: what was handed out has to be processed, and committed as often as
/// the evidence asks for. What is not known takes no time: then it is tried.
fn fence_ms(candidate: &Candidate) -> u64 {
    let rate = candidate.rate.filter(|rate| *rate > 0);
    let work_ms = rate.map_or(0, |rate| candidate.handed_out.saturating_mul(1000) / rate);
    let interval_ms = candidate.commit_interval_ms.unwrap_or(0);
    work_ms.saturating_add(interval_ms.saturating_mul(candidate.rules.evidence.commits()))
}
