//! Topics: an acknowledged creation, growth, configuration or deletion stays; nothing changes by itself.
//!
//! One administrator makes all changes, one after the other. Of each name the states that are possible are kept: one
//! after an acknowledgement, two after a lost answer, one again after somebody has looked.

use std::collections::BTreeMap;

use anabranch_core::ids::TopicId;

use super::{Verdict, Violation};

/// The sentence.
pub const SENTENCE: &str = "an acknowledged change of a topic stays, and topics do not change by themselves";

/// A topic as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Its id, once somebody has seen it.
    pub id: Option<TopicId>,
    /// Partition count.
    pub partitions: i32,
    /// What is set on it.
    pub configs: BTreeMap<String, String>,
}

/// A wish of the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A topic with so many partitions.
    Create(i32),
    /// The same, in queue mode.
    CreateQueued(i32),
    /// No such topic.
    Delete,
    /// So many partitions.
    Grow(i32),
    /// A configuration; `None` takes it away.
    Set(String, Option<String>),
}

/// What is possible.
#[derive(Debug, Default)]
pub struct Topics {
    possible: BTreeMap<String, Vec<Option<Shape>>>,
    pending: Option<(String, Change)>,
}

fn changed(shape: &Option<Shape>, change: &Change) -> Option<Shape> {
    match (shape, change) {
        (None, Change::Create(partitions)) => Some(Shape {
            partitions: *partitions,
            ..Shape::default()
        }),
        (None, Change::CreateQueued(partitions)) => Some(Shape {
            partitions: *partitions,
            configs: [("elastic.mode".to_owned(), "queues".to_owned())].into(),
            ..Shape::default()
        }),
        (Some(shape), Change::Create(_) | Change::CreateQueued(_)) => Some(shape.clone()),
        (_, Change::Delete) | (None, _) => None,
        (Some(shape), Change::Grow(count)) => Some(Shape {
            partitions: *count,
            ..shape.clone()
        }),
        (Some(shape), Change::Set(key, value)) => {
            let mut shape = shape.clone();
            match value {
                Some(value) => shape.configs.insert(key.clone(), value.clone()),
                None => shape.configs.remove(key),
            };
            Some(shape)
        }
    }
}

impl Topics {
    /// A change is sent.
    pub fn began(&mut self, name: &str, change: Change) {
        self.pending = Some((name.to_owned(), change));
    }

    /// Its answer is here: made (true), refused (false), or lost (`None`).
    pub fn ended(&mut self, made: Option<bool>) {
        let Some((name, change)) = self.pending.take() else {
            return;
        };
        let possible = self.possible.entry(name).or_insert_with(|| vec![None]);
        let after: Vec<_> = possible.iter().map(|shape| changed(shape, &change)).collect();
        match made {
            Some(true) => *possible = after,
            Some(false) => {}
            None => {
                for shape in after {
                    if !possible.contains(&shape) {
                        possible.push(shape);
                    }
                }
            }
        }
    }

    /// Somebody looks, while no change is under way.
    pub fn observe(&mut self, name: &str, found: Option<Shape>) -> Verdict {
        if self.pending.as_ref().is_some_and(|(pending, _)| pending == name) {
            return Ok(());
        }
        let possible = self.possible.entry(name.to_owned()).or_insert_with(|| vec![None]);
        let fits = |shape: &Option<Shape>| match (shape, &found) {
            (Some(shape), Some(found)) => {
                shape.partitions == found.partitions
                    && shape.configs == found.configs
                    && shape.id.is_none_or(|id| Some(id) == found.id)
            }
            (None, None) => true,
            _ => false,
        };
        if possible.iter().any(fits) {
            *possible = vec![found];
            return Ok(());
        }
        let detail = format!("topic `{name}` is {found:?}; possible are {possible:?}");
        Err(Violation::new(SENTENCE, detail))
    }

    /// Names that were ever asked for.
    pub fn names(&self) -> Vec<String> {
        self.possible.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(id: u8, partitions: i32) -> Option<Shape> {
        Some(Shape {
            id: Some(TopicId([id; 16])),
            partitions,
            ..Shape::default()
        })
    }

    #[test]
    fn a_lost_answer_leaves_two_possibilities_until_somebody_looks() {
        let mut oracle = Topics::default();
        oracle.began("t", Change::Create(2));
        oracle.ended(Some(true));
        assert!(oracle.observe("t", None).is_err(), "lost");
        oracle.observe("t", shape(1, 2)).unwrap();
        assert!(oracle.observe("t", shape(2, 2)).is_err(), "another topic");
        oracle.began("t", Change::Grow(3));
        oracle.ended(None);
        oracle.observe("t", shape(1, 3)).unwrap();
        assert!(oracle.observe("t", shape(1, 2)).is_err(), "back");
        oracle.began("t", Change::Delete);
        oracle.ended(Some(false));
        assert!(oracle.observe("t", None).is_err(), "refused");
    }
}
