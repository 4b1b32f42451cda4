//! A client of a random walk, as a good client library behaves, and the dice.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::TopicId;

pub(super) type Owned = BTreeSet<(TopicId, i32)>;

/// Chance from a seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
    pub(super) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Eager(&'static str),
    Cooperative,
    Modern,
}

/// A client, as a good client library behaves.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) manner: Manner,
    pub(super) instance: Option<String>,
    pub(super) topics: Vec<&'static str>,
    /// The member id it uses; empty before a classic client has got one.
    pub(super) id: String,
    /// Generation or epoch; 0: not a member.
    pub(super) epoch: i32,
    /// Classic: joined, has to sync.
    pub(super) must_sync: bool,
    /// Classic: has to join (again).
    pub(super) must_join: bool,
    /// What it works on.
    pub(super) owned: Owned,
    /// Modern: an assignment it has not made its own yet.
    pub(super) pending: Option<Owned>,
    /// Modern: has to say what it owns.
    pub(super) must_tell: bool,
    /// Modern: an answer did not come, so the next request says everything.
    pub(super) must_say_all: bool,
    pub(super) alive: bool,
}

impl Client {
    pub(super) fn new(number: u64, manner: Manner, is_static: bool, topics: Vec<&'static str>) -> Self {
        let id = if manner == Manner::Modern {
            format!("modern-{number}")
        } else {
            String::new()
        };
        Self {
            manner,
            instance: is_static.then(|| format!("instance-{number}")),
            topics,
            id,
            epoch: 0,
            must_sync: false,
            must_join: true,
            owned: Owned::new(),
            pending: None,
            must_tell: false,
            must_say_all: false,
            alive: true,
        }
    }

    pub(super) fn lose_everything(&mut self) {
        self.owned.clear();
        self.pending = None;
        self.epoch = 0;
        self.must_join = true;
        self.must_sync = false;
        self.must_tell = false;
        self.must_say_all = false;
        if self.manner != Manner::Modern {
            self.id.clear();
        }
    }
}

pub(super) fn to_wire(owned: &Owned) -> Vec<(TopicId, Vec<i32>)> {
    let mut topics: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in owned {
        topics.entry(*topic).or_default().push(*partition);
    }
    topics.into_iter().collect()
}

pub(super) fn from_wire(assignment: &[(TopicId, Vec<i32>)]) -> Owned {
    assignment
        .iter()
        .flat_map(|(topic, set)| set.iter().map(move |partition| (*topic, *partition)))
        .collect()
}
