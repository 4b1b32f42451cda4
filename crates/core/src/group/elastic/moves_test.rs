//! Members and divided cursors together: who reads what after each event of a group's life.

use std::collections::BTreeMap;

use anabranch_wire::slot::Slot;

use super::shares_test::{half, moves};
use super::{ClientSoftware, Key, SliceFetch, SliceRead};
use crate::cursor::{ChainState, Cursor, CursorChange, Edit, Record, SliceOffset};
use crate::elastic::{Change, How};
use crate::group::coordinator::Step;
use crate::group::harness::{Bench, alive, at, fetch, modern, simple, t};
use crate::group::{Caller, ConsumerHeartbeat, ConsumerHeartbeatAnswer, Coordinator, GroupChange};
use crate::ids::Offset;
use crate::slots::SlotSet;

pub(super) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// A group of the consumer protocol on a topic with one partition.
pub(super) struct World {
    pub(super) bench: Bench,
    pub(super) members: BTreeMap<&'static str, ConsumerHeartbeatAnswer>,
    /// Where the newest read began.
    pub(super) read_last: Option<SliceOffset>,
}

impl World {
    /// Members join in order; the first holds the partition, and has committed offset 100 of 1,000.
    pub(super) fn new(names: &[&'static str]) -> Self {
        let mut world = Self::uncommitted(names);
        world.commit(names[0], SliceOffset::new(None, 100).unwrap());
        world
    }

    /// The same, and nobody has committed anything yet.
    pub(super) fn uncommitted(names: &[&'static str]) -> Self {
        let mut bench = Bench::new(&[("t", 1)]);
        let key = (bench.topics.id("t"), 0);
        bench.topics.ends.insert(key, 1_000);
        let mut world = Self {
            bench,
            members: BTreeMap::new(),
            read_last: None,
        };
        for name in names {
            world.join(name);
            world.calm();
        }
        let epoch = world.members[names[0]].member_epoch;
        let asked = fetch(Some(names[0]), epoch, Some(vec![(t(), vec![0])]));
        let bench = &mut world.bench;
        let caller = Bench::caller_of(names[0]);
        let (answer, effects) = bench.coordinator.fetch(bench.now, &bench.topics, &caller, &asked);
        bench.take(effects);
        assert_eq!(answer.unwrap()[0].1[0].offset, -1);
        world
    }

    /// Two members divided it, one got far ahead of the other, and both have left: no plain offset is exact.
    fn left_unevenly() -> Self {
        let mut world = Self::new(&["a", "b"]);
        world.split("a", "b");
        let a = world.position("a");
        world.read(a, &[(150, 5), (160, 6)], 161);
        world.commit("a", moved(a, 161));
        for name in ["a", "b"] {
            world.leave(name);
        }
        world
    }

    pub(super) fn key(&self) -> Key {
        (self.bench.topics.id("t"), 0)
    }

    /// Everybody heartbeats until nothing changes any more.
    pub(super) fn calm(&mut self) {
        self.beat();
        self.bench.check_fold();
    }

    /// The same, without a look at the journal.
    pub(super) fn beat(&mut self) {
        for _ in 0..4 {
            for (name, member) in &mut self.members {
                let owned = member.assignment.take();
                *member = self
                    .bench
                    .consumer(&alive(name, member.member_epoch, owned))
                    .unwrap();
            }
        }
    }

    pub(super) fn step(&mut self, work: impl FnOnce(&mut Coordinator, &mut Step<'_>, Key)) {
        let key = self.key();
        let topics = self.bench.topics.clone();
        let mut step = Step::new(self.bench.now, &topics);
        work(&mut self.bench.coordinator, &mut step, key);
        self.bench.take(step.effects);
        self.bench.check_fold();
    }

    /// Does what was decided.
    pub(super) fn act(&mut self, change: &Change) {
        self.step(|coordinator, step, _| coordinator.act(step, "g", change));
    }

    /// Divides the partition: the upper half of the slots to the second member.
    pub(super) fn split(&mut self, holder: &str, taker: &str) {
        let parts = [(holder, half(false)), (taker, half(true))];
        self.act(&moves(self.key(), How::Divide, Some(holder), &parts));
        self.calm();
    }

    /// Takes slots from a member that holds a chain, for another.
    pub(super) fn release(&mut self, from: &str, to: &str, slots: &SlotSet) {
        self.act(&moves(
            self.key(),
            How::Release,
            Some(from),
            &[(to, slots.clone())],
        ));
    }

    pub(super) fn join(&mut self, name: &'static str) {
        let joined = self.bench.consumer(&modern(name, &["t"])).unwrap();
        self.members.insert(name, joined);
    }

    pub(super) fn leave(&mut self, name: &str) {
        self.bench.consumer(&alive(name, -1, None)).unwrap();
        self.members.remove(name);
    }

    pub(super) fn position(&mut self, member: &str) -> SliceOffset {
        let epoch = self.members[member].member_epoch;
        let asked = fetch(Some(member), epoch, Some(vec![(t(), vec![0])]));
        let bench = &mut self.bench;
        let (answer, effects) =
            bench
                .coordinator
                .fetch(bench.now, &bench.topics, &Bench::caller_of(member), &asked);
        bench.take(effects);
        let answer = answer.unwrap();
        let one = &answer[0].1[0];
        assert!(one.error.is_ok(), "{member}: {:?}", one.error);
        SliceOffset::from_wire(one.offset).unwrap()
    }

    /// Reads at a position: hands these records out. Where it read from.
    pub(super) fn read(&mut self, position: SliceOffset, records: &[(i64, u16)], end: i64) -> SliceOffset {
        let key = self.key();
        let SliceFetch::Read(read) = self.bench.coordinator.locate_slice(key, position) else {
            panic!("{position:?} cannot be read");
        };
        let SliceRead { group, plan, .. } = *read;
        let records: Vec<Record> = records
            .iter()
            .map(|(offset, number)| Record {
                offset: *offset,
                slot: slot(*number),
            })
            .collect();
        assert!(
            records
                .iter()
                .all(|record| plan.sieve.keeps(record.slot, record.offset))
        );
        let topics = self.bench.topics.clone();
        let now = self.bench.now;
        let (reserved, effects) =
            self.bench
                .coordinator
                .reserve_slice(now, &topics, &group, key, &plan, (&records, end));
        self.bench.take(effects);
        assert_eq!(reserved.unwrap().end, end);
        SliceOffset::new(Some(plan.slice), plan.from).unwrap()
    }

    pub(super) fn commit(&mut self, member: &str, at: SliceOffset) {
        let epoch = self.members[member].member_epoch;
        assert!(self.bench.commit(member, epoch, "t", 0, at.to_wire()).is_ok());
        self.bench.check_fold();
    }

    /// The broker is killed and comes back.
    pub(super) fn restart(&mut self) {
        self.bench.restart();
        let (now, topics) = (self.bench.now, self.bench.topics.clone());
        let effects = self.bench.coordinator.recover_slices(now, &topics);
        self.bench.take(effects);
    }

    /// What was handed out is read again after that: records by offset and slot.
    pub(super) fn recall(&mut self, all: &[(Offset, u16)]) {
        let (now, topics) = (self.bench.now, self.bench.topics.clone());
        for one in self.bench.coordinator.recalls_wanted() {
            let range = &one.recall;
            let found = all
                .iter()
                .filter(|(offset, _)| (range.from..range.to).contains(offset));
            let found = found.map(|(offset, number)| Record {
                offset: *offset,
                slot: slot(*number),
            });
            let kept = found.filter(|record| range.sieve.keeps(record.slot, record.offset));
            let records: Vec<Record> = kept.collect();
            let effects = self.bench.coordinator.recall_slice(now, &topics, &one, &records);
            self.bench.take(effects);
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(
            self.bench.coordinator.cursor("g", self.key()),
            Some(Cursor::Plain(_))
        )
    }

    pub(super) fn slots(&self, member: &str) -> SlotSet {
        match self.bench.coordinator.cursor("g", self.key()) {
            Some(Cursor::Divided(divided)) => divided
                .chain_of(member)
                .filter(|(_, chain)| chain.state() == ChainState::Held)
                .map_or_else(SlotSet::empty, |(_, chain)| chain.tail().pieces.slots()),
            Some(Cursor::Plain(_)) | None => SlotSet::empty(),
        }
    }
}

pub(super) fn moved(at: SliceOffset, offset: i64) -> SliceOffset {
    SliceOffset::new(at.slice(), offset).unwrap()
}

#[test]
fn a_first_split_gives_each_a_slice_from_the_committed_offset_on() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    assert_eq!((world.slots("a"), world.slots("b")), (half(false), half(true)));
    let (a, b) = (world.position("a"), world.position("b"));
    assert!(a.slice().is_some() && b.slice().is_some() && a.slice() != b.slice());
    assert_eq!((a.offset(), b.offset()), (100, 100));
    assert_eq!(
        world.bench.committed("t", 0),
        100,
        "outsiders see one plain offset"
    );
}

#[test]
fn a_release_reaches_the_taker_when_commits_prove_the_work_done() {
    let mut world = World::new(&["a", "b", "c"]);
    world.split("a", "b");
    let a = world.position("a");
    world.read(a, &[(100, 1), (101, 1_500), (105, 7)], 106);
    let quarter: SlotSet = (1_024..2_048).filter_map(Slot::new).collect();
    world.release("a", "c", &quarter);
    world.calm();
    let at_work = [slot(1_500)].into_iter().collect();
    let rest = quarter.difference(&at_work);
    assert_eq!(world.slots("c"), rest, "all but the slot of record 101");
    world.commit("a", moved(a, 102));
    world.calm();
    assert_eq!(world.slots("c"), rest, "one commit is no proof");
    world.commit("a", moved(a, 106));
    world.calm();
    assert_eq!(world.slots("c"), quarter);
    let (key, position) = (world.key(), world.position("c"));
    let found = world.bench.coordinator.locate_slice(key, position);
    let SliceFetch::Read(read) = found else {
        panic!("it can be read");
    };
    assert_eq!(
        read.plan.sieve.from_of(slot(1_500)),
        106,
        "from the end of what was handed out"
    );
}

#[test]
fn what_a_leaver_had_flows_to_the_one_that_is_promised_it() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let b = world.position("b");
    world.read(b, &[(100, 3_000), (120, 4_000)], 121);
    world.commit("b", moved(b, 101));
    world.leave("b");
    world.act(&moves(world.key(), How::Grant, None, &[("a", half(true))]));
    assert_eq!(world.slots("a"), SlotSet::all());
    let a = world.position("a");
    let from = world.read(a, &[(101, 1), (120, 4_000)], 121);
    assert_eq!(
        from.offset(),
        100,
        "the leaver's uncommitted record comes again, its committed one does not"
    );
}

#[test]
fn a_static_member_that_leaves_for_a_while_has_given_up_what_it_was_asked_for() {
    let mut world = World::new(&["a"]);
    let as_instance = |request| ConsumerHeartbeat {
        instance_id: Some("i".to_owned()),
        ..request
    };
    let joined = world.bench.consumer(&as_instance(modern("b", &["t"]))).unwrap();
    world.members.insert("b", joined);
    world.calm();
    world.split("a", "b");
    world.act(&moves(world.key(), How::Regrant, Some("b"), &[("a", half(true))]));
    let epoch = world.members["b"].member_epoch;
    let asked = world.bench.consumer(&alive("b", epoch, None)).unwrap();
    assert_eq!(asked.assignment, Some(Vec::new()));
    world.bench.consumer(&as_instance(alive("b", -2, None))).unwrap();
    assert_eq!(world.slots("a"), SlotSet::all());
}

#[test]
fn an_expelled_members_commits_change_nothing() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let b = world.position("b");
    world.read(b, &[(100, 3_000)], 101);
    let epoch = world.members["b"].member_epoch;
    world.members.remove("b");
    for _ in 0..20 {
        world.bench.pass(4_000);
        world.calm();
    }
    assert!(
        world.bench.coordinator.member("g", "b").is_none(),
        "its session has ended"
    );
    let refused = world.bench.commit("b", epoch, "t", 0, moved(b, 101).to_wire());
    assert!(!refused.is_ok());
    assert_eq!(world.bench.committed("t", 0), 100);
}

#[test]
fn the_last_member_gets_everything_and_the_cursor_is_plain_when_that_is_exact() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    for name in ["a", "b"] {
        world.leave(name);
    }
    world.join("c");
    world.calm();
    let key = world.key();
    assert!(world.is_plain());
    assert_eq!(world.position("c"), SliceOffset::new(None, 100).unwrap());
    assert_eq!(world.bench.coordinator.sharers("g", key), None);
}

