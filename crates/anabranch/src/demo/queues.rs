//! `anabranch demo --mode queues`: consumers come and go, and the queues of a topic follow them.
//!
//! ```text
//! feeder: numbered records, all the time, spread over all partitions that the topic shows
//! member: a librdkafka consumer in a thread of its own, which writes down what came
//! here:   members join one by one and leave one by one; after each the counts must become equal to their number,
//!         with one queue for each
//! ```
//!
//! The delays are seconds here, minutes by default. At the end every record must have come, and no queue may hold anything
//! that the group has not read.

mod feeder;
mod member;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch_server::admin::model::Queues;
use serde::Serialize;

use self::feeder::Feeder;
use self::member::Member;
use super::Args;
use super::place::{Made, Place};
use crate::client::AdminApi;
use crate::decisions;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// The topic's settings: what takes minutes by default takes seconds.
const SETTINGS: &[(&str, &str)] = &[
    ("elastic.mode", "queues"),
    ("elastic.queues.max", "16"),
    ("elastic.queues.write.delay.ms", "1000"),
    ("elastic.queues.drain.delay.ms", "2000"),
    ("elastic.queues.shrink.grace.ms", "500"),
];

/// Longest wait for the counts to follow, and for the last records.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// What the demo came to.
#[derive(Debug, Serialize)]
struct Report {
    broker: String,
    topic: String,
    group: String,
    /// Records that were acknowledged.
    written: u64,
    /// Different ones that came.
    delivered: u64,
    /// How often one came again.
    duplicated: u64,
    /// Records in any queue that the group has not read at the end.
    unread: u64,
    steps: Vec<Step>,
    queues: Queues,
}

/// The counts after a member came or went.
#[derive(Debug, Serialize)]
struct Step {
    members: u32,
    write: u32,
    read: u32,
    /// How many queues each member had, in the order in which they came.
    shares: Vec<usize>,
    /// How long it took, milliseconds.
    took_ms: u64,
}

pub(super) fn run(args: &Args, format: Format) -> Outcome {
    if args.input.is_some() || args.records.is_some() {
        return Err(Failure::usage("--input and --records are for --mode slices")
            .hint("in queue mode records are written as long as the demo lasts"));
    }
    let interrupted = crate::interrupt::flag()?;
    let made = Made {
        settings: SETTINGS,
        partitions: None,
    };
    let place = Place::open(&args.connection, &args.admin, &made)?;
    let played = play(args, &place, format, &interrupted);
    let closed = place.close();
    let report = played?;
    match format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&text(&report))?,
    }
    closed?;
    judge(&report)
}

fn play(args: &Args, place: &Place, format: Format, interrupted: &Arc<AtomicBool>) -> Outcome<Report> {
    let api = place.api.as_ref().ok_or_else(|| {
        Failure::usage("queues are shown by the administration API, and none is known")
            .hint("--admin http://HOST:PORT names it")
    })?;
    let stage = Stage {
        place,
        api,
        format,
        interrupted,
    };
    stage.say(&format!(
        "Broker at {}: topic {} shows {} partitions; {} members come and go\n",
        place.address(),
        place.topic,
        api.queues(&place.topic)?.facade,
        args.members
    ))?;
    let feeder = Feeder::start(place)?;
    let mut members: Vec<Member> = Vec::new();
    let mut steps = Vec::new();
    for number in 1..=args.members {
        members.push(Member::start(number, place, args.protocol.name())?);
        steps.push(stage.follow(&members, number)?);
    }
    let mut journals = Vec::new();
    while members.len() > 1 {
        if let Some(member) = members.pop() {
            journals.push(member.end()?);
        }
        let left = u32::try_from(members.len()).unwrap_or(u32::MAX);
        steps.push(stage.follow(&members, left)?);
    }
    let written = feeder.end(place)?;
    stage.wait_until_read(written, &journals, &members)?;
    for member in members {
        journals.push(member.end()?);
    }
    let came: Vec<u64> = journals.into_iter().flatten().collect();
    let delivered = came
        .iter()
        .filter(|number| **number < written)
        .collect::<BTreeSet<_>>()
        .len() as u64;
    let queues = api.queues(&place.topic)?;
    Ok(Report {
        broker: place.address().to_owned(),
        topic: place.topic.clone(),
        group: place.group.clone(),
        written,
        delivered,
        duplicated: (came.len() as u64).saturating_sub(delivered),
        unread: stage.unread(&queues),
        steps,
        queues,
    })
}

