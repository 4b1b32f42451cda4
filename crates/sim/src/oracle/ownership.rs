//! No two live members of a group own a partition at once. "Live" in the protocol's sense: a member that was expelled
//! may not know it yet; it owns nothing that counts.
//!
//! Looked at from both sides: what members believe (a member owns a partition from the answer that assigns it until it
//! has given it up), and what the broker has in its durable state.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::group::state::ConsumerGroup;
use anabranch_core::ids::TopicId;

use super::{Verdict, Violation};
use crate::message::Tp;

/// The sentence.
pub const SENTENCE: &str =
    "no two live members of a group own a partition at the same time, unless it is shared";

#[derive(Clone, Debug)]
struct Claim {
    client: usize,
    member: String,
}

/// The sentence about commits that come late.
pub const COMMIT: &str = "a commit of an older epoch moves nothing that another member owns";

/// Who believes to own what.
#[derive(Debug, Default)]
pub struct Ownership {
    claims: BTreeMap<(String, Tp), Vec<Claim>>,
}

impl Ownership {
    /// A member takes a partition. `is_member` tells who is a member at present.
    pub fn take(
        &mut self,
        (group, tp): (&str, Tp),
        client: usize,
        member: &str,
        is_member: impl Fn(&str) -> bool,
    ) -> Verdict {
        if !is_member(member) {
            // Expelled before the answer reached it.
            return Ok(());
        }
        let claims = self.claims.entry((group.to_owned(), tp)).or_default();
        claims.retain(|claim| claim.client != client && is_member(&claim.member));
        let other = claims.first().cloned();
        claims.push(Claim {
            client,
            member: member.to_owned(),
        });
        let Some(other) = other else { return Ok(()) };
        let detail = format!(
            "group {group}: client {client} as {member} takes {tp:?}, which client {} as {} has not given up",
            other.client, other.member
        );
        Err(Violation::new(SENTENCE, detail))
    }

    /// A member takes a partition that its group shares.
    pub fn share(&mut self, (group, tp): (&str, Tp), client: usize, member: &str) {
        let claims = self.claims.entry((group.to_owned(), tp)).or_default();
        claims.retain(|claim| claim.client != client);
        claims.push(Claim {
            client,
            member: member.to_owned(),
        });
    }

    /// A member has given a partition up, or has lost it.
    pub fn give_up(&mut self, group: &str, tp: Tp, client: usize) {
        if let Some(claims) = self.claims.get_mut(&(group.to_owned(), tp)) {
            claims.retain(|claim| claim.client != client);
        }
    }

    /// A client is dead, with all it had.
    pub fn died(&mut self, client: usize) {
        self.claims
            .values_mut()
            .for_each(|claims| claims.retain(|claim| claim.client != client));
    }

    /// The broker has accepted a commit of `member` at an epoch that is not its present one any more; `owners` held the
    /// partition then.
    pub fn late_commit(group: &str, tp: Tp, member: &str, owners: &BTreeSet<String>) -> Verdict {
        if owners.is_empty() || owners.contains(member) {
            return Ok(());
        }
        let detail = format!("group {group}: {member} moved the position of {tp:?}, which {owners:?} own");
        Err(Violation::new(COMMIT, detail))
    }

    /// The broker's own view of a group. Those who shared a partition of a topic that is gone give it up one by one.
    pub fn durable(id: &str, group: &ConsumerGroup, exists: impl Fn(TopicId) -> bool) -> Verdict {
        let mut owners: BTreeMap<Tp, BTreeSet<&str>> = BTreeMap::new();
        for (member, state) in &group.members {
            let held = state.current.assigned.iter().chain(&state.current.revoking);
            for tp in held.flat_map(|(topic, held)| held.keys().map(|partition| (*topic, *partition))) {
                owners.entry(tp).or_default().insert(member);
            }
        }
        for (tp, owners) in &owners {
            if owners.len() > 1 && !group.shared.contains_key(tp) && exists(tp.0) {
                let detail = format!("group {id}: {tp:?} belongs to {owners:?} and is not shared");
                return Err(Violation::new(SENTENCE, detail));
            }
        }
        let indexed: BTreeMap<Tp, BTreeSet<&str>> = group
            .owners
            .iter()
            .map(|(tp, members)| (*tp, members.iter().map(String::as_str).collect()))
            .collect();
        if indexed != owners {
            let detail = format!("group {id}: the index of owners says {indexed:?}, members hold {owners:?}");
            return Err(Violation::new(SENTENCE, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_noticed_unless_the_first_was_expelled_or_gave_up() {
        let (tp, all) = (Tp::default(), |_: &str| true);
        let mut oracle = Ownership::default();
        oracle.take(("g", tp), 1, "a", all).unwrap();
        oracle.take(("h", tp), 2, "b", all).unwrap();
        assert!(oracle.take(("g", tp), 2, "b", all).is_err());
        oracle.give_up("g", tp, 1);
        oracle.take(("g", tp), 2, "b", all).unwrap();
        oracle.take(("g", tp), 3, "c", |member| member != "b").unwrap();
        oracle.take(("g", tp), 2, "b", |member| member != "b").unwrap();
        oracle.died(3);
        oracle.take(("g", tp), 1, "a", all).unwrap();
    }

    #[test]
    fn a_late_commit_is_noticed_where_another_member_owns() {
        let tp = Tp::default();
        let owned_by = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Ownership::late_commit("g", tp, "a", &owned_by(&[])).unwrap();
        Ownership::late_commit("g", tp, "a", &owned_by(&["a", "b"])).unwrap();
        assert!(Ownership::late_commit("g", tp, "a", &owned_by(&["b"])).is_err());
    }
}
