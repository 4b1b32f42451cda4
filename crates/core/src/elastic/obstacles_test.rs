//! What stands in the way of dividing a share, and by what means it is divided.

use super::cut_test::{Keys, workload};
use super::harness::{TOPIC, World, divided, even, joined, kinds, per_slot, refusals, shared_by, shares};
use super::*;
use anabranch_wire::slot::SLOTS;

#[test]
fn where_most_was_handed_out_the_owner_gives_up_once() {
    let mut world = shared_by(1, 10_000);
    let part = world.parts.values_mut().next().unwrap();
    part.handed_out = std::mem::replace(&mut part.records, vec![0; SLOTS]);
    world.join("new");
    let plan = world.step();
    let change = &plan.decisions[0].change;
    assert!(change.moves.iter().all(|moved| moved.how == How::Regrant));
    assert_eq!(change.moves[0].to, "m0", "it gets its own part back");
    assert!(world.load("m0").abs_diff(world.load("new")) <= 200);
}

#[test]
fn a_member_that_went_back_or_may_have_at_a_restart_gives_up_what_was_handed_out_to_it() {
    let rewound = |handed_out: u64| {
        joined(shared_by(1, 10_000), |snapshot| {
            for share in shares(snapshot) {
                share.rewound = true;
                share.handed_out = handed_out;
            }
        })
    };
    let plan = rewound(9_000);
    assert_eq!(kinds(&plan), [Kind::Split]);
    let moves = &plan.decisions[0].change.moves;
    assert!(moves.iter().all(|moved| moved.how == How::Regrant));
    // Where little was handed out, its commits will soon clear it up without an interruption.
    assert_eq!(refusals(&rewound(100)), ["rewound"]);
}

#[test]
fn where_commits_are_rare_the_owner_gives_up_once() {
    let hand_out = |snapshot: &mut Snapshot| {
        for share in shares(snapshot) {
            share.handed_out = 10;
        }
    };
    let rare = joined(shared_by(1, 10_000), |snapshot| {
        hand_out(snapshot);
        snapshot.members.get_mut("m0").unwrap().commits.interval_ms = Some(20_000);
    });
    assert!(
        rare.decisions[0]
            .change
            .moves
            .iter()
            .all(|moved| moved.how == How::Regrant)
    );
    let usual = joined(shared_by(1, 10_000), hand_out);
    assert!(
        usual.decisions[0]
            .change
            .moves
            .iter()
            .all(|moved| moved.how == How::Release)
    );
}

/// All of m0's share is on its way to the newcomer, for so long.
fn send_all(snapshot: &mut Snapshot, for_ms: u64) {
    let since_ms = snapshot.now.mono_ms - for_ms;
    let divided = divided(snapshot);
    let share = divided.shares.get_mut("m0").unwrap();
    let slots = std::mem::take(&mut share.slots);
    divided.transits.push(Transit {
        slots,
        source: "m0".into(),
        target: Some("new".into()),
        since_ms,
        remaining: 5_000,
    });
}

/// Its last commit never gets a successor, which is what would prove it. It is idle, not drained, if all else that it had went
/// to others meanwhile.
#[test]
fn slots_of_a_source_that_has_nothing_left_to_do_go_back_soon() {
    for state in [MemberState::Drained, MemberState::Idle] {
        let transit = |since_ms: u64| {
            joined(shared_by(2, 10_000), |snapshot| {
                let since_ms = snapshot.now.mono_ms - since_ms;
                let source = snapshot.members.get_mut("m0").unwrap();
                (source.state, source.since_ms) = (state, since_ms);
                send_all(snapshot, 5_000);
            })
        };
        assert!(transit(999).decisions.is_empty(), "{state:?}");
        assert_eq!(kinds(&transit(1_000)), [Kind::Return], "{state:?}");
    }
}

#[test]
fn a_fence_that_does_not_open_is_undone_and_then_not_tried_again() {
    let transit = |for_ms: u64| joined(shared_by(2, 10_000), |snapshot| send_all(snapshot, for_ms));
    assert!(transit(29_999).decisions.is_empty());
    let plan = transit(30_000);
    assert_eq!(kinds(&plan), [Kind::Return]);
    assert_eq!(plan.decisions[0].change.moves[0].to, "m0");
    // The next attempt is a give-up; and none, if the member never commits.
    let again = |commits: u64| {
        joined(shared_by(1, 10_000), |snapshot| {
            snapshot.members.get_mut("m0").unwrap().commits.seen = commits;
            let since_ms = snapshot.now.mono_ms - 60_000;
            for share in shares(snapshot) {
                share.handed_out = 10;
                share.returned_ms = Some(since_ms);
            }
        })
    };
    assert!(
        again(5).decisions[0]
            .change
            .moves
            .iter()
            .all(|moved| moved.how == How::Regrant)
    );
    assert_eq!(refusals(&again(0)), ["never-commits"]);
}

