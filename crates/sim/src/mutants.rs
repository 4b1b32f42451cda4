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

/// What it took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// Seeds that were run, with divided groups.
    pub seeds: u64,
    /// Steps of those that came to their end.
    pub steps: u64,
    /// Seeds in which it was noticed.
    pub caught: u64,
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
    /// All seeds are run, to see in how many it is noticed.
    pub is_counted: bool,
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
    let mut tell = |results: mpsc::Receiver<(Fault, Caught, Effort)>| {
        let mut missed = Vec::new();
        for (fault, caught, effort) in results {
            missed.extend(report(out, fault, caught, effort)?);
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
                    let (caught, effort) = catch(*fault, trial);
                    if sender.send((*fault, caught, effort)).is_err() {
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
    fault: Fault,
    caught: Caught,
    Effort {
        seeds,
        steps,
        caught: count,
    }: Effort,
) -> std::io::Result<Option<String>> {
    let harmless = HARMLESS.iter().find(|(other, _)| *other == fault);
    let effort = match count {
        0..2 => format!("after {seeds} seeds, {steps} steps"),
        _ => format!("{count} of {seeds} seeds, {steps} steps"),
    };
    match (caught, harmless) {
        (Caught::By(seed, invariant), _) => {
            writeln!(out, "{fault:?} -> {invariant} -> seed {seed}, {effort}")?;
        }
        (Caught::Panic(seed), _) => {
            writeln!(
                out,
                "{fault:?} -> an assertion of the broker -> seed {seed}, {effort}"
            )?;
        }
        (Caught::Not, Some((_, why))) => writeln!(out, "{fault:?} -> not to be noticed: {why}")?,
        (Caught::Not, None) => {
            writeln!(out, "{fault:?} -> NOT CAUGHT {effort}")?;
            return Ok(Some(format!("{fault:?}")));
        }
    }
    Ok(None)
}

fn catch(fault: Fault, trial: &Trial<'_>) -> (Caught, Effort) {
    let (mut seed, mut effort, mut first) = (trial.first, Effort::default(), Caught::Not);
    while effort.seeds < trial.seeds && (trial.is_counted || effort.caught == 0) {
        let run = Run::with_fault(seed, Keep::Nothing, Some(fault));
        if run.is_elastic() {
            effort.seeds += 1;
            let caught = match catch_unwind(AssertUnwindSafe(|| run.finish())) {
                Err(_) => Caught::Panic(seed),
                Ok(outcome) => {
                    effort.steps += outcome.steps;
                    outcome.violation.map_or(Caught::Not, |violation| {
                        Caught::By(seed, violation.invariant.to_owned())
                    })
                }
            };
            if !matches!(caught, Caught::Not) {
                effort.caught += 1;
                first = if effort.caught == 1 { caught } else { first };
            }
        }
        seed += 1;
    }
    (first, effort)
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
            is_counted: false,
            jobs: 2,
        };
        let tried = run(&mut Vec::new(), &trial("NoSuchRule"));
        assert!(tried.unwrap_err().to_string().contains("GrantBeforeFence"));
        let missed = run(&mut Vec::new(), &trial("GrantBeforeFence"));
        assert_eq!(missed.unwrap(), ["GrantBeforeFence"], "in no seed at all");
    }
}
