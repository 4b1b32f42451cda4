//! What a person sees and steers through the administration API, against a small server that answers as the broker does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};

use anabranch_server::admin::model;
use serde_json::{Value, json};

use crate::support::{Broker, Process, Run, finish, program, run};

/// A request that came: method, path with query, body.
type Request = (String, String, Value);

/// An HTTP server that gives prepared answers and remembers what it was asked.
struct Fake {
    url: String,
    asked: Receiver<Request>,
}

impl Fake {
    fn start(answer: impl Fn(&str, &str) -> (u16, Value) + Send + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &answer, &tell);
            }
        });
        Fake { url, asked }
    }

    fn run(&self, args: &[&str]) -> Run {
        finish(program().args(args).args(["--admin", &self.url]), b"")
    }

    /// The requests since the last time.
    fn asked(&self) -> Vec<Request> {
        self.asked.try_iter().collect()
    }
}

/// Answers one request and closes the connection.
fn serve(mut stream: TcpStream, answer: &impl Fn(&str, &str) -> (u16, Value), tell: &Sender<Request>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return;
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let _ = tell.send((method.to_owned(), path.to_owned(), body));
    let (status, body) = answer(method, path);
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()));
}

/// A group of two members that share a partition; slots are on their way to the second.
fn group(first: &str, second: &str) -> Value {
    json!({
        "group": "billing", "state": "Stable", "protocol": "classic",
        "elastic": {"mode": "slices", "eligible": true, "reason": null, "paused": false},
        "members": [
            {"member": first, "client_id": "worker-1", "host": "/127.0.0.1", "software": "librdkafka 2.12.1",
             "state": "busy", "since_ms": 4200, "rate": 998.5, "ineligible": null},
            {"member": second, "client_id": "worker-2", "host": "/127.0.0.1", "software": "librdkafka 2.12.1",
             "state": "idle", "since_ms": 10, "rate": null, "ineligible": null}
        ],
        "partitions": [{
            "topic": "orders", "partition": 0, "form": "divided",
            "log_start": 0, "log_end": 1000, "committed": 100, "lag": 700,
            "shares": [
                {"member": first, "slice": 1, "position": 100, "end": 300, "slots": 4096,
                 "slot_runs": [[0, 4095]], "remaining": 50, "remaining_exact": true, "handed_out": 50},
                {"member": first, "slice": 2, "position": 300, "end": null, "slots": 2048,
                 "slot_runs": [[0, 2046], [4095, 4095]], "remaining": 400, "remaining_exact": false, "handed_out": 0}
            ],
            "transits": [{"from": first, "to": second, "slots": 2000, "remaining": 240, "since_ms": 7,
                          "slot_runs": [[2047, 4046]]}],
            "loose": [{"slots": 48, "remaining": 10, "to": null, "slot_runs": [[4047, 4094]]}]
        }]
    })
}

fn decision(seq: u64, outcome: &str, kind: &str, text: &str) -> Value {
    let refused = outcome == "refused";
    json!({
        "seq": seq, "time_ms": 1_769_860_800_000_i64, "group": "billing", "topic": "orders", "partition": 0,
        "kind": kind, "outcome": outcome, "reason": "idle_member", "text": text,
        "from": "m-1", "to": ["m-2"], "slots": 2048,
        "before": [["m-1", 900]], "after": [["m-1", 450], ["m-2", 450]],
        "result": if refused { Value::Null } else { json!("done") },
        "handover_ms": if refused { Value::Null } else { json!(12) },
        "count": if refused { 3 } else { 1 }
    })
}

fn two_decisions() -> Value {
    json!({"decisions": [
        decision(7, "decided", "split", "worker-2 was idle for 0.9 s, worker-1 held 900 records"),
        decision(8, "refused", "split", "one key has 93 % of what remains")
    ], "next": 8})
}

/// The documents and the types say the same: nothing is lost on the way in and out.
#[test]
fn documents_are_kept_whole() {
    let document = group("m-1", "m-2");
    let read: model::Group = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), document);
    let document = two_decisions();
    let read: model::Decisions = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), document);
    let order: model::Order = serde_json::from_value(json!({"topic": "t", "partition": 1})).unwrap();
    assert_eq!((order.member, order.dry_run), (None, false));
    let newer: model::MemberState = serde_json::from_value(json!("dancing")).unwrap();
    assert_eq!(newer, model::MemberState::Other);
}

#[test]
fn decisions_are_told_with_their_reasons() {
    let fake = Fake::start(|_, _| (200, two_decisions()));
    let text = fake.run(&["decisions", "--group", "bil/ling"]).expect(0).text();
    assert_eq!(
        text,
        "2026-01-31T12:00:00.000Z  billing orders/0  split: worker-2 was idle for 0.9 s, worker-1 held 900 records; \
         done after 12 ms\n\
         2026-01-31T12:00:00.000Z  billing orders/0  no split: one key has 93 % of what remains (3 times)\n"
    );
    let asked = fake.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1, "/api/v1/decisions?limit=50&group=bil%2Fling");
    let printed = fake
        .run(&["decisions", "-n", "2", "--format", "json"])
        .expect(0)
        .json();
    assert_eq!(printed, two_decisions());
}

