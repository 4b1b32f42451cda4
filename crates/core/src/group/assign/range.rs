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
        let Ok(count) = i32::try_from(takers.len()) else {
            continue;
        };
        if count == 0 {
            continue;
        }
        let (each, more) = (topic.partitions / count, topic.partitions % count);
        let mut next = 0;
        for (rank, (id, _)) in (0..count).zip(takers) {
            let share = each + i32::from(rank < more);
            for partition in next..next + share {
                give(&mut plan, id, topic.id, partition);
            }
            next += share;
        }
    }
    plan
}
