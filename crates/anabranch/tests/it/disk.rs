//! What producers and readers are told when the broker's disk is full, or has damage.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::TempDir;

use crate::support::{run, run_with, serve};

/// The broker wants more free space than any machine has that runs tests: to it the disk is as good as full.
#[test]
fn a_producer_is_told_that_the_brokers_disk_is_full() {
    let data = TempDir::new().unwrap();
    let (broker, started) = serve(data.path(), &[]);
    let kafka = started["kafka"][0]["address"].as_str().unwrap();
    run(&["topic", "create", "orders", "-b", kafka]).expect(0);
    run_with(&["produce", "orders", "-b", kafka], b"one\n").expect(0);
    drop(broker);

    let (_broker, started) = serve(data.path(), &["--set", "disk.free.min.bytes=1024TiB"]);
    let kafka = started["kafka"][0]["address"].as_str().unwrap();
    let impatient = ["-b", kafka, "-X", "message.timeout.ms=1500"];
    let arguments = [&["produce", "orders"], &impatient[..]].concat();
    let refused = run_with(&arguments, b"two\nthree\n").expect(1);
    for expected in [
        "the broker's disk is full, or fails: trying again\n",
        "produced 0 records (0 B) to orders",
        &format!(
            "error: 2 records not acknowledged: the disk of the broker {kafka} is full, or fails (KAFKA_STORAGE_ERROR)\n"
        ),
        "hint: what was acknowledged is safe, send the rest again when there is space",
    ] {
        assert!(refused.err.contains(expected), "{expected}: {}", refused.err);
    }

    // More than it is worth reading when nothing is taken.
    let arguments = [&arguments[..], &["-X", "queue.buffering.max.messages=1000"]].concat();
    let refused = run_with(&arguments, "x\n".repeat(5000).as_bytes()).expect(1);
    assert!(
        refused
            .err
            .contains("and the rest of the input not read: the disk of"),
        "{}",
        refused.err
    );

    let read = run(&["consume", "orders", "-e", "-b", kafka]).expect(0);
    assert_eq!(
        read.text(),
        "one\n",
        "readers are served, and nothing more was stored"
    );
}

/// Inverts some bytes in the middle of a file.
fn damage(file: &Path) {
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let middle = SeekFrom::Start(file.metadata().unwrap().len() / 2);
    let mut bytes = [0; 16];
    file.seek(middle).unwrap();
    file.read_exact(&mut bytes).unwrap();
    file.seek(middle).unwrap();
    file.write_all(&bytes.map(|byte| !byte)).unwrap();
}

#[test]
fn a_reader_is_told_where_the_damage_is_and_gets_everything_else() {
    const SEGMENT: [&str; 2] = ["--set", "wal.segment.bytes=2097152"];
    let data = TempDir::new().unwrap();
    let (broker, started) = serve(data.path(), &SEGMENT);
    let kafka = started["kafka"][0]["address"].as_str().unwrap();
    run(&["topic", "create", "orders", "-p", "2", "-b", kafka]).expect(0);
    run_with(&["produce", "orders", "-p", "1", "-b", kafka], b"whole\n").expect(0);
    // Some segments full; each line is its offset.
    let lines: String = (0..60_000).map(|i| format!("{i:0>99}\n")).collect();
    run_with(&["produce", "orders", "-p", "0", "-b", kafka], lines.as_bytes()).expect(0);
    broker.signal("-TERM");
    broker.end();
    damage(&data.path().join("wal/0000000000000002.seg"));

    let (_broker, started) = serve(data.path(), &SEGMENT);
    let kafka = started["kafka"][0]["address"].as_str().unwrap();
    let alone = std::thread::scope(|scope| {
        let group = scope.spawn(|| {
            let arguments = [
                "consume", "orders", "-g", "g", "-e", "--output", "kv", "-b", kafka,
            ];
            run(&arguments).expect(1)
        });
        // Without an end to reach, it would wait for ever.
        let alone = run(&["consume", "orders", "-p", "0", "--format", "json", "-b", kafka]).expect(1);
        let group = group.join().unwrap();
        assert!(
            group.err.contains("; reading the other partitions\n"),
            "{}",
            group.err
        );
        assert!(group.text().contains("whole"), "{}", group.err);
        assert!(
            group.err.contains("\nhint: the broker's log names the file"),
            "{}",
            group.err
        );
        assert_eq!(group.text().lines().count(), alone.text().lines().count() + 1);
        alone
    });
    let error: serde_json::Value = serde_json::from_str(&alone.err).unwrap();
    let read = alone.text().lines().count();
    assert!(read > 0 && read < 60_000, "{read}");
    assert_eq!(
        error["error"],
        format!(
            "cannot read orders:0 at offset {read} (KAFKA_STORAGE_ERROR): the records there are damaged, or the broker's disk fails"
        )
    );
    // What the hint says: behind the damage everything is there.
    let behind = run(&[
        "consume", "orders", "-p", "0", "--from", "50000", "-e", "-b", kafka,
    ])
    .expect(0);
    assert_eq!(behind.text(), lines[50_000 * 100..]);
    // As many as were asked for are there.
    let arguments = [
        "consume",
        "orders",
        "-p",
        "0",
        "-n",
        &read.to_string(),
        "-b",
        kafka,
    ];
    run(&arguments).expect(0);
}
