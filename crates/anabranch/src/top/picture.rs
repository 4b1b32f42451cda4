//! What is shown, as data: a look at the broker beside the look before it.

use std::collections::BTreeMap;
use std::time::Instant;

use anabranch_server::admin::model::{Decision, Group};
use serde::Serialize;

use super::series::{Sample, samples};
use crate::client::{AdminApi, Wanted};
use crate::failure::{Exit, Outcome};
use crate::time::now_ms;

/// How many of the latest decisions are asked for.
const DECISIONS: u32 = 20;

/// Everything that is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Picture {
    /// When it was taken, milliseconds since 1970.
    pub(super) time_ms: i64,
    /// The broker's HTTP listener.
    pub(super) broker: String,
    pub(super) version: String,
    pub(super) topics: u64,
    pub(super) connections: u64,
    /// Records written per second; `None` before a second look.
    pub(super) in_per_s: Option<f64>,
    /// Records committed per second by all groups.
    pub(super) out_per_s: Option<f64>,
    /// Unread records of all groups.
    pub(super) lag: u64,
    /// All groups, most unread records first.
    pub(super) groups: Vec<GroupLine>,
    /// The group that is shown in full.
    pub(super) shown: Option<String>,
    /// All about it; `None` if its members assign its partitions themselves, or it is gone.
    pub(super) detail: Option<Group>,
    /// Topics in queue mode.
    pub(super) queues: Vec<QueueLine>,
    /// The latest decisions about that group, oldest first; about all groups if none is shown in full.
    pub(super) decisions: Vec<Decision>,
}

/// A topic in queue mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct QueueLine {
    pub(super) topic: String,
    /// Partitions that producers are sent to.
    pub(super) written: u64,
    /// Partitions that are assigned to groups.
    pub(super) read: u64,
}

/// A group in the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct GroupLine {
    pub(super) group: String,
    pub(super) members: u64,
    /// Members that hold nothing; `None` where the broker does not know.
    pub(super) idle_members: Option<u64>,
    /// So many would read what is unread within a minute.
    pub(super) desired_members: Option<u64>,
    pub(super) lag: u64,
    /// Age of its oldest unread record.
    pub(super) lag_seconds: Option<f64>,
    /// For how long a committed offset has not moved that should have.
    pub(super) stuck_seconds: f64,
    /// Records committed per second; `None` before a second look.
    pub(super) out_per_s: Option<f64>,
    /// Slots on their way from one member to another.
    pub(super) moving_slots: u64,
    /// Sum of its committed offsets.
    #[serde(skip)]
    pub(super) committed: f64,
}

/// Looks at a broker again and again.
#[derive(Debug)]
pub(crate) struct Sampler {
    api: AdminApi,
    /// The group to show in full; `None`: the one that is furthest behind.
    group: Option<String>,
    before: Option<Before>,
}

/// What rates are taken from.
#[derive(Debug)]
struct Before {
    at: Instant,
    produced: f64,
    /// Sum of the committed offsets of each group.
    committed: BTreeMap<String, f64>,
}

impl Sampler {
    pub(super) fn new(api: AdminApi, group: Option<String>) -> Sampler {
        Sampler {
            api,
            group,
            before: None,
        }
    }

