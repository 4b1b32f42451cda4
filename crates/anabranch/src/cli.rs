//! The command line as a whole; each command's own arguments stand beside its code.

use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Parser, Subcommand};

use crate::client::{Connection, Early};
use crate::failure::{Failure, Outcome};
use crate::output::Format;
use crate::{
    bundle, cluster, config, consume, decisions, demo, doctor, group, health, help, produce, serve, top,
    topic,
};

const EXAMPLES: &str = "\
Examples:
  anabranch serve                                   a broker on this machine, in the foreground
  anabranch topic create orders -p 3
  tail -f app.log | anabranch produce orders
  anabranch consume orders --from start -n 10
  anabranch group describe billing
  anabranch help start                              what to type first

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 not found, 4 no broker reached";

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(Style::new());

/// A message broker that speaks the Kafka protocol, and the tools to use it.
#[derive(Debug, Parser)]
#[command(
    name = "anabranch",
    version,
    styles = STYLES,
    after_help = EXAMPLES,
    infer_subcommands = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// How results are printed.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "text|json",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub(crate) format: Format,

    #[command(flatten)]
    early: Early,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the broker.
    Serve(serve::Args),
    /// Watch a backlog in one partition divide among members that come and go, and check every record.
    Demo(demo::Args),
    /// Create, list, describe, alter and delete topics.
    Topic(topic::Args),
    /// Send lines, JSON or key:value pairs to a topic.
    Produce(produce::Args),
    /// Print records of a topic.
    Consume(consume::Args),
    /// List, describe, reset and delete consumer groups; see and steer how they are divided.
    Group(group::Args),
    /// Show what the broker decided about groups, what it refused, and why.
    Decisions(decisions::Args),
    /// Watch who reads what, how far behind, and what is decided, in the terminal.
    Top(top::Args),
    /// Find out what is wrong with this machine, the settings, or the way to the broker.
    Doctor(doctor::Args),
    /// Write an archive for a bug report: settings, groups, decisions, metrics; no records, no secrets.
    Bundle(bundle::Args),
    /// Show the cluster's id and nodes.
    Cluster(cluster::Args),
    /// Tell by the exit code whether a broker serves clients.
    Health(health::Args),
    /// Show the version of this program and of the Kafka client inside it.
    Version,
    /// Show the help of a command, or a page about a task: start, lag, elastic, trouble, ...
    Help(help::Args),
    /// Print a script that completes the command line in a shell.
    Completions(help::CompletionArgs),
    /// Print the manual page, or write the pages of all commands.
    Man(help::ManArgs),
    /// Print the reference page of all commands, in Markdown.
    #[command(hide = true)]
    Reference,
    /// Show, explain and check the broker's settings.
    Config(config::Args),
}

impl Cli {
    /// Gives the command what was said before it.
    ///
    /// # Errors
    /// A broker was named for a command that talks to none.
    pub(crate) fn settled(mut self) -> Outcome<Cli> {
        if let Command::Demo(args) = &mut self.command {
            args.complete(&self.early);
            return Ok(self);
        }
        let is_over_http = self.command.is_over_http();
        match (self.command.connection(), self.early.given()) {
            (Some(connection), _) => {
                connection.complete(&self.early, Connection::bootstrap_of_environment());
            }
            (None, Some(flag)) if is_over_http => {
                return Err(Failure::usage(format!(
                    "{flag} is for commands that speak the Kafka protocol; this one asks the broker's HTTP listener"
                ))
                .hint("--admin URL names that, for example --admin http://127.0.0.1:9099"));
            }
            (None, Some(flag)) => {
                return Err(
                    Failure::usage(format!("{flag} is for commands that talk to a broker"))
                        .hint("`anabranch serve --help` shows what a broker itself is told"),
                );
            }
            (None, None) => {}
        }
        Ok(self)
    }
}

impl Command {
    /// Whether the command asks nothing but a broker's HTTP listener.
    fn is_over_http(&self) -> bool {
        matches!(self, Command::Decisions(_) | Command::Top(_) | Command::Health(_))
    }

    /// Which broker the command talks to; `None` for those that talk to none.
    fn connection(&mut self) -> Option<&mut Connection> {
        match self {
            Command::Topic(args) => Some(&mut args.connection),
            Command::Produce(args) => Some(&mut args.connection),
            Command::Consume(args) => Some(&mut args.connection),
            Command::Group(args) => Some(&mut args.connection),
            Command::Cluster(args) => Some(&mut args.connection),
            Command::Doctor(args) => Some(&mut args.subject.connection),
            Command::Bundle(args) => Some(&mut args.subject.connection),
            // The demo's broker is its own unless one is named; decisions come over HTTP.
            Command::Demo(_) | Command::Decisions(_) | Command::Top(_) | Command::Health(_) => None,
            Command::Serve(_) | Command::Config(_) | Command::Version | Command::Reference => None,
            Command::Help(_) | Command::Completions(_) | Command::Man(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_server::settings::OTHER_VARIABLES;
    use clap::CommandFactory;

    /// clap checks the definitions themselves: no flag twice, no impossible requirement.
    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// What a flag may be taken from must not be refused as an unknown setting when a broker is started.
    #[test]
    fn every_variable_of_a_flag_is_known_to_the_settings() {
        fn check(command: &clap::Command, seen: &mut usize) {
            for variable in command.get_arguments().filter_map(clap::Arg::get_env) {
                let variable = variable.to_str().unwrap();
                assert!(OTHER_VARIABLES.contains(&variable), "{variable}");
                *seen += 1;
            }
            command.get_subcommands().for_each(|child| check(child, seen));
        }
        let mut seen = 0;
        check(&Cli::command(), &mut seen);
        assert!(seen > 0);
    }

    /// "invalid digit found in string" helps nobody.
    #[test]
    fn every_flag_that_takes_a_number_says_which() {
        fn check(command: &clap::Command, path: &[String], seen: &mut usize) {
            let path = [path, &[command.get_name().to_owned()]].concat();
            for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
                let line = path.iter().cloned().chain([format!("--{flag}=12x")]);
                let Err(error) = Cli::command().try_get_matches_from(line) else {
                    continue;
                };
                if error.kind() == clap::error::ErrorKind::ValueValidation {
                    let text = error.to_string();
                    assert!(text.contains(": ") && !text.contains("invalid digit"), "{text}");
                    *seen += 1;
                }
            }
            command
                .get_subcommands()
                .for_each(|child| check(child, &path, seen));
        }
        let mut seen = 0;
        check(&Cli::command(), &[], &mut seen);
        assert!(seen > 20, "{seen}");
    }

    /// Every command that a person types has an explanation and fits on a screen's width.
    #[test]
    fn every_command_is_explained() {
        fn check(command: &mut clap::Command) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            let help = command.render_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 110, "{}: {line}", command.get_name());
            }
            for child in command.get_subcommands_mut() {
                check(child);
            }
        }
        check(&mut Cli::command().term_width(100));
    }
}
