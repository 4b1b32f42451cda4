//! Range: per topic, consecutive partitions to the subscribers in order; the first ones get one more.

use super::{Plan, Problem, give};

pub(super) fn assign(problem: &Problem) -> Plan {
    let mut plan = problem.empty_plan();
    let members = problem.in_order();
    for topic in &problem.topics {
        let takers: Vec<_> = members
            .iter()
            .filter(|(_, seeker)| seeker.topics.contains(&topic.id))
            .collect();
        if takers.is_empty() {
            continue;
        }
        let open = problem.open(topic);
        let (each, more) = (open.len() / takers.len(), open.len() % takers.len());
        let mut rest = open.as_slice();
        for (rank, (id, _)) in takers.into_iter().enumerate() {
            let (share, behind) = rest.split_at(each + usize::from(rank < more));
            for partition in share {
                give(&mut plan, id, topic.id, *partition);
            }
            rest = behind;
        }
    }
    plan
}
