//! The broker as a process: what it says at the start, and how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Process, finish, program, run, run_with, serve};
use tempfile::TempDir;

#[test]
fn it_says_where_everything_is_and_ends_in_good_order() {
    let data = TempDir::new().unwrap();
    let (mut child, started) = serve(data.path(), &["--durability", "relaxed"]);
    assert_eq!(started["event"], "started");
    assert_eq!(started["durability"], "relaxed");
    assert_eq!(started["pid"], child.id());
    assert_eq!(started["data"], data.path().to_str().unwrap());
    assert_eq!(started["kafka"][0]["advertised"], serde_json::Value::Null);

    let mut http = TcpStream::connect(started["http"].as_str().unwrap()).unwrap();
    http.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    http.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let begin = Instant::now();
    child.signal("-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[test]
fn the_lines_at_the_start_are_for_people() {
    let data = TempDir::new().unwrap();
    let mut child = Process::start(
        program()
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http",
                "none",
                "--advertise",
                "broker.example:9092",
                "--data",
            ])
            .arg(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = String::new();
    while !text.contains("stop") {
        let line = lines.next().expect("a line about how to stop").unwrap();
        text.push_str(&format!("{line}\n"));
    }
    for part in [
        "is ready",
        "clients are told broker.example:9092",
        data.path().to_str().unwrap(),
        "durable: acknowledged messages are on disk and survive a power cut",
        "Ctrl-C or SIGTERM",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("http"), "{text}");
    child.signal("-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = TempDir::new().unwrap();
    let mut command = program();
    command
        .args(["serve", "--listen", &address, "--http", "none", "--data"])
        .arg(data.path());
    let failed = finish(&mut command, b"").expect(1);
    assert!(
        failed.err.contains(&format!("cannot listen on {address}")),
        "{}",
        failed.err
    );
    assert!(failed.err.contains("choose another address"), "{}", failed.err);
}

/// Each message names the path, what is wrong with it, and what to do; none has a number that only programmers know.
#[test]
fn a_path_that_cannot_hold_data_is_named_with_cause_and_cure() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "x").unwrap();
    std::fs::create_dir(at("photos")).unwrap();
    std::fs::write(at("photos/holiday.jpg"), "x").unwrap();
    for (path, cause, cure) in [
        ("file", "is a file", "choose another path"),
        ("file/data", "is a file", "choose another path"),
        (
            "photos",
            "it holds \"holiday.jpg\"",
            "choose an empty or a new folder",
        ),
    ] {
        let mut command = program();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--http", "none", "--data"])
            .arg(at(path));
        let failed = finish(&mut command, b"").expect(1);
        for part in [at(path).to_str().unwrap(), cause, cure] {
            assert!(failed.err.contains(part), "{part}: {}", failed.err);
        }
        assert!(!failed.err.contains("os error"), "{}", failed.err);
    }
    assert_eq!(std::fs::read(at("file")).unwrap(), b"x");
    assert_eq!(std::fs::read_dir(at("photos")).unwrap().count(), 1);
}

/// A second broker on a machine need not be told anything about HTTP; whoever chose an address is told that it is taken.
#[test]
fn the_usual_http_address_may_be_in_use_but_not_a_chosen_one() {
    // Either this takes it, or somebody has it already.
    let usual = TcpListener::bind("127.0.0.1:9099");
    let data = TempDir::new().unwrap();
    let mut command = program();
    command
        .args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--data"])
        .arg(data.path());
    let mut child = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    child.signal("-TERM");
    let (_, log) = child.end();
    assert!(
        log.contains("127.0.0.1:9099 is in use, so nothing is served over HTTP"),
        "{log}"
    );
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["http"], serde_json::Value::Null);

    let mut command = program();
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:9099",
            "--data",
        ])
        .arg(data.path());
    let failed = finish(&mut command, b"").expect(1);
    assert!(
        failed.err.contains("cannot listen on 127.0.0.1:9099"),
        "{}",
        failed.err
    );
    drop(usual);
}

/// A client in the middle of a request keeps a shutdown waiting; whoever cannot wait says so again.
#[test]
fn a_second_signal_ends_it_at_once() {
    let data = TempDir::new().unwrap();
    let (mut child, started) = serve(
        data.path(),
        &[
            "--set",
            "shutdown.timeout.ms=1min",
            "--set",
            "request.stall.timeout.ms=1min",
        ],
    );
    let mut client = TcpStream::connect(started["kafka"][0]["address"].as_str().unwrap()).unwrap();
    client.write_all(&[0, 0, 0, 100, 0]).unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    child.signal("-TERM");
    assert!(log.any(|line| line.is_ok_and(|line| line.contains("shutting down"))));
    child.signal("-TERM");
    let begin = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}

/// What was acknowledged is there again, byte for byte, after the process was killed.
#[test]
fn acknowledged_lines_survive_a_kill() {
    let data = TempDir::new().unwrap();
    let lines: Vec<u8> = (0..3000)
        .flat_map(|i| format!("line {i}\r\n").into_bytes())
        .collect();
    let (mut child, started) = serve(data.path(), &[]);
    let address = |started: &serde_json::Value| started["kafka"][0]["address"].as_str().unwrap().to_owned();
    let at = address(&started);
    run(&["topic", "create", "kept", "-p", "1", "-b", &at]).expect(0);
    run_with(&["produce", "kept", "-b", &at], &lines).expect(0);
    run(&["consume", "kept", "-n", "1000", "-g", "readers", "-b", &at]).expect(0);
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut child, started) = serve(data.path(), &[]);
    let at = address(&started);
    assert!(run(&["consume", "kept", "-e", "-b", &at]).expect(0).out == lines);
    let rest = run(&["consume", "kept", "-e", "-g", "readers", "-b", &at]).expect(0);
    assert_eq!(rest.text().lines().count(), 2000);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_told_with_a_way_out() {
    let long = format!("/tmp/{}", "x".repeat(300));
    for (folder, why) in [
        ("/proc/no-such-place", "takes no new folders"),
        (long.as_str(), "a name in it is too long"),
    ] {
        let failed = run(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--http",
            "none",
            "--data",
            folder,
        ])
        .expect(1);
        assert!(
            failed.err.contains(why) && failed.err.contains("choose another path"),
            "{}",
            failed.err
        );
        assert!(!failed.err.contains("os error"), "{}", failed.err);
    }
}

#[test]
fn a_data_folder_serves_one_process() {
    let data = TempDir::new().unwrap();
    let (mut child, _) = serve(data.path(), &[]);
    let mut command = program();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--http", "none", "--data"])
        .arg(data.path());
    let second = finish(&mut command, b"").expect(1);
    assert!(
        second.err.contains(data.path().to_str().unwrap()),
        "{}",
        second.err
    );
    assert!(!second.err.contains("panicked"), "{}", second.err);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Who works with a broker has its addresses in the environment, and may start one all the same.
#[test]
fn the_variables_of_client_commands_do_not_concern_a_broker() {
    let data = TempDir::new().unwrap();
    let mut command = program();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--http", "none", "--data"])
        .arg(data.path())
        .env("ANABRANCH_ADMIN", "http://127.0.0.1:1")
        .env("ANABRANCH_BOOTSTRAP", "127.0.0.1:1");
    let mut child = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().map(Result::unwrap);
    child.signal("-TERM");
    let (status, err) = child.end();
    assert!(first.is_some_and(|line| line.contains("is ready")), "{err}");
    assert_eq!(status.code(), Some(0), "{err}");
}
