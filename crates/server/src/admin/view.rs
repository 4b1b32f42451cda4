//! From what the core knows of groups to the documents of the administration API.

use std::collections::BTreeSet;

use anabranch_core::cursor::{ChainState, ChainView, Cursor};
use anabranch_core::elastic::{self, Eligibility, MemberView, Precision, Reading, ShareView, Snapshot};
use anabranch_core::group::Topics;
use anabranch_core::ids::{Now, TopicId};
use anabranch_core::slots::SlotSet;
use anabranch_engine::counting::Counted;

use super::model::{
    Elastic, Form, Group, Loose, Member, MemberState, Partition, QueueGroup, QueueSettings, QueueUnread,
    Queues, Share, Transit, Unread,
};
use super::state::Wish;
use super::{bands, decisions};
use crate::broker::{Broker, Core};

/// A group as it is now, with bands for the partitions in `banded`; `None` if there is none whose partitions the broker
/// assigns.
pub(super) fn group(
    broker: &Broker,
    wish: &Wish,
    counted: &Counted,
    banded: &BTreeSet<(TopicId, i32)>,
) -> Option<Group> {
    let group = wish.group.as_str();
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
            partitions: partitions(core, wish, &snapshot, now, banded),
        })
    })
}

/// The name of a mode, as in `elastic.mode`.
pub(super) fn mode_name(mode: elastic::Mode) -> &'static str {
    match mode {
        elastic::Mode::Slices => "slices",
        elastic::Mode::Queues => "queues",
        elastic::Mode::Off => "off",
    }
}

/// A group may be divided if one of its topics may; else the reason is that of the first.
fn elastic(core: &Core, group: &str, snapshot: &Snapshot) -> Elastic {
    let topics = core.node().partitions();
    let first = snapshot.topics.keys().next().copied();
    // Without a topic it is what the group and the broker say, as it would be for a topic that says nothing.
    let mode = topics.elastic_mode(group, first.unwrap_or_default());
    let verdict = |topic: &TopicId| core.node().groups().eligibility(&topics, group, *topic);
    let mut verdicts = snapshot.topics.keys().map(verdict);
    let first = verdicts.next().unwrap_or(Ok(()));
    let reason = match first {
        Err(why) if !verdicts.any(|verdict| verdict.is_ok()) => Some(why.to_string()),
        _ => None,
    };
    Elastic {
        mode: mode_name(mode).to_owned(),
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

fn partitions(
    core: &Core,
    wish: &Wish,
    snapshot: &Snapshot,
    now: Now,
    banded: &BTreeSet<(TopicId, i32)>,
) -> Vec<Partition> {
    let mut all = Vec::new();
    for (topic, view) in &snapshot.topics {
        if wish.topic.as_ref().is_some_and(|wanted| *wanted != view.name) {
            continue;
        }
        for (number, partition) in &view.partitions {
            let key = (*topic, *number);
            let place = Place {
                core,
                group: &wish.group,
                key,
                name: &view.name,
            };
            let shown = place.show(&partition.reading, now);
            all.extend(shown.map(|shown| {
                Partition {
                    bands: banded
                        .contains(&key)
                        .then(|| bands::of(&partition.reading, wish.bands))
                        .flatten(),
                    ..shown
                }
            }));
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
            bands: None,
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

pub(super) fn runs(slots: &SlotSet) -> Vec<[u16; 2]> {
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
        slot_runs: runs(&transit.slots),
    }
}

fn loose_slots(loose: &elastic::Loose) -> Loose {
    Loose {
        slots: loose.slots.len() as u32,
        remaining: loose.remaining,
        to: loose.promised.clone(),
        slot_runs: runs(&loose.slots),
    }
}

/// A topic in queue mode; `None` if it is not.
pub(super) fn queues(broker: &Broker, topic: &str) -> Option<Queues> {
    let view = broker.queues_view(topic)?;
    let (queues, settings) = (&view.queues, &view.settings);
    let unread = |(queue, records): &(u32, u64)| QueueUnread {
        queue: *queue,
        records: *records,
    };
    let groups = view.groups.iter().map(|one| QueueGroup {
        group: one.group.clone(),
        instances: one.instances,
        counts: one.counts,
        unread: one.unread,
        unread_in: one.unread_in.iter().map(unread).collect(),
        unread_left_out: one.unread_left_out,
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
        decisions: broker.with(|core| decisions::of_queues(core, topic)),
    })
}
