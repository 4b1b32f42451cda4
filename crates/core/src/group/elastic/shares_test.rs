//! Partitions that members share: nobody holds part of one while another still holds the whole.

use std::collections::BTreeSet;

use anabranch_wire::ErrorCode;
use anabranch_wire::slot::Slot;

use super::Key;
use crate::elastic::{Change, How, Kind, Move, PartitionRef, Why};
use crate::group::coordinator::Step;
use crate::group::harness::{Bench, alive, classic, modern, read_assignment};
use crate::group::state::Sharing;
use crate::group::{ConsumerHeartbeatAnswer, JoinAnswer};
use crate::slots::SlotSet;

/// A decision that slots of a partition go from one member to others, by these means.
pub(super) fn moves(
    (topic, partition): Key,
    how: How,
    from: Option<&str>,
    parts: &[(&str, SlotSet)],
) -> Change {
    let moves = parts.iter().map(|(to, slots)| Move {
        of: PartitionRef {
            topic,
            name: "t".to_owned(),
            partition,
        },
        slots: slots.clone(),
        from: from.map(str::to_owned),
        to: (*to).to_owned(),
        how,
    });
    Change {
        kind: Kind::Split,
        why: Why::MemberIdle,
        moves: moves.collect(),
        shares: Vec::new(),
        passed_over: Vec::new(),
        error: 0,
    }
}

/// The lower half of the slots, and the upper.
pub(super) fn half(upper: bool) -> SlotSet {
    let slots = if upper { 2048..4096 } else { 0..2048 };
    slots.filter_map(Slot::new).collect()
}

impl Bench {
    fn key(&self, partition: i32) -> Key {
        (self.topics.id("t"), partition)
    }

    /// Lets a taker have half of what a member holds.
    fn halve(&mut self, partition: i32, how: How, from: &str, to: &str) {
        let parts = match how {
            How::Release => vec![(to, half(true))],
            _ => vec![(from, half(false)), (to, half(true))],
        };
        let change = moves(self.key(partition), how, Some(from), &parts);
        let topics = self.topics.clone();
        let mut step = Step::new(self.now, &topics);
        self.coordinator.act(&mut step, "g", &change);
        self.take(step.effects);
        self.check_fold();
    }

    fn owners(&self, partition: i32) -> Vec<String> {
        let consumer = self.coordinator.consumer("g").unwrap();
        let owners = consumer.owners.get(&self.key(partition));
        owners.into_iter().flatten().cloned().collect()
    }

    /// A classic heartbeat; one that is told to rejoins and syncs. What it has then.
    fn follow(&mut self, member: &mut JoinAnswer, protocol: &str) -> Vec<i32> {
        if self.heartbeat(&member.member_id, member.generation_id) == ErrorCode::RebalanceInProgress {
            *member = self.join(&classic(&member.member_id, protocol, &["t"]));
        }
        let synced = self.sync(&member.member_id, member.generation_id);
        assert_eq!(synced.error, ErrorCode::None);
        read_assignment(&synced.assignment)
            .into_iter()
            .flat_map(|(_, partitions)| partitions)
            .collect()
    }

    /// A heartbeat that says what the last answer gave, if it gave something new.
    fn beat(&mut self, member: &mut ConsumerHeartbeatAnswer) -> Option<Vec<i32>> {
        let owned = member.assignment.take();
        let answer = self
            .consumer(&alive(&member.member_id, member.member_epoch, owned))
            .unwrap();
        *member = answer;
        member
            .assignment
            .as_ref()
            .map(|topics| topics.iter().flat_map(|(_, set)| set.clone()).collect())
    }
}

#[test]
fn an_eager_holder_gives_up_and_gets_back_within_one_generation() {
    let mut bench = Bench::new(&[("t", 1)]);
    let (mut a, _) = bench.enter("", "range", &["t"]);
    let (mut b, synced) = bench.enter("", "range", &["t"]);
    assert_eq!(
        read_assignment(&synced.assignment),
        vec![],
        "one partition, held by the first"
    );
    bench.halve(0, How::Divide, &a.member_id, &b.member_id);
    assert_eq!(
        bench.follow(&mut b, "range"),
        Vec::<i32>::new(),
        "it waits for the holder"
    );
    assert_eq!(bench.follow(&mut a, "range"), vec![0]);
    assert_eq!(bench.follow(&mut b, "range"), vec![0]);
    let both = BTreeSet::from([a.member_id.clone(), b.member_id.clone()]);
    assert_eq!(bench.owners(0).into_iter().collect::<BTreeSet<_>>(), both);
    let generations = (a.generation_id, b.generation_id);
    assert_eq!(
        (bench.follow(&mut a, "range"), bench.follow(&mut b, "range")),
        (vec![0], vec![0])
    );
    assert_eq!(
        (a.generation_id, b.generation_id),
        generations,
        "then all is calm"
    );
    bench.check_fold();
}

#[test]
fn members_of_the_consumer_protocol_share_after_one_revocation() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut a = bench.consumer(&modern("a", &["t"])).unwrap();
    let mut b = bench.consumer(&modern("b", &["t"])).unwrap();
    bench.beat(&mut a);
    bench.beat(&mut b);
    assert_eq!(bench.owners(0), ["a"]);
    bench.halve(0, How::Divide, "a", "b");
    assert_eq!(bench.beat(&mut b), None, "the holder has not given it up");
    assert_eq!(bench.beat(&mut a), Some(vec![]), "it is to give it up");
    assert_eq!(bench.beat(&mut b), None, "it has not said that it did");
    assert_eq!(
        bench.beat(&mut a),
        Some(vec![0]),
        "and gets it back with the answer to that"
    );
    assert_eq!(bench.beat(&mut b), Some(vec![0]));
    assert_eq!(bench.owners(0), ["a", "b"]);
    bench.check_fold();
}

