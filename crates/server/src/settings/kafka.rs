//! Names from Kafka's `server.properties`: which are taken, which have no meaning here and why.
//!
//! A setting that Kafka's container image would read from `KAFKA_NUM_PARTITIONS` is taken here too, by the same rule
//! of names: after the prefix, `_` is a dot, `__` an underscore and `___` a dash.

use anabranch_core::config::{ConfigKey, Effect, Scope};

/// What the environment variables of Kafka's container image begin with.
pub const KAFKA_ENV_PREFIX: &str = "KAFKA_";

/// Settings that every Kafka set-up has and that have nothing to act on in a broker of one node without a separate
/// controller. They are accepted, with a warning that says so. (Those that brokers also show to administration tools
/// stand in core's table of broker keys.)
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("process.roles", "there is no separate controller"),
    ("controller.quorum.voters", "there is no separate controller"),
    (
        "controller.quorum.bootstrap.servers",
        "there is no separate controller",
    ),
    (
        "controller.listener.names",
        "there is no separate controller; listeners named CONTROLLER are skipped",
    ),
    ("listener.security.protocol.map", "every listener is plaintext"),
    ("inter.broker.listener.name", "there is one node"),
    ("security.inter.broker.protocol", "there is one node"),
    ("zookeeper.connect", "there is no ZooKeeper"),
    ("metadata.log.dir", "metadata lies in the data folder"),
    (
        "share.coordinator.state.topic.replication.factor",
        "there are no share groups",
    ),
    (
        "share.coordinator.state.topic.min.isr",
        "there are no share groups",
    ),
];

/// Environment variables that Kafka's images and start scripts set and that are no broker settings.
const NO_SETTINGS: &[&str] = &[
    "KAFKA_HOME",
    "KAFKA_VERSION",
    "KAFKA_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
];

/// Why a setting of Kafka has no effect here, if it is one of those that have none.
pub(super) fn without_effect(name: &str) -> Option<&'static str> {
    WITHOUT_EFFECT
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, why)| *why)
}

/// Broker-wide Kafka settings that this broker has, in name order.
pub(super) fn keys() -> impl Iterator<Item = &'static ConfigKey> {
    Scope::Broker
        .keys()
        .iter()
        .filter(|key| super::find(key.name).is_none())
}

/// Names and defaults of the broker-wide Kafka settings that have an effect, in name order.
pub fn broker_keys() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    keys()
        .filter(|key| key.effect == Effect::Full)
        .map(|key| (key.name, key.default))
}

/// The broker-wide Kafka setting of that name.
pub(super) fn key(name: &str) -> Option<&'static ConfigKey> {
    keys().find(|key| key.name == name)
}

/// The value of a broker-wide Kafka setting, checked.
pub(super) fn check(key: &ConfigKey, texts: &[String]) -> Result<String, String> {
    let value = texts.join(",");
    match key.check(&value) {
        Ok(()) => Ok(value),
        Err(refused) => Err(refused.message().to_owned()),
    }
}

/// The setting that Kafka's container image would set from the environment variable `name`; `None` if it is none.
pub(super) fn name_from_env(name: &str) -> Option<String> {
    let rest = name.strip_prefix(KAFKA_ENV_PREFIX)?;
    if NO_SETTINGS.contains(&name) || is_service_link(rest) {
        return None;
    }
    let dashes = rest.replace("___", "-").replace("__", "\u{0}");
    Some(
        dashes
            .replace('_', ".")
            .replace('\u{0}', "_")
            .to_ascii_lowercase(),
    )
}

/// Whether an environment variable (without prefix) was put there by Kubernetes or Docker for a service that happens
/// to be named `anabranch` or `kafka`: `PORT`, `PORT_9092_TCP_ADDR`, `SERVICE_HOST`, `SERVICE_PORT_PLAINTEXT`.
pub(super) fn is_service_link(rest: &str) -> bool {
    let is_port = |tail: &str| tail.is_empty() || tail.starts_with('_');
    rest == "SERVICE_HOST"
        || rest.strip_prefix("SERVICE_PORT").is_some_and(is_port)
        || rest.strip_prefix("PORT").is_some_and(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_names_follow_the_container_image() {
        assert_eq!(
            name_from_env("KAFKA_NUM_PARTITIONS").as_deref(),
            Some("num.partitions")
        );
        assert_eq!(name_from_env("KAFKA_A__B_C___D").as_deref(), Some("a_b.c-d"));
        assert_eq!(name_from_env("KAFKA_HEAP_OPTS"), None);
        assert_eq!(name_from_env("KAFKA_PORT_9092_TCP_ADDR"), None);
        assert_eq!(name_from_env("KAFKA_SERVICE_PORT_PLAINTEXT"), None);
        assert_eq!(name_from_env("HOME"), None);
    }
}