#[test]
fn the_last_member_reads_one_slice_when_plain_would_not_be_exact() {
    let mut world = World::left_unevenly();
    world.join("c");
    world.calm();
    assert_eq!(world.slots("c"), SlotSet::all());
    let c = world.position("c");
    assert_eq!(c.offset(), 100);
    world.read(c, &[(130, 3_000), (161, 5)], 162);
}

#[test]
fn a_client_that_cannot_read_slices_gets_a_plain_offset() {
    let mut world = World::left_unevenly();
    let stranger = Caller {
        software: ClientSoftware::new("homemade", "1.0"),
        ..Bench::caller_of("c")
    };
    let bench = &mut world.bench;
    let request = modern("c", &["t"]);
    let (joined, effects) =
        bench
            .coordinator
            .consumer_heartbeat(bench.now, &bench.topics, [7; 16], &stranger, &request);
    bench.take(effects);
    world.members.insert("c", joined.unwrap());
    assert!(world.is_plain());
    assert_eq!(world.position("c"), SliceOffset::new(None, 100).unwrap());
}

#[test]
fn a_reset_of_an_empty_group_ends_the_division_and_a_slice_offset_is_no_reset() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let a = world.position("a");
    for name in ["a", "b"] {
        world.leave(name);
    }
    let refused = world.bench.send_commit(&simple(t(), at(0, a.to_wire())));
    assert!(
        !refused[0].1[0].1.is_ok(),
        "a slice offset means nothing to an outsider"
    );
    let reset = world.bench.send_commit(&simple(t(), at(0, 40)));
    assert!(reset[0].1[0].1.is_ok());
    assert_eq!(world.bench.committed("t", 0), 40);
    let key = world.key();
    assert!(world.is_plain());
    assert!(
        matches!(world.bench.coordinator.locate_slice(key, a), SliceFetch::Silent),
        "the slice's reader gets nothing, and no error"
    );
}

