//! `anabranch demo`: a backlog in one partition, members that come and go, and a check of every record. Of queue mode there is
//! another one, in `queues`.
//!
//! ```text
//! place (own broker or a running one) <- backlog <- workload (keys drawn, or lines of a file)
//!   |
//! play: timeline (who joins and leaves when) -> member (librdkafka consumers, one thread each) -> journal
//!   |       broker_view (slices, decisions)                                                          |
//!   |                 \-> view -> screen                                                             |
//! report <- oracle: loss, order, one worker per key <------------------------------------------------/
//! ```
//!
//! The members are ordinary clients: whatever they see, any program with the same library sees.

mod backlog;
mod broker_view;
mod journal;
mod member;
mod oracle;
mod place;
mod play;
mod queues;
mod report;
mod screen;
mod timeline;
mod view;
mod workload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use regex::bytes::Regex;

use self::place::{Made, Place};
use self::play::{Played, Script};
use self::report::{Facts, Report};
use self::screen::Screen;
use self::workload::{KeyOf, Workload};
use crate::client::{AdminUrl, Connection, Early, property};
use crate::failure::{Failure, Outcome};
use crate::number::number;
use crate::output::grouped;
use crate::output::{self, Format};
use crate::produce::unescape;

const EXAMPLES: &str = "\
Examples:
  anabranch demo                                       a broker of its own, for under a minute
  anabranch demo --mode queues                         queues that follow their consumers
  anabranch demo --members 8 --zipf 1.0 --keys 10000   an uneven backlog
  anabranch demo --input access.log --key-column 1 --delimiter ' '
  anabranch demo -b 127.0.0.1:9092 --protocol consumer with a broker that runs already

Exits with an error if a record is lost or a key is out of order.";

/// Which group protocol the members speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// What all clients speak.
    Classic,
    /// Kafka's newer one (KIP-848).
    Consumer,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Classic => "classic",
            Protocol::Consumer => "consumer",
        }
    }
}

/// What the demo shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A backlog in one partition is divided among the members.
    Slices,
    /// The number of queues follows the members.
    Queues,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What is shown: slices, a backlog that is divided, or queues, whose number follows the members.
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value = "slices",
        hide_possible_values = true
    )]
    mode: Mode,
    /// How many members come.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = number("a whole number of members", 1..=64u32))]
    members: u32,
    /// How many records are written; of a file, the first so many lines [default: enough for all members, or all lines].
    #[arg(long, value_name = "N", value_parser = number("a whole number of records", 1..=10_000_000u32))]
    records: Option<u32>,
    /// How many keys they have.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = number("a whole number of keys", 1..=1_000_000u32))]
    keys: u32,
    /// How uneven the keys are: the share of the key of rank r falls as 1/r^S.
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = exponent)]
    zipf: f64,
    /// How long the work on a record takes, microseconds.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = number("a whole number of microseconds", 0..=60_000_000u64))]
    cost_us: u64,
    /// Write the lines of this file instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keys", "zipf"])]
    input: Option<PathBuf>,
    /// The key of a line is this column, counted from 1; without this and --key-regex, the line is its own key.
    #[arg(long, value_name = "N", requires = "input", value_parser = number("a whole number of columns", 1u16..))]
    key_column: Option<u16>,
    /// What separates columns; \t is a tab.
    #[arg(long, value_name = "TEXT", default_value = ",")]
    delimiter: String,
    /// The key of a line is what the first group of this regular expression matches.
    #[arg(long, value_name = "REGEX", requires = "input", conflicts_with = "key_column")]
    key_regex: Option<String>,
    /// The group protocol of the members: classic or consumer.
    #[arg(
        long,
        value_name = "PROTOCOL",
        value_enum,
        default_value = "classic",
        hide_possible_values = true
    )]
    protocol: Protocol,
    /// Use a broker that runs already; a topic and a group are made there and deleted again.
    #[arg(
        short = 'b',
        long = "bootstrap",
        alias = "bootstrap-server",
        alias = "brokers",
        value_name = "HOST:PORT"
    )]
    running_broker: Option<String>,
    /// Set a property of librdkafka, for producer and members.
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
    #[command(flatten)]
    admin: AdminUrl,
    /// Made of the flags, see [`Args::complete`].
    #[arg(skip)]
    connection: Connection,
}

impl Args {
    /// Takes in the flags before the command. The environment's broker is left alone: nobody wants a demo there by
    /// accident.
    pub(crate) fn complete(&mut self, early: &Early) {
        let properties = std::mem::take(&mut self.properties);
        self.connection = Connection::of(self.running_broker.take(), properties);
        self.connection.complete(early, None);
    }
}

/// Work for each phase, if nobody says how many records there are.
const PHASE: Duration = Duration::from_millis(4_500);

/// Records unless told otherwise: from one member to all and back there are as many phases of work as the square of the
/// members: 72,000 records for four members that take a millisecond for each. Below 100 us a record they do not become
/// more, so that work that takes no time needs no larger disk.
fn records(members: u32, cost: Duration) -> u32 {
    let phase = PHASE.as_micros() / cost.as_micros().max(100);
    let all = phase * u128::from(members) * u128::from(members);
    u32::try_from(all.clamp(1_000, 2_000_000)).unwrap_or(u32::MAX)
}

