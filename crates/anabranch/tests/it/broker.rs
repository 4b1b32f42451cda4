//! Topics, records and their way through the client commands, against a running broker.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Broker, Process, finish, program};

/// Bytes that a careless tool would change: empty lines, carriage returns, bytes that are not UTF-8, zero bytes.
fn awkward_lines(count: usize) -> Vec<u8> {
    let pieces: [&[u8]; 7] = [
        b"plain",
        b"",
        b"carriage return\r",
        b"\xff\xfe\x00\x80",
        b" spaces ",
        "grüße".as_bytes(),
        b"\t:=\"\\{}",
    ];
    let mut bytes = Vec::new();
    for i in 0..count {
        bytes.extend_from_slice(pieces[i % pieces.len()]);
        if i % 3 == 0 {
            bytes.extend_from_slice(i.to_string().as_bytes());
        }
        bytes.push(b'\n');
    }
    bytes
}

#[test]
fn a_topic_from_creation_to_deletion() {
    let broker = Broker::start();
    let topic = broker.name("orders");
    let created = broker
        .run(&[
            "topic",
            "create",
            &topic,
            "-p",
            "3",
            "-c",
            "retention.ms=86400000",
        ])
        .expect(0);
    assert_eq!(created.text(), format!("created topic {topic}\n"));
    let again = broker.run(&["topic", "create", &topic]).expect(1);
    assert!(
        again.err.contains(&format!("topic \"{topic}\" already exists")),
        "{}",
        again.err
    );
    broker
        .run(&["topic", "create", &topic, "--if-not-exists"])
        .expect(0);

    let list = broker
        .run(&["topic", "list", &format!("^{topic}$"), "--format", "json"])
        .expect(0)
        .json();
    assert_eq!(list[0]["name"], topic.as_str());
    assert_eq!(list[0]["partitions"], 3);

    broker
        .run(&[
            "topic",
            "alter",
            &topic,
            "-p",
            "5",
            "--set",
            "max.message.bytes=2000000",
            "--unset",
            "retention.ms",
        ])
        .expect(0);
    let described = broker
        .run(&["topic", "describe", &topic, "--format", "json"])
        .expect(0)
        .json();
    assert_eq!(described[0]["partitions"].as_array().unwrap().len(), 5);
    assert_eq!(described[0]["partitions"][0]["start_offset"], 0);
    assert_eq!(described[0]["configs"].as_array().unwrap().len(), 1);
    assert_eq!(described[0]["configs"][0]["name"], "max.message.bytes");
    assert_eq!(described[0]["id"].as_str().unwrap().len(), 22);
    let text = broker.run(&["topic", "describe", &topic]).expect(0).text();
    assert!(text.contains("Configs     max.message.bytes=2000000\n"), "{text}");

    broker.run(&["topic", "delete", &topic]).expect(0);
    let gone = broker.run(&["topic", "describe", &topic]).expect(3);
    assert!(
        gone.err.contains(&format!("there is no topic \"{topic}\"")),
        "{}",
        gone.err
    );
    broker.run(&["topic", "delete", &topic]).expect(3);
}

#[test]
fn a_topic_that_is_not_there_is_said_before_a_record_is_read() {
    let broker = Broker::start();
    let topic = broker.name("nowhere");
    let unknown = broker.run_with(&["produce", &topic], b"a\n").expect(3);
    assert_eq!(
        unknown.err,
        format!("error: there is no topic \"{topic}\"\nhint: `anabranch topic create {topic}` creates it\n")
    );
    // Where the broker may create it, it is not refused.
    let wanted = ["produce", &topic, "-X", "allow.auto.create.topics=true"];
    broker.run_with(&wanted, b"a\n").expect(0);
}

#[test]
fn what_the_broker_refuses_is_said_in_its_words() {
    let broker = Broker::start();
    let topic = broker.name("refused");
    for (args, why) in [
        (["topic", "create", "no spaces", "-p", "1"], "name"),
        (
            ["topic", "create", &topic, "-c", "retention.ms=soon"],
            "retention.ms",
        ),
        (["topic", "create", &topic, "-c", "colour=red"], "colour"),
    ] {
        let failed = broker.run(&args).expect(1);
        assert!(
            failed.err.starts_with("error: cannot create topic") && failed.err.contains(why),
            "{}",
            failed.err
        );
    }
    broker.run(&["topic", "create", &topic, "-p", "2"]).expect(0);
    let fewer = broker.run(&["topic", "alter", &topic, "-p", "1"]).expect(1);
    assert!(fewer.err.contains("cannot alter topic"), "{}", fewer.err);
}