#[test]
fn plain_commits_of_members_have_no_effect_while_the_cursor_is_divided() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let epoch = world.members["a"].member_epoch;
    assert!(world.bench.commit("a", epoch, "t", 0, 900).is_ok());
    assert_eq!(world.bench.committed("t", 0), 100);
    let b = world.position("b");
    assert!(
        world
            .bench
            .commit("a", epoch, "t", 0, moved(b, 900).to_wire())
            .is_ok()
    );
    assert_eq!(
        world.position("b").offset(),
        100,
        "nor those in somebody else's slice"
    );
}

#[test]
fn a_restart_keeps_positions_and_moves_nothing_before_it_was_told_what_was_handed_out() {
    let mut world = World::new(&["a", "b", "c"]);
    world.split("a", "b");
    let a = world.position("a");
    world.read(a, &[(100, 1), (101, 1_500), (105, 7)], 106);
    world.commit("a", moved(a, 101));
    world.restart();
    assert_eq!(world.position("a").offset(), 101);
    let wanted = world.bench.coordinator.recalls_wanted();
    assert!(wanted.iter().any(|one| one.recall.from == 101), "{wanted:?}");
    world.recall(&[(101, 1_500), (105, 7)]);
    assert!(world.bench.coordinator.recalls_wanted().is_empty());
    world.bench.check_fold();
}

