//! What a person sees who types something wrong, or asks how it is meant.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::{finish, program, run};

#[test]
fn help_has_examples_and_exit_codes() {
    let help = run(&["--help"]).expect(0).text();
    assert!(help.contains("anabranch serve"), "{help}");
    assert!(help.contains("Exit codes: 0 done, 1 failed"), "{help}");
    for family in [
        "serve", "topic", "group", "produce", "consume", "cluster", "config",
    ] {
        let help = run(&[family, "--help"]).expect(0).text();
        assert!(help.contains("Examples:\n  anabranch "), "{family}: {help}");
    }
}

#[test]
fn wrong_usage_is_code_2_and_says_what_is_right() {
    for (args, why) in [
        (&["tpoic"][..], "topic"),
        (&["topic", "create"], "<NAME>"),
        (
            &["topic", "create", "t", "-p", "0"],
            "expected a whole number of partitions from 1 to 100,000",
        ),
        (&["topic", "alter", "t"], "--partitions <N>"),
        (
            &["topic", "list", "--bootstrap", "host:port"],
            "\"port\" is not a port",
        ),
        (&["topic", "list", "--timeout", "soon"], "is not a duration"),
        (&["group", "reset", "g", "--to-latest"], "--topic"),
        (&["group", "reset", "g", "--topic", "t"], "--to-earliest"),
        (
            &[
                "group",
                "reset",
                "g",
                "--topic",
                "t",
                "--to-latest",
                "--shift-by",
                "1",
            ],
            "cannot be used with",
        ),
        (
            &["consume", "t", "--from", "middle"],
            "expected start, end, an offset",
        ),
        (
            &["consume", "t", "--output", "xml"],
            "expected value, json, kv, raw",
        ),
        (
            &["consume", "t", "-g", "g", "--from", "7"],
            "with --group, --from is start or end",
        ),
        (&["produce", "t", "--compression", "rar"], "invalid value 'rar'"),
        (&["produce", "t", "--header", "x"], "expected NAME=VALUE"),
        (
            &["produce", "t", "--input", "kv", "--key-separator", ""],
            "must not be empty",
        ),
        (
            &["produce", "t", "--idempotent", "--acks", "1"],
            "--idempotent needs --acks all",
        ),
        (&["group", "delete", ""], "a value is required for '<GROUP>"),
        (&["produce", "bad name"], "\"bad name\" is no name of a topic"),
        (
            &["produce", "t", "-p", "-1"],
            "expected the number of a partition from 0 on",
        ),
        (
            &["consume", "t", "-n", "-1"],
            "expected a whole number of records from 0 on",
        ),
        (
            &["group", "reset", "g", "--topic", "t", "--to-offset", "-5"],
            "expected an offset from 0 on",
        ),
        (&["consume", "t", "-g", ""], "a value is required for '--group"),
        (&["topic", "list", "--timeout", "0"], "longer than nothing"),
        (
            &["topic", "list", "-b", "http://h:1"],
            "not a URL: \"h:1\" without \"http://\"",
        ),
        (
            &["serve", "--listen", "h"],
            "error: flag --listen: \"h\" is not HOST:PORT",
        ),
    ] {
        let failed = run(args).expect(2);
        assert!(failed.err.contains(why), "{args:?}: {}", failed.err);
        assert!(!failed.err.contains("panicked"), "{}", failed.err);
    }
}

#[test]
fn no_broker_is_code_4_with_cause_and_remedy() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    for args in [
        &["topic", "list"][..],
        &["group", "list"],
        &["cluster"],
        &["produce", "t"],
        &["consume", "t"],
    ] {
        let failed = finish(program().args(args).args(["-b", &free]), b"x\n").expect(4);
        assert!(
            failed
                .err
                .contains(&format!("error: cannot reach {free}: connection refused")),
            "{}",
            failed.err
        );
        assert!(
            failed
                .err
                .contains("hint: is a broker running? start one with `anabranch serve`"),
            "{}",
            failed.err
        );
        assert!(failed.out.is_empty());
    }
    let failed = finish(
        program()
            .args(["topic", "list", "--format", "json"])
            .env("ANABRANCH_BOOTSTRAP", &free),
        b"",
    )
    .expect(4);
    let error: serde_json::Value = serde_json::from_str(&failed.err).unwrap();
    assert_eq!(error["exit_code"], 4);
    assert_eq!(error["error"], format!("cannot reach {free}: connection refused"));
}

