//! Where to start reading, and where the end is.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use crate::client::{Admin, OffsetSpec, TopicPartition};
use crate::failure::{Failure, Outcome};
use crate::time::{now_ms, parse_time_ms};

/// A place in a partition as a person names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The oldest record that is still there.
    Start,
    /// Behind the newest.
    End,
    /// This offset.
    Offset(i64),
    /// The first record that is not older than this, in milliseconds since 1970.
    Time(i64),
    /// So many records before the end.
    Last(i64),
}

impl FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<From, String> {
        match text {
            "start" | "beginning" | "earliest" | "oldest" => return Ok(From::Start),
            "end" | "latest" | "newest" => return Ok(From::End),
            _ => {}
        }
        if let Some(time) = text.strip_prefix('@') {
            return parse_time_ms(time, now_ms()).map(From::Time);
        }
        match text.parse::<i64>() {
            Ok(last) if text.starts_with('-') => Ok(From::Last(last.saturating_neg())),
            Ok(offset) => Ok(From::Offset(offset)),
            Err(_) => Err("expected start, end, an offset, @TIME, or -N for the last N".to_owned()),
        }
    }
}

/// Where each partition is read from and where it ended when the plan was made.
#[derive(Debug, Default)]
pub(crate) struct Plan(BTreeMap<i32, (i64, i64)>);

impl Plan {
    /// Partitions with the offset to start at.
    pub(crate) fn starts(&self) -> impl Iterator<Item = (i32, i64)> {
        self.0.iter().map(|(partition, (start, _))| (*partition, *start))
    }

    /// The end of a partition as it was; never reached for one that is not in the plan.
    pub(crate) fn end(&self, partition: i32) -> i64 {
        self.0.get(&partition).map_or(i64::MAX, |(_, end)| *end)
    }

    /// Partitions that have something to read.
    pub(crate) fn unfinished(&self) -> BTreeSet<i32> {
        self.0
            .iter()
            .filter(|(_, (start, end))| start < end)
            .map(|(partition, _)| *partition)
            .collect()
    }
}

/// Finds out where to start and where the end is; of all partitions if none is named.
pub(crate) fn plan(admin: &Admin, topic: &str, partitions: &[i32], from: From) -> Outcome<Plan> {
    let all = existing(admin, topic)?;
    if let Some(missing) = partitions.iter().find(|one| !all.contains(one)) {
        let count = crate::output::plural(all.len() as u64, "partition");
        return Err(
            Failure::not_found(format!("topic \"{topic}\" has {count} and none is {missing}"))
                .hint("the first partition is 0"),
        );
    }
    let wanted = if partitions.is_empty() {
        &all[..]
    } else {
        partitions
    };
    let starts = offsets(admin, topic, wanted, OffsetSpec::Earliest)?;
    let ends = offsets(admin, topic, wanted, OffsetSpec::Latest)?;
    let times = match from {
        From::Time(ms) => offsets(admin, topic, wanted, OffsetSpec::AtTime(ms))?,
        _ => BTreeMap::new(),
    };
    let mut plan = BTreeMap::new();
    for partition in wanted {
        let unknown = || {
            Failure::failed(format!(
                "the broker does not say where {topic}:{partition} begins and ends"
            ))
        };
        let (first, end) = (
            *starts.get(partition).ok_or_else(unknown)?,
            *ends.get(partition).ok_or_else(unknown)?,
        );
        let start = match from {
            From::Start => first,
            From::End => end,
            From::Offset(offset) => require_within(topic, *partition, offset, first, end)?,
            From::Time(_) => times
                .get(partition)
                .copied()
                .filter(|offset| *offset >= 0)
                .unwrap_or(end),
            From::Last(count) => end.saturating_sub(count).max(first),
        };
        plan.insert(*partition, (start, end));
    }
    Ok(Plan(plan))
}

fn require_within(topic: &str, partition: i32, offset: i64, first: i64, end: i64) -> Outcome<i64> {
    if (first..=end).contains(&offset) {
        return Ok(offset);
    }
    let message = format!("{topic}:{partition} has no offset {offset}; it has {first} to {end}");
    Err(Failure::not_found(message)
        .hint("--partition reads one partition; --from start, end or @TIME fit all"))
}

fn existing(admin: &Admin, topic: &str) -> Outcome<Vec<i32>> {
    let mut described = admin.describe_topics(&[topic.to_owned()])?;
    match described.pop() {
        Some((_, Ok(found))) => Ok(found.partitions.iter().map(|one| one.partition).collect()),
        Some((_, Err(error))) => Err(crate::topic::topic_failure(&error, topic, "read")),
        None => Err(Failure::failed(format!(
            "the broker said nothing about topic \"{topic}\""
        ))),
    }
}

fn offsets(admin: &Admin, topic: &str, partitions: &[i32], spec: OffsetSpec) -> Outcome<BTreeMap<i32, i64>> {
    let at = |partition: &i32| TopicPartition {
        topic: topic.to_owned(),
        partition: *partition,
    };
    let wishes: Vec<_> = partitions.iter().map(|partition| (at(partition), spec)).collect();
    let answers = admin.list_offsets(&wishes)?;
    Ok(answers
        .into_iter()
        .filter(|one| one.error.is_none())
        .map(|one| (one.at.partition, one.offset))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        for (text, from) in [
            ("start", From::Start),
            ("latest", From::End),
            ("42", From::Offset(42)),
            ("-3", From::Last(3)),
            ("@1769860800000", From::Time(1_769_860_800_000)),
            ("@2026-01-31T12:00:00Z", From::Time(1_769_860_800_000)),
        ] {
            assert_eq!(text.parse(), Ok(from), "{text}");
        }
        for text in ["", "middle", "1.5", "@yesterday"] {
            assert!(text.parse::<From>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_plan_knows_what_is_unfinished() {
        let plan = Plan(BTreeMap::from([(0, (5, 9)), (1, (3, 3))]));
        assert_eq!(plan.unfinished(), BTreeSet::from([0]));
        assert_eq!((plan.end(0), plan.end(7)), (9, i64::MAX));
    }
}
