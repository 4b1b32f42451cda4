//! Groups: what they have read, what is left, who is there.

use std::collections::BTreeMap;

use anabranch_core::limits::METRIC_SERIES_MAX;

use super::row::{Family, Row, Value, level, rows};
use super::scrape::{Group, Place, Scrape};
use super::trend::{OfTopic, Outlook};

rows! {
    MEMBERS: Gauge "kafka_consumergroup_members" ["consumergroup"] "Members of the group";
    OFFSET: Gauge "kafka_consumergroup_current_offset" ["consumergroup", "topic", "partition"] "Committed offset; of a divided partition, the lowest that somebody of the group still needs";
    OFFSET_SUM: Gauge "kafka_consumergroup_current_offset_sum" ["consumergroup", "topic"] "Sum of the committed offsets of the topic's partitions";
    LAG: Gauge "kafka_consumergroup_lag" ["consumergroup", "topic", "partition"] "Records from the committed offset to the end of the partition";
    LAG_SUM: Gauge "kafka_consumergroup_lag_sum" ["consumergroup", "topic"] "Sum of the lag over the topic's partitions";
    IDLE: Gauge "anabranch_group_idle_members" ["consumergroup"] "Members that hold no partition, nor a share of one";
    DESIRED: Gauge "anabranch_group_desired_members" ["consumergroup"] "Members that would read what is unread, and what comes in meanwhile, within a minute, by the speed at which members of the group were seen to work; at most as many as can have work, past the number of partitions where these may be divided; 0 if there is nothing to read";
    LAG_SECONDS: Gauge "anabranch_group_lag_seconds" ["consumergroup", "topic"] "Age of the batch with the oldest record that is not committed, by the newest of its timestamps, of all partitions of the topic; 0 if everything is read; absent until it is known";
    STUCK: Gauge "anabranch_group_stuck_seconds" ["consumergroup", "topic"] "For how long the committed offset of a partition has not moved, though there are records behind it and the group has members, as seen by scrapes; of the partition where that is longest";
    HOTTEST: Gauge "anabranch_group_hottest_slot_share" ["consumergroup", "topic"] "Part of the unread records of a divided partition that lies in its fullest slot, which one member must read alone: 0 to 1; of the partition where it is largest, as counted after the scrape before; absent below 100 records";
    SHARING: Gauge "anabranch_group_sharing_members" ["consumergroup", "topic", "partition"] "Members that share a divided partition; absent while it is not divided";
    MOVING: Gauge "anabranch_group_moving_slots" ["consumergroup", "topic", "partition"] "Of the 4,096 slots of a divided partition, those on their way from one member to another";
    LEFT_OUT: Gauge "anabranch_metric_series_left_out" [] "Series by group and partition, and of ages, standstills and hottest slots by group and topic, that are left out because there are too many; lag and offsets by topic are always there";
}

pub(super) fn families(scrape: &Scrape, outlook: &Outlook) -> Vec<Family> {
    let all = scrape
        .groups
        .iter()
        .map(|group| group.places.len())
        .sum::<usize>();
    let shown = all.min(METRIC_SERIES_MAX);
    let topics = outlook.topics.len();
    let of_group = |group: &Group| vec![group.id.clone()];
    vec![
        MEMBERS.with(
            scrape
                .groups
                .iter()
                .map(|group| (of_group(group), level(group.members))),
        ),
        places(&OFFSET, scrape, |place| Some(place.committed.into())),
        sums(&OFFSET_SUM, scrape, |place| place.committed),
        places(&LAG, scrape, |place| Some(place.lag.into())),
        sums(&LAG_SUM, scrape, |place| place.lag),
        IDLE.with(
            scrape
                .groups
                .iter()
                .filter_map(|group| Some((of_group(group), level(group.idle?)))),
        ),
        DESIRED.with(
            outlook
                .desired
                .iter()
                .map(|(group, desired)| (vec![group.clone()], Value::Count(*desired))),
        ),
        of_topics(&LAG_SECONDS, outlook, OfTopic::lag_s),
        of_topics(&STUCK, outlook, |topic| Some(topic.stuck_s)),
        of_topics(&HOTTEST, outlook, |topic| topic.hottest),
        places(&SHARING, scrape, |place| Some(level(place.division?.0))),
        places(&MOVING, scrape, |place| Some(level(place.division?.1))),
        LEFT_OUT.with([(
            Vec::new(),
            level(all - shown + topics - topics.min(METRIC_SERIES_MAX)),
        )]),
    ]
}

