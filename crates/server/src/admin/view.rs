//! From what the core knows of groups to the documents of the administration API.

use anabranch_core::cursor::{ChainState, ChainView, Cursor};
use anabranch_core::elastic::{
    self, Change, Eligibility, Entry, MemberView, Precision, Reading, ShareView, Snapshot,
};
use anabranch_core::group::Topics;
use anabranch_core::ids::{Now, TopicId};
use anabranch_core::slots::SlotSet;
use anabranch_engine::counting::Counted;

use super::model::{
    Decision, Decisions, Elastic, Form, Group, Loose, Member, MemberState, Partition, QueueGroup,
    QueueSettings, Queues, Share, Transit, Unread, Verdict,
};
use crate::broker::{Broker, Core};

/// A group as it is now; `None` if there is none whose partitions the broker assigns.
pub(super) fn group(broker: &Broker, group: &str, counted: &Counted) -> Option<Group> {
    let (snapshot, now) = broker.look_at(group, counted)?;
    broker.with(|core| {
        let described = core.node().groups().describe(&core.node().partitions(), group);
        let is_consumer = core
            .node()
            .groups()
            .groups()
            .get(group)?
            .consumer()
            .is_some_and(|consumer| consumer.modern);
        Some(Group {
            group: group.to_owned(),
            state: described.state.to_owned(),
            protocol: if is_consumer { "consumer" } else { "classic" }.to_owned(),
            elastic: elastic(core, group, &snapshot),
            members: members(core, group, &snapshot, now),
            partitions: partitions(core, group, &snapshot, now),
        })
    })
}

/// A group may be divided if one of its topics may; else the reason is that of the first.
fn elastic(core: &Core, group: &str, snapshot: &Snapshot) -> Elastic {
    let mode = snapshot.topics.values().next().map(|topic| topic.settings.mode);
    let topics = core.node().partitions();
    let verdict = |topic: &TopicId| core.node().groups().eligibility(&topics, group, *topic);
    let mut verdicts = snapshot.topics.keys().map(verdict);
    let first = verdicts.next().unwrap_or(Ok(()));
    let reason = match first {
        Err(why) if !verdicts.any(|verdict| verdict.is_ok()) => Some(why.to_string()),
        _ => None,
    };
    Elastic {
        mode: match mode.unwrap_or_default() {
            elastic::Mode::Slices => "slices",
            elastic::Mode::Queues => "queues",
            elastic::Mode::Off => "off",
        }
        .to_owned(),
        eligible: reason.is_none(),
        reason,
        paused: snapshot.paused,
    }
}

fn members(core: &Core, group: &str, snapshot: &Snapshot, now: Now) -> Vec<Member> {
    let consumer = core
        .node()
        .groups()
        .groups()
        .get(group)
        .and_then(|group| group.consumer());
    let member = |(id, view): (&String, &MemberView)| {
        let state = consumer.and_then(|consumer| consumer.members.get(id));
        let member = state.map(|state| &state.member);
        Member {
            member: id.clone(),
            client_id: member.map_or_else(String::new, |member| member.client_id.clone()),
            host: member.map_or_else(String::new, |member| member.client_host.clone()),
            software: member
                .and_then(|member| member.client.software.as_ref())
                .map_or_else(String::new, ToString::to_string),
            state: member_state(view.state),
            since_ms: now.mono_ms.saturating_sub(view.since_ms),
            rate: view.rate.map(|rate| rate as f64),
            ineligible: match &view.eligibility {
                Eligibility::Yes => None,
                Eligibility::No(text) => Some(text.clone()),
            },
        }
    };
    snapshot.members.iter().map(member).collect()
}

fn member_state(state: elastic::MemberState) -> MemberState {
    match state {
        elastic::MemberState::Idle => MemberState::Idle,
        elastic::MemberState::Drained => MemberState::Drained,
        elastic::MemberState::Busy => MemberState::Busy,
        elastic::MemberState::Paused => MemberState::Paused,
        elastic::MemberState::Leaving => MemberState::Leaving,
        elastic::MemberState::Away => MemberState::Away,
    }
}

