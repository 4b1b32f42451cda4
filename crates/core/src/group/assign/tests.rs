//! Properties of the three plans.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn id(number: u8) -> TopicId {
    let mut raw = [0; 16];
    raw[0] = number;
    TopicId(raw)
}

fn problem(topics: &[i32], members: &[(&str, &[u8])]) -> Problem {
    let topics = (0u8..)
        .zip(topics)
        .map(|(number, &partitions)| Topic {
            id: id(number),
            partitions,
            closed: BTreeSet::new(),
            is_queued: false,
        })
        .collect();
    let seeker = |wants: &[u8]| Seeker {
        topics: wants.iter().map(|n| id(*n)).collect(),
        ..Seeker::default()
    };
    Problem {
        topics,
        members: members
            .iter()
            .map(|(name, wants)| ((*name).to_owned(), seeker(wants)))
            .collect(),
        shared: BTreeSet::new(),
    }
}

fn of(plan: &Plan, member: &str) -> Vec<(u8, Vec<i32>)> {
    plan[member]
        .iter()
        .map(|(topic, set)| (topic.0[0], set.iter().copied().collect()))
        .collect()
}

fn load(partitions: &Partitions) -> usize {
    partitions.values().map(BTreeSet::len).sum()
}

/// Every partition that somebody wants is at exactly one member that wants it, and nothing else is.
fn check_plan(problem: &Problem, plan: &Plan) {
    assert!(plan.keys().eq(problem.members.keys()));
    for topic in &problem.topics {
        let wanted = problem
            .members
            .values()
            .any(|seeker| seeker.topics.contains(&topic.id));
        let mut given: Vec<i32> = plan
            .values()
            .flat_map(|has| has.get(&topic.id).into_iter().flatten().copied())
            .collect();
        given.sort_unstable();
        let expected = if wanted { problem.open(topic) } else { Vec::new() };
        assert_eq!(given, expected);
    }
    for (member, has) in plan {
        assert!(
            has.keys()
                .all(|topic| problem.members[member].topics.contains(topic))
        );
        assert!(has.values().all(|set| !set.is_empty()), "no empty entries");
    }
}

#[test]
fn range_gives_runs_and_aligns_topics() {
    let plan = assign(
        Assignor::Range,
        &problem(&[5, 5, 1], &[("a", &[0, 1, 2]), ("b", &[0, 1]), ("c", &[2])]),
    );
    assert_eq!(
        of(&plan, "a"),
        [(0, vec![0, 1, 2]), (1, vec![0, 1, 2]), (2, vec![0])]
    );
    assert_eq!(of(&plan, "b"), [(0, vec![3, 4]), (1, vec![3, 4])]);
    assert_eq!(of(&plan, "c"), []);
}

#[test]
fn round_robin_goes_in_turn_and_skips_who_does_not_want() {
    let plan = assign(
        Assignor::RoundRobin,
        &problem(&[3, 2], &[("a", &[0, 1]), ("b", &[0]), ("c", &[0, 1])]),
    );
    assert_eq!(of(&plan, "a"), [(0, vec![0]), (1, vec![0])]);
    assert_eq!(of(&plan, "b"), [(0, vec![1])]);
    assert_eq!(of(&plan, "c"), [(0, vec![2]), (1, vec![1])]);
}

#[test]
fn static_members_are_ordered_by_instance() {
    let mut with = problem(&[2], &[("z", &[0]), ("a", &[0])]);
    with.members.get_mut("z").unwrap().instance_id = Some("i1".to_owned());
    with.members.get_mut("a").unwrap().instance_id = Some("i2".to_owned());
    let plan = assign(Assignor::Range, &with);
    assert_eq!(
        of(&plan, "z"),
        [(0, vec![0])],
        "instance i1 is first, whatever its member id"
    );
}

