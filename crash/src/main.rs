//! Kills a real broker with SIGKILL again and again under load, and verifies what the clients were promised.
//!
//! ```text
//!  producers ──> journal of acknowledgements ──┐
//!  consumers ──> journal of commits ───────────┼──> verify: log and committed offsets against the journal
//!  admin     ──> journal of topics ────────────┘
//!  sharers   ──> ledger of records done and committed, of a partition that they divide (see `shared`)
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
mod shared;
mod verify;

use anyhow::{Context, Result};
use broker::Broker;
use clap::Parser;
use journal::Journal;
use shared::ledger::Ledger;
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
    let ledger = Arc::new(Ledger::default());
    let mut rng = rng::Rng::new(args.seed);
    let started = Instant::now();
    let mut restart_ms_max = 0;
    let mut done = 0;
    while done < args.cycles {
        let load = Load::start(broker.address(), (&journal, &ledger), u64::from(done) + args.seed)?;
        let cycles = args.verify_every.min(args.cycles - done);
        for _ in 0..cycles {
            let moment = killer::kill(&mut broker, &mut rng, &ledger)?;
            journal.killed(moment);
            restart_ms_max = restart_ms_max.max(broker.start()?);
            ledger.restarted();
            shared::check_committed(broker.address(), &ledger)?;
        }
        shared::wait_until_divided(&ledger)?;
        load.stop(&ledger)?;
        done += cycles;
        let report = verify::verify(broker.address(), &journal)?;
        let shared = shared::verify(broker.address(), &ledger)?;
        say(&format!(
            "cycle {done}/{}: {report}; {shared}; slowest restart {restart_ms_max} ms",
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
    clients: Vec<Client>,
    /// They stop last: what was written is to be done first.
    stop_sharers: Arc<AtomicBool>,
    sharers: Vec<Client>,
}

type Client = thread::JoinHandle<Result<()>>;

impl Load {
    fn start(address: &str, (journal, ledger): (&Arc<Journal>, &Arc<Ledger>), stretch: u64) -> Result<Self> {
        let mut load = Self {
            stop: Arc::default(),
            clients: Vec::new(),
            stop_sharers: Arc::default(),
            sharers: Vec::new(),
        };
        let address = Arc::new(address.to_owned());
        for number in 0..4_u64 {
            let (address, journal, stop) = (address.clone(), journal.clone(), load.stop.clone());
            // A producer's identity is unique over the whole run: its sequence starts at 0 with it.
            let name = producer::Name {
                id: stretch * 10 + number,
                idempotent: number % 2 == 0,
            };
            load.client(move || producer::run(&address, &journal, &stop, name))?;
        }
        for number in 0..3_u64 {
            let (address, journal, stop) = (address.clone(), journal.clone(), load.stop.clone());
            load.client(move || consumer::run(&address, &journal, &stop, number))?;
        }
        let (to, journal, stop) = (address.clone(), journal.clone(), load.stop.clone());
        load.client(move || admin::churn(&to, &journal, &stop, stretch))?;
        let (to, of_writer, stop) = (address.clone(), ledger.clone(), load.stop.clone());
        load.client(move || shared::writer::run(&to, &of_writer, &stop))?;
        for number in 0..shared::MEMBERS {
            let (address, ledger, stop) = (address.clone(), ledger.clone(), load.stop_sharers.clone());
            let run = move || shared::member::run(&address, &ledger, &stop, number, stretch);
            load.sharers.push(thread::Builder::new().spawn(run)?);
        }
        Ok(load)
    }

    fn client(&mut self, run: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        self.clients.push(thread::Builder::new().spawn(run)?);
        Ok(())
    }

    fn stop(self, ledger: &Ledger) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().try_for_each(join)?;
        shared::wait_until_done(ledger)?;
        self.stop_sharers.store(true, Ordering::Relaxed);
        self.sharers.into_iter().try_for_each(join)
    }
}

fn join(client: Client) -> Result<()> {
    client
        .join()
        .map_err(|_| anyhow::anyhow!("a client thread panicked"))?
}
