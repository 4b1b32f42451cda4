//! The commands: what `test` is made of, and its parts as commands of their own.

use crate::step::{root, run, run_in, say, timed};
use crate::{deploy, docs, readme, tidy};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Instant;

/// The profile in which the binary meets real clients: as fast as a release, without the long link.
pub(crate) const PROFILE: &str = "fast";

type Step = (&'static str, fn() -> Result<()>);

/// The steps of `test`, cheapest finder of faults first.
const STEPS: &[Step] = &[
    ("fmt", || run("cargo", &["fmt", "--all", "--check"])),
    ("tidy", tidy::run),
    ("clippy", || {
        run(
            "cargo",
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ],
        )
    }),
    ("unit", || {
        run("cargo", &["test", "--workspace", "--locked", "--quiet"])
    }),
    ("docs", || docs::run(&["--check".into()]).map(drop)),
    ("readme", || readme::run(&build_binary()?)),
    ("alerts", alerts),
    ("deploy", || deploy::check(&build_binary()?)),
    ("fuzz", fuzz),
    ("sim", || sim(&["--seeds".into(), "2000".into()]).map(drop)),
    ("crash", || crash(&["--cycles".into(), "100".into()]).map(drop)),
    ("console", || console(&[]).map(drop)),
    ("compat", || compat(&["--short".into()]).map(drop)),
];

/// Runs all steps, or those chosen, and tells how long each took.
pub(crate) fn test(args: &[String]) -> Result<String> {
    let mut chosen: Vec<&Step> = STEPS.iter().collect();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--list" => {
                STEPS.iter().for_each(|(name, _)| say(name));
                return Ok(format!("{} steps", STEPS.len()));
            }
            "--only" => {
                let names = names(args.next())?;
                chosen.retain(|(name, _)| names.contains(name));
            }
            "--skip" => {
                let names = names(args.next())?;
                chosen.retain(|(name, _)| !names.contains(name));
            }
            other => bail!("unknown argument `{other}`; see `cargo xtask`"),
        }
    }
    let start = Instant::now();
    for (name, step) in &chosen {
        timed(name, step)?;
    }
    Ok(format!(
        "{} steps in {:.0} s",
        chosen.len(),
        start.elapsed().as_secs_f64()
    ))
}

fn names(list: Option<&String>) -> Result<Vec<&str>> {
    let Some(list) = list else {
        bail!("which steps? see `cargo xtask test --list`")
    };
    let names: Vec<&str> = list.split(',').collect();
    match names
        .iter()
        .find(|name| STEPS.iter().all(|(step, _)| step != *name))
    {
        Some(unknown) => bail!("no step `{unknown}`; see `cargo xtask test --list`"),
        None => Ok(names),
    }
}

fn build_binary() -> Result<String> {
    build(&["anabranch"])
}

/// Builds programs in one go, so that they share what they are made of; where the first of them is.
fn build(packages: &[&str]) -> Result<String> {
    let mut command = vec!["build", "--locked", "--profile", PROFILE];
    command.extend(packages.iter().flat_map(|package| ["--package", *package]));
    run("cargo", &command)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    Ok(target
        .join(PROFILE)
        .join(packages[0])
        .to_string_lossy()
        .into_owned())
}

/// The alert rules, by Prometheus's own tool: whether they are rules, and whether they fire when they should.
fn alerts() -> Result<()> {
    let folder = root().join("deploy/prometheus");
    run_in(&folder, "promtool", &["check", "config", "prometheus.yml"])?;
    run_in(
        &folder,
        "promtool",
        &["test", "rules", "anabranch.rules.test.yml"],
    )
}

/// Real clients against the real binary.
pub(crate) fn compat(args: &[String]) -> Result<String> {
    // The rules by which the runner judges have tests of their own.
    run(
        "python3",
        &["-m", "unittest", "discover", "--quiet", "compat/tests"],
    )?;
    // Beside the broker, the program of docs/first-split.md that is in Rust.
    let binary = build(&["anabranch", "billing"])?;
    let mut command = vec!["compat/run.py".to_owned(), "--binary".into(), binary];
    command.extend_from_slice(args);
    run("python3", &command)?;
    Ok("every scenario met its expectation".into())
}

/// What docs/first-split.md says, done in each of its languages.
pub(crate) fn guides(args: &[String]) -> Result<String> {
    let mut command = vec!["--scenario".to_owned(), "guide-".into()];
    command.extend_from_slice(args);
    compat(&command)
}

/// kill -9 under load, restart, verify against what the clients were told.
pub(crate) fn crash(args: &[String]) -> Result<String> {
    let binary = build_binary()?;
    let mut command: Vec<String> = [
        "run",
        "--locked",
        "--quiet",
        "--profile",
        PROFILE,
        "--package",
        "anabranch-crash",
        "--",
        "--binary",
    ]
    .map(String::from)
    .to_vec();
    command.push(binary);
    command.extend_from_slice(args);
    run("cargo", &command)?;
    Ok("nothing acknowledged was lost, reordered, doubled or invented".into())
}