/// Facts that stand in the way, each with its reason.
#[test]
fn what_stands_in_the_way_is_told() {
    type Change = Box<dyn FnOnce(&mut Snapshot)>;
    let share = |change: fn(&mut ShareView)| -> Change {
        Box::new(move |snapshot: &mut Snapshot| shares(snapshot).for_each(change))
    };
    let topic = |change: fn(&mut TopicView)| -> Change {
        Box::new(move |snapshot: &mut Snapshot| change(snapshot.topics.get_mut(&TOPIC).unwrap()))
    };
    let owner = |change: fn(&mut MemberView)| -> Change {
        Box::new(move |snapshot: &mut Snapshot| change(snapshot.members.get_mut("m0").unwrap()))
    };
    let cases: Vec<(&str, Change)> = vec![
        ("rewound", share(|share| share.rewound = true)),
        ("blind", share(|share| share.blind = true)),
        ("chain-full", share(|share| share.chain_full = true)),
        (
            "excluded",
            topic(|topic| topic.excluded = Some("it is compacted".into())),
        ),
        ("queues", topic(|topic| topic.settings.mode = Mode::Queues)),
        ("off", topic(|topic| topic.settings.mode = Mode::Off)),
        ("cooldown", topic(|topic| topic.divided_ms = Some(999_500))),
        ("slices-max", topic(|topic| topic.settings.slices_max = 1)),
        (
            "ids-exhausted",
            topic(|topic| topic.partitions.values_mut().for_each(|p| p.ids_left = 1)),
        ),
        (
            "below-threshold",
            topic(|topic| topic.settings.split_min_remaining = 10_001),
        ),
        ("owner-absent", owner(|owner| owner.state = MemberState::Away)),
        ("owner-absent", owner(|owner| owner.state = MemberState::Leaving)),
        (
            "never-commits",
            owner(|owner| {
                owner.uncommitted_ms = Some(900_000);
                owner.commits = Commits::default();
            }),
        ),
        (
            "ineligible",
            owner(|owner| owner.eligibility = Eligibility::No("it is old".into())),
        ),
        (
            "paused",
            Box::new(|snapshot: &mut Snapshot| snapshot.paused = true),
        ),
        (
            "nothing-to-serve",
            Box::new(|snapshot: &mut Snapshot| {
                snapshot.members.get_mut("new").unwrap().topics.clear();
            }),
        ),
    ];
    for (code, change) in cases {
        let plan = joined(shared_by(1, 10_000), change);
        let divides = plan
            .decisions
            .iter()
            .any(|decision| decision.change.kind == Kind::Split);
        assert!(!divides, "{code}");
        assert_eq!(refusals(&plan), [code], "{code}");
        assert!(plan.refusals[0].sentence().len() > 20);
    }
}

#[test]
fn a_larger_share_that_cannot_be_divided_is_passed_over_by_name() {
    let mut world = World::new()
        .plain(0, "a", even(90_000))
        .plain(1, "b", even(20_000));
    let records = per_slot(&workload(Keys::Uniform, 1, 90_000, 2));
    world.parts.get_mut(&(TOPIC, 0)).unwrap().records = records;
    for id in ["a", "b", "c"] {
        world.join(id);
    }
    let plan = world.plan();
    let passed = &plan.decisions[0].change.passed_over;
    assert_eq!(
        (passed[0].owner.as_str(), passed[0].why_not.code()),
        ("a", "hot-key")
    );
    assert_eq!(plan.decisions[0].change.moves[0].from.as_deref(), Some("b"));
}

#[test]
fn what_was_not_counted_is_asked_for_and_then_decided() {
    let mut world = World::new().plain(0, "a", even(10_000)).member("a").member("b");
    world.counted = false;
    let plan = world.plan();
    assert!(plan.decisions.is_empty() && plan.refusals.is_empty());
    let asked = Uncounted {
        topic: TOPIC,
        partition: 0,
        member: Some("a".into()),
    };
    assert_eq!(plan.uncounted, [asked]);
    world.counted = true;
    assert_eq!(kinds(&world.plan()), [Kind::Split]);
}
