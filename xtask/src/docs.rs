//! Documents that must stay true: rustdoc without warnings, links and file names that exist.

use crate::step::{root, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Builds the API documents with warnings as errors, then checks every local link and every path named in the
/// hand-written documents.
fn run_checks() -> Result<usize> {
    let status = Command::new("cargo")
        .args([
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--locked",
            "--quiet",
        ])
        // These pages are for developers: private items are in them, and may be linked to.
        .env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("cargo doc ended with {status}");
    }
    let listed = Command::new("git")
        .args(["ls-files", "*.md"])
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    let files = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let mut broken = Vec::new();
    for file in files.lines() {
        let text = fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        check_links(file, &text, &mut broken);
        if file == "ARCHITECTURE.md" {
            check_paths(file, &text, &mut broken);
        }
    }
    if broken.is_empty() {
        Ok(files.lines().count())
    } else {
        bail!("{}", broken.join("\n  "))
    }
}

/// Runs the generators of documents (tests that compare, or write when told to), then the checks.
pub(crate) fn run(args: &[String]) -> Result<String> {
    if !args.iter().any(|arg| arg == "--check") {
        say("writing generated documents");
        // The tests that hold the generated documents against the program rewrite them under this variable.
        for (package, test) in [
            ("anabranch", "pages_of_reference"),
            ("anabranch-server", "the_description_of_the_api"),
        ] {
            let status = Command::new("cargo")
                .args(["test", "--quiet", "--package", package, test])
                .env("UPDATE_DOCS", "1")
                .current_dir(root())
                .status()
                .context("cannot start cargo")?;
            if !status.success() {
                bail!("writing the documents ended with {status}");
            }
        }
    }
    Ok(format!("{} documents", run_checks()?))
}

/// Every `[text](path)` that is not a web address must exist.
fn check_links(file: &str, text: &str, broken: &mut Vec<String>) {
    let folder = root()
        .join(file)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    for (number, line) in text.lines().enumerate() {
        for part in line.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            if !folder.join(path).exists() {
                broken.push(format!(
                    "{file}:{}: link to {target}, which does not exist",
                    number + 1
                ));
            }
        }
    }
}

/// Every path in backquotes below `crates/`, `docs/`, `compat/`, `console/`, `bench/`, `fuzz/`, `xtask/` or `crash/` must exist.
fn check_paths(file: &str, text: &str, broken: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let below = [
                "crates/", "docs/", "compat/", "console/", "bench/", "fuzz/", "xtask/", "crash/",
            ];
            let is_path =
                below.iter().any(|top| quoted.starts_with(top)) && !quoted.contains(['*', '<', ' ', '{']);
            if is_path && !root().join(quoted).exists() {
                broken.push(format!(
                    "{file}:{}: names {quoted}, which does not exist",
                    number + 1
                ));
            }
        }
    }
}
