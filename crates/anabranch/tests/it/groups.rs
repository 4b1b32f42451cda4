//! Groups: what `consume --group` commits, and what `group` shows and changes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Broker, Process, program};

/// A topic with ten records in each of two partitions.
fn topic_of_twenty(broker: &Broker) -> String {
    let topic = broker.name("twenty");
    broker.run(&["topic", "create", &topic, "-p", "2"]).expect(0);
    for partition in ["0", "1"] {
        let lines: String = (0..10).map(|i| format!("{partition}-{i}\n")).collect();
        broker
            .run_with(&["produce", &topic, "-p", partition], lines.as_bytes())
            .expect(0);
    }
    topic
}

fn lags(broker: &Broker, group: &str) -> Vec<(i64, i64)> {
    let described = broker
        .run(&["group", "describe", group, "--format", "json"])
        .expect(0)
        .json();
    let partitions = described[0]["partitions"].as_array().unwrap().clone();
    let number = |value: &serde_json::Value| value.as_i64().unwrap_or(-1);
    partitions
        .iter()
        .map(|one| (number(&one["current_offset"]), number(&one["lag"])))
        .collect()
}

#[test]
fn a_group_goes_on_where_it_stopped() {
    let broker = Broker::start();
    let topic = topic_of_twenty(&broker);
    let group = broker.name("billing");
    let first = broker
        .run(&["consume", &topic, "-g", &group, "-n", "7"])
        .expect(0)
        .text();
    let rest = broker
        .run(&["consume", &topic, "-g", &group, "-e"])
        .expect(0)
        .text();
    assert_eq!((first.lines().count(), rest.lines().count()), (7, 13));
    let mut all: Vec<&str> = first.lines().chain(rest.lines()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 20);
    assert_eq!(lags(&broker, &group), [(10, 0), (10, 0)]);
    assert_eq!(
        broker
            .run(&["consume", &topic, "-g", &group, "-e"])
            .expect(0)
            .text(),
        ""
    );

    let list = broker
        .run(&["group", "list", &group, "--format", "json"])
        .expect(0)
        .json();
    assert_eq!(list[0]["state"], "Empty");
    let text = broker.run(&["group", "describe", &group]).expect(0);
    let heading: Vec<&str> = text
        .out
        .split(|byte| *byte == b'\n')
        .next()
        .map(|line| std::str::from_utf8(line).unwrap())
        .unwrap()
        .split_whitespace()
        .collect();
    let columns = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ];
    assert_eq!(heading, columns);
    assert!(text.err.contains("has no active members"), "{}", text.err);
}

#[test]
fn a_reset_is_shown_first_and_done_on_request() {
    let broker = Broker::start();
    let topic = topic_of_twenty(&broker);
    let group = broker.name("reset");
    broker.run(&["consume", &topic, "-g", &group, "-e"]).expect(0);
    let reset = |more: &[&str]| {
        let mut args = vec!["group", "reset", &group];
        args.extend(more);
        broker.run(&args)
    };
    let shown = reset(&["--topic", &topic, "--to-earliest"]).expect(0);
    assert!(
        shown.err.contains("nothing was changed; add --execute"),
        "{}",
        shown.err
    );
    assert_eq!(lags(&broker, &group), [(10, 0), (10, 0)]);

    let one = format!("{topic}:1");
    for (more, offsets) in [
        (vec!["--topic", &topic, "--to-earliest", "--execute"], [0, 0]),
        (vec!["--topic", &one, "--to-latest", "--execute"], [0, 10]),
        (vec!["--all-topics", "--shift-by", "3", "--execute"], [3, 10]),
        (vec!["--topic", &topic, "--to-offset", "4", "--execute"], [4, 4]),
        (
            vec!["--topic", &topic, "--to-datetime", "2100-01-01", "--execute"],
            [10, 10],
        ),
        (
            vec!["--topic", &topic, "--to-datetime", "-1d", "--execute"],
            [0, 0],
        ),
        (vec!["--topic", &one, "--shift-by", "-5", "--execute"], [0, 0]),
    ] {
        reset(&more).expect(0);
        assert_eq!(
            lags(&broker, &group)
                .iter()
                .map(|(offset, _)| *offset)
                .collect::<Vec<_>>(),
            offsets,
            "{more:?}"
        );
    }
    let clamped = reset(&["--topic", &one, "--shift-by", "99"]).expect(0);
    assert!(
        clamped.err.contains("offset 99 is outside 0 to 10, using 10"),
        "{}",
        clamped.err
    );
    reset(&["--topic", &broker.name("missing"), "--to-latest"]).expect(3);
    reset(&["--topic", &format!("{topic}:2"), "--to-latest"]).expect(3);

    broker.run(&["group", "delete", &group]).expect(0);
    let gone = broker.run(&["group", "describe", &group]).expect(3);
    assert!(
        gone.err.contains(&format!("there is no group \"{group}\"")),
        "{}",
        gone.err
    );
    broker.run(&["group", "delete", &group]).expect(3);
    // A group that does not exist yet can be given offsets before its first member comes.
    reset(&["--topic", &one, "--to-offset", "9", "--execute"]).expect(0);
    assert_eq!(lags(&broker, &group), [(9, 1)]);
}

/// What would pull the offsets from under a member's feet is refused.
fn offsets_are_protected(broker: &Broker, topic: &str, group: &str) {
    let refused = broker
        .run(&[
            "group",
            "reset",
            group,
            "--topic",
            topic,
            "--to-earliest",
            "--execute",
        ])
        .expect(1);
    assert!(
        refused.err.contains("it has members (state Stable)"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("hint: stop its consumers first"),
        "{}",
        refused.err
    );
    let refused = broker.run(&["group", "delete", group]).expect(1);
    assert!(refused.err.contains("it has members"), "{}", refused.err);
}

#[test]
fn a_member_is_shown_protects_its_offsets_and_leaves_on_interrupt() {
    let broker = Broker::start();
    let topic = topic_of_twenty(&broker);
    let group = broker.name("member");
    let mut member = Process::start(
        program()
            .args(["consume", &topic, "-g", &group, "-b", &broker.address])
            .stdout(Stdio::piped()),
    );
    let mut lines = BufReader::new(member.stdout.take().unwrap()).lines();
    let read: Vec<String> = lines.by_ref().take(20).map(Result::unwrap).collect();
    assert_eq!(read.len(), 20);

    let described = broker
        .run(&["group", "describe", &group, "--format", "json"])
        .expect(0)
        .json();
    assert_eq!(described[0]["state"], "Stable");
    assert_eq!(described[0]["members"][0]["client_id"], "anabranch");
    assert_eq!(
        described[0]["members"][0]["assignment"].as_array().unwrap().len(),
        2
    );
    assert_eq!(described[0]["partitions"].as_array().unwrap().len(), 2);
    let members = broker
        .run(&["group", "describe", &group, "--members"])
        .expect(0)
        .text();
    assert!(members.contains(&format!("{topic}:0,{topic}:1")), "{members}");
    let state = broker
        .run(&["group", "describe", &group, "--state"])
        .expect(0)
        .text();
    assert!(
        state.contains("COORDINATOR (ID)") && state.contains("Stable"),
        "{state}"
    );

    offsets_are_protected(&broker, &topic, &group);
    member.signal("-INT");
    assert_eq!(member.wait().unwrap().code(), Some(0));
    assert_eq!(lags(&broker, &group), [(10, 0), (10, 0)]);
    let state = broker
        .run(&["group", "describe", &group, "--format", "json"])
        .expect(0)
        .json();
    assert_eq!(state[0]["state"], "Empty", "the member has left the group");
}
