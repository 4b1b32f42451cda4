//! What an operator asks about a divided group, and tells it to do: split, merge, pause, resume, plan, explain.

use anabranch_server::admin::model::{Decisions, Form, Group, Order, Partition};

use crate::client::{AdminApi, Wanted};
use crate::decisions;
use crate::failure::{Failure, Outcome};
use crate::names::{name_of, with_names};
use crate::number::number;
use crate::output::{self, Format, plural};

/// Which part of which group is to be divided or united.
#[derive(Debug, clap::Args)]
pub(crate) struct MoveArgs {
    /// The group.
    group: String,
    /// The topic; with the partition if it has several.
    #[arg(value_name = "TOPIC[:PARTITION]")]
    at: String,
    /// Only show what would be decided.
    #[arg(long)]
    dry_run: bool,
}

/// A group that is asked about.
#[derive(Debug, clap::Args)]
pub(crate) struct GroupArgs {
    /// The group.
    group: String,
}

/// What explaining takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The group.
    group: String,
    /// How many of the latest decisions are shown.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number("a whole number of decisions", 1..=1_000u32))]
    limit: u32,
}

/// Splits or merges: `verb` says which.
pub(super) fn move_slots(api: &AdminApi, verb: &str, args: &MoveArgs, format: Format) -> Outcome {
    let group = api.group(&args.group)?;
    let (topic, partition) = place(&group, &args.at)?;
    let order = Order {
        topic,
        partition,
        member: None,
        dry_run: args.dry_run,
    };
    let decided = api.order(&args.group, verb, &order)?;
    print(&decided, format, why_nothing(verb))?;
    if args.dry_run && format == Format::Text {
        output::say("nothing was changed; leave out --dry-run to do it");
    }
    Ok(())
}

/// Pauses or resumes: `verb` says which.
pub(super) fn switch(api: &AdminApi, verb: &str, group: &str, format: Format) -> Outcome {
    let decided = api.switch(group, verb)?;
    match format {
        Format::Json => output::print_json(&decided),
        Format::Text => {
            output::print(&format!("{verb}d group {group}\n"))?;
            output::print(&decisions::lines(&decided.decisions))
        }
    }
}

pub(super) fn plan(api: &AdminApi, args: &GroupArgs, format: Format) -> Outcome {
    let plan = api.plan(&args.group)?;
    print(&plan, format, "nothing to do")
}

/// What to say if an order leads to no decision, and to no refusal either.
fn why_nothing(verb: &str) -> &'static str {
    match verb {
        "split" => {
            "nothing to do: the group has no members, or all of them have a share already; `anabranch group describe` shows who has what"
        }
        _ => {
            "nothing to do: members do not share this partition; `anabranch group describe` shows who has what"
        }
    }
}

/// Decisions as lines; `nothing` if there are none.
fn print(decided: &Decisions, format: Format, nothing: &str) -> Outcome {
    match format {
        Format::Json => output::print_json(decided),
        Format::Text if decided.decisions.is_empty() => output::print(&format!("{nothing}\n")),
        Format::Text => output::print(&decisions::lines(&decided.decisions)),
    }
}

impl GroupArgs {
    pub(super) fn name(&self) -> &str {
        &self.group
    }
}

/// Reads `TOPIC` or `TOPIC:PARTITION`; the partition may be left out where the group has only one.
fn place(group: &Group, text: &str) -> Outcome<(String, i32)> {
    let numbers = |topic: &str| -> Vec<i32> {
        let of_topic = group.partitions.iter().filter(|one| one.topic == topic);
        of_topic.map(|one| one.partition).collect()
    };
    let unknown = |topic: &str| {
        let name = &group.group;
        Failure::not_found(format!("group \"{name}\" does not read {topic}"))
            .hint(format!("`anabranch group describe {name}` shows what it reads"))
    };
    // A topic's name has no colon.
    let Some((topic, number)) = text.split_once(':') else {
        return match numbers(text).as_slice() {
            [] => Err(unknown(text)),
            [one] => Ok((text.to_owned(), *one)),
            several => {
                let message = format!(
                    "group \"{}\" reads {} partitions of topic \"{text}\"",
                    group.group,
                    several.len()
                );
                Err(Failure::usage(message).hint(format!("name one: {text}:{}", several[0])))
            }
        };
    };
    let number: i32 = number
        .parse()
        .map_err(|_| Failure::usage(format!("{text}: expected TOPIC or TOPIC:PARTITION")))?;
    if numbers(topic).contains(&number) {
        Ok((topic.to_owned(), number))
    } else {
        Err(unknown(text))
    }
}

/// What a group looks like to the planner, and what was decided about it lately.
pub(super) fn explain(api: &AdminApi, args: &ExplainArgs, format: Format) -> Outcome {
    let group = api.group(&args.group)?;
    let latest = api.decisions(Wanted {
        group: Some(&args.group),
        limit: args.limit,
        ..Wanted::default()
    })?;
    match format {
        Format::Json => output::print_json(&serde_json::json!({
            "group": group.group,
            "state": group.state,
            "elastic": group.elastic,
            "members": group.members,
            "decisions": latest.decisions,
        })),
        Format::Text => {
            let mut text = describe(&group);
            text.push('\n');
            if latest.decisions.is_empty() {
                text.push_str("Nothing was decided about it yet.\n");
            }
            text.push_str(&decisions::lines(&latest.decisions));
            output::print(&with_names(&group, &text))
        }
    }
}

/// A group in sentences.
fn describe(group: &Group) -> String {
    let members = plural(group.members.len() as u64, "member");
    let elastic = &group.elastic;
    let mut text = format!(
        "Group {} ({}, {members}, protocol {}), elastic.mode={}.\n",
        group.group, group.state, group.protocol, elastic.mode
    );
    match (&elastic.reason, elastic.eligible) {
        (_, true) => text.push_str("Its partitions may be divided.\n"),
        (Some(reason), false) => {
            text.push_str(&format!("It stays plain: {}.\n", reason.trim_end_matches('.')));
        }
        (None, false) => text.push_str("It stays plain.\n"),
    }
    if elastic.paused {
        text.push_str(&format!(
            "An operator has paused it; `anabranch group resume {}` ends that.\n",
            group.group
        ));
    }
    for member in &group.members {
        if let Some(reason) = &member.ineligible {
            let (name, software) = (name_of(group, &member.member), &member.software);
            text.push_str(&format!(
                "Member {name} ({software}) gets no slice: {}.\n",
                reason.trim_end_matches('.')
            ));
        }
    }
    for one in &group.partitions {
        text.push_str(&partition(one));
    }
    text
}

fn partition(one: &Partition) -> String {
    let place = format!("{}/{}", one.topic, one.partition);
    let remain = plural(one.lag, "record");
    match one.form {
        Form::Plain => format!("{place} is plain, {remain} to do.\n"),
        Form::Divided => {
            let mut holders: Vec<&str> = one.shares.iter().map(|share| share.member.as_str()).collect();
            holders.sort_unstable();
            holders.dedup();
            let holders = plural(holders.len() as u64, "member");
            let moving: u32 = one.transits.iter().map(|transit| transit.slots).sum();
            let moving = if moving == 0 {
                String::new()
            } else {
                format!(", {} on their way", plural(u64::from(moving), "slot"))
            };
            format!("{place} is divided among {holders}, {remain} to do{moving}.\n")
        }
    }
}
