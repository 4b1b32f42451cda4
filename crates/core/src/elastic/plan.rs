//! The plan: asks the questions in order, and keeps in mind what the answers change.

use super::decide;
use super::decision::{Decision, Outcome, Refusal};
use super::divide;
use super::gather::Gather;
use super::inputs::{DivideInputs, Inputs};
use super::settings::Mode;
use super::snapshot::{DividedView, Eligibility, MemberId, Reading, Snapshot, TopicView};
use crate::ids::TopicId;

/// Most questions about whole partitions in one plan.
const BALANCE_ROUNDS_MAX: usize = 64;

/// What to do about a group now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The changes, to be made in this order.
    pub decisions: Vec<Decision>,
    /// Why members without work, or slots without a holder, get nothing.
    pub refusals: Vec<Refusal>,
    /// What has to be counted before more can be decided. Count, and plan again at once.
    pub uncounted: Vec<Uncounted>,
    /// How many members would have something to do, if they were there: for whoever starts and stops them. Hot keys are not
    /// looked for.
    pub useful_members: u32,
}

/// Records that have to be counted by slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uncounted {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: i32,
    /// Whose share, or plain partition; none: the loose slots.
    pub member: Option<MemberId>,
}

/// Plans for one group: a pure function of the snapshot.
pub fn plan(snapshot: &Snapshot) -> Plan {
    let mut planning = Planning {
        gather: Gather::new(snapshot),
        at_ms: snapshot.now.wall_ms,
        plan: Plan {
            useful_members: useful_members(snapshot),
            ..Plan::default()
        },
    };
    planning.give_back(snapshot);
    planning.give_away(snapshot);
    planning.place(snapshot);
    planning.divide(snapshot);
    if !snapshot.paused {
        planning.calm_down(snapshot);
    }
    planning.plan
}

struct Planning<'a> {
    gather: Gather<'a>,
    at_ms: i64,
    plan: Plan,
}

impl Planning<'_> {
    /// Asks; a change is noted, and its effect on loads and partitions kept in mind.
    fn ask(&mut self, inputs: Inputs) -> Outcome {
        let outcome = decide(&inputs);
        if let Outcome::Change(change) = &outcome {
            self.gather.changed(change);
            let (at_ms, change) = (self.at_ms, change.clone());
            self.plan.decisions.push(Decision {
                at_ms,
                change,
                inputs,
            });
        }
        outcome
    }

    fn refuse(&mut self, outcome: Outcome, inputs: Inputs) {
        if let Outcome::Refused { why_not, about } = outcome {
            let at_ms = self.at_ms;
            self.plan.refusals.push(Refusal {
                at_ms,
                why_not,
                about,
                inputs,
            });
        }
    }

    /// Slots whose fence does not open go back.
    fn give_back(&mut self, snapshot: &Snapshot) {
        for (topic, view, partition, divided) in divided(snapshot) {
            for transit in &divided.transits {
                if snapshot.members.contains_key(&transit.source) {
                    let inputs = self.gather.give_back(topic, view, partition, transit);
                    self.ask(Inputs::Return(Box::new(inputs)));
                }
            }
        }
    }

    /// Slots without a holder are given away.
    fn give_away(&mut self, snapshot: &Snapshot) {
        for (topic, view, partition, divided) in divided(snapshot) {
            for loose in &divided.loose {
                if self.gather.is_promised(loose) {
                    continue;
                }
                let inputs = Inputs::Grant(Box::new(
                    self.gather.grant(topic, view, partition, divided, loose),
                ));
                match self.ask(inputs.clone()) {
                    Outcome::Uncounted(_) => self.count(topic, partition, None),
                    outcome => self.refuse(outcome, inputs),
                }
            }
        }
    }

    /// Whole partitions are placed.
    fn place(&mut self, snapshot: &Snapshot) {
        for _ in 0..BALANCE_ROUNDS_MAX {
            let Some(inputs) = self.gather.balance(snapshot) else {
                return;
            };
            if !matches!(self.ask(Inputs::Balance(Box::new(inputs))), Outcome::Change(_)) {
                return;
            }
        }
    }

    /// Shares are divided for members without work: step (a) of the operation, and on, until nobody is without work or
    /// nothing can be divided.
    fn divide(&mut self, snapshot: &Snapshot) {
        loop {
            let Some(mut inputs) = self.gather.divide(snapshot) else {
                return;
            };
            if let Ok(choice) = divide::choose(&inputs) {
                let sides = choice.served.len() + 1;
                inputs.victim = self
                    .gather
                    .weigh(snapshot, &inputs, choice.victim, choice.how, sides);
                self.serve(&inputs, &choice.served);
                if inputs.victim.is_none() {
                    self.count_candidate(&inputs, choice.victim);
                    continue;
                }
            }
            let asked = Inputs::Divide(Box::new(inputs));
            match self.ask(asked.clone()) {
                Outcome::Change(_) => {}
                outcome => return self.refuse(outcome, asked),
            }
        }
    }

    fn serve(&mut self, inputs: &DivideInputs, served: &[usize]) {
        for needy in served.iter().filter_map(|at| inputs.needy.get(*at)) {
            self.gather.served(&needy.id);
        }
    }

    fn count_candidate(&mut self, inputs: &DivideInputs, number: usize) {
        if let Some(candidate) = inputs.candidates.get(number) {
            let of = (candidate.of.topic, candidate.of.partition);
            self.gather.hold(of);
            self.count(of.0, of.1, Some(candidate.owner.clone()));
        }
    }

    fn count(&mut self, topic: TopicId, partition: i32, member: Option<MemberId>) {
        self.plan.uncounted.push(Uncounted {
            topic,
            partition,
            member,
        });
    }

    /// Quiet partitions flow together, and become plain.
    fn calm_down(&mut self, snapshot: &Snapshot) {
        for (topic, view, partition, divided) in divided(snapshot) {
            if self.gather.is_held((topic, partition)) {
                continue;
            }
            if let Some(inputs) = self.gather.fold(topic, view, partition, divided) {
                self.ask(inputs);
            }
        }
    }
}

/// All divided partitions of which anything can be decided, in order.
fn divided(snapshot: &Snapshot) -> impl Iterator<Item = (TopicId, &TopicView, i32, &DividedView)> {
    snapshot.topics.iter().flat_map(|(topic, view)| {
        view.partitions
            .iter()
            .filter(|(_, partition)| !partition.awaits_yield)
            .filter_map(move |(number, partition)| match &partition.reading {
                Reading::Divided(divided) => Some((*topic, view, *number, divided)),
                Reading::Plain(_) => None,
            })
    })
}

/// One member for each partition with something to read, and more where more parts would be worth dividing.
fn useful_members(snapshot: &Snapshot) -> u32 {
    let mut useful = 0u32;
    for (topic, view) in &snapshot.topics {
        let blocked = snapshot
            .members
            .values()
            .any(|member| member.topics.contains(topic) && member.eligibility != Eligibility::Yes);
        let whole = blocked || view.excluded.is_some() || view.settings.mode != Mode::Slices;
        for partition in view.partitions.values() {
            let parts = partition.remaining() / view.settings.split_min_remaining.max(1);
            let parts = u32::try_from(parts)
                .unwrap_or(u32::MAX)
                .min(view.settings.slices_max);
            let readers = if whole { 1 } else { parts.max(1) };
            useful = useful.saturating_add(if partition.remaining() > 0 { readers } else { 0 });
        }
    }
    useful.max(1)
}
