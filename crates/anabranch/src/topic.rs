//! `anabranch topic`: create, list, describe, alter and delete topics.

mod describe;
mod queues;

use clap::Subcommand;
use rdkafka::error::RDKafkaErrorCode;
use regex::Regex;
use serde::Serialize;

use crate::client::{Admin, AdminUrl, ApiError, ConfigChange, Connection, NewTopic};
use crate::failure::{Failure, Outcome};
use crate::number::number;
use crate::output::{self, Format, Table};

const EXAMPLES: &str = "\
Examples:
  anabranch topic create orders -p 3 -c retention.ms=86400000
  anabranch topic list '^orders'
  anabranch topic describe orders
  anabranch topic alter orders --set max.message.bytes=2097152
  anabranch topic queues orders --explain
  anabranch topic delete orders";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    admin: AdminUrl,
    #[command(subcommand)]
    command: TopicCommand,
}

#[derive(Debug, Subcommand)]
enum TopicCommand {
    /// Create topics.
    Create(CreateArgs),
    /// List topics.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Describe topics: partitions, offsets, and settings of their own.
    Describe(describe::Args),
    /// Add partitions to topics or change their settings.
    Alter(AlterArgs),
    /// Show the queues of a topic with elastic.mode=queues: how many are written and read, and why.
    Queues(queues::Args),
    /// Delete topics and all their messages.
    Delete {
        /// The topics to delete.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// The topics to create.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// How many partitions; the broker's num.partitions if not given.
    #[arg(short, long, value_name = "N", value_parser = number("a whole number of partitions", 1..=100_000i32))]
    partitions: Option<i32>,
    /// How many replicas; the broker's default if not given.
    #[arg(short, long, value_name = "N", value_parser = number("a whole number of replicas", 1i32..=32_767))]
    replicas: Option<i32>,
    /// A setting of the topic; may be given several times.
    #[arg(short, long = "config", value_name = "KEY=VALUE", value_parser = assignment)]
    config: Vec<(String, String)>,
    /// Succeed if the topic already exists.
    #[arg(long)]
    if_not_exists: bool,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only topics whose name matches this regular expression.
    regex: Option<String>,
    /// Internal topics, too.
    #[arg(long)]
    internal: bool,
}

#[derive(Debug, clap::Args)]
struct AlterArgs {
    /// The topics to change.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    changes: Changes,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// Raise the number of partitions to this. Messages stay where they are.
    #[arg(short, long, value_name = "N", value_parser = number("a whole number of partitions", 1usize..))]
    partitions: Option<usize>,
    /// Set a setting of the topic; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Put a setting back to the broker's value; may be given several times.
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    // What the Kafka protocol has no words for needs no connection of it.
    if let TopicCommand::Queues(what) = &args.command {
        return queues::run(&args.admin.open()?, what, format);
    }
    let admin = Admin::connect(&args.connection)?;
    match &args.command {
        TopicCommand::Queues(_) => Ok(()),
        TopicCommand::Create(args) => create(&admin, args, format),
        TopicCommand::List(args) => list(&admin, args, format),
        TopicCommand::Describe(what) => describe::run((&args.connection, &args.admin), &admin, what, format),
        TopicCommand::Alter(args) => alter(&admin, args, format),
        TopicCommand::Delete { names } => {
            let results = admin.delete_topics(names)?;
            report(results, "delete", "deleted", format)
        }
    }
}

/// What became of one topic.
#[derive(Debug, Serialize)]
struct Done {
    topic: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Prints what became of each topic, and fails if any of them failed.
fn report(
    results: Vec<(String, Result<(), ApiError>)>,
    verb: &str,
    done: &'static str,
    format: Format,
) -> Outcome {
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (topic, result) in results {
        match result {
            Ok(()) => rows.push(Done {
                topic,
                result: done,
                error: None,
            }),
            Err(error) => {
                let failure = topic_failure(&error, &topic, verb);
                rows.push(Done {
                    topic,
                    result: "failed",
                    error: Some(failure.message.clone()),
                });
                failures.push(failure);
            }
        }
    }
    match format {
        Format::Json => output::print_json(&rows)?,
        Format::Text => {
            for row in rows.iter().filter(|row| row.error.is_none()) {
                output::print(&format!("{done} topic {}\n", row.topic))?;
            }
        }
    }
    merge(failures)
}

/// One failure for all that went wrong; `Ok` if nothing did.
pub(crate) fn merge(failures: Vec<Failure>) -> Outcome {
    let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
    let message = messages.join("; ");
    match failures.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(Failure { message, ..first }),
    }
}

/// Refuses what no topic can be called, before anybody is asked for it.
pub(crate) fn check_name(topic: &str) -> Outcome {
    anabranch_core::node::check_name(topic).map_err(|refused| {
        Failure::usage(format!(
            "\"{topic}\" is no name of a topic: {}",
            refused.message()
        ))
    })
}

/// The failure of a request about one topic, with what to do about the usual ones.
pub(crate) fn topic_failure(error: &ApiError, topic: &str, verb: &str) -> Failure {
    if error.is(RDKafkaErrorCode::UnknownTopicOrPartition) || error.is(RDKafkaErrorCode::UnknownTopic) {
        return Failure::not_found(format!("there is no topic \"{topic}\""))
            .hint("`anabranch topic list` shows all topics");
    }
    if error.is(RDKafkaErrorCode::TopicAlreadyExists) {
        return Failure::failed(format!("topic \"{topic}\" already exists"))
            .hint("--if-not-exists lets that pass; `anabranch topic alter` changes it");
    }
    if error.is(RDKafkaErrorCode::InvalidConfig) {
        return error.failure(&format!("{verb} topic \"{topic}\"")).hint(
            "`anabranch config reference` names the settings of topics, where it says what topics override",
        );
    }
    error.failure(&format!("{verb} topic \"{topic}\""))
}

fn create(admin: &Admin, args: &CreateArgs, format: Format) -> Outcome {
    let topic = |name: &String| NewTopic {
        name: name.clone(),
        partitions: args.partitions,
        replicas: args.replicas,
        config: args.config.clone(),
    };
    let topics: Vec<NewTopic> = args.names.iter().map(topic).collect();
    let mut results = admin.create_topics(&topics)?;
    let exists = |error: &ApiError| error.is(RDKafkaErrorCode::TopicAlreadyExists);
    let mut existing = Vec::new();
    if args.if_not_exists {
        let (kept, rest): (Vec<_>, Vec<_>) = results
            .into_iter()
            .partition(|(_, result)| result.as_ref().is_err_and(exists));
        existing = kept.into_iter().map(|(name, _)| name).collect();
        results = rest;
    }
    for name in &existing {
        output::say(&format!("topic {name} already exists"));
    }
    report(results, "create", "created", format)
}

/// One line of `topic list`.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    partitions: usize,
    replicas: usize,
    internal: bool,
}

