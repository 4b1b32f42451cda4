//! The `anabranch` program: the broker, and commands to talk to any Kafka broker.
//!
//! ```text
//! cli  ->  serve      settings -> anabranch_server, signals, the lines at the start
//!      ->  config     the table of settings, explained
//!      ->  demo       a broker, a backlog, members that come and go, and a check of every record
//!      ->  topic, group, produce, consume, cluster  ->  client  ->  librdkafka  ->  any Kafka broker
//!      ->  doctor, bundle         what is wrong here, and what to send to somebody who is to help
//!      ->  help                   pages, completions of shells, manual
//!      ->  group, decisions, top  ->  client::AdminApi  ->  the HTTP listener of an Anabranch broker
//!
//! every command -> Outcome<()>: what it prints went to standard output, a Failure goes to standard error
//! ```
//!
//! The client commands use librdkafka and nothing of the server: they are an ordinary client of an ordinary broker.

mod bundle;
mod cli;
mod client;
mod cluster;
mod config;
mod consume;
mod decisions;
mod demo;
mod doctor;
mod failure;
mod group;
mod health;
mod help;
mod interrupt;
mod names;
mod number;
mod output;
mod produce;
mod record;
mod reference;
mod serve;
mod sourcing;
mod time;
mod top;
mod topic;
mod usage;
mod version;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::failure::Outcome;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error),
    };
    let format = cli.format;
    match cli.settled().and_then(|cli| run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.quiet => ExitCode::SUCCESS,
        Err(failure) => {
            output::report(&failure, format);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(cli: &Cli) -> Outcome {
    match &cli.command {
        Command::Serve(args) => serve::run(args, cli.format),
        Command::Config(args) => config::run(args, cli.format),
        Command::Topic(args) => topic::run(args, cli.format),
        Command::Produce(args) => produce::run(args, cli.format),
        Command::Consume(args) => consume::run(args, cli.format),
        Command::Group(args) => group::run(args, cli.format),
        Command::Demo(args) => demo::run(args, cli.format),
        Command::Decisions(args) => decisions::run(args, cli.format),
        Command::Top(args) => top::run(args, cli.format),
        Command::Cluster(args) => cluster::run(args, cli.format),
        Command::Doctor(args) => doctor::run(args, cli.format),
        Command::Bundle(args) => bundle::run(args, cli.format),
        Command::Help(args) => help::run(args),
        Command::Completions(args) => help::completions(args),
        Command::Man(args) => help::manual(args),
        Command::Health(args) => health::run(args, cli.format),
        Command::Version => version::run(cli.format),
        Command::Reference => output::print(&reference::page()),
    }
}