/// People put the address first as often as last; both must name the broker, and neither may be dropped silently.
#[test]
fn the_broker_may_be_named_before_the_command_or_behind_it() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    for args in [
        &["-b", &free, "topic", "list"][..],
        &["topic", "-b", &free, "list"],
        &["topic", "list", "-b", &free],
        &["--bootstrap", &free, "cluster"],
        &["--bootstrap-server", &free, "--timeout", "1s", "group", "list"],
        &["-b", "nowhere.invalid:1", "consume", "t", "-b", &free],
    ] {
        let failed = run(args).expect(4);
        assert!(
            failed.err.contains(&format!("cannot reach {free}")),
            "{args:?}: {}",
            failed.err
        );
    }
    let failed = finish(
        program()
            .args(["-b", &free, "cluster"])
            .env("ANABRANCH_BOOTSTRAP", "nowhere.invalid:1"),
        b"",
    )
    .expect(4);
    assert!(
        failed.err.contains(&format!("cannot reach {free}")),
        "{}",
        failed.err
    );
    let failed = run(&["-b", &free, "version"]).expect(2);
    assert!(
        failed
            .err
            .contains("--bootstrap is for commands that talk to a broker"),
        "{}",
        failed.err
    );
    // These do talk to a broker, by another way.
    for command in ["top", "decisions", "health"] {
        let failed = run(&["-b", &free, command]).expect(2);
        assert!(failed.err.contains("hint: --admin URL names"), "{}", failed.err);
    }
}

#[test]
fn a_listener_that_is_no_broker_is_code_4() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let failed = run(&["topic", "list", "-b", &address, "--timeout", "300ms"]).expect(4);
    assert!(
        failed
            .err
            .contains(&format!("no answer from {address} within 0.3 s")),
        "{}",
        failed.err
    );
    assert!(
        failed.err.contains("hint: does a Kafka broker listen there"),
        "{}",
        failed.err
    );
}

/// Answers the first question of each connection with these bytes.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            if std::io::Read::read(&mut socket, &mut [0; 4096]).is_ok_and(|count| count > 0) {
                let _ = std::io::Write::write_all(&mut socket, bytes);
            }
        }
    });
    address
}

#[test]
fn who_answers_in_the_place_of_a_broker_is_named() {
    for (bytes, who) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "an HTTP server answers there",
        ),
        (
            b"SSH-2.0-OpenSSH_9.6\r\n",
            "something answers there that is no Kafka broker",
        ),
        (b"\x15\x03\x03\x00\x02\x02\x28", "the listener there speaks TLS"),
    ] {
        let address = answering(bytes);
        for args in [
            &["topic", "list"][..],
            &["group", "list"],
            &["produce", "t"],
            &["consume", "t"],
        ] {
            let args = [args, &["-b", &address, "--timeout", "60s"]].concat();
            let begin = Instant::now();
            let failed = run(&args).expect(4);
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{args:?} waited for what it knew"
            );
            let expected = format!("error: cannot use {address}: {who}");
            assert!(failed.err.contains(&expected), "{args:?}: {}", failed.err);
            assert!(failed.err.contains("\nhint: "), "{}", failed.err);
        }
    }
}

#[test]
fn a_wrong_command_line_is_told_as_json_where_json_is_wanted() {
    let failed = run(&["topic", "create", "--format", "json"]).expect(2);
    let error: serde_json::Value = serde_json::from_str(&failed.err).unwrap();
    assert_eq!(
        error["error"],
        "the following required arguments were not provided: <NAME>..."
    );
    assert_eq!(error["exit_code"], 2);
    assert!(
        error["hint"].as_str().unwrap().contains("topic create"),
        "{error}"
    );
    let failed = run(&["decisions", "-b", "127.0.0.1:9092"]).expect(2);
    assert!(failed.err.contains("hint: this command asks"), "{}", failed.err);
    let help = run(&["topic", "--help", "--format=json"]).expect(0);
    assert!(help.text().contains("Usage:"), "{}", help.err);
}

#[test]
fn a_property_that_librdkafka_does_not_know_is_code_2() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let failed = run(&["topic", "list", "-b", &address, "-X", "colour=red"]).expect(2);
    assert!(
        failed.err.contains("-X colour: No such configuration property"),
        "{}",
        failed.err
    );
    for args in [&["topic", "list"][..], &["produce", "t"], &["consume", "t"]] {
        let tls = ["-b", &address, "-X", "security.protocol=ssl"];
        let failed = run(&[args, &tls].concat()).expect(2);
        assert!(
            failed
                .err
                .contains("-X security.protocol: this program speaks no TLS"),
            "{args:?}: {}",
            failed.err
        );
    }
}

#[test]
fn the_versions_are_shown() {
    let version = run(&["version", "--format", "json"]).expect(0).json();
    assert_eq!(version["anabranch"], env!("CARGO_PKG_VERSION"));
    assert!(version["librdkafka"].as_str().unwrap().starts_with('2'));
}
