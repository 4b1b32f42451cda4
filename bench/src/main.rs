//! Measures Anabranch and Apache Kafka side by side in one run and prints ratios.
//!
//! ```text
//! run: for each round, for each contender (forwards, then backwards):
//!   wait for quiet -> level the field -> sync probe -> start on empty data -> warm up -> cases -> stop
//! table: rows of (number, contender, compared with, target)   report: medians of per-round ratios
//! results: what is known, by id and contender, and where it is written
//! ```
//!
//! The load is a raw driver over prepared bytes (`drive`), since ordinary clients are slower than the brokers; they
//! are a case of their own (`case::clients`). Elastic groups (E1–E11) are measured with ordinary clients: `elastic`.

mod broker;
mod case;
mod drive;
mod elastic;
mod machine;
mod report;
mod results;
mod run;
mod table;

use anyhow::{Context, Result, bail};
use broker::Places;
use case::Scale;
use clap::{Args, Parser, Subcommand};
use report::Round;
use results::{Results, SECTIONS};
use run::Plan;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The version of Apache Kafka in `kafka/pom.xml`.
const KAFKA: &str = "4.3.1";

#[derive(Parser)]
#[command(about = "Anabranch and Apache Kafka side by side")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, print the tables, write RESULTS.md and the numbers beside it
    Run(Box<RunArgs>),
    /// Write RESULTS.md anew from what was measured, after the rules of the table have changed
    Table,
}

#[derive(Args)]
struct RunArgs {
    /// One short round: rougher numbers in less than half an hour
    #[arg(long)]
    quick: bool,
    /// Only these ids, such as P1,P5; a letter stands for those that begin with it: E for E1 to E11
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these contenders: durable, relaxed, K0, K1
    #[arg(long, value_delimiter = ',')]
    who: Vec<String>,
    /// Rounds, instead of the scale's own number
    #[arg(long)]
    rounds: Option<u32>,
    /// Seconds each load counts, instead of the scale's own
    #[arg(long)]
    load_seconds: Option<u64>,
    /// Seconds of load before the first case, instead of the scale's own
    #[arg(long)]
    warm_up_seconds: Option<u64>,
    /// Gigabytes that the catch-up reader of C2 reads, instead of the scale's own
    #[arg(long)]
    catch_up_gb: Option<u64>,
    /// Gigabytes stored before the restart of R1, instead of the scale's own
    #[arg(long)]
    restart_gb: Option<u64>,
    /// Anabranch's binary; the release build of this workspace if not given
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Network and IO threads of Kafka, each; its defaults (3 and 8) if not given
    #[arg(long)]
    kafka_threads: Option<u32>,
    /// Kafka's heap
    #[arg(long, default_value = "1g")]
    kafka_heap: String,
    /// A property of Kafka's broker, as KEY=VALUE, to try what it does with another; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    kafka_set: Vec<String>,
    /// Do not wait for a quiet machine, nor touch its memory: to try things out
    #[arg(long)]
    hurry: bool,
    /// A sentence about the circumstances, for the top of the table of elastic groups
    #[arg(long)]
    note: Option<String>,
    /// Print only; leave RESULTS.md as it is
    #[arg(long)]
    dry: bool,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Table => table_anew(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line of the report.
#[expect(clippy::print_stdout, reason = "the report of this tool is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

fn table_anew() -> Result<()> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    for section in &SECTIONS {
        Results::read(section, bench)?.write(section, bench)?;
    }
    Ok(())
}

fn run(args: &RunArgs) -> Result<()> {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    let work = bench.join(".work");
    std::fs::create_dir_all(&work)?;
    let binary = args
        .binary
        .clone()
        .unwrap_or_else(|| bench.join("../target/release/anabranch"));
    let binary = binary.canonicalize().with_context(|| {
        format!(
            "no binary at {}: build it (cargo build --release -p anabranch) or name one with --binary",
            binary.display()
        )
    })?;
    raise_descriptor_limit()?;
    let mut scale = if args.quick { Scale::QUICK } else { Scale::FULL };
    scale.rounds = args.rounds.unwrap_or(scale.rounds);
    scale.load_seconds = args.load_seconds.unwrap_or(scale.load_seconds);
    scale.warm_up_seconds = args.warm_up_seconds.unwrap_or(scale.warm_up_seconds);
    scale.catch_up_gb = args.catch_up_gb.unwrap_or(scale.catch_up_gb);
    scale.restart_gb = args.restart_gb.unwrap_or(scale.restart_gb);
    let places = Places {
        binary,
        jars: broker::kafka_jars(bench)?,
        work,
        kafka_threads: args.kafka_threads,
        kafka_heap: args.kafka_heap.clone(),
        kafka_set: args.kafka_set.clone(),
    };
    let (rounds, done) = Plan {
        places,
        scale,
        quick: args.quick,
        hurry: args.hurry,
        only: args.only.clone(),
        who: args.who.clone(),
    }
    .run();
    let kept = keep(args, bench, &rounds);
    done.and(kept)
}

/// Prints what is known now, and writes it down unless told not to.
fn keep(args: &RunArgs, bench: &Path, rounds: &[Round]) -> Result<()> {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let command = format!("cargo xtask bench {}", measured(&words))
        .trim()
        .to_owned();
    for section in &SECTIONS {
        let mut results = Results::read(section, bench)?;
        if !results.take(section, rounds, &command, KAFKA, args.note.as_deref()) {
            continue;
        }
        say(&results.markdown(section));
        if !args.dry {
            results.write(section, bench)?;
        }
    }
    let broken = report::broken(&report::lines(rounds, |_, _, _| true));
    if !broken.is_empty() {
        bail!("promised and not met: {}", broken.join("; "));
    }
    Ok(())
}

/// The words of a command that say what was measured: neither the note nor a path on this machine.
fn measured(words: &[String]) -> String {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--note" || word == "--binary" {
            words.next();
        } else {
            kept.push(word.as_str());
        }
    }
    kept.join(" ")
}

/// Thousands of idle connections need thousands of descriptors.
fn raise_descriptor_limit() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .context("cannot raise the limit of open files")
}

/// Pins this process to a core, or frees it again.
pub(crate) fn pin(core: Option<usize>) -> Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    let all = std::thread::available_parallelism().map_or(1, usize::from).max(2);
    (0..all)
        .filter(|number| core.is_none_or(|one| one == *number))
        .for_each(|number| cores.set(number));
    sched_setaffinity(None, &cores).context("cannot choose the core of the driver")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_paths_are_no_part_of_what_was_measured() {
        let words = ["--quick", "--note", "noisy", "--binary", "/x", "--only", "E1"].map(String::from);
        assert_eq!(measured(&words), "--quick --only E1");
    }
}
