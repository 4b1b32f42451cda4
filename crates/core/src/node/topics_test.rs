//! Creation, growth and deletion of topics, error by error.

use super::super::tests::{apply_all, at, create, fresh, node, wish};
use super::*;

fn refusal(node: &Node, wish: &CreateTopic) -> Refused {
    node.create_topic(at(0), wish, fresh(99)).unwrap_err()
}

#[test]
fn names_follow_kafkas_rules() {
    let node = node(&[]);
    let long = "x".repeat(limits::TOPIC_NAME_BYTES_MAX + 1);
    for bad in ["", ".", "..", "a/b", "a b", "ä", "a\0", "a:b", long.as_str()] {
        let refused = refusal(&node, &wish(bad, 1, &[]));
        assert_eq!(refused.code(), ErrorCode::InvalidTopicException, "{bad:?}");
    }
    for good in ["a", "...", "A-b_9.z", &long[1..]] {
        assert!(
            node.create_topic(at(0), &wish(good, 1, &[]), fresh(9)).is_ok(),
            "{good:?}"
        );
    }
    let reserved = refusal(&node, &wish("__consumer_offsets", 1, &[]));
    assert_eq!(reserved.code(), ErrorCode::InvalidTopicException);
    assert!(reserved.message().contains("OffsetFetch"));
}

#[test]
fn existing_and_colliding_names_are_refused() {
    let mut node = node(&[]);
    create(&mut node, "a.b", 1, 1);
    assert_eq!(
        refusal(&node, &wish("a.b", 1, &[])).code(),
        ErrorCode::TopicAlreadyExists
    );
    let collides = refusal(&node, &wish("a_b", 1, &[]));
    assert_eq!(collides.code(), ErrorCode::InvalidTopicException);
    assert!(collides.message().contains("`a.b`"));
    let commands = node.delete_topic(at(0), TopicRef::Name("a.b")).unwrap();
    apply_all(&mut node, &commands);
    create(&mut node, "a_b", 1, 2);
}

#[test]
fn partition_counts() {
    let mut node = node(&[("num.partitions", "3")]);
    assert_eq!(create(&mut node, "default", -1, 1).len(), 3);
    for bad in [0, -2, i32::MIN, 1_000_000_000, 10_001] {
        assert_eq!(
            refusal(&node, &wish("t", bad, &[])).code(),
            ErrorCode::InvalidPartitions,
            "{bad}"
        );
    }
    for seed in 2..11 {
        create(&mut node, &format!("t{seed}"), 10_000, seed);
    }
    let full = refusal(&node, &wish("t", 9_998, &[]));
    assert_eq!(full.code(), ErrorCode::InvalidPartitions);
    assert!(full.message().contains("90003 partitions of 100000"), "{full}");
    assert!(
        node.create_topic(at(0), &wish("t", 9_997, &[]), fresh(11))
            .is_ok()
    );
}

#[test]
fn replication_and_assignments_are_those_of_a_single_node() {
    let node = node(&[]);
    let three = CreateTopic {
        replication_factor: 3,
        ..wish("t", 1, &[])
    };
    assert_eq!(refusal(&node, &three).code(), ErrorCode::InvalidReplicationFactor);
    let zero = CreateTopic {
        replication_factor: 0,
        ..wish("t", 1, &[])
    };
    assert_eq!(refusal(&node, &zero).code(), ErrorCode::InvalidReplicationFactor);
    let assigned = |assignments: &[(i32, Vec<i32>)]| CreateTopic {
        partitions: -1,
        replication_factor: -1,
        assignments: assignments.to_vec(),
        ..wish("t", -1, &[])
    };
    let good = node
        .create_topic(at(0), &assigned(&[(1, vec![1]), (0, vec![1])]), fresh(1))
        .unwrap();
    assert!(matches!(&good[..], [Command::CreateTopic { logs, .. }] if logs.len() == 2));
    for bad in [
        &[(0, vec![2])][..],
        &[(0, vec![])],
        &[(0, vec![1, 2])],
        &[(1, vec![1])],
        &[(0, vec![1]), (0, vec![1])],
        &[(0, vec![1]), (2, vec![1])],
        &[(-1, vec![1])],
    ] {
        assert_eq!(
            refusal(&node, &assigned(bad)).code(),
            ErrorCode::InvalidReplicaAssignment,
            "{bad:?}"
        );
    }
    let both = CreateTopic {
        partitions: 1,
        ..assigned(&[(0, vec![1])])
    };
    assert_eq!(refusal(&node, &both).code(), ErrorCode::InvalidRequest);
}

#[test]
fn configurations_are_checked_before_anything_is_created() {
    let node = node(&[]);
    for (key, value) in [
        ("retention.mss", "1"),
        ("retention.ms", "soon"),
        ("compression.type", "zstd"),
    ] {
        let refused = refusal(&node, &wish("t", 1, &[(key, value)]));
        assert_eq!(refused.code(), ErrorCode::InvalidConfig);
        assert!(refused.message().contains(key), "{refused}");
    }
    let null = CreateTopic {
        configs: vec![("retention.ms".to_owned(), None)],
        ..wish("t", 1, &[])
    };
    assert_eq!(refusal(&node, &null).code(), ErrorCode::InvalidConfig);
    let twice = wish("t", 1, &[("retention.ms", "1"), ("retention.ms", "2")]);
    assert_eq!(refusal(&node, &twice).code(), ErrorCode::InvalidConfig);
    let compacted = wish(
        "t",
        1,
        &[("cleanup.policy", "compact"), ("segment.bytes", "52428800")],
    );
    assert!(node.create_topic(at(0), &compacted, fresh(1)).is_ok());
}

