//! `anabranch health`: whether a broker serves clients, as an exit code: for a container's health check, which has no other
//! program at hand.

use std::time::Duration;

use crate::client::AdminUrl;
use crate::failure::Outcome;
use crate::output::{self, Format};

/// Longest wait for the answer: health checks come often, and a late answer is none.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

const EXAMPLES: &str = "\
Examples:
  anabranch health                                 the broker on this machine
  anabranch health --admin http://10.0.0.5:9099    another one

Exit codes: 0 it serves clients, 1 it does not (shutting down, or its store has failed), 4 no answer";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    admin: AdminUrl,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let api = args.admin.open()?.with_patience(ANSWER_TIMEOUT);
    api.ready()?;
    match format {
        Format::Text => output::print("ready\n"),
        Format::Json => output::print_json(&serde_json::json!({ "ready": true })),
    }
}
