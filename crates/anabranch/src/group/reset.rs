//! `anabranch group reset`: a plan of new offsets, shown; carried out only with `--execute`.

use std::collections::BTreeMap;

use rdkafka::error::RDKafkaErrorCode;
use serde::Serialize;

use super::{find, group_failure};
use crate::client::{Admin, OffsetSpec, PartitionOffset, TopicPartition};
use crate::failure::{Failure, Outcome};
use crate::number::number;
use crate::output::{self, Format, Table};
use crate::time::{now_ms, parse_time_ms};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The group; it must have no members.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    group: String,
    /// A topic, or some partitions of it; may be given several times.
    #[arg(
        long = "topic",
        value_name = "TOPIC[:P,P...]",
        required_unless_present = "all_topics"
    )]
    topics: Vec<String>,
    /// All topics that the group has committed offsets for.
    #[arg(long, conflicts_with = "topics")]
    all_topics: bool,
    #[command(flatten)]
    target: TargetArgs,
    /// Do it. Without this, only show what would be done.
    #[arg(long, conflicts_with = "dry_run")]
    execute: bool,
    /// Only show what would be done; the default.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TargetArgs {
    /// To the first message that is still there.
    #[arg(long)]
    to_earliest: bool,
    /// Behind the last message.
    #[arg(long)]
    to_latest: bool,
    /// To this offset, or the nearest that exists.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number("an offset", 0i64..))]
    to_offset: Option<i64>,
    /// To the first message that is not older than this: 2026-01-31T12:00:00Z, milliseconds since 1970, or -1h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to_datetime: Option<String>,
    /// Forward by N messages, or back if negative.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = number::<i64>("a whole number of messages", ..))]
    shift_by: Option<i64>,
}

/// Where the offsets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Earliest,
    Latest,
    Offset(i64),
    Time(i64),
    Shift(i64),
}

/// What is planned for one partition.
#[derive(Debug, Serialize)]
struct Step {
    group: String,
    topic: String,
    partition: i32,
    new_offset: i64,
    current_offset: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Plan<'a> {
    executed: bool,
    partitions: &'a [Step],
}

pub(crate) fn run(admin: &Admin, args: &Args, format: Format) -> Outcome {
    let target = target(&args.target, now_ms())?;
    require_no_members(admin, &args.group)?;
    let committed = match admin.committed(&args.group)? {
        Ok(offsets) => offsets,
        Err(error) if error.is(RDKafkaErrorCode::GroupIdNotFound) => Vec::new(),
        Err(error) => return Err(group_failure(&error, &args.group, "reset")),
    };
    let current: BTreeMap<TopicPartition, i64> = committed
        .into_iter()
        .filter(|one| one.offset >= 0)
        .map(|one| (one.at, one.offset))
        .collect();
    let scope = scope(admin, args, &current)?;
    let steps = plan(admin, &args.group, &scope, &current, target)?;
    if args.execute {
        execute(admin, &args.group, &steps)?;
    }
    print_plan(&steps, args, format)
}

fn target(args: &TargetArgs, now_ms: i64) -> Outcome<Target> {
    if args.to_earliest {
        return Ok(Target::Earliest);
    }
    if let Some(offset) = args.to_offset {
        return Ok(Target::Offset(offset));
    }
    if let Some(by) = args.shift_by {
        return Ok(Target::Shift(by));
    }
    if let Some(time) = &args.to_datetime {
        let ms =
            parse_time_ms(time, now_ms).map_err(|why| Failure::usage(format!("--to-datetime: {why}")))?;
        return Ok(Target::Time(ms));
    }
    Ok(Target::Latest)
}

/// Offsets of a group with members would be overwritten by the members' next commit.
fn require_no_members(admin: &Admin, group: &str) -> Outcome {
    match find(admin, group)? {
        Some(found) if !found.members.is_empty() || !matches!(found.state.as_str(), "Empty" | "Dead") => {
            let message = format!(
                "cannot reset group \"{group}\": it has members (state {})",
                found.state
            );
            Err(Failure::failed(message)
                .hint("stop its consumers first, and wait for their session timeout if they crashed"))
        }
        _ => Ok(()),
    }
}

/// The partitions that are meant.
fn scope(
    admin: &Admin,
    args: &Args,
    current: &BTreeMap<TopicPartition, i64>,
) -> Outcome<Vec<TopicPartition>> {
    if args.all_topics {
        if current.is_empty() {
            return Err(
                Failure::not_found(format!("group \"{}\" has no committed offsets", args.group))
                    .hint("name topics with --topic"),
            );
        }
        return Ok(current.keys().cloned().collect());
    }
    let mut wanted = Vec::new();
    for text in &args.topics {
        wanted.push(parse_topic(text)?);
    }
    let names: Vec<String> = wanted.iter().map(|(topic, _)| topic.clone()).collect();
    let mut scope = Vec::new();
    for (topic, described) in admin.describe_topics(&names)? {
        let found = described.map_err(|error| crate::topic::topic_failure(&error, &topic, "describe"))?;
        let existing: Vec<i32> = found.partitions.iter().map(|one| one.partition).collect();
        for (_, partitions) in wanted.iter().filter(|(name, _)| *name == topic) {
            let partitions = partitions.as_ref().unwrap_or(&existing);
            if let Some(missing) = partitions.iter().find(|one| !existing.contains(one)) {
                let count = existing.len();
                return Err(Failure::not_found(format!(
                    "topic \"{topic}\" has {count} partitions and none is {missing}"
                )));
            }
            scope.extend(partitions.iter().map(|one| TopicPartition {
                topic: topic.clone(),
                partition: *one,
            }));
        }
    }
    scope.sort();
    scope.dedup();
    Ok(scope)
}

