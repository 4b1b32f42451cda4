//! Kills a real broker with SIGKILL again and again under load, and verifies what the clients were promised.
//!
//! ```text
//!  producers ──> journal of acknowledgements ──┐
//!  consumers ──> journal of commits ───────────┼──> verify: log and committed offsets against the journal
//!  admin     ──> journal of topics ────────────┘
//!  killer: watches the data folder, kills at a random moment or right after a segment or snapshot appears
//! ```
//!
//! The clients are librdkafka, unmodified; they live through all restarts. A kill does not test the disk (the page
//! cache survives it): that is the business of the store's simulated disk. It tests everything above: order,
//! idempotence, acknowledgements, group offsets, topics, recovery itself.

mod admin;
mod broker;
mod consumer;
mod journal;
mod killer;
mod producer;
mod rng;
mod verify;

use anyhow::{Context, Result};
use broker::Broker;
use clap::Parser;
use journal::Journal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Topics that every producer writes to; the first segments are small, so that many changes of segment happen.
pub(crate) const TOPICS: &[(&str, i32)] = &[("ledger", 4), ("wide", 16)];

#[derive(Parser)]
#[command(about = "kill -9 a broker under load and verify")]
struct Args {
    /// The broker's binary
    #[arg(long)]
    binary: PathBuf,
    /// How many times to kill and restart
    #[arg(long, default_value_t = 100)]
    cycles: u32,
    /// Cycles between two verifications
    #[arg(long, default_value_t = 50)]
    verify_every: u32,
    /// Seed of the moments of death; the clients' timing stays the machine's
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where data and broker logs go; a temporary folder that is removed after success if not given
    #[arg(long)]
    work: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
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

fn run(args: &Args) -> Result<()> {
    let work = args
        .work
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("anabranch-crash-{}", std::process::id())));
    std::fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let mut broker = Broker::new(&args.binary, &work)?;
    broker.start()?;
    admin::create_topics(broker.address())?;

    let journal = Arc::new(Journal::default());
    let mut rng = rng::Rng::new(args.seed);
    let started = Instant::now();
    let mut restart_ms_max = 0;
    let mut done = 0;
    while done < args.cycles {
        let load = Load::start(broker.address(), &journal, u64::from(done) + args.seed)?;
        let cycles = args.verify_every.min(args.cycles - done);
        for _ in 0..cycles {
            let moment = killer::kill(&mut broker, &mut rng)?;
            journal.killed(moment);
            restart_ms_max = restart_ms_max.max(broker.start()?);
        }
        load.stop()?;
        done += cycles;
        let report = verify::verify(broker.address(), &journal)?;
        say(&format!(
            "cycle {done}/{}: {report}; slowest restart {restart_ms_max} ms",
            args.cycles
        ));
    }
    broker.stop()?;
    say(&format!("kills by moment: {}", journal.kills()));
    say(&format!(
        "{done} cycles in {:.0} s, slowest restart to ready {restart_ms_max} ms",
        started.elapsed().as_secs_f64()
    ));
    if args.work.is_none() {
        std::fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    Ok(())
}

/// The clients of one stretch of cycles, each in a thread of its own.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<Result<()>>>,
}

impl Load {
    fn start(address: &str, journal: &Arc<Journal>, stretch: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for number in 0..4_u64 {
            let (address, journal, stop) = (address.to_owned(), journal.clone(), stop.clone());
            // A producer's identity is unique over the whole run: its sequence starts at 0 with it.
            let name = producer::Name {
                id: stretch * 10 + number,
                idempotent: number % 2 == 0,
            };
            threads
                .push(thread::Builder::new().spawn(move || producer::run(&address, &journal, &stop, name))?);
        }
        for number in 0..3_u64 {
            let (address, journal, stop) = (address.to_owned(), journal.clone(), stop.clone());
            threads.push(
                thread::Builder::new().spawn(move || consumer::run(&address, &journal, &stop, number))?,
            );
        }
        let (address, journal, own_stop) = (address.to_owned(), journal.clone(), stop.clone());
        threads.push(
            thread::Builder::new().spawn(move || admin::churn(&address, &journal, &own_stop, stretch))?,
        );
        Ok(Self { stop, threads })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a client thread panicked"))??;
        }
        Ok(())
    }
}
