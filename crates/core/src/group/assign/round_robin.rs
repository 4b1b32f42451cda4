//! Round robin: all partitions in the order of topic names, one to each member in turn, over those who do not
//! subscribe to the topic.

use super::{Plan, Problem, give};

pub(super) fn assign(problem: &Problem) -> Plan {
    let mut plan = problem.empty_plan();
    let members = problem.in_order();
    let mut turn = 0;
    for topic in &problem.topics {
        if !members
            .iter()
            .any(|(_, seeker)| seeker.topics.contains(&topic.id))
        {
            continue;
        }
        for partition in problem.open(topic) {
            let next = (0..members.len())
                .map(|step| (turn + step) % members.len())
                .find(|&at| {
                    members
                        .get(at)
                        .is_some_and(|(_, seeker)| seeker.topics.contains(&topic.id))
                });
            if let Some(at) = next
                && let Some((id, _)) = members.get(at)
            {
                give(&mut plan, id, topic.id, partition);
                turn = at + 1;
            }
        }
    }
    plan
}
