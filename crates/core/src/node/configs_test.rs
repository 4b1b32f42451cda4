//! Altering and describing configurations.

use super::super::tests::{apply_all, create, node};
use super::*;

fn topic(name: &str) -> Resource {
    Resource::Topic(name.to_owned())
}

fn change(name: &str, op: AlterOp, value: &str) -> AlterConfig {
    AlterConfig {
        name: name.to_owned(),
        op,
        value: Some(value.to_owned()),
    }
}

fn set_to(name: &str, value: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(value.to_owned()))
}

fn with_topic() -> Node {
    let mut node = node(&[("log.retention.hours", "24")]);
    create(&mut node, "orders", 1, 1);
    node
}

/// Applies changes and returns what the resource has set afterwards, or the error.
fn alter(node: &mut Node, resource: &Resource, changes: &[AlterConfig]) -> Result<Values, ErrorCode> {
    let commands = node
        .incremental_alter_configs(resource, changes)
        .map_err(|refused| refused.code())?;
    apply_all(node, &commands);
    Ok(node.overrides(resource).unwrap().cloned().unwrap_or_default())
}

fn entry(node: &Node, resource: &Resource, name: &str) -> ConfigEntry {
    let mut entries = node.describe_configs(resource, Some(&[name.to_owned()])).unwrap();
    assert_eq!(entries.len(), 1, "{name}");
    entries.remove(0)
}

#[test]
fn resources_are_named_by_type_and_name() {
    let node = node(&[]);
    assert_eq!(node.resource(2, "t"), Ok(topic("t")));
    assert_eq!(node.resource(4, ""), Ok(Resource::ClusterDefault));
    assert_eq!(node.resource(4, "1"), Ok(Resource::Broker));
    assert_eq!(node.resource(32, "g"), Ok(Resource::Group("g".to_owned())));
    for (kind, name) in [
        (4, "2"),
        (4, "x"),
        (32, ""),
        (8, "1"),
        (16, "x"),
        (0, ""),
        (-1, ""),
    ] {
        assert_eq!(
            node.resource(kind, name).map_err(|r| r.code()),
            Err(ErrorCode::InvalidRequest),
            "{kind} {name}"
        );
    }
}

#[test]
fn single_changes_build_on_what_is_set() {
    let mut node = with_topic();
    let orders = topic("orders");
    let seen = alter(&mut node, &orders, &[change("retention.ms", AlterOp::Set, " 5 ")]).unwrap();
    assert_eq!(seen, Values::from([("retention.ms".to_owned(), "5".to_owned())]));
    let seen = alter(
        &mut node,
        &orders,
        &[change("cleanup.policy", AlterOp::Append, "compact,delete")],
    )
    .unwrap();
    assert_eq!(
        seen.get("cleanup.policy").map(String::as_str),
        Some("delete,compact"),
        "on top of the default"
    );
    let seen = alter(
        &mut node,
        &orders,
        &[change("cleanup.policy", AlterOp::Subtract, "delete,other")],
    )
    .unwrap();
    assert_eq!(seen.get("cleanup.policy").map(String::as_str), Some("compact"));
    let delete = AlterConfig {
        name: "cleanup.policy".to_owned(),
        op: AlterOp::Delete,
        value: None,
    };
    let seen = alter(&mut node, &orders, &[delete]).unwrap();
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["retention.ms"]);
}

#[test]
fn bad_changes_are_refused_and_change_nothing() {
    let mut node = with_topic();
    let before = node.snapshot();
    let none = AlterConfig {
        name: "retention.ms".to_owned(),
        op: AlterOp::Set,
        value: None,
    };
    let cases = [
        (
            topic("orders"),
            change("retention.msec", AlterOp::Set, "5"),
            ErrorCode::InvalidConfig,
        ),
        (
            topic("orders"),
            change("retention.ms", AlterOp::Set, "five"),
            ErrorCode::InvalidConfig,
        ),
        (
            topic("orders"),
            change("retention.ms", AlterOp::Append, "5"),
            ErrorCode::InvalidConfig,
        ),
        (
            topic("orders"),
            change("cleanup.policy", AlterOp::Append, "burn"),
            ErrorCode::InvalidConfig,
        ),
        (
            topic("orders"),
            change("cleanup.policy", AlterOp::Subtract, "delete"),
            ErrorCode::InvalidConfig,
        ),
        (topic("orders"), none, ErrorCode::InvalidRequest),
        (
            topic("other"),
            change("retention.ms", AlterOp::Set, "5"),
            ErrorCode::UnknownTopicOrPartition,
        ),
        (
            Resource::Broker,
            change("node.id", AlterOp::Set, "5"),
            ErrorCode::InvalidConfig,
        ),
        (
            Resource::ClusterDefault,
            change("retention.ms", AlterOp::Set, "5"),
            ErrorCode::InvalidConfig,
        ),
    ];
    for (resource, change, code) in cases {
        assert_eq!(
            alter(&mut node, &resource, std::slice::from_ref(&change)),
            Err(code),
            "{change:?}"
        );
    }
    let twice = [
        change("retention.ms", AlterOp::Set, "5"),
        change("retention.ms", AlterOp::Set, "6"),
    ];
    assert_eq!(
        alter(&mut node, &topic("orders"), &twice),
        Err(ErrorCode::InvalidRequest)
    );
    assert_eq!(node.snapshot(), before);
    assert_eq!(
        AlterOp::from_i8(4).map_err(|refused| refused.code()),
        Err(ErrorCode::InvalidRequest)
    );
}