#[test]
fn sticky_balances_unequal_subscriptions() {
    // Only c wants topic 1; a and b share topic 0 between them.
    let plan = assign(
        Assignor::Sticky,
        &problem(&[6, 3], &[("a", &[0]), ("b", &[0]), ("c", &[0, 1])]),
    );
    assert_eq!(plan.values().map(load).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(of(&plan, "c"), [(1, vec![0, 1, 2])]);
}

#[test]
fn who_had_most_keeps_the_odd_one() {
    let mut problem = problem(&[3], &[("a", &[0]), ("b", &[0])]);
    let had = |list: &[i32]| Partitions::from([(id(0), list.iter().copied().collect())]);
    problem.members.get_mut("a").unwrap().previous = had(&[0]);
    problem.members.get_mut("b").unwrap().previous = had(&[1, 2]);
    let plan = assign(Assignor::Sticky, &problem);
    assert_eq!(
        (of(&plan, "a"), of(&plan, "b")),
        (vec![(0, vec![0])], vec![(0, vec![1, 2])])
    );
}

/// How many queues of a topic each member has that subscribes to it.
fn queues_of(problem: &Problem, plan: &Plan, topic: u8) -> Vec<usize> {
    let wants = |member: &&String| problem.members[*member].topics.contains(&id(topic));
    let members = plan.keys().filter(wants);
    members
        .map(|member| plan[member].get(&id(topic)).map_or(0, BTreeSet::len))
        .collect()
}

#[test]
fn each_member_has_as_many_queues_of_each_topic() {
    let mut problem = problem(&[3, 3], &[("a", &[0, 1]), ("b", &[0, 1]), ("c", &[0, 1])]);
    for topic in &mut problem.topics {
        topic.is_queued = true;
    }
    // The total is right, and what everybody had is kept where the number of partitions is all that counts.
    for (member, queues, others) in [
        ("a", vec![0, 1], vec![]),
        ("b", vec![2], vec![0]),
        ("c", vec![], vec![1, 2]),
    ] {
        let had = [(id(0), queues), (id(1), others)].map(|(topic, list)| (topic, list.into_iter().collect()));
        let mut had: Partitions = had.into();
        had.retain(|_, set: &mut BTreeSet<i32>| !set.is_empty());
        problem.members.get_mut(member).unwrap().previous = had;
    }
    let plan = assign(Assignor::Sticky, &problem);
    for topic in [0, 1] {
        assert_eq!(queues_of(&problem, &plan, topic), [1, 1, 1], "{plan:?}");
    }
    assert_eq!(
        of(&plan, "b"),
        [(0, vec![2]), (1, vec![0])],
        "who had its share keeps it"
    );
}

#[test]
fn who_has_the_odd_queue_of_one_topic_has_not_that_of_the_next() {
    let mut problem = problem(&[3, 3], &[("a", &[0, 1]), ("b", &[0, 1])]);
    for topic in &mut problem.topics {
        topic.is_queued = true;
    }
    let plan = assign(Assignor::Sticky, &problem);
    assert_eq!(plan.values().map(load).collect::<Vec<_>>(), [3, 3], "{plan:?}");
}

#[test]
fn names_lead_to_plans() {
    for (name, assignor) in [
        ("range", Assignor::Range),
        ("roundrobin", Assignor::RoundRobin),
        ("RoundRobinAssigner", Assignor::RoundRobin),
        ("sticky", Assignor::Sticky),
        ("cooperative-sticky", Assignor::Sticky),
    ] {
        assert_eq!(Assignor::of_protocol(name), Some(assignor), "{name}");
        assert_eq!(is_eager(name), name != "cooperative-sticky", "{name}");
    }
    assert_eq!(Assignor::of_protocol("stream"), None);
    assert_eq!(Assignor::of_server_name("roundrobin"), None);
    assert_eq!(
        Assignor::of_server_name(Assignor::Sticky.name()),
        Some(Assignor::Sticky)
    );
}

/// Applies a plan as the previous one.
fn settle(problem: &mut Problem, plan: &Plan) {
    for (member, seeker) in &mut problem.members {
        seeker.previous = plan.get(member).cloned().unwrap_or_default();
    }
}

/// How many partitions somebody had before and has no more.
fn moved(before: &Plan, after: &Plan) -> usize {
    let lost = |member: &String, has: &Partitions| -> usize {
        let now = after.get(member);
        has.iter()
            .map(|(topic, set)| {
                set.difference(now.and_then(|now| now.get(topic)).unwrap_or(&BTreeSet::new()))
                    .count()
            })
            .sum()
    };
    before.iter().map(|(member, has)| lost(member, has)).sum()
}

fn spread(plan: &Plan) -> usize {
    let loads: Vec<usize> = plan.values().map(load).collect();
    loads.iter().max().unwrap_or(&0) - loads.iter().min().unwrap_or(&0)
}

fn any_problem() -> impl Strategy<Value = Problem> {
    let topics = prop::collection::vec(1..9i32, 1..5);
    let members = prop::collection::btree_map("[a-e][a-e]", prop::collection::btree_set(0..4u8, 0..4), 1..7);
    let shared = prop::collection::btree_set((0..4u8, 0..9i32), 0..4);
    (topics, members, shared).prop_map(|(topics, members, shared)| {
        let count = topics.len();
        let topics: Vec<Topic> = (0u8..)
            .zip(topics)
            .map(|(number, partitions)| Topic {
                id: id(number),
                partitions,
                closed: BTreeSet::new(),
                is_queued: false,
            })
            .collect();
        let exists = |number: &u8| usize::from(*number) < count;
        let members: BTreeMap<String, Seeker> = members
            .into_iter()
            .map(|(name, wants)| {
                let topics = wants.into_iter().filter(exists).map(id).collect();
                (
                    name,
                    Seeker {
                        topics,
                        ..Seeker::default()
                    },
                )
            })
            .collect();
        let shared = shared
            .into_iter()
            .map(|(topic, partition)| (id(topic), partition));
        Problem {
            topics,
            members,
            shared: shared.collect(),
        }
    })
}

/// Some of its topics are in queue mode, where some of the queues are not assigned.
fn with_queues(problem: Problem) -> impl Strategy<Value = Problem> {
    let count = problem.topics.len();
    let queued = prop::collection::vec(proptest::option::of(1..9i32), count);
    queued.prop_map(move |queued| {
        let mut problem = problem.clone();
        for (topic, read) in problem.topics.iter_mut().zip(queued) {
            topic.is_queued = read.is_some();
            topic.closed = read
                .map(|read| (read..topic.partitions).collect())
                .unwrap_or_default();
        }
        problem
    })
}

fn equal_wishes(mut problem: Problem) -> Problem {
    let all: BTreeSet<TopicId> = problem.topics.iter().map(|topic| topic.id).collect();
    for seeker in problem.members.values_mut() {
        seeker.topics.clone_from(&all);
    }
    problem
}

proptest! {
    #[test]
    fn every_plan_is_complete_and_repeatable(problem in any_problem(), previous in any_problem()) {
        let mut problem = problem;
        settle(&mut problem, &assign(Assignor::Sticky, &previous));
        for assignor in [Assignor::Sticky, Assignor::Range, Assignor::RoundRobin] {
            let plan = assign(assignor, &problem);
            check_plan(&problem, &plan);
            prop_assert_eq!(&plan, &assign(assignor, &problem));
        }
    }

    /// Whatever members subscribe to besides, and whatever they had.
    #[test]
    fn the_queues_of_each_topic_are_spread_evenly(
        problem in any_problem().prop_flat_map(with_queues),
        previous in any_problem(),
    ) {
        let mut problem = problem;
        settle(&mut problem, &assign(Assignor::Sticky, &previous));
        for assignor in [Assignor::Sticky, Assignor::Range, Assignor::RoundRobin] {
            let plan = assign(assignor, &problem);
            check_plan(&problem, &plan);
            for topic in problem.topics.iter().filter(|topic| topic.is_queued) {
                let queues = queues_of(&problem, &plan, topic.id.0[0]);
                let (most, least) = (queues.iter().max().unwrap_or(&0), queues.iter().min().unwrap_or(&0));
                prop_assert!(most - least <= 1, "{assignor:?} {queues:?}");
            }
        }
        let plan = assign(Assignor::Sticky, &problem);
        settle(&mut problem, &plan);
        prop_assert_eq!(assign(Assignor::Sticky, &problem), plan, "what is settled stays");
    }

    /// The queues of a topic move no more than they must: who comes takes them from others only, who goes leaves its own.
    #[test]
    fn queues_move_no_more_than_they_must(problem in any_problem().prop_map(equal_wishes).prop_flat_map(with_queues)) {
        let mut problem = problem;
        problem.topics.retain(|topic| topic.is_queued);
        let problem = &mut equal_wishes(problem);
        let before = assign(Assignor::Sticky, problem);
        settle(problem, &before);
        let topics = problem.topics.iter().map(|topic| topic.id).collect();
        problem.members.insert("new".to_owned(), Seeker { topics, ..Seeker::default() });
        let after = assign(Assignor::Sticky, problem);
        prop_assert_eq!(moved(&before, &after), load(&after["new"]));
        settle(problem, &after);
        let (gone, _) = problem.members.pop_first().unwrap();
        let last = assign(Assignor::Sticky, problem);
        prop_assert_eq!(moved(&after, &last), load(&after[&gone]));
    }

    #[test]
    fn equal_wishes_give_equal_loads(problem in any_problem().prop_map(equal_wishes), previous in any_problem()) {
        let mut problem = problem;
        settle(&mut problem, &assign(Assignor::Sticky, &previous));
        prop_assert!(spread(&assign(Assignor::Sticky, &problem)) <= 1);
        prop_assert!(spread(&assign(Assignor::RoundRobin, &problem)) <= 1);
    }

    #[test]
    fn no_single_move_improves_a_sticky_plan(problem in any_problem()) {
        let plan = assign(Assignor::Sticky, &problem);
        for has in plan.values() {
            for (to, seeker) in &problem.members {
                let could = has.keys().any(|topic| seeker.topics.contains(topic));
                prop_assert!(!could || load(has) <= load(&plan[to]) + 1);
            }
        }
    }

    #[test]
    fn a_settled_sticky_plan_stays(problem in any_problem()) {
        let mut problem = problem;
        let plan = assign(Assignor::Sticky, &problem);
        settle(&mut problem, &plan);
        prop_assert_eq!(assign(Assignor::Sticky, &problem), plan);
    }

    #[test]
    fn a_leaver_moves_only_its_own(problem in any_problem().prop_map(equal_wishes)) {
        let mut problem = problem;
        let before = assign(Assignor::Sticky, &problem);
        settle(&mut problem, &before);
        let (gone, _) = problem.members.pop_first().unwrap();
        let after = assign(Assignor::Sticky, &problem);
        prop_assert_eq!(moved(&before, &after), load(&before[&gone]));
    }

    #[test]
    fn a_newcomer_draws_at_most_its_share(problem in any_problem().prop_map(equal_wishes)) {
        let mut problem = problem;
        let before = assign(Assignor::Sticky, &problem);
        settle(&mut problem, &before);
        let topics = problem.topics.iter().map(|topic| topic.id).collect();
        problem.members.insert("new".to_owned(), Seeker { topics, ..Seeker::default() });
        let after = assign(Assignor::Sticky, &problem);
        prop_assert_eq!(moved(&before, &after), load(&after["new"]), "others only give, to the newcomer");
        let total: usize = before.values().map(load).sum();
        prop_assert!(load(&after["new"]) <= total / problem.members.len() + 1);
    }
}
