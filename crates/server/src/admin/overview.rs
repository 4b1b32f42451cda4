//! The broker at one look: sums under the lock of the core, sizes beside it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anabranch_core::cursor::{ChainState, Cursor};
use anabranch_core::elastic::{PartitionView, Snapshot};
use anabranch_core::group::{Listed, Topics};
use anabranch_core::ids::{LogId, Now};
use anabranch_engine::counting::Counted;

use super::model::{GroupRow, Overview, TopicRow, Totals};
use super::rates::{Numbers, Rates};
use super::view::mode_name;
use crate::broker::{Broker, Core};
use crate::clock::wall_ms;
use crate::progress;

/// Divided groups that are looked into for one answer; of others the lag stands for what is unread.
const LOOKS_MAX: usize = 64;

/// Names of topics in the row of a group.
const NAMES_MAX: usize = 10;

/// What is seen under the lock.
#[derive(Default)]
struct Seen {
    topics: Vec<(TopicRow, Vec<LogId>)>,
    groups: Vec<GroupRow>,
    left_out: (u64, u64),
    totals: Totals,
    numbers: Numbers,
}

/// Takes it: topics and groups with `part` in their names, at most `rows_max` of each.
pub(super) fn take(broker: &Arc<Broker>, rates: &mut Rates, part: &str, rows_max: usize) -> Overview {
    let now = broker.clock.now();
    let mut seen = broker.with(|core| {
        let now = core.group_clock.now(now);
        let mut seen = Seen::default();
        topics(core, &mut seen, part, rows_max);
        groups(core, now, &mut seen, part, rows_max);
        seen
    });
    let told = rates.tell(now.mono_ms, seen.numbers);
    for (row, logs) in &mut seen.topics {
        row.bytes = logs.iter().map(|log| broker.store.log_stats(*log).bytes).sum();
        row.in_rate = told.topics.get(&row.topic).copied();
    }
    for row in &mut seen.groups {
        row.out_rate = told.groups.get(&row.group).copied();
    }
    let bytes = seen.topics.iter().map(|(row, _)| row.bytes).sum();
    Overview {
        time_ms: wall_ms(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cluster_id: broker.cluster_id.clone(),
        node_id: broker.node_id,
        totals: Totals {
            bytes,
            in_rate: sum(&told.topics),
            out_rate: sum(&told.groups),
            ..seen.totals
        },
        topics: seen.topics.into_iter().map(|(row, _)| row).collect(),
        topics_left_out: seen.left_out.0,
        groups: seen.groups,
        groups_left_out: seen.left_out.1,
    }
}

fn sum(rates: &HashMap<String, f64>) -> Option<f64> {
    (!rates.is_empty()).then(|| rates.values().sum())
}

fn topics(core: &Core, seen: &mut Seen, part: &str, rows_max: usize) {
    let node = core.node();
    let partitions = node.partitions();
    for topic in node.topics() {
        let (mut records, mut end) = (0_i64, 0_i64);
        for log in topic.logs.iter().filter_map(|log| node.log(*log)) {
            end = end.saturating_add(log.high_watermark());
            records = records.saturating_add(log.high_watermark() - log.start());
        }
        seen.numbers.topics.insert(topic.name.clone(), end);
        seen.totals.topics += 1;
        seen.totals.partitions += topic.logs.len() as u64;
        if !topic.name.contains(part) {
            continue;
        }
        if seen.topics.len() >= rows_max {
            seen.left_out.0 += 1;
            continue;
        }
        let row = TopicRow {
            topic: topic.name.clone(),
            partitions: topic.logs.len() as u32,
            mode: mode_name(partitions.elastic_mode("", topic.id)).to_owned(),
            records: u64::try_from(records).unwrap_or(0),
            ..TopicRow::default()
        };
        seen.topics.push((row, topic.logs.clone()));
    }
}

fn groups(core: &mut Core, now: Now, seen: &mut Seen, part: &str, rows_max: usize) {
    let mut looks = 0;
    for listed in core.node().groups().list(&[], &[]) {
        let (mut row, done) = group(core, now, &listed);
        let mut ahead = 0;
        if row.divided > 0 && looks < LOOKS_MAX {
            looks += 1;
            if let Some(snapshot) = core.engine.look_at(now, &listed.group_id, &Counted::default()) {
                row.unread = unread(&snapshot).min(row.lag);
                ahead = row.lag - row.unread;
            }
        }
        let done = done.saturating_add(i64::try_from(ahead).unwrap_or(i64::MAX));
        seen.numbers.groups.insert(listed.group_id, done);
        seen.totals.groups += 1;
        seen.totals.members += u64::from(row.members);
        seen.totals.unread = seen.totals.unread.saturating_add(row.unread);
        if !row.group.contains(part) {
            continue;
        }
        if seen.groups.len() >= rows_max {
            seen.left_out.1 += 1;
        } else {
            seen.groups.push(row);
        }
    }
}

/// The row of a group, and the sum of its committed offsets.
fn group(core: &Core, now: Now, listed: &Listed) -> (GroupRow, i64) {
    let node = core.node();
    let groups = node.groups();
    let id = &listed.group_id;
    let members = groups.members(now, id);
    let idle = members
        .iter()
        .map(|member| member.partitions.map(|held| u32::from(held == 0)));
    let state = groups.groups().get(id);
    let mut row = GroupRow {
        group: id.clone(),
        state: listed.state.to_owned(),
        kind: listed.group_type.to_owned(),
        assigned_here: state.is_some_and(|group| group.consumer().is_some()),
        members: members.len() as u32,
        idle: idle.sum(),
        paused: state.is_some_and(|group| group.paused),
        ..GroupRow::default()
    };
    let mut names = BTreeSet::new();
    let mut done = 0_i64;
    for progress in progress::of(node, id, ..) {
        if !names.contains(&progress.topic.name) {
            names.insert(progress.topic.name.clone());
        }
        row.partitions += 1;
        row.lag = row.lag.saturating_add(progress.lag());
        done = done.saturating_add(progress.committed);
        if let Cursor::Divided(cursor) = progress.cursor {
            row.divided += 1;
            let chains = cursor.chains().map(|(_, chain)| chain);
            let held = chains.filter(|chain| chain.state() == ChainState::Held);
            row.moving_slots += held.map(|chain| chain.transit_slots().len() as u32).sum::<u32>();
        }
    }
    row.unread = row.lag;
    row.topics = names.into_iter().take(NAMES_MAX).collect();
    (row, done)
}

fn unread(snapshot: &Snapshot) -> u64 {
    let partitions = snapshot
        .topics
        .values()
        .flat_map(|topic| topic.partitions.values());
    partitions
        .map(PartitionView::remaining)
        .fold(0, u64::saturating_add)
}
