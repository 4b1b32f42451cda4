//! Keeps [`Totals`] of what the planner does, as it does it: a replay of the journal counts nothing.

use crate::elastic::{Entry, Totals};
use crate::group::change::GroupChange;
use crate::group::coordinator::Coordinator;

impl Coordinator {
    /// What the planner decided and refused since the process began.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Counts a change that is about to be made.
    pub(in crate::group) fn count(&mut self, change: &GroupChange) {
        match change {
            GroupChange::Decided { decision, .. } => self.totals.add_decision(decision.change.kind),
            GroupChange::Refused { refusal, .. } => self.totals.add_refusal(&refusal.why_not),
            GroupChange::Settled {
                group,
                number,
                settled,
            } => {
                let log = self.decisions.get(group);
                if let Some(Entry::Decided(decision)) = log.and_then(|log| log.entry(*number)) {
                    self.totals.add_end(decision.change.kind, *settled);
                }
            }
            _ => {}
        }
    }
}
