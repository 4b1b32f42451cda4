//! Running commands as named, timed steps.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Prints one line of the task's own report.
#[expect(clippy::print_stdout, reason = "the report of a developer task is its output")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// The root of the workspace, whatever folder the task was started in.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

/// Runs a program in the root of the workspace; an error if it cannot start or does not exit with 0.
pub(crate) fn run<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<()> {
    run_in(&root(), program, args)
}

/// As [`run`], in another folder.
pub(crate) fn run_in<S: AsRef<OsStr>>(folder: &Path, program: &str, args: &[S]) -> Result<()> {
    let status = Command::new(program)
        .args(args)
        .current_dir(folder)
        .status()
        .with_context(|| format!("cannot start {program}; is it installed?"))?;
    if !status.success() {
        let shown: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        bail!("`{program} {}` ended with {status}", shown.join(" "));
    }
    Ok(())
}

/// Runs one step and reports its time, failed or not.
pub(crate) fn timed(name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
    say(&format!("==> {name}"));
    let start = Instant::now();
    let done = step().with_context(|| format!("step `{name}`"));
    let outcome = if done.is_ok() { "passed" } else { "FAILED" };
    say(&format!(
        "<== {name}: {outcome} in {:.0} s",
        start.elapsed().as_secs_f64()
    ));
    done
}
