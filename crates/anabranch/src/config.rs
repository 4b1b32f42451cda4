//! `anabranch config`: the settings of the broker, explained, and files of them, checked.

use std::path::{Path, PathBuf};

use anabranch_server::settings::{self, ITEMS, Resolved};
use clap::Subcommand;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Table};
use crate::sourcing::{SettingFlags, Sourcing};

const EXAMPLES: &str = "\
Examples:
  anabranch config list                             every setting, its value, and where the value came from
  anabranch config explain durability
  anabranch config check /etc/anabranch.toml        is this file right? changes nothing";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List all settings with their values and where each value came from.
    List(ListArgs),
    /// Explain one setting: what it does, its value, and all the ways to set it.
    Explain(ExplainArgs),
    /// Check a configuration file without starting anything.
    Check {
        /// The TOML file to check.
        file: PathBuf,
    },
    /// Print the reference page of all settings, in Markdown.
    Reference,
    /// Print the reference page of all limits, in Markdown.
    Limits,
    /// Print the reference page of all metrics, in Markdown.
    Metrics,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only settings that somebody set.
    #[arg(long)]
    changed: bool,
    #[command(flatten)]
    sourcing: Sourcing,
}

#[derive(Debug, clap::Args)]
struct ExplainArgs {
    /// The setting, by its own name or by Kafka's.
    key: String,
    #[command(flatten)]
    sourcing: Sourcing,
}

/// One line of `config list`.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    value: String,
    origin: String,
}

pub(crate) fn run(args: &Args, format: Format) -> Outcome {
    match &args.command {
        ConfigCommand::List(args) => list(args, format),
        ConfigCommand::Explain(args) => explain(args),
        ConfigCommand::Check { file } => check(file),
        ConfigCommand::Reference => output::print(&settings::reference_page()),
        ConfigCommand::Limits => output::print(&settings::limits_page()),
        ConfigCommand::Metrics => output::print(&anabranch_server::metrics_page()),
    }
}

fn list(args: &ListArgs, format: Format) -> Outcome {
    let resolved = args.sourcing.resolve(&SettingFlags::default())?;
    let mut rows = rows(&resolved);
    rows.retain(|row| !args.changed || row.origin != "default");
    match format {
        Format::Json => output::print_json(&rows),
        Format::Text => {
            let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
            for row in rows {
                table.row(vec![row.name, row.value, row.origin]);
            }
            output::print(&table.render())
        }
    }
}

fn rows(resolved: &Resolved) -> Vec<Row> {
    let row = |name: &str, value: String| Row {
        name: name.to_owned(),
        value,
        origin: resolved.origin(name).to_string(),
    };
    let own = ITEMS
        .iter()
        .map(|item| row(item.name, item.value(&resolved.settings)));
    let kafka = settings::broker_keys().map(|(name, default)| {
        let value = resolved.settings.server.broker.get(name);
        row(
            name,
            value
                .cloned()
                .unwrap_or_else(|| default.unwrap_or("-").to_owned()),
        )
    });
    own.chain(kafka).collect()
}

fn explain(args: &ExplainArgs) -> Outcome {
    let resolved = args.sourcing.resolve(&SettingFlags::default())?;
    match settings::explain(&args.key, &resolved) {
        Some(text) => output::print(&text),
        None => {
            let failure = Failure::not_found(format!("there is no setting \"{}\"", args.key));
            let known = || {
                let own = ITEMS.iter().map(|item| item.name);
                own.chain(settings::broker_keys().map(|(name, _)| name))
            };
            // Topics have `retention.ms`, and the broker has `log.retention.ms` for those that have none.
            let of_topics = known().find(|name| {
                name.strip_suffix(&args.key)
                    .is_some_and(|head| head.ends_with('.'))
            });
            Err(failure.hint(
                match of_topics.or_else(|| settings::nearest(&args.key, known())) {
                    Some(nearest) => format!("did you mean \"{nearest}\"?"),
                    None => "`anabranch config list` shows all settings".to_owned(),
                },
            ))
        }
    }
}

fn check(file: &Path) -> Outcome {
    let sourcing = Sourcing::of_file(file);
    let resolved = sourcing.resolve_file_alone()?;
    for warning in &resolved.warnings {
        output::say(&format!("warning: {warning}"));
    }
    let changed = resolved.set_by_someone().count() as u64;
    output::print(&format!(
        "{}: no errors, {} set\n",
        file.display(),
        output::plural(changed, "setting")
    ))
}
