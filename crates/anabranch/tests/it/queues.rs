//! Queue mode from outside: real consumers come and go, and the queues of the topic follow them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, Run, finish, program, serve};

/// Longest wait for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A broker, and the folder of what consumers print.
struct Stage {
    _broker: Process,
    kafka: String,
    http: String,
    folder: TempDir,
}

impl Stage {
    fn start(data: &Path) -> Stage {
        let (broker, started) = serve(data, &[]);
        Stage {
            _broker: broker,
            kafka: started["kafka"][0]["address"].as_str().unwrap().to_owned(),
            http: format!("http://{}", started["http"].as_str().unwrap()),
            folder: TempDir::new().unwrap(),
        }
    }

    fn run(&self, args: &[&str], input: &str) -> Run {
        let mut command = program();
        command.args(args).env("ANABRANCH_ADMIN", &self.http);
        finish(command.args(["--bootstrap", &self.kafka]), input.as_bytes())
    }

    fn queues(&self) -> Value {
        self.run(&["topic", "queues", "orders", "--format", "json"], "")
            .expect(0)
            .json()
    }

    /// Waits until so many queues are written and read.
    fn wait_for(&self, write: u64, read: u64) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let queues = self.queues();
            if (queues["write"].as_u64(), queues["read"].as_u64()) == (Some(write), Some(read)) {
                return queues;
            }
            assert!(Instant::now() < deadline, "{queues:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until each of so many members of a group has one partition.
    fn wait_until_each_has_one(&self, group: &str, members: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let shown = self
                .run(&["group", "describe", group, "--format", "json"], "")
                .expect(0)
                .json();
            let shares = shown[0]["members"].as_array().unwrap().iter();
            let shares: Vec<usize> = shares
                .map(|one| one["assignment"].as_array().unwrap().len())
                .collect();
            if shares == vec![1; members] {
                return;
            }
            assert!(Instant::now() < deadline, "{shown:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A consumer of a group that prints partition and value.
    fn consumer(&self, group: &str, name: &str) -> Process {
        let out = File::create(self.folder.path().join(name)).unwrap();
        let mut command = program();
        command.args(["consume", "orders", "-g", group, "-f", "%p %s\\n"]);
        command.args(["--bootstrap", &self.kafka]);
        Process::start(command.stdout(out).stderr(Stdio::null()))
    }

    /// What a consumer has printed: values with their partitions.
    fn printed(&self, name: &str) -> Vec<(u32, String)> {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
        let line = |line: &str| {
            let (partition, value) = line.split_once(' ')?;
            Some((partition.parse().ok()?, value.to_owned()))
        };
        text.lines().filter_map(line).collect()
    }

    fn wait_until_all_printed(&self, names: &[&str], count: usize) -> BTreeMap<String, BTreeSet<u32>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut values: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
            for (partition, value) in names.iter().flat_map(|name| self.printed(name)) {
                values.entry(value).or_default().insert(partition);
            }
            if values.len() == count {
                return values;
            }
            assert!(
                Instant::now() < deadline,
                "{} of {count} values were printed",
                values.len()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Ends a consumer as Ctrl-C does, so that it leaves its group.
fn interrupt(consumer: Process) {
    consumer.signal("-INT");
    assert!(consumer.end().0.success());
}

fn lines(from: usize, upto: usize) -> String {
    (from..upto)
        .map(|number| format!("k{number}:v{number}\n"))
        .collect()
}

const CREATE: &[&str] = &[
    "topic",
    "create",
    "orders",
    "-c",
    "elastic.mode=queues",
    "-c",
    "elastic.queues.max=16",
    "-c",
    "elastic.queues.write.delay.ms=300",
    "-c",
    "elastic.queues.drain.delay.ms=500",
    "-c",
    "elastic.queues.shrink.grace.ms=300",
];

#[test]
fn queues_follow_the_consumers_and_nothing_is_lost() {
    let data = TempDir::new().unwrap();
    let stage = Stage::start(data.path());
    stage.run(CREATE, "").expect(0);
    let produce = ["produce", "orders", "--input", "kv"];
    stage.run(&produce, &lines(0, 200)).expect(0);
    assert_eq!(
        stage.queues()["write"],
        1,
        "sixteen partitions are shown, one is written"
    );

    let names = ["a", "b", "c"];
    let mut members: Vec<Process> = names.iter().map(|name| stage.consumer("g", name)).collect();
    stage.wait_for(3, 3);
    stage.wait_until_each_has_one("g", 3);
    stage.run(&produce, &lines(200, 2_000)).expect(0);
    let values = stage.wait_until_all_printed(&names, 2_000);
    assert!(
        values.values().all(|partitions| partitions.len() == 1),
        "each value came once"
    );
    let used: BTreeSet<u32> = values.into_values().flatten().collect();
    assert_eq!(used, [0, 1, 2].into(), "nothing was stored elsewhere");
    for name in names {
        let partitions: BTreeSet<u32> = stage.printed(name).into_iter().map(|(at, _)| at).collect();
        assert!(!partitions.is_empty(), "{name} got something");
    }

    let text = stage.run(&["topic", "describe", "orders"], "").expect(0).text();
    assert!(
        text.contains("3 of 16 partitions are written, 3 are read; 3 wanted, idle."),
        "{text}"
    );

    members.drain(1..).for_each(interrupt);
    let queues = stage.wait_for(1, 1);
    let kinds: Vec<&str> = queues["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|decision| decision["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"queues-start"));
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "write-down").count(),
        1,
        "{kinds:?}"
    );
    assert_eq!(kinds.last(), Some(&"read-down"));
    stage.run(&produce, &lines(2_000, 2_500)).expect(0);
    stage.wait_until_all_printed(&names, 2_500);

    // A group that comes later finds what is retained in the queues that are gone.
    members.push(stage.consumer("later", "later"));
    let values = stage.wait_until_all_printed(&["later"], 2_500);
    assert!(values.values().all(|partitions| partitions.len() == 1));

    let explained = stage
        .run(&["topic", "queues", "orders", "--explain"], "")
        .expect(0)
        .text();
    assert!(
        explained.contains("the largest group, g, has 3 instances"),
        "{explained}"
    );
    let decided = finish(
        program().args(["decisions", "--group", "g", "--admin", &stage.http]),
        b"",
    );
    let text = decided.expect(0).text();
    assert!(
        text.contains("g orders  read-up: 3 queues are read after"),
        "{text}"
    );
    members.into_iter().for_each(interrupt);
}

#[test]
fn an_operator_wishes_and_forces_and_a_restart_forgets_neither() {
    let data = TempDir::new().unwrap();
    let stage = Stage::start(data.path());
    stage.run(CREATE, "").expect(0);
    let wished = stage.run(
        &["topic", "queues", "orders", "--wish", "4", "--format", "json"],
        "",
    );
    assert_eq!(wished.expect(0).json()["read"], 4);
    stage.wait_for(4, 4);
    stage
        .run(&["produce", "orders", "--input", "kv"], &lines(0, 100))
        .expect(0);
    let reader = stage.consumer("g", "reader");
    stage.wait_until_all_printed(&["reader"], 100);
    interrupt(reader);
    stage
        .run(&["produce", "orders", "--input", "kv"], &lines(100, 200))
        .expect(0);
    stage
        .run(&["topic", "queues", "orders", "--wish", "2"], "")
        .expect(0);
    let deadline = Instant::now() + PATIENCE;
    while stage.queues()["phase"] != "postponed" {
        assert!(Instant::now() < deadline, "{:#}", stage.queues());
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(stage);

    let stage = Stage::start(data.path());
    let queues = stage.queues();
    assert_eq!(
        (&queues["phase"], &queues["wish"], &queues["read"]),
        (&"postponed".into(), &2.into(), &4.into())
    );
    assert_eq!(queues["blocked"]["group"], "g");
    let forced = stage
        .run(&["topic", "queues", "orders", "--force"], "")
        .expect(0)
        .text();
    assert!(
        forced.starts_with("Topic orders: 2 of 16 partitions are written, 2 are read; 2 wanted, idle."),
        "{forced}"
    );
    let again = stage.run(&["topic", "queues", "orders", "--force"], "").expect(1);
    assert!(again.err.contains("nothing to force"), "{}", again.err);
    let none = stage.run(&["topic", "queues", "none"], "").expect(3);
    assert!(
        none.err.contains("`anabranch topic list` shows all topics"),
        "{}",
        none.err
    );
    stage
        .run(&["topic", "queues", "orders", "--wish", "17"], "")
        .expect(1);
    // What is left above the read queue count is still its group's to read.
    let reader = stage.consumer("g", "rest");
    let values = stage.wait_until_all_printed(&["rest"], 100);
    assert!(values.contains_key("v199"));
    interrupt(reader);
}

#[test]
fn the_demo_of_queue_mode_holds() {
    let report = crate::support::run(&["demo", "--mode", "queues", "--members", "2", "--format", "json"]);
    let report = report.expect(0).json();
    assert_eq!(
        (&report["written"], &report["unread"]),
        (&report["delivered"], &0.into())
    );
    let members: Vec<u64> = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["members"].as_u64().unwrap())
        .collect();
    assert_eq!(members, [1, 2, 1]);
    let refused = crate::support::run(&["demo", "--mode", "queues", "--records", "5"]).expect(2);
    assert!(refused.err.contains("--mode slices"), "{}", refused.err);
}
