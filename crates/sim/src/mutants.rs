//! Mutants: each rule of the divided cursor is broken on purpose, and some oracle has to notice. A rule whose loss nobody
//! notices is either none, or not watched.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_core::cursor::Fault;

use crate::Run;
use crate::world::Keep;

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
/// Those of writing; and a name that no mutant has.
pub fn run(out: &mut impl Write, first: u64, seeds: u64, only: Option<&str>) -> std::io::Result<Vec<String>> {
    let mut missed = Vec::new();
    let is_chosen = |fault: &&Fault| only.is_none_or(|only| format!("{fault:?}") == only);
    let all = || Fault::ALL.iter().chain(Fault::AROUND);
    let chosen: Vec<&Fault> = all().filter(is_chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&Fault> = all().collect();
        return Err(std::io::Error::other(format!(
            "no mutant is called {}; there are {names:?}",
            only.unwrap_or_default()
        )));
    }
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
        let run = Run::with_fault(seed, Keep::Nothing, Some(fault));
        if run.is_elastic() {
            left -= 1;
            match catch_unwind(AssertUnwindSafe(|| run.finish())) {
                Err(_) => return Caught::Panic(seed),
                Ok(outcome) => {
                    if let Some(violation) = outcome.violation {
                        return Caught::By(seed, violation.invariant.to_owned());
                    }
                }
            }
        }
        seed += 1;
    }
    Caught::Not
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_mutant_has_is_no_success() {
        let tried = run(&mut Vec::new(), 1, 0, Some("NoSuchRule"));
        assert!(tried.unwrap_err().to_string().contains("GrantBeforeFence"));
        let missed = run(&mut Vec::new(), 1, 0, Some("GrantBeforeFence"));
        assert_eq!(missed.unwrap(), ["GrantBeforeFence"], "in no seed at all");
    }
}