/// The console in headless Chromium, before the real binary with real members. With `--shots FOLDER` it leaves pictures of
/// each view there, in both themes and two sizes.
pub(crate) fn console(args: &[String]) -> Result<String> {
    let shots = match args {
        [] => None,
        [flag, folder] if flag == "--shots" => Some(std::path::absolute(folder)?),
        _ => bail!("usage: cargo xtask console [--shots FOLDER]"),
    };
    let folder = root().join("console");
    // The pure parts need nothing but Node.
    run_in(&folder, "npm", &["run", "--silent", "test"])?;
    run_in(
        &folder,
        "npm",
        &["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"],
    )?;
    let binary = build_binary()?;
    let mut command = Command::new("npm");
    command.args(["run", "--silent", "test:browser"]);
    command
        .current_dir(&folder)
        .env("ANABRANCH", std::path::absolute(binary)?);
    if let Some(shots) = shots {
        command.env("SHOTS", shots);
    }
    let status = command.status().context("cannot start npm; is Node installed?")?;
    if !status.success() {
        bail!("the console's tests ended with {status}");
    }
    Ok("the console shows what the broker does, and does what it is told".into())
}

/// Whole brokers with model clients and faults, from seeds.
pub(crate) fn sim(args: &[String]) -> Result<String> {
    let mut command: Vec<String> = [
        "run",
        "--locked",
        "--quiet",
        "--profile",
        PROFILE,
        "--package",
        "anabranch-sim",
    ]
    .map(String::from)
    .to_vec();
    let is_mutants = args.iter().any(|arg| arg.starts_with("--mutant"));
    if is_mutants {
        command.extend(["--features".to_owned(), "planted-faults".to_owned()]);
    }
    command.push("--".to_owned());
    command.extend_from_slice(args);
    run("cargo", &command)?;
    Ok(match is_mutants {
        true => "every mutant was caught".into(),
        false => "every invariant held for every seed".into(),
    })
}

/// The divided cursor with model clients, through every order of events; and every planted fault found.
pub(crate) fn explore(args: &[String]) -> Result<String> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--locked", "--quiet", "--profile", PROFILE])
        .args(["--package", "anabranch-core", "--lib"])
        .args(["cursor::tests::explore", "--", "--nocapture"])
        .env("ANABRANCH_EXPLORE", "all")
        .env("ANABRANCH_EXPLORE_WALKS", "200")
        .current_dir(root());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let variable = match arg.as_str() {
            "--only" => "ANABRANCH_EXPLORE",
            "--bound" => "ANABRANCH_EXPLORE_BOUND",
            "--walks" => "ANABRANCH_EXPLORE_WALKS",
            other => bail!("unknown argument `{other}`; see `cargo xtask`"),
        };
        let Some(value) = args.next() else {
            bail!("`{arg}` needs a value")
        };
        command.env(variable, value);
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("a setting does not hold, or a fault was not found");
    }
    Ok("no violation in what was explored, and every planted fault was found".into())
}

/// Anabranch and Apache Kafka in one run.
pub(crate) fn bench(args: &[String]) -> Result<String> {
    run(
        "cargo",
        &[
            "build",
            "--locked",
            "--release",
            "--package",
            "anabranch",
            "--package",
            "anabranch-bench",
        ],
    )?;
    let mut command: Vec<String> = [
        "run",
        "--locked",
        "--quiet",
        "--release",
        "--package",
        "anabranch-bench",
        "--",
        "run",
    ]
    .map(String::from)
    .to_vec();
    command.extend_from_slice(args);
    run("cargo", &command)?;
    Ok("see bench/RESULTS.md".into())
}

/// The tests of the fuzz targets (every file of the corpus, seeds up to date), then each target for a few seconds over
/// its corpus.
fn fuzz() -> Result<()> {
    let folder = root().join("fuzz");
    run(
        "cargo",
        &["test", "--locked", "--quiet", "-p", "anabranch-fuzz", "--lib"],
    )?;
    if !std::process::Command::new("cargo")
        .args(["fuzz", "--version"])
        .output()?
        .status
        .success()
    {
        run(
            "cargo",
            &["install", "--locked", "cargo-fuzz", "--version", "0.13.2"],
        )?;
    }
    for target in ["frame", "request", "batch", "sift", "recovery"] {
        // The toolchain is stable: no sanitizer; Rust's own checks find what the contract forbids.
        run_in(
            &folder,
            "cargo",
            &[
                "fuzz",
                "run",
                "--sanitizer",
                "none",
                target,
                "--",
                "-max_total_time=15",
                "-rss_limit_mb=1024",
            ],
        )?;
    }
    Ok(())
}
