//! Mutants: each rule of the divided cursor is broken on purpose, and some oracle has to notice. A rule whose loss nobody
//! notices is either none, or not watched.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

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

/// Which mutants are tried, and how.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The first seed.
    pub first: u64,
    /// On up to so many seeds with divided groups.
    pub seeds: u64,
    /// The name of the only one.
    pub only: Option<&'a str>,
    /// How many are tried at a time.
    pub jobs: usize,
}

impl Trial<'_> {
    fn chosen(&self) -> std::io::Result<Vec<Fault>> {
        let all = || Fault::ALL.iter().chain(Fault::AROUND).copied();
        let is_chosen = |fault: &Fault| self.only.is_none_or(|only| format!("{fault:?}") == only);
        let chosen: Vec<Fault> = all().filter(is_chosen).collect();
        if chosen.is_empty() {
            let names: Vec<Fault> = all().collect();
            return Err(std::io::Error::other(format!(
                "no mutant is called {}; there are {names:?}",
                self.only.unwrap_or_default()
            )));
        }
        Ok(chosen)
    }
}

/// Tries mutants. Prints a table. Returns the names of those that were not caught and should have been.
///
/// # Errors
/// Those of writing; and a name that no mutant has.
pub fn run(out: &mut impl Write, trial: &Trial<'_>) -> std::io::Result<Vec<String>> {
    let chosen = trial.chosen()?;
    // The broker's own assertions are a way to be caught: their words are not needed.
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicUsize::new(0);
    let mut tell = |results: mpsc::Receiver<(Fault, Caught)>| {
        let mut missed = Vec::new();
        for (fault, caught) in results {
            missed.extend(report(out, trial, fault, caught)?);
            out.flush()?;
        }
        Ok(missed)
    };
    let missed = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..trial.jobs {
            let (sender, next, chosen) = (sender.clone(), &next, &chosen);
            scope.spawn(move || {
                while let Some(fault) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender
                        .send((*fault, catch(*fault, trial.first, trial.seeds)))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        tell(receiver)
    });
    let _ = std::panic::take_hook();
    missed
}

/// A line of the table; the name, if somebody should have noticed.
fn report(
    out: &mut impl Write,
    trial: &Trial<'_>,
    fault: Fault,
    caught: Caught,
) -> std::io::Result<Option<String>> {
    let harmless = HARMLESS.iter().find(|(other, _)| *other == fault);
    match (caught, harmless) {
        (Caught::By(seed, invariant), _) => writeln!(out, "{fault:?} -> {invariant} -> seed {seed}")?,
        (Caught::Panic(seed), _) => writeln!(out, "{fault:?} -> an assertion of the broker -> seed {seed}")?,
        (Caught::Not, Some((_, why))) => writeln!(out, "{fault:?} -> not to be noticed: {why}")?,
        (Caught::Not, None) => {
            writeln!(out, "{fault:?} -> NOT CAUGHT in {} seeds", trial.seeds)?;
            return Ok(Some(format!("{fault:?}")));
        }
    }
    Ok(None)
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
        let trial = |name| Trial {
            first: 1,
            seeds: 0,
            only: Some(name),
            jobs: 2,
        };
        let tried = run(&mut Vec::new(), &trial("NoSuchRule"));
        assert!(tried.unwrap_err().to_string().contains("GrantBeforeFence"));
        let missed = run(&mut Vec::new(), &trial("GrantBeforeFence"));
        assert_eq!(missed.unwrap(), ["GrantBeforeFence"], "in no seed at all");
    }
}
