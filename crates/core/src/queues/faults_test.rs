//! What is known to have gone wrong in the code of the published design and in systems that followed it, one test each.

use super::harness::World;
use super::{Kind, Phase, Why};

const MINUTE_MS: u64 = 60_000;

/// A topic with one group of so many instances, at rest.
fn calm(instances: u32) -> World {
    let mut world = World::new();
    world.instances("g", instances);
    world.pass(20_000);
    assert_eq!(world.counts(), (instances, instances));
    world.kinds();
    world
}

#[test]
fn a_growing_topic_is_read_first_and_written_after_the_delay() {
    let mut world = World::new();
    world.instances("g", 3);
    assert_eq!(world.counts(), (1, 3));
    world.pass(9_000);
    assert_eq!(world.counts(), (1, 3));
    world.pass(1_000);
    assert_eq!(world.counts(), (3, 3));
    assert_eq!(world.kinds(), [Kind::Start, Kind::ReadUp, Kind::WriteUp]);
}

#[test]
fn a_shrinking_topic_is_written_less_first_and_read_less_once_it_is_drained() {
    let mut world = calm(6);
    world.produce(5);
    world.instances("g", 3);
    world.pass(MINUTE_MS);
    assert_eq!(world.counts(), (3, 6), "fewer for the grace");
    world.pass(4 * MINUTE_MS);
    world.read("g");
    assert_eq!(world.counts(), (3, 6), "not before the delay is over");
    world.pass(MINUTE_MS);
    assert_eq!(world.counts(), (3, 3));
    assert_eq!(world.kinds(), [Kind::WriteDown, Kind::ReadDown]);
}

#[test]
fn the_count_follows_the_largest_group() {
    let mut world = calm(3);
    world.instances("small", 2);
    world.instances("large", 7);
    world.pass(10_000);
    assert_eq!(world.counts(), (7, 7));
    let why = &world.told[0].why;
    assert!(
        matches!(why, Why::LargestGroup { group, instances: 7 } if group == "large"),
        "{why:?}"
    );
}

#[test]
fn fault_1_flap_amplification_a_rolling_restart_changes_nothing() {
    let mut world = calm(6);
    for _ in 0..6 {
        world.instances("g", 5);
        world.pass(50_000);
        world.instances("g", 6);
        world.pass(5_000);
    }
    assert_eq!(world.kinds(), []);
    assert_eq!(world.counts(), (6, 6));
}

#[test]
fn fault_1_what_comes_back_while_queues_drain_finds_them_assigned() {
    let mut world = calm(6);
    world.instances("g", 4);
    world.pass(2 * MINUTE_MS);
    assert_eq!(world.counts(), (4, 6));
    world.instances("g", 6);
    assert_eq!(world.queues.phase, Phase::ReadingAhead);
    world.pass(10_000);
    assert_eq!(world.counts(), (6, 6));
    assert_eq!(
        world.kinds(),
        [Kind::WriteDown, Kind::Turn, Kind::WriteUp],
        "R never moved"
    );
}

