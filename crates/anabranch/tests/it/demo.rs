//! The demo from outside: what it checks, that it can be stopped, and that nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Broker, Process, Run, finish, program};

/// Runs a demo whose temporary folder must be gone again when it ends.
fn demo(args: &[&str]) -> Run {
    let temporary = TempDir::new().unwrap();
    let mut command = program();
    command.arg("demo").args(args).env("TMPDIR", temporary.path());
    let run = finish(&mut command, b"");
    assert_eq!(
        fs::read_dir(temporary.path()).unwrap().count(),
        0,
        "something is left behind"
    );
    run
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_record_is_checked() {
    for protocol in ["classic", "consumer"] {
        let run = demo(&[
            "--members",
            "2",
            "--records",
            "3000",
            "--keys",
            "50",
            "--zipf",
            "0.8",
            "--cost-us",
            "300",
            "--protocol",
            protocol,
            "--format",
            "json",
        ]);
        let report = run.expect(0).json();
        let verdict = &report["verdict"];
        assert_eq!(
            (number(&verdict["written"]), number(&verdict["delivered"])),
            (3000, 3000)
        );
        assert_eq!(
            (number(&verdict["lost"]), number(&verdict["keys_out_of_order"])),
            (0, 0)
        );
        assert_eq!((number(&verdict["keys"]), number(&report["keys"])), (50, 50));
        // Members learn of their commits, so that a record that came again behind one would be found.
        assert_eq!(number(&verdict["committed"]), 3000, "{verdict}");
        assert_eq!(report["protocol"], protocol);
        assert_eq!(report["phases"][0]["members"], 1);
        // One member alone does what the cost of a record allows, and no more.
        let rate = report["phases"][0]["rate"].as_f64().unwrap();
        assert!((1_500.0..=3_600.0).contains(&rate), "{rate}");
    }
}

/// The unread records of one partition are divided between two unmodified clients, in the order of their keys.
#[test]
fn a_backlog_is_divided() {
    let run = demo(&[
        "--members",
        "2",
        "--records",
        "10000",
        "--protocol",
        "consumer",
        "--format",
        "json",
    ]);
    let report = run.expect(0).json();
    assert_eq!(report["divided"], true, "{report}");
    assert_eq!(
        (
            number(&report["verdict"]["delivered"]),
            number(&report["verdict"]["lost"])
        ),
        (10_000, 0)
    );
    assert_eq!(number(&report["verdict"]["keys_out_of_order"]), 0);
    let both = &report["phases"][1];
    assert_eq!(
        (number(&both["members"]), number(&both["working"])),
        (2, 2),
        "{both}"
    );
    assert!(both["speed_up"].as_f64().unwrap() > 1.3, "{both}");
    let decisions = report["decisions"].as_array().unwrap();
    let split = decisions
        .iter()
        .find(|one| one["kind"] == "split" && one["outcome"] == "decided");
    assert!(
        split.is_some_and(|split| number(&split["slots"]) > 0),
        "{decisions:?}"
    );
}

/// The lines of a file are records; where there is no terminal, what happens is told line by line.
#[test]
fn a_file_is_played() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("orders.csv");
    let lines: String = (0..500).map(|i| format!("{i},customer-{},x\n", i % 7)).collect();
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let by_column = demo(&[
        "--input",
        file,
        "--key-column",
        "2",
        "--members",
        "1",
        "--cost-us",
        "0",
    ])
    .expect(0)
    .text();
    for part in [
        "member-1 joins",
        "member-1 reads orders/0",
        "delivered   500 of 500 records, 0 lost, 0 delivered again",
        "key order   7 keys, 0 out of order, 0 with two members at the same time",
        "no division seen",
    ] {
        assert!(by_column.contains(part), "{part}: {by_column}");
    }
    let by_regex = demo(&[
        "--input",
        file,
        "--key-regex",
        "customer-([0-3])|x",
        "--members",
        "1",
        "--records",
        "70",
        "--cost-us",
        "0",
    ]);
    assert!(by_regex.expect(0).text().contains("delivered   70 of 70 records"));
    let no_key = demo(&["--input", file, "--key-column", "9"]).expect(1);
    assert!(
        no_key.err.contains("line 1: it has only 3 columns"),
        "{}",
        no_key.err
    );
    for (args, why) in [
        (&["--key-column", "2"][..], "--input"),
        (&["--input", file, "--zipf", "1"], "cannot be used with"),
        (
            &["--input", file, "--key-regex", "("],
            "is not a regular expression",
        ),
        (&["--zipf", "11"], "expected a number from 0 to 10"),
    ] {
        let failed = demo(args).expect(2);
        assert!(failed.err.contains(why), "{args:?}: {}", failed.err);
    }
}

/// Ctrl-C ends everything that was started; without all records there is no success.
#[test]
fn it_can_be_interrupted() {
    let temporary = TempDir::new().unwrap();
    let mut child = Process::start(
        program()
            .args(["demo", "--records", "1000000", "--members", "2"])
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("member-1 reads orders/0")));
    std::thread::sleep(Duration::from_millis(300));
    let begin = Instant::now();
    child.signal("-INT");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let (status, err) = child.end();
    assert_eq!(status.code(), Some(1), "{err}");
    assert!(
        err.contains("interrupted after") && err.contains("which were in order"),
        "{err}"
    );
    let delivered = rest.iter().find(|line| line.starts_with("delivered ")).unwrap();
    assert!(
        delivered.contains(" not yet when it was interrupted"),
        "{delivered}"
    );
    let is_fault = |line: &String| line.starts_with("fault ") || line.contains(" lost");
    assert!(
        !rest.iter().any(is_fault),
        "what may still come is not lost: {rest:?}"
    );
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// On a broker that goes on, topic and group are deleted again.
#[test]
fn a_running_broker_is_left_as_it_was() {
    let broker = Broker::start();
    let run = demo(&[
        "-b",
        &broker.address,
        "--records",
        "200",
        "--members",
        "1",
        "--cost-us",
        "0",
        "--format",
        "json",
    ]);
    let report = run.expect(0).json();
    assert_eq!(number(&report["verdict"]["delivered"]), 200);
    let topic = report["topic"].as_str().unwrap();
    assert!(topic.starts_with("anabranch-demo-"), "{topic}");
    let topics = broker.run(&["topic", "list"]).expect(0).text();
    assert!(!topics.contains(topic), "{topics}");
    let groups = broker.run(&["group", "list"]).expect(0).text();
    assert!(!groups.contains(topic), "{groups}");
}