#[test]
fn replacing_sets_these_and_only_these() {
    let mut node = with_topic();
    let orders = topic("orders");
    alter(&mut node, &orders, &[change("retention.ms", AlterOp::Set, "5")]).unwrap();
    let commands = node
        .alter_configs(&orders, &[set_to("max.message.bytes", "7")])
        .unwrap();
    apply_all(&mut node, &commands);
    assert_eq!(
        entry(&node, &orders, "retention.ms").value.as_deref(),
        Some("86400000")
    );
    assert_eq!(
        entry(&node, &orders, "max.message.bytes").value.as_deref(),
        Some("7")
    );
    assert_eq!(
        node.alter_configs(&orders, &[set_to("max.message.bytes", "7")]),
        Ok(Vec::new()),
        "no change"
    );
    let twice = [set_to("max.message.bytes", "7"), set_to("max.message.bytes", "8")];
    assert_eq!(
        node.alter_configs(&orders, &twice).map_err(|r| r.code()),
        Err(ErrorCode::InvalidRequest)
    );
}

#[test]
fn topics_show_where_a_value_comes_from() {
    let mut node = with_topic();
    let orders = topic("orders");
    let retention = entry(&node, &orders, "retention.ms");
    assert_eq!(
        (retention.value.as_deref(), retention.source),
        (Some("86400000"), Source::Static)
    );
    assert_eq!(
        (retention.read_only, retention.sensitive, retention.kind),
        (false, false, ConfigType::Long)
    );
    alter(
        &mut node,
        &Resource::ClusterDefault,
        &[change("log.retention.ms", AlterOp::Set, "7")],
    )
    .unwrap();
    alter(&mut node, &orders, &[change("retention.ms", AlterOp::Set, "5")]).unwrap();
    let retention = entry(&node, &orders, "retention.ms");
    let synonyms: Vec<_> = retention
        .synonyms
        .iter()
        .map(|s| (s.name, s.raw.as_str(), s.source))
        .collect();
    assert_eq!(
        synonyms,
        [
            ("retention.ms", "5", Source::Topic),
            ("log.retention.ms", "7", Source::ClusterDefault),
            ("log.retention.hours", "24", Source::Static),
            ("log.retention.hours", "168", Source::Default),
        ]
    );
    assert_eq!(
        node.describe_configs(&orders, None).unwrap().len(),
        Scope::Topic.keys().len()
    );
    assert!(
        node.describe_configs(&orders, Some(&["no.such.key".to_owned()]))
            .unwrap()
            .is_empty()
    );
    let unknown = node.describe_configs(&topic("other"), None).unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn the_broker_shows_its_identity_and_the_cluster_only_what_is_set() {
    let mut node = with_topic();
    let id = entry(&node, &Resource::Broker, "node.id");
    assert_eq!(
        (id.value.as_deref(), id.source, id.read_only),
        (Some("1"), Source::Static, true)
    );
    let version = entry(&node, &Resource::Broker, "inter.broker.protocol.version");
    assert_eq!(version.value.as_deref(), Some("4.1"));
    assert_eq!(
        entry(&node, &Resource::Broker, "log.retention.ms")
            .value
            .as_deref(),
        Some("86400000")
    );
    assert!(
        node.describe_configs(&Resource::ClusterDefault, None)
            .unwrap()
            .is_empty()
    );
    alter(
        &mut node,
        &Resource::ClusterDefault,
        &[change("num.partitions", AlterOp::Set, "7")],
    )
    .unwrap();
    alter(
        &mut node,
        &Resource::Broker,
        &[change("num.partitions", AlterOp::Set, "8")],
    )
    .unwrap();
    let shared = node.describe_configs(&Resource::ClusterDefault, None).unwrap();
    assert_eq!(shared.len(), 1);
    assert_eq!(
        (shared[0].value.as_deref(), shared[0].source),
        (Some("7"), Source::ClusterDefault)
    );
    assert_eq!(
        entry(&node, &Resource::Broker, "num.partitions").value.as_deref(),
        Some("8")
    );
    assert_eq!(node.settings().num_partitions, 8);
}

#[test]
fn lists_of_all_brokers_are_edited_without_what_is_set_on_this_one() {
    let mut node = node(&[]);
    let key = "log.cleanup.policy";
    alter(
        &mut node,
        &Resource::Broker,
        &[change(key, AlterOp::Set, "compact")],
    )
    .unwrap();
    let seen = alter(
        &mut node,
        &Resource::ClusterDefault,
        &[change(key, AlterOp::Append, "delete")],
    )
    .unwrap();
    assert_eq!(seen.get(key).map(String::as_str), Some("delete"));
}

#[test]
fn groups_are_held_to_the_bounds_of_the_broker() {
    let mut node = node(&[("group.consumer.min.session.timeout.ms", "6000")]);
    let group = Resource::Group("billing".to_owned());
    let session = |value: &str| [change("consumer.session.timeout.ms", AlterOp::Set, value)];
    assert_eq!(
        alter(&mut node, &group, &session("5999")),
        Err(ErrorCode::InvalidConfig)
    );
    assert!(alter(&mut node, &group, &session("6000")).is_ok());
    let seen = entry(&node, &group, "consumer.session.timeout.ms");
    assert_eq!(
        (seen.value.as_deref(), seen.source),
        (Some("6000"), Source::Group)
    );
    let heartbeat = entry(&node, &group, "consumer.heartbeat.interval.ms");
    assert_eq!(
        (heartbeat.value.as_deref(), heartbeat.source),
        (Some("1000"), Source::Default)
    );
    let delete = AlterConfig {
        name: "consumer.session.timeout.ms".to_owned(),
        op: AlterOp::Delete,
        value: None,
    };
    assert!(alter(&mut node, &group, &[delete]).unwrap().is_empty());
    assert_eq!(
        node.incremental_alter_configs(&group, &[]),
        Ok(Vec::new()),
        "nothing to change"
    );
    assert_eq!(node.state().configured_groups(), 0);
}