#[test]
fn fault_2_a_dead_group_does_not_block_once_its_commits_are_old() {
    let mut world = calm(4);
    world.instances("dead", 1);
    world.read("dead");
    world.instances("dead", 0);
    world.produce(3);
    world.read("g");
    world.instances("g", 2);
    world.pass(7 * MINUTE_MS);
    let Phase::Postponed(blocked) = &world.queues.phase else {
        panic!("{:?}", world.queues);
    };
    assert_eq!(
        (blocked.group.as_str(), blocked.queue, blocked.unread),
        ("dead", 3, 1)
    );
    world.pass(world.settings.group_ttl_ms);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn fault_2_a_group_without_an_offset_does_not_block_an_empty_queue() {
    let mut world = calm(4);
    world.instances("fresh", 1);
    world.instances("g", 2);
    world.pass(7 * MINUTE_MS);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn fault_2_a_group_without_any_commit_blocks_only_with_members() {
    let mut world = calm(4);
    world.produce(3);
    world.read("g");
    world.instances("fresh", 1);
    world.instances("g", 2);
    world.pass(7 * MINUTE_MS);
    assert!(matches!(&world.queues.phase, Phase::Postponed(blocked) if blocked.group == "fresh"));
    world.instances("fresh", 0);
    world.pass(5 * MINUTE_MS);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn fault_3_no_silent_give_up_it_is_told_once_checked_ever_more_rarely_and_can_be_forced() {
    let mut world = calm(4);
    world.produce(3);
    world.instances("g", 2);
    world.pass(7 * MINUTE_MS);
    world.checks.take();
    world.pass(24 * 60 * MINUTE_MS);
    let checks = world.checks.take();
    assert!(
        (250..400).contains(&checks),
        "every five minutes in the end: {checks}"
    );
    let told = world.told.last().unwrap().sentence();
    assert_eq!(
        told,
        "4 queues stay assigned, though 2 are written, since group g has 1 record of queue 3 to read"
    );
    assert_eq!(world.kinds(), [Kind::WriteDown, Kind::Postpone]);
    world.force();
    assert_eq!(world.counts(), (2, 2));
    assert!(
        world.told[0]
            .sentence()
            .contains("although group g has 1 record of queue 3")
    );
}

#[test]
fn fault_3_a_postponed_topic_goes_on_soon_after_it_was_read() {
    let mut world = calm(4);
    world.produce(3);
    world.instances("g", 2);
    world.pass(6 * MINUTE_MS + 3_000);
    assert!(matches!(world.queues.phase, Phase::Postponed(_)));
    world.read("g");
    world.pass(8_000);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn fault_4_a_count_past_the_cap_is_brought_to_the_cap() {
    let mut world = calm(3);
    world.instances("g", 2_000);
    world.pass(10_000);
    assert_eq!(world.counts(), (64, 64));
}

#[test]
fn fault_5_no_lost_tasks_a_hundred_triggers_leave_one_phase_with_one_deadline() {
    let mut world = World::new();
    for count in 1..=50 {
        world.instances("g", count);
    }
    assert_eq!(world.counts(), (1, 50));
    let next_ms = world.watch.next_ms(&world.queues, &world.settings);
    assert_eq!(next_ms, Some(world.now.mono_ms + 10_000));
    world.pass(10_000);
    assert_eq!(world.counts(), (50, 50));
    assert_eq!(world.watch.next_ms(&world.queues, &world.settings), None);
}

#[test]
fn fault_5_a_long_drain_accumulates_nothing() {
    let mut world = calm(4);
    world.produce(3);
    world.instances("g", 2);
    for _ in 0..100 {
        world.pass(MINUTE_MS);
        world.instances("g", 2);
    }
    assert_eq!(world.kinds(), [Kind::WriteDown, Kind::Postpone]);
}

#[test]
fn fault_6_no_ineffective_lock_up_and_down_cannot_interleave() {
    let mut world = calm(8);
    for (count, wait_ms) in [(4, 70_000), (6, 3_000), (3, 90_000), (8, 1_000), (2, 400_000)] {
        world.instances("g", count);
        world.pass(wait_ms);
        world.check();
    }
    world.pass(10 * MINUTE_MS);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn fault_7_no_abandoned_read_shrink_it_ends_without_another_event() {
    let mut world = calm(6);
    world.instances("g", 3);
    world.pass(2 * MINUTE_MS);
    world.instances("g", 5);
    assert_eq!(world.counts(), (3, 6));
    world.pass(10_000);
    assert_eq!(world.counts(), (5, 6), "the sixth queue is still to be drained");
    world.pass(5 * MINUTE_MS);
    assert_eq!(world.counts(), (5, 5));
}

#[test]
fn fault_7_a_wish_that_falls_while_reading_ahead_leaves_nothing_behind() {
    let mut world = calm(2);
    world.instances("g", 6);
    world.pass(5_000);
    assert_eq!(world.counts(), (2, 6));
    world.instances("g", 2);
    world.pass(10_000);
    // The grace was not over when the delay was.
    world.pass(10 * MINUTE_MS);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn fault_8_when_everyone_leaves_the_counts_stay() {
    let mut world = calm(6);
    world.instances("g", 0);
    world.pass(60 * MINUTE_MS);
    assert_eq!(world.counts(), (6, 6));
    world.instances("g", 6);
    assert_eq!(world.kinds(), []);
}

#[test]
fn fault_10_a_queue_that_is_not_written_any_more_still_counts_as_unread() {
    let mut world = calm(4);
    assert_eq!(world.produce(3), 3);
    world.instances("g", 2);
    world.pass(2 * MINUTE_MS);
    assert_eq!(world.produce(3), 1, "stored in id mod W");
    let blocked = world.blocked(2..4).unwrap();
    assert_eq!((blocked.queue, blocked.unread), (3, 1));
}

#[test]
fn a_configured_delay_of_thirty_minutes_is_not_cut_to_ten() {
    let mut world = calm(4);
    world.settings.drain_delay_ms = 30 * MINUTE_MS;
    world.instances("g", 2);
    world.pass(30 * MINUTE_MS);
    assert_eq!(world.counts(), (2, 4));
    world.pass(MINUTE_MS);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn a_delay_that_is_changed_holds_for_the_phase_that_runs() {
    let mut world = calm(2);
    world.instances("g", 4);
    world.settings.write_delay_ms = 2_000;
    world.pass(2_000);
    assert_eq!(world.counts(), (4, 4));
}

#[test]
fn a_restart_goes_on_with_what_is_left_of_the_delay() {
    let mut world = calm(6);
    world.instances("g", 3);
    world.pass(3 * MINUTE_MS);
    assert_eq!(world.queues.phase, Phase::Draining);
    world.restart(MINUTE_MS as i64);
    world.pass(MINUTE_MS);
    assert_eq!(world.counts(), (3, 6));
    world.pass(MINUTE_MS);
    assert_eq!(world.counts(), (3, 3));
}

#[test]
fn a_restart_begins_the_grace_anew() {
    let mut world = calm(6);
    world.instances("g", 5);
    world.pass(50_000);
    world.restart(30_000);
    world.pass(50_000);
    world.instances("g", 6);
    assert_eq!(world.kinds(), []);
}

#[test]
fn a_wall_clock_that_was_set_back_does_not_lengthen_a_phase_beyond_its_delay() {
    let mut world = calm(2);
    world.instances("g", 4);
    world.restart(-86_400_000);
    world.pass(10_000);
    assert_eq!(world.counts(), (4, 4));
}

#[test]
fn an_operators_wish_goes_before_the_instances_and_needs_no_grace() {
    let mut world = calm(6);
    world.wish(Some(2));
    assert_eq!(world.counts(), (2, 6));
    world.instances("g", 9);
    world.pass(6 * MINUTE_MS);
    assert_eq!(world.counts(), (2, 2));
    world.wish(None);
    world.pass(10_000);
    assert_eq!(world.counts(), (9, 9));
    let sentence = world
        .told
        .iter()
        .find(|told| told.kind == Kind::ReadUp)
        .unwrap()
        .sentence();
    assert_eq!(
        sentence,
        "9 queues are read after 2; 2 are written, and 9 will be in 10 s, since the largest group, g, has 9 instances"
    );
}

#[test]
fn a_single_queue_is_told_as_one() {
    let mut world = World::new();
    world.instances("g", 2);
    let told: Vec<String> = world
        .told
        .iter()
        .map(super::decision::Decision::sentence)
        .collect();
    assert_eq!(
        told,
        [
            "1 queue is read and 1 written from now on, since elastic.mode is queues",
            "2 queues are read after 1; 1 is written, and 2 will be in 10 s, since the largest group, g, has 2 instances"
        ]
    );
}
