//! Epochs only grow: a group's with every change, a member's with its assignments. A number never means two things.

use std::collections::BTreeMap;

use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str = "the epochs of a group and of its members never go back";

/// The epochs of durable changes, and those that members were told.
#[derive(Debug, Default)]
pub struct Epochs {
    groups: BTreeMap<String, i32>,
    members: BTreeMap<(String, String), i32>,
}

impl Epochs {
    /// A group is at this epoch.
    pub fn group(&mut self, group: &str, epoch: i32) -> Verdict {
        let before = self.groups.entry(group.to_owned()).or_insert(epoch);
        if epoch < *before {
            let detail = format!("group {group} goes from epoch {before} back to {epoch}");
            return Err(Violation::new(SENTENCE, detail));
        }
        *before = epoch;
        Ok(())
    }

    /// A member is told its epoch.
    pub fn member(&mut self, group: &str, member: &str, epoch: i32) -> Verdict {
        let before = self
            .members
            .entry((group.to_owned(), member.to_owned()))
            .or_insert(epoch);
        if epoch < *before {
            let detail = format!("member {member} of group {group} goes from epoch {before} back to {epoch}");
            return Err(Violation::new(SENTENCE, detail));
        }
        *before = epoch;
        Ok(())
    }

    /// The group is gone; a new one of the name starts anew.
    pub fn group_gone(&mut self, group: &str) {
        self.groups.remove(group);
        self.members.retain(|(of, _), _| of != group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_is_noticed() {
        let mut oracle = Epochs::default();
        oracle.group("g", 3).unwrap();
        oracle.member("g", "a", 2).unwrap();
        oracle.member("g", "a", 3).unwrap();
        assert!(oracle.member("g", "a", 2).is_err());
        assert!(oracle.group("g", 2).is_err());
        oracle.group_gone("g");
        oracle.group("g", 1).unwrap();
        oracle.member("g", "a", 1).unwrap();
    }
}