fn partitions(core: &Core, group: &str, snapshot: &Snapshot, now: Now) -> Vec<Partition> {
    let mut all = Vec::new();
    for (topic, view) in &snapshot.topics {
        for (number, partition) in &view.partitions {
            let place = Place {
                core,
                group,
                key: (*topic, *number),
                name: &view.name,
            };
            all.extend(place.show(&partition.reading, now));
        }
    }
    all
}

struct Place<'a> {
    core: &'a Core,
    group: &'a str,
    key: (TopicId, i32),
    name: &'a str,
}

impl Place<'_> {
    /// The partition; `None` if the group has nothing to do with it.
    fn show(&self, reading: &Reading, now: Now) -> Option<Partition> {
        let logs = self.core.node().partitions();
        let (start, end) = (
            logs.log_start(self.key.0, self.key.1),
            logs.log_end(self.key.0, self.key.1),
        );
        let committed = self.core.node().groups().committed(self.group, self.key);
        let (form, shares, transits, loose) = match reading {
            Reading::Plain(plain) => {
                let share = plain.holder.as_ref().map(|holder| Share {
                    member: holder.clone(),
                    slice: 0,
                    position: committed.unwrap_or(start),
                    end: None,
                    slots: SlotSet::all().len() as u32,
                    slot_runs: runs(&SlotSet::all()),
                    remaining: plain.remaining,
                    remaining_exact: true,
                    handed_out: 0,
                });
                (Form::Plain, share.into_iter().collect(), Vec::new(), Vec::new())
            }
            Reading::Divided(divided) => (
                Form::Divided,
                self.shares(divided),
                divided.transits.iter().map(|one| transit(one, now)).collect(),
                divided.loose.iter().map(loose_slots).collect(),
            ),
        };
        if committed.is_none() && shares.is_empty() {
            return None;
        }
        let lag = end.saturating_sub(committed.unwrap_or(start).max(start));
        Some(Partition {
            topic: self.name.to_owned(),
            partition: self.key.1,
            form,
            log_start: start,
            log_end: end,
            committed: committed.unwrap_or(-1),
            lag: u64::try_from(lag).unwrap_or(0),
            shares,
            transits,
            loose,
        })
    }

    /// One share for each slice: what remains is shown at the open one.
    fn shares(&self, divided: &elastic::DividedView) -> Vec<Share> {
        let groups = self.core.node().groups();
        let Some(Cursor::Divided(cursor)) = groups.cursor_of(self.group, self.key) else {
            return Vec::new();
        };
        let chains = groups.chains(self.group, self.key);
        let mut shares = Vec::new();
        for chain in chains.iter().filter(|chain| chain.state == ChainState::Held) {
            let (Some(found), Some(view)) = (cursor.chain(chain.chain), divided.shares.get(&chain.member))
            else {
                continue;
            };
            let last = found.slices().len().saturating_sub(1);
            for (at, slice) in found.slices().iter().enumerate() {
                let position = if at == 0 {
                    chain.position.offset
                } else {
                    slice.start
                };
                shares.push(share(chain, slice, position, (at == last).then_some(view)));
            }
        }
        shares.sort_by_key(|share| share.slice);
        shares
    }
}

fn share(
    chain: &ChainView,
    slice: &anabranch_core::cursor::Slice,
    position: i64,
    open: Option<&ShareView>,
) -> Share {
    let slots = slice.pieces.slots();
    let is_exact = |view: &ShareView| {
        let counts = view.counts.as_ref();
        view.remaining == 0 || counts.is_some_and(|counts| counts.movable.precision() == Precision::Exact)
    };
    Share {
        member: chain.member.clone(),
        slice: slice.id.get(),
        position,
        end: slice.to,
        slots: slots.len() as u32,
        slot_runs: runs(&slots),
        remaining: open.map_or(0, |view| view.remaining),
        remaining_exact: open.is_none_or(is_exact),
        handed_out: open.map_or(0, |view| view.handed_out),
    }
}

