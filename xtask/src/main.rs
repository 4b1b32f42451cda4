//! The one entry point for developers: `cargo xtask test | compat | guides | console | crash | sim | explore | bench | docs`.
//!
//! Every command prints its verdict as the last line and exits non-zero when it fails. `test` is the whole proof, in
//! the order in which a fault is cheapest to find; the others run one part of it, usually longer.

mod claims;
mod deploy;
mod docs;
mod include;
mod links;
mod readme;
mod step;
mod tasks;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND [ARGS]

  test     everything: format, lints, tidy, tests, documents, what is deployed, fuzz corpus,
           simulator, crash cycles, the console in a browser, real clients
             --only STEP[,STEP]   just these steps          --skip STEP[,STEP]   all but these
             --list               names of the steps
  compat   real clients against the real binary            (ARGS go to compat/run.py; try --help)
  guides   the programs of docs/first-split.md, done        (part of compat)
  crash    kill -9 under load, then verify                 (--cycles N, default 100; --seed S)
  sim      brokers, clients and faults from seeds           (--seeds N, --first S; --mutants)
  console  the console in a browser                        (--shots FOLDER: pictures of it)
  explore  every order of events of the divided cursor      (--only NAME, --bound STATES, --walks N)
  bench    side by side with Apache Kafka                   (--quick; --only ID,...)
  docs     generated documents and links                    (--check fails instead of writing)
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(command) = args.next() else {
        return usage();
    };
    let rest: Vec<String> = args.collect();
    let done = match command.as_str() {
        "test" => tasks::test(&rest),
        "compat" => tasks::compat(&rest),
        "guides" => tasks::guides(&rest),
        "crash" => tasks::crash(&rest),
        "sim" => tasks::sim(&rest),
        "console" => tasks::console(&rest),
        "explore" => tasks::explore(&rest),
        "bench" => tasks::bench(&rest),
        "docs" => docs::run(&rest),
        _ => return usage(),
    };
    match done {
        Ok(verdict) => {
            step::say(&format!("{command}: passed: {verdict}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            step::say(&format!("{command}: FAILED: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    step::say(USAGE);
    ExitCode::from(2)
}