/// What is there while the demo plays.
struct Stage<'a> {
    place: &'a Place,
    api: &'a AdminApi,
    format: Format,
    interrupted: &'a Arc<AtomicBool>,
}

impl Stage<'_> {
    fn say(&self, line: &str) -> Outcome {
        match self.format {
            Format::Text => output::print(line),
            Format::Json => Ok(()),
        }
    }

    /// Waits for something; fails with what was so at the end.
    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Outcome<Result<T, String>>) -> Outcome<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let state = match look()? {
                Ok(found) => return Ok(found),
                Err(state) => state,
            };
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Failure::failed("interrupted"));
            }
            if Instant::now() >= deadline {
                let waited = PATIENCE.as_secs();
                return Err(Failure::failed(format!("{what} within {waited} s: {state}")));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until both counts are the number of members, and each has one queue.
    fn follow(&self, members: &[Member], count: u32) -> Outcome<Step> {
        let began = Instant::now();
        let what = format!("the queues did not become {count}");
        let (queues, shares) = self.wait(&what, || {
            let queues = self.api.queues(&self.place.topic)?;
            let shares: Vec<usize> = members.iter().map(Member::share).collect();
            let is_so =
                (queues.write, queues.read) == (count, count) && shares.iter().all(|share| *share == 1);
            Ok(if is_so {
                Ok((queues, shares))
            } else {
                Err(format!(
                    "{} written, {} read, members have {shares:?}",
                    queues.write, queues.read
                ))
            })
        })?;
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let members = output::plural(u64::from(count), "member");
        self.say(&format!(
            "{members}: {} read and {} written, one queue each, after {}.{} s\n",
            queues.read,
            queues.write,
            took_ms / 1_000,
            took_ms % 1_000 / 100
        ))?;
        Ok(Step {
            members: count,
            write: queues.write,
            read: queues.read,
            shares,
            took_ms,
        })
    }

    /// Waits until all records have come and the group has committed them.
    fn wait_until_read(&self, written: u64, gone: &[Vec<u64>], members: &[Member]) -> Outcome {
        let before: BTreeSet<u64> = gone.iter().flatten().copied().collect();
        self.wait("the last records did not come", || {
            let mut came = before.clone();
            members.iter().for_each(|member| member.add_to(&mut came));
            let queues = self.api.queues(&self.place.topic)?;
            let (missing, unread) = (written.saturating_sub(came.len() as u64), self.unread(&queues));
            Ok(match missing + unread {
                0 => Ok(()),
                _ => Err(format!("{missing} are missing, {unread} are not committed")),
            })
        })
    }

    /// Records that the group has not read, of all queues.
    fn unread(&self, queues: &Queues) -> u64 {
        let of_group = queues.groups.iter().filter(|one| one.group == self.place.group);
        of_group.map(|one| one.unread).sum()
    }
}

fn text(report: &Report) -> String {
    let mut text = "\nWhat was decided:\n".to_owned();
    text.push_str(&decisions::lines(&report.queues.decisions));
    let (lost, steps) = (
        report.written.saturating_sub(report.delivered),
        report.steps.len(),
    );
    text.push_str(&format!(
        "\n{} written, {lost} lost, {} came again; {} unread in any queue; {steps} times every member had one queue.\n",
        output::plural(report.written, "record"),
        report.duplicated,
        report.unread
    ));
    text
}

fn judge(report: &Report) -> Outcome {
    let lost = report.written.saturating_sub(report.delivered);
    if lost > 0 {
        return Err(Failure::failed(format!(
            "{} did not come",
            output::plural(lost, "record")
        )));
    }
    if report.unread > 0 {
        let unread = output::plural(report.unread, "record");
        return Err(Failure::failed(format!("{unread} were left unread")));
    }
    Ok(())
}
