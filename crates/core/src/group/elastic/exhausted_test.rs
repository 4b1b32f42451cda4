//! A partition of which no slice id is free: whatever happens to its members, nothing of it is left lying.

use std::collections::BTreeSet;

use anabranch_wire::slot::Slot;

use super::moves_test::{World, moved};
use super::shares_test::moves;
use crate::cursor::{Cursor, SliceId, SliceIds, SliceIdsChange};
use crate::elastic::How;
use crate::group::GroupChange;
use crate::ids::Offset;
use crate::limits::SLICE_ID_QUARANTINE_MS;
use crate::slots::SlotSet;

impl World {
    fn ids_changed(&mut self, change: impl FnOnce(&SliceIds) -> Vec<SliceIdsChange>) {
        self.step(|coordinator, step, (topic, partition)| {
            let none = SliceIds::default();
            let changes = change(coordinator.slice_ids.get(&(topic, partition)).unwrap_or(&none));
            let group = OTHER.to_owned();
            let change = GroupChange::SliceIds {
                group,
                topic,
                partition,
                changes,
            };
            coordinator.record(step, change);
        });
    }

    /// Every id that is free names a slice of another group.
    fn take_all_ids(&mut self) {
        self.ids_changed(|pool| {
            let ids = (1..=SliceId::LAST.get()).filter_map(SliceId::new);
            ids.filter(|id| pool.get(*id).is_none()).map(taken).collect()
        });
    }

    fn plain_offset(&self) -> Option<Offset> {
        match self.bench.coordinator.cursor("g", self.key()) {
            Some(Cursor::Plain(plain)) => Some(plain.offset),
            Some(Cursor::Divided(_)) | None => None,
        }
    }
}

const OTHER: &str = "another";

fn slots_of(numbers: std::ops::Range<u16>) -> SlotSet {
    numbers.filter_map(Slot::new).collect()
}

fn taken(id: SliceId) -> SliceIdsChange {
    SliceIdsChange::Taken {
        id,
        group: OTHER.to_owned(),
    }
}

/// Two members share it, and one is ahead.
fn shared(world: &mut World) {
    world.split("a", "b");
    let a = world.position("a");
    world.read(a, &[(150, 5), (160, 6)], 161);
    world.commit("a", moved(a, 161));
}

#[test]
fn a_leavers_part_is_read_undivided_where_no_id_is_left() {
    let mut world = World::new(&["a", "b"]);
    shared(&mut world);
    world.take_all_ids();
    world.leave("b");
    world.live(8);
    assert_eq!(world.plain_offset(), Some(100), "where the leaver was");
    let position = world.position("a");
    assert_eq!(
        (position.slice(), position.offset()),
        (None, 100),
        "it was told to begin anew"
    );
    assert_eq!(world.bench.coordinator.sharers("g", world.key()), None);
}

#[test]
fn the_same_over_a_restart_in_the_middle() {
    let mut world = World::new(&["a", "b"]);
    shared(&mut world);
    world.take_all_ids();
    world.leave("b");
    world.plan();
    world.restart();
    world.recall(&[(150, 5), (160, 6)]);
    world.live(8);
    assert_eq!(world.plain_offset(), Some(100));
    assert_eq!(world.position("a").offset(), 100);
}

#[test]
fn a_third_who_shares_it_gives_its_part_up_too() {
    let mut world = World::new(&["a", "b", "c"]);
    shared(&mut world);
    let some = slots_of(2048..3000);
    world.release("b", "c", &some);
    world.calm();
    assert_eq!(world.slots("c"), some);
    world.take_all_ids();
    world.leave("b");
    world.live(8);
    assert_eq!(world.plain_offset(), Some(100));
    let owners = &world.bench.coordinator.consumer("g").unwrap().owners;
    assert_eq!(owners.get(&world.key()).map(BTreeSet::len), Some(1));
}

/// Ids grow along a chain, so that one may have none above it while lower ones are free.
#[test]
fn where_a_smaller_id_is_free_one_member_gets_the_whole_as_a_slice() {
    let mut world = World::new(&["a", "b"]);
    let lowest = SliceId::FIRST;
    world.ids_changed(|_| vec![taken(lowest)]);
    shared(&mut world);
    world.take_all_ids();
    let at_ms = world.bench.now.wall_ms - SLICE_ID_QUARANTINE_MS as i64;
    world.ids_changed(|_| {
        vec![SliceIdsChange::Retired {
            ids: vec![lowest],
            at_ms,
        }]
    });
    world.leave("b");
    world.live(8);
    assert_eq!(
        world.plain_offset(),
        None,
        "what a has done need not be done again"
    );
    assert_eq!(world.slots("a"), SlotSet::all());
    assert_eq!(world.position("a").slice(), Some(lowest));
}

/// A transit whose fence does not open goes back to where it came from, which needs an id too.
#[test]
fn what_cannot_be_returned_is_read_undivided() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let a = world.position("a");
    world.read(a, &[(150, 5), (160, 6)], 161);
    let some = slots_of(5..7);
    world.release("a", "b", &some);
    world.take_all_ids();
    let back = moves(world.key(), How::Return, Some("b"), &[("a", some)]);
    world.act(&back);
    world.live(8);
    assert_eq!(world.plain_offset(), Some(100));
}
