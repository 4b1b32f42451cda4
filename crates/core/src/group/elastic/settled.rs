//! What became of decisions: whether those who were to get slots got them, and how long that took.
//!
//! A decision is *open* from the moment it was acted upon until all of its receivers have what they were to get, or
//! cannot get it any more. That can only change when the cursor does, so it is looked at where that happens. What became
//! of it is durable; which decisions are open is not, since promises are not: a restart ends them all.

use std::collections::BTreeMap;

use super::Key;
use crate::cursor::{ChainState, Cursor};
use crate::elastic::{Change, Ended, Entry, How, Settled};
use crate::group::change::GroupChange;
use crate::group::coordinator::{Coordinator, Step};
use crate::group::state::Sharing;
use crate::slots::SlotSet;

/// A decision that is not done yet.
#[derive(Debug)]
pub(super) struct Open {
    /// When it was made, monotonic milliseconds.
    since_ms: u64,
    awaited: Vec<Awaited>,
    /// What became of the parts that are not awaited any more.
    ended: Ended,
}

/// A member that is to get slots.
#[derive(Debug)]
struct Awaited {
    key: Key,
    from: Option<String>,
    to: String,
    slots: SlotSet,
    how: How,
}

/// Open decisions by their numbers in the log.
pub(super) type OpenDecisions = BTreeMap<u64, Open>;

impl Coordinator {
    /// A decision was made, and acted upon.
    pub(super) fn decision_opened(
        &mut self,
        step: &mut Step<'_>,
        group: &str,
        (number, change): (u64, &Change),
    ) {
        let moves = change.moves.iter().filter(|one| match one.how {
            // The part that its owner keeps.
            How::Divide | How::Regrant => one.from.as_ref() != Some(&one.to),
            How::Release | How::Grant | How::Return | How::Plain | How::Assign => true,
        });
        let awaited: Vec<Awaited> = moves
            .map(|one| Awaited {
                key: (one.of.topic, one.of.partition),
                from: one.from.clone(),
                to: one.to.clone(),
                slots: one.slots.clone(),
                how: one.how,
            })
            .collect();
        if awaited.is_empty() {
            return;
        }
        let open = Open {
            since_ms: step.now.mono_ms,
            awaited,
            ended: Ended::Done,
        };
        self.elastic.group_mut(group).open.insert(number, open);
        self.settle_decisions(step, group);
    }

    /// Looks at the open decisions of a group: those that are over are noted.
    pub(super) fn settle_decisions(&mut self, step: &mut Step<'_>, group: &str) {
        let Some(memory) = self.elastic.open_group(group) else {
            return;
        };
        let mut open = std::mem::take(&mut memory.open);
        let mut settled = Vec::new();
        open.retain(|number, open| {
            open.awaited
                .retain_mut(|awaited| match self.state_of(group, awaited) {
                    None => true,
                    Some(ended) => {
                        open.ended = open.ended.max(ended);
                        false
                    }
                });
            if open.awaited.is_empty() {
                let handover_ms = step.now.mono_ms.saturating_sub(open.since_ms);
                let ended = open.ended;
                settled.push((*number, Settled { ended, handover_ms }));
            }
            !open.awaited.is_empty()
        });
        self.elastic.group_mut(group).open = open;
        for (number, settled) in settled {
            let group = group.to_owned();
            self.record(
                step,
                GroupChange::Settled {
                    group,
                    number,
                    settled,
                },
            );
        }
    }

    /// What became of one receiver's part; `None`: it is on its way. What it has got already is not awaited any more.
    fn state_of(&self, group: &str, awaited: &mut Awaited) -> Option<Ended> {
        let key = awaited.key;
        let cursor = self.cursor(group, key);
        if awaited.how == How::Assign {
            let owners = self
                .consumer(group)
                .and_then(|consumer| consumer.owners.get(&key));
            let has_it = owners.is_some_and(|owners| owners.contains(&awaited.to));
            return match (has_it, self.is_placed(group, key, &awaited.to)) {
                (true, _) => Some(Ended::Done),
                (false, true) => None,
                (false, false) => Some(Ended::Overtaken),
            };
        }
        if awaited.how == How::Plain {
            let yields = self
                .sharers(group, key)
                .is_some_and(|sharers| sharers.get(&awaited.to) == Some(&Sharing::Yields));
            return match cursor {
                Some(Cursor::Divided(_)) if yields => None,
                Some(Cursor::Divided(_)) | None => Some(Ended::Overtaken),
                Some(Cursor::Plain(_)) => Some(Ended::Done),
            };
        }
        let has = |member: &str| match cursor {
            Some(Cursor::Divided(divided)) => {
                let chain = divided.chain_of(member).map(|(_, chain)| chain);
                let held = chain.filter(|chain| chain.state() == ChainState::Held);
                held.map_or_else(SlotSet::empty, |chain| chain.tail().pieces.slots())
            }
            Some(Cursor::Plain(_)) | None => SlotSet::empty(),
        };
        awaited.slots = awaited.slots.difference(&has(&awaited.to));
        if awaited.slots.is_empty() {
            return Some(Ended::Done);
        }
        let promised = self.promised(group, key, &awaited.to);
        if awaited.slots.is_subset(&promised) {
            return None;
        }
        let lost = awaited.slots.difference(&promised);
        let came_back = awaited
            .from
            .as_ref()
            .is_some_and(|from| lost.is_subset(&has(from)));
        Some(if came_back {
            Ended::Undone
        } else {
            Ended::Overtaken
        })
    }

    /// After a restart nobody knows what was promised to whom: what was open is decided anew.
    pub(super) fn settle_former_decisions(&mut self, step: &mut Step<'_>) {
        let mut former = Vec::new();
        for (group, log) in &self.decisions {
            for (number, entry) in log.entries() {
                let Entry::Decided(decision) = entry else {
                    continue;
                };
                if log.settled(number).is_none() {
                    let since_ms = step.now.wall_ms.saturating_sub(decision.at_ms);
                    let settled = Settled {
                        ended: Ended::Overtaken,
                        handover_ms: u64::try_from(since_ms).unwrap_or(0),
                    };
                    former.push((group.clone(), number, settled));
                }
            }
        }
        for (group, number, settled) in former {
            self.record(
                step,
                GroupChange::Settled {
                    group,
                    number,
                    settled,
                },
            );
        }
    }
}
