//! House rules as a check: what a lint cannot see.

use crate::claims;
use crate::step::root;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// A file of code longer than this hides a seam.
const LINES_MAX: usize = 500;

/// Marks of unfinished work, spelled in halves so that this file does not contain them.
const UNFINISHED: &[(&str, &str)] = &[
    ("todo", "!("),
    ("unimplemented", "!("),
    ("FIX", "ME"),
    ("XX", "X:"),
    ("#[ign", "ore"),
];

/// Files whose length is data, not structure.
const TABLES: &[&str] = &["crates/wire/src/error_code.rs"];

/// Checks every tracked file; reports all faults at once.
pub(crate) fn run() -> Result<()> {
    let listed = Command::new("git")
        .args(["ls-files"])
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    let files = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let (mut faults, mut claims) = (Vec::new(), BTreeSet::new());
    for file in files.lines().filter(|file| file.ends_with(".rs")) {
        let Ok(text) = fs::read_to_string(root().join(file)) else {
            continue;
        };
        check(file, &text, &mut faults);
        if file.starts_with("crates/") {
            claims.extend(claims::tests_in(&text));
        }
    }
    let page = fs::read_to_string(root().join(claims::PAGE)).unwrap_or_default();
    faults.extend(claims::faults(&page, &claims, |path| root().join(path).exists()));
    for file in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "LICENSE",
        "Cargo.lock",
    ] {
        if !root().join(file).exists() {
            faults.push(format!("{file} is missing"));
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        bail!("{} faults:\n  {}", faults.len(), faults.join("\n  "))
    }
}

fn check(file: &str, text: &str, faults: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LINES_MAX && !TABLES.contains(&file) {
        faults.push(format!(
            "{file}: {lines} lines; find the seam (at most {LINES_MAX})"
        ));
    }
    for (left, right) in UNFINISHED {
        if let Some(line) = text
            .lines()
            .position(|line| line.contains(&format!("{left}{right}")))
        {
            faults.push(format!(
                "{file}:{}: `{left}{right}` marks unfinished work",
                line + 1
            ));
        }
    }
}