fn runs(slots: &SlotSet) -> Vec<[u16; 2]> {
    let runs = slots.runs().into_iter();
    runs.map(|(first, last)| [first.get(), last.get()]).collect()
}

fn transit(transit: &elastic::Transit, now: Now) -> Transit {
    Transit {
        from: transit.source.clone(),
        to: transit.target.clone(),
        slots: transit.slots.len() as u32,
        remaining: transit.remaining,
        since_ms: now.mono_ms.saturating_sub(transit.since_ms),
    }
}

fn loose_slots(loose: &elastic::Loose) -> Loose {
    Loose {
        slots: loose.slots.len() as u32,
        remaining: loose.remaining,
        to: loose.promised.clone(),
    }
}

/// A topic in queue mode; `None` if it is not.
pub(super) fn queues(broker: &Broker, topic: &str) -> Option<Queues> {
    let view = broker.queues_view(topic)?;
    let (queues, settings) = (&view.queues, &view.settings);
    let groups = view.groups.iter().map(|one| QueueGroup {
        group: one.group.clone(),
        instances: one.instances,
        counts: one.counts,
        unread: one.unread,
    });
    Some(Queues {
        topic: topic.to_owned(),
        facade: view.facade,
        write: queues.write,
        read: queues.read,
        goal: queues.goal,
        wish: queues.wish,
        phase: queues.phase.code().to_owned(),
        since_ms: queues.since_ms,
        next_in_ms: view.next_in_ms,
        fewer_for_ms: view.fewer_for_ms,
        blocked: view.blocked.as_ref().map(|blocked| Unread {
            group: blocked.group.clone(),
            queue: blocked.queue,
            records: blocked.unread,
        }),
        groups: groups.collect(),
        settings: QueueSettings {
            min: settings.min,
            max: settings.max,
            write_delay_ms: settings.write_delay_ms,
            drain_delay_ms: settings.drain_delay_ms,
            shrink_grace_ms: settings.shrink_grace_ms,
            group_ttl_ms: settings.group_ttl_ms,
        },
        decisions: broker.with(|core| queue_decisions(core, |name| name == topic)),
    })
}

/// What was decided about the queues of some topics.
fn queue_decisions(core: &Core, concerns: impl Fn(&str) -> bool) -> Vec<Decision> {
    let state = core.node().state();
    let of_topic = |(id, log): (&TopicId, &anabranch_core::queues::QueueLog)| {
        let name = state.topic_by_id(*id).map(|topic| topic.name.clone());
        let name = name.filter(|name| concerns(name));
        let decided = name.map(|name| {
            let entries = log.entries();
            let all = entries.map(|(number, decision)| queue_decision(&name, number, decision));
            all.collect::<Vec<Decision>>()
        });
        decided.unwrap_or_default()
    };
    state.queue_logs().iter().flat_map(of_topic).collect()
}

/// A decision about the queues of a topic as a document.
fn queue_decision(topic: &str, number: u64, decision: &anabranch_core::queues::Decision) -> Decision {
    let counts = |(write, read): (u32, u32)| {
        vec![
            ("write".to_owned(), u64::from(write)),
            ("read".to_owned(), u64::from(read)),
        ]
    };
    Decision {
        seq: seq(decision.at_ms, number),
        time_ms: decision.at_ms,
        group: decision.why.group().unwrap_or_default().to_owned(),
        topic: topic.to_owned(),
        partition: -1,
        kind: decision.kind.code().to_owned(),
        outcome: Verdict::Decided,
        reason: decision.why.code().to_owned(),
        text: decision.sentence(),
        from: None,
        to: Vec::new(),
        slots: 0,
        before: counts(decision.before),
        after: counts(decision.after),
        result: None,
        handover_ms: None,
        count: 1,
    }
}

