//! One step of a member towards its target: release first, then take what others have released.
//!
//! The rules are those of KIP-848 (in Kafka: `CurrentAssignmentBuilder`). A partition passes from A to B like this:
//! the target gives it to B; A, on its next request, is told an assignment without it and is *unrevoked*; A says that
//! it no longer owns it (the owned list of its heartbeat; for a classic member, its JoinGroup); only then is the
//! partition free, and B, *unreleased* until now, gets it on its next request. The member epoch follows the group's
//! epoch as soon as the member has nothing to release any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::group::state::{Current, Held, Partitions, Progress};
use crate::ids::TopicId;

/// What one step needs to know besides the member's own state.
pub(super) struct Surroundings<'a> {
    /// The group's epoch, and the member's target in it.
    pub(super) epoch: i32,
    pub(super) target: &'a Partitions,
    /// Topics the member subscribes to now.
    pub(super) subscribed: &'a BTreeSet<TopicId>,
    /// What the member says it owns; `None`: it did not say.
    pub(super) owned: Option<&'a Partitions>,
    /// Whether somebody else holds a partition.
    pub(super) taken: &'a dyn Fn(TopicId, i32) -> bool,
    /// The request changed the subscription: what the member no longer wants goes at once.
    pub(super) subscription_changed: bool,
}

/// The member's state after the step.
pub(super) fn step(current: &Current, around: &Surroundings<'_>) -> Current {
    match current.progress {
        Progress::Stable if current.epoch != around.epoch => next(current, around),
        // At the group's epoch: a change of the subscription would have made a new one.
        Progress::Stable => current.clone(),
        Progress::Unrevoked if still_owned(around, &current.revoking) => {
            if around.subscription_changed {
                narrow(current, around)
            } else {
                current.clone()
            }
        }
        Progress::Unrevoked | Progress::Unreleased => next(current, around),
    }
}

/// Moves the member as far as it can go.
fn next(current: &Current, around: &Surroundings<'_>) -> Current {
    let mut assigned = Held::new();
    let mut revoking = Held::new();
    for (&topic, partitions) in &current.assigned {
        for (&partition, &epoch) in partitions {
            let keeps = is_wanted(around, topic, partition);
            let place = if keeps { &mut assigned } else { &mut revoking };
            place.entry(topic).or_default().insert(partition, epoch);
        }
    }
    if !revoking.is_empty() && still_owned(around, &revoking) {
        return moved(current, current.epoch, Progress::Unrevoked, assigned, revoking);
    }
    let mut waits = false;
    for (&topic, partitions) in around.target {
        for &partition in partitions {
            let held = assigned
                .get(&topic)
                .is_some_and(|held| held.contains_key(&partition));
            if held || !around.subscribed.contains(&topic) {
                continue;
            }
            if (around.taken)(topic, partition) {
                waits = true;
            } else {
                assigned.entry(topic).or_default().insert(partition, around.epoch);
            }
        }
    }
    let progress = if waits {
        Progress::Unreleased
    } else {
        Progress::Stable
    };
    moved(current, around.epoch, progress, assigned, Held::new())
}

/// Takes away what the member no longer subscribes to, before a new target may say so.
fn narrow(current: &Current, around: &Surroundings<'_>) -> Current {
    let mut assigned = current.assigned.clone();
    let mut revoking = current.revoking.clone();
    assigned.retain(|topic, partitions| {
        let keeps = around.subscribed.contains(topic);
        if !keeps {
            revoking.entry(*topic).or_default().append(partitions);
        }
        keeps
    });
    if assigned == current.assigned {
        return current.clone();
    }
    if still_owned(around, &revoking) {
        moved(current, current.epoch, Progress::Unrevoked, assigned, revoking)
    } else {
        moved(current, current.epoch, current.progress, assigned, Held::new())
    }
}

fn is_wanted(around: &Surroundings<'_>, topic: TopicId, partition: i32) -> bool {
    around.subscribed.contains(&topic)
        && around
            .target
            .get(&topic)
            .is_some_and(|partitions| partitions.contains(&partition))
}

/// Whether the member may still work on one of these; not having said anything counts as yes.
fn still_owned(around: &Surroundings<'_>, held: &Held) -> bool {
    let Some(owned) = around.owned else { return true };
    owned.iter().any(|(topic, partitions)| {
        let held: Option<&BTreeMap<i32, i32>> = held.get(topic);
        held.is_some_and(|held| partitions.iter().any(|partition| held.contains_key(partition)))
    })
}

fn moved(current: &Current, epoch: i32, progress: Progress, assigned: Held, revoking: Held) -> Current {
    let previous_epoch = if epoch == current.epoch {
        current.previous_epoch
    } else {
        current.epoch
    };
    Current {
        epoch,
        previous_epoch,
        progress,
        assigned,
        revoking,
    }
}
