//! Random worlds: instances come and go, records are produced and read, the broker is restarted, clocks are set.

use proptest::prelude::*;

use super::codec_samples::any_queues;
use super::harness::World;
use super::{QueueLog, Queues};
use crate::codec::{Decoder, Encoder};

#[derive(Clone, Debug)]
enum Event {
    Instances(u8, u32),
    Produce(u32),
    Read(u8),
    Pass(u64),
    Restart(i64),
    SetWallClock(i64),
    Wish(Option<u32>),
    Force,
    Delays(u64, u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..3u8, 0..12u32).prop_map(|(group, count)| Event::Instances(group, count)),
        6 => (0..16u32).prop_map(Event::Produce),
        4 => (0..3u8).prop_map(Event::Read),
        6 => (0..200_000u64).prop_map(Event::Pass),
        1 => (-10_000..2_000_000i64).prop_map(Event::Restart),
        1 => (-100_000_000..100_000_000i64).prop_map(Event::SetWallClock),
        1 => proptest::option::of(1..20u32).prop_map(Event::Wish),
        1 => Just(Event::Force),
        1 => (0..30_000u64, 0..400_000u64).prop_map(|(write, drain)| Event::Delays(write, drain)),
    ]
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl World {
    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Instances(group, count) => self.instances(NAMES[usize::from(group)], count),
            Event::Produce(id) => {
                let home = self.produce(id);
                assert!(
                    home < self.queues.write,
                    "a record in a queue that is not written"
                );
            }
            Event::Read(group) => self.read(NAMES[usize::from(group)]),
            Event::Pass(ms) => self.pass(ms),
            Event::Restart(away_ms) => self.restart(away_ms),
            Event::SetWallClock(by_ms) => self.now.wall_ms += by_ms,
            Event::Wish(wish) => self.wish(wish),
            Event::Force => self.force(),
            Event::Delays(write_ms, drain_ms) => {
                self.settings.write_delay_ms = write_ms;
                self.settings.drain_delay_ms = drain_ms;
            }
        }
        self.check();
    }
}

proptest! {
    /// W <= R, R falls over nothing unread (both checked at every step), and once the groups are calm and read what is
    /// there, the counts are what they are to be within the delays.
    #[test]
    fn the_counts_settle_within_the_delays(events in prop::collection::vec(any_event(), 0..60)) {
        let mut world = World::new();
        world.facade = 16;
        for event in &events {
            world.happen(event);
        }
        world.wish(None);
        world.instances("a", 5);
        for name in NAMES {
            world.read(name);
        }
        let settings = world.settings;
        let wanted = world.largest().unwrap().instances;
        // A goal may have been on its way, whose phase ends before the next begins.
        world.pass(settings.shrink_grace_ms + settings.write_delay_ms + settings.drain_delay_ms);
        world.pass(settings.write_delay_ms + settings.drain_delay_ms.max(1_000) + 1_000);
        prop_assert_eq!(world.counts(), (wanted, wanted), "{:?}", world.queues);
        for name in NAMES {
            let reader = &world.groups[name];
            for (queue, end) in &world.ends {
                prop_assert_eq!(reader.committed.get(queue), Some(end), "each record was read by each group");
            }
        }
    }

    #[test]
    fn queues_and_decisions_come_back_from_their_bytes((queues, decisions) in any_queues()) {
        let mut log = QueueLog::default();
        decisions.into_iter().for_each(|decision| log.note(decision));
        let mut e = Encoder::new();
        queues.put(&mut e);
        log.put(&mut e);
        let bytes = e.into_bytes();
        let mut d = Decoder::new(&bytes);
        prop_assert_eq!(Queues::get(&mut d).unwrap(), queues);
        prop_assert_eq!(QueueLog::get(&mut d).unwrap(), log);
        d.finish().unwrap();
        for cut in 0..bytes.len() {
            let mut d = Decoder::new(&bytes[..cut]);
            let whole = Queues::get(&mut d).and_then(|_| QueueLog::get(&mut d));
            prop_assert!(whole.is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn every_decision_has_a_sentence((_, decisions) in any_queues()) {
        for decision in decisions {
            let sentence = decision.sentence();
            prop_assert!(sentence.contains("since") && !sentence.contains("  "), "{sentence}");
        }
    }
}
