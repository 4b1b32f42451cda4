//! `anabranch doctor`: what on this machine, in the settings, and between clients and the broker goes wrong or will.
//!
//! ```text
//!  settings ---> machine   files and sockets, the clock
//!           \--> disk      the data folder: what it is on, free space, how long a sync takes
//!            \-> network   each listener: free, or a broker behind it; the addresses that clients are told
//!             \> broker    whether it is ready, and what its metrics complain of
//!                  |
//!                  v
//!              [Finding]   what was seen, what it means, what to do  ->  text or JSON, exit code
//! ```
//!
//! Each check looks, and hands what it saw to a function that judges it: that part is pure. Nothing is changed but for a
//! file in the data folder that is written to measure the disk, and removed.

mod broker;
mod disk;
mod finding;
mod machine;
mod network;

use anabranch_server::settings::Resolved;
use serde::Serialize;

use crate::client::{AdminUrl, Connection};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::sourcing::{SettingFlags, Sourcing};

use finding::{Finding, Level};

const EXAMPLES: &str = "\
Examples:
  anabranch doctor                                   this machine, and the broker on it with its usual settings
  anabranch doctor --config /etc/anabranch.toml      with the settings of a service
  anabranch doctor -b broker.example:9092 --admin broker.example:9099

Exit codes: 0 nothing is wrong, 1 something is, 2 the settings are wrong. Warnings alone are 0; with --strict 1.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Count warnings as errors in the exit code.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    pub(crate) subject: Subject,
}

/// What is looked at: the settings that a broker here would have, the broker as clients reach it, and its HTTP listener.
#[derive(Debug, clap::Args)]
pub(crate) struct Subject {
    #[command(flatten)]
    flags: SettingFlags,
    #[command(flatten)]
    sourcing: Sourcing,
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) admin: AdminUrl,
}

impl Subject {
    pub(crate) fn settings(&self) -> Outcome<Resolved> {
        self.sourcing.resolve(&self.flags)
    }
}

/// All findings.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    errors: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    let report = examine(&args.subject.settings()?, &args.subject);
    match format {
        Format::Json => output::print_json(&report)?,
        Format::Text => output::print(&report.text())?,
    }
    let (errors, warnings) = (report.errors, report.warnings);
    if errors > 0 || (args.strict && warnings > 0) {
        let counts = [(errors, "error"), (warnings, "warning")];
        let found = counts.iter().filter(|(count, _)| *count > 0);
        let found: Vec<String> = found
            .map(|(count, what)| output::plural(*count as u64, what))
            .collect();
        return Err(Failure::failed(format!("found {}", found.join(" and "))));
    }
    Ok(())
}

/// Looks at everything. `resolved` are the subject's settings.
pub(crate) fn examine(resolved: &Resolved, subject: &Subject) -> Report {
    let settings = &resolved.settings;
    let mut findings = vec![Finding::good("settings", "they are right")];
    let warnings = resolved.warnings.iter();
    findings.extend(warnings.map(|warning| {
        Finding::warning(
            "settings",
            warning.clone(),
            "`anabranch config list --changed` shows what is set and where",
        )
    }));
    findings.extend(machine::examine(settings.server.limits.connections_max as u64));
    findings.extend(disk::examine(
        &settings.server.data_dir,
        settings.server.storage.free_bytes_min,
    ));
    findings.extend(network::examine(settings, &subject.connection));
    findings.extend(broker::examine(settings, &subject.admin));
    Report::of(findings)
}

impl Report {
    fn of(findings: Vec<Finding>) -> Report {
        let count = |level| findings.iter().filter(|one| one.level == level).count();
        Report {
            errors: count(Level::Error),
            warnings: count(Level::Warning),
            findings,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            text.push_str(&finding.text());
        }
        text.push('\n');
        text.push_str(match (self.errors, self.warnings) {
            (0, 0) => "Nothing is wrong.\n",
            (0, _) => "Nothing is wrong, but see the warnings.\n",
            _ => "Something is wrong: see the errors.\n",
        });
        text
    }
}
