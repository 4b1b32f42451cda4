//! Sticky: everybody keeps what they had as far as the balance allows, then the rest is dealt to whoever has least.
//!
//! With equal subscriptions each member ends with floor or ceil of the mean. Those who had most keep the ceil, and a
//! member gives up only what exceeds its share: a leaver moves its own partitions only, a newcomer draws at most the
//! excess. With unequal subscriptions the same greedy deal is followed by single moves from a fuller to an emptier
//! subscriber of the same topic, until no move improves the balance.

use std::collections::{BTreeMap, BTreeSet};

use super::{Plan, Problem, give};
use crate::ids::TopicId;

pub(super) fn assign(problem: &Problem) -> Plan {
    let mut plan = problem.empty_plan();
    let mut open = keep(problem, &mut plan);
    let shares = equal_shares(problem, &plan);
    for (id, share) in shares.iter().flatten() {
        trim(&mut plan, id, *share, &mut open);
    }
    deal(problem, &mut plan, &open);
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
fn equal_shares(problem: &Problem, plan: &Plan) -> Option<BTreeMap<String, usize>> {
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
    let mut by_load: Vec<_> = plan.iter().map(|(id, has)| (load(has), id)).collect();
    by_load.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    Some(
        by_load
            .into_iter()
            .enumerate()
            .map(|(rank, (_, id))| (id.clone(), each + usize::from(rank < more)))
            .collect(),
    )
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
fn deal(problem: &Problem, plan: &mut Plan, open: &BTreeSet<(TopicId, i32)>) {
    let takers = takers(problem);
    let mut order: Vec<_> = open.iter().copied().collect();
    order.sort_by_key(|(topic, partition)| (takers.get(topic).map_or(0, Vec::len), *topic, *partition));
    let mut queues: BTreeMap<&Vec<&String>, BTreeSet<(usize, &String)>> = BTreeMap::new();
    let mut loads: BTreeMap<&String, usize> = problem
        .members
        .keys()
        .map(|id| (id, plan.get(id).map_or(0, load)))
        .collect();
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
            loads.insert(id, now + 1);
            queue.insert((now + 1, id));
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

fn count(loads: &BTreeMap<&String, usize>, id: &String) -> usize {
    loads.get(id).copied().unwrap_or(0)
}

fn load(has: &super::Partitions) -> usize {
    has.values().map(BTreeSet::len).sum()
}
