//! Whole partitions: who reads what, while there are at least as many of them as members.
//!
//! First those that nobody has, largest first, each to the member with the least to do. Then moves between two members, one
//! partition at a time, as long as one makes the two more equal *by enough*: whoever holds a partition keeps it otherwise.
//! Each move lowers the sum of squares of the loads, or keeps it and lowers that of the numbers of partitions; so moving
//! comes to an end, and never goes back and forth.

use std::cmp::Reverse;

use super::decision::{Change, How, Kind, Move, Outcome, ShareChange, Why, WhyNot};
use super::inputs::{BalanceInputs, Item, ItemTopic, Load, PartitionRef};
use crate::slots::SlotSet;

/// Answers the question.
pub(super) fn decide(inputs: &BalanceInputs) -> Outcome {
    let mut world = World {
        inputs,
        members: inputs.members.clone(),
        owners: inputs.items.iter().map(|item| item.owner).collect(),
        takers: inputs.topics.iter().map(|topic| takers(inputs, topic)).collect(),
        why: None,
    };
    world.give_out();
    if !inputs.paused {
        while world.even_out_once() {}
    }
    let moves = world.moves();
    let Some(why) = world.why.filter(|_| !moves.is_empty()) else {
        return Outcome::Refused {
            why_not: if inputs.paused {
                WhyNot::Paused
            } else {
                WhyNot::EvenEnough
            },
            about: None,
        };
    };
    let changed = inputs.members.iter().zip(&world.members);
    let changed =
        changed.filter(|(before, after)| before.records != after.records || before.items != after.items);
    Outcome::Change(Change {
        kind: Kind::Balance,
        why,
        shares: changed
            .map(|(before, after)| ShareChange {
                member: before.id.clone(),
                before: before.records,
                after: after.records,
            })
            .collect(),
        moves,
        passed_over: Vec::new(),
        error: 0,
    })
}

struct World<'a> {
    inputs: &'a BalanceInputs,
    members: Vec<Load>,
    owners: Vec<Option<u16>>,
    /// Per topic, the members that may take its items, as bits.
    takers: Vec<u64>,
    why: Option<Why>,
}

/// Members that take anything and subscribe to the topic. There are at most 64 ([`super::inputs::BALANCE_MEMBERS_MAX`]).
fn takers(inputs: &BalanceInputs, topic: &ItemTopic) -> u64 {
    let takes = |at: u16| {
        inputs
            .members
            .get(usize::from(at))
            .is_some_and(|member| member.takes)
    };
    let subscribed = topic.takers.iter().filter(|at| **at < 64 && takes(**at));
    subscribed.fold(0, |bits, at| bits | 1 << at)
}