/// The decisions behind `after`, of one group or of all, in the order of time.
pub(super) fn decisions(broker: &Broker, group: Option<&str>, after: Option<u64>, limit: usize) -> Decisions {
    let mut found: Vec<Decision> = broker.with(|core| {
        let groups = core.node().groups();
        let all = groups.groups_with_decisions();
        let of_queues = queue_decisions(core, |_| true).into_iter();
        let of_queues = of_queues.filter(|one| group.is_none_or(|group| group == one.group));
        all.filter(|id| group.is_none_or(|group| group == *id))
            .flat_map(|id| {
                groups
                    .decisions_of(id)
                    .map(move |(number, entry, again)| match entry {
                        Entry::Decided(decision) => {
                            let settled = groups.settled(id, number);
                            Decision {
                                result: settled.map(|settled| settled.ended.code().to_owned()),
                                handover_ms: settled.map(|settled| settled.handover_ms),
                                ..decided(id, number, decision)
                            }
                        }
                        Entry::Refused { refusal, times, .. } => {
                            refused(id, number, refusal, times.saturating_add(again))
                        }
                    })
            })
            .chain(of_queues)
            .filter(|decision| after.is_none_or(|after| decision.seq > after))
            .collect()
    });
    found.sort_by_key(|decision| decision.seq);
    // Without a place to go on from, the newest are wanted; else those that follow it.
    let extra = found.len().saturating_sub(limit);
    match after {
        None => drop(found.drain(..extra)),
        Some(_) => found.truncate(limit),
    }
    let next = found.last().map(|decision| decision.seq).or(after);
    Decisions {
        decisions: found,
        next: Some(next.unwrap_or(0)),
    }
}

/// Rises with time over all groups: the time, and the number within the group's log.
fn seq(at_ms: i64, number: u64) -> u64 {
    u64::try_from(at_ms).unwrap_or(0).saturating_mul(1_000) + number % 1_000
}

/// A decision as a document.
pub(super) fn decided(group: &str, number: u64, decision: &elastic::Decision) -> Decision {
    let change: &Change = &decision.change;
    let place = change.moves.first().map(|one| &one.of);
    let mut to: Vec<String> = change.moves.iter().map(|one| one.to.clone()).collect();
    to.sort_unstable();
    to.dedup();
    let moved = change
        .moves
        .iter()
        .filter(|one| one.from.as_ref() != Some(&one.to));
    let before = change
        .shares
        .iter()
        .map(|share| (share.member.clone(), share.before));
    let after = change
        .shares
        .iter()
        .map(|share| (share.member.clone(), share.after));
    Decision {
        seq: seq(decision.at_ms, number),
        time_ms: decision.at_ms,
        group: group.to_owned(),
        topic: place.map_or_else(String::new, |place| place.name.clone()),
        partition: place.map_or(-1, |place| place.partition),
        kind: change.kind.code().to_owned(),
        outcome: Verdict::Decided,
        reason: change.why.code().to_owned(),
        text: decision.sentence(),
        from: change.moves.iter().find_map(|one| one.from.clone()),
        to,
        slots: moved.map(|one| one.slots.len() as u32).sum(),
        before: before.collect(),
        after: after.collect(),
        result: None,
        handover_ms: None,
        count: 1,
    }
}

/// A refusal as a document.
pub(super) fn refused(group: &str, number: u64, refusal: &elastic::Refusal, times: u64) -> Decision {
    let place = refusal.about.as_ref();
    Decision {
        seq: seq(refusal.at_ms, number),
        time_ms: refusal.at_ms,
        group: group.to_owned(),
        topic: place.map_or_else(String::new, |(place, _)| place.name.clone()),
        partition: place.map_or(-1, |(place, _)| place.partition),
        kind: "none".to_owned(),
        outcome: Verdict::Refused,
        reason: refusal.why_not.code().to_owned(),
        text: refusal.sentence(),
        from: place.map(|(_, owner)| owner.clone()),
        to: Vec::new(),
        slots: 0,
        before: Vec::new(),
        after: Vec::new(),
        result: None,
        handover_ms: None,
        count: times,
    }
}