#[test]
fn validation_changes_nothing() {
    let node = node(&[]);
    let before = node.snapshot();
    assert!(node.create_topic(at(0), &wish("t", 5, &[]), fresh(1)).is_ok());
    assert_eq!(node.snapshot(), before);
    assert!(node.topic_by_name("t").is_none());
}

#[test]
fn ids_must_be_fresh() {
    let mut node = node(&[]);
    create(&mut node, "a", 1, 1);
    for taken in [fresh(1), [0; 16]] {
        let refused = node.create_topic(at(0), &wish("b", 1, &[]), taken).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::UnknownServerError);
    }
}

#[test]
fn names_given_twice_in_a_request_are_found() {
    assert_eq!(duplicates(["a", "b", "a", "c", "a"]), BTreeSet::from(["a"]));
    assert!(duplicates([]).is_empty());
}

#[test]
fn growth_names_the_present_count() {
    let mut node = node(&[]);
    create(&mut node, "t", 4, 1);
    for bad in [4, 3, 0, -1, i32::MAX] {
        let refused = node.create_partitions("t", bad, None).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidPartitions, "{bad}");
        assert!(
            bad > 4 || refused.message().contains("has 4 partitions"),
            "{refused}"
        );
    }
    assert!(node.create_partitions("t", 6, Some(&[vec![1], vec![1]])).is_ok());
    for bad in [&[vec![1]][..], &[vec![1], vec![2]], &[]] {
        let refused = node.create_partitions("t", 6, Some(bad)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidReplicaAssignment, "{bad:?}");
    }
    let unknown = node.create_partitions("u", 6, None).unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn deletion_by_name_and_by_id() {
    let mut node = node(&[]);
    create(&mut node, "a", 1, 1);
    let by_id = node.delete_topic(at(0), TopicRef::Id(TopicId(fresh(1))));
    assert_eq!(by_id, node.delete_topic(at(0), TopicRef::Name("a")));
    let code = |topic| node.delete_topic(at(0), topic).unwrap_err().code();
    assert_eq!(code(TopicRef::Name("b")), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(code(TopicRef::Id(TopicId(fresh(2)))), ErrorCode::UnknownTopicId);
    let mut kept = super::super::tests::node(&[("delete.topic.enable", "false")]);
    create(&mut kept, "a", 1, 1);
    let refused = kept.delete_topic(at(0), TopicRef::Name("a")).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TopicDeletionDisabled);
}

#[test]
fn metadata_requests_create_topics_unless_there_is_a_reason_not_to() {
    let mut node = node(&[("num.partitions", "2")]);
    let commands = node.auto_create_topic(at(0), "new", fresh(1)).unwrap();
    apply_all(&mut node, &commands);
    assert_eq!(node.topic_by_name("new").map(Topic::partitions), Some(2));
    let code = |node: &mut Node, now, name: &str| {
        node.auto_create_topic(now, name, fresh(2))
            .map_err(|refused| refused.code())
    };
    assert_eq!(
        code(&mut node, at(0), "a/b"),
        Err(ErrorCode::InvalidTopicException)
    );
    assert_eq!(
        code(&mut node, at(0), "__consumer_offsets"),
        Err(ErrorCode::UnknownTopicOrPartition)
    );
    let mut off = super::super::tests::node(&[("auto.create.topics.enable", "false")]);
    assert_eq!(
        code(&mut off, at(0), "new"),
        Err(ErrorCode::UnknownTopicOrPartition)
    );
}

#[test]
fn deleted_topics_do_not_come_back_by_themselves() {
    let mut node = node(&[]);
    create(&mut node, "gone", 1, 1);
    let commands = node.delete_topic(at(1_000), TopicRef::Name("gone")).unwrap();
    apply_all(&mut node, &commands);
    let code = |node: &mut Node, ms| {
        node.auto_create_topic(at(ms), "gone", fresh(2))
            .map_err(|refused| refused.code())
    };
    assert_eq!(code(&mut node, 2_000), Err(ErrorCode::UnknownTopicOrPartition));
    assert!(
        node.create_topic(at(2_000), &wish("gone", 1, &[]), fresh(2))
            .is_ok(),
        "by request at once"
    );
    assert!(code(&mut node, 1_000 + limits::AUTO_CREATE_REFUSED_MS).is_ok());
    // A topic that was created again is not under the ban of its predecessor.
    create(&mut node, "gone", 1, 3);
    assert_eq!(node.state().deleted_ms("gone"), None);
}

#[test]
fn a_storm_of_new_names_is_slowed_down_with_a_retriable_error() {
    let mut node = node(&[]);
    let burst = i64::try_from(limits::AUTO_CREATE_BURST).unwrap();
    let mut create = |ms, number: i64| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&(number + 1).to_be_bytes());
        let commands = node.auto_create_topic(at(ms), &format!("t{number}"), id);
        commands
            .map(|commands| apply_all(&mut node, &commands).len())
            .map_err(|refused| refused.code())
    };
    for number in 0..burst {
        assert!(create(0, number).is_ok(), "{number}");
    }
    assert_eq!(create(0, burst), Err(ErrorCode::LeaderNotAvailable));
    assert_eq!(create(99, burst), Err(ErrorCode::LeaderNotAvailable));
    assert!(create(200, burst).is_ok());
}
