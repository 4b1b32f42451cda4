//! `anabranch-sim --seeds N --first S`: runs seeds, one after the other, and prints a verdict.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use anabranch_sim::sights::{Sight, Sights};
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
    /// Goes on after a violation and counts them all.
    #[arg(long)]
    keep_going: bool,
}

/// From so many seeds on, every required situation must have been met.
const SEEDS_FOR_ALL_SIGHTS: u64 = 200;

#[derive(Debug, Default)]
struct Total {
    steps: u64,
    sent: usize,
    acked: usize,
    lives: u64,
    twice: u64,
    sights: Sights,
    violations: Vec<(u64, &'static str)>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    let started = Instant::now();
    let mut total = Total::default();
    for seed in args.first..args.first.saturating_add(args.seeds) {
        let outcome = Run::new(seed, args.trace).finish();
        if let Some(trace) = &outcome.trace {
            out.write_all(trace.as_bytes())?;
        }
        if args.twice > 0 && seed % args.twice == 0 {
            total.twice += 1;
            let again = Run::new(seed, false).finish();
            anyhow::ensure!(
                again.hash == outcome.hash && again.steps == outcome.steps,
                "seed {seed} gave two different runs: something in them does not come from the seed"
            );
        }
        total.add(&outcome);
        if let Some((violation, tail)) = &outcome.violation {
            writeln!(out, "--- the last events of seed {seed}")?;
            for line in tail {
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
            if !args.keep_going {
                break;
            }
        }
    }
    let missing = if args.seeds >= SEEDS_FOR_ALL_SIGHTS {
        total.sights.missing()
    } else {
        Vec::new()
    };
    total.report(&mut out)?;
    verdict(&mut out, &total, &missing, started)
}

impl Total {
    fn add(&mut self, outcome: &Outcome) {
        self.steps += outcome.steps;
        self.sent += outcome.records.0;
        self.acked += outcome.records.1;
        self.lives += outcome.lives;
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
        "{}: {} steps, {} records sent, {} acknowledged, {} broker lives, {} seeds run twice, {} violations, {} situations missed, {:.1} s",
        if is_good { "ok" } else { "FAILED" },
        total.steps,
        total.sent,
        total.acked,
        total.lives,
        total.twice,
        total.violations.len(),
        missing.len(),
        started.elapsed().as_secs_f64(),
    )?;
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