/// A value for each partition of each group, as far as they are shown.
fn places(row: &'static Row, scrape: &Scrape, value: impl Fn(&Place) -> Option<Value>) -> Family {
    let all = scrape
        .groups
        .iter()
        .flat_map(|group| group.places.iter().map(move |place| (group, place)));
    row.with(all.take(METRIC_SERIES_MAX).filter_map(|(group, place)| {
        let labels = vec![group.id.clone(), place.topic.clone(), place.partition.to_string()];
        Some((labels, value(place)?))
    }))
}

/// A value for each topic of each group, as far as they are shown.
fn of_topics(row: &'static Row, outlook: &Outlook, value: impl Fn(&OfTopic) -> Option<f64>) -> Family {
    let shown = outlook.topics.iter().take(METRIC_SERIES_MAX);
    row.with(shown.filter_map(|((group, topic), found)| {
        let labels = vec![group.clone(), topic.clone()];
        Some((labels, Value::Real(value(found)?)))
    }))
}

/// The sum over the partitions of each topic of each group.
fn sums(row: &'static Row, scrape: &Scrape, value: impl Fn(&Place) -> i64) -> Family {
    let mut sums = BTreeMap::<(&str, &str), i64>::new();
    for group in &scrape.groups {
        for place in &group.places {
            let sum = sums.entry((&group.id, &place.topic)).or_default();
            *sum = sum.saturating_add(value(place));
        }
    }
    let label = |(group, topic): (&str, &str)| vec![group.to_owned(), topic.to_owned()];
    row.with(sums.into_iter().map(|(key, sum)| (label(key), Value::Level(sum))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(partition: i32) -> Place {
        Place {
            topic: "t".to_owned(),
            partition,
            committed: 10,
            lag: 2,
            start: 0,
            end: 12,
            log: None,
            division: (partition == 0).then_some((3, 17)),
        }
    }

    fn scrape(partitions: i32) -> Scrape {
        Scrape {
            groups: vec![Group {
                id: "g".to_owned(),
                members: 4,
                idle: Some(1),
                room: 8,
                places: (0..partitions).map(place).collect(),
            }],
            ..Scrape::default()
        }
    }

    fn family(scrape: &Scrape, name: &str) -> Family {
        let mut all = families(scrape, &Outlook::default()).into_iter();
        all.find(|family| family.row.name == name).unwrap()
    }

    #[test]
    fn sums_hold_what_is_left_out() {
        let many = i32::try_from(METRIC_SERIES_MAX).unwrap() + 5;
        let scrape = scrape(many);
        assert_eq!(
            family(&scrape, "kafka_consumergroup_lag").series.len(),
            METRIC_SERIES_MAX
        );
        let sum = family(&scrape, "kafka_consumergroup_lag_sum");
        assert_eq!(sum.series[0].value, Value::Level(2 * i64::from(many)));
        let left_out = family(&scrape, "anabranch_metric_series_left_out");
        assert_eq!(left_out.series[0].value, Value::Level(5));
    }

    #[test]
    fn what_is_told_by_topic_beside_the_sums_is_bounded_as_well() {
        let key = |number: usize| ("g".to_owned(), format!("topic-{number:06}"));
        let topics = (0..METRIC_SERIES_MAX + 3).map(|number| (key(number), OfTopic::default()));
        let outlook = Outlook {
            topics: topics.collect(),
            ..Outlook::default()
        };
        let found = families(&scrape(1), &outlook);
        let series = |name: &str| {
            let family = found.iter().find(|family| family.row.name == name);
            family.unwrap().series.clone()
        };
        assert_eq!(series("anabranch_group_stuck_seconds").len(), METRIC_SERIES_MAX);
        assert_eq!(series("anabranch_group_lag_seconds").len(), METRIC_SERIES_MAX);
        assert_eq!(
            series("anabranch_metric_series_left_out")[0].value,
            Value::Level(3)
        );
    }

    #[test]
    fn only_divided_partitions_are_shared() {
        let scrape = scrape(3);
        let sharing = family(&scrape, "anabranch_group_sharing_members");
        assert_eq!(sharing.series.len(), 1);
        assert_eq!(sharing.series[0].labels, ["g", "t", "0"]);
        assert_eq!(sharing.series[0].value, Value::Level(3));
        assert_eq!(
            family(&scrape, "anabranch_group_idle_members").series[0].value,
            Value::Level(1)
        );
    }
}