/// Following asks for what comes behind, and ends with an error when the broker has gone.
#[test]
fn decisions_are_followed() {
    let fake = Fake::start(|_, path| {
        if path.contains("after=9") {
            return (
                503,
                json!({"error": {"code": "shutting_down", "message": "the broker is shutting down"}}),
            );
        }
        if path.contains("after=8") {
            return (
                200,
                json!({"decisions": [decision(9, "decided", "merge", "worker-2 left")], "next": 9}),
            );
        }
        (200, two_decisions())
    });
    let followed = fake.run(&["decisions", "--follow", "--format", "json"]).expect(1);
    assert!(
        followed.err.contains("the broker is shutting down"),
        "{}",
        followed.err
    );
    let seqs: Vec<u64> = followed
        .text()
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["seq"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(seqs, [7, 8, 9]);
    let asked = fake.asked();
    assert!(
        asked[1].1.contains("after=8") && asked[1].1.contains("wait_ms=20000"),
        "{}",
        asked[1].1
    );
}

#[test]
fn slots_are_moved_by_order() {
    let fake = Fake::start(|method, path| match (method, path) {
        ("GET", "/api/v1/groups/billing") => (200, group("m-1", "m-2")),
        ("POST", "/api/v1/groups/billing/split") => (
            200,
            json!({"decisions": [decision(7, "decided", "split", "by order")]}),
        ),
        _ => (
            404,
            json!({"error": {"code": "unknown_group", "message": "there is no group \"other\""}}),
        ),
    });
    let split = |more: &[&str]| {
        let mut args = vec!["group", "split", "billing"];
        args.extend(more);
        fake.run(&args)
    };
    let shown = split(&["orders", "--dry-run"]).expect(0);
    assert!(shown.text().contains("split: by order"), "{}", shown.text());
    assert!(shown.err.contains("nothing was changed"), "{}", shown.err);
    let order = json!({"topic": "orders", "partition": 0, "member": null, "dry_run": true});
    let post = (
        "POST".to_owned(),
        "/api/v1/groups/billing/split".to_owned(),
        order,
    );
    assert_eq!(fake.asked().pop(), Some(post));
    split(&["orders:0"]).expect(0);
    let order = json!({"topic": "orders", "partition": 0, "member": null, "dry_run": false});
    assert_eq!(fake.asked().pop().unwrap().2, order);
    for (args, code, why) in [
        (&["orders:1"][..], 3, "does not read orders:1"),
        (&["payments"], 3, "does not read payments"),
        (&["orders:x"], 2, "expected TOPIC or TOPIC:PARTITION"),
    ] {
        let failed = split(args).expect(code);
        assert!(failed.err.contains(why), "{args:?}: {}", failed.err);
    }
    let unknown = fake.run(&["group", "merge", "other", "orders"]).expect(3);
    assert!(
        unknown.err.contains("there is no group \"other\""),
        "{}",
        unknown.err
    );
}

#[test]
fn a_group_is_paused_resumed_and_planned() {
    let fake = Fake::start(|_, path| {
        let decisions = match path {
            "/api/v1/groups/billing/plan" => vec![decision(0, "refused", "none", "the group is paused")],
            _ => Vec::new(),
        };
        (200, json!({"decisions": decisions}))
    });
    assert_eq!(
        fake.run(&["group", "pause", "billing"]).expect(0).text(),
        "paused group billing\n"
    );
    assert_eq!(
        fake.run(&["group", "resume", "billing"]).expect(0).text(),
        "resumed group billing\n"
    );
    let plan = fake.run(&["group", "plan", "billing"]).expect(0).text();
    assert!(plan.contains("refused: the group is paused"), "{plan}");
    let asked: Vec<String> = fake
        .asked()
        .into_iter()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    assert_eq!(
        asked,
        [
            "POST /api/v1/groups/billing/pause",
            "POST /api/v1/groups/billing/resume",
            "GET /api/v1/groups/billing/plan"
        ]
    );
}

#[test]
fn a_group_is_explained() {
    let fake = Fake::start(|_, path| {
        if path.starts_with("/api/v1/decisions") {
            let refused = decision(8, "refused", "split", "one key has 93 % of what m-1 holds");
            return (200, json!({"decisions": [refused], "next": 8}));
        }
        let mut document = group("m-1", "m-2");
        if path.ends_with("plain") {
            document["elastic"] = json!({"mode": "slices", "eligible": false, "reason": "its clients are Kafka Streams", "paused": true});
            document["members"][0]["ineligible"] = json!("a custom assignor");
        }
        if path.ends_with("alike") {
            document["members"][1]["client_id"] = json!("worker-1");
        }
        (200, document)
    });
    let text = fake.run(&["group", "explain", "billing"]).expect(0).text();
    for line in [
        "Group billing (Stable, 2 members, protocol classic), elastic.mode=slices.\n",
        "Its partitions may be divided.\n",
        "orders/0 is divided among 1 member, 700 records to do, 2000 slots on their way.\n",
        "no split: one key has 93 % of what worker-1 holds (3 times)\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // Members with one client id are told apart.
    let text = fake.run(&["group", "explain", "alike"]).expect(0).text();
    assert!(text.contains("what worker-1..m-1 holds"), "{text}");
    let text = fake.run(&["group", "explain", "plain"]).expect(0).text();
    assert!(
        text.contains("It stays plain: its clients are Kafka Streams.\n"),
        "{text}"
    );
    assert!(
        text.contains("`anabranch group resume billing` ends that"),
        "{text}"
    );
    assert!(
        text.contains("Member worker-1 (librdkafka 2.12.1) gets no slice: a custom assignor.\n"),
        "{text}"
    );
}

/// Without the API the message says which address, what is wrong there, and what helps.
#[test]
fn no_api_is_said_with_cause_and_remedy() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for args in [
        &["decisions"][..],
        &["group", "plan", "g"],
        &["group", "pause", "g"],
        &["group", "explain", "g"],
    ] {
        let failed = finish(program().args(args).env("ANABRANCH_ADMIN", &url), b"").expect(4);
        assert!(
            failed
                .err
                .contains(&format!("HTTP listener at {url}: connection refused")),
            "{}",
            failed.err
        );
        assert!(
            failed.err.contains("hint: the broker's setting `http`"),
            "{}",
            failed.err
        );
    }
    let other = Fake::start(|_, _| (404, json!("not found")));
    let failed = other.run(&["group", "plan", "g"]).expect(1);
    assert!(
        failed.err.contains("has no administration API (HTTP status 404)"),
        "{}",
        failed.err
    );
    let newer = Fake::start(|_, _| (200, json!({"decided": []})));
    let failed = newer.run(&["group", "plan", "g"]).expect(1);
    assert!(failed.err.contains("is not understood"), "{}", failed.err);
    let failed = run(&["decisions", "--admin", "https://broker:9099"]).expect(2);
    assert!(failed.err.contains("https is not spoken there"), "{}", failed.err);
}

/// Kafka's columns come first and stay as they are; the offsets of a shared partition stand in its first row alone.
#[test]
fn slices_stand_behind_the_columns_of_kafka() {
    let broker = Broker::start();
    let topic = broker.name("orders");
    let name = broker.name("billing");
    broker.run(&["topic", "create", &topic, "-p", "1"]).expect(0);
    broker.run_with(&["produce", &topic], b"one\ntwo\n").expect(0);
    let mut member = Process::start(
        program()
            .args(["consume", &topic, "-g", &name, "-b", &broker.address])
            .stdout(Stdio::piped()),
    );
    let mut lines = BufReader::new(member.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    let described = broker
        .run(&["group", "describe", &name, "--format", "json"])
        .expect(0)
        .json();
    let id = described[0]["members"][0]["consumer_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let known = topic.clone();
    let fake = Fake::start(move |_, _| {
        let mut document = group(&id, "m-2");
        document["partitions"][0]["topic"] = json!(known);
        (200, document)
    });
    let args = ["group", "describe", &name, "--admin", &fake.url];
    let text = broker.run(&args).expect(0).text();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][9..], ["SLICE", "SLOTS", "REMAINING", "STATE"], "{text}");
    assert_eq!(rows.len(), 5, "{text}");
    assert_eq!((rows[1][2], rows[1][5]), ("0", "700"), "{text}");
    assert_eq!(rows[1][9..], ["1", "4096", "50", "busy"], "{text}");
    assert_eq!(rows[2][3..6], ["-", "-", "-"], "{text}");
    assert_eq!(rows[2][9..], ["2", "2048", "~400", "busy"], "{text}");
    assert_eq!(
        rows[3][9..],
        ["-", "2000", "240", "moving", "to", "worker-2"],
        "{text}"
    );
    assert_eq!(
        rows[4][6..],
        ["-", "-", "-", "-", "48", "10", "waiting", "for", "a", "member"],
        "{text}"
    );
    let mut args = args.to_vec();
    args.extend(["--format", "json"]);
    let described = broker.run(&args).expect(0).json();
    assert_eq!(described[0]["partitions"][0]["form"], "divided");
    assert_eq!(described[0]["partitions"][0]["slices"][1]["slots"], 2048);
    assert_eq!(described[0]["lag"], 700);
    assert_eq!(described[0]["elastic"]["mode"], "slices");
}