/// Reads `TOPIC` or `TOPIC:0,3`.
fn parse_topic(text: &str) -> Outcome<(String, Option<Vec<i32>>)> {
    let Some((topic, partitions)) = text.split_once(':') else {
        return Ok((text.to_owned(), None));
    };
    let partitions: Result<Vec<i32>, _> = partitions.split(',').map(|one| one.trim().parse()).collect();
    match partitions {
        Ok(partitions) => Ok((topic.to_owned(), Some(partitions))),
        Err(_) => Err(Failure::usage(format!(
            "--topic {text}: expected TOPIC or TOPIC:PARTITION,PARTITION"
        ))),
    }
}

fn plan(
    admin: &Admin,
    group: &str,
    scope: &[TopicPartition],
    current: &BTreeMap<TopicPartition, i64>,
    target: Target,
) -> Outcome<Vec<Step>> {
    let starts = bounds(admin, scope, OffsetSpec::Earliest)?;
    let ends = bounds(admin, scope, OffsetSpec::Latest)?;
    let times = match target {
        Target::Time(ms) => bounds(admin, scope, OffsetSpec::AtTime(ms))?,
        _ => BTreeMap::new(),
    };
    let mut steps = Vec::new();
    for at in scope {
        let unknown = || {
            Failure::failed(format!(
                "the broker does not say where {}:{} begins and ends",
                at.topic, at.partition
            ))
        };
        let (start, end) = (
            *starts.get(at).ok_or_else(unknown)?,
            *ends.get(at).ok_or_else(unknown)?,
        );
        let wanted = match target {
            Target::Earliest => start,
            Target::Latest => end,
            Target::Offset(offset) => offset,
            // No message is that young: the end.
            Target::Time(_) => times
                .get(at)
                .copied()
                .filter(|offset| *offset >= 0)
                .unwrap_or(end),
            Target::Shift(by) => {
                let from = current.get(at).ok_or_else(|| {
                    Failure::failed(format!(
                        "{}:{} has no committed offset to shift",
                        at.topic, at.partition
                    ))
                    .hint("leave it out with --topic TOPIC:PARTITION, or choose another target")
                })?;
                from.saturating_add(by)
            }
        };
        let new_offset = wanted.clamp(start, end.max(start));
        if new_offset != wanted {
            output::say(&format!(
                "{}:{}: offset {wanted} is outside {start} to {end}, using {new_offset}",
                at.topic, at.partition
            ));
        }
        let (topic, partition) = (at.topic.clone(), at.partition);
        let current_offset = current.get(at).copied();
        steps.push(Step {
            group: group.to_owned(),
            topic,
            partition,
            new_offset,
            current_offset,
        });
    }
    Ok(steps)
}

fn bounds(
    admin: &Admin,
    scope: &[TopicPartition],
    spec: OffsetSpec,
) -> Outcome<BTreeMap<TopicPartition, i64>> {
    let wishes: Vec<_> = scope.iter().map(|at| (at.clone(), spec)).collect();
    let answers = admin.list_offsets(&wishes)?;
    let good = |one: PartitionOffset| {
        if one.error.is_none() {
            Some((one.at, one.offset))
        } else {
            None
        }
    };
    Ok(answers.into_iter().filter_map(good).collect())
}

fn execute(admin: &Admin, group: &str, steps: &[Step]) -> Outcome {
    let offsets: Vec<(TopicPartition, i64)> = steps
        .iter()
        .map(|step| {
            (
                TopicPartition {
                    topic: step.topic.clone(),
                    partition: step.partition,
                },
                step.new_offset,
            )
        })
        .collect();
    let results = admin
        .commit(group, &offsets)?
        .map_err(|error| group_failure(&error, group, "reset"))?;
    for one in results {
        if let Some(error) = one.error {
            let failure = group_failure(&error, group, "reset");
            let message = format!("{} ({}:{})", failure.message, one.at.topic, one.at.partition);
            return Err(Failure { message, ..failure });
        }
    }
    Ok(())
}

fn print_plan(steps: &[Step], args: &Args, format: Format) -> Outcome {
    if format == Format::Json {
        return output::print_json(&Plan {
            executed: args.execute,
            partitions: steps,
        });
    }
    let mut table = Table::new(&["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "CURRENT-OFFSET"]);
    for step in steps {
        table.row(vec![
            step.group.clone(),
            step.topic.clone(),
            step.partition.to_string(),
            step.new_offset.to_string(),
            step.current_offset
                .map_or("-".to_owned(), |offset| offset.to_string()),
        ]);
    }
    output::print(&table.render())?;
    if !args.execute {
        output::say("nothing was changed; add --execute to do it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_may_name_partitions() {
        assert_eq!(parse_topic("orders"), Ok(("orders".to_owned(), None)));
        assert_eq!(
            parse_topic("orders:0, 3"),
            Ok(("orders".to_owned(), Some(vec![0, 3])))
        );
        assert!(
            parse_topic("orders:x")
                .unwrap_err()
                .message
                .contains("expected TOPIC or TOPIC:PARTITION")
        );
    }
}
