//! Offsets as those are told them that ask without one.

use anabranch_wire::slot::Slot;

use super::listing::Numbering;
use super::moves_test::{World, moved};
use super::shares_test::half;
use crate::cursor::{SliceId, SliceOffset};
use crate::group::api::{Caller, Connection};
use crate::group::harness::{Bench, alive};
use crate::ids::Offset;

/// Somebody who is known by the connection alone.
fn stranger(connection: u64) -> Caller {
    Caller {
        client_id: "somebody".to_owned(),
        host: "/10.9.9.9".to_owned(),
        connection: Connection(connection),
        software: None,
    }
}

fn wire(id: SliceId, offset: Offset) -> Offset {
    SliceOffset::new(Some(id), offset).unwrap().to_wire()
}

impl World {
    fn numbering(&self, caller: &Caller) -> Numbering {
        self.bench.coordinator.numbering(caller, self.key()).unwrap()
    }

    fn fetched(&mut self, connection: u64, slice: SliceId) {
        let key = self.key();
        self.bench
            .coordinator
            .slice_fetched(Connection(connection), key, slice, 0);
    }
}

#[test]
fn the_plain_log_is_told_as_it_is() {
    let world = World::new(&["a", "b"]);
    let plain = world.numbering(&Bench::caller());
    assert!(plain.is_plain());
    assert_eq!((plain.first(3), plain.at(5), plain.last(9)), (3, 5, 9));
    assert_eq!(world.bench.coordinator.largest_slice(world.key()), None);
}

#[test]
fn who_has_fetched_a_slice_is_told_its_numbers_and_nobody_else() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let a = world.position("a").slice().unwrap();
    let b = world.position("b").slice().unwrap();
    world.fetched(50, a);
    world.fetched(51, b);
    for (connection, id) in [(50, a), (51, b)] {
        let told = world.numbering(&stranger(connection));
        assert!(!told.is_plain());
        assert_eq!(
            (told.first(10), told.at(500), told.last(1_000)),
            (wire(id, 10), wire(id, 500), wire(id, 1_000))
        );
    }
    assert!(world.numbering(&stranger(52)).is_plain());
    assert_eq!(world.bench.coordinator.largest_slice(world.key()), Some(a.max(b)));
}

#[test]
fn a_chain_begins_with_its_oldest_slice_and_ends_with_its_newest() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let old = world.position("a");
    world.read(old, &[(100, 1), (150, 2)], 200);
    let quarter = (0..1024).filter_map(Slot::new).collect();
    world.release("a", "b", &quarter);
    let old = old.slice().unwrap();
    world.fetched(50, old);
    let told = world.numbering(&stranger(50));
    let new = SliceOffset::from_wire(told.last(1_000)).unwrap();
    assert_eq!(new.offset(), 1_000);
    assert!(new.slice().unwrap() > old, "the release made a new slice");
    let new = new.slice().unwrap();
    // The member goes on in the old slice, and clients check what they are told to go on at.
    let position = world.position("a").to_wire();
    assert!(told.first(0) <= position && position <= told.last(1_000));
    // A place that the old slice still has is told as its own: from there the member comes to the new one, too.
    assert_eq!(told.at(150), wire(old, 150));
    assert_eq!(told.at(199), wire(old, 199));
    assert_eq!(told.at(200), wire(new, 200));
    // Done with the old one.
    let at = world.position("a");
    world.commit("a", moved(at, 150));
    world.commit("a", moved(at, 200));
    assert_eq!(world.position("a").slice(), Some(new));
    let told = world.numbering(&stranger(50));
    assert_eq!(
        (told.at(150), told.last(1_000)),
        (wire(new, 150), wire(new, 1_000))
    );
    // A client that reconnects in the middle still knows the old number.
    assert!(told.first(0) <= wire(old, 200));
}

#[test]
fn who_lost_its_slice_is_told_its_numbers_until_others_have_it() {
    let mut world = World::new(&["a", "b"]);
    world.split("a", "b");
    let b = world.position("b");
    world.read(b, &[(100, 3_000), (150, 4_000)], 200);
    let id = b.slice().unwrap();
    world.fetched(51, id);
    world.bench.consumer(&alive("b", -1, None)).unwrap();
    world.members.remove("b");
    assert_eq!(world.numbering(&stranger(51)).last(1_000), wire(id, 1_000));
    world.step(|coordinator, step, key| {
        coordinator.promise("g", key, "a", &half(true));
        coordinator.keep_promises(step, "g", key);
    });
    assert!(world.numbering(&stranger(51)).is_plain());
    let largest = world.bench.coordinator.largest_slice(world.key());
    assert!(
        largest >= Some(id),
        "what was seen before must not look like lost records"
    );
}
