//! `anabranch group`: list, describe, reset and delete consumer groups; see and steer how their partitions are divided.
//!
//! ```text
//! list, describe, reset, delete                 -> client::Admin     -> any Kafka broker
//! describe (slices), split ... explain          -> client::AdminApi  -> Anabranch's HTTP listener
//! ```

mod describe;
mod elastic;
mod reset;
mod shares;

use clap::Subcommand;
use rdkafka::error::RDKafkaErrorCode;
use regex::Regex;
use serde::Serialize;

use crate::client::{Admin, AdminUrl, ApiError, Connection, GroupDescription};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Table};

const EXAMPLES: &str = "\
Examples:
  anabranch group list
  anabranch group describe billing                                 offsets and lag of each partition
  anabranch group describe billing --members
  anabranch group reset billing --topic orders --to-earliest       shows what would change
  anabranch group reset billing --topic orders:0 --to-datetime 2026-01-31T12:00:00Z --execute
  anabranch group delete billing
  anabranch group explain billing                                  why it is divided as it is, or not at all
  anabranch group split billing orders --dry-run";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    admin: AdminUrl,
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Debug, Subcommand)]
enum GroupCommand {
    /// List groups.
    #[command(visible_alias = "ls")]
    List {
        /// Only groups whose name matches this regular expression.
        regex: Option<String>,
    },
    /// Describe groups: committed offsets, lag, members, and who holds which slice.
    Describe(describe::Args),
    /// Set the committed offsets of a group that has no members.
    Reset(reset::Args),
    /// Delete groups that have no members, with their offsets.
    Delete {
        /// The groups to delete.
        #[arg(required = true, value_name = "GROUP", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        groups: Vec<String>,
    },
    /// Give a part of a partition's unread records to another member.
    Split(elastic::MoveArgs),
    /// Unite what is divided: a member gives up its part to others.
    Merge(elastic::MoveArgs),
    /// Leave a group as it is: no split or merge by itself until it is resumed.
    Pause(elastic::GroupArgs),
    /// Divide a paused group again where that helps.
    Resume(elastic::GroupArgs),
    /// Show what would be decided about a group now, without doing it.
    Plan(elastic::GroupArgs),
    /// Explain the latest decisions about a group, and why it stays plain if it does.
    Explain(elastic::ExplainArgs),
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let kafka = || Admin::connect(&args.connection);
    let api = || args.admin.open();
    match &args.command {
        GroupCommand::List { regex } => list(&kafka()?, regex.as_deref(), format),
        GroupCommand::Describe(what) => {
            let slices = shares::Slices::of(&args.admin, &args.connection)?;
            describe::run(&kafka()?, &slices, what, format)
        }
        GroupCommand::Reset(args) => reset::run(&kafka()?, args, format),
        GroupCommand::Delete { groups } => delete(&kafka()?, groups, format),
        GroupCommand::Split(what) => elastic::move_slots(&api()?, "split", what, format),
        GroupCommand::Merge(what) => elastic::move_slots(&api()?, "merge", what, format),
        GroupCommand::Pause(what) => elastic::switch(&api()?, "pause", what.name(), format),
        GroupCommand::Resume(what) => elastic::switch(&api()?, "resume", what.name(), format),
        GroupCommand::Plan(what) => elastic::plan(&api()?, what, format),
        GroupCommand::Explain(what) => elastic::explain(&api()?, what, format),
    }
}

/// One line of `group list`.
#[derive(Debug, Serialize)]
struct Row {
    group: String,
    r#type: String,
    state: String,
}

fn list(admin: &Admin, regex: Option<&str>, format: Format) -> Outcome {
    let pattern: Option<Regex> = regex.map(crate::topic::pattern).transpose()?;
    let (groups, errors) = admin.list_groups()?;
    if let Some(error) = errors.first() {
        return Err(error.failure("list groups"));
    }
    let mut rows: Vec<Row> = groups
        .into_iter()
        .filter(|one| {
            pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(&one.group))
        })
        .map(|one| Row {
            group: one.group,
            r#type: one.kind,
            state: one.state,
        })
        .collect();
    rows.sort_by(|a, b| a.group.cmp(&b.group));
    match format {
        Format::Json => output::print_json(&rows),
        Format::Text => {
            let mut table = Table::new(&["GROUP", "TYPE", "STATE"]);
            for row in rows {
                table.row(vec![row.group, row.r#type, row.state]);
            }
            output::print(&table.render())
        }
    }
}

/// What became of one group.
#[derive(Debug, Serialize)]
struct Done {
    group: String,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn delete(admin: &Admin, groups: &[String], format: Format) -> Outcome {
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (group, result) in admin.delete_groups(groups)? {
        match result {
            Ok(()) => rows.push(Done {
                group,
                result: "deleted",
                error: None,
            }),
            Err(error) => {
                let failure = group_failure(&error, &group, "delete");
                rows.push(Done {
                    group,
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
                output::print(&format!("deleted group {}\n", row.group))?;
            }
        }
    }
    crate::topic::merge(failures)
}

/// The failure of a request about one group, with what to do about the usual ones.
fn group_failure(error: &ApiError, group: &str, verb: &str) -> Failure {
    if error.is(RDKafkaErrorCode::GroupIdNotFound) {
        return no_group(group);
    }
    if error.is(RDKafkaErrorCode::NonEmptyGroup) || error.is(RDKafkaErrorCode::UnknownMemberId) {
        return Failure::failed(format!("cannot {verb} group \"{group}\": it has members")).hint(format!(
            "stop its consumers first; `anabranch group describe {group} --members` shows them"
        ));
    }
    error.failure(&format!("{verb} group \"{group}\""))
}

fn no_group(group: &str) -> Failure {
    Failure::not_found(format!("there is no group \"{group}\""))
        .hint("`anabranch group list` shows all groups")
}

/// Describes one group; `None` if it does not exist, which old and new brokers say in different ways.
fn find(admin: &Admin, group: &str) -> Outcome<Option<GroupDescription>> {
    let mut described = admin.describe_groups(&[group.to_owned()])?;
    match described.pop() {
        None => Ok(None),
        Some((_, Err(error))) if error.is(RDKafkaErrorCode::GroupIdNotFound) => Ok(None),
        Some((_, Err(error))) => Err(group_failure(&error, group, "describe")),
        Some((_, Ok(found))) if found.state == "Dead" && found.members.is_empty() => Ok(None),
        Some((_, Ok(found))) => Ok(Some(found)),
    }
}
