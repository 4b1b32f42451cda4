//! `anabranch decisions`: what the broker decided about groups, and what it decided not to do, with the reasons.

use std::time::Duration;

use anabranch_server::admin::model::{Decision, Decisions, Verdict};

use crate::client::{AdminApi, AdminUrl, Wanted};
use crate::failure::{Failure, Outcome};
use crate::number::number;
use crate::output::{self, Format};
use crate::time::format_time_ms;

const EXAMPLES: &str = "\
Examples:
  anabranch decisions                                  the latest of all groups
  anabranch decisions --group billing --follow         those about one group, as they are taken
  anabranch decisions --format json | jq '.decisions[] | select(.outcome == \"refused\")'";

/// How long the broker is asked to wait for the next decision.
const FOLLOW_WAIT: Duration = Duration::from_secs(20);

/// How many decisions one answer may have while following.
const FOLLOW_LIMIT: u32 = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only decisions about this group.
    #[arg(short, long)]
    group: Option<String>,
    /// How many of the latest decisions are shown.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = number("a whole number of decisions", 1..=1_000u32))]
    limit: u32,
    /// Then wait for more, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    admin: AdminUrl,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let api = args.admin.open()?;
    let wanted = Wanted {
        group: args.group.as_deref(),
        limit: args.limit,
        ..Wanted::default()
    };
    let latest = api.decisions(wanted)?;
    if args.follow {
        return follow(&api, wanted, latest, format);
    }
    match format {
        Format::Json => output::print_json(&latest),
        Format::Text => {
            if latest.decisions.is_empty() {
                output::say(&match &args.group {
                    Some(group) => {
                        format!(
                            "nothing was decided yet about a group \"{group}\"; `anabranch group list` shows those there are"
                        )
                    }
                    None => "nothing was decided yet".to_owned(),
                });
            }
            output::print(&lines(&latest.decisions))
        }
    }
}

/// Prints what is there and then what comes; as JSON one decision a line, since there is no end.
fn follow(api: &AdminApi, wanted: Wanted<'_>, mut batch: Decisions, format: Format) -> Outcome {
    loop {
        match format {
            Format::Text => output::print(&lines(&batch.decisions))?,
            Format::Json => output::print(&json_lines(&batch.decisions)?)?,
        }
        output::check_reader()?;
        let last = batch.decisions.last().map(|decision| decision.seq);
        let Some(after) = batch.next.or(last) else {
            return Err(Failure::failed(format!(
                "{} does not say how to go on",
                api.base()
            )));
        };
        batch = api.decisions(Wanted {
            after: Some(after),
            limit: FOLLOW_LIMIT,
            wait: FOLLOW_WAIT,
            ..wanted
        })?;
    }
}

fn json_lines(decisions: &[Decision]) -> Outcome<String> {
    let mut text = String::new();
    for decision in decisions {
        let line = serde_json::to_string(decision)
            .map_err(|error| Failure::failed(format!("cannot write the result as JSON: {error}")))?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// Decisions as lines: when, about what, and why.
pub(crate) fn lines(decisions: &[Decision]) -> String {
    let mut text = String::new();
    for decision in decisions {
        let time = format_time_ms(decision.time_ms);
        let at = format!("{}{}", decision.group, place(decision));
        text.push_str(&format!("{time}  {}  {}\n", at.trim_start(), sentence(decision)));
    }
    text
}

/// Where a decision applies: ` orders/0`, ` orders` if to the queues of a topic, nothing if to the whole group.
fn place(decision: &Decision) -> String {
    if decision.topic.is_empty() {
        String::new()
    } else if decision.partition < 0 {
        format!(" {}", decision.topic)
    } else {
        format!(" {}/{}", decision.topic, decision.partition)
    }
}

/// What was decided and why, in one line.
pub(crate) fn sentence(decision: &Decision) -> String {
    let mut line = match decision.outcome {
        Verdict::Decided => format!("{}: {}", decision.kind, decision.text),
        // What was not done need not have a kind: nothing helped.
        Verdict::Refused if decision.kind == "none" => format!("refused: {}", decision.text),
        Verdict::Refused => format!("no {}: {}", decision.kind, decision.text),
    };
    if decision.count > 1 {
        line.push_str(&format!(" ({} times)", decision.count));
    }
    match (&decision.result, decision.handover_ms) {
        (Some(result), Some(ms)) => line.push_str(&format!("; {result} after {ms} ms")),
        (Some(result), None) => line.push_str(&format!("; {result}")),
        (None, _) => {}
    }
    line
}
