//! The README, done: its commands run as they stand there, against a broker that is started as it says.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, root, say};
use crate::tasks::PROFILE;

/// What the page begins with: the main job, and all tests.
const FIRST: [&str; 2] = ["cargo run --release -- demo", "cargo xtask test"];

/// The broker's address in the page; here it gets a port that is free.
const ADDRESS: &str = "127.0.0.1:9092";

/// The recording that the page shows.
const RECORDING: &str = "docs/img/demo.svg";

/// Pages with larger pictures are slow to open.
const PICTURE_BYTES_MAX: u64 = 300 << 10;

/// Programs whose lines are run.
const RUN: [&str; 4] = ["anabranch", "printf", "echo", "kcat"];

/// Programs whose lines are not: cargo's are the other steps, and Kafka's own tools are tried by `compat`.
const LEFT: [&str; 2] = ["cargo", "kafka-topics.sh"];

/// What the lines print, if all that they write can be read.
const PRINTED: [&str; 3] = [
    "alice:1 apple",
    "kitchen  fruit  2",
    "Reached end of topic fruit [2]",
];

pub(crate) fn run(binary: &str) -> Result<()> {
    let page = fs::read_to_string(root().join("README.md"))?;
    let lines = shell_lines(&page);
    ensure!(
        lines.get(..2) == Some(&FIRST),
        "the README does not begin with {FIRST:?}"
    );
    // That line names no package: it must find the broker among those of the workspace.
    step::run(
        "cargo",
        &[
            "run",
            "--locked",
            "--quiet",
            "--profile",
            PROFILE,
            "--",
            "version",
        ],
    )?;
    say("anabranch demo");
    recorded(binary)?;
    pictures(&page)?;

    let broker = Broker::start(binary)?;
    let mut printed = String::new();
    for line in lines
        .into_iter()
        .filter(|line| !line.starts_with("anabranch serve"))
    {
        let program = line.split(' ').next().unwrap_or_default();
        if RUN.contains(&program) {
            say(line);
            printed.push_str(&broker.shell(binary, line)?);
        } else if !LEFT.contains(&program) {
            bail!("the README has a line that nobody tries: {line}");
        }
    }
    goes_on(&broker, binary)?;
    for expected in PRINTED {
        ensure!(
            printed.contains(expected),
            "the README's lines do not print {expected:?}, but:\n{printed}"
        );
    }
    Ok(())
}

/// Whoever goes on from the README to the next page has this broker: its topic is another one.
fn goes_on(broker: &Broker, binary: &str) -> Result<()> {
    let page = fs::read_to_string(root().join("docs/first-split.md"))?;
    let lines = shell_lines(&page);
    let create = lines.iter().find(|line| line.contains(" topic create "));
    let create = create.context("docs/first-split.md creates no topic")?;
    say(create);
    broker.shell(binary, create).map(drop)
}

/// Runs the demo as the page's recording was made; the recording of this run says that nothing was lost.
fn recorded(binary: &str) -> Result<()> {
    let out = root().join("target").join("demo.svg");
    let status = Command::new(root().join("docs/img/record"))
        .arg("--out")
        .arg(&out)
        .args([binary, "demo"])
        .stdout(Stdio::null())
        .status()
        .context("cannot start docs/img/record; is Python installed?")?;
    ensure!(status.success(), "recording `anabranch demo` ended with {status}");
    for file in [out, root().join(RECORDING)] {
        let picture = fs::read_to_string(&file)?;
        for part in ["$ anabranch demo", "0 lost, 0 delivered again", "key order"] {
            ensure!(picture.contains(part), "no {part:?} in {}", file.display());
        }
    }
    Ok(())
}

/// Every picture of the page is there, and small.
fn pictures(page: &str) -> Result<()> {
    let quoted = page.split(['"', '(', ')']);
    let named: BTreeSet<&str> = quoted.filter(|word| word.starts_with("docs/img/")).collect();
    ensure!(named.contains(RECORDING), "the README does not show {RECORDING}");
    for picture in named {
        let size = fs::metadata(root().join(picture))
            .with_context(|| format!("the README shows {picture}"))?
            .len();
        ensure!(size <= PICTURE_BYTES_MAX, "{picture} has {size} bytes");
    }
    Ok(())
}

/// The lines of all shell blocks, without comments.
fn shell_lines(page: &str) -> Vec<&str> {
    let blocks = page.split("\n```sh\n").skip(1);
    let inside = blocks.filter_map(|rest| rest.split("\n```").next());
    inside
        .flat_map(str::lines)
        .map(|line| line.split(" #").next().unwrap_or(line).trim_end())
        .filter(|line| !line.is_empty())
        .collect()
}

/// A broker on free ports and an empty folder.
struct Broker {
    process: Child,
    kafka: String,
    http: String,
}

impl Broker {
    fn start(binary: &str) -> Result<Self> {
        let data = root().join("target").join("readme");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let mut process = Command::new(binary)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(&data)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the broker")?;
        let out = process.stdout.take().context("its output is piped")?;
        let mut broker = Self {
            process,
            kafka: String::new(),
            http: String::new(),
        };
        for line in BufReader::new(out).lines() {
            let line = line?;
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("kafka"), Some(address)) => address.clone_into(&mut broker.kafka),
                (Some("http"), Some(address)) => broker.http = format!("http://{address}"),
                (Some("stop"), _) => return Ok(broker),
                _ => {}
            }
        }
        bail!("the broker ended before it was ready")
    }

    /// Runs a line of the page; what it printed.
    fn shell(&self, binary: &str, line: &str) -> Result<String> {
        let folder = Path::new(binary)
            .parent()
            .context("the binary lies in a folder")?;
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &line.replace(ADDRESS, &self.kafka)])
            .current_dir(root().join("target"))
            .env("PATH", format!("{}:{path}", folder.display()))
            .env("ANABRANCH_BOOTSTRAP", &self.kafka)
            .env("ANABRANCH_ADMIN", &self.http)
            .output()
            .context("cannot start bash")?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        ensure!(
            output.status.success(),
            "`{line}` ended with {}:\n{printed}",
            output.status
        );
        Ok(printed)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_shell_blocks_are_found_without_comments() {
        let page = "\n```sh\none -a          # what it does\n\ntwo | three\n```\ntext\n```toml\nfour\n```\n```sh\nfive\n```\n";
        assert_eq!(shell_lines(page), ["one -a", "two | three", "five"]);
    }
}
