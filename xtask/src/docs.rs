//! Documents that must stay true: rustdoc without warnings, files that are shown in them, links and file names that exist.

use crate::step::{root, say};
use crate::{include, links};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Checks in all pages what they show of files, every link within the repository, and every path that ARCHITECTURE.md names;
/// then builds the API documents with warnings as errors.
fn run_checks() -> Result<usize> {
    let pages = pages()?;
    let mut broken = links::broken(&pages, |path| root().join(path).exists());
    for (file, text) in &pages {
        if included(file, text)? != *text {
            broken.push(format!(
                "{file} shows a file as it was: `cargo xtask docs` puts it right"
            ));
        }
        if file == "ARCHITECTURE.md" {
            check_paths(file, text, &mut broken);
        }
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("\n  "));
    }
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
    Ok(pages.len())
}

/// All pages of the repository: path from its root, and text.
fn pages() -> Result<Vec<(String, String)>> {
    let listed = Command::new("git")
        .args(["ls-files", "*.md"])
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    let files = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    files
        .lines()
        .map(|file| {
            let text =
                fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))?;
            Ok((file.to_owned(), text))
        })
        .collect()
}

/// A page with the files that it shows, as they are.
fn included(file: &str, text: &str) -> Result<String> {
    let page = root().join(file);
    let folder = page.parent().map(Path::to_path_buf).unwrap_or_default();
    include::expand(text, |path| Ok(fs::read_to_string(folder.join(path))?)).with_context(|| file.to_owned())
}

/// Runs the generators of documents (tests that compare, or write when told to), then the checks.
pub(crate) fn run(args: &[String]) -> Result<String> {
    if !args.iter().any(|arg| arg == "--check") {
        say("writing generated documents");
        for (file, text) in pages()? {
            let whole = included(&file, &text)?;
            if whole != text {
                fs::write(root().join(&file), whole)?;
            }
        }
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
