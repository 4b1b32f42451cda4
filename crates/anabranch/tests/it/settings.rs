//! Settings from all sources, explained, checked, and documented.

use std::fs;
use std::path::Path;

use crate::support::{finish, program, run};
use tempfile::TempDir;

#[test]
fn flags_win_over_environment_over_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("broker.toml");
    fs::write(
        &file,
        "http = \"127.0.0.1:1\"\nnum.partitions = 3\n[log]\nlevel = \"warn\"\n",
    )
    .unwrap();
    let mut command = program();
    command
        .args([
            "config",
            "list",
            "--changed",
            "--set",
            "log.level=trace",
            "--config",
        ])
        .arg(&file);
    command
        .env("ANABRANCH_HTTP", "127.0.0.1:2")
        .env("KAFKA_LOG_RETENTION_MS", "1000")
        .env("HOME", "/home/x");
    let list = finish(&mut command, b"").expect(0).text();
    let file = file.display();
    for (name, value, origin) in [
        (
            "http",
            "127.0.0.1:2",
            "environment variable ANABRANCH_HTTP".to_owned(),
        ),
        ("log.level", "trace", "flag --set log.level".to_owned()),
        ("num.partitions", "3", format!("{file}:2:1")),
        (
            "log.retention.ms",
            "1000",
            "environment variable KAFKA_LOG_RETENTION_MS".to_owned(),
        ),
    ] {
        let line = list
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")))
            .unwrap_or_else(|| panic!("{list}"));
        assert!(line.contains(value) && line.ends_with(&origin), "{line}");
    }
    assert_eq!(list.lines().count(), 5, "{list}");
}

#[test]
fn a_file_is_checked_without_starting_anything() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("broker.toml");
    fs::write(
        &file,
        "listen = \"127.0.0.1:9092\"\n\n  durabilty = \"relaxed\"\n",
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let failed = run(&["config", "check", path]).expect(2);
    assert!(
        failed.err.contains(&format!(
            "{path}:3:3: there is no setting \"durabilty\"; did you mean \"durability\"?"
        )),
        "{}",
        failed.err
    );

    fs::write(&file, "listen = \"127.0.0.1:9092\"\nprocess.roles = \"broker\"\n").unwrap();
    let checked = run(&["config", "check", path]).expect(0);
    assert!(
        checked.text().contains("no errors, 1 setting set"),
        "{}",
        checked.text()
    );
    assert!(
        checked.err.contains("process.roles has no effect here"),
        "{}",
        checked.err
    );

    let missing = run(&["config", "check", "/nowhere/broker.toml"]).expect(2);
    assert!(
        missing
            .err
            .contains("cannot read the configuration file /nowhere/broker.toml"),
        "{}",
        missing.err
    );
}

#[test]
fn a_setting_is_explained() {
    let text = run(&["config", "explain", "durability"]).expect(0).text();
    for part in [
        "fdatasync",
        "default      durable",
        "--durability MODE",
        "ANABRANCH_DURABILITY",
        "durable, relaxed",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let failed = run(&["config", "explain", "durabilty"]).expect(3);
    assert!(
        failed.err.contains("hint: did you mean \"durability\"?"),
        "{}",
        failed.err
    );
}

#[test]
fn wrong_settings_stop_the_start() {
    let failed = run(&[
        "serve",
        "--listen",
        "here",
        "--set",
        "num.partitions=0",
        "--set",
        "x",
    ])
    .expect(2);
    assert!(
        failed.err.contains("--set x: expected KEY=VALUE"),
        "{}",
        failed.err
    );
    let failed = run(&["serve", "--listen", "here", "--set", "num.partitions=0"]).expect(2);
    assert!(failed.err.contains("2 settings are wrong"), "{}", failed.err);
    assert!(
        failed.err.contains("flag --listen: \"here\" is not HOST:PORT"),
        "{}",
        failed.err
    );
    assert!(
        failed.err.contains("`0` is not a value of `num.partitions`"),
        "{}",
        failed.err
    );
}

/// Holds a page of the documentation against the program; `UPDATE_DOCS=1` writes it anew.
fn holds(page: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, made).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == made,
        "docs/{page} is not up to date: run this test with UPDATE_DOCS=1"
    );
}

#[test]
fn the_pages_of_reference_are_up_to_date() {
    holds("config.md", &run(&["config", "reference"]).expect(0).text());
    holds("cli.md", &run(&["reference"]).expect(0).text());
    holds("metrics.md", &run(&["config", "metrics"]).expect(0).text());
    holds("limits.md", &run(&["config", "limits"]).expect(0).text());
}
