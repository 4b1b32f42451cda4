//! Queue mode on a simulated disk: where batches are stored, and that a restart knows where they were addressed.

use std::sync::Arc;

use anabranch_core::ids::LogId;
use anabranch_core::log::Log;
use anabranch_core::node::{CreateTopic, QueueOrder};
use anabranch_store::sim_disk::SimDisk;

use super::tests::{Tested, at, batch, commit, open};

/// A topic with four partitions, all stored in the first for now.
fn create(engine: &mut Tested) -> Vec<LogId> {
    let wish = CreateTopic {
        name: "t".to_owned(),
        partitions: 4,
        replication_factor: 1,
        assignments: Vec::new(),
        configs: vec![("elastic.mode".to_owned(), Some("queues".to_owned()))],
    };
    let ((), _) = engine.update(at(1), |update| {
        let commands = update.node().create_topic(at(1), &wish, [7; 16]).unwrap();
        update.run(commands);
    });
    engine.node().topic_by_name("t").unwrap().logs.clone()
}

#[test]
fn a_retry_behind_a_power_cut_and_a_change_of_the_queues_is_a_duplicate() {
    let disk = Arc::new(SimDisk::new(1));
    let mut engine = open(&disk);
    let logs = create(&mut engine);
    let (header, bytes) = batch(2, 10, Some((9, 0)));
    let first = engine.append(at(2), logs[3], &header, bytes.clone()).unwrap();
    assert_eq!(
        (first.base_offset, first.log_start_offset),
        (-1, -1),
        "the offset is another partition's"
    );
    let direct = engine.append(at(2), logs[0], &header, bytes.clone()).unwrap();
    assert_eq!(direct.base_offset, 2);
    assert!(commit(&mut engine).is_empty());
    let ends = |engine: &Tested| -> Vec<i64> {
        let end = |log: &LogId| engine.node().log(*log).map_or(-1, Log::high_watermark);
        logs.iter().map(end).collect()
    };
    assert_eq!(ends(&engine), [4, 0, 0, 0]);
    // What is not durable is gone with the power, with what was said of it.
    let (next, more) = batch(1, 10, Some((9, 2)));
    engine.append(at(3), logs[3], &next, more.clone()).unwrap();
    drop(engine);

    let disk = Arc::new(disk.power_cycle(2));
    let mut engine = open(&disk);
    let (ordered, _) = engine.order_queues(at(4), "t", QueueOrder::Wish(Some(4)));
    assert_eq!(ordered, Ok(()));
    let (due, _) = engine.adjust_queues(at(20_000));
    assert_eq!(due, Some(at(21_000).mono_ms));
    let again = engine
        .append(at(20_000), logs[3], &header, bytes.clone())
        .unwrap();
    assert!(again.is_duplicate && again.base_offset == -1);
    let new = engine.append(at(20_000), logs[3], &next, more).unwrap();
    assert_eq!(
        (new.base_offset, new.is_duplicate),
        (0, false),
        "in the partition itself by now"
    );
    assert!(
        engine
            .append(at(20_000), logs[0], &header, bytes)
            .unwrap()
            .is_duplicate
    );
    assert!(commit(&mut engine).is_empty());
    assert_eq!(ends(&engine), [4, 0, 0, 1]);
    drop(engine);
    let engine = open(&Arc::new(disk.power_cycle(3)));
    assert_eq!(ends(&engine), [4, 0, 0, 1]);
}
