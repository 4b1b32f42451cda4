//! While a group has a member that must not be given a share, or members that cannot be told apart, nothing is divided. Who
//! those are the simulation knows by their addresses, and need not ask the broker's own list.

use std::collections::BTreeSet;

use anabranch_core::elastic::{Decision, Kind};
use anabranch_core::group::state::ConsumerGroup;

use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str = "nothing is divided while a group has a member that must not get a share, or two that cannot be told apart";

/// Addresses of clients that stand in the way.
#[derive(Debug, Default)]
pub struct Strangers {
    strange: BTreeSet<String>,
    twins: BTreeSet<String>,
}

impl Strangers {
    /// The client at this address has a library that must not be given shares.
    pub fn strange(&mut self, host: &str) {
        self.strange.insert(host.to_owned());
    }

    /// Several consumers of one process are at this address.
    pub fn twins(&mut self, host: &str) {
        self.twins.insert(host.to_owned());
    }

    /// A decision about a group is durable.
    pub fn decided(&self, group: &ConsumerGroup, decision: &Decision) -> Verdict {
        if !matches!(decision.change.kind, Kind::Split | Kind::Steal | Kind::Isolate) {
            return Ok(());
        }
        let hosts = || {
            group
                .members
                .values()
                .map(|state| state.member.client_host.as_str())
        };
        let is_twin =
            |host: &str| self.twins.contains(host) && hosts().filter(|other| *other == host).count() > 1;
        let unfit = hosts().find(|host| self.strange.contains(*host) || is_twin(host));
        match unfit {
            None => Ok(()),
            Some(host) => Err(Violation::new(
                SENTENCE,
                format!("{decision:?}, with a member at {host}"),
            )),
        }
    }
}
