//! Queue mode within the node: where batches go, what members are given, when the counts change, what a restart knows.

use super::super::Node;
use super::super::queues_bench::{Bench, Entry};
use super::super::tests::{at, batch, fresh, options, sequenced, wish};
use super::*;
use crate::ids::Offset;
use crate::meta::Resource;
use crate::queues::Phase;
use proptest::prelude::*;

#[test]
fn a_topic_that_is_created_in_queue_mode_shows_the_maximum_and_begins_with_the_minimum() {
    let bench = Bench::new(-1, &[("elastic.queues.max", "16"), ("elastic.queues.min", "2")]);
    assert_eq!(bench.node.topic_by_name("orders").unwrap().partitions(), 16);
    assert_eq!(bench.counts(), (2, 2));
    let bench = Bench::new(5, &[]);
    assert_eq!(
        bench.node.topic_by_name("orders").unwrap().partitions(),
        5,
        "as its creator says"
    );
}

#[test]
fn a_batch_for_an_id_that_is_not_written_is_stored_in_id_mod_w() {
    let mut bench = Bench::new(8, &[("elastic.queues.min", "3")]);
    assert_eq!(bench.counts(), (3, 3));
    for partition in 0..8 {
        bench.produce(partition, &batch(1)).unwrap();
    }
    let ends: Vec<Offset> = (0..8).map(|partition| bench.end(partition)).collect();
    assert_eq!(ends, [3, 3, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn sequence_numbers_count_at_the_addressed_id_across_changes_of_w() {
    let mut bench = Bench::new(8, &[]);
    assert_eq!(bench.produce(0, &sequenced(9, 0)), Ok((true, 0)));
    assert_eq!(
        bench.produce(5, &sequenced(9, 0)),
        Ok((true, 1)),
        "the same number for another id"
    );
    bench.join("g", &["a", "b", "c"]);
    bench.pass(10_000);
    assert_eq!(bench.counts(), (3, 3));
    assert_eq!(
        bench.produce(5, &sequenced(9, 0)),
        Ok((false, -1)),
        "a retry behind the change; its offset is one of another id"
    );
    assert_eq!(
        bench.produce(5, &sequenced(9, 1)),
        Ok((true, 0)),
        "now in 5 mod 3"
    );
    assert_eq!(bench.produce(0, &sequenced(9, 0)), Ok((false, 0)));
    let gap = bench.produce(5, &sequenced(9, 3)).unwrap_err();
    assert_eq!(gap.code(), ErrorCode::OutOfOrderSequenceNumber);
    bench.leave("g", &["b", "c"]);
    bench.pass(60_000);
    bench.pass(60_000);
    assert_eq!(bench.counts(), (1, 3));
    assert_eq!(bench.produce(5, &sequenced(9, 1)), Ok((false, -1)));
    assert_eq!(bench.produce(5, &sequenced(9, 2)), Ok((true, 2)), "in 5 mod 1");
}

#[test]
fn a_restart_knows_where_a_batch_was_addressed() {
    let mut bench = Bench::new(8, &[("elastic.queues.min", "2")]);
    for sequence in 0..3 {
        bench.produce(5, &sequenced(9, sequence)).unwrap();
        bench.produce(1, &sequenced(9, sequence)).unwrap();
    }
    bench.node = bench.replayed();
    assert_eq!(bench.produce(5, &sequenced(9, 2)), Ok((false, -1)));
    assert_eq!(bench.produce(1, &sequenced(9, 2)), Ok((false, 5)));
    assert_eq!(bench.produce(5, &sequenced(9, 3)), Ok((true, 6)));
    let restored = Node::restore(options(&[]), &bench.node.snapshot()).unwrap();
    assert_eq!(restored.snapshot(), bench.node.snapshot());
    bench.node = restored;
    assert_eq!(bench.produce(5, &sequenced(9, 3)), Ok((false, -1)));
}

#[test]
fn what_was_said_of_a_batch_that_never_came_is_not_said_of_the_next() {
    let mut bench = Bench::new(8, &[]);
    let home = bench.log(0);
    let addressed = Command::Addressed {
        log: home,
        partition: 5,
    };
    bench.journal.push(Entry::State(addressed.encode()));
    bench.node = bench.replayed();
    let closing = bench.node.recovered(at(0)).unwrap();
    assert_eq!(
        closing,
        Command::Addressed {
            log: home,
            partition: 0
        }
    );
    bench.run(&[closing]);
    assert_eq!(bench.node.recovered(at(0)), None, "once is enough");
    assert_eq!(bench.produce(0, &sequenced(9, 0)), Ok((true, 0)));
    bench.node = bench.replayed();
    assert_eq!(bench.produce(0, &sequenced(9, 0)), Ok((false, 0)));
    assert_eq!(
        bench.node.recovered(at(0)),
        None,
        "nothing was said of a lost batch"
    );
}

#[test]
fn every_instance_gets_one_queue() {
    let mut bench = Bench::new(16, &[]);
    bench.join("g", &["a", "b", "c"]);
    assert_eq!(bench.counts(), (1, 3));
    assert_eq!(
        bench.targets("g"),
        [[0], [1], [2]],
        "before producers write there"
    );
    bench.pass(10_000);
    assert_eq!(bench.counts(), (3, 3));
    bench.join("small", &["x", "y"]);
    let mut shares: Vec<usize> = bench.targets("small").iter().map(Vec::len).collect();
    shares.sort_unstable();
    assert_eq!(shares, [1, 2], "an even share");
    bench.join("large", &["1", "2", "3", "4", "5"]);
    assert_eq!(bench.counts(), (3, 5));
    bench.pass(10_000);
    assert_eq!(bench.counts(), (5, 5));
    assert!(bench.targets("large").iter().all(|share| share.len() == 1));
}

/// The published design counts instances by the data centre in their names, and those without a known one not at all.
#[test]
fn fault_9_every_member_counts_whatever_it_is_called() {
    let mut bench = Bench::new(16, &[]);
    bench.join(
        "g",
        &["host-1#dc1", "host-2#dc2", "host-3#nowhere", "#", "ünnamed"],
    );
    assert_eq!(bench.counts(), (1, 5));
    assert!(bench.targets("g").iter().all(|share| share.len() == 1));
}

#[test]
fn a_queue_goes_when_every_group_has_read_it_and_its_records_wait_for_those_that_come_later() {
    let mut bench = Bench::new(16, &[]);
    bench.join("g", &["a", "b", "c"]);
    bench.pass(10_000);
    bench.produce(2, &batch(4)).unwrap();
    bench.leave("g", &["b", "c"]);
    bench.pass(59_000);
    assert_eq!(bench.counts(), (3, 3), "they might come back");
    bench.pass(1_000);
    assert_eq!(bench.counts(), (1, 3));
    assert_eq!(bench.targets("g"), [[0, 1, 2]]);
    bench.pass(300_000);
    let Phase::Postponed(blocked) = &bench.queues().phase else {
        panic!("{:?}", bench.queues());
    };
    assert_eq!(
        (blocked.group.as_str(), blocked.queue, blocked.unread),
        ("g", 2, 4)
    );
    bench.commit("g", "a", 0..3);
    bench.pass(2_000);
    assert_eq!(bench.counts(), (1, 1));
    assert_eq!(bench.targets("g"), [[0]]);
    bench.join("later", &["l"]);
    assert_eq!(
        bench.targets("later"),
        [[0, 2]],
        "what is retained there is for it to read"
    );
    bench.commit("later", "l", [2]);
    assert_eq!(bench.targets("later"), [[0]]);
}

#[test]
fn what_is_left_when_an_operator_forces_it_stays_with_its_group() {
    let mut bench = Bench::new(16, &[]);
    bench.join("g", &["a", "b"]);
    bench.pass(10_000);
    bench.produce(1, &batch(4)).unwrap();
    let nothing = bench
        .node
        .order_queues(at(0), "orders", QueueOrder::Force)
        .unwrap_err();
    assert!(nothing.message().contains("nothing to force"), "{nothing}");
    bench.leave("g", &["b"]);
    bench.pass(60_000);
    let now = at(bench.now_ms);
    let forced = bench.node.order_queues(now, "orders", QueueOrder::Force).unwrap();
    bench.run(&forced);
    let _ = bench.node.topics_changed(now);
    assert_eq!(bench.counts(), (1, 1));
    assert_eq!(bench.targets("g"), [[0, 1]], "nothing is lost");
    bench.commit("g", "a", [1]);
    assert_eq!(bench.targets("g"), [[0]]);
}

#[test]
fn an_operators_wish_must_be_possible() {
    let mut bench = Bench::new(8, &[]);
    let mut order = |wish| bench.node.order_queues(at(0), "orders", QueueOrder::Wish(wish));
    assert!(order(Some(9)).unwrap_err().message().contains("has 8 partitions"));
    assert!(order(Some(0)).is_err());
    assert_eq!(order(None).unwrap(), [], "nothing is wanted already");
    let commands = order(Some(4)).unwrap();
    bench.run(&commands);
    bench.tick();
    assert_eq!(bench.counts(), (1, 4));
    let plain = bench
        .node
        .create_topic(at(0), &wish("plain", 1, &[]), fresh(2))
        .unwrap();
    bench.run(&plain);
    let refused = bench
        .node
        .order_queues(at(0), "plain", QueueOrder::Wish(Some(1)))
        .unwrap_err();
    assert!(refused.message().contains("elastic.mode=queues"), "{refused}");
}

#[test]
fn the_mode_can_be_switched_on_and_off_while_records_are_everywhere() {
    let mut bench = Bench::new(4, &[]);
    bench.set("elastic.mode", "off");
    bench.tick();
    assert!(bench.node.state().queues().is_empty());
    for partition in 0..4 {
        bench.produce(partition, &batch(1)).unwrap();
        assert_eq!(bench.end(partition), 1, "as in Apache Kafka");
    }
    bench.join("g", &["a"]);
    assert_eq!(bench.targets("g"), [[0, 1, 2, 3]]);
    bench.set("elastic.mode", "queues");
    bench.tick();
    assert_eq!(bench.counts(), (4, 4));
    bench.commit("g", "a", 0..4);
    bench.pass(60_000);
    bench.pass(60_000);
    assert_eq!(bench.counts(), (1, 4));
    bench.pass(300_000);
    assert_eq!(bench.counts(), (1, 1));
    assert_eq!(bench.targets("g"), [[0]]);
    bench.set("elastic.mode", "off");
    bench.tick();
    assert_eq!(bench.targets("g"), [[0, 1, 2, 3]]);
    let logs = bench.node.state().queue_logs();
    let kinds: Vec<&str> = logs[&bench.id()]
        .entries()
        .map(|(_, one)| one.kind.code())
        .collect();
    assert_eq!(
        kinds,
        [
            "queues-start",
            "queues-end",
            "queues-start",
            "write-down",
            "read-down",
            "queues-end"
        ]
    );
}

#[test]
fn compacted_topics_are_not_in_queue_mode() {
    let mut bench = Bench::new(4, &[("cleanup.policy", "compact")]);
    bench.tick();
    assert!(bench.node.state().queues().is_empty());
}

#[test]
fn a_group_whose_mode_is_off_does_not_count_but_has_to_be_waited_for() {
    let mut bench = Bench::new(16, &[]);
    let resource = Resource::Group("off".to_owned());
    let configs: Values = [("elastic.mode".to_owned(), "off".to_owned())].into();
    bench.run(&[Command::SetConfigs { resource, configs }]);
    bench.join("off", &["1", "2", "3"]);
    bench.pass(10_000);
    assert_eq!(bench.counts(), (1, 1));
    bench.join("g", &["a", "b"]);
    bench.pass(10_000);
    assert_eq!(bench.counts(), (2, 2));
    bench.produce(1, &batch(1)).unwrap();
    bench.commit("g", "a", 0..2);
    bench.leave("g", &["b"]);
    bench.pass(60_000);
    bench.pass(300_000);
    assert!(matches!(&bench.queues().phase, Phase::Postponed(blocked) if blocked.group == "off"));
    let view = bench.node.queues_view(at(bench.now_ms), bench.id()).unwrap();
    let shown: Vec<_> = view
        .groups
        .iter()
        .map(|one| (one.group.as_str(), one.instances, one.counts, one.unread))
        .collect();
    assert_eq!(shown, [("g", 1, true, 0), ("off", 3, false, 1)]);
    let by_queue: Vec<_> = view.groups.iter().map(|one| one.unread_in.as_slice()).collect();
    assert_eq!(
        by_queue,
        [[].as_slice(), &[(1, 1)]],
        "it is the queue that is to go"
    );
}

#[test]
fn what_is_unread_of_many_queues_is_counted_and_cut() {
    let queues = i32::try_from(ADMIN_ROWS_MAX).unwrap() + 200;
    let mut bench = Bench::new(queues, &[("elastic.queues.max", "10000")]);
    bench.join("a", &["1"]);
    bench.join("b", &["1"]);
    let all = QueueOrder::Wish(Some(queues.cast_unsigned()));
    let commands = bench.node.order_queues(at(0), "orders", all).unwrap();
    bench.run(&commands);
    bench.tick();
    bench.pass(10_000);
    for queue in 0..queues {
        bench.produce(queue, &batch(1)).unwrap();
    }
    let view = bench.node.queues_view(at(bench.now_ms), bench.id()).unwrap();
    let shown: Vec<_> = view
        .groups
        .iter()
        .map(|one| (one.unread, one.unread_in.len() as u64, one.unread_left_out))
        .collect();
    let (all, most) = (u64::from(queues.cast_unsigned()), ADMIN_ROWS_MAX as u64);
    assert_eq!(shown, [(all, most, all - most), (all, 0, all)]);
}

/// What happens in a random run.
#[derive(Clone, Debug)]
enum Step {
    Produce {
        partition: i32,
        producer: i64,
        retry: bool,
    },
    Wish(Option<u32>),
    Pass(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..6i32, -1..3i64, any::<bool>()).prop_map(|(partition, producer, retry)| Step::Produce { partition, producer, retry }),
        2 => proptest::option::of(1..6u32).prop_map(Step::Wish),
        2 => (0..400_000u64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// However W changes: a retry is a duplicate, what is new is stored once in a queue that is written, and the journal
    /// leads to the same node.
    #[test]
    fn each_batch_is_stored_once_and_the_journal_leads_to_the_same_node(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut bench = Bench::new(6, &[]);
        let mut next: BTreeMap<(i32, i64), i32> = BTreeMap::new();
        let mut stored = 0;
        for step in steps {
            match step {
                Step::Produce { partition, producer: -1, .. } => {
                    let home = bench.home(partition);
                    bench.produce(partition, &batch(1)).unwrap();
                    prop_assert_eq!(bench.stored_in(), Some(home));
                    stored += 1;
                }
                Step::Produce { partition, producer, retry } => {
                    let sequence = next.entry((partition, producer)).or_default();
                    if retry && *sequence > 0 {
                        let (is_new, _) = bench.produce(partition, &sequenced(producer, *sequence - 1)).unwrap();
                        prop_assert!(!is_new);
                    } else {
                        let home = bench.home(partition);
                        let (is_new, _) = bench.produce(partition, &sequenced(producer, *sequence)).unwrap();
                        prop_assert!(is_new);
                        prop_assert_eq!(bench.stored_in(), Some(home));
                        *sequence += 1;
                        stored += 1;
                    }
                }
                Step::Wish(wish) => {
                    let commands = bench.node.order_queues(at(bench.now_ms), "orders", QueueOrder::Wish(wish)).unwrap();
                    bench.run(&commands);
                    bench.tick();
                }
                Step::Pass(ms) => bench.pass(ms),
            }
            let (write, read) = bench.counts();
            prop_assert!(write <= read && read <= 6);
        }
        let total: Offset = (0..6).map(|partition| bench.end(partition)).sum();
        prop_assert_eq!(total, stored);
        prop_assert_eq!(bench.replayed().snapshot(), bench.node.snapshot());
        let restored = Node::restore(options(&[]), &bench.node.snapshot()).unwrap();
        prop_assert_eq!(restored.snapshot(), bench.node.snapshot());
    }
}