#[test]
fn lines_come_out_as_the_bytes_that_went_in() {
    let broker = Broker::start();
    let topic = broker.name("bytes");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    let lines = awkward_lines(5000);
    let produced = broker.run_with(&["produce", &topic], &lines).expect(0);
    assert!(produced.err.contains("produced 5000 records"), "{}", produced.err);
    assert!(broker.run(&["consume", &topic, "-e"]).expect(0).out == lines);

    // The same by way of JSON, into another topic, in each compression.
    let json = broker
        .run(&["consume", &topic, "-e", "--format", "json"])
        .expect(0);
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let copy = broker.name(codec);
        broker.run(&["topic", "create", &copy, "-p", "1"]).expect(0);
        broker
            .run_with(
                &["produce", &copy, "--input", "json", "-z", codec, "--idempotent"],
                &json.out,
            )
            .expect(0);
        assert!(
            broker.run(&["consume", &copy, "-e"]).expect(0).out == lines,
            "{codec}"
        );
    }
}

#[test]
fn files_are_sent_one_after_the_other() {
    let broker = Broker::start();
    let topic = broker.name("files");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("a.txt");
    std::fs::write(&file, "one\ntwo").unwrap();
    let path = file.to_str().unwrap();
    let summary = broker
        .run_with(&["produce", &topic, path, "-", "--format", "json"], b"three\n")
        .expect(0)
        .json();
    assert_eq!(
        (
            summary["records"].as_u64(),
            summary["bytes"].as_u64(),
            summary["failed"].as_u64()
        ),
        (Some(3), Some(11), Some(0))
    );
    assert_eq!(
        broker.run(&["consume", &topic, "-e"]).expect(0).text(),
        "one\ntwo\nthree\n"
    );

    // A file that is not there is noticed before anything is sent.
    let failed = broker.run(&["produce", &topic, path, "/nowhere/b.txt"]).expect(1);
    assert!(
        failed.err.contains("cannot read /nowhere/b.txt: no such file"),
        "{}",
        failed.err
    );
    assert_eq!(
        broker.run(&["consume", &topic, "-e"]).expect(0).text(),
        "one\ntwo\nthree\n"
    );
}

#[test]
fn keys_headers_times_and_nulls_are_kept() {
    let broker = Broker::start();
    let topic = broker.name("json");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    let lines = concat!(
        r#"{"key":"k","value":"v","timestamp":1000,"headers":[{"key":"h","value":"1"},{"key":"h","value":null}]}"#,
        "\n",
        r#"{"key":"gone","value":null}"#,
        "\n",
        r#"{"value":{"a": 1},"key_base64":"/w=="}"#,
        "\n",
    );
    broker
        .run_with(
            &["produce", &topic, "--input", "json", "-H", "all=yes"],
            lines.as_bytes(),
        )
        .expect(0);
    let out = broker
        .run(&["consume", &topic, "-e", "--output", "json"])
        .expect(0)
        .text();
    let records: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records[0]["timestamp"], 1000);
    assert_eq!(
        records[0]["headers"].to_string(),
        r#"[{"key":"all","value":"yes"},{"key":"h","value":"1"},{"key":"h","value":null}]"#
    );
    assert_eq!(records[1]["value"], serde_json::Value::Null);
    assert_eq!(records[2]["value"], r#"{"a": 1}"#);
    assert_eq!(records[2]["key_base64"], "/w==");
    let text = broker
        .run(&["consume", &topic, "-n", "2", "-f", "%o %k %K %S %h;"])
        .expect(0)
        .text();
    assert_eq!(text, "0 k 1 1 all=yes,h=1,h=;1 gone 4 -1 all=yes;");
}

#[test]
fn keys_choose_partitions_as_in_kafkas_own_clients() {
    let broker = Broker::start();
    let topic = broker.name("keys");
    broker.run(&["topic", "create", &topic, "-p", "4"]).expect(0);
    // The murmur2 hashes of these keys, without the sign bit, modulo 4.
    broker
        .run_with(
            &["produce", &topic, "--input", "kv", "-K", "="],
            b"21=a\nfoobar=b\nabc=c\n",
        )
        .expect(0);
    let out = broker
        .run(&["consume", &topic, "-e", "-f", "%k/%p\n"])
        .expect(0)
        .text();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["21/0", "abc/3", "foobar/2"]);
    broker
        .run_with(&["produce", &topic, "-p", "1", "-k", "fixed"], b"d\n")
        .expect(0);
    assert_eq!(
        broker
            .run(&["consume", &topic, "-p", "1", "-e", "--output", "kv"])
            .expect(0)
            .text(),
        "fixed:d\n"
    );
}

#[test]
fn a_line_that_is_no_record_stops_with_its_number() {
    let broker = Broker::start();
    let topic = broker.name("wrong");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    let failed = broker
        .run_with(&["produce", &topic, "--input", "kv"], b"a:b\nc\nd:e\n")
        .expect(1);
    assert!(failed.err.contains("produced 1 record "), "{}", failed.err);
    assert!(
        failed.err.contains("standard input, line 2: there is no \":\""),
        "{}",
        failed.err
    );
    assert_eq!(
        broker
            .run(&["consume", &topic, "-e", "--output", "kv"])
            .expect(0)
            .text(),
        "a:b\n"
    );
}