fn list(admin: &Admin, args: &ListArgs, format: Format) -> Outcome {
    let pattern = args.regex.as_deref().map(pattern).transpose()?;
    let wanted = |name: &String| pattern.as_ref().is_none_or(|pattern| pattern.is_match(name));
    let mut names = admin.topic_names()?;
    names.retain(wanted);
    let mut rows = Vec::new();
    for (_, described) in if names.is_empty() {
        Vec::new()
    } else {
        admin.describe_topics(&names)?
    } {
        // A topic that was deleted between the two requests is simply not there any more.
        let Ok(topic) = described else { continue };
        if args.internal || !topic.internal {
            rows.push(Row {
                replicas: topic
                    .partitions
                    .first()
                    .map_or(0, |partition| partition.replicas.len()),
                partitions: topic.partitions.len(),
                name: topic.name,
                internal: topic.internal,
            });
        }
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    match format {
        Format::Json => output::print_json(&rows),
        Format::Text => {
            let mut table = Table::new(&["NAME", "PARTITIONS", "REPLICAS"]);
            for row in rows {
                table.row(vec![
                    row.name,
                    row.partitions.to_string(),
                    row.replicas.to_string(),
                ]);
            }
            output::print(&table.render())
        }
    }
}

pub(crate) fn pattern(text: &str) -> Outcome<Regex> {
    Regex::new(text).map_err(|error| {
        let text_of_error = error.to_string();
        let reason = text_of_error
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        Failure::usage(format!("\"{text}\" is not a regular expression: {reason}"))
    })
}

fn alter(admin: &Admin, args: &AlterArgs, format: Format) -> Outcome {
    let set = args.changes.set.iter().map(|(name, value)| ConfigChange {
        name: name.clone(),
        value: Some(value.clone()),
    });
    let unset = args.changes.unset.iter().map(|name| ConfigChange {
        name: name.clone(),
        value: None,
    });
    let changes: Vec<ConfigChange> = set.chain(unset).collect();
    let mut results = Vec::new();
    for name in &args.names {
        results.push((
            name.clone(),
            alter_one(admin, name, args.changes.partitions, &changes)?,
        ));
    }
    report(results, "alter", "altered", format)
}

fn alter_one(
    admin: &Admin,
    name: &str,
    partitions: Option<usize>,
    changes: &[ConfigChange],
) -> Outcome<Result<(), ApiError>> {
    if let Some(total) = partitions {
        let results = admin.create_partitions(name, total)?;
        if let Some(error) = results.into_iter().find_map(|(_, result)| result.err()) {
            return Ok(Err(error));
        }
    }
    if changes.is_empty() {
        Ok(Ok(()))
    } else {
        admin.alter_topic(name, changes)
    }
}
