//! Groups within the node: their journal, their topics, their settings.

use super::tests::{apply_all, at, create, fresh, node, options};
use super::*;
use crate::group::{Caller, CommitPartition, ConsumerHeartbeat, Effects, OffsetCommit};

fn joining() -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        version: 1,
        group_id: "billing".to_owned(),
        member_id: "member-1".to_owned(),
        member_epoch: 0,
        rebalance_timeout_ms: 60_000,
        topic_names: Some(vec!["orders".to_owned()]),
        owned: Some(Vec::new()),
        ..ConsumerHeartbeat::default()
    }
}

/// Joins and returns the heartbeat interval that the member is told, and what is to be journalled.
fn join(node: &mut Node) -> (i32, Effects) {
    let (groups, topics) = node.groups_mut();
    let (answer, effects) =
        groups.consumer_heartbeat(at(0), &topics, fresh(7), &Caller::default(), &joining());
    (answer.unwrap().heartbeat_interval_ms, effects)
}

fn commit(node: &mut Node, epoch: i32) -> (ErrorCode, Effects) {
    let topic = group::TopicRef::Name("orders".to_owned());
    let partition = CommitPartition {
        partition: 0,
        offset: 5,
        leader_epoch: -1,
        metadata: None,
    };
    let request = OffsetCommit {
        version: 9,
        group_id: "billing".to_owned(),
        generation_or_epoch: epoch,
        member_id: "member-1".to_owned(),
        instance_id: None,
        retention_ms: -1,
        topics: vec![(topic, vec![partition])],
    };
    let (groups, topics) = node.groups_mut();
    let (answer, effects) = groups.commit(at(0), &topics, &Caller::default(), &request);
    (answer[0].1[0].1, effects)
}

fn entries(effects: Effects) -> Vec<Vec<u8>> {
    effects
        .changes
        .into_iter()
        .map(|change| Command::Group(change).encode())
        .collect()
}

#[test]
fn what_groups_journal_leads_back_to_them() {
    let mut node = node(&[]);
    create(&mut node, "orders", 1, 1);
    let snapshot = node.snapshot();
    let mut journal = entries(join(&mut node).1);
    let (error, effects) = commit(&mut node, 1);
    assert_eq!(error, ErrorCode::None);
    journal.extend(entries(effects));
    assert!(journal.len() >= 2);
    let mut again = Node::restore(options(&[]), &snapshot).unwrap();
    for entry in &journal {
        again.replay_state(entry).unwrap();
    }
    assert_eq!(again.recovered(at(0)), None);
    assert_eq!(again.snapshot(), node.snapshot());
    assert!(again.groups().next_deadline().is_some(), "the session runs");
    let mut third = Node::restore(options(&[]), &again.snapshot()).unwrap();
    assert_eq!(third.groups().groups(), node.groups().groups());
    assert_eq!(
        commit(&mut third, 1).0,
        ErrorCode::None,
        "the member is known after a restart"
    );
    assert_eq!(commit(&mut third, 0).0, ErrorCode::StaleMemberEpoch);
}

#[test]
fn deleted_topics_take_their_cursors_along() {
    let mut node = node(&[]);
    create(&mut node, "orders", 1, 1);
    assert!(!join(&mut node).1.changes.is_empty());
    assert_eq!(commit(&mut node, 1).0, ErrorCode::None);
    let cursors = |node: &Node| {
        node.groups()
            .groups()
            .get("billing")
            .map(|group| group.cursors.len())
    };
    assert_eq!(cursors(&node), Some(1));
    let commands = node.delete_topic(at(1), TopicRef::Name("orders")).unwrap();
    apply_all(&mut node, &commands);
    let effects = node.topics_changed(at(1));
    assert!(!effects.changes.is_empty());
    assert_eq!(cursors(&node), Some(0));
}

#[test]
fn a_group_can_have_timings_of_its_own() {
    let mut node = node(&[("group.consumer.heartbeat.interval.ms", "2000")]);
    create(&mut node, "orders", 1, 1);
    let group = Resource::Group("billing".to_owned());
    let all = [(
        "consumer.heartbeat.interval.ms".to_owned(),
        Some("700".to_owned()),
    )];
    let commands = node.alter_configs(&group, &all).unwrap();
    apply_all(&mut node, &commands);
    assert_eq!(join(&mut node).0, 700);
    let mut restarted = Node::restore(options(&[]), &node.snapshot()).unwrap();
    assert_eq!(join(&mut restarted).0, 700, "also after a restart");
    let commands = node.alter_configs(&group, &[]).unwrap();
    apply_all(&mut node, &commands);
    assert_eq!(join(&mut node).0, 2000);
}
