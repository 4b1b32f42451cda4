//! Scrapes after scrapes of a made-up group.

use super::*;

struct World {
    trends: Trends,
    now: Now,
    group: Group,
    /// Timestamp of each batch in memory, by offset.
    memory: BTreeMap<i64, i64>,
}

impl World {
    /// A group with so many members that has committed 0 of 0 in one partition that up to four may share.
    fn new(members: usize) -> Self {
        let place = Place {
            topic: "t".to_owned(),
            partition: 0,
            committed: 0,
            lag: 0,
            start: 0,
            end: 0,
            log: Some(LogId(1)),
            division: None,
        };
        let group = Group {
            id: "g".to_owned(),
            members,
            idle: Some(0),
            room: 4,
            places: vec![place],
        };
        let now = Now {
            mono_ms: 5_000,
            wall_ms: 1_700_000_000_000,
        };
        Self {
            trends: Trends::default(),
            now,
            group,
            memory: BTreeMap::new(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now.mono_ms += seconds * 1_000;
        self.now.wall_ms += seconds as i64 * 1_000;
    }

    /// Records come in and are committed.
    fn work(&mut self, come: i64, done: i64) {
        let place = &mut self.group.places[0];
        place.end += come;
        place.committed += done;
        place.lag = (place.end - place.from()).max(0);
    }

    fn look(&mut self) -> Outlook {
        let group = &self.group;
        let copy = Group {
            id: group.id.clone(),
            places: group.places.iter().map(copy).collect(),
            ..*group
        };
        let scrape = Scrape {
            groups: vec![copy],
            ..Scrape::default()
        };
        let memory = &self.memory;
        let read = |place: &Place| memory.get(&place.from()).copied();
        self.trends.look(self.now, &scrape, read)
    }

    fn topic(&mut self) -> OfTopic {
        self.look().topics[&("g".to_owned(), "t".to_owned())]
    }

    fn desired(&mut self) -> Option<u64> {
        self.look().desired.get("g").copied()
    }
}

fn copy(place: &Place) -> Place {
    Place {
        topic: place.topic.clone(),
        ..*place
    }
}

#[test]
fn an_offset_stands_still_only_while_somebody_should_move_it() {
    let mut world = World::new(1);
    assert_eq!(world.topic().stuck_s, 0.0);
    world.pass(60);
    assert_eq!(world.topic().stuck_s, 0.0, "there is nothing to read");
    world.work(10, 0);
    assert_eq!(world.topic().stuck_s, 0.0, "it has just come");
    world.pass(60);
    assert_eq!(world.topic().stuck_s, 60.0);
    world.work(0, 1);
    assert_eq!(world.topic().stuck_s, 0.0, "it moves");
    world.group.members = 0;
    world.pass(60);
    assert_eq!(world.topic().stuck_s, 0.0, "nobody is there");
    world.group.members = 1;
    world.pass(30);
    assert_eq!(world.topic().stuck_s, 0.0);
    world.pass(30);
    assert_eq!(world.topic().stuck_s, 30.0);
}

#[test]
fn lag_in_seconds_is_the_age_of_the_oldest_unread_batch() {
    let mut world = World::new(1);
    assert_eq!(world.topic().lag_s(), Some(0.0));
    world.work(10, 0);
    world.memory.insert(0, world.now.wall_ms);
    world.memory.insert(5, world.now.wall_ms + 2_000);
    world.pass(7);
    assert_eq!(world.topic().lag_s(), Some(7.0));
    world.work(0, 5);
    assert_eq!(world.topic().lag_s(), Some(5.0));
    world.work(0, 5);
    assert_eq!(world.topic().lag_s(), Some(0.0));
    // A producer whose clock is ahead.
    world.work(5, 0);
    world.memory.insert(10, world.now.wall_ms + 90_000);
    assert_eq!(world.topic().lag_s(), Some(0.0));
}

#[test]
fn what_is_not_in_memory_is_asked_for_and_an_older_answer_serves_until_then() {
    let mut world = World::new(1);
    world.work(100, 3);
    let start_ms = world.now.wall_ms;
    let outlook = world.look();
    assert_eq!(outlook.wanted.len(), 1);
    assert_eq!((outlook.wanted[0].from, outlook.wanted[0].end), (3, 100));
    assert_eq!(world.topic().lag_s(), None);
    world.trends.learn(&outlook.wanted[0], start_ms);
    world.pass(4);
    assert_eq!(world.topic().lag_s(), Some(4.0));
    assert_eq!(world.look().wanted, []);
    world.work(0, 10);
    assert_eq!(world.topic().lag_s(), Some(4.0), "no less than the truth");
    assert_eq!(world.look().wanted.len(), 1);
    // A reset to the start: what is known is about later records.
    world.work(0, -13);
    assert_eq!(world.topic().lag_s(), None);
    // Retention has deleted what was not read.
    world.group.places[0].start = 50;
    world.work(0, 0);
    assert_eq!(world.look().wanted[0].from, 50);
}

#[test]
fn the_desired_number_follows_speed_and_backlog_within_what_can_be_shared() {
    let mut world = World::new(1);
    assert_eq!(world.desired(), Some(0));
    world.work(6_000, 0);
    assert_eq!(world.desired(), Some(1), "no speed is known yet");
    world.pass(20);
    assert_eq!(world.desired(), Some(1), "there was nothing to do at first");
    // Ten records a second for one member.
    world.pass(20);
    world.work(0, 200);
    assert_eq!(world.desired(), Some(4), "ten would be needed, four find work");
    world.pass(20);
    world.group.members = 4;
    world.work(0, 4_400);
    // 220 a second for four, 55 each; with what was seen before 32.5. 1,400 are left.
    assert_eq!(world.desired(), Some(1));
    world.pass(20);
    world.work(4_000, 0);
    // 200 come in a second.
    assert_eq!(world.desired(), Some(4));
    world.pass(20);
    world.work(0, 5_400);
    assert_eq!(world.desired(), Some(0), "nothing is left and nothing comes");
}

#[test]
fn a_group_that_keeps_up_is_not_taken_for_slow() {
    let mut world = World::new(2);
    world.work(1_000, 0);
    world.look();
    world.pass(20);
    world.work(1_000, 1_500);
    world.look();
    let speed = world.trends.groups["g"].speed.member_per_s;
    assert_eq!(speed, Some(37.5));
    for _ in 0..5 {
        world.pass(20);
        world.work(20, 20);
        world.work(0, world.group.places[0].lag);
        world.look();
    }
    assert_eq!(world.trends.groups["g"].speed.member_per_s, speed);
}

#[test]
fn scrapes_close_together_measure_nothing_and_a_reset_begins_anew() {
    let mut world = World::new(1);
    world.work(1_000, 0);
    world.look();
    world.pass(1);
    world.work(0, 500);
    world.look();
    assert_eq!(
        world.trends.groups["g"].speed.member_per_s, None,
        "one commit within a second"
    );
    world.pass(14);
    world.look();
    assert_eq!(world.trends.groups["g"].speed.member_per_s, Some(500.0 / 15.0));
    world.pass(20);
    world.work(0, -500);
    world.look();
    world.pass(5);
    world.work(0, 900);
    world.look();
    assert_eq!(world.trends.groups["g"].speed.member_per_s, Some(500.0 / 15.0));
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut world = World::new(1);
    world.work(10, 1);
    world.look();
    world.group.places.clear();
    let outlook = world.look();
    assert!(outlook.topics.is_empty() && outlook.desired.is_empty());
    assert!(world.trends.groups["g"].places.is_empty());
    let nobody = Scrape::default();
    world.trends.look(world.now, &nobody, |_| None);
    assert!(world.trends.groups.is_empty());
}
