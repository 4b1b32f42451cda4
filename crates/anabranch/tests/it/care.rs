//! What helps when something is wrong: `doctor`, `bundle`, `help`, completions and the manual.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Run, program, run, run_with, serve};

/// Findings of a check, with their levels.
fn findings<'a>(report: &'a Value, check: &str) -> Vec<(&'a str, &'a str)> {
    let all = report["findings"].as_array().unwrap().iter();
    let of_check = all.filter(|one| one["check"] == check);
    of_check
        .map(|one| (one["level"].as_str().unwrap(), one["message"].as_str().unwrap()))
        .collect()
}

/// A doctor who looks at a folder and at ports of the test's own.
fn doctor(data: &TempDir, more: &[&str]) -> Run {
    let data = data.path().to_str().unwrap();
    let mut arguments = vec![
        "doctor",
        "--data",
        data,
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--set",
        "disk.free.min.bytes=1",
    ];
    arguments.extend(more);
    run(&arguments)
}

#[test]
fn a_machine_without_a_broker_is_examined_and_the_folder_left_as_it_was() {
    let data = TempDir::new().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let found = doctor(&data, &["--format", "json", "-b", &closed]).expect(1);
    let report = found.json();
    assert_eq!(findings(&report, "settings"), [("good", "they are right")]);
    assert_eq!(findings(&report, "listen").len(), 1);
    let sync = findings(&report, "sync");
    assert!(sync[0].1.contains("syncs took"), "{sync:?}");
    for check in ["files", "clock", "data", "space"] {
        assert!(!findings(&report, check).is_empty(), "{check}: {report:#}");
    }
    let client = findings(&report, "client");
    assert!(
        client[0].0 == "error" && client[0].1.contains("connection refused"),
        "{client:?}"
    );
    assert!(found.err.contains("found 1 error"), "{}", found.err);
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}

#[test]
fn a_broker_is_asked_as_a_client_would_and_a_wrong_address_is_found() {
    let data = TempDir::new().unwrap();
    let (_broker, started) = serve(data.path(), &[]);
    let (kafka, http) = (
        started["kafka"][0]["address"].as_str().unwrap(),
        started["http"].as_str().unwrap(),
    );
    let report = doctor(&data, &["-b", kafka, "--admin", http, "--format", "json"])
        .expect(0)
        .json();
    let client = findings(&report, "client");
    assert!(
        client[0].0 == "good" && client[0].1.contains("which answers"),
        "{client:?}"
    );
    assert!(
        findings(&report, "http")
            .iter()
            .any(|one| one.1.contains("is a broker that answers")),
        "{report:#}"
    );
    let text = doctor(&data, &["-b", kafka, "--admin", http]).expect(0).text();
    assert!(text.contains("ok       client"), "{text}");

    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let other = TempDir::new().unwrap();
    let (_misled, started) = serve(other.path(), &["--advertise", &nobody]);
    let kafka = started["kafka"][0]["address"].as_str().unwrap();
    let found = doctor(&data, &["-b", kafka, "--format", "json"]).expect(1).json();
    let client = findings(&found, "client");
    assert!(
        client[0].0 == "error" && client[0].1.contains(&format!("clients to go to {nobody}")),
        "{client:?}"
    );
    let remedies = found["findings"].as_array().unwrap().iter();
    let bad = remedies.filter(|one| one["level"] == "error" || one["level"] == "warning");
    assert!(
        bad.clone().count() > 0 && bad.clone().all(|one| one["remedy"].is_string()),
        "{found:#}"
    );
}

#[test]
fn an_address_of_another_machine_and_a_folder_that_cannot_be_written_are_errors_with_remedies() {
    let data = TempDir::new().unwrap();
    // An address that is nobody's (RFC 5737).
    let strange = doctor(&data, &["--listen", "192.0.2.1:9092"]).expect(1);
    assert!(strange.text().contains("ERROR    listen"), "{}", strange.text());
    let found = run(&[
        "doctor",
        "--data",
        "/proc/anabranch",
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
    ])
    .expect(1);
    assert!(
        found.text().contains("cannot write into /proc"),
        "{}",
        found.text()
    );
    let wrong = run(&["doctor", "--set", "no.such.setting=1"]).expect(2);
    assert!(wrong.err.contains("no.such.setting"), "{}", wrong.err);
}

/// The files of an archive by their names without the folder.
fn unpacked(path: &std::path::Path) -> BTreeMap<String, String> {
    let file = std::fs::File::open(path).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry
            .path()
            .unwrap()
            .to_str()
            .unwrap()
            .split_once('/')
            .unwrap()
            .1
            .to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.insert(name, text);
    }
    files
}

