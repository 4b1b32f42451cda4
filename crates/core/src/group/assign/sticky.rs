//! Sticky: everybody keeps what they had as far as the balance allows, then the rest is dealt to whoever has least.
//!
//! With equal subscriptions each member ends with floor or ceil of the mean. Those who had most keep the ceil, and a
//! member gives up only what exceeds its share: a leaver moves its own partitions only, a newcomer draws at most the
//! excess. With unequal subscriptions the same greedy deal is followed by single moves from a fuller to an emptier
//! subscriber of the same topic, until no move improves the balance.
//!
//! A topic in queue mode is balanced by itself, before the others: its queues are as many as there are instances, so that
//! each is to have one of them, whatever it has of other topics. Where the members cannot have equally many, those get one
//! more that have least of the topics before.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Partitions, Plan, Problem, Topic, give};
use crate::ids::TopicId;

pub(super) fn assign(problem: &Problem) -> Plan {
    let (queued, others): (Vec<&Topic>, Vec<&Topic>) =
        problem.topics.iter().partition(|topic| topic.is_queued);
    let mut plan = problem.empty_plan();
    if queued.is_empty() {
        return balanced(problem, &plan);
    }
    let mut parts: Vec<Vec<&Topic>> = queued.into_iter().map(|topic| vec![topic]).collect();
    parts.push(others);
    for topics in parts {
        for (id, mut has) in balanced(&only(problem, &topics), &plan) {
            plan.entry(id).or_default().append(&mut has);
        }
    }
    plan
}

/// What of a problem some of its topics are.
fn only(problem: &Problem, topics: &[&Topic]) -> Problem {
    let ids: BTreeSet<TopicId> = topics.iter().map(|topic| topic.id).collect();
    let mut members = problem.members.clone();
    members.retain(|_, seeker| {
        seeker.topics.retain(|topic| ids.contains(topic));
        !seeker.topics.is_empty()
    });
    Problem {
        topics: topics.iter().map(|topic| (*topic).clone()).collect(),
        members,
        shared: problem.shared.clone(),
    }
}

/// The plan of a problem that is balanced as a whole. What members have besides decides between those that are equal.
fn balanced(problem: &Problem, besides: &Plan) -> Plan {
    let mut plan = problem.empty_plan();
    let mut open = keep(problem, &mut plan);
    let shares = equal_shares(problem, &plan, besides);
    for (id, share) in shares.iter().flatten() {
        trim(&mut plan, id, *share, &mut open);
    }
    deal(problem, &mut plan, besides, &open);
    if shares.is_none() {
        level(problem, &mut plan);
    }
    plan
}

/// Gives everybody what the previous plan gave it, if that is still possible; returns the partitions left over.
fn keep(problem: &Problem, plan: &mut Plan) -> BTreeSet<(TopicId, i32)> {
    let mut open = BTreeSet::new();
    let wanted: BTreeSet<TopicId> = problem
        .members
        .values()
        .flat_map(|seeker| seeker.topics.iter().copied())
        .collect();
    for topic in problem.topics.iter().filter(|topic| wanted.contains(&topic.id)) {
        open.extend(
            problem
                .open(topic)
                .into_iter()
                .map(|partition| (topic.id, partition)),
        );
    }
    for (id, seeker) in &problem.members {
        for (&topic, partitions) in &seeker.previous {
            if !seeker.topics.contains(&topic) {
                continue;
            }
            for &partition in partitions {
                if open.remove(&(topic, partition)) {
                    give(plan, id, topic, partition);
                }
            }
        }
    }
    open
}

/// How much each member may keep at most, if all subscribe to the same topics.
fn equal_shares(problem: &Problem, plan: &Plan, besides: &Plan) -> Option<BTreeMap<String, usize>> {
    let mut seekers = problem.members.values();
    let first = &seekers.next()?.topics;
    if !seekers.all(|seeker| seeker.topics == *first) {
        return None;
    }
    let total: usize = problem
        .topics
        .iter()
        .filter(|topic| first.contains(&topic.id))
        .map(|topic| problem.open(topic).len())
        .sum();
    let (each, more) = (total / problem.members.len(), total % problem.members.len());
    let mut by_load: Vec<_> = plan.keys().collect();
    by_load.sort_by_key(|id| (Reverse(load_of(plan, id)), load_of(besides, id), *id));
    let share = |(rank, id): (usize, &String)| (id.clone(), each + usize::from(rank < more));
    Some(by_load.into_iter().enumerate().map(share).collect())
}

