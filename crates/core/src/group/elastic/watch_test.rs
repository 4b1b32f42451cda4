//! Members that hold a share and do not read it, as the group sees them.

use super::moves_test::World;
use super::planning_test::Uncounted;
use crate::cursor::SliceId;
use crate::elastic::MemberState;
use crate::group::api::Connection;

impl World {
    /// So many seconds go by, in which these members fetch their shares.
    fn seconds(&mut self, seconds: u64, readers: &[&str]) {
        for _ in 0..seconds {
            for name in readers {
                let slice = self.id(name);
                let until_ms = self.bench.now.mono_ms + 500;
                let key = self.key();
                let coordinator = &mut self.bench.coordinator;
                coordinator.slice_fetched(Connection(1), key, slice, until_ms);
            }
            self.live(1);
        }
    }

    fn id(&mut self, member: &str) -> SliceId {
        self.position(member).slice().unwrap()
    }

    fn state(&mut self, member: &str) -> MemberState {
        let (now, topics) = (self.bench.now, self.bench.topics.clone());
        let look = self.bench.coordinator.look_at(now, &topics, "g", &Uncounted);
        look.unwrap().members[member].state
    }
}

/// A backlog that a and b share.
fn shared() -> World {
    let mut world = World::with_backlog(&["a", "b"], 20_000);
    world.live(2);
    assert_eq!(world.kinds(), ["split"]);
    world
}

#[test]
fn whoever_does_not_read_its_share_takes_it_anew_once() {
    let mut world = shared();
    let (a, b, slots) = (world.id("a"), world.id("b"), world.slots("b"));
    world.seconds(5, &["a"]);
    assert_eq!(world.id("b"), b, "it is given time");
    world.seconds(10, &["a"]);
    let fresh = world.id("b");
    assert!(
        fresh > b && world.slots("b") == slots,
        "the same slots, under another id"
    );
    assert_eq!(world.id("a"), a, "who reads is left alone");
    assert_eq!(world.kinds(), ["split"], "nothing has moved");
    world.seconds(60, &["a", "b"]);
    assert_eq!((world.id("b"), world.state("b")), (fresh, MemberState::Busy));
}

#[test]
fn whoever_does_not_read_after_that_counts_as_paused_until_it_fetches() {
    let mut world = shared();
    world.seconds(40, &["a"]);
    let fresh = world.id("b");
    assert_eq!(
        (world.state("a"), world.state("b")),
        (MemberState::Busy, MemberState::Paused)
    );
    // The other has done its part, and takes what is not read.
    while !world.work("a", 2_000).is_empty() {}
    world.seconds(20, &[]);
    let kinds = world.kinds();
    assert!(
        kinds[1..].iter().all(|kind| *kind == "steal") && kinds.len() > 1,
        "{kinds:?}"
    );
    assert!(!world.work("a", 1_000).is_empty());
    assert!(world.id("b") >= fresh, "it was not interrupted again");
    world.seconds(1, &["a", "b"]);
    assert_eq!(world.state("b"), MemberState::Busy);
}

#[test]
fn whoever_has_records_in_its_hands_is_left_alone() {
    let mut world = shared();
    let b = world.id("b");
    assert!(!world.hold("b", 100).is_empty());
    world.seconds(60, &["a"]);
    assert_eq!((world.id("b"), world.state("b")), (b, MemberState::Busy));
}

#[test]
fn a_member_that_is_alone_takes_its_share_anew_as_well() {
    let mut world = shared();
    world.work("b", 100);
    world.leave("b");
    world.seconds(3, &["a"]);
    assert!(world.slots("a").is_all());
    let before = world.id("a");
    world.seconds(15, &[]);
    assert!(world.id("a") > before && world.slots("a").is_all());
}