#[test]
fn a_bundle_has_what_is_needed_and_no_record() {
    let data = TempDir::new().unwrap();
    let (_broker, started) = serve(data.path(), &[]);
    let (kafka, http) = (
        started["kafka"][0]["address"].as_str().unwrap(),
        started["http"].as_str().unwrap(),
    );
    run(&[
        "topic",
        "create",
        "orders",
        "-c",
        "retention.ms=12345678",
        "-b",
        kafka,
    ])
    .expect(0);
    run_with(
        &["produce", "orders", "-k", "sesame", "-b", kafka],
        b"open-sesame\n",
    )
    .expect(0);
    run(&["consume", "orders", "-g", "billing", "-n", "1", "-b", kafka]).expect(0);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("b.tar.gz");
    let arguments = [
        "bundle",
        "-o",
        path.to_str().unwrap(),
        "-b",
        kafka,
        "--admin",
        http,
    ];
    let said = run(&arguments).expect(0).text();
    assert!(
        said.contains("settings.json") && said.contains("read it before you send it"),
        "{said}"
    );
    let files = unpacked(&path);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "README.txt",
            "cluster.json",
            "decisions.json",
            "doctor.json",
            "groups/000.json",
            "metrics.txt",
            "settings.json",
            "topics.json",
            "version.json"
        ]
    );
    let json = |name: &str| -> Value { serde_json::from_str(&files[name]).unwrap() };
    assert_eq!(json("topics.json")[0]["topic"], "orders");
    assert_eq!(json("topics.json")[0]["settings"][0]["value"], "12345678");
    assert_eq!(json("groups/000.json")["group"], "billing");
    assert_eq!(json("version.json")["anabranch"], env!("CARGO_PKG_VERSION"));
    assert!(json("settings.json").as_array().unwrap().len() > 20);
    assert!(files["metrics.txt"].contains("kafka_consumergroup_lag_sum"));
    assert!(
        files.values().all(|text| !text.contains("sesame")),
        "a record is in the archive"
    );
    // It does not overwrite.
    let again = run(&arguments).expect(1);
    assert!(
        again.err.contains("a file that exists is not overwritten"),
        "{}",
        again.err
    );
}

/// What was typed is a cause in `missing.txt`, and what was typed may be a secret.
#[test]
fn a_bundle_tells_no_secret_of_the_command_line() {
    let data = TempDir::new().unwrap();
    let (_broker, started) = serve(data.path(), &[]);
    let kafka = started["kafka"][0]["address"].as_str().unwrap();
    let folder = TempDir::new().unwrap();
    let secrets: [&[&str]; 3] = [
        &["--set", "ssl.keystore.password=sesame"],
        &["-X", "sasl.passwort=sesame"],
        &["--admin", "http://somebody:sesame@127.0.0.1:1"],
    ];
    for (number, secret) in secrets.iter().enumerate() {
        let path = folder.path().join(format!("{number}.tar.gz"));
        let mut arguments = vec!["bundle", "-o", path.to_str().unwrap(), "-b", kafka];
        arguments.extend(*secret);
        run(&arguments).expect(0);
        let files = unpacked(&path);
        assert!(files.contains_key("missing.txt"), "{secret:?}");
        for (name, text) in &files {
            assert!(!text.contains("sesame"), "{secret:?}: {name}: {text}");
        }
    }
}

#[test]
fn a_bundle_is_made_without_a_broker_and_says_what_is_missing() {
    let folder = TempDir::new().unwrap();
    let written = program()
        .args([
            "bundle",
            "--format",
            "json",
            "-b",
            "127.0.0.1:1",
            "--admin",
            "127.0.0.1:1",
            "--data",
        ])
        .arg(folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        written.status.success(),
        "{}",
        String::from_utf8_lossy(&written.stderr)
    );
    let written: Value = serde_json::from_slice(&written.stdout).unwrap();
    let name = written["file"].as_str().unwrap();
    assert!(
        name.starts_with("anabranch-bundle-20") && name.ends_with("Z.tar.gz"),
        "{name}"
    );
    let files = unpacked(&folder.path().join(name));
    assert!(
        files["missing.txt"].contains("connection refused"),
        "{}",
        files["missing.txt"]
    );
    assert!(files.contains_key("doctor.json") && files.contains_key("settings.json"));
}

#[test]
fn help_explains_commands_and_tasks_and_names_what_was_meant() {
    let overview = run(&["help"]).expect(0).text();
    assert!(
        overview.contains("anabranch help TOPIC") && overview.contains("trouble"),
        "{overview}"
    );
    assert!(run(&["help", "lag"]).expect(0).text().starts_with("LAG: "));
    assert_eq!(
        run(&["help", "topic", "create"]).expect(0).text(),
        run(&["topic", "create", "-h"]).expect(0).text()
    );
    let unknown = run(&["help", "elastik"]).expect(3);
    assert!(
        unknown.err.contains("did you mean \"elastic\"?"),
        "{}",
        unknown.err
    );
    let unknown = run(&["help", "topic", "creat3"]).expect(3);
    assert!(
        unknown.err.contains("did you mean \"create\"?"),
        "{}",
        unknown.err
    );
}

#[test]
fn a_shell_completes_commands_and_flags() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("anabranch.bash");
    std::fs::write(&script, run(&["completions", "bash"]).expect(0).out).unwrap();
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={at}; _anabranch anabranch \"${{COMP_WORDS[COMP_CWORD]}}\" x; echo ${{COMPREPLY[*]}}",
            script.display()
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &line])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("anabranch dec", 1).trim(), "decisions");
    assert!(complete("anabranch top --on", 2).contains("--once"));
    for shell in ["zsh", "fish"] {
        assert!(
            run(&["completions", shell])
                .expect(0)
                .text()
                .contains("decisions"),
            "{shell}"
        );
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = TempDir::new().unwrap();
    run(&["man", folder.path().to_str().unwrap()]).expect(0);
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("anabranch.1").contains(".TH") && page("anabranch.1").contains("decisions"));
    assert!(page("anabranch-topic-create.1").contains("partitions"));
    let count = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(count > 25, "{count}");
    assert!(run(&["man"]).expect(0).text().contains(".SH SYNOPSIS"));
}