/// Takes the highest partitions of a member away until it has no more than its share.
fn trim(plan: &mut Plan, id: &str, share: usize, open: &mut BTreeSet<(TopicId, i32)>) {
    let Some(has) = plan.get_mut(id) else { return };
    for _ in share..load(has) {
        // From the topic it has most of, so that what remains is spread over the topics.
        let Some(topic) = has
            .iter()
            .max_by_key(|(topic, set)| (set.len(), **topic))
            .map(|(t, _)| *t)
        else {
            return;
        };
        let Some(set) = has.get_mut(&topic) else { return };
        if let Some(partition) = set.pop_last() {
            open.insert((topic, partition));
        }
        if set.is_empty() {
            has.remove(&topic);
        }
    }
}

/// Deals the open partitions: topics with the fewest subscribers first, each to its emptiest subscriber.
fn deal(problem: &Problem, plan: &mut Plan, besides: &Plan, open: &BTreeSet<(TopicId, i32)>) {
    let takers = takers(problem);
    let mut order: Vec<_> = open.iter().copied().collect();
    order.sort_by_key(|(topic, partition)| (takers.get(topic).map_or(0, Vec::len), *topic, *partition));
    let mut queues: BTreeMap<&Vec<&String>, BTreeSet<(Loads, &String)>> = BTreeMap::new();
    let loads = |id| (load_of(plan, id), load_of(besides, id));
    let mut loads: BTreeMap<&String, Loads> = problem.members.keys().map(|id| (id, loads(id))).collect();
    for (topic, partition) in order {
        let Some(group) = takers.get(&topic) else { continue };
        // One queue per distinct set of subscribers; entries that another queue made stale are refreshed.
        let queue = queues
            .entry(group)
            .or_insert_with(|| group.iter().map(|id| (count(&loads, id), *id)).collect());
        while let Some((known, id)) = queue.pop_first() {
            let now = count(&loads, id);
            if known != now {
                queue.insert((now, id));
                continue;
            }
            give(plan, id, topic, partition);
            let more = (now.0 + 1, now.1);
            loads.insert(id, more);
            queue.insert((more, id));
            break;
        }
    }
}

/// Moves single partitions from a fuller to an emptier subscriber of the topic while that improves the balance.
/// Each move lowers the sum of squared loads, so it ends.
fn level(problem: &Problem, plan: &mut Plan) {
    let takers = takers(problem);
    let mut loads: BTreeMap<String, usize> = plan.iter().map(|(id, has)| (id.clone(), load(has))).collect();
    loop {
        let mut moved = false;
        for (topic, group) in &takers {
            while let Some((from, to)) = improvement(*topic, group, plan, &loads) {
                let Some(set) = plan.get_mut(&from).and_then(|has| has.get_mut(topic)) else {
                    break;
                };
                let Some(partition) = set.pop_last() else { break };
                if set.is_empty()
                    && let Some(has) = plan.get_mut(&from)
                {
                    has.remove(topic);
                }
                give(plan, &to, *topic, partition);
                *loads.entry(from).or_default() -= 1;
                *loads.entry(to).or_default() += 1;
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// The fullest holder and the emptiest subscriber of a topic, if they are more than one apart.
fn improvement(
    topic: TopicId,
    group: &[&String],
    plan: &Plan,
    loads: &BTreeMap<String, usize>,
) -> Option<(String, String)> {
    let load_of = |id: &String| loads.get(id).copied().unwrap_or(0);
    let holds = |id: &String| plan.get(id).is_some_and(|has| has.contains_key(&topic));
    let from = *group
        .iter()
        .filter(|id| holds(id))
        .max_by_key(|id| (load_of(id), **id))?;
    let to = *group.iter().min_by_key(|id| (load_of(id), **id))?;
    (load_of(from) > load_of(to) + 1).then(|| (from.clone(), to.clone()))
}

fn takers(problem: &Problem) -> BTreeMap<TopicId, Vec<&String>> {
    let mut takers: BTreeMap<TopicId, Vec<&String>> = BTreeMap::new();
    for (id, seeker) in &problem.members {
        for &topic in &seeker.topics {
            takers.entry(topic).or_default().push(id);
        }
    }
    takers
}

/// How many partitions a member has, and how many besides.
type Loads = (usize, usize);

fn count(loads: &BTreeMap<&String, Loads>, id: &String) -> Loads {
    loads.get(id).copied().unwrap_or_default()
}

fn load_of(plan: &Plan, id: &String) -> usize {
    plan.get(id).map_or(0, load)
}

fn load(has: &Partitions) -> usize {
    has.values().map(BTreeSet::len).sum()
}