fn exponent(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.0..=10.0).contains(&number) {
        Ok(number)
    } else {
        Err("expected a number from 0 to 10".to_owned())
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    if args.mode == Mode::Queues {
        return queues::run(args, format);
    }
    let workload = workload(args)?;
    let interrupted = crate::interrupt::flag()?;
    let made = Made {
        settings: &[("elastic.mode", "slices")],
        partitions: Some(1),
    };
    let place = Place::open(&args.connection, &args.admin, &made)?;
    let played = perform(args, &place, &workload, format, &interrupted);
    let closed = match &played {
        Ok(_) => place.close(),
        // The first failure is the one that counts.
        Err(_) => {
            let _ = place.close();
            Ok(())
        }
    };
    let (report, interrupted) = played?;
    match format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&report.text())?,
    }
    closed?;
    judge(&report.verdict, interrupted)
}

/// Writes the backlog and plays; the members have ended when this returns.
fn perform(
    args: &Args,
    place: &Place,
    workload: &Workload,
    format: Format,
    interrupted: &Arc<AtomicBool>,
) -> Outcome<(Report, bool)> {
    let facts = |interrupted| Facts {
        broker: place.address().to_owned(),
        topic: place.topic.clone(),
        group: place.group.clone(),
        protocol: args.protocol.name(),
        records: workload.len(),
        keys: workload.key_count(),
        cost_us: args.cost_us,
        interrupted,
    };
    if format == Format::Text {
        output::print(&introduction(place, workload))?;
    }
    backlog::write(place, workload, interrupted)?;
    let script = Script {
        members: args.members,
        records: workload.len(),
        cost: Duration::from_micros(args.cost_us),
        protocol: args.protocol.name(),
        title: format!(
            "topic {}, one partition; group {} ({}); {} us a record",
            place.topic,
            place.group,
            args.protocol.name(),
            args.cost_us
        ),
    };
    let mut screen = Screen::new(format)?;
    let played = play::play(place, &script, &mut screen, interrupted)?;
    let was_interrupted = interrupted.load(Ordering::Relaxed);
    let verdict = check(workload, &played);
    let verdict = if was_interrupted {
        verdict.interrupted()
    } else {
        verdict
    };
    Ok((
        Report::new(facts(was_interrupted), &played, verdict),
        was_interrupted,
    ))
}

/// What is about to happen, and how to look at it from elsewhere.
fn introduction(place: &Place, workload: &Workload) -> String {
    let (whose, address) = (
        if place.is_own() {
            "A broker of its own"
        } else {
            "The broker"
        },
        place.address(),
    );
    let (records, keys) = (
        grouped(u64::from(workload.len())),
        grouped(u64::from(workload.key_count())),
    );
    let mut text = format!(
        "{whose} at {address}: {records} records of {keys} keys in one partition of {}\n",
        place.topic
    );
    if let Some(api) = &place.api {
        let (group, admin) = (&place.group, api.base());
        text.push_str(&format!(
            "See also: anabranch group describe {group} -b {address} --admin {admin}\n"
        ));
    }
    text.push('\n');
    text
}

fn check(workload: &Workload, played: &Played) -> oracle::Verdict {
    let journals = played.members.iter().map(|member| member.journal.deliveries());
    let deliveries: Vec<oracle::Delivery> = journals.flatten().collect();
    // Nobody is expelled here: members leave by themselves.
    oracle::check(&workload.written, &deliveries, &BTreeMap::new())
}

fn judge(verdict: &oracle::Verdict, interrupted: bool) -> Outcome {
    if !verdict.in_order() {
        return Err(Failure::failed(
            "records came out of order; the examples above say which",
        ));
    }
    if interrupted {
        let done = output::plural(verdict.delivered, "record");
        return Err(Failure::failed(format!(
            "interrupted after {done}, which were in order"
        )));
    }
    if !verdict.holds() {
        let lost = output::plural(verdict.lost, "record");
        return Err(Failure::failed(format!(
            "{lost} did not come; the examples above say which"
        )));
    }
    Ok(())
}

fn workload(args: &Args) -> Outcome<Workload> {
    let Some(path) = &args.input else {
        let records = args
            .records
            .unwrap_or_else(|| records(args.members, Duration::from_micros(args.cost_us)));
        return Ok(Workload::drawn(records, args.keys, args.zipf));
    };
    let delimiter = unescape(&args.delimiter);
    let key = match (&args.key_regex, args.key_column) {
        (Some(regex), _) => {
            // Also says what is wrong with it.
            crate::topic::pattern(regex)?;
            let regex = Regex::new(regex).map_err(|error| Failure::usage(format!("--key-regex: {error}")))?;
            KeyOf::Regex(regex)
        }
        (None, Some(_)) if delimiter.is_empty() => {
            return Err(Failure::usage("--delimiter must not be empty"));
        }
        (None, Some(number)) => KeyOf::Column(usize::from(number), delimiter),
        (None, None) => KeyOf::Line,
    };
    Workload::of_file(path, &key, args.records.unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn one_fault_is_a_failure() {
        let fine = oracle::Verdict {
            written: 9,
            delivered: 9,
            duplicated: 3,
            ..oracle::Verdict::default()
        };
        assert_eq!(judge(&fine, false), Ok(()));
        let faulty = [
            (1, 0, 0, 0, "1 record did not come"),
            (0, 1, 0, 0, "out of order"),
            (0, 0, 1, 0, "out of order"),
            (0, 0, 0, 1, "out of order"),
        ];
        for (lost, keys_out_of_order, keys_overlapping, unknown, why) in faulty {
            let verdict = oracle::Verdict {
                lost,
                keys_out_of_order,
                keys_overlapping,
                unknown,
                ..fine.clone()
            };
            let failure = judge(&verdict, false).unwrap_err();
            assert!(
                failure.exit == Exit::Failed && failure.message.contains(why),
                "{failure}"
            );
        }
        let unfinished = oracle::Verdict { lost: 1, ..fine };
        assert!(
            judge(&unfinished, true)
                .unwrap_err()
                .message
                .starts_with("interrupted after 9 records")
        );
    }
}
