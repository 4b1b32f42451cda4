//! `anabranch-sim --seeds N --first S`: runs seeds and prints a verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use anabranch_sim::sights::{Sight, Sights};
use anabranch_sim::world::Keep;
use anabranch_sim::{Outcome, Run};
use clap::Parser;

/// Runs brokers, clients and faults from seeds, and checks every invariant.
#[derive(Debug, Parser)]
struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Runs every seed whose number is a multiple of this twice, and compares the traces; 0 for none.
    #[arg(long, default_value_t = 20)]
    twice: u64,
    /// Prints the whole trace of each run.
    #[arg(long)]
    trace: bool,
    /// How many seeds are run at a time; 0 for as many as there are processors.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Goes on after a violation and counts them all; with mutants, runs all seeds and tells in how many each is noticed.
    #[arg(long)]
    keep_going: bool,
    /// Breaks each rule of divided cursors in turn, on up to so many seeds, and fails if no oracle notices.
    #[arg(long)]
    mutants: bool,
    /// Only this one of them.
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
}

impl Args {
    fn jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        }
    }
}

/// From so many seeds on, every required situation must have been met.
const SEEDS_FOR_ALL_SIGHTS: u64 = 2_000;

/// The last lines of a story are enough, unless the whole trace is wanted.
const STORY_LINES_MAX: usize = 70;