#[test]
fn reading_starts_and_stops_where_it_is_told() {
    let broker = Broker::start();
    let topic = broker.name("places");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    let lines: String = (0..10)
        .map(|i| format!("{{\"value\":\"{i}\",\"timestamp\":{}}}\n", 1000 * (i + 1)))
        .collect();
    broker
        .run_with(&["produce", &topic, "--input", "json"], lines.as_bytes())
        .expect(0);
    for (args, values) in [
        (&["-n", "2"][..], "0\n1\n"),
        (&["--from", "8", "-e"], "8\n9\n"),
        (&["--from", "-3", "-n", "2"], "7\n8\n"),
        (&["--from", "-99", "-n", "1"], "0\n"),
        (&["--from", "@7500", "-n", "1"], "7\n"),
        (&["--from", "end", "-e"], ""),
        (&["--from", "@2100-01-01", "-e"], ""),
        (&["-n", "0"], ""),
    ] {
        let mut all = vec!["consume", &topic];
        all.extend(args);
        assert_eq!(broker.run(&all).expect(0).text(), values, "{args:?}");
    }
    let outside = broker.run(&["consume", &topic, "--from", "11", "-e"]).expect(3);
    assert!(
        outside.err.contains("has no offset 11; it has 0 to 10"),
        "{}",
        outside.err
    );
    let partition = broker.run(&["consume", &topic, "-p", "1", "-e"]).expect(3);
    assert!(
        partition.err.contains("has 1 partition and none is 1"),
        "{}",
        partition.err
    );
    broker.run(&["consume", &broker.name("missing"), "-e"]).expect(3);
}

#[test]
fn a_record_that_the_broker_refuses_fails_the_run() {
    let broker = Broker::start();
    let topic = broker.name("large");
    broker
        .run(&[
            "topic",
            "create",
            &topic,
            "-p",
            "1",
            "-c",
            "max.message.bytes=2000",
        ])
        .expect(0);
    let large = "x".repeat(3000);
    let failed = broker
        .run_with(
            &["produce", &topic, "-X", "linger.ms=0"],
            format!("{large}\n").as_bytes(),
        )
        .expect(1);
    assert!(
        failed
            .err
            .contains("1 record not acknowledged: larger than the broker takes"),
        "{}",
        failed.err
    );
    assert!(failed.err.contains("--set max.message.bytes=N"), "{}", failed.err);
    let failed = broker.run_with(&["produce", &topic, "-p", "7"], b"x\n").expect(3);
    assert!(failed.err.contains("has no such partition"), "{}", failed.err);
    let failed = broker
        .run_with(&["produce", &topic, "-X", "acks=7"], b"x\n")
        .expect(2);
    assert!(failed.err.contains("acks is 0, 1 or all"), "{}", failed.err);
}

/// Nothing more comes that could be written to nobody: it is noticed all the same.
#[test]
fn a_reader_that_goes_away_ends_a_consumer_that_waits() {
    let broker = Broker::start();
    let topic = broker.name("waits");
    broker.run(&["topic", "create", &topic]).expect(0);
    broker.run_with(&["produce", &topic], b"one\ntwo\n").expect(0);
    let mut command = program();
    command.args(["consume", &topic, "-b", &broker.address]);
    let mut consumer = Process::start(command.stdout(Stdio::piped()));
    let mut line = String::new();
    // Dropped at the end of the statement, and the pipe with it.
    BufReader::new(consumer.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "one\n");
    assert!(consumer.end().0.success());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let broker = Broker::start();
    let topic = broker.name("head");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    broker
        .run_with(&["produce", &topic], &awkward_lines(20_000))
        .expect(0);
    let path = program().get_program().to_owned();
    let mut pipe = std::process::Command::new("bash");
    pipe.args([
        "-c",
        "\"$0\" consume \"$1\" -b \"$2\" | head -n 1; echo ${PIPESTATUS[0]}",
    ])
    .arg(path)
    .args([&topic, &broker.address]);
    let ran = finish(&mut pipe, b"").expect(0);
    assert_eq!(ran.text(), "plain0\n0\n");
    assert_eq!(ran.err, "");
}

#[test]
fn the_cluster_is_described() {
    let broker = Broker::start();
    let cluster = broker.run(&["cluster", "--format", "json"]).expect(0).json();
    assert!(!cluster["cluster_id"].as_str().unwrap().is_empty());
    assert_eq!(cluster["nodes"].as_array().unwrap().len(), 1);
    let address = format!(
        "{}:{}",
        cluster["nodes"][0]["host"].as_str().unwrap(),
        cluster["nodes"][0]["port"]
    );
    assert_eq!(address, broker.address);
}