#[test]
fn a_third_member_comes_in_without_anybody_noticing() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut members: Vec<_> = ["a", "b", "c"]
        .map(|id| bench.consumer(&modern(id, &["t"])).unwrap())
        .into();
    for member in &mut members {
        bench.beat(member);
    }
    bench.halve(0, How::Divide, "a", "b");
    for _ in 0..3 {
        for member in &mut members[..2] {
            bench.beat(member);
        }
    }
    assert_eq!(bench.owners(0), ["a", "b"]);
    bench.halve(0, How::Release, "a", "c");
    assert_eq!(bench.beat(&mut members[0]), None);
    assert_eq!(bench.beat(&mut members[1]), None);
    assert_eq!(bench.beat(&mut members[2]), Some(vec![0]));
    assert_eq!(bench.owners(0), ["a", "b", "c"]);
}

#[test]
fn one_sharer_can_be_asked_to_drop_what_it_has_buffered() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut a = bench.consumer(&modern("a", &["t"])).unwrap();
    let mut b = bench.consumer(&modern("b", &["t"])).unwrap();
    bench.halve(0, How::Divide, "a", "b");
    for _ in 0..3 {
        bench.beat(&mut a);
        bench.beat(&mut b);
    }
    bench.halve(0, How::Regrant, "b", "a");
    assert_eq!(bench.beat(&mut a), None, "the other is not disturbed");
    assert_eq!(bench.beat(&mut b), Some(vec![]));
    assert_eq!(bench.beat(&mut b), Some(vec![0]));
    let key = bench.key(0);
    let sharers = bench.coordinator.sharers("g", key).unwrap();
    assert!(sharers.values().all(|sharing| *sharing == Sharing::Holds));
}

#[test]
fn the_last_who_leaves_ends_the_sharing() {
    let mut bench = Bench::new(&[("t", 2)]);
    let mut a = bench.consumer(&modern("a", &["t"])).unwrap();
    let mut b = bench.consumer(&modern("b", &["t"])).unwrap();
    let mut c = bench.consumer(&modern("c", &["t"])).unwrap();
    let holder = bench.owners(0).remove(0);
    bench.halve(0, How::Divide, &holder, "c");
    for _ in 0..4 {
        for member in [&mut a, &mut b, &mut c] {
            bench.beat(member);
        }
    }
    let sharers = bench.owners(0);
    assert!(sharers.contains(&"c".to_owned()) && sharers.len() == 2);
    let other = sharers.iter().find(|id| *id != "c").unwrap().clone();
    for id in [other.as_str(), "c"] {
        bench.consumer(&alive(id, -1, None)).unwrap();
    }
    let key = bench.key(0);
    assert_eq!(bench.coordinator.sharers("g", key), None);
    let last = if other == "a" { &mut b } else { &mut a };
    assert_eq!(
        bench.beat(last),
        Some(vec![0, 1]),
        "the assignor gives it away again"
    );
    bench.check_fold();
}

#[test]
fn a_restart_in_the_middle_changes_nothing() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut a = bench.consumer(&modern("a", &["t"])).unwrap();
    let mut b = bench.consumer(&modern("b", &["t"])).unwrap();
    bench.halve(0, How::Divide, "a", "b");
    bench.restart();
    assert_eq!(bench.beat(&mut a), Some(vec![]));
    bench.restart();
    assert_eq!(bench.beat(&mut a), Some(vec![0]));
    bench.restart();
    assert_eq!(bench.beat(&mut b), Some(vec![0]));
}

/// The holder of a partition that is to be divided dies before it has given it up: who was to share it with the holder has the
/// whole, and the assignor gives it away as any other.
#[test]
fn who_is_left_of_a_division_that_never_was_has_the_whole_and_shares_nothing() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut a = bench.consumer(&modern("a", &["t"])).unwrap();
    let mut b = bench.consumer(&modern("b", &["t"])).unwrap();
    bench.beat(&mut a);
    bench.beat(&mut b);
    bench.halve(0, How::Divide, "a", "b");
    assert_eq!(bench.beat(&mut b), None, "the holder has not given it up");
    bench.consumer(&alive("a", -1, None)).unwrap();
    assert_eq!(bench.beat(&mut b), Some(vec![0]));
    assert_eq!(bench.owners(0), ["b"]);
    let key = bench.key(0);
    assert_eq!(bench.coordinator.sharers("g", key), None);
    bench.check_fold();
    bench.restart();
    assert_eq!(bench.coordinator.sharers("g", key), None);
}

/// The same, found after a restart: the one that is alone had taken the partition before, and nothing is promised any more.
#[test]
fn a_list_of_one_that_nothing_is_divided_for_is_tidied_up() {
    let mut bench = Bench::new(&[("t", 1)]);
    let mut a = bench.consumer(&modern("a", &["t"])).unwrap();
    bench.beat(&mut a);
    let (key, topics) = (bench.key(0), bench.topics.clone());
    let mut step = Step::new(bench.now, &topics);
    let alone = [("a".to_owned(), Sharing::Holds)].into();
    bench.coordinator.set_sharers(&mut step, "g", key, alone);
    bench.coordinator.tidy(&mut step, "g");
    bench.take(step.effects);
    assert_eq!(bench.coordinator.sharers("g", key), None);
    bench.beat(&mut a);
    assert_eq!(bench.owners(0), ["a"], "it is not disturbed");
    bench.check_fold();
}
