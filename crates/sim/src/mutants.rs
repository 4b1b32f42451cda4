//! Mutants: each rule of the divided cursor is broken on purpose, and some oracle has to notice. A rule whose loss nobody
//! notices is either none, or not watched.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_core::cursor::Fault;

use crate::Run;

/// Rules that cost no safety if they are broken, and why nobody can notice.
const HARMLESS: &[(Fault, &str)] = &[(
    Fault::EmptySlicesStay,
    "costs room in a chain, never a record; a chain that is full is released by its member's commits",
)];

/// What came of a mutant.
#[derive(Clone, Debug)]
pub enum Caught {
    /// An invariant was violated, at this seed.
    By(u64, String),
    /// The broker noticed by itself, at this seed.
    Panic(u64),
    /// Nobody noticed.
    Not,
}

/// Tries every mutant, or those whose name is given, on up to `seeds` seeds with divided groups. Prints a table. Returns the
/// names of those that were not caught and should have been.
///
/// # Errors
/// Those of writing.
pub fn run(out: &mut impl Write, first: u64, seeds: u64, only: Option<&str>) -> std::io::Result<Vec<String>> {
    let mut missed = Vec::new();
    let chosen = Fault::ALL
        .iter()
        .chain(Fault::AROUND)
        .filter(|fault| only.is_none_or(|only| format!("{fault:?}") == only));
    // The broker's own assertions are a way to be caught: their words are not needed.
    std::panic::set_hook(Box::new(|_| {}));
    for fault in chosen {
        let harmless = HARMLESS.iter().find(|(other, _)| other == fault);
        let caught = catch(*fault, first, seeds);
        match (&caught, harmless) {
            (Caught::By(seed, invariant), _) => writeln!(out, "{fault:?} -> {invariant} -> seed {seed}")?,
            (Caught::Panic(seed), _) => {
                writeln!(out, "{fault:?} -> an assertion of the broker -> seed {seed}")?
            }
            (Caught::Not, Some((_, why))) => writeln!(out, "{fault:?} -> not to be noticed: {why}")?,
            (Caught::Not, None) => {
                writeln!(out, "{fault:?} -> NOT CAUGHT in {seeds} seeds")?;
                missed.push(format!("{fault:?}"));
            }
        }
        out.flush()?;
    }
    let _ = std::panic::take_hook();
    Ok(missed)
}

fn catch(fault: Fault, first: u64, seeds: u64) -> Caught {
    let mut left = seeds;
    let mut seed = first;
    while left > 0 {
        let run = Run::with_fault(seed, false, Some(fault));
        if run.is_elastic() {
            left -= 1;
            match catch_unwind(AssertUnwindSafe(|| run.finish())) {
                Err(_) => return Caught::Panic(seed),
                Ok(outcome) => {
                    if let Some((violation, _)) = outcome.violation {
                        return Caught::By(seed, violation.invariant.to_owned());
                    }
                }
            }
        }
        seed += 1;
    }
    Caught::Not
}