impl World<'_> {
    fn member(&self, at: u16) -> Option<&Load> {
        self.members.get(usize::from(at))
    }

    /// Whether a member may take an item.
    fn may_take(&self, item: &Item, to: u16) -> bool {
        let takers = self.takers.get(usize::from(item.topic));
        takers.is_some_and(|bits| to < 64 && bits & (1 << to) != 0)
    }

    /// Partitions without a holder, largest first, to whoever has least.
    fn give_out(&mut self) {
        let mut free: Vec<(usize, Item)> = self.inputs.items.iter().copied().enumerate().collect();
        free.retain(|(_, item)| item.owner.is_none());
        free.sort_by_key(|(at, item)| (Reverse(item.remaining), *at));
        for (at, item) in free {
            let least = (0..self.members.len() as u16)
                .filter(|to| self.may_take(&item, *to))
                .min_by_key(|to| self.member(*to).map(|member| (member.records, member.items, *to)));
            if let Some(to) = least {
                self.assign(at, &item, to);
                self.why = Some(Why::NoHolder);
            }
        }
    }

    /// Makes the best single move, if one is good enough.
    fn even_out_once(&mut self) -> bool {
        let mut receivers: Vec<u16> = (0..self.members.len() as u16).collect();
        receivers.retain(|at| self.member(*at).is_some_and(|member| member.takes));
        receivers.sort_by_key(|at| self.member(*at).map(|member| (member.records, member.items, *at)));
        for to in receivers {
            if let Some((at, why)) = self.best_for(to) {
                let Some(item) = self.inputs.items.get(at).copied() else {
                    return false;
                };
                self.assign(at, &item, to);
                self.why = self.why.or(Some(why));
                return true;
            }
        }
        false
    }

    /// The item that this member should get, and why.
    fn best_for(&self, to: u16) -> Option<(usize, Why)> {
        let receiver = self.member(to)?;
        let mut best: Option<(u64, usize)> = None;
        let mut by_number: Option<(u32, Reverse<u64>, usize)> = None;
        for (at, item) in self.inputs.items.iter().enumerate() {
            let Some(owner) = self
                .owners
                .get(at)
                .copied()
                .flatten()
                .filter(|owner| *owner != to)
            else {
                continue;
            };
            // What was moved in this question stays where it is.
            if item.owner != Some(owner) || !self.may_take(item, to) {
                continue;
            }
            let Some(owner) = self.member(owner) else { continue };
            let gap = owner.records.saturating_sub(receiver.records);
            let gain = item.remaining.min(gap.saturating_sub(item.remaining));
            if self.is_worth_it(owner, receiver, item, gain) && best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, at));
            }
            let fewer = owner.items.saturating_sub(receiver.items);
            let harmless = item.remaining == 0 || item.remaining <= gap;
            let candidate = (fewer, Reverse(item.remaining), at);
            if fewer >= 2 && harmless && by_number.is_none_or(|(f, r, _)| (fewer, candidate.1) > (f, r)) {
                by_number = Some(candidate);
            }
        }
        let needy = Why::MemberIdle;
        if let Some((_, at)) = best {
            return Some((at, if receiver.needy { needy } else { Why::Uneven }));
        }
        let (_, _, at) = by_number?;
        // Who began with nothing gets its part of the partitions at once; others wait their time.
        let began_empty = self
            .inputs
            .members
            .get(usize::from(to))
            .is_some_and(|member| member.items == 0);
        if began_empty && receiver.needy {
            return Some((at, needy));
        }
        self.cooled_down().then_some((at, Why::Uneven))
    }

    fn is_worth_it(&self, owner: &Load, receiver: &Load, item: &Item, gain: u64) -> bool {
        let least = self.inputs.min_remaining;
        if gain == 0 {
            return false;
        }
        if receiver.needy {
            // A partition is moved rather than a share cut if it is worth at least half as much.
            return item.remaining >= least && item.remaining.saturating_mul(2) >= self.inputs.cut_gives;
        }
        gain >= least.max(owner.records / 4) && self.cooled_down()
    }

    fn cooled_down(&self) -> bool {
        let ago = self.inputs.balanced_ago_ms;
        ago.is_none_or(|ago| ago >= self.inputs.cooldown_ms)
    }

    fn assign(&mut self, at: usize, item: &Item, to: u16) {
        let from = self.owners.get(at).copied().flatten();
        if let Some(from) = from.and_then(|from| self.members.get_mut(usize::from(from))) {
            from.records = from.records.saturating_sub(item.remaining);
            from.items = from.items.saturating_sub(1);
        }
        if let Some(to) = self.members.get_mut(usize::from(to)) {
            to.records = to.records.saturating_add(item.remaining);
            to.items = to.items.saturating_add(1);
        }
        if let Some(owner) = self.owners.get_mut(at) {
            *owner = Some(to);
        }
    }

    fn moves(&self) -> Vec<Move> {
        let items = self.inputs.items.iter().zip(&self.owners);
        let moved = items.filter(|(item, now)| item.owner != **now);
        let moves = moved.filter_map(|(item, now)| {
            let topic = self.inputs.topics.get(usize::from(item.topic))?;
            Some(Move {
                of: PartitionRef {
                    topic: topic.topic,
                    name: topic.name.clone(),
                    partition: item.partition,
                },
                slots: SlotSet::all(),
                from: item
                    .owner
                    .and_then(|at| self.inputs.members.get(usize::from(at)))
                    .map(|load| load.id.clone()),
                to: self.member((*now)?)?.id.clone(),
                how: How::Assign,
            })
        });
        moves.collect()
    }
}