#[test]
fn a_crash_while_offsets_are_deleted_leaves_none_rather_than_the_first() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    for name in ["a", "b"] {
        world.leave(name);
    }
    let (now, topics) = (world.bench.now, world.bench.topics.clone());
    let deleted = [("t".to_owned(), vec![0])];
    let (answer, effects) = world
        .bench
        .coordinator
        .delete_offsets(now, &topics, "g", &deleted);
    assert!(answer.is_ok());
    let plain = |change: &CursorChange| match &change.edit {
        Edit::Plain { plain } => Some(plain.offset),
        _ => None,
    };
    let made_plain = effects.changes.iter().find_map(|change| match change {
        GroupChange::CursorEdits { changes, .. } => changes.iter().find_map(plain),
        _ => None,
    });
    assert_eq!(made_plain, Some(-1));
}

#[test]
fn deleting_the_group_retires_its_ids() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let a = world.position("a");
    for name in ["a", "b"] {
        world.leave(name);
    }
    let (now, topics) = (world.bench.now, world.bench.topics.clone());
    let (error, effects) = world.bench.coordinator.delete_group(now, &topics, "g");
    assert!(error.is_ok());
    world.bench.take(effects);
    world.bench.check_fold();
    let key = world.key();
    assert!(matches!(
        world.bench.coordinator.locate_slice(key, a),
        SliceFetch::Silent
    ));
    assert!(
        world.bench.coordinator.elastic.group("g").is_none(),
        "nothing is remembered"
    );
}