    /// The group that somebody asked for.
    pub(super) fn wanted(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Shows another group in full from the next look on.
    pub(super) fn want(&mut self, group: Option<String>) {
        self.group = group;
    }

    /// Looks.
    ///
    /// # Errors
    /// The broker is not reached, or is none.
    pub(super) fn look(&mut self) -> Outcome<Picture> {
        let text = self.api.metrics()?;
        let (mut picture, produced) = read(&text);
        picture.time_ms = now_ms();
        picture.broker = self.api.base().trim_start_matches("http://").to_owned();
        self.rate(&mut picture, produced);
        let shown = self
            .group
            .clone()
            .or_else(|| picture.groups.first().map(|first| first.group.clone()));
        if let Some(group) = &shown {
            picture.detail = match self.api.group(group) {
                Ok(group) => Some(group),
                Err(failure) if failure.exit == Exit::NotFound => None,
                Err(failure) => return Err(failure),
            };
        }
        let wanted = Wanted {
            group: shown.as_deref(),
            limit: DECISIONS,
            ..Wanted::default()
        };
        picture.decisions = self.api.decisions(wanted)?.decisions;
        picture.shown = shown;
        Ok(picture)
    }

    fn rate(&mut self, picture: &mut Picture, produced: f64) {
        let at = Instant::now();
        if let Some(before) = &self.before {
            let seconds = at.duration_since(before.at).as_secs_f64().max(0.001);
            // A number that went down began anew, with the broker or with the group.
            let rate = |now: f64, then: f64| (now >= then).then(|| (now - then) / seconds);
            picture.in_per_s = rate(produced, before.produced);
            for group in &mut picture.groups {
                let then = before.committed.get(&group.group);
                group.out_per_s = then.and_then(|then| rate(group.committed, *then));
            }
            let known = picture.groups.iter().filter_map(|group| group.out_per_s);
            picture.out_per_s = Some(known.fold(0.0, |sum, speed| sum + speed));
        }
        let committed = picture
            .groups
            .iter()
            .map(|group| (group.group.clone(), group.committed));
        self.before = Some(Before {
            at,
            produced,
            committed: committed.collect(),
        });
    }
}

/// What the metrics say, and how many records were ever produced.
fn read(text: &str) -> (Picture, f64) {
    let mut picture = Picture::default();
    let mut groups = BTreeMap::<String, GroupLine>::new();
    let mut queues = BTreeMap::<String, QueueLine>::new();
    let mut produced = 0.0;
    for sample in samples(text) {
        let count = sample.value.max(0.0) as u64;
        match sample.name {
            "anabranch_build_info" => picture.version = sample.label("version").to_owned(),
            "anabranch_connections" => picture.connections = count,
            "anabranch_produced_records_total" => produced = sample.value,
            "kafka_topic_partitions" => picture.topics += 1,
            "anabranch_topic_write_queues" => queue_line(&mut queues, &sample).written = count,
            "anabranch_topic_read_queues" => queue_line(&mut queues, &sample).read = count,
            _ => {}
        }
        let id = sample.label("consumergroup");
        if id.is_empty() {
            continue;
        }
        let group = groups.entry(id.to_owned()).or_insert_with(|| GroupLine {
            group: id.to_owned(),
            ..GroupLine::default()
        });
        match sample.name {
            "kafka_consumergroup_members" => group.members = count,
            "anabranch_group_idle_members" => group.idle_members = Some(count),
            "anabranch_group_desired_members" => group.desired_members = Some(count),
            "kafka_consumergroup_lag_sum" => group.lag = group.lag.saturating_add(count),
            "kafka_consumergroup_current_offset_sum" => group.committed += sample.value,
            "anabranch_group_lag_seconds" => {
                let oldest = group
                    .lag_seconds
                    .map_or(sample.value, |other| other.max(sample.value));
                group.lag_seconds = Some(oldest);
            }
            "anabranch_group_stuck_seconds" => group.stuck_seconds = group.stuck_seconds.max(sample.value),
            "anabranch_group_moving_slots" => group.moving_slots += count,
            _ => {}
        }
    }
    picture.queues = queues.into_values().collect();
    picture.groups = groups.into_values().collect();
    picture.groups.sort_by_key(|group| std::cmp::Reverse(group.lag));
    picture.lag = picture
        .groups
        .iter()
        .fold(0, |sum, group| sum.saturating_add(group.lag));
    (picture, produced)
}

/// The line of a sample's topic.
fn queue_line<'a>(lines: &'a mut BTreeMap<String, QueueLine>, sample: &Sample<'_>) -> &'a mut QueueLine {
    let topic = sample.label("topic").to_owned();
    lines.entry(topic.clone()).or_insert_with(|| QueueLine {
        topic,
        ..QueueLine::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SCRAPE: &str = "\
anabranch_build_info{version=\"0.1.0\"} 1
anabranch_connections 7
anabranch_produced_records_total 1000
kafka_topic_partitions{topic=\"a\"} 3
kafka_topic_partitions{topic=\"b\"} 1
anabranch_topic_write_queues{topic=\"b\"} 1
anabranch_topic_read_queues{topic=\"b\"} 2
kafka_consumergroup_members{consumergroup=\"g\"} 4
kafka_consumergroup_members{consumergroup=\"h\"} 0
kafka_consumergroup_lag_sum{consumergroup=\"g\",topic=\"a\"} 10
kafka_consumergroup_lag_sum{consumergroup=\"g\",topic=\"b\"} 5
kafka_consumergroup_lag_sum{consumergroup=\"h\",topic=\"a\"} 20
kafka_consumergroup_current_offset_sum{consumergroup=\"g\",topic=\"a\"} 300
kafka_consumergroup_current_offset_sum{consumergroup=\"h\",topic=\"a\"} 100
anabranch_group_idle_members{consumergroup=\"g\"} 1
anabranch_group_desired_members{consumergroup=\"g\"} 6
anabranch_group_lag_seconds{consumergroup=\"g\",topic=\"a\"} 3.5
anabranch_group_lag_seconds{consumergroup=\"g\",topic=\"b\"} 0
anabranch_group_moving_slots{consumergroup=\"g\",topic=\"a\",partition=\"0\"} 17
";

    #[test]
    fn groups_are_put_together_from_their_series_the_furthest_behind_first() {
        let (picture, produced) = read(SCRAPE);
        assert_eq!((picture.topics, picture.connections, produced), (2, 7, 1000.0));
        assert_eq!((picture.version.as_str(), picture.lag), ("0.1.0", 35));
        let queues = QueueLine {
            topic: "b".to_owned(),
            written: 1,
            read: 2,
        };
        assert_eq!(picture.queues, [queues], "a topic without queues has no line");
        let [h, g] = picture.groups.as_slice() else {
            panic!()
        };
        assert_eq!((h.group.as_str(), h.lag, h.idle_members), ("h", 20, None));
        assert_eq!(
            (g.members, g.idle_members, g.desired_members),
            (4, Some(1), Some(6))
        );
        assert_eq!((g.lag, g.lag_seconds, g.moving_slots), (15, Some(3.5), 17));
    }

    #[test]
    fn rates_are_differences_and_what_began_anew_has_none() {
        let mut sampler = Sampler::new(AdminApi::at("127.0.0.1:1").unwrap(), None);
        let (mut picture, produced) = read(SCRAPE);
        sampler.rate(&mut picture, produced);
        assert_eq!((picture.in_per_s, picture.groups[0].out_per_s), (None, None));
        sampler.before.as_mut().unwrap().at -= Duration::from_secs(10);
        let later = SCRAPE
            .replace("total 1000", "total 3000")
            .replace("} 300", "} 800")
            .replace("} 100", "} 0");
        let (mut picture, produced) = read(&later);
        sampler.rate(&mut picture, produced);
        let [h, g] = picture.groups.as_slice() else {
            panic!()
        };
        assert!((picture.in_per_s.unwrap() - 200.0).abs() < 1.0);
        assert!((g.out_per_s.unwrap() - 50.0).abs() < 1.0);
        assert_eq!(h.out_per_s, None, "its offsets were reset");
    }
}
