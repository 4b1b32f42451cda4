//! `anabranch topic queues`: how many queues of a topic are written and read, why, and what an operator wants.

use anabranch_server::admin::model::{QueueGroup, Queues};

use crate::client::AdminApi;
use crate::decisions;
use crate::failure::Outcome;
use crate::output::{self, Format, Table};

/// Queues with unread records that a group's line has room for.
const QUEUES_SHOWN: usize = 8;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The topic.
    topic: String,
    /// Have so many queues, whatever the number of consumers; `auto` to follow that again.
    #[arg(long, value_name = "N", value_parser = wish)]
    wish: Option<Wish>,
    /// Take away queues now that wait to be read; what is unread in them stays with the groups that have not read it.
    #[arg(long, conflicts_with = "wish")]
    force: bool,
    /// Show the latest decisions with their reasons.
    #[arg(long)]
    explain: bool,
}

/// How many queues an operator wants.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Auto,
    Count(u32),
}

fn wish(text: &str) -> Result<Wish, String> {
    match text {
        "auto" => Ok(Wish::Auto),
        _ => match text.parse() {
            Ok(count) if count > 0 => Ok(Wish::Count(count)),
            _ => Err("expected a number from 1 on, or auto".to_owned()),
        },
    }
}

pub(super) fn run(api: &AdminApi, args: &Args, format: Format) -> Outcome {
    let queues = match args.wish {
        Some(Wish::Auto) => api.wish_queues(&args.topic, None)?,
        Some(Wish::Count(count)) => api.wish_queues(&args.topic, Some(count))?,
        None if args.force => api.force_queues(&args.topic)?,
        None => api.queues(&args.topic)?,
    };
    match format {
        Format::Json => output::print_json(&queues),
        Format::Text => output::print(&text(&queues, args.explain)),
    }
}

/// A topic's queues in sentences, the groups as a table, and the decisions if they are asked for.
fn text(queues: &Queues, explain: bool) -> String {
    let mut text = summary(queues);
    if queues.groups.is_empty() {
        text.push_str("No group with members reads it.\n");
    } else {
        let mut table = Table::new(&["GROUP", "INSTANCES", "COUNTS", "UNREAD", "QUEUE:UNREAD"]);
        for group in &queues.groups {
            table.row(vec![
                group.group.clone(),
                group.instances.to_string(),
                if group.counts { "yes" } else { "no" }.to_owned(),
                group.unread.to_string(),
                by_queue(group),
            ]);
        }
        text.push_str(&table.render());
    }
    if explain {
        text.push('\n');
        text.push_str(&decisions::lines(&queues.decisions));
    }
    text
}

/// The first queues with unread records, and how many records those are.
fn by_queue(group: &QueueGroup) -> String {
    let shown = group.unread_in.iter().take(QUEUES_SHOWN);
    let mut words: Vec<String> = shown
        .map(|unread| format!("{}:{}", unread.queue, unread.records))
        .collect();
    let further = group.unread_in.len().saturating_sub(QUEUES_SHOWN) as u64 + group.unread_left_out;
    if further > 0 {
        words.push(format!("and {further} more"));
    }
    if words.is_empty() {
        words.push("-".to_owned());
    }
    words.join(" ")
}

/// What is so now, and what is waited for.
pub(super) fn summary(queues: &Queues) -> String {
    let Queues {
        topic,
        facade,
        write,
        read,
        goal,
        ..
    } = queues;
    let mut text = format!(
        "Topic {topic}: {write} of {facade} partitions are written, {read} are read; {goal} wanted, {}.\n",
        queues.phase
    );
    if let Some(wish) = queues.wish {
        text.push_str(&format!(
            "An operator wants {wish}; `anabranch topic queues {topic} --wish auto` ends that.\n"
        ));
    }
    if let Some(next_ms) = queues.next_in_ms {
        text.push_str(&format!("The next change is due in {}.\n", seconds(next_ms)));
    }
    if let Some(fewer_ms) = queues.fewer_for_ms {
        text.push_str(&format!(
            "There have been fewer instances than queues for {}; that changes the queues after {}.\n",
            seconds(fewer_ms),
            seconds(queues.settings.shrink_grace_ms)
        ));
    }
    if let Some(unread) = &queues.blocked {
        text.push_str(&format!(
            "Group {} has {} unread records in queue {}, which is to go.\n",
            unread.group, unread.records, unread.queue
        ));
    }
    text
}

fn seconds(ms: u64) -> String {
    if ms < 10_000 {
        format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
    } else {
        format!("{} s", ms / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_server::admin::model::QueueUnread;

    #[test]
    fn what_is_unread_of_each_queue_has_little_room() {
        let unread_in = |queues: u32| {
            (0..queues)
                .map(|queue| QueueUnread { queue, records: 7 })
                .collect()
        };
        let mut group = QueueGroup {
            group: "g".to_owned(),
            instances: 1,
            counts: true,
            unread: 0,
            unread_in: unread_in(0),
            unread_left_out: 0,
        };
        assert_eq!(by_queue(&group), "-");
        group.unread_in = unread_in(2);
        assert_eq!(by_queue(&group), "0:7 1:7");
        group.unread_in = unread_in(10);
        group.unread_left_out = 3;
        assert_eq!(by_queue(&group), "0:7 1:7 2:7 3:7 4:7 5:7 6:7 7:7 and 5 more");
    }
}