#[derive(Debug, Default)]
struct Total {
    steps: u64,
    sent: usize,
    acked: usize,
    lives: u64,
    twice: u64,
    /// Of the courses of all runs, in their order: the same for two programs in which all runs are the same.
    course: u64,
    sights: Sights,
    violations: Vec<(u64, &'static str)>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    let started = Instant::now();
    if args.mutants || args.mutant.is_some() {
        return mutants(&mut out, &args, started);
    }
    let mut total = Total::default();
    run_all(&args, |done| take(&mut out, &args, &mut total, done))?;
    let missing = if args.seeds >= SEEDS_FOR_ALL_SIGHTS {
        total.sights.missing()
    } else {
        Vec::new()
    };
    total.report(&mut out)?;
    verdict(&mut out, &total, &missing, started)
}

/// What came of a seed.
struct Done {
    seed: u64,
    outcome: Outcome,
    /// Whether a second run was the same; none: there was no second one.
    is_same: Option<bool>,
    /// Of a run that failed, what concerned the partition that it is about, or the end of everything. Told by the same run
    /// again: nobody keeps stories of runs that do not fail.
    story: Vec<String>,
}

fn run_one(seed: u64, args: &Args) -> Done {
    let is_repeated = args.twice > 0 && seed.is_multiple_of(args.twice);
    let keep = match (args.trace, is_repeated) {
        (true, _) => Keep::Whole,
        (false, true) => Keep::Hash,
        (false, false) => Keep::Nothing,
    };
    let outcome = Run::new(seed, keep).finish();
    let is_same = is_repeated.then(|| {
        let again = Run::new(seed, Keep::Hash).finish();
        again.hash == outcome.hash && again.steps == outcome.steps && again.course == outcome.course
    });
    let story = match outcome.violation {
        Some(_) => story_of(Run::new(seed, Keep::Whole).finish()),
        None => Vec::new(),
    };
    Done {
        seed,
        outcome,
        is_same,
        story,
    }
}

fn story_of(told: Outcome) -> Vec<String> {
    match told.story.is_empty() {
        true => told.trace.lines().map(str::to_owned).collect(),
        false => told.story,
    }
}

/// Runs all seeds, several at a time, each in one thread, and hands out what came of them in their order, as long as that is
/// wanted.
fn run_all(args: &Args, mut take: impl FnMut(Done) -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = args.first.saturating_add(args.seeds);
    let (next, over) = (AtomicU64::new(args.first), AtomicBool::new(false));
    let jobs = args.jobs();
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(jobs);
        for _ in 0..jobs {
            let (sender, next, over) = (sender.clone(), &next, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || sender.send(run_one(seed, args)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (mut early, mut expected) = (BTreeMap::new(), args.first);
        for done in receiver {
            early.insert(done.seed, done);
            while let Some(done) = early.remove(&expected) {
                expected += 1;
                if !take(done).inspect_err(|_| over.store(true, Ordering::Relaxed))? {
                    over.store(true, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

/// Takes one in and tells what is to be told. Says whether to go on.
fn take(out: &mut impl Write, args: &Args, total: &mut Total, done: Done) -> anyhow::Result<bool> {
    let Done {
        seed,
        outcome,
        is_same,
        story,
    } = done;
    out.write_all(outcome.trace.as_bytes())?;
    total.twice += u64::from(is_same.is_some());
    anyhow::ensure!(
        is_same != Some(false),
        "seed {seed} gave two different runs: something in them does not come from the seed"
    );
    total.add(&outcome);
    let Some(violation) = &outcome.violation else {
        return Ok(true);
    };
    let told = match args.trace {
        true => 0,
        false => story.len().saturating_sub(STORY_LINES_MAX),
    };
    let what = match violation.about {
        Some(_) => "the story of the partition",
        None => "the last events",
    };
    writeln!(out, "--- {what}, seed {seed}")?;
    for line in story.iter().skip(told) {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "--- seed {seed}, step {}: VIOLATED: {}",
        outcome.steps, violation.invariant
    )?;
    writeln!(out, "    {}", violation.detail)?;
    writeln!(out, "    replay: cargo xtask sim --first {seed} --seeds 1")?;
    total.violations.push((seed, violation.invariant));
    Ok(args.keep_going)
}

#[cfg(feature = "planted-faults")]
fn mutants(out: &mut impl Write, args: &Args, started: Instant) -> anyhow::Result<ExitCode> {
    let trial = anabranch_sim::mutants::Trial {
        first: args.first,
        seeds: args.seeds,
        only: args.mutant.as_deref(),
        is_counted: args.keep_going,
        jobs: args.jobs(),
    };
    let missed = anabranch_sim::mutants::run(out, &trial)?;
    writeln!(
        out,
        "{}: mutants that no oracle caught: {missed:?}, {:.1} s",
        if missed.is_empty() { "ok" } else { "FAILED" },
        started.elapsed().as_secs_f64()
    )?;
    Ok(if missed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(not(feature = "planted-faults"))]
fn mutants(_out: &mut impl Write, _args: &Args, _started: Instant) -> anyhow::Result<ExitCode> {
    anyhow::bail!("the program was built without the feature planted-faults")
}

impl Total {
    fn add(&mut self, outcome: &Outcome) {
        self.steps += outcome.steps;
        self.sent += outcome.records.0;
        self.acked += outcome.records.1;
        self.lives += outcome.lives;
        self.course = (self.course.rotate_left(5) ^ outcome.course).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.sights.add(&outcome.sights);
    }

    fn report(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "situations that were met:")?;
        for sight in Sight::ALL {
            writeln!(out, "{:>9}  {}", self.sights.count(*sight), sight.text())?;
        }
        let kinds: BTreeSet<_> = self.violations.iter().map(|(_, invariant)| invariant).collect();
        for kind in kinds {
            let seeds = self
                .violations
                .iter()
                .filter(|(_, invariant)| invariant == kind)
                .map(|(seed, _)| seed);
            writeln!(out, "violated: {kind}: seeds {:?}", seeds.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

fn verdict(
    out: &mut impl Write,
    total: &Total,
    missing: &[Sight],
    started: Instant,
) -> anyhow::Result<ExitCode> {
    for sight in missing {
        writeln!(out, "never happened: {}", sight.text())?;
    }
    let is_good = total.violations.is_empty() && missing.is_empty();
    writeln!(
        out,
        "{}: {} steps, {} records sent, {} acknowledged, {} broker lives, {} seeds run twice, {} violations, {} situations missed, course {:016x}, {:.1} s",
        if is_good { "ok" } else { "FAILED" },
        total.steps,
        total.sent,
        total.acked,
        total.lives,
        total.twice,
        total.violations.len(),
        missing.len(),
        total.course,
        started.elapsed().as_secs_f64(),
    )?;
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
