//! Passes durable changes of groups on to the oracles that watch divided cursors, one by one, since a crash may come after
//! any; and sees what has happened.

use anabranch_core::cursor::{Cursor, CursorChange, Edit, SliceIdsChange};
use anabranch_core::elastic::{Decision, Kind, Outcome};
use anabranch_core::group::GroupChange;
use anabranch_core::node::Node;

use super::batches::Batches;
use super::commits::Key;
use super::delivery::Delivery;
use super::epochs::Epochs;
use super::ledger::Ledger;
use super::log_start::LogStart;
use super::outside::Outside;
use super::progress::{Facts, Progress};
use super::queues::Queues;
use super::slices::Slices;
use super::story::{self, Story};
use super::strangers::Strangers;
use super::truth::{Records, Truth};
use super::{Verdict, Violation, slots};
use crate::message::Tp;
use crate::sights::Sight;

/// The sentence about decisions.
pub const REPLAYED: &str = "the recorded inputs of a decision lead to it again";

/// Those who watch.
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is the oracle of the module of its name")]
pub struct Watch<'a> {
    pub epochs: &'a mut Epochs,
    pub progress: &'a mut Progress,
    pub slices: &'a mut Slices,
    pub outside: &'a mut Outside,
    pub delivery: &'a Delivery,
    pub log_start: &'a LogStart,
    pub strangers: &'a Strangers,
    pub ledger: &'a Ledger,
    pub queues: &'a mut Queues,
    pub story: &'a mut Story,
    pub batches: &'a Batches,
    /// What is seen.
    pub sights: &'a mut Vec<Sight>,
    /// The step of the run.
    pub step: u64,
}

impl Watch<'_> {
    /// A change of a group is durable and made.
    pub(super) fn changed(
        &mut self,
        node: &Node,
        truth: &Truth,
        change: &GroupChange,
        is_reset: bool,
    ) -> Verdict {
        match change {
            GroupChange::CursorEdits {
                group,
                topic,
                partition,
                changes,
            } => self.edited(
                node,
                truth,
                &(group.clone(), (*topic, *partition)),
                changes,
                is_reset,
            ),
            GroupChange::Cursors { group, cursors } => {
                for (topic, partition, cursor) in cursors {
                    let key = (group.clone(), (*topic, *partition));
                    if self.progress.was_divided(&key) {
                        self.progress.set(&key, cursor.outside_view(None).offset);
                        self.outside.durable(&key, Some(cursor), self.step, false);
                    }
                }
                Ok(())
            }
            GroupChange::CursorsGone { group, partitions } => {
                for tp in partitions {
                    let key = (group.clone(), *tp);
                    if self.progress.was_divided(&key) {
                        self.outside.durable(&key, None, self.step, true);
                    }
                }
                Ok(())
            }
            GroupChange::SliceIds {
                topic,
                partition,
                changes,
                ..
            } => {
                for change in changes {
                    if let SliceIdsChange::Retired { ids, at_ms } = change {
                        self.slices.rested.retired((*topic, *partition), ids, *at_ms);
                        self.sights.push(Sight::IdsRetired);
                    }
                }
                Ok(())
            }
            GroupChange::Decided { group, decision } => {
                let found = node.groups().groups().get(group);
                if let Some(consumer) = found.and_then(|group| group.consumer()) {
                    self.strangers.decided(consumer, decision)?;
                }
                self.decided(decision)
            }
            GroupChange::Refused { refusal, .. } => match refusal.replay() {
                Outcome::Refused { why_not, about }
                    if why_not == refusal.why_not && about == refusal.about =>
                {
                    Ok(())
                }
                other => Err(Violation::new(REPLAYED, format!("{refusal:?} is {other:?}"))),
            },
            _ => Ok(()),
        }
    }

    fn edited(
        &mut self,
        node: &Node,
        truth: &Truth,
        key: &Key,
        edits: &[CursorChange],
        is_reset: bool,
    ) -> Verdict {
        let Some(cursor) = node
            .groups()
            .groups()
            .get(&key.0)
            .and_then(|group| group.cursors.get(&key.1))
        else {
            return Ok(());
        };
        for change in edits {
            self.story.add(self.step, Some(key), || story::edit(&change.edit));
        }
        if let Cursor::Divided(divided) = cursor {
            slots::check(key, divided)?;
            if divided.chains().any(|(_, chain)| chain.slices().len() > 2) {
                self.sights.push(Sight::ChainOfMany);
            }
        }
        self.slices.edited(key, edits, self.step)?;
        let none = Records::default();
        let facts = Facts {
            records: truth.of(key.1).unwrap_or(&none),
            delivery: self.delivery,
            start: start_of(node, self.log_start, key.1),
        };
        self.progress.edited(key, edits, cursor, is_reset, &facts)?;
        self.outside.durable(key, Some(cursor), self.step, is_reset);
        for edit in edits.iter().map(|change| &change.edit) {
            self.sights.extend(seen(edit, is_reset));
        }
        Ok(())
    }

    fn decided(&mut self, decision: &Decision) -> Verdict {
        self.sights.extend(match decision.change.kind {
            // Whole partitions are placed by the assignor.
            Kind::Balance => None,
            Kind::Split => Some(Sight::Split),
            Kind::Steal => Some(Sight::Stolen),
            Kind::Isolate => Some(Sight::Isolated),
            Kind::Merge => Some(Sight::Merged),
            Kind::Return => Some(Sight::TransitReturned),
            Kind::Fold => Some(Sight::Folded),
            Kind::Plain => Some(Sight::MadePlain),
        });
        match decision.replay() {
            Outcome::Change(change) if change == decision.change => Ok(()),
            other => Err(Violation::new(REPLAYED, format!("{decision:?} is {other:?}"))),
        }
    }
}

fn seen(edit: &Edit, is_reset: bool) -> Option<Sight> {
    match edit {
        Edit::Divide { .. } => Some(Sight::Divided),
        Edit::Succeed { transit, .. } if !transit.is_empty() => Some(Sight::Released),
        Edit::Advance { opened, .. } if !opened.is_empty() => Some(Sight::FenceOpened),
        Edit::Plain { .. } if is_reset => Some(Sight::DivisionReset),
        Edit::Plain { .. } => Some(Sight::PlainAgain),
        _ => None,
    }
}

/// Below this, records of a partition are deleted, or are about to be.
pub(super) fn start_of(node: &Node, log_start: &LogStart, tp: Tp) -> i64 {
    let log = node
        .topic_by_id(tp.0)
        .and_then(|topic| topic.log(tp.1))
        .and_then(|log| node.log(log));
    let decided = log.map_or(0, anabranch_core::log::Log::decided_start);
    decided.max(log_start.allowed(tp))
}
