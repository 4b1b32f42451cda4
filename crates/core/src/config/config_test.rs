//! The tables as a whole: every row is complete, every default is valid, layers win in order.

use super::settings::ConsumerGroupSettings;
use super::*;
use crate::group::GroupSettings;
use crate::limits;

const SCOPES: [Scope; 3] = [Scope::Topic, Scope::Broker, Scope::Group];

fn values(pairs: &[(&str, &str)]) -> Values {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn topic_settings(overrides: &[(&str, &str)], fixed: &[(&str, &str)]) -> TopicSettings {
    let (none, fixed) = (Values::new(), values(fixed));
    TopicSettings::new(
        &values(overrides),
        Layers {
            broker: &none,
            cluster: &none,
            fixed: &fixed,
        },
    )
}

#[test]
fn tables_are_sorted_and_every_key_is_found() {
    for scope in SCOPES {
        assert!(scope.keys().is_sorted_by(|a, b| a.name < b.name), "{scope:?}");
        for key in scope.keys() {
            assert_eq!(find(scope, key.name).unwrap().name, key.name);
        }
    }
}

#[test]
fn every_default_is_valid_and_every_key_is_documented() {
    for key in SCOPES.into_iter().flat_map(Scope::keys) {
        if let Some(default) = key.default {
            assert!(
                key.check(default).is_ok(),
                "{}: {:?}",
                key.name,
                key.check(default)
            );
        }
        assert!(key.doc.len() > 20 && key.doc.ends_with('.'), "{}", key.name);
        assert!(!key.doc.contains("  "), "{}: a gap in the text", key.name);
        let says_so = key.doc.contains("ccepted without effect") || key.doc.contains("There is none.");
        assert!(
            says_so || key.effect == Effect::Full || key.doc.contains("no use for it"),
            "{}",
            key.name
        );
    }
}

#[test]
fn synonyms_exist_have_the_same_default_and_a_type_that_converts() {
    for key in SCOPES.into_iter().flat_map(Scope::keys) {
        for (name, _) in key.synonyms {
            assert!(
                lookup(Scope::Broker, name).is_some(),
                "{name}, synonym of {}",
                key.name
            );
        }
        let none = Values::new();
        let layers = Layers {
            broker: &none,
            cluster: &none,
            fixed: &none,
        };
        let resolved = effective(key, Some((&none, Source::Topic)), layers);
        if let Some(default) = key.default {
            assert_eq!(resolved, default, "{}", key.name);
        }
    }
}

/// The settings that are the server's alone are held against the limits there.
#[test]
fn limits_that_a_broker_key_configures_have_its_default() {
    for limit in limits::ALL {
        let Some(name) = limit.key else { continue };
        let Some(key) = lookup(Scope::Broker, name) else {
            continue;
        };
        let default: u64 = key.default.unwrap().parse().unwrap();
        let factor = if name.ends_with(".minutes") { 60_000 } else { 1 };
        assert_eq!(default * factor, limit.default, "{name}");
    }
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    let refused = find(Scope::Topic, "retention.msec").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidConfig);
    assert_eq!(
        refused.message(),
        "`retention.msec` is not a topic configuration; did you mean `retention.ms`?"
    );
}

#[test]
fn values_are_checked_with_the_key_in_the_message() {
    let key = find(Scope::Topic, "compression.type").unwrap();
    assert!(key.check("producer").is_ok());
    let refused = key.check("zstd").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidConfig);
    assert!(
        refused
            .message()
            .starts_with("`zstd` is not a value of `compression.type`: only `producer`")
    );
    assert!(
        key.check(&"x".repeat(limits::CONFIG_VALUE_BYTES_MAX + 1))
            .is_err()
    );
}

#[test]
fn the_strongest_layer_wins_and_units_are_converted() {
    let (own, broker, cluster, fixed) = (
        values(&[("retention.ms", "1")]),
        values(&[("log.retention.ms", "2")]),
        values(&[("log.retention.ms", "3")]),
        values(&[("log.retention.minutes", "4"), ("log.retention.hours", "-1")]),
    );
    let key = find(Scope::Topic, "retention.ms").unwrap();
    let layers = Layers {
        broker: &broker,
        cluster: &cluster,
        fixed: &fixed,
    };
    let found = candidates(key, Some((&own, Source::Topic)), layers);
    let seen: Vec<_> = found
        .iter()
        .map(|c| (c.name, c.raw.as_str(), c.value.as_str(), c.source))
        .collect();
    assert_eq!(
        seen,
        [
            ("retention.ms", "1", "1", Source::Topic),
            ("log.retention.ms", "2", "2", Source::Broker),
            ("log.retention.ms", "3", "3", Source::ClusterDefault),
            ("log.retention.minutes", "4", "240000", Source::Static),
            ("log.retention.hours", "-1", "-1", Source::Static),
            ("log.retention.hours", "168", "604800000", Source::Default),
        ]
    );
}

#[test]
fn settings_follow_the_values() {
    let plain = topic_settings(&[], &[]);
    assert_eq!(plain.retention_ms, Some(604_800_000));
    assert_eq!(plain.retention_bytes, None);
    assert_eq!(plain.message_bytes_max, limits::MESSAGE_BYTES_MAX);
    assert!(plain.delete && !plain.compact);
    let odd = topic_settings(
        &[
            ("cleanup.policy", "compact"),
            ("message.timestamp.type", "LogAppendTime"),
            ("retention.ms", "-1"),
        ],
        &[("log.retention.bytes", "1000"), ("message.max.bytes", "77")],
    );
    assert!(odd.compact && !odd.delete);
    assert_eq!(odd.timestamp_type, TimestampType::LogAppendTime);
    assert_eq!(
        (odd.retention_ms, odd.retention_bytes, odd.message_bytes_max),
        (None, Some(1000), 77)
    );
    let broken = topic_settings(&[("max.message.bytes", "many")], &[]);
    assert_eq!(broken.message_bytes_max, limits::MESSAGE_BYTES_MAX);
}

#[test]
fn broker_and_group_settings_have_the_defaults_of_the_limits() {
    let none = Values::new();
    let layers = Layers {
        broker: &none,
        cluster: &none,
        fixed: &none,
    };
    let broker = BrokerSettings::new(layers);
    assert_eq!(broker.num_partitions, 1);
    assert!(broker.auto_create_topics && broker.delete_topics);
    assert_eq!(broker.producer_expiration_ms, limits::PRODUCER_EXPIRATION_MS);
    assert_eq!(GroupSettings::of_broker(layers), GroupSettings::default());
    let overrides = values(&[("consumer.session.timeout.ms", "9000")]);
    let group = ConsumerGroupSettings::new(&overrides, layers);
    assert_eq!(
        (group.session_timeout_ms, group.heartbeat_interval_ms),
        (9000, 1000)
    );
}
