//! `anabranch top`: who reads what, how far behind, and what was decided, in a terminal.
//!
//! ```text
//!  /metrics ----------> series -> Sampler -> Picture ---> screen::lines ---> live (a terminal, keys)
//!  /api/v1/groups/G  ----------/   (rates: this sample       \----------> --once, --json
//!  /api/v1/decisions ---------/     beside the one before)
//! ```
//!
//! A [`Picture`] is everything that is shown, as data; [`screen`] makes lines of it for any size, with the same code for a
//! terminal, a pipe and a test.

mod band;
mod keys;
mod live;
mod picture;
mod screen;
pub(crate) mod series;
pub(crate) mod words;

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use crate::client::AdminUrl;
use crate::failure::{Failure, Outcome};
use crate::number::number;
use crate::output::{self, Format};

use picture::{Picture, Sampler};
use screen::{Size, View};

const EXAMPLES: &str = "\
Examples:
  anabranch top                              all groups, and the one that is furthest behind
  anabranch top --group billing
  anabranch top --once                       one picture as text, for a ticket or a chat
  anabranch top --json | jq '.groups[] | {group, lag, desired_members}'";

/// Rates need two looks; so long lies between them where only one picture is wanted.
const ONCE_BETWEEN: Duration = Duration::from_secs(1);

/// The size of a terminal that cannot be asked.
const USUAL: Size = Size {
    width: 80,
    height: 24,
};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The group that is shown in full [default: the one with the most unread records].
    #[arg(short, long)]
    group: Option<String>,
    /// Seconds between two looks at the broker.
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2, value_parser = number("a whole number of seconds", 1..=3_600u64))]
    interval: u64,
    /// Print one picture and end; also where the output is no terminal.
    #[arg(long)]
    once: bool,
    /// Print one picture as JSON and end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminUrl,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let api = args.admin.open()?;
    let mut sampler = Sampler::new(api, args.group.clone());
    if args.json || format == Format::Json {
        return output::print_json(&one(&mut sampler)?);
    }
    if args.once || !io::stdout().is_terminal() {
        let picture = one(&mut sampler)?;
        return output::print(&screen::text(&picture, USUAL.width));
    }
    let view = View::default();
    live::run(sampler, Duration::from_secs(args.interval), view)
}

/// A picture with rates. A group that was asked for must be there.
fn one(sampler: &mut Sampler) -> Outcome<Picture> {
    sampler.look()?;
    thread::sleep(ONCE_BETWEEN);
    let picture = sampler.look()?;
    match sampler.wanted() {
        Some(group) if !picture.groups.iter().any(|one| one.group == group) => Err(Failure::not_found(
            format!("there is no group {group:?} with committed offsets or members"),
        )
        .hint("`anabranch group list` shows all groups")),
        _ => Ok(picture),
    }
}
